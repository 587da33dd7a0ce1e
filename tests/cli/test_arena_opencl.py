# SPDX-License-Identifier: MIT
"""`iron arena` on an OpenCL device; PoCL if there is no GPU."""

import json
import unittest

from arena_support import ATAX_GPU, STRATEGIES, Races, row_name
from harness import FULL, REPO, TIMEOUT_S, iron, parse_json

try:
    import jsonschema
except ImportError:  # the keys are checked in any case
    jsonschema = None


class Opencl(Races):
    """The first OpenCL device, even if it is a CPU, because it is requested by name."""

    STREAMS = 3

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        info = parse_json(iron("info", "--backend", "opencl", "--json").out)
        opencl = next(b for b in info["backends"] if b["name"] == "opencl")
        if not opencl["devices"]:
            raise unittest.SkipTest(f"no OpenCL device: {opencl['reason']}")
        cls.devices = opencl["devices"]
        cls.device = opencl["devices"][0]
        atax = ATAX_GPU if FULL else ("naive", "single-pass")
        cls.contenders = [f"atax.opencl.{name}" for name in atax]
        cls.contenders.append("tokens.opencl.champion")
        globs = ["atax.opencl.*", "tokens.opencl.champion"] if FULL else cls.contenders
        # building all kernels can take minutes on a slow machine
        cls.result = iron("arena", *globs, "--size",
                          "33x31,5000", "--runs", 2, "--streams", cls.STREAMS, "--device", 0,
                          "--json", "-", timeout=20 * TIMEOUT_S, cwd=cls.home)
        if cls.result.code != 0:
            raise AssertionError(str(cls.result))
        cls.document = parse_json(cls.result.out)
        cls.rows = cls.document["results"]

    def test_stderr_is_empty(self):
        self.assertEqual(self.result.err, b"")

    def test_every_memory_strategy_is_verified(self):
        offered = set(self.device["memory"])
        for name in self.contenders:
            rows = {row["memory"]: row for row in self.rows if row_name(row) == name}
            self.assertEqual(set(rows), STRATEGIES, name)
            for memory, row in rows.items():
                with self.subTest(name=name, memory=memory):
                    self.assertEqual(row["device"], self.device["name"])
                    if memory not in offered:
                        self.assertEqual(row["status"], "skipped")
                        self.assertTrue(row["reason"])
                        continue
                    self.assertEqual((row["status"], row["verified"]), ("ok", True), row["reason"])
                    self.assertEqual(row["params"].get("streams", self.STREAMS), self.STREAMS)

    def test_scopes(self):
        for row in self.rows:
            if row["status"] != "ok":
                continue
            self.assertLessEqual({"prepare", "kernel", "end_to_end"}, set(row["scopes"]))
            for name, scope in row["scopes"].items():
                self.assertEqual(len(scope["samples"]), 1 if name == "prepare" else 2,
                                 (row_name(row), row["memory"], name))

    def test_kernel_details_are_reported(self):
        for row in self.rows:
            if row["status"] != "ok":
                continue
            with self.subTest(name=row_name(row), memory=row["memory"]):
                self.assertTrue(row["kernels"])
                for kernel in row["kernels"]:
                    self.assertTrue(kernel["name"].startswith(("atax", "tokens")), kernel)
                    self.assertGreater(kernel["groups"] * kernel["threads"], 0)
                    for key in ("registers", "groups_per_unit", "occupancy_percent"):
                        self.assertNotEqual(kernel.get(key), 0)

    def test_baselines(self):
        for row in self.rows:
            expected = "naive" if row["op"] == "atax" else "reduce"
            if (row["contender"], row["memory"]) == (expected, "pageable"):
                self.assertEqual(row["speedup"], 1)

    def test_only_ceilings_of_the_device_are_measured(self):
        self.assertEqual({c["backend"] for c in self.document["ceilings"]}, {"opencl"})
        names = {c["name"] for c in self.document["ceilings"]}
        self.assertLessEqual({"read", "write", "copy", "to_device_pinned"}, names)

    def test_schema(self):
        if jsonschema is None:
            self.skipTest("python3-jsonschema is not installed")
        schema = json.loads((REPO / "docs/schema/arena-1.json").read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator(schema).validate(self.document)

    def test_one_strategy(self):
        rows = self.plan("atax.opencl.naive", "--size", "5x5", "--memory", "pinned,uvm")
        self.assertEqual([row[1] for row in rows], ["pinned", "uvm"])

    def test_cpu_device_is_raced_only_on_request(self):
        if any(device["is_gpu"] for device in self.devices):
            self.skipTest("there is an OpenCL GPU here")
        for globs in ([], ["*"], ["atax.*"], ["atax"]):
            with self.subTest(globs=globs):
                self.assertNotIn("opencl", {name.split(".")[1] for name, *_ in self.plan(*globs)})
        self.refused("arena", "atax.open*", says=("no GPU", "glob"))

    def test_missing_device_is_refused(self):
        result = self.arena("atax.opencl.naive", "--size", "5x5", "--runs", 1, "--device", 99)
        self.assertEqual(result.code, 2, str(result))
        self.assertRegex(result.message, r"\Airon: [^\n]*no device 99[^\n]*\n\Z")


if __name__ == "__main__":
    unittest.main()
