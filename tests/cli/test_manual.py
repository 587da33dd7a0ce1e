# SPDX-License-Identifier: MIT
"""Manual pages and completions, which are printed from the same tables as --help.

The tests read the help, and look for each word of it in the page as groff formats it, and for each
option in the page and in the three scripts.  The choices of each option are listed here once more,
so that changes to a table are detected.  bash runs its script; zsh and fish check the syntax of
theirs, where they are installed.
"""

import re
import shutil
import subprocess
from collections import Counter

from harness import REPO, IronTest, environment

LABELS = {"usage:", "Options:", "Commands:", "Examples:", "Exit", "status:"}  # headings in a page
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*|-[a-zA-Z])(?![\w-])")
READING = {"--dtype": "u8 u16 u32 i32 i64", "--format": "auto raw llmc megatron npy ds litpkds arrow parquet mds",
           "--backend": "auto cpu cuda opencl"}
CHOICES = {
    "info": {"--backend": "auto cpu cuda opencl"},
    "gen": {"--dtype": "u16 u32"},
    "sum": READING,
    "check": READING,
    "diff": READING,
    "lint": READING,
    "stat": READING,
    "feed": READING | {
        "--positions": "stream batch",
        "--mode": "auto scalar vector threads champion node hybrid atomic2d tiled tiled-wide "
                  "tiled-vector hybrid-vector reduce",
        "--memory": "auto pageable pinned streams uvm uvm-prefetch zero-copy"},
    "quantize": {"--kind": "real xor"},
    "serve": {"--log": "text json", "--log-level": "debug info warning error"},
    "ledger": {name: READING[name] for name in ("--dtype", "--format")},
    "push": {name: READING[name] for name in ("--dtype", "--format")},
    "arena": {"--dtype": "f32 f64 u8 u16 u32",
              "--format": READING["--format"],
              "--memory": "pageable pinned streams uvm uvm-prefetch zero-copy",
              "--scope": "kernel transfer end_to_end"},
}


def terms(text: str) -> list:
    """The options of a command as its help lists them: "-o, --output FILE"."""
    return re.findall(r"^  (-.*?)(?:  .*)?$", text, re.M)


def own_options(text: str) -> set:
    return set(OPTION.findall(" ".join(terms(text))))


class ManualTest(IronTest):
    def commands(self) -> list:
        text = self.succeeds("--help").text
        names = re.findall(r"^  ([a-z]+) ", text.split("Commands:")[1], re.M)
        self.assertIn("feed", names)
        return names + ["completion"]

    def tool(self, name: str) -> str:
        path = shutil.which(name)
        if not path:
            self.skipTest(f"{name} is not installed")
        return path

    def shell(self, *args, **kwargs) -> subprocess.CompletedProcess:
        return subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=600, cwd=self.dir, env=environment(), check=False, **kwargs)


