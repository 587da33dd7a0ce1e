# SPDX-License-Identifier: MIT
"""GPUs through the command: every mode and memory strategy gives what the CPU gives.

An OpenCL device is enough, also one that is a CPU (PoCL); without any, the classes that need one
are skipped with the reason that `iron info` gives.  The rest runs everywhere: errors, messages
about missing and broken drivers, and that no driver is loaded unless one is needed.

Modes that read every token once a node get the golden cases where that stays small.
"""

import os
import re
import unittest

from harness import (DTYPE_MAX, DTYPES, REDUCED, IronTest, config_options, iron,
                     load_golden, npy, oracle, pack, parse_json)

GPU_MODES = ("atomic2d", "node", "hybrid", "tiled", "tiled-wide", "tiled-vector", "hybrid-vector",
             "reduce", "champion")
ONE_READ_MODES = ("reduce", "champion")  # the others take time proportional to nodes x tokens
PAIRS_MAX = 5_000_000 if REDUCED else 20_000_000
STRATEGIES = ("pageable", "pinned", "streams", "uvm", "uvm-prefetch", "zero-copy")
DEVICE_KEYS = ("index", "name", "driver", "units", "version", "memory_bytes", "cache_bytes",
               "is_gpu", "memory")
CEILING_KEYS = ("read_gb_s", "write_gb_s", "copy_gb_s", "to_device_pageable_gb_s",
                "to_device_pinned_gb_s", "from_device_pinned_gb_s", "zero_copy_gb_s", "read_shape",
                "passes", "buffer_bytes")
DRIVERS = ("libcuda", "libOpenCL", "libpocl")
GOLDEN = load_golden()
CASES = {case["name"]: case for case in GOLDEN["cases"]}


def backend_of(info: dict, name: str) -> dict:
    return next(b for b in info["backends"] if b["name"] == name)


class OpenclTest(IronTest):
    """A test that needs an OpenCL device: the first one, `self.device`."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        info = parse_json(iron("info", "--backend", "opencl", "--json").out)
        opencl = backend_of(info, "opencl")
        if not opencl["devices"]:
            raise unittest.SkipTest(f"no OpenCL device: {opencl['reason']}")
        cls.device = opencl["devices"][0]

    def feed_gpu(self, *args, **kwargs) -> dict:
        report = self.feed(*args, backend="opencl", **kwargs)
        self.assertEqual((report["backend"], report["device"]), ("opencl", self.device["name"]))
        return report

    def case_files(self, case: dict) -> tuple:
        """A golden case's file of tokens, and its options."""
        config = oracle.golden_config(case)
        activations = None
        if config.activations is not None:
            activations = self.write("activations.npy", npy(config.activations))
        path = self.write_tokens("tokens.bin", oracle.golden_tokens(case))
        return path, config_options(config, activations) + ["--dtype", "u32"]


class Golden(OpenclTest):
    def modes_for(self, case: dict) -> tuple:
        tokens = len(oracle.golden_tokens(case))
        return GPU_MODES if tokens * case["nodes"] <= PAIRS_MAX else ONE_READ_MODES

    def test_every_mode(self):
        for case in CASES.values():
            path, options = self.case_files(case)
            for mode in self.modes_for(case):
                with self.subTest(case=case["name"], mode=mode):
                    report = self.feed_gpu(path, *options, "--mode", mode)
                    self.assert_report(case["expect"], report)
                    self.assertEqual(report["mode"], mode)
                    self.assertIn(report["memory"], self.device["memory"])

    def test_final_arrays(self):
        for name in ("wrap", "gen-small", "gen-batch-positions", "gen-lattice", "gen-past-2^24"):
            case = CASES[name]
            path, options = self.case_files(case)
            for mode in ("hybrid", "champion"):
                with self.subTest(case=name, mode=mode):
                    self.feed_gpu(path, *options, "--mode", mode, "--state", "run.state")
                    state = self.read_state("run.state")
                    self.assert_report(case["expect"], state)
                    for key in ("xor_accumulators", "potentials"):
                        if key in case["expect"]:
                            self.assertEqual(case["expect"][key], state[key])
                    self.assertEqual(case["expect"]["state"], oracle.state_hash(
                        state["xor_accumulators"], state["potentials"]))

    def test_seals(self):
        for case in GOLDEN["seals"]:
            tokens = oracle.golden_tokens(case)
            with self.subTest(seal=case["name"]):
                report = self.feed_gpu("-", "--dtype", "u32", "--nodes", 16, "--seal",
                                       stdin=pack(tokens))
                self.assertEqual(case["seal"], report["seal"])

    def test_empty_stream(self):
        for mode in GPU_MODES:
            with self.subTest(mode=mode):
                report = self.feed_gpu("-", "--dtype", "u32", "--nodes", 5, "--mode", mode)
                self.assert_report(oracle.Engine(oracle.Config(nodes=5)).report(), report)

    def test_registry_names_are_modes(self):
        path, options = self.case_files(CASES["gen-small"])
        report = self.feed_gpu(path, *options, "--mode", "tokens.opencl.tiled-vector")
        self.assertEqual(report["mode"], "tiled-vector")
        self.assert_report(CASES["gen-small"]["expect"], report)


