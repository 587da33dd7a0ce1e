# SPDX-License-Identifier: MIT
"""Power failures under load: acknowledged feeds survive.

kill -9 cannot tell whether fsync was called: the kernel keeps what was written.  So the data lie
on an ext4 of the test's own, and the server goes on with a copy of its raw image, made at one
moment under load (disks.py).  The same with fsync turned into nothing (no_sync.c) must lose acknowledged
feeds; if it does not, the simulated power failure is ineffective, and the test fails.

After a real power failure there are no responses.  Here the server runs on briefly, so an answer
counts only if it was there before the copy began.
"""

import os
import random
import time

from api import Gone, ServerTest
from disks import PowerDisk, Unable
from harness import LONG, SEED
from load import ENGINES, Load
from serving import NotServing, Server

ROUNDS = 40 if LONG else 3
CLIENTS = 8
FEEDS = 150
NO_SYNC = os.environ.get("IRON_TEST_NO_SYNC", "")


class PowerCut(ServerTest):
    def setUp(self):
        super().setUp()
        self.disk = PowerDisk(self.dir)
        self.addCleanup(self.disk.end)
        try:
            self.disk.make()
            self.disk.cut_power()  # whether it is possible here
            self.disk.power_on()
        except Unable as why:
            self.skipTest(str(why))
        self.rng = random.Random(f"{SEED} power")

    def on_disk(self, data="data", **kwargs) -> Server:
        server = Server(self.disk.place / data, **kwargs)
        self.addCleanup(self._end, server)
        return server.start()

    def cut(self, server, load):
        """Under load; then the process is killed, and the disk has what was on it at the cut."""
        load.run_until(FEEDS).announce()
        time.sleep(self.rng.uniform(0, 0.05))
        moment = time.monotonic()
        self.disk.cut_power()
        server.kill()
        load.join()
        load.forget_since(moment)
        self.disk.power_on()

    def test_acknowledged_feeds_survive(self):
        server = self.on_disk()
        load = Load(server, f"{SEED} power", threads=CLIENTS).create()
        unknown = known = 0
        for _ in range(ROUNDS):
            load.start()
            self.cut(server, load)
            unknown += len(load.pending())
            server.start()
            known += load.settle()
        load.prove()
        print(f"[{load.answered()} feeds, {unknown} without an answer, of which {known} were done]",
              end=" ", flush=True)
        server.restart()
        load.prove()

    def test_new_engine_survives(self):
        """Power fails right after creation: the folder and the database must be on the disk as
        well."""
        server = self.on_disk()
        api = self.api(server)
        self.created(api, "first", nodes=3)
        self.disk.cut_power()
        server.kill()
        self.disk.power_on()
        server.start()
        self.assertEqual(api.engine("first")["tokens"], 0)
        self.assertEqual(api.call("DELETE", "/v1/engines/first").status, 204)
        self.disk.cut_power()
        server.kill()
        self.disk.power_on()
        server.start()
        self.assertEqual(api.get("/v1/engines").json, {"engines": []})

    def test_feeds_are_lost_without_fsync(self):
        if not os.path.exists(NO_SYNC):
            self.skipTest("no library that turns fsync into nothing (IRON_TEST_NO_SYNC)")
        lost = 0
        for number in range(ROUNDS):
            server = self.on_disk(f"lying-{number}", env={"LD_PRELOAD": NO_SYNC})
            load = Load(server, f"{SEED} lying {number}", threads=CLIENTS).create().start()
            self.cut(server, load)
            lost += self.lost(server, load)
        self.assertGreater(lost, 0, "the cut is no cut: nothing was lost without fsync")

    def lost(self, server, load) -> int:
        """The number of missing acknowledged feeds; all, if the server does not start or stay up."""
        done = {name: sum(1 for f in load.feeds if f.engine == name and f.answer)
                for name in ENGINES}
        missing = 0
        try:
            api = self.api(server.start())
            for name, count in done.items():
                answer = api.get(f"/v1/engines/{name}")
                missing += max(0, count - (answer.json["feeds"] if answer.status == 200 else 0))
        except (NotServing, Gone):
            return sum(done.values())
        server.kill()
        return missing
