# SPDX-License-Identifier: MIT
"""The examples of loader bugs find what they claim: kind, steps and ranks; correct loaders give no
finding.  They run `iron`: IRON, or the one beside the library."""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import REPO, iron_tokens

IRON = os.environ.get("IRON") or str(Path(iron_tokens.library_path()).with_name("iron"))

FINDINGS = {
    "second_resume_restarts": [
        "ledger check buggy", "steps 8 to 11 on rank 0 repeat steps 0 to 3: 16 samples",
        "steps 8 to 11 on rank 1 repeat steps 0 to 3: 16 samples", "iron: 8 findings",
        "ledger diff uninterrupted buggy", "repeated: at step 8 B repeats what A has at step 0",
        "ledger check correct", "OK: 12 steps on 2 ranks, 96 samples",
        "ledger diff uninterrupted correct", "equal: "],
    "counter_without_loader": [
        "ledger check buggy", "steps 7 to 11 on rank 0 repeat steps 0 to 4: 20 samples",
        "steps 7 to 11 on rank 1 repeat steps 0 to 4: 20 samples", "iron: 10 findings",
        "ledger diff uninterrupted buggy", "repeated: at step 7 B repeats what A has at step 0",
        "ledger check correct", "OK: 12 steps on 2 ranks, 96 samples",
        "ledger diff uninterrupted correct", "equal: "],
    "resume_repeats_batch": [
        "ledger check buggy", "step 5 on rank 0 repeats step 4: 4 samples",
        "step 5 on rank 1 repeats step 4: 4 samples", "iron: 2 findings",
        "ledger diff uninterrupted buggy", "repeated: at step 5 B repeats what A has at step 4",
        "ledger check correct", "OK: 12 steps on 2 ranks, 96 samples",
        "ledger diff uninterrupted correct", "equal: "],
    "order_of_workers": [
        "ledger diff two-ranks two-workers",
        "reordered: steps 0 to 11 have the same samples in another order",
        "ledger diff two-ranks four-ranks",
        "reordered: steps 0 to 11 have the same samples in another order",
        "ledger diff correct-2 correct-4", "equal: ", "ledger diff correct-2 correct-2-4", "equal: ",
        "ledger check correct-2-4", "OK: 12 steps on 4 ranks, 96 samples"],
    "same_data_on_ranks": [
        "ledger check buggy", "steps 0 to 7 on rank 1 have the tokens of rank 0: 32 samples",
        "steps 0 to 7 on rank 2 have the tokens of rank 0: 32 samples", "iron: 16 findings",
        "ledger check correct", "OK: 8 steps on 3 ranks, 96 samples"],
    "last_batch": [
        "ledger check padded", "step 11 on rank 0 repeats samples of step 0: 3 samples",
        "step 11 on rank 1 repeats samples of step 0: 3 samples", "iron: 2 findings",
        "ledger check dropped", "OK: 11 steps on 2 ranks, 88 samples",
        "ledger trace dropped", "data.bin: 90 samples; recorded: 88", "seen 0 times: 2 samples",
        "seen 1 time: 88 samples", "never seen, first: samples 88 to 89",
        "ledger check whole", "OK: 12 steps on 2 ranks, 90 samples",
        "ledger diff whole dropped", "shorter: B ends before step 11 of A"],
}


@unittest.skipUnless(importlib.util.find_spec("numpy"), "the examples need NumPy")
@unittest.skipUnless(os.access(IRON, os.X_OK), f"no iron at {IRON}")
class LoaderBugs(unittest.TestCase):
    def test_an_order_of_workers_differs_from_the_first_step_and_rank(self):
        sys.path.insert(0, str(REPO / "python" / "examples"))
        self.addCleanup(sys.path.pop, 0)
        from order_of_workers import seeded_by_worker
        from training import train
        with tempfile.TemporaryDirectory() as folder:
            runs = [f"{folder}/{name}" for name in ("a", "b", "c")]
            for run, workers, world in zip(runs, (1, 2, 1), (2, 2, 4)):
                os.mkdir(run)
                train(run, seeded_by_worker(workers), (world, 12))
            for other, rank in ((runs[1], 0), (runs[2], None)):  # None: another number of ranks
                done = subprocess.run([IRON, "ledger", "diff", runs[0], other, "--json"],
                                      capture_output=True, check=False)
                found = json.loads(done.stdout)
                self.assertEqual((done.returncode, found["kind"], found["first_step"], found["rank"]),
                                 (1, "reordered", 0, rank))

    def test_readme_shows_what_the_first_example_finds(self):
        lines = (REPO / "README.md").read_text(encoding="utf-8").splitlines()
        at = next(k for k, line in enumerate(lines) if "$ iron ledger check" in line)
        self.assertEqual([line.strip() for line in lines[at + 1:at + 4]],
                         FINDINGS["second_resume_restarts"][1:4])

    def test_findings(self):
        env = {**os.environ, "IRON": IRON, "IRON_LIBRARY": iron_tokens.library_path()}
        for name, lines in FINDINGS.items():
            with self.subTest(name):
                done = subprocess.run(
                    [sys.executable, "-B", REPO / "python" / "examples" / f"{name}.py"], env=env,
                    capture_output=True, text=True, timeout=600)
                self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
                said = [line.strip().removeprefix("$ iron ") for line in done.stdout.splitlines()]
                self.assertEqual(len(said), len(lines) + 1, done.stdout)
                for line, want in zip(said, [*lines, "as expected"]):
                    self.assertTrue(line.startswith(want), f"{line!r} is not {want!r}...")


if __name__ == "__main__":
    unittest.main()
