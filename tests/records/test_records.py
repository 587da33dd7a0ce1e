#!/usr/bin/env python3
"""Tests of scripts/record: figures are collected, checked against the claims and published; errors are
reported, and manual changes are detected. The tests write the files of a gpu-check run with known figures."""
import copy
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import xml.dom.minidom

root = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
command = os.path.join(root, "scripts", "record")
sys.path.insert(0, os.path.join(root, "scripts"))
sys.dont_write_bytecode = True

from records import claims, collect, profile, publish, tables  # noqa: E402

MACHINE = {"date": "2026-01-02T03:04:05Z", "commit": "0123456789abcdef", "cpu": "A processor", "cores": 16,
           "gpus": "NVIDIA Made-up 1, 1.2.3", "kernel": "Linux", "compiler": "cc", "nvcc": "nvcc"}


def row(op, contender, ms, percent, backend="cuda", peer=False, size="16384x16384", dtype="f32", **params):
    scope = {"median_ms": ms, "gb_s": 1000.0 / ms, "percent_of_ceiling": percent, "samples": [ms, ms]}
    return {"op": op, "contender": contender, "backend": backend, "memory": "pageable", "size": size, "dtype": dtype,
            "params": params, "peer": peer, "useful_bytes": 1 << 30, "status": "ok", "verified": True, "baseline": "naive",
            "speedup": 1.0, "kernels": [], "scopes": {"kernel": scope}}


def race(*rows):
    return {"schema": "iron.arena/1", "host": {"date": MACHINE["date"], "cpu": "a processor", "threads": 2}, "devices": [], "ceilings": [], "results": list(rows)}


def bench(**rates):
    names = {"one": "champion, one batch", "batches": "champion, 3 MiB batches", "reduce": "reduce, one batch",
             "cub": "CUB, the same monoid", "copies": "bare copies, page-locked", "engine": "engine, page-locked"}
    rows = [{"group": "feed" if k in ("copies", "engine") else "resident", "name": names[k], "median_ms": 1.0, "gb_s": v,
             "verified": True, "samples_ms": [1.0]} for k, v in rates.items()]
    rows.append({"group": "replay", "name": "champion, chain of 200, each", "median_ms": 0.0024, "gb_s": 1300.0, "verified": True})
    rows += [{"group": "call", "name": name, "median_ms": ms, "gb_s": 3000.0, "verified": True}
             for name, ms in (("empty kernel", 0.0028), ("champion, 64 MiB", 0.0225), ("champion, 64 MiB, of a chain", 0.0196))]
    return {"vocab": 50257, "nodes": 4096, "resident_bytes": 1 << 33, "ceiling": "read: a shape", "ceiling_gb_s": 4000.0, "rows": rows}


NAMES = ["ID", "Kernel Name"] + list(profile.FIGURES.values()) + \
    [profile.STALL + "long_scoreboard_per_issue_active.ratio", profile.STALL + "barrier_per_issue_active.ratio"]


def counters(units, values):
    def quoted(cells):
        return ",".join('"' + c + '"' for c in cells)
    return "==PROF== a line of the tool\n" + "\n".join([quoted(NAMES), quoted(units), quoted(values)]) + "\n"