class Pages(ManualTest):
    def formatted(self, source: str) -> str:
        """The page formatted without line breaks, so that no word is split."""
        done = self.shell(self.tool("groff"), "-man", "-Tascii", "-ww", "-rLL=2000n", "-rHY=0",
                          "-P-cbou", input=source)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def assert_contains_all(self, help_text: str, page: str):
        headings = {f"{heading}:" for heading in re.findall(r"^   (\w.*)$", page, re.M)}
        words = [word for line in help_text.split("\n") if line not in headings
                 for word in line.split() if word not in LABELS]
        missing = Counter(words) - Counter(page.split())
        self.assertFalse(missing, f"words of the help that are not in the page: {missing}")

    def test_every_word_of_the_help_is_in_the_page(self):
        self.assert_contains_all(self.succeeds("--help").text,
                              self.formatted(self.succeeds("man").text))
        for name in self.commands():
            with self.subTest(command=name):
                self.assert_contains_all(self.succeeds(name, "--help").text,
                                      self.formatted(self.succeeds("man", name).text))

    def test_the_page_has_the_same_terms(self):
        for name in self.commands():
            source = self.succeeds("man", name).text.split(".SH ENVIRONMENT")[0]
            plain = re.sub(r"\\f[BIR]", "", source).replace("\\-", "-")
            in_help = terms(self.succeeds(name, "--help").text)
            self.assertEqual(re.findall(r"^\.TP\n(-.*)$", plain, re.M), in_help, name)
            for term in in_help:
                self.assertRegex(term, r"\A(-[a-zA-Z], )?--[a-z-]+( [A-Z]\S*)?\Z")

    def test_sections(self):
        for name in [None, *self.commands()]:
            source = self.succeeds("man", *([name] if name else [])).text
            found = re.findall(r"^\.SH (.*)$", source, re.M)
            wanted = ["NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "SEE ALSO"]
            self.assertEqual([s for s in found if s in wanted], wanted, name)
            self.assertEqual(len(found), len(set(found)), name)

    def test_man_prints_no_warnings(self):
        man = self.tool("man")
        self.succeeds("man", "-o", ".")
        pages = sorted(self.dir.glob("*.1"))
        self.assertEqual(len(pages), len(self.commands()) + 1)
        for page in pages:
            done = self.shell(man, "--warnings", "-l", page)
            self.assertEqual((done.returncode, done.stderr), (0, ""), page.name)
            self.assertIn("SYNOPSIS", done.stdout)
            name = page.stem.removeprefix("iron").removeprefix("-")
            self.assertEqual(page.read_text(), self.succeeds("man", *([name] if name else [])).text)

    def test_every_environment_variable_is_documented(self):
        page = self.formatted(self.succeeds("man").text)
        names = set()
        for path in [*REPO.glob("src/**/*.c"), *REPO.glob("apps/iron/*.c")]:
            text = path.read_text(encoding="utf-8")
            names |= set(re.findall(r'(?:getenv|read_variable|absolute)\("([A-Z_]+)"', text))
            if re.search(r"getenv\([A-Z]*_?VARIABLE\)", text):
                names |= set(re.findall(r'VARIABLE\s+"([A-Z_]+)"', text))
        self.assertLessEqual({"IRON_PEERS", "NO_COLOR", "HOME", "LISTEN_FDS", "WATCHDOG_USEC"}, names)
        for name in names:
            self.assertRegex(page, rf"(?m)^ +{name}\b")

    def test_page_names(self):
        self.assertEqual(self.succeeds("man", "iron").text, self.succeeds("man").text)
        self.assertEqual(self.succeeds("man", "iron-feed").text, self.succeeds("man", "feed").text)

    def test_invalid_arguments_are_refused(self):
        self.refused("man", "frobnicate", says=("frobnicate", "--help"))
        self.refused("man", "man", says="man")
        self.refused("man", "feed", "sum", says="sum")
        self.refused("man", "-o", "nowhere", says="nowhere")
        self.refused("completion", says="bash")
        self.refused("completion", "tcsh", says=("tcsh", "fish"))
        self.refused("completion", "bash", "zsh", says="one shell")


class Completion(ManualTest):
    def setUp(self):
        super().setUp()
        for shell in ("bash", "zsh", "fish"):
            (self.dir / shell).write_text(self.succeeds("completion", shell).text)

    def complete(self, *words) -> list:
        """The completions by bash for the last word."""
        script = ('source ./bash; COMP_WORDS=(iron "$@"); COMP_CWORD=$#; _iron; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        done = self.shell(self.tool("bash"), "--norc", "-c", script, "bash", *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""), words)
        return done.stdout.split()

    def test_commands(self):
        self.assertEqual(self.complete("fe"), ["feed"])
        self.assertEqual(self.complete("s"), ["sniff", "sum", "stat", "state", "serve", "selftest"])
        self.assertEqual(self.complete(""), [*self.commands(), "--help", "--version"])
        self.assertEqual(self.complete("frobnicate", ""), [])

    def test_options_and_values(self):
        self.assertEqual(self.complete("feed", "--m"), ["--mode", "--memory"])
        self.assertEqual(self.complete("feed", "--mode", ""), CHOICES["feed"]["--mode"].split())
        self.assertEqual(self.complete("feed", "tokens.bin", "--mode", "=", "ch"), ["champion"])
        self.assertEqual(self.complete("feed", "--mode", "="), CHOICES["feed"]["--mode"].split())
        self.assertEqual(self.complete("completion", ""), ["bash", "zsh", "fish"])

    def test_files_are_offered_where_nothing_is_listed(self):
        """An empty answer lets bash offer files."""
        for words in (["feed", "--state", ""], ["feed", ""], ["gen", "-o", "-"], ["gen", "--output", ""]):
            self.assertEqual(self.complete(*words), [])
        self.assertIn("-o default", (self.dir / "bash").read_text())

    def test_every_option_is_offered(self):
        """bash completes all options of the help; the other scripts have a row for each."""
        zsh, fish = (self.dir / "zsh").read_text(), (self.dir / "fish").read_text()
        for name in self.commands():
            wanted = own_options(self.succeeds(name, "--help").text) | {"--help"}
            self.assertEqual(set(self.complete(name, "-")), wanted, name)
            block = re.search(rf"^    {name}\)\n(.*?);;$", zsh, re.M | re.S).group(1)
            self.assertEqual(set(re.findall(r"^ +'\*(--?[a-zA-Z-]+)", block, re.M)), wanted, name)
            rows = re.findall(rf"from {name}'((?: -[sl] \S+)+)", fish)
            found = re.findall(r"-([sl]) (\S+)", " ".join(rows))
            self.assertEqual({("--" if kind == "l" else "-") + word for kind, word in found}, wanted)

    def test_values_of_the_options(self):
        text = (self.dir / "bash").read_text()
        for name in self.commands():
            block = re.search(rf"^    {name}\)\n(.*?)esac ;;$", text, re.M | re.S).group(1)
            found = dict(re.findall(r"(--[a-z-]+)\) values='([^']*)'", block))
            self.assertEqual(found, CHOICES.get(name, {}), name)

    def test_zsh_and_fish_read_their_scripts(self):
        absent = []
        for shell in ("bash", "zsh", "fish"):
            if not shutil.which(shell):
                absent.append(shell)
                continue
            done = self.shell(shell, "-n", shell)
            self.assertEqual((done.returncode, done.stderr), (0, ""), shell)
        if absent:
            self.skipTest(f"{' and '.join(absent)} not installed, the others were looked at")
