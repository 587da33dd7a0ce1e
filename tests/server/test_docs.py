# SPDX-License-Identifier: MIT
"""What docs/server.md shows is what happens.

Blocks of ```sh whose first line is `# run` are run in the order of the page, in one bash -eu, in
an empty folder, with `iron` in PATH and $URL set to a server of the test's own.  A block ```json
or ```text that follows the line <!-- shows --> is what the last such block printed at its end:
JSON is compared value by value, but for what no two machines have alike (VARYING), text line by
line.  A page without such blocks fails the test.
"""

import json
import re
import subprocess

import contract
from api import ServerTest
from harness import IRON, REPO, TIMEOUT_S, environment

PAGE = REPO / "docs" / "server.md"
BLOCK = re.compile(r"(<!-- shows -->\n+)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
VARYING = {"device_name", "created", "changed", "instance", "mode", "uptime_seconds", "version"}
MARK = "--- the end of block %d ---"


def blocks():
    """(kind, text) of what is run and what it shows, in order; a show belongs to the run before."""
    found = []
    for shows, kind, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if shows:
            assert found, "a block shows what nothing has printed"
            found[-1][1].append((kind, text))
        elif kind == "sh" and text.startswith("# run\n"):
            found.append((text, []))
    return found


def last_document(text: str):
    """The JSON document that the text ends with."""
    decoder, found = json.JSONDecoder(), None
    for start in (m.start() for m in re.finditer(r"^\s*[\[{]|(?<=\})[\[{]", text, re.MULTILINE)):
        try:
            found, end = decoder.raw_decode(text[start:].lstrip())
        except ValueError:
            continue
        if not text[start:].lstrip()[end:].strip():
            return found
    raise AssertionError(f"no JSON at the end of {text[-300:]!r}")


class Page(ServerTest):
    def run_all(self, found) -> list:
        """What each block printed."""
        script = "".join(f"{text}printf '\\n{MARK % k}\\n'\n" for k, (text, _) in enumerate(found))
        tools = self.dir / "bin"
        tools.mkdir()
        (tools / "iron").symlink_to(IRON)
        work = self.dir / "work"
        work.mkdir()
        server = self.serve()
        env = environment({"URL": server.url})
        env["PATH"] = f"{tools}:{env['PATH']}"
        done = subprocess.run(["bash", "-eu", "-o", "pipefail", "-c", script], cwd=work, env=env,
                              capture_output=True, timeout=2 * TIMEOUT_S, check=False)
        text = done.stdout.decode("utf-8")
        self.assertEqual(done.returncode, 0, f"after {text[-500:]!r}: {done.stderr.decode()}")
        parts = re.split(r"\n--- the end of block \d+ ---\n", text)
        self.assertEqual(len(parts), len(found) + 1)
        return parts[:-1]

    def test_examples(self):
        found = blocks()
        self.assertGreater(len(found), 5, "docs/server.md has hardly an example that is run")
        compared = 0
        for printed, (command, shows) in zip(self.run_all(found), found):
            for kind, text in shows:
                compared += 1
                with self.subTest(command=command.strip()[:200]):
                    if kind == "json":
                        self.assert_alike(json.loads(text), last_document(printed))
                    else:
                        self.assertIn(text.strip(), printed)
        self.assertGreater(compared, 3, "docs/server.md shows hardly an answer")

    def assert_alike(self, shown, found, where="$"):
        self.assertIs(type(shown), type(found), where)
        if isinstance(shown, dict):
            self.assertEqual(set(shown), set(found), where)
            for key in shown:
                if key not in VARYING:
                    self.assert_alike(shown[key], found[key], f"{where}.{key}")
        elif isinstance(shown, list):
            self.assertEqual(len(shown), len(found), where)
            for k, pair in enumerate(zip(shown, found)):
                self.assert_alike(*pair, f"{where}[{k}]")
        else:
            self.assertEqual(shown, found, where)

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