UNITS = ["", "", "usecond", "Gbyte", "Kbyte", "%", "%", "%", "%", "%", "%", "register/thread", "", "", "inst", "inst"]
VALUES = ["0", "transpose_champion(float*)", "1,234.5", "1.5", "2", "90.5", "91", "40", "30", "20", "95", "32", "264", "256", "3", "1"]


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def put(self, name, document):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(document if isinstance(document, str) else json.dumps(document) + "\n")

    def put_run(self):
        self.put("machine.json", MACHINE)
        self.put("bench-cuda.json", bench(one=3960.0, batches=3900.0, reduce=1600.0, cub=3600.0, copies=50.0, engine=49.0))
        self.put("arena-transpose.json", race(row("transpose", "champion", 0.5, 95.0), row("transpose", "cublas", 0.6, 79.0, peer=True),
                                              row("transpose", "champion", 0.7, 70.0, size="16383x16381"),
                                              row("transpose", "cublas", 0.6, 80.0, peer=True, size="16383x16381")))
        self.put("feed-u32.jsonl", "".join(json.dumps({"backend": b, "gb_per_s": r, "seconds": 0.2, "state": "ab"}) + "\n"
                                           for b, r in (("cuda", 20.0), ("cuda", 40.0), ("cuda", 45.0), ("cpu", 99.0))))
        self.put("steps.jsonl", {"title": "info", "command": "iron info", "seconds": 1, "status": 0})
        self.put("selftest-gpus.json", {"failures": [], "skips": [], "passed": 7, "failed": 0, "skipped": 1})
        self.put("sanitizer.jsonl", {"name": "memcheck", "status": 9, "says": "ERROR SUMMARY: 1 error"})
        self.put("profile-transpose.csv", counters(UNITS, VALUES))
        self.put("profile-transpose.json", race(row("transpose", "champion", 9.0, 5.0)))

    def run_record(self, *words, status=0):
        done = subprocess.run([sys.executable, command, *words], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done


class Claims(Folder):
    def claim(self, record, op, start):
        found = [c for c in record["claims"] if c["op"] == op and c["what"].startswith(start)]
        self.assertEqual(len(found), 1, start)
        return found[0]

    def test_bars(self):
        self.put_run()
        record = collect.collect(self.folder)
        expected = {("tokens", "champion, 8 GiB resident"): (0.99, "met"), ("tokens", "champion over CUB"): (1.1, "missed"),
                    ("tokens", "one 3 MiB"): (2.4, "met"),
                    ("tokens", "one batch of 64 MiB, cold caches, a replayed call"): ((0.0028 + 0.016777216) / 0.0225, "met"),
                    ("tokens", "one batch of 32 MiB, cold caches, a replayed call"): (None, "not measured"), ("feed", "iron feed of an 8"): (0.8, "met"),
                    ("transpose", "champion, 16384²"): (0.95, "met"), ("transpose", "champion over cuBLAS geam, 16384²"): (1.2, "met"),
                    ("transpose", "champion over cuBLAS geam, 16383"): (0.6 / 0.7, "missed"),
                    ("seal", "seal and statistics, 8 GiB"): (None, "not measured"), ("checks", "selftest"): (0, "met"),
                    ("checks", "compute-sanitizer"): (1, "missed")}
        for (op, start), (figure, status) in expected.items():
            found = self.claim(record, op, start)
            self.assertEqual(found["status"], status, start)
            if figure is None:
                self.assertIsNone(found["figure"])
            else:
                self.assertAlmostEqual(found["figure"], figure, places=9, msg=start)

    def test_unverified_results_are_ignored(self):
        self.put_run()
        for spoil in ({"verified": False}, {"status": "failed"}, {"memory": "pinned"}):
            self.put("arena-transpose.json", race({**row("transpose", "champion", 0.5, 95.0), **spoil},
                                                  row("transpose", "cublas", 0.6, 79.0, peer=True)))
            found = self.claim(collect.collect(self.folder), "transpose", "champion, 16384²")
            self.assertEqual(found["status"], "not measured", spoil)

    def test_worst_of_several_cases_counts(self):
        self.put("machine.json", MACHINE)
        self.put("arena-layout.json", race(row("layout", "soa", 1.0, 97.0, fields="all"), row("layout", "soa", 1.0, 91.0, fields="one")))
        self.assertAlmostEqual(self.claim(collect.collect(self.folder), "layout", "soa")["figure"], 0.91)

    def test_race_of_several_ops_counts_for_each(self):
        self.put("machine.json", MACHINE)
        self.put("arena-techniques.json", race(row("layout", "soa", 1.0, 97.0), row("fusion", "fused", 1.0, 101.0)))
        record = collect.collect(self.folder)
        self.assertEqual({n: [r["op"] for r in d["results"]] for n, d in record["races"].items()},
                         {"layout": ["layout"], "fusion": ["fusion"]})
        self.assertEqual(self.claim(record, "fusion", "fused")["status"], "met")

    def test_adaptive_is_compared_with_the_best(self):
        self.put("machine.json", MACHINE)
        self.put("arena-adaptive.json", race(row("adaptive", "auto", 1.10, 9.0, density=0), row("adaptive", "compact", 1.0, 9.0, density=0),
                                             row("adaptive", "auto", 1.0, 9.0, density=1), row("adaptive", "compact", 5.0, 9.0, density=1)))
        found = self.claim(collect.collect(self.folder), "adaptive", "auto")
        self.assertAlmostEqual(found["figure"], 0.10)
        self.assertEqual(found["status"], "missed")

    def test_own_row_counts_on_the_cpu(self):
        self.put("machine.json", MACHINE)
        rows = [{"name": f"tokens.cpu.champion.{n}", "vocab": 50257, "gb_s": 1.0, "of_ceiling": s}
                for n, s in (("avx512", 0.7), ("avx2", 0.95))]
        self.put("bench-tokens.json", {"threads": 16, "rows": rows})
        found = self.claim(collect.collect(self.folder), "cpu", "tokens champion on all cores, vocabulary 50,257")
        self.assertAlmostEqual(found["figure"], 0.7)

    def test_sweep(self):
        def pair(size, own, other, **facts):
            return [row("atax", "single-pass", own, 9.0, "cpu", size=size), {**row("atax", "openblas", other, 9.0, "cpu", True, size), **facts}]
        document = race(*pair("1x7", 2.0, 1.0), *pair("30x5", 1.0, 3.0), *pair("9x9", 1.0, 1.5), *pair("80x1", 1.0, 9.0, status="wrong"))
        self.put("sweep-cpu.json", document)
        self.put_run()
        record = collect.collect(self.folder)
        said = {c["what"]: (c["figure"], c["status"]) for c in record["claims"] if "OpenBLAS" in c["what"]}
        self.assertEqual(sorted(said.values()), [(0.5, "missed"), (1.5, "met")])
        done = self.run_record("sweep", self.path("sweep-cpu.json"), self.path("picture.svg"))
        self.assertIn("0.50 × at 1×7 f32", done.stdout)
        self.assertIn("3 random cases", done.stdout)
        picture = xml.dom.minidom.parse(self.path("picture.svg"))
        drawn = [node.firstChild.data for node in picture.getElementsByTagName("text")]
        for words in ("columns of A", "rows of A", "times as fast as openblas", "10²", "below 0.97: 1", "1.3 to 1.7: 1", "1.7 and more: 1"):
            self.assertIn(words, drawn)
        self.assertIn("No such file", self.run_record("sweep", self.path("absent.json"), status=2).stderr)
        self.assertIn("cannot be written", self.run_record("sweep", self.path("sweep-cpu.json"), self.path("absent/x.svg"), status=2).stderr)
        self.put("empty.json", {"results": []})
        self.assertIn("not a race", self.run_record("sweep", self.path("empty.json"), status=2).stderr)
        document["results"][0].update(status="wrong", reason="y is off")
        self.put("sweep-cpu.json", document)
        self.assertIn("y is off", self.run_record("sweep", self.path("sweep-cpu.json"), status=2).stderr)
        self.assertEqual(claims.sweep(document, "cpu")[0][:3], (0.0, 1, 7))

    def test_every_claim_can_be_met_and_missed(self):
        for claim in claims.CLAIMS:
            self.assertTrue(claims.is_met(claim["bar"], claim["bar"], claim["unit"]), claim["what"])
            worse = claim["bar"] + 1 if claim["unit"].endswith("or less") else claim["bar"] - 0.01
            self.assertFalse(claims.is_met(worse, claim["bar"], claim["unit"]), claim["what"])


class Counters(Folder):
    def test_units_are_read(self):
        found = profile.parse(counters(UNITS, VALUES))
        self.assertEqual(found["kernel"], "transpose_champion")
        self.assertAlmostEqual(found["time_us"], 1234.5)
        self.assertAlmostEqual(found["bytes_read"], 1.5e9)
        self.assertAlmostEqual(found["bytes_written"], 2000.0)
        self.assertEqual(list(found["waits"].items()), [("memory", 75.0), ("a barrier", 25.0)])
        other = profile.parse(counters(["", "", "msecond"] + UNITS[3:], VALUES))
        self.assertAlmostEqual(other["time_us"], 1234500.0)

    def test_unknown_unit_is_reported(self):
        with self.assertRaisesRegex(ValueError, "'fortnight'"):
            profile.parse(counters(["", "", "fortnight"] + UNITS[3:], VALUES))

    def test_profile_without_launches(self):
        self.assertEqual(profile.parse("==PROF== no kernels were profiled\n"), {})

    def test_missing_counter_is_null(self):
        values = VALUES[:3] + ["n/a"] + VALUES[4:]
        self.assertIsNone(profile.parse(counters(UNITS, values))["bytes_read"])


class Making(Folder):
    def setUp(self):
        super().setUp()
        self.put_run()

    def test_record_and_page(self):
        said = self.run_record("make", self.folder).stdout
        self.assertIn("missed        champion over CUB's reduction of the same monoid: 1.100 ×", said)
        with open(self.path("record.html"), encoding="utf-8") as file:
            page = file.read()
        for words in ("NVIDIA Made-up 1", "0123456789abcdef", "1.100 ×", "<svg", "By the hardware counters", "1 skipped"):
            self.assertIn(words, page)
        for outside in ("http://", "https://", "<script", "<link", "src="):
            self.assertNotIn(outside, page.replace("http://www.w3.org/2000/svg", ""))

    def test_record_matches_the_schema(self):
        if importlib.util.find_spec("jsonschema") is None:
            self.skipTest("python3-jsonschema is not installed")
        import jsonschema
        with open(os.path.join(root, "docs", "schema", "record-1.json"), encoding="utf-8") as file:
            schema = json.load(file)
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema)
        self.run_record("make", self.folder)
        with open(self.path("record.json"), encoding="utf-8") as file:
            record = json.load(file)
        validator.validate(record)
        for spoil in ({"machine": {}}, {"claims": [{}]}, {"profiles": [{"name": "x"}]}, {"more": 1}):
            self.assertFalse(validator.is_valid({**record, **spoil}), spoil)
        for _, published in publish.records(root):
            validator.validate(published)

    def test_incomplete_run(self):
        self.put("bench-tokens.json", '{"threads": 16, "rows": [')
        self.put("arena-transpose.json", '{"schema": "iron.arena/1", ')
        self.put("feed-u32.jsonl", '{"backend": "cuda", "gb_per_s": 40.0, "seconds": 0.2, "state": "ab"}\n{"backend": "cu')
        os.remove(self.path("profile-transpose.json"))
        record = collect.collect(self.folder)
        self.assertEqual([record["profiles"], "tokens" in record["benches"], len(record["feeds"]["u32"])], [[], False, 1])
        statuses = {c["status"] for c in record["claims"] if c["op"] == "transpose"}
        self.assertEqual(statuses, {"not measured"})

    def test_samples_stay_in_the_archive(self):
        self.assertNotIn("samples", collect.text_of(collect.collect(self.folder)))

    def test_text_round_trip(self):
        record = collect.rounded(collect.collect(self.folder))
        self.assertEqual(collect.parse(collect.text_of(record)), record)

    def test_bad_input(self):
        empty = tempfile.mkdtemp(dir=self.folder)
        self.put("other.json", {"schema": "iron.arena/1"})
        with tarfile.open(self.path("no.tar.gz"), "w:gz") as archive:
            archive.add(self.path("machine.json"), "machine.json")
        for words, expected in ((("make", empty), "machine.json"), (("publish", self.path("other.json")), "iron.record/1"),
                                (("publish", self.path("none.json")), "none.json"), (("publish", self.path("no.tar.gz")), "record.json")):
            said = self.run_record(*words, status=2).stderr
            self.assertEqual(said.count("\n"), 1, said)
            self.assertIn(expected, said)
        self.assertIn("scripts/record publish", self.run_record("burn", status=2).stderr)


