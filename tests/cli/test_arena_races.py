# SPDX-License-Identifier: MIT
"""`iron arena` on the CPU: reports, comparisons and files.  Wrong results come from the test plugin
tests/fake_peer/wrong_peers.c."""

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
import threading
import time
import unittest

from arena_support import (ATAX_CPU, CLOSE, CPU_ONLY, FIGURES, GRACE_S, ROW_KEYS, SCOPE_KEYS, SIZES,
                           SMALL, TOKENS_CPU, TOP_KEYS, ArenaTest, case_of, further_race,
                           listed_axes, planned, planned_params, Races, row_name)
from harness import LONG, REPO, SANITIZED, TIMEOUT_S, iron, parse_json, start

try:
    import jsonschema
except ImportError:  # the keys are checked in any case
    jsonschema = None


class SmallRace(Races):
    """All CPU contenders over a small matrix in both types, and a small stream of tokens."""

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

    def test_contenders(self):
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

    def test_useful_bytes(self):
        """A, x and y are counted once each; every token once."""
        for document, expected in zip(self.documents, (8 * (64 * 48 + 2 * 48),
                                                       4 * (64 * 48 + 2 * 48), 4 * 5000)):
            self.assertEqual({row["useful_bytes"] for row in document["results"]}, {expected})

    def test_figures_are_consistent(self):
        for row in self.rows:
            kernel = row["scopes"]["kernel"]
            # a slow machine takes no cold samples
            for figures in filter(None, (kernel, kernel.get("cold"))):
                with self.subTest(row=row_name(row), dtype=row["dtype"]):
                    samples, median = figures["samples"], figures["median_ms"]
                    self.assertEqual(len(samples), self.RUNS)
                    self.assertEqual(figures["stopped_by"], "runs")
                    self.assertAlmostEqual(median, statistics.median(samples), delta=CLOSE * median)
                    self.assertAlmostEqual(figures["mean_ms"], statistics.mean(samples),
                                           delta=CLOSE * max(samples))
                    self.assertAlmostEqual(figures["min_ms"], min(samples), delta=CLOSE * median)
                    self.assertAlmostEqual(figures["max_ms"], max(samples), delta=CLOSE * median)
                    self.assertEqual(figures["count"], len(samples))
                    noise = 100 * statistics.stdev(samples) / statistics.mean(samples)
                    self.assertAlmostEqual(figures["noise_percent"], noise, delta=1e-3 * noise + 1e-3)
                    # three samples have no interval
                    for key in ("low_ms", "high_ms", "coverage_percent"):
                        self.assertIsNone(figures[key])
                    rate = row["useful_bytes"] / median * 1e-6
                    self.assertAlmostEqual(figures["gb_s"], rate, delta=CLOSE * rate)

    def test_percent_of_ceiling_uses_the_read_ceiling(self):
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
            self.assertEqual([c["name"] for c in document["ceilings"]],
                             ["read", "write", "copy", "triad"])
            self.assertEqual({c["backend"] for c in document["ceilings"]}, {"cpu"})
            for ceiling in document["ceilings"]:
                fastest = ceiling["bytes"] / ceiling["min_ms"] * 1e-6
                self.assertAlmostEqual(ceiling["gb_s"], fastest, delta=CLOSE * fastest)
                self.assertLessEqual(ceiling["low_gb_s"], ceiling["gb_s"])
                self.assertGreaterEqual(ceiling["measurements"], 2)  # before and after the race
                self.assertRegex(ceiling["shape"], r"threads?, (huge|ordinary|spread) pages\Z")
                self.assertIsNone(ceiling["peak_gb_s"])
            for row in document["results"]:
                self.assertFalse(row["above_ceiling"], "all are cache-resident")

    def test_missing_devices_have_a_reason(self):
        for document in self.documents:
            devices = {device["backend"]: device for device in document["devices"]}
            self.assertTrue(devices["cpu"]["available"])
            for name in {"cuda", "opencl"} & set(devices):
                self.assertFalse(devices[name]["available"])
                self.assertTrue(devices[name]["reason"])

    def test_recorded_command_repeats_the_race(self):
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

    def test_html_is_self_contained_and_embeds_the_json(self):
        for name, document in zip(("f64", "f32", "u32"), self.documents):
            page = (self.home / f"{name}.html").read_text(encoding="utf-8")
            self.assertTrue(page.lower().startswith("<!doctype html>"))
            # XML namespaces are not links
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

    def test_no_other_files_are_written(self):
        self.assertEqual(sorted(path.name for path in self.home.iterdir()),
                         sorted(f"{name}.{kind}" for name in ("f64", "f32", "u32")
                                for kind in ("json", "csv", "md", "html")))


