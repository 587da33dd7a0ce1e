# SPDX-License-Identifier: MIT
"""The manual's and the docstrings' examples give what they show; everything public is documented and
has types."""

import contextlib
import doctest
import importlib
import importlib.util
import inspect
import io
import os
import pkgutil
import re
import tempfile
import typing
import unittest

from support import REPO, iron_tokens

README = (REPO / "python" / "README.md").read_text()


class Examples(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)

    def assert_examples(self, test):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            result = doctest.DocTestRunner().run(test, out=said.write, clear_globs=False)
        self.assertEqual(result.failed, 0, said.getvalue())
        return result.attempted

    def test_manual(self):
        names, ran = {}, 0
        for section in re.split(r"^(?=##)", README, flags=re.M):
            needs = re.findall(r"^    >>> import (numpy|torch)$", section, re.M)
            if all(map(importlib.util.find_spec, needs)):
                test = doctest.DocTestParser().get_doctest(section, names, "README", "README.md", 0)
                ran += self.assert_examples(test)
                names.update(test.globs)
            else:
                ran += section.count(">>> ")
        self.assertEqual(ran, README.count(">>> "))

    def test_docstrings(self):
        modules = [iron_tokens] + [importlib.import_module(f"iron_tokens.{module.name}")
                                   for module in pkgutil.iter_modules(iron_tokens.__path__)]
        ran = 0
        for module in modules:
            for test in doctest.DocTestFinder().find(module):
                with tempfile.TemporaryDirectory() as folder:
                    os.chdir(folder)
                    ran += self.assert_examples(test)
        self.assertGreater(ran, 40)


class Descriptions(unittest.TestCase):
    def functions(self):
        """(name, function) of everything public that can be called."""
        for name in iron_tokens.__all__:
            thing = getattr(iron_tokens, name)
            if not inspect.isclass(thing):
                yield name, thing
                continue
            for member, value in vars(thing).items():
                value = getattr(value, "__func__", getattr(value, "fget", value))
                if inspect.isfunction(value) and value.__module__.startswith("iron_tokens"):
                    yield f"{name}.{member}", value

    def test_everything_has_types(self):
        checked = 0
        for name in iron_tokens.__all__:
            typing.get_type_hints(getattr(iron_tokens, name))
        for name, function in self.functions():
            if not function.__code__.co_filename.startswith(os.path.dirname(iron_tokens.__file__)):
                continue  # written by dataclass
            typing.get_type_hints(function)  # every name in them exists
            signature = inspect.signature(function)
            self.assertIsNot(signature.return_annotation, signature.empty, name)
            for parameter in list(signature.parameters.values()):
                if parameter.name not in ("self", "cls"):
                    self.assertIsNot(parameter.annotation, parameter.empty, f"{name} {parameter}")
            checked += 1
        self.assertGreater(checked, 60)

    def test_everything_has_a_docstring(self):
        for name in iron_tokens.__all__:
            self.assertTrue(inspect.getdoc(getattr(iron_tokens, name)), name)
        for name, function in self.functions():
            if not name.rpartition(".")[2].startswith("_"):
                self.assertTrue(function.__doc__ or name.endswith(".final"), name)

    def test_the_manual_names_everything(self):
        for name in iron_tokens.__all__:
            self.assertRegex(README, rf"\b{name}\b")

    def test_marked_as_typed(self):
        self.assertTrue(os.path.exists(os.path.join(os.path.dirname(iron_tokens.__file__), "py.typed")))


if __name__ == "__main__":
    unittest.main()
