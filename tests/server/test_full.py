# SPDX-License-Identifier: MIT
"""A full disk is not a dead end: feeds get 507, deletions work, and feeds are accepted again when
there is room, without a restart.  A restart or a crash at any point loses nothing."""

import os
import signal

from api import ServerTest
from disks import PowerDisk, SmallDisk, Unable
from harness import LONG, TIMEOUT_S, oracle, pack
from serving import Server, wait_until

ENDS = ("none", "stop", "kill")
BODY = 10_000  # tokens, in batches of one: 120 kB of history
TOKENS = pack(oracle.gen(7, BODY, 100))


class Full(ServerTest):
    def begin(self, disk, *options):
        self.addCleanup(disk.end)
        try:
            disk.make(*options)
        except Unable as why:
            self.skipTest(str(why))
        self.disk = disk
        (disk.place / "other").write_bytes(bytes(4 << 20))  # of another program
        self.server = Server(disk.place / "data")
        self.addCleanup(self._end, self.server)
        self.server.start()
        self.client = self.api(self.server)
        self.acknowledged = {}

    def create(self, name):
        self.created(self.client, name, nodes=20, vocab=100, batch=1)
        self.acknowledged[name] = 0

    def feed(self, name, count=BODY):
        answer = self.client.feed(name, TOKENS[:4 * count], at=self.acknowledged[name])
        if answer.status == 200:
            self.acknowledged[name] += count
        return answer

    def fill(self, name):
        answer = self.feed(name)
        for _ in range(20_000):
            if answer.status != 200:
                break
            answer = self.feed(name)
        self.assert_problem(answer, "disk-full")
        self.assertEqual(answer.get("Retry-After"), "5")

    def take_the_rest(self):
        """Another program takes all that is free."""
        with open(self.disk.place / "other", "ab", buffering=0) as other:
            for size in (1 << 20, 4096, 1):
                try:
                    while True:
                        other.write(bytes(size))
                except OSError:
                    continue

    def end(self, how):
        """Everything acknowledged is there before and after."""
        self.assert_there()
        if how == "stop":
            self.server.stop()
        elif how == "kill":
            self.server.kill()
        if how != "none":
            self.server.start()
        self.assert_there()

    def assert_there(self):
        for name, tokens in self.acknowledged.items():
            found = self.client.engine(name)
            self.assertEqual(found["tokens"], tokens)
            page = self.client.get(f"/v1/engines/{name}/batches?since={max(0, tokens - 1)}").json
            self.assertEqual(len(page["batches"]), 1 if tokens else 0)
            self.client.get(f"/v1/engines/{name}/state")

    def server_says(self, words):
        wait_until(words, lambda: words in " ".join(self.server.said))

    def assert_full(self):
        for body in (pack([1]), bytes(200_000)):
            self.assert_problem(self.client.feed("b", body), "disk-full")
        self.assert_problem(self.client.create("other"), "disk-full")
        self.assert_problem(self.client.get("/readyz"), "disk-full")
        self.assertFalse(self.client.get("/v1/info").json["is_writable"])
        figures = self.client.get("/metrics").body.decode()
        self.assertIn("\niron_disk_full 1\n", figures)
        self.assertIn("\niron_read_only 0\n", figures)
        self.server_says("is full")

    def assert_deletes_and_feeds(self, how):
        """Fills the disk, deletes, feeds again; the server ends in the given way in between."""
        self.create("a")
        self.create("b")
        for _ in range(3):
            self.feed("b")
        self.fill("a")
        self.take_the_rest()
        self.assert_full()
        self.end(how)
        self.assert_full()
        self.assertEqual(self.client.call("DELETE", "/v1/engines/a").status, 204)
        del self.acknowledged["a"]
        self.end(how)
        for _ in range(5):  # the pages of a are room: nothing else has been freed
            answer = self.feed("b")
            self.assertEqual(answer.status, 200, str(answer))
        self.assertEqual(self.client.get("/readyz").status, 200)
        self.end(how)
        self.fill("b")
        self.end(how)
        os.remove(self.disk.place / "other")
        wait_until("ready", lambda: self.client.get("/readyz").status == 200)
        self.assertEqual(self.feed("b").status, 200)
        self.server_says("there is room again: feeds are accepted")
        self.end(how)
        self.assertEqual(self.client.call("DELETE", "/v1/engines/b").status, 204)
        self.server.stop()

    def test_in_memory(self):
        for how in ENDS:
            with self.subTest(ends=how):
                (self.dir / how).mkdir()
                self.begin(SmallDisk(self.dir / how), 20_000)
                self.assert_deletes_and_feeds(how)

    def test_on_ext4(self):
        for how in ENDS if LONG else ("kill",):
            with self.subTest(ends=how):
                (self.dir / how).mkdir()
                self.begin(PowerDisk(self.dir / how), 32)
                self.assert_deletes_and_feeds(how)

    def test_without_reserve(self):
        """The reserve is gone, and nothing at all is free: the server starts and can be read."""
        self.begin(SmallDisk(self.dir), 20_000)
        self.create("b")
        self.fill("b")
        for how in (signal.SIGTERM, signal.SIGKILL):
            self.server._end(how, TIMEOUT_S)
            (self.disk.place / "data" / "reserve").unlink(missing_ok=True)
            self.take_the_rest()
            self.server.start()
            self.assert_there()
            self.assert_full()
        self.disk.grow(64_000)
        wait_until("ready", lambda: self.client.get("/readyz").status == 200)
        self.assertEqual(self.feed("b").status, 200)
        self.end("kill")

    def test_reserve_is_held(self):
        self.begin(SmallDisk(self.dir), 20_000)
        held = (self.disk.place / "data" / "reserve").stat()
        self.assertEqual(held.st_blocks * 512, held.st_size)
        self.assertEqual(held.st_size, 2_560_000)
        self.assertEqual(held.st_mode & 0o777, 0o600)
        self.server.stop()
        self.server.set_options("--reserve", "1MiB")
        self.server.start()
        self.assertEqual((self.disk.place / "data" / "reserve").stat().st_size, 1 << 20)
        self.assertIn("\niron_reserve_bytes 1048576\n", self.client.get("/metrics").body.decode())
