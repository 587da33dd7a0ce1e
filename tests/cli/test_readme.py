# SPDX-License-Identifier: MIT
"""README.md and the documentation: every command in README is run and its output compared, as a new
user would who follows one of its sections in an empty folder; every link leads somewhere.

In a console block `$ ` begins a command, what follows is its whole output, and `...` stands for any
lines.  Where figures vary, each line shown must be there with other numbers, among others in any order.
A Python block belongs to the file that the sentence before it names.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import unittest
from pathlib import Path

from harness import CACHE, IRON, REPO, SANITIZED, TIMEOUT_S, IronTest, environment, iron

README = (REPO / "README.md").read_text(encoding="utf-8")
LIBRARY = Path(os.environ.get("IRON_LIBRARY") or Path(IRON).parent / "libiron.so.0")
# Blocks of shell commands that other tests run: this folder's, CI itself, project.deb, project.install, python.wheel.
ELSEWHERE = ("make && export PATH=", "make deb && apt install", "make wheel && pip install", "make demo", "make test", "make ")
MARK = "-- done: "
QUICK = " --size 1000000"  # added to races


def sections() -> dict:
    """Title -> text."""
    parts = re.split(r"(?m)^## (.*)$", README)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2]))}


def blocks(section: str) -> list:
    """(kind, text, the sentence before it) of each fenced block."""
    return [(found[2], found[3], found[1]) for found in
            re.finditer(r"([^\n]*\n?)\n```(\w+)\n(.*?)```", section, re.S)]


def commands(block: str) -> list:
    """(command, expected output) of a console block."""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Shell:
    """A shell in a folder, which runs one command after another, as a terminal does."""

    def __init__(self, folder):
        (folder / "bin").mkdir()
        (folder / "bin" / "iron").symlink_to(IRON)
        work = folder / "work"
        work.mkdir()
        env = environment({"PATH": f"{folder}/bin:/usr/bin:{os.environ['PATH']}", "PYTHONPATH": str(REPO / "python"),
                           "PYTHONDONTWRITEBYTECODE": "1", "IRON_LIBRARY": str(LIBRARY), "IRON_CUDA_LIBRARY": "none",
                           "IRON_OPENCL_LIBRARY": "none", "IRON_CACHE_DIR": str(CACHE / "iron")})
        self.folder = work
        self.process = subprocess.Popen(["bash"], cwd=work, env=env, stdin=subprocess.PIPE, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)

    def run(self, command: str, wanted: int) -> list:
        """The command's output.  One in the background goes on writing: its first `wanted` lines."""
        self.process.stdin.write(f"{command}\necho \"{MARK}$?\"\n")
        self.process.stdin.flush()
        lines, is_done = [], False
        while not is_done or (command.rstrip().endswith("&") and len(lines) < wanted):
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError(f"the shell ended in: {command}: {lines}")
            if line.startswith(MARK):
                is_done = True
            else:
                lines.append(line.rstrip("\n"))
        return lines

    def close(self):
        """Ends the shell and what it still runs in the background."""
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.communicate(timeout=TIMEOUT_S)


