# SPDX-License-Identifier: MIT
"""What the runners of tests/cli and tests/server share: which tests are meant by the arguments,
and a result that says why a test was skipped.
"""

import unittest
from pathlib import Path


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


def collect(folder: Path, arguments) -> unittest.TestSuite:
    """The tests of the modules named, or of all in the folder."""
    loader = unittest.defaultTestLoader
    if not arguments:
        return loader.discover(str(folder), top_level_dir=str(folder))
    return loader.loadTestsFromNames([module_name(a) for a in arguments])


def run(suite: unittest.TestSuite) -> unittest.TestResult:
    return unittest.TextTestRunner(resultclass=TalkingResult).run(suite)
