#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the tests of the command, or the modules named: run.py [MODULE...]

    IRON=build/iron python3 tests/cli/run.py
    python3 tests/cli/run.py test_golden errors

A module may be named with or without `test_` and `.py`.  Every skipped test prints its
reason.  The last line is unittest's own; the exit status is 1 if a test failed or none
ran: a suite that finds nothing to do has not passed.
"""

import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True  # leave the tree as it was
sys.path.insert(0, str(HERE))


class TalkingResult(unittest.TextTestResult):
    """The usual result, with the reason of each skip printed where it happens."""

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.stream.writeln(f" skipped {test}: {reason}")
        self.stream.flush()


def module_name(argument: str) -> str:
    name = argument.removesuffix(".py").rsplit("/", 1)[-1]
    return name if name.startswith("test_") else f"test_{name}"


def collect(arguments) -> unittest.TestSuite:
    loader = unittest.defaultTestLoader
    if not arguments:
        return loader.discover(str(HERE), top_level_dir=str(HERE))
    return loader.loadTestsFromNames([module_name(a) for a in arguments])


def main() -> int:
    suite = collect(sys.argv[1:])
    if suite.countTestCases() == 0:
        print("run.py: no tests found", file=sys.stderr)
        return 1
    runner = unittest.TextTestRunner(resultclass=TalkingResult)
    result = runner.run(suite)
    return 0 if result.wasSuccessful() and result.testsRun > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
