# SPDX-License-Identifier: MIT
"""Engines on a GPU behind the server (PoCL is enough): the same answers as on the CPU for small and
large bodies, over kills and restarts, and also after the device is gone."""

import os
import random

import exposition
from api import ServerTest, report_of
from harness import SEED, pack
from serving import wait_until

BODIES = (1, 5, 999, 1000, 40_000, 16_384, 16_385, 3, 100_001, 0, 7)  # tokens


class OnDevice(ServerTest):
    def setUp(self):
        super().setUp()
        found = {name: os.environ[name] for name in ("IRON_CUDA_LIBRARY", "IRON_OPENCL_LIBRARY")
                 if name in os.environ}
        self.instance = self.serve("--log", "json",
                                   env={"IRON_CUDA_LIBRARY": None, "IRON_OPENCL_LIBRARY": None,
                                        **found})
        self.client = self.api(self.instance)
        self.backend = next((b for b in ("cuda", "opencl") if self.client.create(
            "device", nodes=256, batch=1000, backend=b).status == 201), None)
        if not self.backend:
            self.skipTest("neither CUDA nor OpenCL is available")
        self.rng = random.Random(f"{SEED} devices")

    def both(self, tokens):
        """Feeds both engines; their reports must agree."""
        body = pack([self.rng.randrange(1000) for _ in range(tokens)])
        answers = [self.fed(self.client, name, body) for name in ("device", "cpu")]
        self.assertEqual(*map(report_of, answers))
        return answers[0]

    def same(self):
        engines = [self.client.engine(name) for name in ("device", "cpu")]
        self.assertEqual(*map(report_of, engines))
        return engines[0]

    def test_equal_over_kills_and_without_the_device(self):
        self.created(self.client, "cpu", nodes=256, batch=1000, backend="cpu")
        self.assertEqual(self.same()["backend"], self.backend)
        for k, tokens in enumerate(BODIES):
            self.both(tokens)
            if k == 5:
                self.instance.kill()
                self.instance.start()
                self.assertEqual(self.same()["backend"], self.backend)
        self.instance.env.update(IRON_CUDA_LIBRARY="none", IRON_OPENCL_LIBRARY="none")
        self.instance.restart()
        engine = self.same()
        self.assertEqual(engine["backend"], "cpu")
        self.assertIn(self.backend, engine["device_failure"].lower())
        self.assertNotIn("device_failure", self.client.engine("cpu"))
        families = exposition.parse(self.client.get("/metrics").body.decode())
        self.assertEqual(exposition.value(families, "iron_engines_moved_total"), 1)
        wait_until("the log tells", lambda: any(
            "engine device: its device failed, it continues on the CPU" in line
            for line in self.instance.lines))
        for tokens in BODIES:
            self.both(tokens)