class Jobs(IronTest):
    def follow(self, title):
        shell = Shell(self.dir)
        self.addCleanup(shell.close)
        port = str(free_port())
        count = 0
        for kind, text, before in blocks(sections()[title]):
            if kind == "python":
                (shell.folder / re.search(r"`(\w+\.py)`", before)[1]).write_text(text)
                continue
            self.assertEqual(kind, "console", text)
            for command, expected in commands(text.replace("8080", port)):
                count += 1
                output = "\n".join(shell.run(command + (QUICK if "iron arena '" in command else ""), len(expected)))
                if "figures vary" in before:
                    for line in expected:
                        words = [re.escape(word) for word in line.split() if not re.search(r"\d", word)]
                        self.assertRegex(output, "(?m)^.*" + ".*".join(words) + ".*$", command)
                    continue
                pattern = "\n".join(r"(?:.*\n)*?.*" if line == "..." else re.escape(line) for line in expected)
                self.assertRegex(output, rf"\A{pattern}\Z", command)
        self.assertGreater(count, 1)

    def test_a_dataset(self):
        self.follow("Check a dataset")

    @unittest.skipIf(SANITIZED or not LIBRARY.exists(), "needs a library that python can load")
    def test_a_training_run(self):
        self.follow("Check a training run")

    @unittest.skipIf(iron("serve", "--help").code != 0, "this build has no server")
    @unittest.skipUnless(shutil.which("curl"), "curl is not installed")
    def test_the_server(self):
        self.follow("Run the server")

    @unittest.skipUnless(shutil.which("cc"), "there is no C compiler")
    def test_a_kernel(self):
        self.follow("Race your own kernel")

    def test_no_block_is_left_out(self):
        """Each block is in one of the sections above, or its commands are run elsewhere."""
        jobs = ("Check a dataset", "Check a training run", "Run the server", "Race your own kernel")
        for title, text in sections().items():
            found = blocks(text)
            if title == "":  # python/tests/test_loader_bugs.py compares it with the example's output
                self.assertEqual([kind for kind, *_ in found], ["console"])
            elif title not in jobs:
                for kind, block, _ in found:
                    self.assertEqual(kind, "sh", block)
                    for line in block.splitlines():
                        self.assertTrue(line.startswith(ELSEWHERE), line)
        for line in re.findall(r"(?m)^    (\S.*)$", sections()[""]):
            self.assertTrue(line.startswith(ELSEWHERE), line)


def slug(heading: str) -> str:
    """The anchor that a heading gets on a page."""
    return re.sub(r"[^\w\- ]", "", re.sub(r"\[(.*?)\]\(.*?\)", r"\1", heading).lower()).strip().replace(" ", "-")


def pages() -> list:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=REPO, capture_output=True, text=True, check=False)
    return [REPO / name for name in listed.stdout.split()] if listed.returncode == 0 else sorted(REPO.glob("docs/*.md"))


def without_code(path: Path) -> str:
    return re.sub(r"(?ms)^```.*?^```", "", path.read_text(encoding="utf-8"))


def links(path: Path) -> list:
    """(target or None for the page itself, anchor or None) of each link to a file of the project."""
    found = []
    for target in re.findall(r'\]\(([^)\s]+)\)|(?:src|srcset|href)="([^"]+)"', without_code(path)):
        target = target[0] or target[1]
        if not re.match(r"\w+:", target):
            name, _, anchor = target.partition("#")
            found.append(((path.parent / name).resolve() if name else path, anchor or None))
    return found


class Documentation(unittest.TestCase):
    def test_links(self):
        for page in pages():
            for target, anchor in links(page):
                with self.subTest(page=str(page.relative_to(REPO)), target=str(target), anchor=anchor):
                    self.assertTrue(target.exists())
                    if anchor and target.suffix == ".md":
                        headings = re.findall(r"(?m)^#+ (.*)$", without_code(target))
                        self.assertIn(anchor, map(slug, headings))

    def test_every_page_is_two_clicks_away(self):
        start = REPO / "docs" / "README.md"
        one = {target for target, _ in links(start)}
        two = one | {target for page in one if page.suffix == ".md" for target, _ in links(page)}
        self.assertIn(start, {target for target, _ in links(REPO / "README.md")})
        for page in (REPO / "docs").glob("**/*.md"):
            self.assertTrue({page, page.parent} & two or page == start, page)

    def test_readme_is_short(self):
        self.assertLessEqual(len(README.splitlines()), 150)

    def test_english(self):
        """Phrases that no native speaker would write."""
        odd = re.compile(r"(?<!there )\b(is|are) none\b|\bwhoever\b|\bthat which\b|\bwhat stands between\b|\bof which one\b"
                         r"|\ba line a file\b|\bof what the memory gave\b")
        texts = {str(page.relative_to(REPO)): page.read_text(encoding="utf-8") for page in pages()}
        words = iron("--help").text
        texts["--help"] = words
        for command in re.findall(r"(?m)^  ([a-z]+)  ", words):
            texts[f"{command} --help"] = iron(command, "--help").text
        self.assertGreater(len(texts), 20)
        for name, text in texts.items():
            self.assertIsNone(odd.search(text), name)


if __name__ == "__main__":
    unittest.main()