class Memory(OpenclTest):
    def test_offered_strategies(self):
        case = CASES["gen-seed-batch"]  # 6 MiB: more than a slot takes
        path, options = self.case_files(case)
        data = path.read_bytes()
        for strategy in self.device["memory"]:
            for args, stdin in (([path], b""), (["-"], data)):
                with self.subTest(strategy=strategy, source=args[0]):
                    report = self.feed_gpu(*args, *options, "--memory", strategy, stdin=stdin)
                    self.assert_report(case["expect"], report)
                    self.assertEqual(report["memory"], strategy)

    def test_offered_strategies_with_other_widths(self):
        case = CASES["gen-batch-positions"]
        options = config_options(oracle.golden_config(case))
        path = self.write_tokens("narrow.bin", oracle.golden_tokens(case), "u16")
        for strategy in self.device["memory"]:
            with self.subTest(strategy=strategy):
                report = self.feed_gpu(path, *options, "--dtype", "u16", "--memory", strategy,
                                       "--mode", "hybrid-vector")
                self.assert_report(case["expect"], report)

    def test_unsupported_strategies_are_refused(self):
        missing = [s for s in STRATEGIES if s not in self.device["memory"]]
        if not missing:
            self.skipTest("this device offers all of them")
        for strategy in missing:
            with self.subTest(strategy=strategy):
                self.refused("feed", "-", "--dtype", "u32", "--backend", "opencl", "--memory",
                             strategy, says=(strategy, "not available"))

    def test_auto_chooses_an_offered_strategy(self):
        for option in ([], ["--memory", "auto"]):
            report = self.feed_gpu("-", "--dtype", "u32", *option, stdin=pack([1, 2, 3]))
            self.assertIn(report["memory"], self.device["memory"])

    def test_unknown_strategies(self):
        for strategy in ("", "fast", "Pinned", "zero_copy"):
            with self.subTest(strategy=strategy):
                self.refused("feed", "-", "--dtype", "u32", "--backend", "opencl", "--memory",
                             strategy, says=("unknown memory strategy",) + STRATEGIES)


class Inputs(OpenclTest):
    OPTIONS = ("--nodes", 33, "--batch", 1000, "--vocab", 4099)

    def expected(self, tokens) -> dict:
        return oracle.Engine(oracle.Config(vocab=4099, nodes=33, batch=1000)).feed(tokens).report()

    def test_every_width_from_files_and_pipes(self):
        for dtype in DTYPES:
            tokens = oracle.gen(21, 12345, DTYPE_MAX[dtype] + 1)
            path = self.write_tokens("tokens.bin", tokens, dtype)
            expected = self.expected(tokens)
            for mode in ("champion", "tiled"):
                with self.subTest(dtype=dtype, mode=mode):
                    options = ["--dtype", dtype, *self.OPTIONS, "--mode", mode]
                    self.assert_report(expected, self.feed_gpu(path, *options))
                    self.assert_report(expected, self.feed_gpu("-", *options,
                                                               stdin=path.read_bytes()))

    def test_directory(self):
        tokens = oracle.gen(22, 5000, 50257)
        for number, (begin, end) in enumerate(((0, 1), (1, 1), (1, 2222), (2222, 5000))):
            self.write_tokens(f"corpus/part-{number}.bin", tokens[begin:end])
        report = self.feed_gpu("corpus", "--dtype", "u32", *self.OPTIONS)
        self.assert_report(self.expected(tokens), report)

    def test_invalid_tokens_are_refused(self):
        for dtype, value in (("i64", -1), ("i64", 2**32), ("i32", -5)):
            tokens = [7] * 5000 + [value]
            for strategy in ("pageable", "streams"):
                with self.subTest(dtype=dtype, value=value, strategy=strategy):
                    if strategy not in self.device["memory"]:
                        self.skipTest(f"the device does not offer {strategy}")
                    self.refused("feed", "-", "--dtype", dtype, "--backend", "opencl", "--memory",
                                 strategy, "--state", "run.state", stdin=pack(tokens, dtype),
                                 says=str(value))

    def test_missing_devices_are_refused(self):
        for device, says in ((99, "device 99 does not exist"),
                             (2**32 - 1, f"device {2**32 - 1} does not exist"),
                             (2**32, f"must be 0 to {2**32 - 1}")):
            with self.subTest(device=device):
                self.refused("feed", "-", "--dtype", "u32", "--backend", "opencl", "--device",
                             device, says=says)

    def test_cpu_modes_are_refused(self):
        for mode in ("scalar", "vector", "threads", "fast", "tokens.cpu.scalar"):
            with self.subTest(mode=mode):
                self.refused("feed", "-", "--dtype", "u32", "--backend", "opencl", "--mode", mode,
                             says=("opencl", re.escape(mode)) + GPU_MODES)

    def test_slow_mode_warns_before_it_runs(self):
        tokens = 7000 * self.device["units"] * (20 if self.device["is_gpu"] else 1)
        path = self.write("many.bin", bytes(4 * tokens))
        note = self.first_line("feed", path, "--dtype", "u32", "--nodes", 2**20, "--mode", "node",
                               "--backend", "opencl")
        self.assertRegex(note, r"\Airon: note: mode node .*about \d+ minutes; .*champion.*\n\Z")