class Energy(ArenaTest):
    """A folder like Linux's powercap, whose counter moves while iron computes: the nanoseconds that
    its first thread has run."""

    def setUp(self):
        super().setUp()
        package = self.dir / "powercap" / "intel-rapl:0"
        package.mkdir(parents=True)
        (package / "name").write_text("package-0\n")
        (package / "max_energy_range_uj").write_text(f"{1 << 62}\n")
        (package / "energy_uj").symlink_to("/proc/self/schedstat")
        try:
            (package / "energy_uj").read_text()
        except OSError:
            self.skipTest("this system counts no time of threads")

    def rows(self, powercap) -> list:
        env = {**CPU_ONLY, "IRON_POWERCAP": str(powercap)}
        return self.race("atax.cpu.naive", "--size", "200x200", "--runs", 3, env=env)["results"]

    def test_a_counter_gives_joules_and_watts(self):
        for _ in range(20):  # a busy machine may not let it run for long enough
            row, = self.rows(self.dir / "powercap")
            if row["energy"]:
                break
        self.assertEqual(list(row["energy"]), ["joules_per_gb", "watts", "source"])
        self.assertEqual(row["energy"]["source"], "rapl")
        self.assertGreater(row["energy"]["joules_per_gb"], 0)
        self.assertGreater(row["energy"]["watts"], 0)
        self.assertIsNone(row["clocks"])

    def test_without_a_counter_energy_is_unknown(self):
        row, = self.rows("none")
        self.assertIsNone(row["energy"])
        (self.dir / "powercap/intel-rapl:0/energy_uj").unlink()
        row, = self.rows(self.dir / "powercap")
        self.assertIsNone(row["energy"])


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
                if not row["peer"]:  # a peer does not report its threads
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

    def test_nine_samples_have_an_interval_and_one_has_no_noise(self):
        for runs, coverage in ((9, 100 * (1 - 20 / 512)), (1, None)):
            kernel = self.race(*SMALL[:3], "--runs", runs)["results"][0]["scopes"]["kernel"]
            ordered = sorted(kernel["samples"])
            self.assertEqual(kernel["count"], runs)
            if coverage:
                self.assertAlmostEqual(kernel["coverage_percent"], coverage, delta=1e-6)
                self.assertEqual((kernel["low_ms"], kernel["high_ms"]), (ordered[1], ordered[-2]))
            else:
                self.assertEqual([kernel[key] for key in ("coverage_percent", "low_ms", "high_ms",
                                                          "noise_percent")], [None] * 4)

    def test_rows_slower_than_the_time_are_skipped(self):
        """The 128 MB of the matrix are not read in a fifth of a millisecond by any machine."""
        document = self.race("atax.cpu.naive", "--size", "4000x4000", "--time", "0.001", code=2)
        row = document["results"][0]
        self.assertEqual((row["status"], row["scopes"]), ("skipped", {}))
        self.assertRegex(row["reason"], r"too slow for --time 0\.001; .* --time \d+ or more\Z")
        self.assertGreater(document["host"]["race_seconds"], 0)
        self.assertGreater(document["host"]["ceiling_seconds"], 0)

    def test_ops_that_the_size_does_not_fit_are_named(self):
        result = self.arena("atax.cpu.naive", "tokens.cpu.scalar", "--size", 40, "--runs", 1,
                            "--json", "race.json", "--md", "race.md", env=CPU_ONLY)
        self.assertEqual(result.code, 0, str(result))
        remark = "passed over: atax: --size 40 does not fit: it takes ROWSxCOLS"
        self.assertIn(remark, " ".join(result.text.split()))
        document = parse_json((self.dir / "race.json").read_bytes())
        self.assertNotIn("atax", {row["op"] for row in document["results"]})
        self.assertTrue(any(line.startswith(remark) for line in document["host"]["remarks"]))
        self.assertIn(remark, (self.dir / "race.md").read_text(encoding="utf-8").replace("\\", ""))

    @further_race
    def test_report_is_replaced_atomically(self):
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

    def test_unwritable_folder(self):
        if os.geteuid() == 0:
            self.skipTest("root may write anywhere")
        (self.dir / "shut").mkdir(mode=0o555)
        self.refused("arena", *SMALL, "--json", "shut/new.json", says="shut", env=CPU_ONLY)

    @further_race
    def test_report_to_a_named_pipe(self):
        os.mkfifo(self.dir / "pipe")
        seen = []
        reader = threading.Thread(target=lambda: seen.append((self.dir / "pipe").read_bytes()))
        reader.start()
        self.succeeds("arena", *SMALL, "--json", "pipe", env=CPU_ONLY)
        reader.join(GRACE_S)
        self.assertEqual(list(parse_json(seen[0])), TOP_KEYS)


