# SPDX-License-Identifier: MIT
"""`iron arena` from outside: who races, what is refused, and what the reports say.

How fast anybody is decides nothing here.  Figures are held against each other (a rate is the
bytes over the median, a share is of the device's own ceiling), and comparisons against reports
whose samples were doctored by a factor that no machine makes up for.

A race costs a second and more for the ceilings, so tests share them: a class makes its races
once and looks at the reports from many sides.  What does not need a race asks the plan
(`--dry-run`).  Under a sanitizer a race takes several: `further_race` marks those that would run no
code that another has not run.  Building an op's kernels for PoCL takes up to a minute: the selftest
does, before, and leaves them in the cache (tests/CMakeLists.txt).  Wrong results come from a
plug-in made for that, tests/fake_peer/wrong_peers.c.

Which ops have parameters is for the build to say: these tests take them from `--list`.
"""

import csv
import io
import json
import os
import pty
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

from harness import IRON, LONG, REPO, SANITIZED, TIMEOUT_S, IronTest, iron, parse_json, start

try:
    import jsonschema
except ImportError:  # the keys are looked at in any case
    jsonschema = None

CPU_ONLY = {"IRON_CUDA_LIBRARY": "none", "IRON_OPENCL_LIBRARY": "none"}
ATAX_CPU = ("naive", "interchanged", "blocked", "vector", "threads", "single-pass-one-thread",
            "single-pass")
ATAX_GPU = ("naive", "constant", "transposed", "tiled", "coalesced", "single-pass")
TOKENS_GPU = ("atomic2d", "node", "hybrid", "tiled", "tiled-wide", "tiled-vector",
              "hybrid-vector", "reduce", "champion")
TOKENS_CPU = ("scalar", "threads", "node", "hybrid")  # vector and champion: one an instruction set
STRATEGIES = {"pageable", "pinned", "streams", "uvm", "uvm-prefetch", "zero-copy"}
SIZES = {
    "talk": {"MINI": "32x32", "SMALL": "500x500", "STANDARD": "4000x4000", "LARGE": "8000x8000",
             "EXTRALARGE": "20000x20000"},
    "acc": {"MINI": "1024x1024", "SMALL": "2048x2048", "STANDARD": "4096x4096",
            "LARGE": "8192x8192", "EXTRALARGE": "16384x16384"},
    "polybench": {"MINI": "38x42", "SMALL": "116x124", "MEDIUM": "390x410", "LARGE": "1900x2100",
                  "EXTRALARGE": "1800x2200"},
}
TOP_KEYS = ["schema", "iron", "host", "devices", "ceilings", "results"]
ROW_KEYS = ["op", "contender", "backend", "memory", "device", "size", "dtype", "params", "peer",
            "useful_bytes", "cache_resident", "status", "reason", "verified", "baseline",
            "speedup", "scopes"]
SCOPE_KEYS = ["median_ms", "mean_ms", "min_ms", "p95_ms", "noise_percent", "gb_s",
              "percent_of_ceiling", "samples"]
FIGURES = ("median_ms", "mean_ms", "min_ms", "p95_ms", "gb_s", "percent_of_ceiling", "speedup")
BAD_NUMBERS = ("", "-1", "+1", "1.5", "0x10", "1e3", "many", " 1", "4294967296",
               "18446744073709551616")
CLOSE = 1e-6  # reports have nine digits
GRACE_S = 300
further_race = unittest.skipIf(SANITIZED, "another race under a sanitizer takes too long")
SMALL = ("atax.cpu.naive", "--size", "16x16", "--runs", 3)  # about the cheapest race there is


def row_name(row: dict) -> str:
    return f"{row['op']}.{row['backend']}.{row['contender']}"


HOW_PARAMS = ("nodes", "streams", "threads", "size_name")  # the others are the case's


def case_of(row: dict) -> tuple:
    params = {name: row["params"][name] for name in row["params"] if name not in HOW_PARAMS}
    return row["op"], row["size"], row["dtype"], tuple(sorted(params.items()))


def listed_axes() -> dict[str, dict[str, list[str]]]:
    """Of each op that has parameters: their names, and the values that are raced."""
    axes = {}
    for op, name, values in re.findall(r"(?m)^(\S+) +(\w+): ([^(]+) \(",
                                       iron("arena", "--list", env=CPU_ONLY)
                                       .text.partition("\nparameters\n")[2]):
        axes.setdefault(op, {})[name] = values.split(", ")
    return axes


def planned_params(text: str) -> list[tuple]:
    """(name, parameters) of each line of a plan."""
    return re.findall(r"(?m)^(\S+) .* MB  (\S+ [^;]*); ", text)


def planned(text: str) -> list[tuple]:
    """(name, memory, size, dtype) of each line of a plan."""
    return [tuple(line.split()[:4]) for line in text.split("\n\n")[0].splitlines() if line]


class ArenaTest(IronTest):
    def arena(self, *args, **kwargs):
        return self.iron("arena", *args, **kwargs)

    def plan(self, *args, **kwargs) -> list[tuple]:
        return planned(self.succeeds("arena", "--dry-run", *args, **kwargs).text)

    def names(self, *args) -> list[str]:
        return [name for name, *_ in self.plan(*args, env=CPU_ONLY)]

    def race(self, *args, env=None, code=0) -> dict:
        """The JSON of a race on the CPU alone, unless told otherwise."""
        result = self.arena(*args, "--json", "-", env=CPU_ONLY if env is None else env)
        self.assertEqual(result.code, code, str(result))
        return parse_json(result.out)


