# SPDX-License-Identifier: MIT
"""Shared code of the runners of tests/cli and tests/server: selects tests by their arguments and
prints the reason of every skip.
"""

import signal
import unittest
from pathlib import Path


class ResultWithReasons(unittest.TextTestResult):
    """Prints the reason of each skipped test."""

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.stream.writeln(f" skipped {test}: {reason}")
        self.stream.flush()


def module_name(argument: str) -> str:
    """The module; `test_x.Class.test` names one test of it."""
    name = argument.removesuffix(".py").rsplit("/", 1)[-1]
    return name if name.startswith("test_") else f"test_{name}"


def collect(folder: Path, arguments) -> unittest.TestSuite:
    """The tests of the modules named, or of all in the folder."""
    loader = unittest.defaultTestLoader
    if not arguments:
        return loader.discover(str(folder), top_level_dir=str(folder))
    return loader.loadTestsFromNames([module_name(a) for a in arguments])


def run(suite: unittest.TestSuite) -> unittest.TestResult:
    # A shell starts background jobs with SIGINT ignored, and programs inherit that: the tests that
    # interrupt the command would wait forever.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return unittest.TextTestRunner(resultclass=ResultWithReasons).run(suite)