class Publishing(Folder):
    def setUp(self):
        super().setUp()
        self.put_run()
        self.tree = self.path("tree")
        os.makedirs(os.path.join(self.tree, "docs"))
        self.write("docs/speed.md", f"# a\n\n{publish.BEGIN}\nold\n{publish.END}\n\nend\n")
        self.record = collect.collect(self.folder)
        publish.add(self.tree, self.record, publish.name_of(self.record))

    def write(self, name, text):
        with open(os.path.join(self.tree, name), "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, name):
        with open(os.path.join(self.tree, name), encoding="utf-8") as file:
            return file.read()

    def test_published_files(self):
        folder = "docs/results/2026-01-02-made-up-1"
        self.assertEqual(publish.stale(self.tree), [])
        page = self.read("docs/speed.md")
        self.assertTrue(page.startswith("# a\n") and page.endswith("\nend\n"))
        self.assertNotIn("\nold\n", page)
        self.assertIn("| tokens: champion over CUB's reduction of the same monoid | 1.100 × |", page)
        self.assertIn("](results/2026-01-02-made-up-1/limits.svg)", page)
        self.assertIn("2026-01-02-made-up-1", self.read("docs/results/README.md"))
        for name in os.listdir(os.path.join(self.tree, folder)):
            if name.endswith(".svg"):
                xml.dom.minidom.parseString(self.read(f"{folder}/{name}"))
        self.assertIn("limits.svg", os.listdir(os.path.join(self.tree, folder)))

    def test_manually_changed_figure_is_detected(self):
        self.write("docs/speed.md", self.read("docs/speed.md").replace("1.100 ×", "1.300 ×"))
        self.assertEqual(publish.stale(self.tree), ["docs/speed.md"])
        publish.refresh(self.tree)
        self.assertEqual(publish.stale(self.tree), [])

    def test_outdated_page_is_detected(self):
        path = "docs/results/2026-01-02-made-up-1/record.json"
        self.write(path, self.read(path).replace('"cores": 16', '"cores": 17'))
        self.assertEqual(publish.stale(self.tree), ["docs/results/2026-01-02-made-up-1/README.md"])

    def test_newest_record_is_quoted(self):
        older = copy.deepcopy(self.record)
        older["machine"]["date"] = "2025-01-02T03:04:05Z"
        publish.add(self.tree, older, publish.name_of(older))
        self.assertIn("results/2026-01-02", self.read("docs/speed.md"))
        self.assertNotIn("results/2025-01-02", self.read("docs/speed.md"))
        self.assertIn("2025-01-02-made-up-1", self.read("docs/results/README.md"))

    def test_names_cannot_leave_the_folder(self):
        for name in ("../x", "a/b", "", "A b"):
            with self.assertRaises(SystemExit):
                publish.add(self.tree, self.record, name)

    def test_table_rows_have_all_cells(self):
        for title, _, head, rows in tables.all_tables(self.record):
            for cells in rows:
                self.assertEqual(len(cells), len(head), title)
                self.assertTrue(all(isinstance(c, str) for c in cells), title)


if __name__ == "__main__":
    unittest.main()