class Parameters(Races):
    """An op with parameters, if this build has one: small, on the CPU."""

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

    def test_glob_races_every_combination(self):
        combinations = 1
        for values in self.axes[self.op].values():
            combinations *= len(values)
        planned = self.params_of(f"{self.op}.cpu.*")
        self.assertEqual(len(set(planned)), combinations)
        self.assertEqual(planned[0], self.first_of_each())

    def test_default_races_the_first_value_of_each_parameter(self):
        self.assertEqual(set(self.params_of()), {self.first_of_each()})

    def test_param_selects_values(self):
        last = self.values[-1]
        for args in ([f"{self.op}.cpu"], []):
            planned = self.params_of(*args, "--param", f"{self.name}={last}")
            self.assertEqual({re.search(rf"\b{self.name} (\S+?)(,|$)", p).group(1)
                              for p in planned}, {last})

    def test_unknown_parameters_are_refused(self):
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
        """A race of two values of one parameter and the first value of the others; run once."""
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

    def test_ranks_are_per_case(self):
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

    def test_reports_contain_parameters(self):
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
    def test_comparison_distinguishes_parameters(self):
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


class Comparing(Races):
    """Compares with a race of the same rows, unchanged and with modified samples."""

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
        """{contender: verdict}, from the lines of the comparison."""
        found = re.findall(r"(?m)^(same|faster|slower|unclear|broken|new|gone) +(atax\S+) ",
                           result.text)
        return {name: verdict for verdict, name in found}

    def both(self, verdict: str) -> dict:
        return {"atax.cpu.naive": verdict, "atax.cpu.blocked": verdict}

    @further_race
    def test_equal_samples_are_the_same(self):
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
    def test_faster_with_report_replacing_the_baseline(self):
        result = self.against(self.doctored(1e3), "--json", "old.json", "--html", "page.html")
        self.assertEqual((result.code, result.err), (0, b""), str(result))
        self.assertEqual(self.verdicts(result), self.both("faster"))
        new = parse_json((self.dir / "old.json").read_bytes())
        self.assertLess(new["results"][0]["scopes"]["kernel"]["samples"][0],
                        self.doctored(1e3)["results"][0]["scopes"]["kernel"]["samples"][0])
        page = (self.dir / "page.html").read_text(encoding="utf-8")
        kept = parse_json(re.search('id="before">(.*?)</script>', page, re.S).group(1).encode())
        self.assertEqual((kept["path"], kept["threshold_percent"]), ("old.json", 5))
        self.assertEqual({row["key"].split()[0]: row["change"] for row in kept["rows"]},
                         self.both("faster"))
        for row in kept["rows"]:
            self.assertEqual((row["scope"], row["old"]["count"]), ("kernel", 5))
            self.assertGreater(row["old"]["low_ms"], row["new"]["high_ms"])
            self.assertEqual(new["results"][row["row"]]["scopes"]["kernel"]["median_ms"],
                             row["new"]["median_ms"])

    @further_race
    def test_few_samples_are_inconclusive(self):
        document = self.doctored(1e-3)
        for row in document["results"]:
            del row["scopes"]["kernel"]["samples"][2:]
        result = self.against(document)
        self.assertEqual(result.code, 0, str(result))
        self.assertEqual(self.verdicts(result), self.both("unclear"))

    def test_rows_of_only_one_race(self):
        document = json.loads(json.dumps(self.old))
        document["results"] = [row for row in document["results"] if row["contender"] == "naive"]
        document["results"][0]["size"] = "99x99"
        result = self.against(document)
        self.assertEqual(result.code, 0, str(result))
        self.assertIn("99x99", result.text)
        self.assertRegex(result.text, r"(?m)^against old\.json: 2 new, 1 gone ")

    @further_race
    def test_baseline_without_rows(self):
        result = self.against({**self.old, "results": []})
        self.assertEqual(result.code, 0, str(result))
        self.assertEqual(self.verdicts(result), self.both("new"))

    @further_race
    def test_reports_are_written_despite_a_slowdown(self):
        result = self.against(self.doctored(1e-3), "--json", "new.json", "--html", "new.html")
        self.assertEqual(result.code, 1, str(result))
        self.assertEqual(sorted(self.listing()), ["new.html", "new.json", "old.json"])