class Races(ArenaTest):
    """A class whose races are made once, in a folder of the class."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.home = Path(tempfile.mkdtemp(prefix="iron-arena-"))
        cls.addClassCleanup(shutil.rmtree, cls.home, ignore_errors=True)


class List(ArenaTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.text = iron("arena", "--list").text

    def line_of(self, name: str) -> str:
        lines = [line for line in self.text.splitlines() if line.split(" ")[0] == name]
        self.assertEqual(len(lines), 1, f"{name} in {self.text}")
        return lines[0]

    def test_every_contender_once_with_its_idea(self):
        names = [f"atax.cpu.{name}" for name in ATAX_CPU]
        names += [f"tokens.cpu.{name}" for name in TOKENS_CPU]
        for backend in ("cuda", "opencl"):  # listed whether they are here or not
            names += [f"atax.{backend}.{name}" for name in ATAX_GPU]
            names += [f"tokens.{backend}.{name}" for name in TOKENS_GPU]
        names += ["atax.cuda.graph", "atax.cuda.one-launch"]
        for name in names:
            with self.subTest(name=name):
                self.assertRegex(self.line_of(name), r"\S +\S.*\w")
                self.assertNotIn("peer:", self.line_of(name))
        for name in ("vector", "champion"):
            self.assertRegex(self.text, rf"(?m)^tokens\.cpu\.{name}\.\w+ ")

    def test_peers_are_marked(self):
        for file, name in (("openblas", "atax.cpu.openblas"), ("xxh3", "tokens.cpu.xxh3")):
            if (Path(IRON).parent / f"libiron-peer-{file}.so").exists():
                self.assertIn("peer:", self.line_of(name))

    def test_sizes_of_all_suites(self):
        for suite, sizes in SIZES.items():
            line = next(line for line in self.text.splitlines() if f" {suite}: " in line)
            for name, shape in sizes.items():
                self.assertRegex(line, rf"\b{name} \({shape}\)")

    def test_parameters_name_their_values(self):
        for op, axes in listed_axes().items():
            self.assertRegex(self.text, rf"(?m)^{op}\.\w+\.")
            for name, values in axes.items():
                self.assertEqual(len(values), len(set(values)), (op, name))
                self.assertTrue(all(values), (op, name))

    def test_nobody_twice(self):
        names = re.findall(r"(?m)^(\w+\.\w+\.\S+) ", self.text)
        self.assertEqual(len(names), len(set(names)))

    def test_absent_backends_say_why(self):
        text = self.succeeds("arena", "--list", env=CPU_ONLY).text
        self.assertRegex(text, r"(?m)^not here: .*cuda")
        self.assertRegex(text, r"(?m)^not here: .*opencl")
        self.assertRegex(text, r"(?m)^atax\.cuda\.naive .*\(not here\)$")

    def test_a_glob_chooses(self):
        text = self.succeeds("arena", "--list", "atax.cpu.*", env=CPU_ONLY).text
        self.assertIn("atax.cpu.naive", text)
        self.assertNotIn("tokens.cpu", text)
        self.assertNotIn("atax.cuda", text)


class Choosing(ArenaTest):
    def test_an_exact_name(self):
        self.assertEqual(self.names("atax.cpu.naive", "--size", "5x7"), ["atax.cpu.naive"])

    def test_wildcards(self):
        self.assertEqual(self.names("atax.cpu.[nb]*", "--size", "5x7"),
                         ["atax.cpu.naive", "atax.cpu.blocked"])
        names = set(self.names("*.cpu.naiv?"))
        self.assertIn("atax.cpu.naive", names)
        self.assertEqual({name.split(".", 1)[1] for name in names}, {"cpu.naive"})
        self.assertEqual({name.split(".")[1] for name in self.names("*")}, {"cpu"})

    def test_a_front_part_stands_for_all_behind_it(self):
        mine = {f"atax.cpu.{name}" for name in ATAX_CPU}
        for glob in ("atax", "atax.cpu", "atax.*", "atax.cpu.*"):
            with self.subTest(glob=glob):
                names = self.names(glob, "--size", "5x7")
                self.assertLessEqual(mine, set(names))
                self.assertEqual({name.split(".")[0] for name in names}, {"atax"})

    def test_several_globs_and_nobody_twice(self):
        names = self.names("atax.cpu.naive", "atax.cpu.na*", "tokens.cpu.scalar")
        self.assertEqual(sorted(names), ["atax.cpu.naive", "tokens.cpu.scalar"])

    def test_a_glob_without_a_match(self):
        for globs in (["nobody"], ["atax.cpu.naive", "nobody"], ["atax.gpu.*"], ["atax.cpu.naive."],
                      ["ATAX.*"], ["cpu"], [""], ["x" * 5000]):
            with self.subTest(globs=globs):
                self.refused("arena", *globs, says="no contender matches", env=CPU_ONLY)

    def test_sizes(self):
        naive = "atax.cpu.naive"
        for suite, sizes in SIZES.items():
            dtype = "f32" if suite == "acc" else "f64"  # as those who made the suites had it
            expected = [(naive, "host", shape, dtype) for shape in sizes.values()]
            self.assertEqual(self.plan(naive, "--size", f"{suite}:*", env=CPU_ONLY), expected)
        for size, shape in (("MINI", "32x32"), ("acc:LARGE", "8192x8192"), ("7x3", "7x3"),
                            ("polybench:MEDIUM", "390x410")):
            self.assertEqual([row[2] for row in self.plan(naive, "--size", size, env=CPU_ONLY)],
                             [shape])
        self.assertEqual([row[2] for row in self.plan(naive, "--size", "3x4,SMALL", env=CPU_ONLY)],
                         ["3x4", "500x500"])
        self.assertEqual(self.plan("tokens.cpu.scalar", "--size", "1000", env=CPU_ONLY),
                         [("tokens.cpu.scalar", "host", "1000", "u32")])

    def test_each_op_takes_the_sizes_that_are_its_own(self):
        rows = self.plan("atax.cpu.naive", "tokens.cpu.scalar", "--size", "5x7,99", env=CPU_ONLY)
        self.assertEqual(sorted(row[2] for row in rows), ["5x7", "99"])

    def test_dtype(self):
        for dtype in ("f32", "f64"):
            self.assertEqual(self.plan("atax.cpu.naive", "--size", "MINI", "--dtype", dtype,
                                       env=CPU_ONLY),
                             [("atax.cpu.naive", "host", "32x32", dtype)])

    def test_too_large_for_the_machine(self):
        args = ("atax.cpu.naive", "--size", "370000x370000")  # a terabyte
        plan = self.succeeds("arena", "--dry-run", *args, env=CPU_ONLY).text
        if "skipped" not in plan:
            self.skipTest("this machine has a terabyte of memory")
        self.assertRegex(plan, "skipped: .*too large.* GiB")
        result = self.arena(*args, env=CPU_ONLY)
        self.assertEqual(result.code, 2, str(result))
        self.assertRegex(result.message, r"\Airon: nobody could race: too large.*\n\Z")

    def test_a_plan_races_nothing_and_writes_nothing(self):
        self.succeeds("arena", "--dry-run", "atax.cpu", "--json", "new.json", env=CPU_ONLY)
        self.succeeds("arena", "--list", "--html", "new.html", env=CPU_ONLY)
        self.assertEqual(self.listing(), {})

    def test_explain(self):
        for op, says in (("atax", "A"), ("tokens", "token")):
            text = self.succeeds("arena", "--explain", op).text
            self.assertTrue(text.startswith(f"{op}: "), text)
            self.assertIn(says, text)
        for op in ("nobody", "", "atax.cpu", "ATAX"):
            self.refused("arena", "--explain", op, says="op '")

    LABELS = ("Bytes moved: ", "When it does not pay: ", "In iron's own kernels: ", "Measured: ",
              "Parameters (", "Contenders:")

    def test_explain_all(self):
        text = self.succeeds("arena", "--explain", "*").text
        self.assertLessEqual(max(map(len, text.splitlines())), 100)
        parts = text.split("\n\n\n")
        listed = {name.split(".")[0] for name in re.findall(
            r"(?m)^(\w+\.\w+\.\S+) ", self.succeeds("arena", "--list", env=CPU_ONLY).text)}
        self.assertEqual({part.split(":")[0] for part in parts}, listed)
        self.assertEqual(len(parts), len(listed))
        axes = listed_axes()
        for part in parts:
            op = part.split(":")[0]
            places = [part.find("\n" + label) for label in self.LABELS]
            there = [place for place in places if place >= 0]
            with self.subTest(op=op):
                self.assertEqual(there, sorted(there))
                self.assertEqual(places[4] >= 0, op in axes)
                self.assertGreater(places[5], 0)
                for name, values in axes.get(op, {}).items():
                    words = " ".join(part[places[4]:places[5]].split())
                    self.assertIn(f"{name} ", words)
                    self.assertIn(", ".join(values), words)
        self.assertRegex(text, r"(?m)^  single-pass +cpu +\w")


class Refusals(ArenaTest):
    def refused_each(self, option: str, values, glob="atax.cpu.naive", says=()):
        for value in values:
            with self.subTest(option=option, value=value):
                self.refused("arena", glob, option, value, says=says, env=CPU_ONLY)

    def test_sizes(self):
        self.refused_each("--size", (
            "0", "0x5", "5x0", "x", "5x", "x5", "5X5", "", " ", ",", "5x5,", ",5x5", "5x5x5", "*",
            "-5x5", "+5x5", "1e3x5", "HUGE", "talk:HUGE", "talk:", "nowhere:*", ":MINI", "mini",
            "18446744073709551616x1", "1x18446744073709551616", "4294967296x4294967296",
            "18446744073709551615x18446744073709551615", "2147483647x2147483647", "y" * 5000))

    def test_sizes_of_another_op(self):
        self.refused_each("--size", ("100",), says="size 100")
        self.refused_each("--size", ("5x5", "MINI"), "tokens.cpu.scalar", says="size")
        self.refused_each("--size", ("18446744073709551616", "18446744073709551615"),
                          "tokens.cpu.scalar")

    def test_dtypes(self):
        self.refused_each("--dtype", ("", "f16", "F32", "f32,f64", "float", "u32"), says="dtype")
        self.refused_each("--dtype", ("f32",), "tokens.cpu.scalar", says="dtype")
        self.refused_each("--dtype", ("u16",), says=("dtype u16", r"f32 f64 \(atax\)"))

    def test_memory(self):
        self.refused_each("--memory", ("", "fast", "Pinned", "pinned,", ",pinned", "pinned,fast"),
                          says="memory")

    def test_parameters(self):
        self.refused_each("--param", ("", "=", "x", "x=", "=5"), says="NAME=VALUE")
        self.refused_each("--param", ("x=5", "vocab=5", "bins=5", "size=MINI", "x" * 5000 + "=1"),
                          says=("parameter", "they have none"))
        self.refused("arena", "atax.cpu", "--param", "x=1", "--param", "y=1", "--param", "x=2",
                     says=("'x'", "twice"), env=CPU_ONLY)
        self.refused("arena", "atax.cpu", *(f"--param=x{k}=1" for k in range(17)),
                     says="--param", env=CPU_ONLY)
        self.refused("arena", "atax.cpu", "--param")

    def test_numbers(self):
        for option in ("--runs", "--threads", "--streams"):
            self.refused_each(option, BAD_NUMBERS + ("0", "1000000"))
        self.refused_each("--vocab", BAD_NUMBERS + ("0", "1", "2147483649"), "tokens.cpu.scalar")
        self.refused_each("--device", BAD_NUMBERS)
        self.refused_each("--seed", ("", "-1", "many", "18446744073709551616"))

    def test_times_and_thresholds(self):
        for option, more in (("--time", ("0", "1e6")), ("--threshold", ("1e7",))):
            self.refused_each(option, ("", "-1", "nan", "inf", "1e999", "many", "0x10", *more))

    def test_time_and_runs_exclude_each_other(self):
        self.refused("arena", "atax.cpu", "--time", 1, "--runs", 5, says=("--time", "--runs"))

    def test_options(self):
        for args in (["--wat"], ["--json"], ["--runs"], ["--list=yes"], ["--size"]):
            self.refused("arena", *args)

    def test_reports_that_cannot_be_written_are_told_before_the_race(self):
        self.write("file", b"precious")
        (self.dir / "folder").mkdir()
        for option in ("--json", "--csv", "--md", "--html"):
            for path in ("nowhere/new", "folder", "file/new", ""):
                with self.subTest(option=option, path=path):
                    self.refused("arena", "atax.cpu", option, path, env=CPU_ONLY)

    def test_two_reports_in_one_place(self):
        self.refused("arena", *SMALL, "--json", "-", "--csv", "-", says="two reports")
        self.refused("arena", *SMALL, "--json", "new", "--md", "new", says="new")

    def test_a_comparison_and_a_report_on_standard_output(self):
        self.write("old.json", b'{"schema": "iron.arena/1", "results": []}')
        self.refused("arena", *SMALL, "--json", "-", "--compare", "old.json", says="--compare")

    def test_what_cannot_be_compared_with_is_told_before_the_race(self):
        report = b'{"schema": "iron.arena/1", "results": []}'
        (self.dir / "folder").mkdir()
        for name, data in (("empty", b""), ("text", b"hello\n"), ("half", report[:-9]),
                           ("list", b"[]"), ("null", b"null"), ("nothing", b"{}"),
                           ("other", report.replace(b"/1", b"/2")),
                           ("another", report.replace(b"iron.arena", b"iron.info")),
                           ("rows", report.replace(b"[]", b"7")),
                           ("row", report.replace(b"[]", b"[7]")),
                           ("nameless", report.replace(b"[]", b"[{}]")),
                           ("deep", b"[" * 100000), ("binary", bytes(range(256)))):
            self.write(f"{name}.json", data)
        for name in sorted(path.name for path in self.dir.iterdir()) + ["nowhere.json"]:
            with self.subTest(name=name):
                self.refused("arena", *SMALL, "--compare", name, "--json", "new.json",
                             says=name, env=CPU_ONLY)

    def test_no_cuda_here(self):
        for env in (CPU_ONLY, {**CPU_ONLY, "IRON_CUDA_LIBRARY": "/nowhere/libcuda.so"}):
            result = self.arena("atax.cuda.naive", "--size", "5x5", "--runs", 1, env=env)
            self.assertEqual(result.code, 2, str(result))
            self.assertRegex(result.message, r"\Airon: nobody could race: .+\n\Z")
        self.refused("arena", "atax.cu*", says="nobody can race: ", env=CPU_ONLY)


class SmallRace(Races):
    """Everything on the CPU over a small matrix in both types, and a small stream of tokens."""

    RUNS = 3

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.tables, cls.documents = [], []
        for name, *args in (("f64", "atax.cpu.*", "--size", "64x48", "--dtype", "f64"),
                            ("f32", "atax.cpu.*", "--size", "64x48", "--dtype", "f32"),
                            ("u32", "tokens.cpu.*", "--size", 5000, "--vocab", 1000)):
            reports = [word for kind in ("json", "csv", "md", "html")
                       for word in (f"--{kind}", f"{name}.{kind}")]
            result = iron("arena", *args, "--runs", cls.RUNS, *reports, cwd=cls.home, env=CPU_ONLY)
            if result.code != 0 or result.err:
                raise AssertionError(str(result))
            cls.tables.append(result.text)
            cls.documents.append(parse_json((cls.home / f"{name}.json").read_bytes()))
        cls.rows = [row for document in cls.documents for row in document["results"]]

    def test_who_is_there(self):
        for document in self.documents[:2]:
            names = [row["contender"] for row in document["results"]]
            self.assertLessEqual(set(ATAX_CPU), set(names))
            self.assertEqual(len(names), len(set(names)))
        names = {row["contender"] for row in self.documents[2]["results"]}
        self.assertLessEqual(set(TOKENS_CPU), names)

    def test_keys(self):
        for document in self.documents:
            self.assertEqual(list(document), TOP_KEYS)
            self.assertEqual(document["schema"], "iron.arena/1")
            for key in ("compiler", "flags", "commit", "date", "command", "cpu"):
                self.assertIn(key, document["host"])
        for row in self.rows:
            self.assertEqual(list(row)[:len(ROW_KEYS)], ROW_KEYS)
            self.assertEqual(row["kernels"], [], "the CPU has none")
            scopes = ["prepare", "kernel"] if row["peer"] else ["kernel"]  # peers are opened
            self.assertEqual(list(row["scopes"]), scopes, "the CPU has no copies to make")
            self.assertEqual(list(row["scopes"]["kernel"])[:len(SCOPE_KEYS)], SCOPE_KEYS)

    def test_schema(self):
        if jsonschema is None:
            self.skipTest("python3-jsonschema is not installed")
        schema = json.loads((REPO / "docs/schema/arena-1.json").read_text(encoding="utf-8"))
        for document in self.documents:
            jsonschema.Draft202012Validator(schema).validate(document)

    def test_rows(self):
        for row in self.rows:
            with self.subTest(row=row_name(row), dtype=row["dtype"]):
                self.assertEqual((row["status"], row["reason"], row["verified"]), ("ok", "", True))
                self.assertEqual((row["backend"], row["memory"]), ("cpu", "host"))
                self.assertTrue(row["cache_resident"])
                self.assertEqual(row["peer"], row["contender"] in ("openblas", "xxh3"))
        for document, size, dtype in zip(self.documents, ("64x48", "64x48", "5000"),
                                         ("f64", "f32", "u32")):
            self.assertEqual({(row["size"], row["dtype"]) for row in document["results"]},
                             {(size, dtype)})
        self.assertEqual({row["params"]["vocab"] for row in self.documents[2]["results"]}, {1000})

    def test_useful_bytes_are_the_ops(self):
        """A, x and y, once each; every token once."""
        for document, expected in zip(self.documents, (8 * (64 * 48 + 2 * 48),
                                                       4 * (64 * 48 + 2 * 48), 4 * 5000)):
            self.assertEqual({row["useful_bytes"] for row in document["results"]}, {expected})

    def test_figures_fit_each_other(self):
        for row in self.rows:
            kernel = row["scopes"]["kernel"]
            for figures in (kernel, kernel["cold"]):
                with self.subTest(row=row_name(row), dtype=row["dtype"]):
                    samples, median = figures["samples"], figures["median_ms"]
                    self.assertEqual(len(samples), self.RUNS)
                    self.assertEqual(figures["stopped_by"], "runs")
                    self.assertAlmostEqual(median, statistics.median(samples), delta=CLOSE * median)
                    self.assertAlmostEqual(figures["mean_ms"], statistics.mean(samples),
                                           delta=CLOSE * median)
                    self.assertAlmostEqual(figures["min_ms"], min(samples), delta=CLOSE * median)
                    self.assertLessEqual(figures["low_ms"], median)
                    self.assertLessEqual(median, figures["high_ms"])
                    rate = row["useful_bytes"] / median * 1e-6
                    self.assertAlmostEqual(figures["gb_s"], rate, delta=CLOSE * rate)

    def test_shares_are_of_the_devices_read_ceiling(self):
        for document in self.documents:
            read = {(c["backend"], c["device"]): c["gb_s"] for c in document["ceilings"]
                    if c["name"] == "read"}
            for row in document["results"]:
                kernel = row["scopes"]["kernel"]
                share = 100 * kernel["gb_s"] / read[row["backend"], row["device"]]
                self.assertAlmostEqual(kernel["percent_of_ceiling"], share, delta=CLOSE * share)

    def test_speedups(self):
        for document, baseline in zip(self.documents, ("naive", "naive", "scalar")):
            rows = {row["contender"]: row for row in document["results"]}
            self.assertEqual({row["baseline"] for row in rows.values()}, {baseline})
            self.assertEqual(rows[baseline]["speedup"], 1)
            base = rows[baseline]["scopes"]["kernel"]["median_ms"]
            for row in rows.values():
                expected = base / row["scopes"]["kernel"]["median_ms"]
                self.assertAlmostEqual(row["speedup"], expected, delta=CLOSE * expected)

    def test_ranks(self):
        for document in self.documents:
            rows = document["results"]
            self.assertEqual([row["rank"] for row in rows], list(range(1, len(rows) + 1)))
            medians = [row["scopes"]["kernel"]["median_ms"] for row in rows]
            self.assertEqual(medians, sorted(medians))

    def test_ceilings(self):
        for document in self.documents:
            self.assertEqual([c["name"] for c in document["ceilings"]], ["read", "write", "copy"])
            self.assertEqual({c["backend"] for c in document["ceilings"]}, {"cpu"})
            for ceiling in document["ceilings"]:
                self.assertGreater(ceiling["gb_s"], 0)
                self.assertTrue(ceiling["samples"])

    def test_devices_that_are_not_here_say_why(self):
        for document in self.documents:
            devices = {device["backend"]: device for device in document["devices"]}
            self.assertTrue(devices["cpu"]["available"])
            for name in {"cuda", "opencl"} & set(devices):
                self.assertFalse(devices[name]["available"])
                self.assertTrue(devices[name]["reason"])

    def test_the_command_repeats_the_race(self):
        command = self.documents[2]["host"]["command"]
        words = shlex.split(command)
        self.assertEqual(words[:3], ["iron", "arena", "tokens.cpu.*"])
        for pair in (["--size", "5000"], ["--vocab", "1000"], ["--runs", "3"], ["--seed", "1"]):
            self.assertIn(" ".join(pair), " ".join(words))
        again = [row[0] for row in self.plan(*words[2:], env=CPU_ONLY)]
        self.assertEqual(sorted(again), sorted(map(row_name, self.documents[2]["results"])))

    def test_table(self):
        for table, document in zip(self.tables, self.documents):
            self.assertNotIn("\x1b", table)
            self.assertNotIn("\r", table)
            self.assertLessEqual(max(map(len, table.splitlines())), 140)
            for name in ("read", "write", "copy"):
                self.assertIn(f"cpu ceiling: {name}", table)
            for row in document["results"]:
                mark = r"\*" if row["peer"] else " "
                name = re.escape(row_name(row))
                line = re.search(rf"(?m)^ *{row['rank']}{mark}~ {name} +(\S+) +(\S+) ", table)
                self.assertTrue(line, (row_name(row), table))
                for text, figure in zip(line.groups(), ("median_ms", "gb_s")):
                    value = row["scopes"]["kernel"][figure]
                    self.assertAlmostEqual(float(text), value, delta=1e-3 * value)

    def test_csv_agrees_with_the_json(self):
        for name, document in zip(("f64", "f32", "u32"), self.documents):
            lines = list(csv.DictReader(io.StringIO((self.home / f"{name}.csv").read_text())))
            self.assertEqual(len(lines), sum(len(row["scopes"]) for row in document["results"]))
            kernels = [line for line in lines if line["scope"] == "kernel"]
            self.assertEqual(len(kernels), len(document["results"]))
            for line, row in zip(kernels, document["results"]):
                for key in ("op", "contender", "backend", "memory", "device", "size", "dtype",
                            "status", "reason", "baseline"):
                    self.assertEqual(line[key], row[key])
                self.assertEqual(int(line["useful_bytes"]), row["useful_bytes"])
                self.assertEqual(int(line["samples"]), self.RUNS)
                for key in FIGURES:
                    self.assertEqual(float(line[key]), row["scopes"]["kernel"][key])

    def test_markdown(self):
        for name, document in zip(("f64", "f32", "u32"), self.documents):
            text = (self.home / f"{name}.md").read_text(encoding="utf-8")
            tables = [block for block in text.split("\n\n") if block.startswith("|")]
            for table in tables:
                lines = table.strip().splitlines()
                self.assertRegex(lines[1], r"\A\|[-:|]+\|\Z")
                self.assertEqual(len({line.count("|") for line in lines}), 1, table)
            for row in document["results"]:
                self.assertRegex(text, rf"(?m)^\| {row['rank']} \| {re.escape(row_name(row))}\W")

    def test_html_is_one_file_with_the_json_in_it(self):
        for name, document in zip(("f64", "f32", "u32"), self.documents):
            page = (self.home / f"{name}.html").read_text(encoding="utf-8")
            self.assertTrue(page.lower().startswith("<!doctype html>"))
            # names of XML's namespaces are no links
            text = re.sub(r"http://www\.w3\.org/[\w/]+", "", page)
            links = r"""(?i)https?://\S*|\bsrc=\S+|@import|(?:href=|url\()["']?(?!["'#]|data:)\S*"""
            self.assertEqual(re.findall(links, text), [])
            parts = re.findall(r'(?s)<script type="application/json"[^>]*>(.*?)</script>', page)
            self.assertEqual(parse_json(parts[0].encode()), document)
            ops = parse_json(parts[1].encode())
            self.assertEqual([op["op"] for op in ops],
                             list(dict.fromkeys(row["op"] for row in document["results"])))
            said = " ".join(self.succeeds("arena", "--explain", ops[0]["op"]).text.split())
            for note in ops[0]["notes"]:
                self.assertIn(" ".join(note["text"].split()), said)
                self.assertIn(note["title"], said)

    def test_nothing_else_is_left(self):
        self.assertEqual(sorted(path.name for path in self.home.iterdir()),
                         sorted(f"{name}.{kind}" for name in ("f64", "f32", "u32")
                                for kind in ("json", "csv", "md", "html")))


