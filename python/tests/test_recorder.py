# SPDX-License-Identifier: MIT
"""Recorder: the ledgers it writes are those of the oracle, it never stops training, and kills and
resumes lose no more than they must."""

import array
import os
import signal
import struct
import subprocess
import sys
import tempfile
import textwrap
import unittest
import warnings
from pathlib import Path

from support import iron_tokens, needs_numpy, numpy, oracle, subprocess_environment  # noqa: F401

import ledger as book
from ledger import Record

from iron_tokens import IronError, Recorder


def frames(data):
    """[(kind, payload)] of a ledger, checked."""
    found, at = [], 64
    assert data[:64] == book.header(*struct.unpack_from("<II", data, 16),
                                    *struct.unpack_from("<QI", data, 24))
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        payload = data[at + 16:at + 16 + size]
        assert data[at:at + 16 + size] == book.frame(kind, payload), at
        found.append((kind, payload))
        at += 16 + size
    return found


def without_time(kind, payload):
    return payload[:64] + payload[72:] if kind == 1 else None


class RecorderTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "rank-0.ledger"

    def assert_records(self, records, **how):
        found = [without_time(*f) for f in frames(self.path.read_bytes()) if f[0] == 1]
        made = [without_time(1, book.step(record, **how)[16:]) for record in records]
        self.assertEqual(found, made)


