# SPDX-License-Identifier: MIT
"""A lost log is noticed: after a crash the write-ahead log is removed or cut, and the start is
refused with what was lost.  A crash or a power failure alone is never taken for a loss."""

import os
import random

from api import ServerTest
from disks import PowerDisk, Unable
from harness import LONG, SEED, oracle, pack
from serving import NotServing, Server

CUTS = 50 if LONG else 12


class Marker(ServerTest):
    def setUp(self):
        super().setUp()
        self.rng = random.Random(f"{SEED} marker")

    def fed_server(self, server, feeds):
        api = self.api(server)
        if api.get("/v1/engines/e").status == 404:
            self.created(api, "e", nodes=5, batch=10)
        for k in range(feeds):
            tokens = self.fed(api, "e", pack(oracle.gen(k, 100, 1000)))["tokens"]
        return tokens

    def refusal(self, server) -> str:
        with self.assertRaises(NotServing) as found:
            server.start()
        self.assertEqual((found.exception.code, len(found.exception.lines)), (2, 1))
        return found.exception.lines[0]

    def cut(self, log, size):
        """Removes it if size is 0; returns how to undo that."""
        content = log.read_bytes()
        if size:
            os.truncate(log, size)
        else:
            log.unlink()
        return content

    def test_cut_after_kill(self):
        """Whatever is missing of the log, the start is refused and changes nothing."""
        server = self.serve()
        log = server.data / "iron.db-wal"
        for k in range(CUTS):
            tokens = self.fed_server(server, self.rng.randint(1, 40))
            server.kill()
            size = self.rng.choice([0, self.rng.randrange(1, log.stat().st_size)])
            content = self.cut(log, size)
            line = self.refusal(server)
            self.assertIn("iron.db-wal has", line)
            self.assertIn("--accept-loss", line)
            log.write_bytes(content)  # what was lost is put back
            server.start()
            self.assertEqual(self.api(server).engine("e")["tokens"], tokens)

    def test_what_was_lost(self):
        """The engine, its position and the number of feeds; then the loss is accepted."""
        server = self.serve()
        self.fed_server(server, 3)
        server.stop()  # a checkpoint
        server.start()
        self.fed_server(server, 7)
        self.created(self.api(server), "new", nodes=1)
        server.kill()
        (server.data / "iron.db-wal").unlink()
        line = self.refusal(server)
        self.assertIn("engine e has lost 7 feeds: it is at position 300 and was at 1000", line)
        self.assertIn(", and 1 more;", line)
        server.set_options("--accept-loss")
        server.start()
        said = "\n".join(server.lines)
        self.assertIn("engine e has lost 7 feeds", said)
        self.assertIn("engine new is missing, with 0 feeds", said)
        self.assertIn("the loss of acknowledged data is accepted", said)
        self.assertEqual(self.api(server).engine("e")["tokens"], 300)
        server.kill()
        server.set_options()  # once is enough
        server.start()
        self.fed_server(server, 1)

    def test_a_lost_deletion(self):
        server = self.serve()
        self.fed_server(server, 1)
        server.stop()
        server.start()
        self.assertEqual(self.api(server).call("DELETE", "/v1/engines/e").status, 204)
        server.kill()
        (server.data / "iron.db-wal").unlink()
        self.assertIn("engine e had been deleted and is there", self.refusal(server))

    def test_an_older_database(self):
        """Another copy of the file is a loss, too, unless the marker goes with it."""
        server = self.serve()
        self.fed_server(server, 2)
        server.stop()
        old = (server.data / "iron.db").read_bytes()
        server.start()
        self.fed_server(server, 2)
        server.stop()
        (server.data / "iron.db").write_bytes(old)
        self.assertIn("engine e has lost 2 feeds", self.refusal(server))
        (server.data / "marker").unlink()
        server.start()
        self.assertEqual(self.api(server).engine("e")["tokens"], 200)

    def test_a_damaged_marker(self):
        server = self.serve()
        self.fed_server(server, 1)
        server.stop()
        (server.data / "marker").write_bytes(b"x" * 256)
        self.assertIn("marker cannot be read, or is damaged", self.refusal(server))

    def test_power_failures(self):
        """Without a cut there is no alarm; with one there is, whatever reached the disk."""
        disk = PowerDisk(self.dir)
        self.addCleanup(disk.end)
        try:
            disk.make()
            disk.cut_power()
            disk.power_on()
        except Unable as why:
            self.skipTest(str(why))
        server = Server(disk.place / "data")
        self.addCleanup(self._end, server)
        server.start()
        log = server.data / "iron.db-wal"
        for k in range(CUTS):
            tokens = self.fed_server(server, self.rng.randint(1, 60))
            disk.cut_power()
            server.kill()
            disk.power_on()
            if k % 2:
                size = self.rng.choice([0, self.rng.randrange(1, log.stat().st_size)])
                content = self.cut(log, size)
                self.assertIn("iron.db-wal has", self.refusal(server))
                log.write_bytes(content)
            server.start()
            self.assertEqual(self.api(server).engine("e")["tokens"], tokens)
