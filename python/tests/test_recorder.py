# SPDX-License-Identifier: MIT
"""Recorder: the ledgers it writes are those of the oracle, it never stops training, and kills and
resumes lose no more than they must."""

import array
import hashlib
import http.server
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import textwrap
import threading
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


class FakeRuns(http.server.BaseHTTPRequestHandler):
    """Takes records as the server does; fails as often as it is told to."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, document):
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        have = self.server.frames
        self.server.asked.append(self.path)
        if not have:
            self.reply(404, {"detail": "there is no run"})
            return
        self.reply(200, {"by_rank": [{"records": len(have) + 1,
                                      "last": hashlib.sha256(have[-1]).hexdigest()[:32]}]})

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.bodies.append(body)
        if self.server.failures:
            self.reply(self.server.failures.pop(0), {"detail": "not now"})
            return
        assert len(body) <= 1 << 20
        at = 64
        for _, payload in frames(body):
            frame = body[at:at + 16 + len(payload)]
            at += len(frame)
            if frame not in self.server.frames:
                self.server.frames.append(frame)
        self.reply(200, {"added": 1})


class Sending(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "rank.ledger"
        self.server = self.serve(0)

    def serve(self, port):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), FakeRuns)
        server.frames, server.bodies, server.asked, server.failures = [], [], [], []
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server

    def recorder(self, port=None, **how):
        port = port or self.server.server_address[1]
        return Recorder(self.path, url=f"http://127.0.0.1:{port}/v1/runs/job", flush_records=1,
                        **{"close_seconds": 60, **how})

    def assert_all(self, server=None):
        data = self.path.read_bytes()
        self.assertEqual(b"".join((server or self.server).frames), data[64:])

    def test_all_is_sent(self):
        with self.recorder() as recorder:
            for step in range(20):
                recorder.step(step, [[step, 1], [step, 2]])
        self.assert_all()
        self.assertEqual(len(self.server.frames), 21)  # and the end

    def test_failures(self):
        self.server.failures += [503, 500, 429]
        with self.recorder() as recorder:
            recorder.step(0, [[1, 2]])
        self.assert_all()

    def test_an_outage(self):
        """The server is away from the beginning, and comes while the ledger grows."""
        port = self.server.server_address[1]
        self.server.shutdown()
        self.server.server_close()
        recorder = self.recorder(port)
        for step in range(300):
            recorder.step(step, [[step] * 4])
        self.server = self.serve(port)
        recorder.close()
        self.assert_all()

    def test_resuming_sends_what_is_new(self):
        with self.recorder() as recorder:
            recorder.step(0, [[1, 2]])
        known = len(self.server.frames)
        self.server.bodies.clear()
        with self.recorder(append=True) as recorder:
            recorder.step(1, [[3, 4]])
        self.assert_all()
        self.assertEqual(len(frames(self.server.bodies[0])[0]), 2)
        self.assertEqual(frames(self.server.bodies[0])[0],
                         frames(self.path.read_bytes())[known - 1])

    def test_long_records(self):
        """Pieces of at most a mebibyte, also where no two records fit into one."""
        with self.recorder() as recorder:
            for step in range(4):
                recorder.step(step, array_of(40000, step))
        self.assert_all()

    def test_a_refusal_warns_and_training_goes_on(self):
        self.server.failures += [403] * 5
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            recorder = self.recorder()
            recorder.step(0, [[1, 2]])
            recorder.step(1, [[1, 3]])
            recorder.close()
        self.assertEqual(len(frames(self.path.read_bytes())), 3)
        texts = [str(w.message) for w in said]
        self.assertTrue(any("sending has stopped" in t and "403" in t for t in texts), texts)
        self.assertTrue(any("iron push" in t for t in texts), texts)

    def test_a_server_that_stays_away(self):
        self.server.shutdown()
        self.server.server_close()
        with self.assertWarnsRegex(RuntimeWarning, "iron push"):
            with self.recorder(close_seconds=0.1) as recorder:
                recorder.step(0, [[1, 2]])
        self.assertEqual(len(frames(self.path.read_bytes())), 2)

    def test_addresses(self):
        for url in ("http://127.0.0.1/v1/engines/e", "ftp://127.0.0.1/v1/runs/a", "x",
                    "http://127.0.0.1/v1/runs/", "http://u@127.0.0.1/v1/runs/a"):
            with self.assertRaisesRegex(ValueError, "address of a run"):
                Recorder(self.path, url=url)
        self.assertFalse(self.path.exists())


def array_of(rows, value):
    """Rows of one token each."""
    return [array.array("I", [value * rows + k]) for k in range(rows)]


if __name__ == "__main__":
    unittest.main()