class Variations(ArenaTest):
    @further_race
    def test_json_on_standard_output_is_one_document(self):
        result = self.succeeds("arena", *SMALL, "--json", "-", "--md", "race.md", env=CPU_ONLY)
        self.assertEqual(list(parse_json(result.out)), TOP_KEYS)
        self.assertTrue(result.out.endswith(b"}\n"))
        self.assertEqual(list(self.listing()), ["race.md"])

    @further_race
    def test_csv_on_standard_output(self):
        text = self.succeeds("arena", *SMALL, "--csv", "-", env=CPU_ONLY).text
        rows = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual([row["contender"] for row in rows], ["naive"])

    def test_thin_shapes_with_one_thread(self):
        for dtype in ("f32",) if SANITIZED else ("f64", "f32"):
            document = self.race("atax.cpu", "--size", "1x1,1x1000,1000x1", "--dtype", dtype,
                                 "--runs", 1, "--threads", 1)
            rows = document["results"]
            self.assertEqual({row["size"] for row in rows}, {"1x1", "1x1000", "1000x1"})
            for row in rows:
                self.assertEqual((row["status"], row["verified"]), ("ok", True), row)
                if not row["peer"]:  # what a peer makes of its threads, nobody else knows
                    self.assertEqual(row["params"]["threads"], 1)
                self.assertEqual(len(row["scopes"]["kernel"]["samples"]), 1)
            for case in {case_of(row) for row in rows}:
                ranks = sorted(row["rank"] for row in rows if case_of(row) == case)
                self.assertEqual(ranks, list(range(1, len(ranks) + 1)))

    @further_race
    def test_one_token(self):
        for row in self.race("tokens.cpu", "--size", 1, "--vocab", 2, "--runs", 1)["results"]:
            self.assertEqual((row["status"], row["useful_bytes"]), ("ok", 4), row)

    @further_race
    def test_time(self):
        rows = self.race("atax.cpu.naive", "--size", "16x16", "--time", "0.2")["results"]
        self.assertIn(rows[0]["scopes"]["kernel"]["stopped_by"], ("precision", "time"))

    @further_race
    def test_a_report_is_replaced_whole(self):
        self.write("race.json", b"x" * 1000000)
        self.succeeds("arena", *SMALL, "--json", "race.json", env=CPU_ONLY)
        self.assertEqual(list(parse_json((self.dir / "race.json").read_bytes())), TOP_KEYS)

    @further_race
    def test_full_devices(self):
        full = self.device_node("full", 7)
        result = self.arena(*SMALL, "--json", full, env=CPU_ONLY)
        self.assertEqual(result.code, 2, str(result))
        self.assertRegex(result.message, r"\Airon: [^\n]+\n\Z")
        with open(full, "wb") as target:
            result = self.arena(*SMALL, env=CPU_ONLY, stdout=target)
        self.assertEqual(result.code, 2, str(result))
        self.assertRegex(result.message, r"\Airon: [^\n]+\n\Z")

    def test_a_folder_that_may_not_be_written(self):
        if os.geteuid() == 0:
            self.skipTest("root may write anywhere")
        (self.dir / "shut").mkdir(mode=0o555)
        self.refused("arena", *SMALL, "--json", "shut/new.json", says="shut", env=CPU_ONLY)

    @further_race
    def test_a_named_pipe_gets_the_report(self):
        os.mkfifo(self.dir / "pipe")
        seen = []
        reader = threading.Thread(target=lambda: seen.append((self.dir / "pipe").read_bytes()))
        reader.start()
        self.succeeds("arena", *SMALL, "--json", "pipe", env=CPU_ONLY)
        reader.join(GRACE_S)
        self.assertEqual(list(parse_json(seen[0])), TOP_KEYS)


