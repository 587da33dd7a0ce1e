# SPDX-License-Identifier: MIT
"""Runs the examples of a documentation page and compares their output.

Blocks of ```sh whose first line is `# run` are run in the order of the page, in one bash -eu, in an
empty folder, with `iron` in PATH, $URL set to a test server and $DATA to its data folder. A block
```json or ```text after the line <!-- shows --> is the end of the output of the preceding block:
JSON is compared value by value, except for values that differ between machines (VARYING), text line
by line.
"""

import json
import re
import subprocess

from api import ServerTest
from harness import IRON, TIMEOUT_S, environment

BLOCK = re.compile(r"(<!-- shows -->\n+)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
VARYING = {"device_name", "created", "changed", "instance", "mode", "uptime_seconds", "version"}
MARK = "--- the end of block %d ---"


def blocks(page):
    """(command, expected outputs) in order; an output belongs to the command before it."""
    found = []
    for shows, kind, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if shows:
            assert found, "a block shows what nothing has printed"
            found[-1][1].append((kind, text))
        elif kind == "sh" and text.startswith("# run\n"):
            found.append((text, []))
    return found


def last_document(text: str):
    """The JSON document at the end of the text."""
    decoder, found = json.JSONDecoder(), None
    for start in (m.start() for m in re.finditer(r"^\s*[\[{]|(?<=\})[\[{]", text, re.MULTILINE)):
        try:
            found, end = decoder.raw_decode(text[start:].lstrip())
        except ValueError:
            continue
        if not text[start:].lstrip()[end:].strip():
            return found
    raise AssertionError(f"no JSON at the end of {text[-300:]!r}")


class PageTest(ServerTest):
    def run_all(self, found, server) -> list:
        """The output of each block."""
        script = "".join(f"{text}printf '\\n{MARK % k}\\n'\n" for k, (text, _) in enumerate(found))
        tools = self.dir / "bin"
        tools.mkdir()
        (tools / "iron").symlink_to(IRON)
        work = self.dir / "work"
        work.mkdir()
        env = environment({"URL": server.url, "DATA": str(server.data)})
        env["PATH"] = f"{tools}:{env['PATH']}"
        done = subprocess.run(["bash", "-eu", "-o", "pipefail", "-c", script], cwd=work, env=env,
                              capture_output=True, timeout=2 * TIMEOUT_S, check=False)
        text = done.stdout.decode("utf-8")
        self.assertEqual(done.returncode, 0, f"after {text[-500:]!r}: {done.stderr.decode()}")
        parts = re.split(r"\n--- the end of block \d+ ---\n", text)
        self.assertEqual(len(parts), len(found) + 1)
        return parts[:-1]

    def assert_shown(self, page, server) -> tuple:
        """The number of blocks run and of outputs compared."""
        found, compared = blocks(page), 0
        for printed, (command, shows) in zip(self.run_all(found, server), found):
            for kind, text in shows:
                compared += 1
                with self.subTest(command=command.strip()[:200]):
                    if kind == "json":
                        self.assert_alike(json.loads(text), last_document(printed))
                    else:
                        self.assertIn(text.strip(), printed)
        return len(found), compared

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
