#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the tests of the server, or the modules named: run.py [MODULE...]

    IRON=build/iron python3 tests/server/run.py
    python3 tests/server/run.py test_contract probes

A module may be named with or without `test_` and `.py`.  Every skipped test prints its reason.
The exit status is 1 if a test failed or none was found, and 77 if every one was skipped: skipped
tests do not count as passed.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True  # leave the tree as it was
sys.path[:0] = [str(HERE), str(HERE.parent / "cli")]
SKIPPED = 77

import suite  # noqa: E402  (its folder is known by now)


def main() -> int:
    tests = suite.collect(HERE, sys.argv[1:])
    if tests.countTestCases() == 0:
        print("run.py: no tests found", file=sys.stderr)
        return 1
    result = suite.run(tests)
    if not result.wasSuccessful():
        return 1
    return SKIPPED if len(result.skipped) >= result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())
