# SPDX-License-Identifier: MIT
"""Ledgers: `iron ledger show`, `check` and `diff`.

Ledgers are written by the oracle, byte by byte as docs/ledger.md describes them; python/tests has those
that the Recorder writes.  Findings are compared with planted faults, and with the oracle's on random runs.
"""

import json
import random
import shutil
import struct
import unittest
import xml.etree.ElementTree

import harness  # noqa: F401  (sets the oracle's path)
import ledger as book
from harness import REDUCED, SEED, IronTest
from ledger import Record

ROUNDS = 40 if REDUCED else 400


def row(number, length=8):
    """A sample that no other number has."""
    return tuple((number * 31 + 7 * k) % 50000 for k in range(length)) + (number,)


def batch(*numbers):
    return [row(number) for number in numbers]


def plain(world=2, steps=10, size=4, first=0, offset=0):
    """A generation in which every sample is seen once."""
    return {"world": world, "ranks": {
        rank: [Record(step, batch(*(offset + (step * world + rank) * size + k for k in range(size))))
               for step in range(first, first + steps)] for rank in range(world)}}


class LedgerTest(IronTest):
    def write_run(self, name, run, **how):
        shutil.rmtree(self.dir / name, ignore_errors=True)
        for rank, data in book.files(run, **how).items():
            self.write(f"{name}/rank-{rank}.ledger", data)
        return name

    def check(self, name, *options):
        result = self.iron("ledger", "check", name, "--json", *options)
        report = json.loads(result.out)
        self.assertEqual(report["schema"], "iron.ledger-check/1")
        self.assertEqual(result.code, 1 if report["findings"] else 0, result)
        self.assertEqual(report["findings_total"], sum(report["totals"].values()))
        return report

    def findings(self, run, *options, **how):
        found = self.check(self.write_run("run", run, **how), *options)["findings"]
        return [tuple(f[key] for key in ("kind", "step", "rank", "first_step", "first_rank", "count"))
                for f in found]

    def diff(self, a, b):
        result = self.iron("ledger", "diff", self.write_run("a", a), self.write_run("b", b), "--json")
        report = json.loads(result.out)
        self.assertEqual(report["schema"], "iron.ledger-diff/1")
        self.assertEqual(result.code, 0 if report["equal"] else 1, result)
        return report