class WrongResults(Races):
    """A plugin whose contenders are wrong in every way that the arena must detect."""

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

    def test_exit_status_and_message(self):
        self.assertEqual(self.result.code, 1, str(self.result))
        self.assertRegex(self.result.message, rf"\Airon: {len(self.WRONG)} wrong: [^\n]+\n\Z")

    def test_correct_contenders_are_not_affected(self):
        for name in ("naive", "right"):
            row = self.rows[name]
            self.assertEqual((row["status"], row["verified"]), ("ok", True))
        self.assertTrue(self.rows["right"]["peer"])
        self.assertEqual({self.rows[name]["rank"] for name in ("naive", "right")}, {1, 2})

    def test_wrong_contenders_are_not_ranked(self):
        for name, element in self.WRONG.items():
            with self.subTest(name=name):
                row = self.rows[name]
                self.assertEqual((row["status"], row["verified"]), ("wrong", False))
                self.assertEqual((row["rank"], row["speedup"], row["scopes"]), (None, None, {}))
                if element is not None:
                    self.assertIn(f"y[{element}] ", row["reason"])

    def test_time_of_detection_is_reported(self):
        for name in ("wrong-second", "wrong-lazy"):
            self.assertIn("second", self.rows[name]["reason"])
        self.assertIn("after", self.rows["wrong-late"]["reason"])
        self.assertIn("not what was meant", self.rows["wrong-check"]["reason"])

    def test_failed_contenders_have_a_reason(self):
        for name in self.FAILING:
            row = self.rows[name]
            self.assertEqual((row["status"], row["rank"], row["scopes"]), ("failed", None, {}))
            self.assertIn("had enough of it", row["reason"])
        self.assertIn(self.rows["failing-open"]["status"], ("failed", "skipped"))
        self.assertIn("does not open today", self.rows["failing-open"]["reason"])
        self.assertEqual(self.rows["other-type"]["status"], "skipped")
        self.assertIn("f64", self.rows["other-type"]["reason"])

    def test_table_shows_wrong_contenders(self):
        words = " ".join(self.result.text.split())
        for name, element in self.WRONG.items():
            self.assertRegex(words, rf"! atax\.cpu\.{name} WRONG: ")
            if element is not None:
                self.assertRegex(words, rf"atax\.cpu\.{name} WRONG: [^!]*y\[{element}\] is ")
        for name in self.FAILING:
            self.assertRegex(words, rf"! atax\.cpu\.{name} FAILED: ")

    def test_all_reports_contain_wrong_contenders(self):
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

    def test_newly_wrong_contender_is_broken(self):
        document = json.loads(json.dumps(self.document))
        good = next(row for row in document["results"] if row["contender"] == "right")
        document["results"] = [{**good, "contender": "wrong-one"}]
        self.write("old.json", json.dumps(document).encode())
        result = self.arena("atax.cpu.wrong-one", "--size", "48x48", "--runs", 3, "--compare",
                            "old.json", env=self.env)
        self.assertEqual(result.code, 1, str(result))
        self.assertRegex(result.text, r"(?m)^broken +atax\.cpu\.wrong-one .*y\[3\]")

    @further_race
    def test_failures_alone_exit_with_an_error(self):
        result = self.arena("atax.cpu.failing", "--size", "48x48", "--runs", 3, "--json",
                            "race.json", env=self.env)
        self.assertEqual(result.code, 2, str(result))
        self.assertRegex(result.message, r"\Airon: 1 failed: .*had enough of it\n\Z")
        self.assertEqual(list(self.listing()), ["race.json"])

    @further_race
    def test_seed_determines_the_data(self):
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
    def test_other_seeds_are_verified(self):
        rows = self.race("atax.cpu.naive", "atax.cpu.wrong-one", "--size", "48x48", "--runs", 1,
                         "--seed", 77, env=self.env, code=1)["results"]
        self.assertEqual({row["contender"]: row["status"] for row in rows},
                         {"naive": "ok", "wrong-one": "wrong"})