class Resume(OpenclTest):
    """A stream that starts on one backend and continues on another."""

    def test_across_backends(self):
        tokens = oracle.gen(23, 9000, 2**32)
        options = ["--nodes", 100, "--batch", 512, "--vocab", 777, "--dtype", "u32", "--seal"]
        engine = oracle.Engine(oracle.Config(vocab=777, nodes=100, batch=512))
        engine.feed(tokens[:4001]).feed(tokens[4001:])  # resuming begins a new batch
        expected = dict(engine.report(), seal=oracle.seal(tokens))
        for first, second in (("cpu", "opencl"), ("opencl", "cpu"), ("opencl", "opencl")):
            with self.subTest(first=first, second=second):
                self.feed("-", *options, "--state", "half.state", backend=first,
                          stdin=pack(tokens[:4001]))
                report = self.feed("-", "--dtype", "u32", "--resume", "half.state", "--state",
                                   "whole.state", backend=second, stdin=pack(tokens[4001:]))
                self.assertEqual(report["backend"], second)
                self.assert_report(expected, report)
                self.assert_nodes(engine, self.read_state("whole.state"))

    def test_mode_and_memory_come_from_the_options(self):
        self.feed("-", "--dtype", "u32", "--nodes", 9, "--state", "run.state", stdin=pack([1]))
        report = self.feed_gpu("-", "--dtype", "u32", "--resume", "run.state", "--mode", "reduce",
                               "--memory", "pageable", stdin=pack([2, 3]))
        self.assertEqual((report["mode"], report["memory"]), ("reduce", "pageable"))
        self.refused("feed", "-", "--dtype", "u32", "--resume", "run.state", "--backend", "opencl",
                     "--memory", "fast", says="unknown memory strategy")


