#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the tests of the command, or the modules named: run.py [MODULE...]

    IRON=build/iron python3 tests/cli/run.py
    python3 tests/cli/run.py test_golden errors

A module may be named with or without `test_` and `.py`.  Every skipped test prints its
reason.  The exit status is 1 if a test failed or no test ran.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True  # leave the tree as it was
sys.path.insert(0, str(HERE))

import suite  # noqa: E402  (its folder is known by now)


def main() -> int:
    tests = suite.collect(HERE, sys.argv[1:])
    if tests.countTestCases() == 0:
        print("run.py: no tests found", file=sys.stderr)
        return 1
    result = suite.run(tests)
    return 0 if result.wasSuccessful() and result.testsRun > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
