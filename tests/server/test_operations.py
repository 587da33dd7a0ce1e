# SPDX-License-Identifier: MIT
"""docs/operations.md: its examples run, and its tables list exactly the existing problems, alerts
and messages of a refused start."""

import re

from harness import REPO, oracle, pack
from pages import PageTest
from sentences import sentences

PAGE = REPO / "docs" / "operations.md"


def section(title: str) -> str:
    """The text below a heading, up to the next one of its level or above."""
    text = PAGE.read_text(encoding="utf-8")
    level, rest = re.search(rf"^(#+) {re.escape(title)}\n(.*)", text, re.MULTILINE | re.DOTALL).groups()
    return re.split(rf"^#{{1,{len(level)}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def first_column(title: str) -> list:
    """The texts in backticks in the first column of a section's table."""
    rows = re.findall(r"^\| (`.*?) \|", section(title), re.MULTILINE)
    return [word for row in rows for word in re.findall(r"`([^`]+)`", row)]


class Page(PageTest):
    def test_examples(self):
        server = self.serve()
        api = self.api(server)
        self.created(api, "e", nodes=4)
        self.fed(api, "e", pack(oracle.gen(1, 1000, 100)))
        run, compared = self.assert_shown(PAGE, server)
        self.assertGreaterEqual((run, compared), (1, 1))

    def test_every_problem_is_documented(self):
        header = (REPO / "src/server/http.h").read_text(encoding="utf-8")
        kinds = re.findall(r'X\("([a-z-]+)"', header)
        self.assertGreater(len(kinds), 20)
        self.assertEqual(sorted(first_column("Answers")), sorted(kinds))

    def test_every_alert_is_documented(self):
        rules = (REPO / "deploy/prometheus/iron.rules.yml").read_text(encoding="utf-8")
        self.assertEqual(first_column("What to watch"), re.findall(r"- alert: (\w+)", rules))

    def test_every_start_error_is_documented(self):
        said, told = sentences(), first_column("Refusals at start")
        self.assertGreater(len(said), 50)
        for sentence, source in said.items():
            with self.subTest(sentence=sentence, source=source):
                self.assertTrue([t for t in told if t in sentence])
        for text in told:
            with self.subTest(told=text):
                self.assertTrue([s for s in said if text in s])

    def test_links(self):
        """Links lead to existing files, or to headings of this page."""
        page = PAGE.read_text(encoding="utf-8")
        anchors = {re.sub(r"[^a-z0-9 -]", "", h.lower()).replace(" ", "-")
                   for h in re.findall(r"^#+ (.*)$", page, re.MULTILINE)}
        for target in re.findall(r"\]\(([^)]+)\)", page):
            path, _, anchor = target.partition("#")
            if path:
                self.assertTrue((PAGE.parent / path).exists(), target)
            else:
                self.assertIn(anchor, anchors)
