# SPDX-License-Identifier: MIT
"""`iron arena` without a race: lists, plans, choices, refusals and help."""

import re
import unittest
from pathlib import Path

from arena_support import (ATAX_CPU, ATAX_GPU, BAD_NUMBERS, CPU_ONLY, SIZES, SMALL, STRATEGIES,
                           TOKENS_CPU, TOKENS_GPU, ArenaTest, listed_axes)
from harness import IRON, iron


class List(ArenaTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.text = iron("arena", "--list").text

    def line_of(self, name: str) -> str:
        lines = [line for line in self.text.splitlines() if line.split(" ")[0] == name]
        self.assertEqual(len(lines), 1, f"{name} in {self.text}")
        return lines[0]

    def test_every_contender_is_listed_once_with_its_idea(self):
        names = [f"atax.cpu.{name}" for name in ATAX_CPU]
        names += [f"tokens.cpu.{name}" for name in TOKENS_CPU]
        for backend in ("cuda", "opencl"):  # listed whether they are available or not
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

    def test_list_has_the_sizes_of_all_suites(self):
        for suite, sizes in SIZES.items():
            line = next(line for line in self.text.splitlines() if f" {suite}: " in line)
            for name, shape in sizes.items():
                self.assertRegex(line, rf"\b{name} \({shape}\)")

    def test_list_has_the_values_of_parameters(self):
        for op, axes in listed_axes().items():
            self.assertRegex(self.text, rf"(?m)^{op}\.\w+\.")
            for name, values in axes.items():
                self.assertEqual(len(values), len(set(values)), (op, name))
                self.assertTrue(all(values), (op, name))

    def test_no_contender_is_listed_twice(self):
        names = re.findall(r"(?m)^(\w+\.\w+\.\S+) ", self.text)
        self.assertEqual(len(names), len(set(names)))

    def test_missing_backends_have_a_reason(self):
        text = self.succeeds("arena", "--list", env=CPU_ONLY).text
        self.assertRegex(text, r"(?m)^unavailable: .*cuda")
        self.assertRegex(text, r"(?m)^unavailable: .*opencl")
        self.assertRegex(text, r"(?m)^atax\.cuda\.naive .*\(unavailable\)$")

    def test_glob_limits_the_list(self):
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

    def test_prefix_selects_all_names_below_it(self):
        mine = {f"atax.cpu.{name}" for name in ATAX_CPU}
        for glob in ("atax", "atax.cpu", "atax.*", "atax.cpu.*"):
            with self.subTest(glob=glob):
                names = self.names(glob, "--size", "5x7")
                self.assertLessEqual(mine, set(names))
                self.assertEqual({name.split(".")[0] for name in names}, {"atax"})

    def test_overlapping_globs_select_each_contender_once(self):
        names = self.names("atax.cpu.naive", "atax.cpu.na*", "tokens.cpu.scalar")
        self.assertEqual(sorted(names), ["atax.cpu.naive", "tokens.cpu.scalar"])

    def test_glob_without_a_match_fails(self):
        for globs in (["nobody"], ["atax.cpu.naive", "nobody"], ["atax.gpu.*"], ["atax.cpu.naive."],
                      ["ATAX.*"], ["cpu"], [""], ["x" * 5000]):
            with self.subTest(globs=globs):
                self.refused("arena", *globs, says="no contender matches", env=CPU_ONLY)

    def test_sizes(self):
        naive = "atax.cpu.naive"
        for suite, sizes in SIZES.items():
            dtype = "f32" if suite == "acc" else "f64"  # as defined by the suites' authors
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

    def test_each_op_uses_its_own_sizes(self):
        rows = self.plan("atax.cpu.naive", "tokens.cpu.scalar", "--size", "5x7,99", env=CPU_ONLY)
        self.assertEqual(sorted(row[2] for row in rows), ["5x7", "99"])

    def test_dtype(self):
        for dtype in ("f32", "f64"):
            self.assertEqual(self.plan("atax.cpu.naive", "--size", "MINI", "--dtype", dtype,
                                       env=CPU_ONLY),
                             [("atax.cpu.naive", "host", "32x32", dtype)])
        self.assertEqual([row[3] for row in self.plan("atax.cpu.naive", "--size", "MINI", "--dtype", "f64,f32",
                                                      env=CPU_ONLY)], ["f32", "f64"])

    def test_random_sizes(self):
        args = ("atax.cpu.naive", "--size", "random:30:5:4000")
        rows = self.plan(*args, env=CPU_ONLY)
        self.assertEqual(len({row[2] for row in rows}), 30)
        self.assertEqual(rows, self.plan(*args, env=CPU_ONLY))
        self.assertTrue(all(int(r) * int(c) <= 4000 for r, c in (row[2].split("x") for row in rows)))

    def test_sizes_beyond_memory_are_skipped(self):
        args = ("atax.cpu.naive", "--size", "370000x370000")  # a terabyte
        plan = self.succeeds("arena", "--dry-run", *args, env=CPU_ONLY).text
        if "skipped" not in plan:
            self.skipTest("this machine has a terabyte of memory")
        self.assertRegex(plan, "skipped: .*too large.* GiB")
        result = self.arena(*args, env=CPU_ONLY)
        self.assertEqual(result.code, 2, str(result))
        self.assertRegex(result.message, r"\Airon: no contender could race: too large.*\n\Z")

    def test_dry_run_writes_nothing(self):
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
        self.refused_each("--dtype", ("", "f16", "F32", "f32,", "float", "u32"), says="dtype")
        self.refused_each("--dtype", ("f32",), "tokens.cpu.scalar", says="dtype")
        self.refused_each("--dtype", ("u16",), says=("dtype u16", r"f32 f64 \(atax\)"))

    def test_passed_over_ops_are_named(self):
        text = self.succeeds("arena", "--dry-run", "atax", "tokens.cpu.scalar", "--size", "99",
                             env=CPU_ONLY).text
        self.assertRegex(text, r"(?m)^passed over: atax: --size 99 does not fit: it takes ROWSxCOLS")
        text = self.succeeds("arena", "--dry-run", "*", "--dtype", "f32", env=CPU_ONLY).text
        self.assertRegex(text, r"(?m)^passed over: tokens: it has no --dtype f32$")

    def test_vocab_without_tokens(self):
        for glob, more in (("histogram.*", ("--dtype", "u8")), ("atax.*", ())):
            self.refused("arena", glob, *more, "--vocab", 100, env=CPU_ONLY,
                         says=("--vocab 100", glob.split(".")[0]))
        text = self.succeeds("arena", "--dry-run", "histogram.*", "--dtype", "u8,u32", "--vocab",
                             100, env=CPU_ONLY).text
        self.assertRegex(text, r"(?m)^without --vocab: histogram u8: ")

    def test_memory(self):
        self.refused_each("--memory", ("", "fast", "Pinned", "pinned,", ",pinned", "pinned,fast"),
                          says="memory")

    def test_parameters(self):
        self.refused_each("--param", ("", "=", "x", "x=", "=5"), says="NAME=VALUE")
        self.refused_each("--param", ("x=5", "vocab=5", "bins=5", "size=MINI", "x" * 5000 + "=1"),
                          says=("parameter", "they have none"))
        self.refused("arena", "atax.cpu", "--param", "x=1", "--param", "y=1", "--param", "x=2",
                     says=("'x'", "twice"), env=CPU_ONLY)
        self.refused("arena", "atax.cpu", *(f"--param=x{k}=1" for k in range(65)),
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

    def test_unwritable_reports_fail_before_the_race(self):
        self.write("file", b"precious")
        (self.dir / "folder").mkdir()
        for option in ("--json", "--csv", "--md", "--html"):
            for path in ("nowhere/new", "folder", "file/new", ""):
                with self.subTest(option=option, path=path):
                    self.refused("arena", "atax.cpu", option, path, env=CPU_ONLY)

    def test_two_reports_to_one_file_are_refused(self):
        self.refused("arena", *SMALL, "--json", "-", "--csv", "-", says="two reports")
        self.refused("arena", *SMALL, "--json", "new", "--md", "new", says="new")

    def test_comparison_and_report_on_stdout_are_refused(self):
        self.write("old.json", b'{"schema": "iron.arena/1", "results": []}')
        self.refused("arena", *SMALL, "--json", "-", "--compare", "old.json", says="--compare")

    def test_invalid_baselines_fail_before_the_race(self):
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

    def test_missing_cuda_is_reported(self):
        for env in (CPU_ONLY, {**CPU_ONLY, "IRON_CUDA_LIBRARY": "/nowhere/libcuda.so"}):
            result = self.arena("atax.cuda.naive", "--size", "5x5", "--runs", 1, env=env)
            self.assertEqual(result.code, 2, str(result))
            self.assertRegex(result.message, r"\Airon: no contender could race: .+\n\Z")
        self.refused("arena", "atax.cu*", says="no contender can race: ", env=CPU_ONLY)


class Memories(ArenaTest):
    def test_every_op_accepts_every_memory_strategy(self):
        """Also for ops that time kernels only, when it is requested."""
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


class Peers(ArenaTest):
    def test_invalid_plugins_are_refused(self):
        self.write("peers/libiron-peer-broken.so", b"not a library")
        env = {**CPU_ONLY, "IRON_PEERS": str(self.dir / "peers")}
        text = self.succeeds("arena", "--list", env=env).text
        if "loads no plug-ins" in text:
            self.skipTest("this build of iron loads no plug-ins")
        self.assertRegex(text, r"(?m)^unavailable: .*libiron-peer-broken\.so")
        self.assertNotIn("peer:", text, "the folder is the only one")
        self.refused("arena", "atax.cpu.openblas", says="no contender matches", env=env)


if __name__ == "__main__":
    unittest.main()
