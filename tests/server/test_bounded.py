# SPDX-License-Identifier: MIT
"""Concurrent uploads that are larger than the memory limit of the server: memory stays bounded.

Eight of 64 MiB with every change; thirty-two of a gibibyte with IRON_TEST_LONG=1.  The resident
memory at its highest (VmHWM) is below 200 MiB, and what was fed is right.
"""

import threading
import unittest
from pathlib import Path

from api import Api, ServerTest, report_of
from harness import LONG, SANITIZED, iron, oracle
from model import by_command, plan_of

MIB = 1 << 20
MOST_MIB = 200
PIECE = 4 * MIB
CONFIG = oracle.Config(nodes=4096)


class Bounded(ServerTest):
    def setUp(self):
        super().setUp()
        self.instance = self.serve()
        self.piece = self.dir / "piece"
        done = iron("gen", "--seed", 3, "--count", PIECE // 4, "--limit", 50257, "-o", self.piece)
        self.assertEqual(done.code, 0, str(done))

    def upload(self, name, repeats, data, answers, has_length):
        api = Api(self.instance, timeout=3600)
        body = (data for _ in range(repeats))
        headers = {"Content-Type": "application/octet-stream"}
        if has_length:
            headers["Content-Length"] = str(len(data) * repeats)
        answers[name] = api.call("POST", f"/v1/engines/{name}/feed", body, headers,
                                 is_chunked=not has_length)
        api.close()

    def race(self, uploads, mib):
        api, repeats = self.api(self.instance), mib * MIB // PIECE
        names = [f"u{k}" for k in range(uploads)]
        for name in names:
            self.created(api, name, **plan_of(CONFIG))
        answers, data = {}, self.piece.read_bytes()
        threads = [threading.Thread(target=self.upload, args=(name, repeats, data, answers, k % 2))
                   for k, name in enumerate(names)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([answers[name].status for name in names], [200] * uploads)
        peak = self.instance.peak_mib()
        expected = self.serial(data, repeats)
        for name in names:
            self.assertEqual(report_of(answers[name].json), expected)
            self.assertEqual(report_of(api.engine(name)), expected)
        return peak

    def serial(self, data, repeats) -> dict:
        path = self.dir / "whole"
        with open(path, "wb") as file:
            for _ in range(repeats):
                file.write(data)
        expected = report_of(by_command(CONFIG, [(path, "u32")], self.dir))
        path.unlink()
        return expected

    def test_concurrent_uploads(self):
        peak = self.race(4 if SANITIZED else 8, 16 if SANITIZED else 64)
        if not SANITIZED:  # which needs more memory
            self.assertLess(peak, MOST_MIB)

    def test_successive_uploads_do_not_accumulate(self):
        api = self.api(self.instance)
        self.created(api, "e", nodes=1, batch=1000)
        data = self.piece.read_bytes()
        self.fed(api, "e", data)
        before = self.instance.peak_mib()
        for _ in range(2 if SANITIZED else 12):
            self.fed(api, "e", data)  # more than a thousand batches each
        if not SANITIZED:
            self.assertLess(self.instance.peak_mib(), before + 48)

    @unittest.skipUnless(LONG and not SANITIZED, "32 gibibytes: set IRON_TEST_LONG=1")
    def test_thirty_two_uploads_of_one_gibibyte(self):
        self.assertLess(self.race(32, 1024), MOST_MIB)


class Drivers(ServerTest):
    """OpenCL's libraries take tens of MiB; only engines that name it load them."""

    FILES = ("nvidiactl", "nvhost-gpu", "dri", "kfd", "dxg", "mali0", "kgsl-3d0")

    def test_drivers_are_loaded_when_named(self):
        if any((Path("/dev") / name).exists() for name in self.FILES):
            self.skipTest("this machine has a GPU, which backend auto looks at")
        server = self.serve(env={"IRON_CUDA_LIBRARY": "", "IRON_OPENCL_LIBRARY": ""})
        client = self.api(server)

        def is_loaded():
            maps = Path(f"/proc/{server.process.pid}/maps").read_text(encoding="utf-8")
            return "libOpenCL" in maps

        self.assertEqual(self.created(client, "e")["backend"], "cpu")
        backends = {b["name"]: b for b in client.get("/v1/info").json["backends"]}
        self.assertFalse(is_loaded())
        self.assertIn("not looked for", backends["opencl"]["reason"])
        named = client.create("named", backend="opencl")
        if named.status != 201:
            self.skipTest("OpenCL is not available here")
        self.assertTrue(is_loaded())
        backends = {b["name"]: b for b in client.get("/v1/info").json["backends"]}
        self.assertTrue(backends["opencl"]["is_available"])