class Several(OpenclTest):
    """Several devices share a stream.  PoCL shows three, unless another driver has the first."""

    ENV = {"POCL_DEVICES": "pthread pthread pthread"}
    LISTS = ("all", "0,0", "0,0,0")
    COUNT = 1_100_003  # each device gets a range

    def setUp(self):
        super().setUp()
        self.path = self.dir / "tokens.bin"
        self.succeeds("gen", "--seed", 5, "--count", self.COUNT, "--limit", 60000, "--dtype",
                      "u16", "-o", self.path)
        self.options = [self.path, "--dtype", "u16"]

    def test_feed(self):
        for extra in ([], ["--seal", "--batch", 1001], ["--batch", 30, "--lattice", "1,65535"]):
            expected = self.feed(*self.options, *extra)
            for devices in self.LISTS:
                with self.subTest(extra=extra, devices=devices):
                    report = self.feed(*self.options, *extra, "--device", devices,
                                       backend="opencl", env=self.ENV)
                    self.assert_report(expected, report)

    def test_states_and_checkpoints(self):
        whole = self.feed(*self.options, "--seal", "--state", "whole")
        for devices in self.LISTS:
            self.feed(*self.options, "--seal", "--state", "shared", "--batch", 786432, "--every",
                      "400k", "--device", devices, backend="opencl", env=self.ENV)
            self.assertEqual((self.dir / "shared").read_bytes(), (self.dir / "whole").read_bytes())
            again = self.feed(*self.options, "--resume", "shared", "--device", devices,
                              backend="opencl", env=self.ENV)
            self.assert_report(self.feed(*self.options, "--resume", "whole"), again)
        self.assertEqual(whole["tokens"], self.COUNT)

    def test_sum_and_check(self):
        seal = self.succeeds("sum", *self.options).text.split()[0]
        for devices in self.LISTS:
            where = ["--backend", "opencl", "--device", devices]
            line = self.succeeds("sum", *self.options, *where, env=self.ENV).text
            self.assertEqual(line.split()[0], seal)
            self.write("list", line.encode())
            self.succeeds("check", "list", *where, env=self.ENV)
            piped = self.succeeds("sum", "-", "--dtype", "u16", *where, env=self.ENV,
                                  stdin=self.path.read_bytes())
            self.assertEqual(piped.text.split()[0], seal)

    def test_all_without_a_gpu_is_the_cpu(self):
        absent = {"IRON_CUDA_LIBRARY": "none", "IRON_OPENCL_LIBRARY": "none"}
        report = self.json("feed", *self.options, "--device", "all", env=absent)
        self.assert_report(self.feed(*self.options), report)
        self.assertEqual(report["backend"], "cpu")

    def test_refusals(self):
        feed = ["feed", *self.options, "--state", "none", "--backend", "opencl", "--device"]
        for devices, says in (("0,99", "device 99"), ("0,", "all"), ("first", "first"),
                              ("0;1", "0;1")):
            self.refused(*feed, devices, says=says, env=self.ENV)
        self.refused(*feed, "0,0", "--mode", "node", says="champion", env=self.ENV)
        self.refused("sum", *self.options, "--backend", "cpu", "--device", "0,0", says="one")
        self.assertFalse((self.dir / "none").exists())

    def test_arena_races_each(self):
        rows = self.json_file("arena", "tokens.opencl.champion", "--size", 1000, "--runs", 1,
                              "--scope", "kernel", "--memory", "pageable", "--device", "all")
        devices = [d for d in rows["devices"] if d["backend"] == "opencl"]
        raced = sorted(row["device"] for row in rows["results"])
        self.assertEqual(raced, sorted(d["name"] for d in devices))
        self.assertEqual(len(set(raced)), len(raced))

    def json_file(self, *args) -> dict:
        self.iron(*args, "--json", "report.json", env=self.ENV)
        return parse_json((self.dir / "report.json").read_bytes())


class Measure(OpenclTest):
    """`iron info --measure` of one device, and its effect on `--mode auto`."""

    NOTE = r"\Airon: note: calibration not saved for opencl device 0: [^\n]+\n\Z"

    def measured(self, *, env, code=0) -> tuple:
        result = self.iron("info", "--backend", "opencl", "--measure", "--json", env=env)
        self.assertEqual(result.code, code, str(result))
        return backend_of(parse_json(result.out), "opencl")["devices"][0], result.message

    def mode_reason(self, env) -> str:
        return self.feed_gpu("-", "--dtype", "u32", "--nodes", 4, env=env)["mode_reason"]

    def assert_ceilings(self, ceilings: dict):
        self.assertEqual(set(CEILING_KEYS), set(ceilings))
        for key in CEILING_KEYS:
            if key not in ("read_shape", "zero_copy_gb_s"):
                self.assertGreater(ceilings[key], 0, key)
        self.assertEqual(ceilings["zero_copy_gb_s"] > 0, "zero-copy" in self.device["memory"])
        self.assertRegex(ceilings["read_shape"], r"\A\d+ x \d+ threads a unit, ")

    def test_calibration_is_stored_and_used(self):
        env = {"IRON_CACHE_DIR": str(self.dir / "cache")}
        self.assertIn("not calibrated", self.mode_reason(env))
        device, message = self.measured(env=env)
        self.assertEqual(message, "")
        self.assertEqual([], [k for k in DEVICE_KEYS if k not in device])
        self.assert_ceilings(device["ceilings"])
        self.assertEqual(device["calibration"],
                         {"kept": True, "folder": str(self.dir / "cache")})
        reason = self.mode_reason(env)
        self.assertIn("calibrated", reason)
        self.assertNotIn("not calibrated", reason)

    @unittest.skipIf(REDUCED, "seconds of measuring, as for the unwritable folder: set IRON_TEST_FULL=1")
    def test_missing_calibration_folder(self):
        env = {"IRON_CACHE_DIR": None, "XDG_CACHE_HOME": None, "HOME": None}
        device, message = self.measured(env=env)
        self.assert_ceilings(device["ceilings"])
        self.assertFalse(device["calibration"]["kept"])
        self.assertRegex(message, self.NOTE)
        self.assertIn("IRON_CACHE_DIR", message)

    def test_unwritable_calibration_folder(self):
        self.write("file", b"")
        device, message = self.measured(env={"IRON_CACHE_DIR": str(self.dir / "file" / "cache")})
        self.assertFalse(device["calibration"]["kept"])
        self.assertTrue(device["calibration"]["reason"])
        self.assertRegex(message, self.NOTE)

    def test_missing_device_is_refused(self):
        for option in ([], ["--measure"], ["--json"]):
            self.refused("info", "--backend", "opencl", "--device", 99, *option,
                         says="device 99 does not exist")


