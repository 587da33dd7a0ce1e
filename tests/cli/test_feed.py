# SPDX-License-Identifier: MIT
"""`iron feed --state FILE --every N --continue`: a feed that is interrupted anywhere, also with
kill -9, and continued gives the same report and the same state file as an uninterrupted one, and
no token is fed twice.
"""

import random
import subprocess
import time
import unittest

from harness import REDUCED, REPORT_KEYS, SEED, IronTest, npy, oracle, pack, start, unpack

BATCH = 1000
PER_FILE = 3000  # 12,000 bytes: the tokens 1024 to 1975 are not part of the sample of a file
OPTIONS = ("--dtype", "i32", "--batch", BATCH, "--nodes", 40, "--seal")


class Checkpoints(IronTest):
    def setUp(self):
        super().setUp()
        self.rng = random.Random(f"{SEED} {self.id()}")
        self.names = [f"d/{k}.bin" for k in range(5)]
        for k, name in enumerate(self.names):
            self.write_tokens(name, oracle.gen(k, PER_FILE + (77 if k == 4 else 0), 50257), "i32")
        self.total = 5 * PER_FILE + 77

    def plain(self, *args):
        """The report and the state file of an uninterrupted feed."""
        report = self.feed("d", *OPTIONS, *args, "--state", "plain")
        return report, (self.dir / "plain").read_bytes()

    def interrupt(self, file, *args, every=BATCH):
        """Leaves a checkpoint: the feed stops at an invalid token in the middle of a file, which is
        then repaired. Returns the tokens of the checkpoint."""
        path = self.dir / self.names[file]
        good = path.read_bytes()
        path.write_bytes(good[:6000] + pack([-1], "i32") + good[6004:])
        result = self.iron("feed", "d", *OPTIONS, "--backend", "cpu", "--state", "run", "--every",
                           every, *args)
        self.assert_error_line(result, "-1")
        path.write_bytes(good)
        every = (every + BATCH - 1) // BATCH * BATCH
        return (file * PER_FILE + 1500) // every * every  # tokens of the last checkpoint

    def resume(self, *args):
        return self.feed("d", *OPTIONS, "--state", "run", "--continue", *args)

    def assert_same(self, report, expected):
        wanted, state = expected
        self.assertEqual({k: report[k] for k in (*REPORT_KEYS, "seal")},
                         {k: wanted[k] for k in (*REPORT_KEYS, "seal")})
        self.assertEqual((self.dir / "run").read_bytes(), state)

    def test_uninterrupted(self):
        """Checkpoints do not change the result; nothing but the state is left."""
        expected = self.plain()
        for every in (1, BATCH, 3 * BATCH - 1, 10**12):
            (self.dir / "run").unlink(missing_ok=True)
            self.assert_same(self.feed("d", *OPTIONS, "--state", "run", "--every", every), expected)
        self.assertEqual({p.name for p in self.dir.iterdir()}, {"d", "plain", "run"})

    def test_continued(self):
        expected = self.plain()
        for file, every in ((0, BATCH), (2, 1), (4, 4 * BATCH), (4, 7 * BATCH + 1)):
            (self.dir / "run").unlink(missing_ok=True)
            done = self.interrupt(file, every=every)
            self.assertEqual(self.read_state("run")["tokens"], done)
            self.assert_same(self.resume("--every", every), expected)

    def test_continued_by_other_threads_modes_and_positions(self):
        for options in (("--positions", "batch"), ("--vocab", 1000), ("--lattice", "3,5,9")):
            expected = self.plain(*options)
            self.interrupt(3, *options, "--threads", 2)
            self.assert_same(self.resume("--threads", 1, "--mode", "scalar"), expected)
            (self.dir / "run").unlink()

    def test_interrupted_before_the_first_checkpoint(self):
        self.interrupt(1, every=10**9)
        self.assertFalse((self.dir / "run").exists())
        self.assert_same(self.resume("--every", BATCH), self.plain())

    def test_interrupted_again(self):
        self.interrupt(1)
        self.interrupt(2, "--continue")
        self.assertEqual(self.interrupt(4, "--continue"), self.read_state("run")["tokens"])
        self.assert_same(self.resume(), self.plain())

    def test_after_a_resumed_state(self):
        """The stream begins at the position of another state, in the middle of a batch."""
        self.write_tokens("before.bin", oracle.gen(9, 777, 50257), "i32")
        for base in ("base", "run"):
            self.feed("before.bin", *OPTIONS, "--state", "base")
            self.feed("before.bin", *OPTIONS, "--state", base)
            expected = self.plain("--resume", "base")
            done = self.interrupt(3, "--resume", base)
            self.assertEqual(self.read_state("run")["tokens"], 777 + done)
            self.assert_same(self.resume("--resume", base), expected)
            (self.dir / "run").unlink()

    def test_killed_at_any_moment(self):
        """kill -9 again and again; the state file is always absent or whole and never goes back."""
        small = ("--batch", 100)
        expected = self.plain(*small)
        command = ("feed", "d", *OPTIONS, *small, "--backend", "cpu", "--state", "run", "--every",
                   1, "--continue")
        last = 0
        for _ in range(10 if REDUCED else 60):
            with start(*command, cwd=self.dir, stdout=subprocess.DEVNULL,
                       stderr=subprocess.PIPE) as process:
                time.sleep(self.rng.uniform(0.0, 0.1))
                process.kill()
                message = process.stderr.read()
            self.assertEqual(message, b"")
            tokens = self.read_state("run")["tokens"] if (self.dir / "run").exists() else 0
            self.assertGreaterEqual(tokens, last)
            last = tokens
            if last == self.total:
                break
        if last < self.total:
            self.resume(*small)
        self.assertEqual((self.dir / "run").read_bytes(), expected[1])

    def test_other_files_are_refused(self):
        self.interrupt(3)
        checkpoint = (self.dir / "run").read_bytes()
        continued = ("feed", "d", *OPTIONS, "--backend", "cpu", "--state", "run", "--continue")
        good = (self.dir / "d/1.bin").read_bytes()
        (self.dir / "d/1.bin").write_bytes(pack([1], "i32") + good[4:])
        self.refused(*continued, says="other files")
        (self.dir / "d/1.bin").write_bytes(good + pack([1], "i32"))
        self.refused(*continued, says=str(self.total + 1))
        (self.dir / "d/1.bin").write_bytes(good)
        self.refused("feed", *reversed(self.names), *continued[2:], says="other files")
        self.refused("feed", "-", *continued[2:], stdin=good, says="regular files")
        self.assertEqual((self.dir / "run").read_bytes(), checkpoint)
        self.assert_same(self.resume(), self.plain())

    def test_same_tokens_under_another_name(self):
        self.interrupt(3)
        (self.dir / "d").rename(self.dir / "e")
        report = self.feed("e", *OPTIONS, "--state", "run", "--continue")
        (self.dir / "e").rename(self.dir / "d")
        self.assert_same(report, self.plain())

    def test_checkpoint_is_refused_without_continue(self):
        """Neither started over nor fed twice."""
        done = self.interrupt(3)
        for options in (["--state", "run"], ["--state", "run", "--every", BATCH],
                        ["--resume", "run", "--state", "run"], ["--resume", "run"]):
            self.refused("feed", "d", *OPTIONS, "--backend", "cpu", *options,
                         says=["run", f"{done} of {self.total}", "--continue"])

    def test_finished_state_is_no_checkpoint(self):
        self.feed("d", *OPTIONS, "--state", "run")
        self.refused("feed", "d", *OPTIONS, "--state", "run", "--continue", says="finished")
        self.feed("d", *OPTIONS, "--state", "run", "--every", BATCH)  # replaces it, as before

    def test_misuse(self):
        self.refused("feed", "d", *OPTIONS, "--every", 5, says=["--every", "--state"])
        self.refused("feed", "d", *OPTIONS, "--continue", says=["--continue", "--state"])
        self.refused("feed", "d", *OPTIONS, "--state", "s", "--every", 0, says="--every")
        self.refused("feed", "-", *OPTIONS, "--backend", "cpu", "--state", "s", "--every", 5,
                     stdin=pack([1] * 20), says="regular files")
        self.write("run", b"IRONSTAT and more")
        self.refused("feed", "d", *OPTIONS, "--state", "run", "--continue", says="run")
        self.interrupt(3, "--nodes", 41)
        self.refused("feed", "d", *OPTIONS, "--state", "run", "--continue", says="--nodes")

    def test_damaged_checkpoint(self):
        self.interrupt(3)
        data = (self.dir / "run").read_bytes()
        for k in self.rng.sample(range(384, 416), 8) + [8, 12]:
            (self.dir / "run").write_bytes(data[:k] + bytes([data[k] ^ 64]) + data[k + 1:])
            self.refused("feed", "d", *OPTIONS, "--backend", "cpu", "--state", "run", "--continue",
                         says="run")

    def test_counts_with_units(self):
        expected = self.plain()
        self.assert_same(self.feed("d", *OPTIONS, "--state", "run", "--every", "2KiB"), expected)

    def test_formats(self):
        """The middle of a file with a header."""
        tokens = unpack((self.dir / "d/0.bin").read_bytes(), "i32")
        self.write("a.npy", npy(tokens, "<i4", "i"))
        bad = list(tokens)
        bad[1500] = -1
        expected = self.feed("a.npy", *OPTIONS, "--state", "plain")
        self.write("a.npy", npy(bad, "<i4", "i"))
        self.assert_error_line(self.iron("feed", "a.npy", *OPTIONS, "--backend", "cpu", "--state",
                                         "run", "--every", 1), "-1")
        self.write("a.npy", npy(tokens, "<i4", "i"))
        report = self.feed("a.npy", *OPTIONS, "--state", "run", "--continue")
        self.assert_same(report, (expected, (self.dir / "plain").read_bytes()))


if __name__ == "__main__":
    unittest.main()
