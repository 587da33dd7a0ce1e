# SPDX-License-Identifier: MIT
"""The golden vectors through the command: every mode, thread count and kind of input.

The vectors were made by an independent program.  Each engine case is fed

  * in every CPU mode, from a file and from a pipe (`iron gen ... | iron feed -`),
  * by 1 to 8 threads,
  * with `--state`, after which the arrays that `iron state` reads out must be the
    golden ones, or, where the vector has no arrays, hash to the golden state;

and must give the same tokens, batches, xor, sum and state.  `node` and `hybrid` do work
in proportion to nodes x tokens and get the cases where that stays small.  The seals and
the tables of `quantize` are the rest of the file.
"""

import subprocess
import unittest

from harness import (CPU_MODES, GOLDEN_PATH, NODE_MODES, REDUCED, REPO, IronTest, argv,
                     config_options, environment, load_golden, npy, oracle, pack)

NODE_MODE_LIMIT = 20_000_000 if REDUCED else 200_000_000
GOLDEN = load_golden()
CASES = {case["name"]: case for case in GOLDEN["cases"]}


def token_count(case: dict) -> int:
    return len(case["tokens"]) if "tokens" in case else case["gen"]["count"]


def modes_for(case: dict) -> list[str]:
    affordable = token_count(case) * case["nodes"] <= NODE_MODE_LIMIT
    return [m for m in CPU_MODES if affordable or m not in NODE_MODES]


def gen_args(case: dict, target="-") -> list:
    made = case["gen"]
    return ["gen", "--seed", made["seed"], "--count", made["count"], "--limit", made["limit"],
            "--dtype", "u32", "-o", target]


class GoldenTest(IronTest):
    """Shared by the cases: their options, and their tokens as a file or through a pipe."""

    def options(self, case: dict) -> list:
        config = oracle.golden_config(case)
        activations = None
        if config.activations is not None:
            activations = self.write("activations.npy", npy(config.activations))
        return config_options(config, activations) + ["--dtype", "u32"]

    def token_file(self, case: dict):
        path = self.dir / f"{case['name'].replace('^', '')}.bin"
        if not path.exists() and "gen" in case:
            self.succeeds(*gen_args(case, path))
        elif not path.exists():
            path.write_bytes(pack(case["tokens"]))
        return path

    def feed_pipe(self, case: dict, *options) -> dict:
        """`iron gen ... -o - | iron feed -`, or the listed tokens through a pipe."""
        if "tokens" in case:
            return self.feed("-", *options, stdin=pack(case["tokens"]))
        with subprocess.Popen(argv(gen_args(case)), stdout=subprocess.PIPE,
                              env=environment()) as source:
            report = self.feed("-", *options, stdin=source.stdout)
        self.assertEqual(source.returncode, 0)
        return report


class Golden(GoldenTest):
    def test_every_mode_from_a_file(self):
        for case in CASES.values():
            options = self.options(case)
            for mode in modes_for(case):
                with self.subTest(case=case["name"], mode=mode):
                    found = self.feed(self.token_file(case), *options, "--mode", mode)
                    self.assert_report(case["expect"], found)

    def test_every_mode_from_a_pipe(self):
        for case in CASES.values():
            options = self.options(case)
            for mode in modes_for(case):
                with self.subTest(case=case["name"], mode=mode):
                    found = self.feed_pipe(case, *options, "--mode", mode, "--threads", 2)
                    self.assert_report(case["expect"], found)

    def test_one_to_eight_threads(self):
        for name in ("wrap", "gen-odd", "gen-seed-batch", "gen-past-2^24"):
            case = CASES[name]
            options = self.options(case)
            for threads in range(1, 9):
                for mode in ("auto", "threads", "champion"):
                    with self.subTest(case=name, mode=mode, threads=threads):
                        found = self.feed(self.token_file(case), *options, "--mode", mode,
                                          "--threads", threads)
                        self.assert_report(case["expect"], found)

    def test_every_mode_accepts_thread_counts(self):
        case = CASES["gen-small"]
        options = self.options(case)
        for mode in CPU_MODES:
            for threads in (1, 3, 8):
                with self.subTest(mode=mode, threads=threads):
                    found = self.feed_pipe(case, *options, "--mode", mode, "--threads", threads)
                    self.assert_report(case["expect"], found)

    def test_automatic_backend_and_mode(self):
        case = CASES["gen-odd"]
        found = self.json("feed", self.token_file(case), *self.options(case))
        self.assert_report(case["expect"], found)

    def test_sixteen_bit_files(self):
        for name in ("gen-small", "gen-pow2", "gen-batch-positions", "gen-lattice"):
            case = CASES[name]
            with self.subTest(case=name):
                path = self.write("narrow.bin", pack(oracle.golden_tokens(case), "u16"))
                options = config_options(oracle.golden_config(case))
                self.assert_report(case["expect"], self.feed(path, *options, "--dtype", "u16"))

    def test_final_arrays(self):
        for case in CASES.values():
            with self.subTest(case=case["name"]):
                state_file = self.dir / "nodes.state"
                report = self.feed(self.token_file(case), *self.options(case), "--state", state_file)
                self.assert_report(case["expect"], report)
                self.check_arrays(case, self.read_state(state_file))

    def check_arrays(self, case: dict, state: dict):
        self.assert_report(case["expect"], state)
        for key in ("xor_accumulators", "potentials"):
            self.assertEqual(len(state[key]), case["nodes"])
            if key in case["expect"]:
                self.assertEqual(case["expect"][key], state[key])
        self.assertEqual(case["expect"]["state"],
                         oracle.state_hash(state["xor_accumulators"], state["potentials"]))


class GoldenSeals(GoldenTest):
    def test_seals(self):
        for case in GOLDEN["seals"]:
            for mode in ("auto", "scalar", "champion"):
                with self.subTest(seal=case["name"], mode=mode):
                    options = ["--dtype", "u32", "--nodes", 16, "--seal", "--mode", mode]
                    self.assertEqual(case["seal"], self.feed_pipe(case, *options)["seal"])
                    found = self.feed(self.token_file(case), *options, "--batch", 999)
                    self.assertEqual(case["seal"], found["seal"])

    def test_seal_does_not_change_the_report(self):
        for name in ("gen-odd", "gen-batch-positions", "gen-seed-batch"):
            case = CASES[name]
            for mode in ("scalar", "champion"):
                with self.subTest(case=name, mode=mode):
                    found = self.feed(self.token_file(case), *self.options(case), "--seal",
                                      "--mode", mode)
                    self.assert_report(case["expect"], found)


class GoldenTables(IronTest):
    def points(self, kind: str, values) -> list[float]:
        out = self.succeeds("quantize", "--kind", kind, *values).text
        return [float(line) for line in out.splitlines()]

    def test_quantize_xor(self):
        values, points = zip(*GOLDEN["quantize_xor"])
        self.assertEqual(list(points), self.points("xor", values))

    def test_quantize_real(self):
        values, points = zip(*GOLDEN["quantize_real"])
        self.assertEqual(list(points), self.points("real", values))


class GoldenFile(unittest.TestCase):
    def test_copy_equals_the_shared_file(self):
        shared = REPO.parent / "shared" / "golden" / "engine.json"
        if not shared.exists():
            self.skipTest("no shared copy of the golden vectors beside this tree")
        self.assertEqual(shared.read_bytes(), GOLDEN_PATH.read_bytes())


if __name__ == "__main__":
    unittest.main()