class Info(IronTest):
    def test_every_backend_is_listed_with_a_reason_if_missing(self):
        info = self.json("info")
        self.assertEqual([b["name"] for b in info["backends"]], ["cpu", "cuda", "opencl"])
        for backend in info["backends"]:
            self.assertEqual(backend["available"], backend["reason"] == "", backend)
            self.assertEqual(backend["available"], bool(backend["devices"]), backend)
            for index, device in enumerate(backend["devices"]):
                if backend["name"] != "cpu":
                    self.assertEqual(set(DEVICE_KEYS), set(device))
                    self.assertEqual(device["index"], index)
                    self.assertRegex(device["version"], r"\A\d+\.\d\Z")
                    self.assertLessEqual(set(device["memory"]), set(STRATEGIES))
        for name in ("cuda", "opencl"):
            self.assertEqual([m["name"] for m in backend_of(info, name)["modes"]], list(GPU_MODES))

    def test_text_has_the_same_values_within_100_columns(self):
        text = self.succeeds("info").text
        info = self.json("info")
        self.assertLessEqual(max(map(len, text.splitlines())), 100)
        there = [b["name"] for b in info["backends"] if b["available"] and b["name"] != "cpu"]
        self.assertEqual(text.count("modes of "), 2 if there else 1)
        if there:
            self.assertIn(f"modes of {' and '.join(there)}\n", text)
        for backend in info["backends"]:
            for device in backend["devices"]:
                self.assertIn(device["name"].split()[0], text)
        self.assertIn(f"cache folder: {info['cache_folder']}\n", text)

    def test_one_backend(self):
        for name in ("cpu", "cuda", "opencl"):
            info = self.json("info", "--backend", name)
            self.assertEqual([b["name"] for b in info["backends"]], [name])
            self.assertIn(name, self.succeeds("info", "--backend", name).text)
        every, auto = self.json("info"), self.json("info", "--backend", "auto")
        for device in backend_of(every, "opencl")["devices"] + backend_of(auto, "opencl")["devices"]:
            del device["memory_bytes"]  # PoCL's depends on what is free
        self.assertEqual(every, auto)

    def test_measuring_only_the_cpu(self):
        info = self.json("info", "--backend", "cpu", "--measure", "--threads", 1)
        self.assertEqual([b["name"] for b in info["backends"]], ["cpu"])
        for key in ("read", "write", "copy", "triad"):
            self.assertGreater(info["ceilings"][key]["all_threads_gb_s"], 0)
            self.assertIn("1 thread, ", info["ceilings"][key]["shape"])

    def test_invalid_options_are_refused(self):
        self.refused("info", "--backend", "vulkan", says=("vulkan", "cpu", "cuda", "opencl"))
        self.refused("info", "--backend", "", says="unknown backend")
        self.refused("info", "--device", 0, says="--backend")
        self.refused("info", "--device", 1, "--backend", "auto", says="--backend")
        self.refused("info", "--device", 1, "--backend", "cpu", says="only device 0")
        self.refused("info", "--device", "first", "--backend", "opencl", says="first")

    def test_help_of_feed_lists_all_modes(self):
        text = " ".join(self.succeeds("feed", "--help").text.split())
        for backend in self.json("info")["backends"]:
            for mode in backend["modes"]:
                self.assertRegex(text, rf"[ (]{mode['name']}[,;]")
        self.assertIn(", ".join(STRATEGIES), text)
        for name in ("auto", "cpu", "cuda", "opencl"):
            self.assertIn(name, text)