class Steps(RecorderTest):
    @needs_numpy
    def test_arrays(self):
        rows = numpy.arange(24).reshape(4, 6)
        samples = [tuple(map(int, row)) for row in rows]
        with Recorder(self.path) as recorder:
            recorder.step(1, rows)
            recorder.step(2, rows.astype(numpy.uint16), micro=1, epoch=3)
            recorder.step(3, [array.array("H", s) for s in samples])
            recorder.step(4, [list(s) for s in samples])
            recorder.step(5, rows[:, ::2])
            recorder.step(6, [])
            recorder.step(7, list(samples[0]))
        self.assert_records([Record(1, samples), Record(2, samples, 1, 3), Record(3, samples),
                             Record(4, samples), Record(5, [s[::2] for s in samples]),
                             Record(6, []), Record(7, samples[:1])])
        self.assertEqual(frames(self.path.read_bytes())[-1][0], 3)  # closed

    def test_without_samples(self):
        with Recorder(self.path, rank=1, world=4, samples=False) as recorder:
            recorder.step(0, [[1, 2], [3]])
        self.assert_records([Record(0, [(1, 2), (3,)])], with_samples=False)
        self.assertEqual(struct.unpack_from("<II", self.path.read_bytes(), 16), (1, 4))

    def test_an_error_warns_once_and_training_goes_on(self):
        with Recorder(self.path) as recorder:
            recorder.step(0, [[1, 2]])
            for bad in ([[-1]], [[0.5]], "text", None):
                with Recorder(self.path.with_name("x"), append=True) as other:
                    with self.assertWarnsRegex(RuntimeWarning, "training goes on"):
                        other.step(0, bad)
                    with warnings.catch_warnings():
                        warnings.simplefilter("error")
                        other.step(1, bad)
            recorder.step(1, [[3]])
        self.assert_records([Record(0, [(1, 2)]), Record(1, [(3,)])])

    def test_opening_refuses(self):
        Recorder(self.path).close()
        with self.assertRaisesRegex(IronError, "exists"):
            Recorder(self.path)
        with self.assertRaisesRegex(IronError, "of rank 0, not of rank 1"):
            Recorder(self.path, rank=1, world=2, append=True)
        with self.assertRaisesRegex(ValueError, "rank 2 of 2"):
            Recorder(self.path.with_name("y"), rank=2, world=2)
        self.path.write_bytes(b"something else that is long enough to be a header of a ledger......")
        with self.assertRaisesRegex(IronError, "not a ledger"):
            Recorder(self.path, append=True)

    def test_two_recorders_in_two_processes(self):
        with Recorder(self.path):
            code = f"from iron_tokens import Recorder; Recorder({str(self.path)!r}, append=True)"
            result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                                    env=subprocess_environment())
            self.assertIn("open in another recorder", result.stderr)

    def test_a_full_disk_warns(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        with self.assertRaisesRegex(IronError, "not a file"):
            Recorder("/dev/full", append=True)


class Watching(RecorderTest):
    @needs_numpy
    def test_batches_pass_unchanged(self):
        batches = [{"input_ids": numpy.full((2, 3), at), "labels": None} for at in range(4)]
        with Recorder(self.path) as recorder:
            seen = list(recorder.watch(batches, accumulate=2))
            again = list(recorder.watch(batches[:1]))
        self.assertTrue(all(a is b for a, b in zip(seen, batches)))
        self.assertIs(again[0], batches[0])
        rows = [[(at,) * 3] * 2 for at in range(4)]
        self.assert_records([Record(0, rows[0], 0), Record(0, rows[1], 1), Record(1, rows[2], 0),
                             Record(1, rows[3], 1), Record(2, rows[0], 0, 1)])

    @needs_numpy
    def test_kinds_of_batches(self):
        rows = numpy.arange(4).reshape(2, 2)

        class Encoding:
            input_ids = rows

        batches = [rows, {"input_ids": rows.tolist()}, Encoding(), [rows],
                   [{"input_ids": [0, 1]}, {"input_ids": [2, 3]}]]
        with Recorder(self.path) as recorder:
            list(recorder.watch(batches))
        self.assert_records([Record(at, [(0, 1), (2, 3)]) for at in range(len(batches))])

    def test_a_missing_key_does_not_stop_the_loop(self):
        with Recorder(self.path) as recorder, self.assertWarnsRegex(RuntimeWarning, "no 'input_ids'"):
            self.assertEqual(len(list(recorder.watch([{"x": 1}] * 3))), 3)

    def test_state(self):
        with Recorder(self.path) as recorder:
            for at, _ in enumerate(recorder.watch([[[k]] for k in range(10)])):
                if at == 5:
                    state = recorder.state_dict()
                    break
        with Recorder(self.path, append=True) as recorder:
            recorder.load_state_dict(state)
            list(recorder.watch([[[k]] for k in range(6, 8)]))
        kinds = [kind for kind, _ in frames(self.path.read_bytes())]
        self.assertEqual(kinds, [1] * 6 + [3, 2] + [1] * 2 + [3])
        self.assert_records([Record(at, [(at,)]) for at in range(8)])


class Crashes(RecorderTest):
    def test_killed(self):
        code = textwrap.dedent(f"""
            import os, signal
            from iron_tokens import Recorder
            recorder = Recorder({str(self.path)!r}, flush_records=8, flush_seconds=1000)
            for at in range(20):
                recorder.step(at, [[at]])
            os.kill(os.getpid(), signal.SIGKILL)""")
        result = subprocess.run([sys.executable, "-c", code],
                                env=subprocess_environment())
        self.assertEqual(result.returncode, -signal.SIGKILL)
        self.assert_records([Record(at, [(at,)]) for at in range(16)])  # two flushes of eight

    def test_a_torn_end_is_removed(self):
        with Recorder(self.path) as recorder:
            for at in range(4):
                recorder.step(at, [[at]])
        whole = self.path.read_bytes()
        self.path.write_bytes(whole[:-24 - 50])  # the mark of the end, and half of the last record
        with Recorder(self.path, append=True) as recorder:
            recorder.step(3, [[3]])
        kinds = [kind for kind, _ in frames(self.path.read_bytes())]
        self.assertEqual(kinds, [1, 1, 1, 2, 1, 3])
        self.assert_records([Record(at, [(at,)]) for at in range(4)])

    def test_a_forked_worker_writes_nothing(self):
        with Recorder(self.path, flush_seconds=1000) as recorder:
            recorder.step(0, [[0]])
            child = os.fork()
            if child == 0:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    recorder.step(1, [[1]])
                recorder.close()
                os._exit(0)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            recorder.step(1, [[1]])
        self.assert_records([Record(0, [(0,)]), Record(1, [(1,)])])


if __name__ == "__main__":
    unittest.main()
