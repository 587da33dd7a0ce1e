# SPDX-License-Identifier: MIT
"""The examples of docs/server.md work (pages.py); it documents every path and every problem."""

import contract
from harness import REPO
from pages import PageTest

PAGE = REPO / "docs" / "server.md"


class Page(PageTest):
    def test_examples(self):
        run, compared = self.assert_shown(PAGE, self.serve())
        self.assertGreater(run, 5, "docs/server.md has hardly an example that is run")
        self.assertGreater(compared, 3, "docs/server.md shows hardly an answer")

    def test_every_problem_is_explained(self):
        page = PAGE.read_text(encoding="utf-8")
        kinds = contract.DOCUMENT["components"]["schemas"]["Problem"]["properties"]["type"]["enum"]
        for kind in kinds:
            self.assertIn(f"`{kind.removeprefix(contract.URN)}`", page)

    def test_every_path_is_named(self):
        page = PAGE.read_text(encoding="utf-8")
        for path in contract.DOCUMENT["paths"]:
            last = path.rsplit("/", 1)[-1]
            self.assertIn(last if last.startswith("{") else f"/{last}", page)