class Drivers(IronTest):
    """A missing or broken driver is reported in one line; everything else still works."""

    VARIABLES = {"cuda": "IRON_CUDA_LIBRARY", "opencl": "IRON_OPENCL_LIBRARY"}

    def libraries(self) -> list:
        """Paths that are not libraries; the last one is a library but not a driver."""
        return ["/nowhere/libdriver.so.1", str(self.write("text.so", b"not a library\n")),
                str(self.dir), "libm.so.6"]

    def is_left_out(self, backend: str) -> bool:
        """Builds without nvcc, or without a backend's folder, do not search for a driver."""
        reason = backend_of(self.json("info", "--backend", backend), backend)["reason"]
        return "this build" in reason

    def test_invalid_libraries_are_reported(self):
        for name, variable in self.VARIABLES.items():
            if self.is_left_out(name):
                continue
            for library in self.libraries():
                with self.subTest(backend=name, library=library):
                    env = {variable: library}
                    backend = backend_of(self.json("info", env=env), name)
                    self.assertFalse(backend["available"])
                    self.assertEqual(backend["devices"], [])
                    self.assertRegex(backend["reason"],
                                     f"{re.escape(os.path.basename(library))}|it has no cuInit")
                    self.assertNotIn("\n", backend["reason"])
                    lines = self.succeeds("info", env=env).text.splitlines()
                    self.assertLessEqual(max(map(len, lines)), 100)

    def test_feeding_without_a_driver(self):
        for name, variable in self.VARIABLES.items():
            with self.subTest(backend=name):
                self.refused("feed", "-", "--dtype", "u32", "--backend", name,
                             env={variable: "/nowhere/libdriver.so.1"},
                             says=(f"backend {name} is absent", "--backend cpu"))

    def test_measuring_without_a_driver(self):
        for name, variable in self.VARIABLES.items():
            with self.subTest(backend=name):
                self.refused("info", "--backend", name, "--measure",
                             env={variable: "/nowhere/libdriver.so.1"},
                             says=f"backend {name} is absent")

    def test_auto_uses_the_cpu_without_drivers(self):
        env = {variable: "/nowhere/libdriver.so.1" for variable in self.VARIABLES.values()}
        report = self.json("feed", "-", "--dtype", "u32", "--nodes", 4, stdin=pack([1]), env=env)
        self.assertEqual((report["backend"], report["memory"]), ("cpu", "pageable"))
        for strategy in STRATEGIES[1:]:
            self.refused("feed", "-", "--dtype", "u32", "--memory", strategy, env=env,
                         says=f"memory strategy {strategy} is for GPUs; backend cpu has auto and "
                              "pageable")

    def test_memory_on_the_cpu(self):
        self.assertEqual(self.feed("-", "--dtype", "u32", "--memory", "auto")["memory"], "pageable")
        self.refused("feed", "-", "--dtype", "u32", "--backend", "cpu", "--memory", "fast",
                     says="unknown memory strategy 'fast'; use auto or pageable")


class NothingLoaded(IronTest):
    """No driver is loaded for the CPU backend, or when nothing is computed, according to the log of
    the dynamic linker."""

    def loaded(self, *args) -> str:
        self.succeeds(*args, env={"LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": str(self.dir / "log")})
        logs = list(self.dir.glob("log.*"))
        text = "".join(log.read_text(errors="replace") for log in logs)
        for log in logs:
            log.unlink()
        return text

    def test_no_driver_is_loaded(self):
        if not any(driver in self.loaded("info") for driver in DRIVERS):
            self.skipTest("the dynamic linker does not tell what is loaded")
        self.feed("-", "--dtype", "u32", "--nodes", 4, "--state", "run.state", stdin=pack([1]))
        for args in (["info", "--backend", "cpu"], ["info", "--backend", "cpu", "--json"],
                     ["feed", "run.state", "--dtype", "u8", "--backend", "cpu"],
                     ["feed", "-", "--dtype", "u32", "--resume", "run.state", "--backend", "cpu"],
                     ["state", "run.state"], ["state", "run.state", "--json"],
                     ["quantize", "1"], ["feed", "--help"],
                     ["gen", "--seed", 1, "--count", 1, "--limit", 2, "-o", "-"]):
            with self.subTest(args=args):
                log = self.loaded(*args)
                self.assertEqual([], [driver for driver in DRIVERS if driver in log])


if __name__ == "__main__":
    unittest.main()
