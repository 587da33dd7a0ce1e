# SPDX-License-Identifier: MIT
"""Bags: `sum --bag`, lists, manifests and parts with bags, `diff` of shuffled samples, and documents
in `stat`.

Results are compared with the golden vectors and with the oracle, which seals one sample after the
other.  Documents are written as datatrove's and Megatron's indexes describe them.
"""

import json
import os
import random
import struct
import subprocess
import unittest
from pathlib import Path

from harness import IRON, REDUCED, REPO, SEED, IronTest, environment, oracle, pack, parse_json

GOLDEN = json.loads((REPO / "tests" / "golden" / "bag.json").read_text())["cases"]
ROUNDS = 12 if REDUCED else 60


def flat(samples) -> list:
    return [token for sample in samples for token in sample]


class BagTest(IronTest):
    def write_ds(self, name, samples, dtype="u16"):
        tokens, ends = flat(samples), []
        for sample in samples:
            ends.append(len(sample) + (ends[-1] if ends else 0))
        self.write_tokens(name, tokens, dtype)
        self.write(name + ".index", struct.pack(f"<{len(ends)}Q", *ends))
        self.write(name + ".metadata", f"gpt2|{len(pack([0], dtype))}\n{len(tokens)}\n".encode())

    def write_megatron(self, name, samples):
        """One sequence for each document, of u16 tokens."""
        lengths = [len(sample) for sample in samples]
        index = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, len(lengths), len(lengths) + 1)
        index += struct.pack(f"<{len(lengths)}i", *lengths)
        index += struct.pack(f"<{len(lengths)}q", *(2 * sum(lengths[:k]) for k in range(len(lengths))))
        index += struct.pack(f"<{len(lengths) + 1}q", *range(len(lengths) + 1))
        self.write_tokens(name + ".bin", flat(samples), "u16")
        self.write(name + ".idx", index)

    def bag(self, *args):
        """The one line of the command, without the file's name, checked against its JSON."""
        line = self.succeeds("sum", "--bag", *args).text.splitlines()[0]
        found = self.json("sum", "--bag", *args)[0]
        self.assertEqual(line.split()[0], found["bag"])
        self.assertEqual(int(found["bag"].split("-")[1]), found["samples"])
        return found