class Check(LedgerTest):
    def test_clean(self):
        report = self.check(self.write_run("run", [plain()]))
        self.assertEqual({key: report[key] for key in
                          ("steps", "ranks", "samples", "tokens", "findings")},
                         {"steps": 10, "ranks": 2, "samples": 80, "tokens": 720, "findings": []})
        self.assertIn("OK: 10 steps on 2 ranks", self.succeeds("ledger", "check", "run").text)

    def test_repeated_sample(self):
        run = plain()
        run["ranks"][1][7].samples[2] = run["ranks"][0][3].samples[1]
        self.assertEqual(self.findings([run]), [("repeated-sample", 7, 1, 3, 0, 1)])
        line = self.iron("ledger", "check", "run")
        self.assertEqual(line.text.strip(),
                         "step 7 on rank 1 repeats samples of step 3 on rank 0: 1 sample")
        self.assertEqual(line.message, "iron: 1 finding\n")

    def test_repeated_steps(self):
        run = plain(world=1, steps=20)
        for at in range(12, 20):  # the stream restarts
            run["ranks"][0][at] = Record(at, run["ranks"][0][at - 12].samples)
        self.assertEqual(self.findings([run]),
                         [("repeated-step", at, 0, at - 12, 0, 4) for at in range(12, 20)])
        self.assertEqual(self.iron("ledger", "check", "run").text.strip(),
                         "steps 12 to 19 on rank 0 repeat steps 0 to 7: 32 samples")

    def test_epochs_are_apart(self):
        run = plain(world=1)
        run["ranks"][0] += [Record(10 + at, r.samples, 0, 1) for at, r in
                            enumerate(run["ranks"][0])]
        self.assertEqual(self.findings([run]), [])

    def test_same_on_ranks(self):
        run = plain(world=4, steps=3)
        for rank in range(1, 4):
            run["ranks"][rank] = [Record(r.step, r.samples) for r in run["ranks"][0]]
        self.assertEqual(self.findings([run]), [("same-on-ranks", at, rank, at, 0, 4)
                                                for at in range(3) for rank in (1, 2, 3)])

    def test_missing_steps(self):
        run = plain(world=3)
        del run["ranks"][2][4:7]
        self.assertEqual(self.findings([run]), [("missing-step", 4, 2, 4, 2, 3)])

    def test_missing_rank_is_a_warning(self):
        run = plain(world=3)
        del run["ranks"][1]
        self.write_run("run", [run])
        result = self.iron("ledger", "check", "run")
        self.assertEqual(result.code, 0)
        self.assertIn("1 of the run's ranks have no ledger here, first rank 1", result.message)

    def test_micro_steps(self):
        ranks = {0: [Record(at, batch(8 * at + 2 * m, 8 * at + 2 * m + 1), m)
                     for at in range(6) for m in range(4)]}
        self.assertEqual(self.findings([{"world": 1, "ranks": ranks}]), [])
        ranks[0][9].samples[0] = ranks[0][8].samples[1]  # within one step
        self.assertEqual(self.findings([{"world": 1, "ranks": ranks}]),
                         [("repeated-sample", 2, 0, 2, 0, 1)])

    def test_samples_without_tokens_repeat_nothing(self):
        ranks = {0: [Record(at, [(), row(at)]) for at in range(4)] + [Record(4, [()]), Record(5, [()])]}
        self.assertEqual(self.findings([{"world": 1, "ranks": ranks}]), [])

    def test_without_sample_seals(self):
        run = plain(world=1)
        run["ranks"][0][7] = Record(7, run["ranks"][0][2].samples)
        run["ranks"][0][8].samples[0] = run["ranks"][0][1].samples[0]  # cannot be seen
        self.assertEqual(self.findings([run], with_samples=False), [("repeated-step", 7, 0, 2, 0, 4)])

    def test_random_runs(self):
        dice = random.Random(SEED)
        for _ in range(ROUNDS):
            world, size = dice.randint(1, 4), dice.randint(1, 3)
            numbers = dice.choice((8, 30, 1000))
            ranks = {rank: [Record(at, [row(dice.randrange(numbers)) if dice.random() < .97 else ()
                                        for _ in range(size)], micro, at // 5)
                            for at in range(12) for micro in range(dice.choice((1, 1, 2)))]
                     for rank in range(world)}
            run = [{"world": world, "ranks": ranks}]
            found = self.findings(run, "--memory", "64KiB", "--threads", dice.choice(("1", "3")))
            self.assertEqual(sorted(found), book.check(run))

    def test_limit(self):
        run = plain(world=2, steps=30)
        run["ranks"][1] = [Record(r.step, r.samples) for r in run["ranks"][0]]
        report = self.check(self.write_run("run", [run]), "--limit", "7")
        self.assertEqual([f["step"] for f in report["findings"]], list(range(7)))
        self.assertEqual(report["totals"]["same-on-ranks"], 30)
        self.assertEqual(report["findings_total"], 30)


class Resumes(LedgerTest):
    def test_rewind_to_a_checkpoint(self):
        self.assertEqual(self.findings([plain(steps=10), plain(first=6, steps=10)]), [])
        summary = self.json("ledger", "show", "run")
        self.assertEqual((summary["steps"], summary["superseded"]), (16, 8))

    def test_other_world(self):
        # the same global batches of eight samples on 2, then 4, then 2 ranks
        first, second = plain(world=2, steps=10), plain(world=4, first=6, steps=10, size=2)
        third = plain(world=2, first=12, steps=8)
        self.assertEqual(self.findings([first, second, third]), [])
        summary = self.json("ledger", "show", "run")
        self.assertEqual((summary["steps"], summary["ranks"]), (20, 4))

    def test_other_world_with_other_tokens(self):
        first, second = plain(world=2, steps=10), plain(world=4, first=6, steps=4, size=2, offset=8)
        kinds = {f[0] for f in self.findings([first, second])}
        self.assertEqual(kinds, {"conflicting-step"})

    def test_loader_did_not_go_back(self):
        first = plain(world=1, steps=10)
        second = {"world": 1, "ranks": {0: [Record(6 + k, batch(*range(40 + 4 * k, 44 + 4 * k)))
                                            for k in range(8)]}}
        self.assertEqual(self.findings([first, second]),
                         [("conflicting-step", at, 0, at, 0, 4) for at in range(6, 10)])

    def test_loader_restarts(self):
        second = {"world": 1, "ranks": {0: [Record(10 + k, batch(*range(4 * k, 4 * k + 4)))
                                            for k in range(5)]}}
        self.assertEqual(self.findings([plain(world=1), second]),
                         [("repeated-step", 10 + k, 0, k, 0, 4) for k in range(5)])

    def test_gap_after_a_resume(self):
        self.assertEqual(self.findings([plain(world=1), plain(world=1, first=13)]),
                         [("missing-step", 10, 0, 10, 0, 3)])

    def test_same_step_again_without_a_mark(self):
        run = plain(world=1)
        run["ranks"][0] += [Record(9, batch(*range(36, 40)))]  # the same tokens: harmless
        self.assertEqual(self.findings([run]), [])
        run["ranks"][0] += [Record(9, batch(*range(80, 84)))]
        self.assertEqual(self.findings([run]), [("conflicting-step", 9, 0, 9, 0, 4)])

    def test_cut_off(self):
        data = book.files([plain(world=1)])[0]
        for cut in (1, 20, 100):
            self.write("x.ledger", data[:-cut])
            found = self.check("x.ledger")["findings"]
            self.assertEqual([(f["kind"], f["step"]) for f in found], [("cut-off", 8)])
        self.assertIn("cut off after step 8", self.succeeds("ledger", "show", "x.ledger").text)
        self.write("x.ledger", data)
        self.assertEqual(self.check("x.ledger")["findings"], [])

    def test_cut_off_within_the_head_of_a_long_record(self):
        data = book.files([plain(world=1)])[0]
        for size in range(1, 16):
            self.write("x.ledger", data + struct.pack("<4I", 1, 200 << 20, 0, 0)[:size])
            found = self.check("x.ledger")["findings"]
            self.assertEqual([(f["kind"], f["step"], f["count"]) for f in found], [("cut-off", 9, size)])

    def test_damage_is_refused(self):
        data = bytearray(book.files([plain(world=1)])[0])
        data[300] ^= 1
        self.write("x.ledger", bytes(data))
        self.refused("ledger", "check", "x.ledger", says=("x.ledger is damaged at byte", "copy"))

    def test_two_ledgers_of_one_rank(self):
        self.write_run("run", [plain(world=1)])
        self.write("run/again.ledger", book.files([plain(world=1)])[0])
        self.refused("ledger", "check", "run", says=("are both of rank 0",))

    def test_not_ledgers(self):
        self.write("x", b"IRONLDGR and something else" * 4)
        self.refused("ledger", "show", "x", says=("x is not a ledger", "Recorder"))
        (self.dir / "empty").mkdir()
        self.refused("ledger", "check", "empty", says=("contains no ledgers",))
        self.refused("ledger", "check", "missing", says=("missing",))
        self.refused("ledger", "check", says=("no ledgers",))
        self.refused("ledger", "burn", "x", says=("unknown verb 'burn'",))


class Diff(LedgerTest):
    def assert_kind(self, a, b, kind, first_step, **more):
        report = self.diff(a, b)
        self.assertEqual((report["kind"], report["first_step"]), (kind, first_step), report)
        for key, value in more.items():
            self.assertEqual(report[key], value, report)

    def test_equal(self):
        report = self.diff([plain()], [plain()])
        self.assertTrue(report["equal"])
        self.assertIsNone(report["kind"])
        self.assertEqual(report["steps_equal"], 10)

    def test_equal_across_worlds_and_resumes(self):
        a = [plain(world=2)]
        self.assertTrue(self.diff(a, [plain(world=8, size=1)])["equal"])
        b = [plain(world=4, steps=7, size=2), plain(world=1, size=8, first=5, steps=5)]
        report = self.diff(a, b)
        self.assertTrue(report["equal"])
        self.assertFalse(report["same_world"])

    def test_changed(self):
        other = plain()
        other["ranks"][1][4].samples[0] = row(5000)
        self.assert_kind([plain()], [other], "changed", 4, rank=1)

    def test_repeated(self):
        other = plain(world=1)
        for at in range(6, 10):
            other["ranks"][0][at] = Record(at, plain(world=1)["ranks"][0][at - 6].samples)
        self.assert_kind([plain(world=1)], [other], "repeated", 6, other_step=0)

    def test_repeated_sample(self):
        other = plain(world=1)
        other["ranks"][0][6].samples[3] = other["ranks"][0][2].samples[3]
        self.assert_kind([plain(world=1)], [other], "repeated", 6, other_step=2)

    def test_skipped(self):
        samples = [r.samples for r in plain(world=1, steps=14)["ranks"][0]]
        b = {"world": 1, "ranks": {0: [Record(at, samples[at if at < 4 else at + 2])
                                       for at in range(10)]}}
        self.assert_kind([plain(world=1)], [b], "skipped", 4, other_step=6)

    def test_half_a_batch_is_dropped(self):
        flat = [s for r in plain(world=1, steps=14)["ranks"][0] for s in r.samples]
        del flat[18:20]
        b = {"world": 1, "ranks": {0: [Record(at, flat[4 * at:4 * at + 4]) for at in range(10)]}}
        self.assert_kind([plain(world=1)], [b], "skipped", 4, other_step=5)

    def test_reordered(self):
        other = plain()
        other["ranks"][0][3].samples.reverse()
        self.assert_kind([plain()], [other], "reordered", 3, rank=0)
        other = plain(world=1)
        records = other["ranks"][0]
        records[2], records[3] = Record(2, records[3].samples), Record(3, records[2].samples)
        self.assert_kind([plain(world=1)], [other], "reordered", 2)

    def test_other_ranks(self):
        other = plain()
        ranks = other["ranks"]
        ranks[0][5], ranks[1][5] = ranks[1][5], ranks[0][5]
        self.assert_kind([plain()], [other], "other-ranks", 5, rank=0)

    def test_longer_and_shorter(self):
        self.assert_kind([plain()], [plain(steps=12)], "longer", 10)
        self.assert_kind([plain()], [plain(steps=7)], "shorter", 7)

    def test_a_step_is_missing(self):
        other = plain(world=1)
        del other["ranks"][0][5]
        self.assert_kind([plain(world=1)], [other], "skipped", 5)

    def test_text(self):
        self.write_run("a", [plain()])
        self.write_run("b", [plain(steps=12)])
        self.assertTrue(self.succeeds("ledger", "diff", "a", "a").text.startswith("equal: both runs"))
        result = self.iron("ledger", "diff", "a", "b")
        self.assertEqual((result.code, result.message), (1, ""))
        self.assertTrue(result.text.startswith("longer: B goes on with step 10"))
        self.refused("ledger", "diff", "a", says=("compares two runs",))


class Trace(LedgerTest):
    def setUp(self):
        super().setUp()
        self.samples = [tuple(100 * at + k for k in range(8)) for at in range(40)]
        self.write_dataset(self.samples)

    def write_dataset(self, samples):
        self.write_tokens("data.bin", [token for sample in samples for token in sample], "u16")

    def trace(self, numbers, *options, size=4):
        """What a run that saw these samples of the dataset is said to have seen."""
        samples = [self.samples[n] if n >= 0 else row(n + 1000) for n in numbers]
        records = [Record(at, samples[size * at:size * at + size])
                   for at in range((len(samples) + size - 1) // size)]
        self.write_run("run", [{"world": 1, "ranks": {0: records}}])
        report = self.json("ledger", "trace", "run", "--in", "data.bin", "--dtype", "u16", "--sample",
                           "8", "--memory", "64KiB", *options)
        self.assertEqual(report["schema"], "iron.ledger-trace/1")
        return report

    def test_random(self):
        dice = random.Random(SEED)
        for _ in range(5):
            numbers = [dice.randrange(-1, 40) for _ in range(dice.randrange(1, 90))]
            times = [numbers.count(n) for n in range(40)]
            report = self.trace(numbers, "--csv", "places.csv")
            self.assertEqual(report["seen"], [times.count(k) for k in range(15)]
                             + [sum(t >= 15 for t in times)])
            self.assertEqual(report["unknown"], numbers.count(-1))
            never = [n for r in report["never"] for n in range(r["first"], r["first"] + r["count"])]
            self.assertEqual(never, [n for n in range(40) if n not in numbers])
            lines = (self.dir / "places.csv").read_text().splitlines()
            self.assertEqual(lines[0], "step,rank,micro,epoch,row,sample,position")
            self.assertEqual(lines[1:], [f"{at // 4},0,0,0,{at % 4}," + (f"{n},{8 * n}" if n >= 0 else ",")
                                         for at, n in enumerate(numbers)])

    def test_copies_in_the_dataset(self):
        self.write_dataset(self.samples[:10] + self.samples[:5])
        report = self.trace(list(range(10)) + [0, 1])
        self.assertEqual((report["dataset_samples"], report["dataset_copies"]), (15, 5))
        self.assertEqual(report["seen"][:3], [3, 12, 0])  # the second copies of 2, 3 and 4

    def test_a_shorter_last_sample(self):
        self.write_dataset(self.samples[:3] + [(1, 2, 3)])
        self.samples[3] = (1, 2, 3)
        self.assertEqual(self.trace([3, 0])["seen"][:3], [2, 2, 0])

    def test_documents(self):
        self.write("d.ds.index", struct.pack("<4Q", 8, 8, 20, 24))
        self.write("d.ds.metadata", b"gpt2|2\n24\n")
        self.write_tokens("d.ds", range(24), "u16")
        self.write_run("run", [{"world": 1, "ranks": {0: [Record(0, [tuple(range(8, 20)), ()])]}}])
        report = self.json("ledger", "trace", "run", "--in", "d.ds")
        self.assertEqual((report["cut"], report["dataset_samples"]), ("documents", 4))
        self.assertEqual(report["seen"][:3], [2, 2, 0])

    def test_text_and_picture(self):
        self.trace(list(range(10, 40)) + [10, 11])
        text = self.succeeds("ledger", "trace", "run", "--in", "data.bin", "--dtype", "u16", "--sample",
                             "8", "--svg", "seen.svg").text
        self.assertIn("seen 0 times: 10 samples (25.00 %)", text)
        self.assertIn("seen 2 times: 2 samples", text)
        self.assertIn("never seen, first: samples 0 to 9", text)
        root = xml.etree.ElementTree.parse(self.dir / "seen.svg").getroot()
        kinds = [r.get("class") for r in root.iter("{http://www.w3.org/2000/svg}rect")]
        self.assertEqual([kinds.count(k) for k in ("s0", "s1", "s2")], [11, 29, 3])  # with the legend

    def test_page(self):
        self.trace(list(range(10, 40)) + [10, 11])
        self.succeeds("ledger", "trace", "run", "--in", "data.bin", "--dtype", "u16", "--sample", "8",
                      "--html", "seen.html")
        page = (self.dir / "seen.html").read_text()
        self.assertIn("<h1>Coverage of data.bin</h1>", page)
        self.assertIn("<tr><td>2<td>2<td>5.00 %", page)
        self.assertIn("<tr><td>0<td>9<td>10\n</table>\n<p>These are all ranges.</p>", page)
        self.assertNotRegex(page, r'(src|href)=|url\(')  # loads nothing
        picture = page[page.index("<svg"):page.index("</svg>")]
        self.assertEqual(picture.count('class="s2"'), 3)  # with the legend

    def test_refusals(self):
        self.write_run("run", [plain(world=1)])
        self.refused("ledger", "trace", "run", says=("--in",))
        self.refused("ledger", "trace", "run", "--in", "data.bin", says=("--dtype",))
        self.refused("ledger", "trace", "run", "--in", "data.bin", "--dtype", "u16", says=("--sample",))
        self.write_run("run", [plain(world=1)], with_samples=False)
        self.refused("ledger", "trace", "run", "--in", "data.bin", "--dtype", "u16", "--sample", "8",
                     says=("without the seals of its samples",))


class Show(LedgerTest):
    def test_records(self):
        self.write_run("run", [plain(world=2, steps=2, size=1)])
        lines = self.succeeds("ledger", "show", "run", "--steps").text.splitlines()
        self.assertEqual(len(lines), 5)
        self.assertEqual(lines[0].split(), "step rank micro epoch samples tokens seal bag".split())
        self.assertEqual(lines[1].split()[6], harness.oracle.seal(row(0)))
        self.assertEqual(lines[1].split()[7], harness.oracle.bag([row(0)]))
        report = self.json("ledger", "show", "run", "--steps")
        self.assertEqual([(r["step"], r["rank"]) for r in report["entries"]],
                         [(0, 0), (0, 1), (1, 0), (1, 1)])
        self.assertEqual([x["closed"] for x in report["ledgers"]], [False, False])
        self.write("run/rank-1.ledger", (self.dir / "run/rank-1.ledger").read_bytes() + book.end())
        self.assertEqual([x["closed"] for x in self.json("ledger", "show", "run")["ledgers"]],
                         [False, True])


if __name__ == "__main__":
    unittest.main()
