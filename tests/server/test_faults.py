# SPDX-License-Identifier: MIT
"""Disk failures by fault injection (libfiu).  test_full.py has full disks.

After the first failed write the server refuses changes (503 read-only, /readyz 503), stays alive
(/healthz 200) and shows what was acknowledged last.  After a restart on a working disk everything
acknowledged is present, and each other feed is present completely or not at all.
"""

import errno
import os
import shutil
import subprocess

from api import Gone, ServerTest, report_of
from disks import SmallDisk, Unable
from harness import SANITIZED, TIMEOUT_S, environment, oracle, pack
from load import Load
from serving import NotServing, Server, wait_until
from wire import Wire, request

CONFIG = oracle.Config(vocab=100, nodes=20, batch=50)
POINTS = {"a write": "posix/io/rw/pwrite",
          "a sync": "posix/io/sync/fdatasync", "every sync": "posix/io/sync/*"}
FULL = (errno.ENOSPC, errno.EDQUOT)


class FaultTest(ServerTest):
    def begin(self, server):
        self.instance = server
        self.client = self.api(server)
        self.created(self.client, "e", nodes=20, vocab=100, batch=50)
        self.bodies = []
        for k in range(5):
            self.feed_next(k)
        self.shown = self.client.engine("e")

    def feed_next(self, k):
        tokens = oracle.gen(k, 100, 1000)
        answer = self.client.feed("e", pack(tokens), key=f"k{k}")
        if answer.status == 200:
            self.bodies.append(tokens)
        return answer

    def assert_read_only(self):
        """Changes are refused; reads work and show only acknowledged data."""
        for body in (pack([1]), bytes(200_000)):
            self.assert_problem(self.client.feed("e", body), "read-only")
        self.assert_problem(self.client.feed("e", pack([1]), key="new"), "read-only")
        self.assert_problem(self.client.create("other"), "read-only")
        self.assert_problem(self.client.call("DELETE", "/v1/engines/e"), "read-only")
        self.assert_problem(self.client.get("/readyz"), "read-only")
        self.assertFalse(self.client.get("/v1/info").json["is_writable"])
        self.assertEqual(self.client.get("/healthz").json, {"status": "ok"})
        self.assertEqual(self.shown, self.client.engine("e"))
        self.assertEqual(self.client.get("/v1/engines").json, {"engines": [self.shown]})
        self.assertEqual(report_of(self.client.get("/v1/engines/e/state").json),
                         report_of(self.shown))
        self.client.get("/metrics")

    def assert_there(self, unsure=()):
        """After a restart all acknowledged feeds are present; others completely or not at all."""
        found = report_of(self.client.engine("e"))
        possible = [self.bodies, *[self.bodies + [tokens] for tokens in unsure]]
        reports = []
        for bodies in possible:
            engine = oracle.Engine(CONFIG)
            for tokens in bodies:
                engine.feed(tokens)
            stream = [token for tokens in bodies for token in tokens]
            reports.append(dict(engine.report(), seal=oracle.seal(stream)))
        self.assertIn(found, reports)