class Parameters(Races):
    """Over an op that has parameters, if this build has one: small, on the CPU."""

    SIZES = ("--size", "40000,200x200")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.axes = listed_axes()
        listed = iron("arena", "--list", env=CPU_ONLY).text
        ops = [op for op, axes in cls.axes.items()
               if any(len(v) > 1 for v in axes.values()) and f"\n{op}.cpu." in listed]
        if not ops:
            raise unittest.SkipTest("no op on the CPU has a parameter with two values")
        cls.op = ops[0]
        cls.names = list(cls.axes[cls.op])
        cls.name = next(n for n in cls.names if len(cls.axes[cls.op][n]) > 1)
        cls.values = cls.axes[cls.op][cls.name]
        cls.document = None

    def params_of(self, *args) -> list[str]:
        text = self.succeeds("arena", "--dry-run", *args, env=CPU_ONLY).text
        return [params for name, params in planned_params(text) if name.startswith(self.op + ".")]

    def first_of_each(self) -> str:
        return ", ".join(f"{n} {self.axes[self.op][n][0]}" for n in self.names)

    def test_a_glob_races_every_combination(self):
        combinations = 1
        for values in self.axes[self.op].values():
            combinations *= len(values)
        planned = self.params_of(f"{self.op}.cpu.*")
        self.assertEqual(len(set(planned)), combinations)
        self.assertEqual(planned[0], self.first_of_each())

    def test_everything_races_the_first_of_each(self):
        self.assertEqual(set(self.params_of()), {self.first_of_each()})

    def test_values_are_chosen(self):
        last = self.values[-1]
        for args in ([f"{self.op}.cpu"], []):
            planned = self.params_of(*args, "--param", f"{self.name}={last}")
            self.assertEqual({re.search(rf"\b{self.name} (\S+?)(,|$)", p).group(1)
                              for p in planned}, {last})

    def test_what_is_not_there_is_refused(self):
        glob = f"{self.op}.cpu"
        for value in ("nothing-of-that", "-1e300", "nan", "0x1", self.values[0] + ",,"):
            self.refused("arena", glob, "--param", f"{self.name}={value}",
                         says=(self.op, self.name, f"'{value.split(',')[-1]}'", "must be"),
                         env=CPU_ONLY)
        self.refused("arena", glob, "--param", "nothing=1", env=CPU_ONLY,
                     says=("'nothing'", rf"{self.name} \({self.op}\)"))
        self.refused("arena", glob, "--param", f"{self.name}={self.values[0]}", "--param",
                     f"{self.name}={self.values[1]}", says="twice", env=CPU_ONLY)

    def raced(self) -> dict:
        """A race of two values of one parameter, and the first of the others; made once."""
        cls = type(self)
        if cls.document is None:
            cls.args = [f"{self.op}.cpu.*", *self.SIZES, "--runs", "3", "--threads", "2",
                        "--param", f"{self.name}={self.values[0]},{self.values[-1]}"]
            for other in self.names:
                if other != self.name:
                    cls.args += ["--param", f"{other}={self.axes[self.op][other][0]}"]
            reports = [word for kind in ("json", "csv", "md") for word in (f"--{kind}", f"r.{kind}")]
            cls.result = iron("arena", *cls.args, *reports, cwd=cls.home, env=CPU_ONLY)
            self.assertEqual(cls.result.code, 0, str(cls.result))
            cls.document = parse_json((cls.home / "r.json").read_bytes())
        return cls.document

    def test_a_case_is_a_group(self):
        rows = self.raced()["results"]
        cases = {case_of(row) for row in rows}
        self.assertEqual(len(cases), 2)
        self.assertEqual({str(row["params"][self.name]) for row in rows},
                         {self.values[0], self.values[-1]})
        for case in cases:
            mine = [row for row in rows if case_of(row) == case]
            ranks = sorted(row["rank"] for row in mine if row["status"] == "ok")
            self.assertEqual(ranks, list(range(1, len(ranks) + 1)))
            base = next(r for r in mine if r["contender"] == r["baseline"])
            self.assertEqual(base["speedup"], 1)
            for row in mine:
                if row["status"] == "ok":
                    expected = (base["scopes"]["kernel"]["median_ms"] /
                                row["scopes"]["kernel"]["median_ms"])
                    self.assertAlmostEqual(row["speedup"], expected, delta=CLOSE * expected)

    def test_reports_tell_them(self):
        rows = self.raced()["results"]
        lines = list(csv.DictReader(io.StringIO((self.home / "r.csv").read_text())))
        kernels = [line for line in lines if line["scope"] == "kernel"]
        for line, row in zip(kernels, (row for row in rows if row["status"] == "ok")):
            self.assertEqual(line[f"params.{self.name}"], str(row["params"][self.name]))
        for text in (self.result.text, (self.home / "r.md").read_text(encoding="utf-8")):
            plain = text.replace("\\", "")
            for value in (self.values[0], self.values[-1]):
                self.assertRegex(plain, rf"(?m)^(## )?{self.op} \S+ \w+, .*\b{self.name} "
                                        rf"{re.escape(value)}\b")
        self.assertIn(f"--param '{self.name}={self.values[0]},{self.values[-1]}'",
                      self.document["host"]["command"])

    def test_schema(self):
        if jsonschema is None:
            self.skipTest("python3-jsonschema is not installed")
        schema = json.loads((REPO / "docs/schema/arena-1.json").read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator(schema).validate(self.raced())

    @further_race
    def test_a_comparison_tells_them_apart(self):
        document = json.loads(json.dumps(self.raced()))
        for row in document["results"]:
            if str(row["params"][self.name]) == self.values[0]:
                row["params"][self.name] = "another"
        self.write("old.json", json.dumps(document).encode())
        result = self.arena(*self.args, "--compare", "old.json", "--threshold", 1000000,
                            env=CPU_ONLY)
        self.assertEqual(result.code, 0, str(result))
        self.assertIn(f"{self.name} another", result.text)
        told = re.findall(r"(?m)^(same|new|gone) .*", result.text)
        self.assertEqual(told.count("new"), told.count("gone"))
        self.assertGreater(told.count("same"), 0)


class Memories(ArenaTest):
    def test_every_op_takes_every_strategy(self):
        """Also those whose race is about kernels, when it is asked for."""
        listed = self.succeeds("arena", "--list", env=CPU_ONLY).text
        for op in sorted(set(re.findall(r"(?m)^(\w+)\.cuda\.", listed))):
            with self.subTest(op=op):
                rows = self.plan(f"{op}.cuda.*", "--memory", "all", env=CPU_ONLY)
                ours = {}
                for name, memory, *_ in rows:
                    ours.setdefault(name, set()).add(memory)
                peers = re.findall(rf"(?m)^({op}\.cuda\.\S+) +peer: ", listed)
                for name, memories in ours.items():
                    if name not in peers:
                        self.assertEqual(memories, STRATEGIES, name)
                usual = {row[1] for row in self.plan(f"{op}.cuda.*", env=CPU_ONLY)}
                self.assertIn(usual, (STRATEGIES, {"pageable"}))


class Comparing(Races):
    """Against a race of the same rows, as it was and with its samples doctored."""

    ARGS = ("atax.cpu.[nb]*", "--size", "24x24", "--runs", 5)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        result = iron("arena", *cls.ARGS, "--json", "-", env=CPU_ONLY)
        cls.old = parse_json(result.out)

    def against(self, document: dict, *options, args=ARGS):
        self.write("old.json", json.dumps(document).encode())
        return self.arena(*args, "--compare", "old.json", *options, env=CPU_ONLY)

    def doctored(self, factor: float) -> dict:
        document = json.loads(json.dumps(self.old))
        for row in document["results"]:
            for scope in row["scopes"].values():
                scope["samples"] = [factor * sample for sample in scope["samples"]]
        return document

    def verdicts(self, result) -> dict:
        """Of each contender, from the lines of the comparison."""
        found = re.findall(r"(?m)^(same|faster|slower|unclear|broken|new|gone) +(atax\S+) ",
                           result.text)
        return {name: verdict for verdict, name in found}

    def both(self, verdict: str) -> dict:
        return {"atax.cpu.naive": verdict, "atax.cpu.blocked": verdict}

    @further_race
    def test_the_same(self):
        result = self.against(self.old, "--threshold", 1000000)
        self.assertEqual((result.code, result.err), (0, b""), str(result))
        self.assertEqual(self.verdicts(result), self.both("same"))
        self.assertRegex(result.text, r"(?m)^against old\.json: 2 same ")

    def test_slower(self):
        result = self.against(self.doctored(1e-3))
        self.assertEqual(result.code, 1, str(result))
        self.assertEqual(self.verdicts(result), self.both("slower"))
        self.assertRegex(result.message, r"\Airon: 2 slower .*old\.json\n\Z")

    @further_race
    def test_slower_within_the_threshold(self):
        result = self.against(self.doctored(1e-1), "--threshold", 1000000)
        self.assertEqual(result.code, 0, str(result))
        self.assertEqual(self.verdicts(result), self.both("same"))

    @further_race
    def test_faster_and_the_new_report_takes_the_old_ones_place(self):
        result = self.against(self.doctored(1e3), "--json", "old.json")
        self.assertEqual((result.code, result.err), (0, b""), str(result))
        self.assertEqual(self.verdicts(result), self.both("faster"))
        new = parse_json((self.dir / "old.json").read_bytes())
        self.assertLess(new["results"][0]["scopes"]["kernel"]["samples"][0],
                        self.doctored(1e3)["results"][0]["scopes"]["kernel"]["samples"][0])

    @further_race
    def test_few_samples_decide_nothing(self):
        document = self.doctored(1e-3)
        for row in document["results"]:
            del row["scopes"]["kernel"]["samples"][2:]
        result = self.against(document)
        self.assertEqual(result.code, 0, str(result))
        self.assertEqual(self.verdicts(result), self.both("unclear"))

    def test_rows_that_only_one_race_has(self):
        document = json.loads(json.dumps(self.old))
        document["results"] = [row for row in document["results"] if row["contender"] == "naive"]
        document["results"][0]["size"] = "99x99"
        result = self.against(document)
        self.assertEqual(result.code, 0, str(result))
        self.assertIn("99x99", result.text)
        self.assertRegex(result.text, r"(?m)^against old\.json: 2 new, 1 gone ")

    @further_race
    def test_a_report_without_rows(self):
        result = self.against({**self.old, "results": []})
        self.assertEqual(result.code, 0, str(result))
        self.assertEqual(self.verdicts(result), self.both("new"))

    @further_race
    def test_reports_are_written_before_a_slowdown_ends_it(self):
        result = self.against(self.doctored(1e-3), "--json", "new.json", "--html", "new.html")
        self.assertEqual(result.code, 1, str(result))
        self.assertEqual(sorted(self.listing()), ["new.html", "new.json", "old.json"])


class WrongResults(Races):
    """A plug-in whose rows are wrong in every way that an arena must not believe."""

    WRONG = {"wrong-one": 3, "wrong-last": 47, "wrong-silent": 0, "wrong-nan": 0,
             "wrong-square": None, "wrong-second": 3, "wrong-lazy": 0, "wrong-late": 3,
             "wrong-check": None}
    FAILING = ("failing", "failing-late")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        compiler = shutil.which("cc")
        if not compiler:
            raise unittest.SkipTest("no C compiler to make the plug-in with")
        subprocess.run([compiler, "-shared", "-fPIC", f"-I{REPO / 'include'}", "-o",
                        cls.home / "libiron-peer-wrong.so",
                        REPO / "tests/fake_peer/wrong_peers.c"], check=True)
        cls.env = {**CPU_ONLY, "IRON_PEERS": str(cls.home)}
        listed = iron("arena", "--list", env=cls.env).text
        if "loads no plug-ins" in listed:
            raise unittest.SkipTest("this build of iron loads no plug-ins")
        cls.result = iron("arena", "atax.cpu.naive", "atax.cpu.right", "atax.cpu.wrong-*",
                          "atax.cpu.failing*", "atax.cpu.other-type", "--size", "48x48", "--runs",
                          3, "--json", "race.json", "--csv", "race.csv", "--md", "race.md",
                          "--html", "race.html", cwd=cls.home, env=cls.env)
        cls.document = parse_json((cls.home / "race.json").read_bytes())
        cls.rows = {row["contender"]: row for row in cls.document["results"]}

    def test_exit_status_and_the_line(self):
        self.assertEqual(self.result.code, 1, str(self.result))
        self.assertRegex(self.result.message, rf"\Airon: {len(self.WRONG)} wrong: [^\n]+\n\Z")

    def test_who_is_right_is_not_affected(self):
        for name in ("naive", "right"):
            row = self.rows[name]
            self.assertEqual((row["status"], row["verified"]), ("ok", True))
        self.assertTrue(self.rows["right"]["peer"])
        self.assertEqual({self.rows[name]["rank"] for name in ("naive", "right")}, {1, 2})

    def test_who_is_wrong_is_never_ranked(self):
        for name, element in self.WRONG.items():
            with self.subTest(name=name):
                row = self.rows[name]
                self.assertEqual((row["status"], row["verified"]), ("wrong", False))
                self.assertEqual((row["rank"], row["speedup"], row["scopes"]), (None, None, {}))
                if element is not None:
                    self.assertIn(f"y[{element}] ", row["reason"])

    def test_when_it_was_seen(self):
        for name in ("wrong-second", "wrong-lazy"):
            self.assertIn("second", self.rows[name]["reason"])
        self.assertIn("after", self.rows["wrong-late"]["reason"])
        self.assertIn("not what was meant", self.rows["wrong-check"]["reason"])

    def test_who_fails_says_why(self):
        for name in self.FAILING:
            row = self.rows[name]
            self.assertEqual((row["status"], row["rank"], row["scopes"]), ("failed", None, {}))
            self.assertIn("had enough of it", row["reason"])
        self.assertIn(self.rows["failing-open"]["status"], ("failed", "skipped"))
        self.assertIn("does not open today", self.rows["failing-open"]["reason"])
        self.assertEqual(self.rows["other-type"]["status"], "skipped")
        self.assertIn("f64", self.rows["other-type"]["reason"])

    def test_the_table_shows_them(self):
        words = " ".join(self.result.text.split())
        for name, element in self.WRONG.items():
            self.assertRegex(words, rf"! atax\.cpu\.{name} WRONG: ")
            if element is not None:
                self.assertRegex(words, rf"atax\.cpu\.{name} WRONG: [^!]*y\[{element}\] is ")
        for name in self.FAILING:
            self.assertRegex(words, rf"! atax\.cpu\.{name} FAILED: ")

    def test_all_reports_are_there_and_have_them(self):
        lines = list(csv.DictReader(io.StringIO((self.home / "race.csv").read_text())))
        self.assertEqual({line["contender"]: line["status"] for line in lines},
                         {name: row["status"] for name, row in self.rows.items()})
        for name in self.WRONG:
            for file in ("race.md", "race.html"):
                self.assertIn(name, (self.home / file).read_text(encoding="utf-8"))

    def test_schema(self):
        if jsonschema is None:
            self.skipTest("python3-jsonschema is not installed")
        schema = json.loads((REPO / "docs/schema/arena-1.json").read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator(schema).validate(self.document)

    def test_one_that_was_right_and_is_wrong_now_is_broken(self):
        document = json.loads(json.dumps(self.document))
        good = next(row for row in document["results"] if row["contender"] == "right")
        document["results"] = [{**good, "contender": "wrong-one"}]
        self.write("old.json", json.dumps(document).encode())
        result = self.arena("atax.cpu.wrong-one", "--size", "48x48", "--runs", 3, "--compare",
                            "old.json", env=self.env)
        self.assertEqual(result.code, 1, str(result))
        self.assertRegex(result.text, r"(?m)^broken +atax\.cpu\.wrong-one .*y\[3\]")

    @further_race
    def test_failures_alone_are_no_difference_that_was_found(self):
        result = self.arena("atax.cpu.failing", "--size", "48x48", "--runs", 3, "--json",
                            "race.json", env=self.env)
        self.assertEqual(result.code, 2, str(result))
        self.assertRegex(result.message, r"\Airon: 1 failed: .*had enough of it\n\Z")
        self.assertEqual(list(self.listing()), ["race.json"])

    @further_race
    def test_the_seed_is_the_datas(self):
        def told(seed: int) -> str:
            document = self.race("atax.cpu.telling", "--size", "48x48", "--runs", 1, "--seed",
                                 seed, env=self.env, code=2)
            self.assertIn(f"--seed {seed}", document["host"]["command"])
            return document["results"][0]["reason"]

        first = told(1)
        self.assertIn("the data begin with", first)
        self.assertEqual(first, told(1))
        self.assertNotEqual(first, told(2))

    @further_race
    def test_another_seed_is_verified_as_well(self):
        rows = self.race("atax.cpu.naive", "atax.cpu.wrong-one", "--size", "48x48", "--runs", 1,
                         "--seed", 77, env=self.env, code=1)["results"]
        self.assertEqual({row["contender"]: row["status"] for row in rows},
                         {"naive": "ok", "wrong-one": "wrong"})


class Peers(ArenaTest):
    def test_plug_ins_that_are_none(self):
        self.write("peers/libiron-peer-broken.so", b"not a library")
        env = {**CPU_ONLY, "IRON_PEERS": str(self.dir / "peers")}
        text = self.succeeds("arena", "--list", env=env).text
        if "loads no plug-ins" in text:
            self.skipTest("this build of iron loads no plug-ins")
        self.assertRegex(text, r"(?m)^not here: .*libiron-peer-broken\.so")
        self.assertNotIn("peer:", text, "the folder is the only one")
        self.refused("arena", "atax.cpu.openblas", says="no contender matches", env=env)


class Terminal(ArenaTest):
    """Standard output and standard error as two pseudo-terminals."""

    def on_terminals(self, env=None, stdout_too=True) -> tuple[bytes, bytes]:
        """What each terminal saw of a small race."""
        try:
            ends = [pty.openpty(), pty.openpty()]
        except OSError as error:  # a container without /dev/pts
            self.skipTest(f"no pseudo-terminal to be had: {error}")
        seen = [bytearray(), bytearray()]
        threads = [threading.Thread(target=self.drain, args=(ends[k][0], seen[k])) for k in (0, 1)]
        for thread in threads:
            thread.start()
        with open(self.dir / "plain", "wb") as plain:
            command = start("arena", *SMALL, cwd=self.dir, stdin=subprocess.DEVNULL,
                            stdout=ends[0][1] if stdout_too else plain, stderr=ends[1][1],
                            env={**CPU_ONLY, "TERM": "xterm", **(env or {})})
            code = command.wait(TIMEOUT_S)
        for _, follower in ends:
            os.close(follower)
        for thread in threads:
            thread.join()
        self.assertEqual(code, 0, seen)
        return bytes(seen[0]) or (self.dir / "plain").read_bytes(), bytes(seen[1])

    @staticmethod
    def drain(leader: int, seen: bytearray):
        """Until nobody holds the terminal any more."""
        with os.fdopen(leader, "rb", buffering=0) as file:
            try:
                while data := file.read(4096):
                    seen += data
            except OSError:
                pass

    def test_colour_and_progress(self):
        out, err = self.on_terminals()
        self.assertRegex(out, rb"\x1b\[[0-9;]+m")
        self.assertNotIn(b"\x1b[K", out)
        self.assertRegex(err, rb"\r\x1b\[K\[[#.]+\] +\d+ %")
        self.assertTrue(err.endswith(b"\r\x1b[K"), "the bar goes when the race is over")

    @further_race
    def test_no_color(self):
        out, err = self.on_terminals({"NO_COLOR": "1"})
        self.assertIn(b"atax.cpu.naive", out)
        self.assertNotIn(b"\x1b", out)
        self.assertNotRegex(err, rb"\x1b\[[0-9;]*m")

    @further_race
    def test_no_colour_in_a_file_though_errors_go_to_a_terminal(self):
        out, err = self.on_terminals(stdout_too=False)
        self.assertIn(b"atax.cpu.naive", out)
        self.assertNotIn(b"\x1b", out)
        self.assertIn(b"%", err)


class Endings(ArenaTest):
    def test_an_interrupt_leaves_nothing(self):
        self.write("old.html", b"precious")
        command = start("arena", "atax.cpu.naive", "--size", "2000x2000", "--runs", 1000, "--json",
                        "new.json", "--html", "old.html", cwd=self.dir, env=CPU_ONLY,
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with command:
            time.sleep(3)  # of at least a minute; in the ceilings or past them, no matter
            self.assertIsNone(command.poll())
            command.send_signal(signal.SIGINT)
            try:
                self.assertNotEqual(command.wait(GRACE_S), 0)
            finally:
                command.kill()
            self.assertEqual(command.stdout.read(), b"")
        self.assertEqual(self.listing(), {"old.html": b"precious"})

    def test_a_closed_pipe_is_no_error_message(self):
        cases = [(["--list"], True), (["--list"], False), (["--dry-run"], False)]
        if not SANITIZED:
            cases += [([*SMALL], True), ([*SMALL, "--json", "-"], False)]
        for args, restore in cases:
            with self.subTest(args=args, default_sigpipe=restore):  # deadly, as in a shell; ignored
                with start("arena", *args, cwd=self.dir, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, env=CPU_ONLY,
                           restore_signals=restore) as command:
                    command.stdout.close()
                    self.assertEqual(command.stderr.read(), b"")


class Help(ArenaTest):
    def examples(self) -> list[list[str]]:
        text = self.succeeds("arena", "--help").text
        found = re.findall(r"(?m)^  iron (arena .*)$", text.split("examples:")[1])
        self.assertGreaterEqual(len(found), 4)
        return [shlex.split(line) for line in found]

    def test_options_are_told(self):
        text = self.succeeds("arena", "--help").text
        for option in ("--list", "--explain", "--dry-run", "--size", "--dtype", "--vocab",
                       "--memory", "--time", "--runs", "--json", "--csv", "--md", "--html",
                       "--compare", "--threshold", "--threads", "--seed", "--streams", "--device",
                       "--param", "--scope"):
            self.assertIn(option, text)

    def test_examples_can_be_planned(self):
        self.write("race.json", b'{"schema": "iron.arena/1", "results": []}')
        for args in self.examples():
            with self.subTest(args=args):
                self.succeeds(*args, "--dry-run", env=CPU_ONLY)

    @further_race
    def test_examples_run(self):
        """In their order: one compares with what another wrote. How that ends is for the machine
        to say."""
        for args in self.examples():
            if "batch:*" in args and not LONG:  # up to a gigabyte of tokens
                continue
            with self.subTest(args=args):
                more = [] if "--runs" in args or "--list" in args else ["--time", 1]
                result = self.iron(*args, *more, env=CPU_ONLY, timeout=10 * TIMEOUT_S)
                self.assertIn(result.code, (0, 1) if "--compare" in args else (0,), str(result))
        self.assertLessEqual({"race.json"}, set(self.listing()))


class Opencl(Races):
    """The first OpenCL device, also one that is a CPU: it is asked for by name."""

    STREAMS = 3

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        info = parse_json(iron("info", "--backend", "opencl", "--json").out)
        opencl = next(b for b in info["backends"] if b["name"] == "opencl")
        if not opencl["devices"]:
            raise unittest.SkipTest(f"no OpenCL device: {opencl['reason']}")
        cls.devices = opencl["devices"]
        cls.device = opencl["devices"][0]
        # building the kernels can take a minute on a slow machine
        cls.result = iron("arena", "atax.opencl.*", "tokens.opencl.champion", "--size",
                          "33x31,5000", "--runs", 2, "--streams", cls.STREAMS, "--device", 0,
                          "--json", "-", timeout=20 * TIMEOUT_S, cwd=cls.home)
        if cls.result.code != 0:
            raise AssertionError(str(cls.result))
        cls.document = parse_json(cls.result.out)
        cls.rows = cls.document["results"]

    def test_silence(self):
        self.assertEqual(self.result.err, b"")

    def test_every_strategy_of_every_contender_is_verified(self):
        offered = set(self.device["memory"])
        for name in [f"atax.opencl.{name}" for name in ATAX_GPU] + ["tokens.opencl.champion"]:
            rows = {row["memory"]: row for row in self.rows if row_name(row) == name}
            self.assertEqual(set(rows), STRATEGIES, name)
            for memory, row in rows.items():
                with self.subTest(name=name, memory=memory):
                    self.assertEqual(row["device"], self.device["name"])
                    if memory not in offered:
                        self.assertEqual(row["status"], "skipped")
                        self.assertTrue(row["reason"])
                        continue
                    self.assertEqual((row["status"], row["verified"]), ("ok", True), row["reason"])
                    self.assertEqual(row["params"].get("streams", self.STREAMS), self.STREAMS)

    def test_scopes(self):
        for row in self.rows:
            if row["status"] != "ok":
                continue
            self.assertLessEqual({"prepare", "kernel", "end_to_end"}, set(row["scopes"]))
            for name, scope in row["scopes"].items():
                self.assertEqual(len(scope["samples"]), 1 if name == "prepare" else 2,
                                 (row_name(row), row["memory"], name))

    def test_kernels_are_noted(self):
        for row in self.rows:
            if row["status"] != "ok":
                continue
            with self.subTest(name=row_name(row), memory=row["memory"]):
                self.assertTrue(row["kernels"])
                for kernel in row["kernels"]:
                    self.assertTrue(kernel["name"].startswith(("atax", "tokens")), kernel)
                    self.assertGreater(kernel["groups"] * kernel["threads"], 0)
                    for key in ("registers", "groups_per_unit", "occupancy_percent"):
                        self.assertNotEqual(kernel.get(key), 0)

    def test_baselines(self):
        for row in self.rows:
            expected = "naive" if row["op"] == "atax" else "reduce"
            if (row["contender"], row["memory"]) == (expected, "pageable"):
                self.assertEqual(row["speedup"], 1)

    def test_ceilings_of_the_device_alone(self):
        self.assertEqual({c["backend"] for c in self.document["ceilings"]}, {"opencl"})
        names = {c["name"] for c in self.document["ceilings"]}
        self.assertLessEqual({"read", "write", "copy", "to_device_pinned"}, names)

    def test_schema(self):
        if jsonschema is None:
            self.skipTest("python3-jsonschema is not installed")
        schema = json.loads((REPO / "docs/schema/arena-1.json").read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator(schema).validate(self.document)

    def test_one_strategy(self):
        rows = self.plan("atax.opencl.naive", "--size", "5x5", "--memory", "pinned,uvm")
        self.assertEqual([row[1] for row in rows], ["pinned", "uvm"])

    def test_a_cpu_as_a_device_is_never_raced_unasked(self):
        if any(device["is_gpu"] for device in self.devices):
            self.skipTest("there is an OpenCL GPU here")
        for globs in ([], ["*"], ["atax.*"], ["atax"]):
            with self.subTest(globs=globs):
                self.assertNotIn("opencl", {name.split(".")[1] for name, *_ in self.plan(*globs)})
        self.refused("arena", "atax.open*", says=("no GPU", "glob"))

    def test_a_device_that_is_not_there(self):
        result = self.arena("atax.opencl.naive", "--size", "5x5", "--runs", 1, "--device", 99)
        self.assertEqual(result.code, 2, str(result))
        self.assertRegex(result.message, r"\Airon: [^\n]*no device 99[^\n]*\n\Z")


if __name__ == "__main__":
    unittest.main()
