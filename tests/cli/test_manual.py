# SPDX-License-Identifier: MIT
"""Manual pages and completions: all that --help says, and nothing that a formatter complains of.

The help of a command is the only description of it; pages and scripts are made of it.  So the
tests read the help, and look for each word of it in the page as groff formats it, and for each
option in the page and in the three scripts.  What each option may be is pinned here: prose that
began to look like a list would otherwise go unnoticed.  bash is run for real; zsh and fish read
their scripts, where they are installed.
"""

import re
import shutil
import subprocess
from collections import Counter

from harness import REPO, IronTest, environment

LABELS = {"usage:", "example:", "examples:", "Exit", "status:"}  # headings in a page
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*|-o)(?![\w-])")
READING = {"--dtype": "u8 u16 u32 i32 i64", "--format": "raw llmc megatron npy ds litpkds auto",
           "--backend": "cpu cuda opencl auto"}
CHOICES = {
    "info": {"--backend": "cpu cuda opencl"},
    "gen": {"--dtype": "u16 u32"},
    "sum": READING,
    "check": READING,
    "diff": READING,
    "stat": READING,
    "feed": READING | {
        "--positions": "stream batch",
        "--mode": "scalar vector threads champion node hybrid atomic2d tiled tiled-wide "
                  "tiled-vector hybrid-vector reduce auto",
        "--memory": "auto pageable pinned streams uvm uvm-prefetch zero-copy"},
    "quantize": {"--kind": "real xor"},
    "serve": {"--log": "text json", "--log-level": "debug info warning error"},
    "push": {name: READING[name] for name in ("--dtype", "--format")},
    "arena": {"--dtype": "f32 f64 u8 u16 u32",
              "--memory": "pageable pinned streams uvm uvm-prefetch zero-copy",
              "--scope": "kernel transfer end_to_end"},
}


def own_options(text: str) -> set:
    """The options of a command: those of its usage line, and of the lines that begin with one."""
    lines = text.split("\n")
    terms = [re.split(r"  |(?<=F) (?=HTTPS)", line[2:])[0] for line in lines
             if re.match(r"  -", line)]
    return set(OPTION.findall(" ".join([lines[0], *terms])))


class ManualTest(IronTest):
    def commands(self) -> list:
        text = self.succeeds("--help").text
        names = re.findall(r"^  ([a-z]+) ", text, re.M)
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
        """The page on lines that never end, so that no word is cut."""
        done = self.shell(self.tool("groff"), "-man", "-Tascii", "-ww", "-rLL=2000n", "-rHY=0",
                          "-P-cbou", input=source)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def assert_tells_all(self, help_text: str, page: str):
        wanted = Counter(word for word in help_text.split() if word not in LABELS)
        missing = wanted - Counter(page.split())
        self.assertFalse(missing, f"words of the help that are not in the page: {missing}")

    def test_every_word_of_the_help_is_in_the_page(self):
        self.assert_tells_all(self.succeeds("--help").text,
                              self.formatted(self.succeeds("man").text))
        for name in self.commands():
            with self.subTest(command=name):
                self.assert_tells_all(self.succeeds(name, "--help").text,
                                      self.formatted(self.succeeds("man", name).text))

    def test_terms_are_options_and_stand_alone(self):
        """The text beside an option is not taken for a part of it, nor the other way round."""
        for name in self.commands():
            source = self.succeeds("man", name).text
            plain = re.sub(r"\\f[BIR]", "", source).replace("\\-", "-")
            terms = re.findall(r"^\.TP\n(-.*)$", plain, re.M)
            beside = re.findall(r"^  (-.*)$", self.succeeds(name, "--help").text, re.M)
            self.assertEqual(len(terms), len(beside), name)
            for term in terms:
                value = r"( [A-Z][^ ]*| real| xor| text\|json)?"
                self.assertRegex(term, rf"\A(-|-?-[a-z-]+{value}((,| ) ?--?[a-z-]+{value})*)\Z")

    def test_sections(self):
        for name in [None, *self.commands()]:
            source = self.succeeds("man", *([name] if name else [])).text
            found = re.findall(r"^\.SH (.*)$", source, re.M)
            wanted = ["NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "SEE ALSO"]
            self.assertEqual([s for s in found if s in wanted], wanted, name)
            self.assertEqual(len(found), len(set(found)), name)

    def test_man_finds_nothing_to_warn_of(self):
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

    def test_every_variable_that_is_read_is_told(self):
        page = self.formatted(self.succeeds("man").text)
        names = set()
        for path in [*REPO.glob("src/**/*.c"), *REPO.glob("apps/iron/*.c")]:
            text = path.read_text(encoding="utf-8")
            names |= set(re.findall(r'(?:getenv|number_of|absolute)\("([A-Z_]+)"', text))
            if re.search(r"getenv\([A-Z]*_?VARIABLE\)", text):
                names |= set(re.findall(r'VARIABLE\s+"([A-Z_]+)"', text))
        self.assertLessEqual({"IRON_PEERS", "NO_COLOR", "HOME", "LISTEN_FDS"}, names)
        for name in names:
            self.assertRegex(page, rf"(?m)^ +{name}\b")

    def test_pages_have_the_names_that_man_knows(self):
        self.assertEqual(self.succeeds("man", "iron").text, self.succeeds("man").text)
        self.assertEqual(self.succeeds("man", "iron-feed").text, self.succeeds("man", "feed").text)

    def test_refusals(self):
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
        """What bash offers for the last of the words."""
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

    def test_files_where_nothing_is_listed(self):
        """An empty answer lets bash offer files."""
        for words in (["feed", "--state", ""], ["feed", ""], ["gen", "-o", "-"]):
            self.assertEqual(self.complete(*words), [])
        self.assertIn("-o default", (self.dir / "bash").read_text())

    def test_every_option_is_offered(self):
        """Those that the help has, by bash, and a row for each in the scripts of the others."""
        zsh, fish = (self.dir / "zsh").read_text(), (self.dir / "fish").read_text()
        for name in self.commands():
            wanted = own_options(self.succeeds(name, "--help").text) | {"--help"}
            self.assertEqual(set(self.complete(name, "-")), wanted, name)
            block = re.search(rf"^    {name}\)\n(.*?);;$", zsh, re.M | re.S).group(1)
            self.assertEqual(set(re.findall(r"^ +'\*(--?[a-z-]+)", block, re.M)), wanted, name)
            rows = re.findall(rf"from {name}' -([ls]) (\S+)", fish)
            self.assertEqual({("--" if kind == "l" else "-") + word for kind, word in rows}, wanted)

    def test_values_are_those_of_the_help(self):
        text = (self.dir / "bash").read_text()
        for name in self.commands():
            block = re.search(rf"^    {name}\)\n(.*?)esac ;;$", text, re.M | re.S).group(1)
            found = dict(re.findall(r"(-[a-z-]+)\) values='([^']*)'", block))
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
