#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the tests of the server, or the modules named: run.py [MODULE...]

    IRON=build/iron python3 tests/server/run.py
    python3 tests/server/run.py test_contract probes

A module may be named with or without `test_` and `.py`.  Every skipped test prints its reason.
The exit status is 1 if a test failed or none was found, and 77 if every one was skipped: what
a machine cannot do is said, and is not counted as done.
"""

import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True  # leave the tree as it was
sys.path[:0] = [str(HERE), str(HERE.parent / "cli")]
SKIPPED = 77


class TalkingResult(unittest.TextTestResult):
    """The usual result, with the reason of each skip printed where it happens."""

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.stream.writeln(f" skipped {test}: {reason}")
        self.stream.flush()


def module_name(argument: str) -> str:
    """The module; `test_x.Class.test` names one test of it."""
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
    result = unittest.TextTestRunner(resultclass=TalkingResult).run(suite)
    if not result.wasSuccessful():
        return 1
    return SKIPPED if len(result.skipped) >= result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())