class Terminal(ArenaTest):
    """Standard output and standard error as two pseudo-terminals."""

    def on_terminals(self, env=None, stdout_too=True) -> tuple[bytes, bytes]:
        """What each terminal received during a small race."""
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
        """Reads until all writers have closed the terminal."""
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
    def test_no_colour_in_a_file_when_stderr_is_a_terminal(self):
        out, err = self.on_terminals(stdout_too=False)
        self.assertIn(b"atax.cpu.naive", out)
        self.assertNotIn(b"\x1b", out)
        self.assertIn(b"%", err)


class Endings(ArenaTest):
    def test_interrupt_leaves_no_files(self):
        self.write("old.html", b"precious")
        command = start("arena", "atax.cpu.naive", "--size", "2000x2000", "--runs", 1000, "--json",
                        "new.json", "--html", "old.html", cwd=self.dir, env=CPU_ONLY,
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with command:
            time.sleep(3)  # the race lasts at least a minute
            self.assertIsNone(command.poll())
            command.send_signal(signal.SIGINT)
            try:
                self.assertNotEqual(command.wait(GRACE_S), 0)
            finally:
                command.kill()
            self.assertEqual(command.stdout.read(), b"")
        self.assertEqual(self.listing(), {"old.html": b"precious"})

    def test_closed_pipe_prints_no_error(self):
        cases = [(["--list"], True), (["--list"], False), (["--dry-run"], False)]
        if not SANITIZED:
            cases += [([*SMALL], True), ([*SMALL, "--json", "-"], False)]
        for args, restore in cases:
            with self.subTest(args=args, default_sigpipe=restore):  # otherwise ignored
                with start("arena", *args, cwd=self.dir, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, env=CPU_ONLY,
                           restore_signals=restore) as command:
                    command.stdout.close()
                    self.assertEqual(command.stderr.read(), b"")


class Help(ArenaTest):
    def examples(self) -> list[list[str]]:
        text = self.succeeds("arena", "--help").text
        found = re.findall(r"(?m)^  iron (arena .*)$", text.split("Examples:")[1])
        self.assertGreaterEqual(len(found), 4)
        self.write("mine.c", self.succeeds("arena", "--template", "histogram.c").out)
        self.write_tokens("corpus.bin", [k * k % 50257 for k in range(5000)], "u16")
        return [shlex.split(line) for line in found]

    def test_help_lists_the_options(self):
        text = self.succeeds("arena", "--help").text
        for option in ("--list", "--explain", "--dry-run", "--size", "--dtype", "--vocab",
                       "--memory", "--time", "--runs", "--json", "--csv", "--md", "--html",
                       "--compare", "--threshold", "--threads", "--seed", "--streams", "--device",
                       "--param", "--scope"):
            self.assertIn(option, text)

    def test_examples_are_valid(self):
        self.write("race.json", b'{"schema": "iron.arena/1", "results": []}')
        for args in self.examples():
            with self.subTest(args=args):
                self.succeeds(*args, "--dry-run", env=CPU_ONLY)

    @further_race
    def test_examples_run(self):
        """In order, because one compares with the report of another.  The result of the comparison
        depends on the machine."""
        for args in self.examples():
            if "batch:*" in args and not LONG:  # up to a gigabyte of tokens
                continue
            with self.subTest(args=args):
                more = [] if "--runs" in args or "--list" in args else ["--time", 1]
                if more and not {"--size", "--data", "--template"} & set(args):
                    more += ["--size", 100000]  # a pass takes no second, however slow the machine
                result = self.iron(*args, *more, env=CPU_ONLY, timeout=10 * TIMEOUT_S)
                self.assertIn(result.code, (0, 1) if "--compare" in args else (0,), str(result))
        self.assertLessEqual({"race.json"}, set(self.listing()))


if __name__ == "__main__":
    unittest.main()