class Injected(FaultTest):
    def setUp(self):
        super().setUp()
        if not shutil.which("fiu-run") or not shutil.which("fiu-ctrl"):
            self.skipTest("fiu-run is not installed (Debian: fiu-utils)")
        if SANITIZED:
            self.skipTest("a sanitizer and a preloaded library do not go together")
        self.prefix = str(self.dir / "fiu")

    def control(self, command):
        subprocess.run(["fiu-ctrl", "-f", self.prefix, "-c", command,
                        str(self.instance.process.pid)], check=True, timeout=TIMEOUT_S,
                       capture_output=True, env=environment())

    def test_each_failing_system_call(self):
        for what, point in POINTS.items():
            for number in (errno.EIO, *FULL):
                with self.subTest(fails=what, errno=number):
                    self.fail_once(point, number)

    def fail_once(self, point, number):
        data = f"data-{point.replace('/', '-').replace('*', 'all')}-{number}"
        wrapper = ["fiu-run", "-x", "-f", self.prefix]
        self.begin(self.serve(data=data, wrapper=wrapper))
        self.control(f"enable name={point},failinfo={number}")
        if point == POINTS["a write"] and number in FULL:
            self.assert_full_once(point)
            return
        self.assert_problem(self.feed_next(100), "read-only", "not acknowledged")
        self.assert_read_only()
        self.control(f"disable name={point}")
        self.assert_read_only()  # also after the disk works again
        self.instance.stop(code=2)
        self.instance.wrapper = []
        self.instance.start()
        self.assert_there(unsure=[oracle.gen(100, 100, 1000)])
        self.assertEqual(self.client.get("/readyz").status, 200)
        self.assertEqual(self.feed_next(101).status, 200)
        self.instance.stop()

    def assert_full_once(self, point):
        """Only this is not a failure: nothing was fed, and feeds work when there is room."""
        for k in (100, 101):
            self.assert_problem(self.feed_next(k), "disk-full")
        self.assertEqual(self.shown, self.client.engine("e"))
        self.control(f"disable name={point}")
        wait_until("ready", lambda: self.client.get("/readyz").status == 200)
        self.assertEqual(self.feed_next(101).status, 200)
        self.assert_there()
        self.instance.stop()
        self.instance.wrapper = []
        self.instance.start()
        self.assert_there()
        self.instance.stop()

    def test_failure_during_a_large_body(self):
        """A write fails during the body or at its end: nothing of it is fed."""
        for number, point in enumerate(("posix/io/rw/pwrite", "posix/io/sync/fdatasync")):
            with self.subTest(point=point):
                self.begin(self.serve(data=f"large-{number}",
                                      wrapper=["fiu-run", "-x", "-f", self.prefix]))
                half = bytes(8_000_000)  # of batches of 50 tokens: many blocks
                with Wire(self.instance) as wire:
                    wire.send(request("POST", "/v1/engines/e/feed", self.instance.host,
                                      [("Content-Length", str(2 * len(half)))]) + half)
                    self.control(f"enable name={point},failinfo={errno.EIO}")
                    answer = wire.send(half).answer()
                self.assert_problem(answer, "read-only")
                self.assert_read_only()
                self.instance.stop(code=2)
                self.instance.wrapper = []
                self.instance.start()
                self.assert_there()
                self.instance.stop()

    def test_failures_under_load(self):
        """Writes begin to fail at random while six clients feed."""
        server = self.serve(wrapper=["fiu-run", "-x", "-f", self.prefix])
        self.instance = server
        load = Load(server, "faults").create().start().run_until(100)
        self.control(f"enable_random name=posix/io/rw/pwrite,probability=0.02,failinfo={errno.EIO}")
        load.announce()
        self.client = self.api(server)
        wait_until("read-only", lambda: self.client.get("/readyz").status == 503)
        load.join()
        shown = {name: report_of(self.client.engine(name)) for name in
                 ("stream", "batch", "lattice")}
        for name, report in shown.items():
            last = max((f.answer["tokens"] for f in load.feeds
                        if f.engine == name and f.answer), default=0)
            self.assertEqual(report["tokens"], last, f"{name} shows data that was not acknowledged")
        server.stop(code=2)
        server.wrapper = []
        server.start()
        load.settle()
        load.prove()


class Full(FaultTest):
    def small_disk(self, kib) -> SmallDisk:
        disk = SmallDisk(self.dir)
        self.addCleanup(disk.end)
        try:
            disk.make(kib)
        except Unable as why:
            self.skipTest(str(why))
        return disk

    def test_full_disk_at_start(self):
        """Without room for an empty database there is nothing to serve."""
        disk = self.small_disk(8)
        with self.assertRaises(NotServing) as found:
            Server(disk.place / "data").start()
        self.assertEqual((found.exception.code, len(found.exception.lines)), (2, 1),
                         str(found.exception))


class Unreadable(FaultTest):
    def test_unwritable_folder(self):
        if os.geteuid() == 0:
            self.skipTest("root may write everywhere")
        folder = self.dir / "closed"
        folder.mkdir(mode=0o500)
        with self.assertRaises(NotServing) as found:
            Server(folder / "data").start()
        self.assertEqual(found.exception.code, 2)

    def test_client_that_disconnects_after_its_body(self):
        """The client disconnects between its body and the response: the body is fed or not, and a
        repeated key shows which."""
        self.begin(self.serve())
        for k in range(30):
            body = pack([k] * 10)
            wire = Wire(self.instance)
            wire.send(request("POST", "/v1/engines/e/feed", self.instance.host,
                              [("Content-Length", "40"), ("Idempotency-Key", f"gone-{k}")], body))
            wire.reset()
            before = self.client.engine("e")["tokens"]
            try:
                answer = self.client.feed("e", body, key=f"gone-{k}")
            except Gone:
                self.fail("the server went away")
            self.assertEqual(answer.status, 200, str(answer))
            after = self.client.engine("e")["tokens"]
            self.assertLessEqual(after - before, 10)
            self.assertEqual(after, answer.json["tokens"])
        self.assertEqual(self.client.engine("e")["tokens"], self.shown["tokens"] + 300)
