# SPDX-License-Identifier: MIT
"""Bags: results match the golden vectors and the oracle's; any order, parts, files, errors."""

import array
import json
import pickle
import random
import struct
import tempfile
import unittest
from pathlib import Path

from support import REPO, iron_tokens, needs_numpy, numpy, oracle  # noqa: F401

from iron_tokens import Bag, IronError, bag, sum_file

GOLDEN = json.loads((REPO / "tests" / "golden" / "bag.json").read_text())["cases"]


def samples_of(case):
    return case["rows"] if "rows" in case else oracle.cut(oracle.golden_tokens(case), case["cut"])


class Bags(unittest.TestCase):
    def test_golden(self):
        for case in GOLDEN:
            self.assertEqual(bag(samples_of(case)), case["bag"], case["name"])

    @needs_numpy
    def test_rows_of_arrays(self):
        rows = numpy.array(oracle.gen(2, 60, 200)).reshape(12, 5)
        wanted = oracle.bag(rows.tolist())
        for dtype in ("u1", "u2", "u4", "i4", "i8", "u8"):
            self.assertEqual(bag(rows.astype(dtype)), wanted, dtype)
        self.assertEqual(bag(rows[::-1]), wanted)
        self.assertEqual(bag(list(rows)), wanted)
        self.assertEqual(bag(iter(rows.tolist())), wanted)
        self.assertNotEqual(bag(rows.reshape(6, 10)), wanted)
        self.assertEqual(bag(numpy.zeros((3, 0), "u4")), oracle.bag([[], [], []]))
        self.assertEqual(bag(numpy.zeros((0, 3), "u4")), oracle.bag([]))

    def test_parts_add_up(self):
        rng = random.Random(4)
        samples = [oracle.gen(k, rng.randrange(30), 1000) for k in range(40)]
        whole, parts = oracle.bag(samples), [Bag(), Bag(), Bag()]
        rng.shuffle(samples)
        for sample in samples:
            rng.choice(parts).add(array.array("I", sample))
        total = parts[0] + parts[1]
        total.merge(parts[2])
        self.assertEqual(str(total), whole)
        self.assertEqual(total.samples, 40)
        self.assertEqual(total, Bag(whole))
        self.assertEqual(pickle.loads(pickle.dumps(total)), total)
        self.assertNotEqual(total, parts[0])
        self.assertEqual(repr(total), f"Bag('{whole}')")

    def test_errors(self):
        made = Bag()
        made.add(b"abc")
        before = str(made)
        for bad in ([1, -1], [1, 2**32], [1, 2**80], array.array("b", [3, -1])):
            with self.assertRaises(IronError):
                made.add(bad)
        for bad in (["a"], [1.5], [True], 5, None):
            with self.assertRaises(TypeError):
                made.add(bad)
        with self.assertRaisesRegex(IronError, "is 18446744073709551611;"):
            made.add(array.array("Q", [3, 2**64 - 5]))
        with self.assertRaisesRegex(TypeError, "cannot merge str"):
            made.merge(before)
        with self.assertRaises(IronError):
            made.add(array.array("q", [3, -1]))
        with self.assertRaisesRegex(IronError, "two dimensions"):
            made.add_rows(b"abc")
        with self.assertRaises(TypeError):
            made.add(array.array("d", [1]))
        with self.assertRaises(IronError):
            made.add_rows([[1, 2], [3, -4]])
        self.assertEqual(str(made), before)
        for text in ("", "12", before + "0x", before.upper()):
            with self.assertRaises(IronError):
                Bag(text)


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "tokens.bin"
        self.tokens = oracle.gen(3, 3000, 50)
        self.path.write_bytes(struct.pack("<3000H", *self.tokens))

    def test_bags_of_files(self):
        for how in ({"sample": 128}, {"eos": 7}, {"sample": 7, "bag": True}):
            result = sum_file(self.path, dtype="u16", **how)
            name = "eos" if "eos" in how else "sample"
            samples = oracle.cut(self.tokens, f"{name}={how[name]}")
            self.assertEqual(result.bag, oracle.bag(samples))
            self.assertEqual(result.samples, len(samples))
            self.assertEqual(result["bag_cut"], f"{name}={how[name]}")
            self.assertEqual(result.seal, oracle.seal(self.tokens))
        plain = sum_file(self.path, dtype="u16")
        self.assertIsNone(plain.bag)
        self.assertNotIn("bag", plain.keys())

    def test_documents(self):
        path = self.path.with_name("x.ds")
        path.write_bytes(self.path.read_bytes())
        ends = [0, 5, 5, 1000, 3000]
        path.with_name("x.ds.index").write_bytes(struct.pack("<5Q", *ends))
        path.with_name("x.ds.metadata").write_text("tokenizer|2\n3000\n")
        result = sum_file(path, bag=True)
        samples = [self.tokens[a:b] for a, b in zip([0, *ends], ends)]
        self.assertEqual((result.bag, result.bag_cut), (oracle.bag(samples), "documents"))

    def test_errors(self):
        with self.assertRaisesRegex(IronError, "--sample"):
            sum_file(self.path, dtype="u16", bag=True)
        with self.assertRaisesRegex(IronError, "one of them"):
            sum_file(self.path, dtype="u16", sample=3, eos=0)
        with self.assertRaises(IronError):
            sum_file(self.path, dtype="u16", sample=0)


if __name__ == "__main__":
    unittest.main()