class Sums(BagTest):
    def test_golden(self):
        for case in GOLDEN:
            if "rows" in case:
                self.write_ds("x.ds", case["rows"], "u32")
                found = self.bag("x.ds")
                self.assertEqual(found["bag_cut"], "documents")
            else:
                self.write_tokens("x.bin", oracle.golden_tokens(case), "u32")
                option = "--" + case["cut"].replace("=", " ")
                found = self.bag("x.bin", "--dtype", "u32", *option.split())
                self.assertEqual(found["bag_cut"], case["cut"])
                self.assertEqual(found["seal"], oracle.seal(oracle.golden_tokens(case)))
                piped = self.succeeds("sum", "--bag", "-", "--dtype", "u32", *option.split(),
                                      stdin=pack(oracle.golden_tokens(case), "u32"))
                self.assertEqual(piped.text, case["bag"] + "  -\n")
            self.assertEqual((found["bag"], found["samples"]), (case["bag"], case["samples"]))

    def test_random_streams(self):
        """Files cut anywhere: --sample and --eos cut the stream across them."""
        rng = random.Random(SEED)
        for _ in range(ROUNDS):
            count = rng.choice((0, 1, 50, 3000))
            tokens = [rng.randrange(40) for _ in range(count)]
            dtype = rng.choice(("u8", "u16", "u32", "i32", "i64"))
            places = [0, *sorted(rng.randrange(count + 1) for _ in range(2)), count]
            for k in range(3):
                self.write_tokens(f"s{k}.bin", tokens[places[k]:places[k + 1]], dtype)
            how = rng.choice((f"sample={rng.choice((1, 3, 4, 7, 64, 65, 4096))}",
                              f"eos={rng.choice((0, 5, 39, 40, 70000))}"))
            option = ("--" + how.replace("=", " ")).split()
            files = ("s0.bin", "s1.bin", "s2.bin", "--dtype", dtype, *option)
            found = self.bag("--stream", *files, "--threads", rng.randrange(1, 4))
            self.assertEqual(found["bag"], oracle.bag(oracle.cut(tokens, how)))
            self.assertEqual((found["bag_cut"], found["seal"]), (how, oracle.seal(tokens)))
            for k, one in enumerate(self.json("sum", "--bag", *files)):
                alone = tokens[places[k]:places[k + 1]]
                self.assertEqual(one["bag"], oracle.bag(oracle.cut(alone, how)))

    def test_documents_of_files(self):
        """Documents do not span files, and empty ones count, also in files without tokens."""
        rng = random.Random(SEED)
        for _ in range(ROUNDS // 3):
            parts = [[[rng.randrange(60000) for _ in range(rng.choice((0, 1, 5, 70)))]
                      for _ in range(rng.randrange(9))] for _ in range(3)]
            parts[1] = [[]] * rng.randrange(4)
            for k, samples in enumerate(parts):
                self.write_ds(f"d{k}.ds", samples)
            files = ("d0.ds", "d1.ds", "d2.ds")
            found = self.bag("--stream", *files)
            self.assertEqual(found["bag"], oracle.bag(parts[0] + parts[1] + parts[2]))
            for samples, one in zip(parts, self.json("sum", "--bag", *files)):
                self.assertEqual(one["bag"], oracle.bag(samples))
            self.write_megatron("m", parts[0])
            self.assertEqual(self.bag("m.bin")["bag"], oracle.bag(parts[0]))
            shuffled = rng.sample(parts[0], len(parts[0]))
            self.write_megatron("n", shuffled)
            self.assertEqual(self.bag("n.bin")["bag"], oracle.bag(parts[0]))

    def test_parts(self):
        tokens = oracle.gen(3, 5003, 90)
        self.write_tokens("t.bin", tokens, "u16")
        for option in (("--sample", 700), ("--eos", 4)):
            whole = self.succeeds("sum", "--bag", "t.bin", "--dtype", "u16", *option, "--manifest",
                                  "whole.json").text
            for k in (1, 2, 3):
                self.succeeds("sum", "--bag", "t.bin", "--dtype", "u16", *option, "--part",
                              f"{k}/3", "-o", f"p{k}")
            merged = self.succeeds("merge", "p2", "p3", "p1", "-o", "merged.json").text
            self.assertEqual(merged, whole.splitlines()[0] + "\n")
            self.assertEqual((self.dir / "merged.json").read_bytes(),
                             (self.dir / "whole.json").read_bytes())
            found = self.json("merge", "p1", "p2", "p3")[0]
            self.assertEqual(found["bag"], whole.split()[0])
            self.succeeds("check", "whole.json")
        self.succeeds("sum", "--bag", "t.bin", "--dtype", "u16", "--sample", 5, "--part", "1/3",
                      "-o", "p1")
        self.refused("merge", "p1", "p2", "p3", says="cut into samples")
        self.succeeds("sum", "t.bin", "--dtype", "u16", "--part", "1/3", "-o", "p1")
        self.refused("merge", "p1", "p2", "p3", says="bag")

    def test_refusals(self):
        self.write_tokens("t.bin", range(50), "u16")
        self.write_ds("x.ds", [[1, 2], [3]])
        raw = ("t.bin", "--dtype", "u16")
        self.refused("sum", "--bag", *raw, says="--sample.*--eos")
        self.refused("sum", "--bag", "-", "--dtype", "u16", says="--sample.*--eos")
        self.refused("sum", "--bag", "--stream", "x.ds", *raw, says="--sample or --eos")
        self.refused("sum", "--sample", 4, *raw, says="--bag")
        self.refused("sum", "--bag", "--sample", 4, "--eos", 1, *raw, says="one of them")
        self.refused("sum", "--bag", "--sample", 0, *raw, says="--sample")
        self.refused("sum", "--bag", "--eos", 2**32, *raw, says="--eos")
        self.refused("sum", "--bag", "--sample", 4, "--backend", "cuda", *raw, says="CPU")


class Checks(BagTest):
    def setUp(self):
        super().setUp()
        rng = random.Random(SEED)
        self.samples = [[rng.randrange(50000) for _ in range(16)] for _ in range(30)]
        self.write_tokens("a.bin", flat(self.samples), "u16")

    def test_lists(self):
        """A list of bags needs no options, and samples may have another order."""
        for option in (("--sample", 16), ("--eos", 9)):
            printed = self.succeeds("sum", "--bag", "a.bin", "--dtype", "u16", *option).text
            self.assertEqual(printed.splitlines()[1],
                             f"# iron sum --bag {option[0]} {option[1]} --dtype u16")
            self.write("list", printed.encode())
            self.assertEqual(self.succeeds("check", "list").text, "a.bin: OK\n")
            tagged = self.succeeds("sum", "--bag", "--tag", "a.bin", "--dtype", "u16", *option)
            self.assertRegex(tagged.text, r"\AIRON \(a.bin\) = [0-9a-f]{32}-\d+\n# iron sum --bag ")
            self.write("tagged", tagged.out)
            self.succeeds("check", "tagged")
        self.write("list", self.succeeds("sum", "--bag", "a.bin", "--dtype", "u16", "--sample",
                                         16).out)
        self.write_tokens("a.bin", flat(reversed(self.samples)), "u16")
        self.succeeds("check", "list")
        self.write_tokens("a.bin", flat(self.samples)[1:] + [0], "u16")
        result = self.iron("check", "list", "--json")
        self.assertEqual(result.code, 1)
        found = parse_json(result.out)[0]
        self.assertEqual(found["status"], "failed")
        self.assertNotEqual(found["found"], found["expected"])

    def test_lists_of_documents(self):
        self.write_ds("x.ds", self.samples)
        printed = self.succeeds("sum", "--bag", "x.ds").out
        self.assertEqual(printed.splitlines()[1], b"# iron sum --bag")
        self.write("list", printed)
        self.succeeds("check", "list")
        self.write_ds("x.ds", self.samples[1:] + [self.samples[0]])
        self.succeeds("check", "list")

    def test_manifests(self):
        self.succeeds("sum", "--bag", "--sample", 16, "a.bin", "--dtype", "u16", "--manifest", "m")
        manifest = parse_json((self.dir / "m").read_bytes())
        self.assertEqual(manifest["bag"], {"cut": "sample=16", "bag": oracle.bag(self.samples)})
        self.succeeds("check", "m")
        manifest["bag"]["bag"] = "0" * 16 + manifest["bag"]["bag"][16:]
        self.write("m", json.dumps(manifest).encode())
        result = self.iron("check", "m")
        self.assertEqual(result.code, 1)
        self.assertIn("bag does not match", result.text)
        manifest["bag"]["bag"] = "0" * 32 + "-31"
        self.write("m", json.dumps(manifest).encode())
        self.refused("check", "m", says="31 samples")
        manifest["bag"] = {"cut": "sample=x", "bag": "0" * 32 + "-0"}
        self.write("m", json.dumps(manifest).encode())
        self.refused("check", "m", says="sample=x")


class Differences(BagTest):
    def setUp(self):
        super().setUp()
        self.rng = random.Random(SEED)
        self.samples = [[self.rng.randrange(50000) for _ in range(20)] for _ in range(200)]
        self.write_tokens("a.bin", flat(self.samples), "u16")

    def diff(self, samples, *args):
        self.write_tokens("b.bin", flat(samples), "u16")
        result = self.iron("diff", "a.bin", "b.bin", "--dtype", "u16", "--json", *args)
        self.assertEqual((result.code, result.err), (1, b""), str(result))
        return parse_json(result.out)

    def test_shuffled(self):
        shuffled = self.rng.sample(self.samples, len(self.samples))
        found = self.diff(shuffled, "--sample", 20)
        self.assertEqual((found["equal"], found["kind"], found["edits"]), (False, "shuffled", 1))
        self.assertEqual(found["bag_cut"], "sample=20")
        tokens, other = flat(self.samples), flat(shuffled)
        differing = [k for k in range(len(tokens)) if tokens[k] != other[k]]
        self.assertEqual(found["position"], differing[0])
        self.assertEqual(found["length"], differing[-1] - differing[0] + 1)
        self.assertIsNone(found["source"])
        text = self.iron("diff", "a.bin", "b.bin", "--dtype", "u16", "--sample", 20).text
        self.assertIn("\nshuffled: both have the same 200 samples", text)
        self.assertNotEqual(self.diff(shuffled)["kind"], "shuffled")
        self.assertNotEqual(self.diff(shuffled, "--sample", 40)["kind"], "shuffled")

    def test_two_samples_changed_places(self):
        swapped = list(self.samples)
        swapped[3], swapped[150] = swapped[150], swapped[3]
        self.assertEqual(self.diff(swapped, "--sample", 20)["kind"], "shuffled")

    def test_one_edit_stays_named(self):
        moved = list(self.samples)
        moved.insert(100, moved.pop(3))
        self.assertEqual(self.diff(moved, "--sample", 20)["kind"], "moved")
        changed = [list(sample) for sample in self.samples]
        changed[7][5] += 1
        self.assertEqual(self.diff(changed, "--sample", 20)["kind"], "changed")

    def test_damage_in_a_shuffled_stream(self):
        shuffled = [list(s) for s in self.rng.sample(self.samples, len(self.samples))]
        shuffled[9][9] += 1
        self.assertNotEqual(self.diff(shuffled, "--sample", 20)["kind"], "shuffled")

    def test_documents(self):
        """By --eos, and by indexes, without an option and in different formats."""
        samples = [[1 + token for token in s[:self.rng.randrange(20)]] + [0] for s in self.samples]
        shuffled = self.rng.sample(samples, len(samples))
        self.write_tokens("a.bin", flat(samples), "u16")
        self.assertEqual(self.diff(shuffled, "--eos", 0)["bag_cut"], "eos=0")
        self.write_ds("a.ds", samples)
        self.write_megatron("m", shuffled)
        found = parse_json(self.iron("diff", "a.ds", "m.bin", "--json").out)
        self.assertEqual((found["kind"], found["bag_cut"]), ("shuffled", "documents"))
        found = parse_json(self.iron("diff", "a.ds", "b.bin", "--dtype", "u16", "--json").out)
        self.assertNotEqual(found["kind"], "shuffled")  # only one has documents

    def test_manifests(self):
        """Bags of manifests are compared, also without the files."""
        shuffled = self.rng.sample(self.samples, len(self.samples))
        self.write_tokens("b.bin", flat(shuffled), "u16")
        for name, sample in (("a", 20), ("b", 20), ("b", 40)):
            self.succeeds("sum", "--bag", "--sample", sample, f"{name}.bin", "--dtype", "u16",
                          "--chunk", 1024, "--manifest", f"{name}{sample}.m")
        def kind(*args):
            result = self.iron("diff", *args, "--json")
            self.assertEqual(result.code, 1, str(result))
            return parse_json(result.out)["kind"]
        self.assertEqual(kind("a20.m", "b20.m"), "shuffled")
        self.assertEqual(kind("a20.m", "b.bin"), "shuffled")
        self.assertEqual(kind("a20.m", "b40.m"), "shuffled")  # files are there
        (self.dir / "b.bin").unlink()
        self.assertEqual(kind("a20.m", "b20.m"), "shuffled")
        self.assertEqual(kind("a.bin", "b20.m", "--dtype", "u16"), "shuffled")
        (self.dir / "a.bin").unlink()
        self.assertEqual(kind("a20.m", "b20.m"), "shuffled")
        self.assertNotEqual(kind("a20.m", "b40.m"), "shuffled")
        self.refused("diff", "a20.m", "b40.m", "--sample", 20, says="no bag of such samples")


class Statistics(BagTest):
    def test_documents(self):
        samples = [[], [5] * 7, [], [1, 2], [3]] + [[9] * k for k in range(1, 40)]
        self.write_ds("x.ds", samples)
        lengths = sorted(map(len, samples))
        found = self.json("stat", "x.ds", "--vocab", 10)
        self.assertEqual(found["document_cut"], "documents")
        n = len(lengths)
        self.assertEqual(found["documents"], {
            "count": n, "min": 0, "max": 39, "mean": sum(lengths) / n,
            "median": lengths[n - n // 2 - 1], "p95": lengths[n - n // 20 - 1], "empty": 2,
            "last_open": False})
        by_eos = self.json("stat", "x.ds", "--vocab", 10, "--eos", 9)
        self.assertEqual(by_eos["document_cut"], "eos=9")
        self.assertIn("documents     44\n", self.succeeds("stat", "x.ds", "--vocab", 10).text)

    def test_without_documents(self):
        self.write_tokens("t.bin", range(9), "u16")
        self.write_ds("x.ds", [[1, 2]])
        for files in (("t.bin",), ("t.bin", "x.ds")):
            found = self.json("stat", *files, "--dtype", "u16", "--vocab", 10)
            self.assertNotIn("documents", found)
            self.assertNotIn("document_cut", found)


class Documentation(BagTest):
    def test_examples(self):
        """The commands of docs/bag.md print what it shows."""
        shown, commands = None, []
        for line in (REPO / "docs" / "bag.md").read_text().splitlines():
            if line.startswith("    $ "):
                shown = []
                commands.append((line[6:], shown))
            elif line.startswith("    ") and shown is not None:
                shown.append(line[4:])
        self.assertGreater(len(commands), 6)
        path = f"{Path(IRON).parent}:{os.environ['PATH']}"
        for command, expected in commands:
            done = subprocess.run(["sh", "-c", command], cwd=self.dir, capture_output=True, text=True,
                                  check=False, env=environment({"PATH": path}))
            self.assertEqual((done.returncode, done.stderr), (0, ""), command)
            self.assertEqual(done.stdout.splitlines(), expected, command)


if __name__ == "__main__":
    unittest.main()
