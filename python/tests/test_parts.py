# SPDX-License-Identifier: MIT
"""merge_indexed: parts in any order give the whole; missing, repeated and foreign ones are refused.
Wholes are compared with the oracle, parts and manifests with those of `iron sum`."""

import array
import os
import random
import subprocess
import tempfile
import unittest
from pathlib import Path

from support import expected, iron_tokens

from iron_tokens import Bag, Digest, IronError, bag, sum_file
from iron_tokens.parts import merge_indexed, positions, sum_part

IRON = os.environ.get("IRON") or str(Path(iron_tokens.library_path()).with_name("iron"))
DICE = random.Random(5)
TOKENS = [DICE.randrange(50300) for _ in range(5003)]
CUTS = [0, 1, 1, 7, 1000, 2222, 4999, 5003]  # parts of odd lengths, an empty one, a short one
PARTS = [TOKENS[a:b] for a, b in zip(CUTS, CUTS[1:])]


def digests():
    """[(index, state_dict)], each of one part at its position."""
    starts = positions(enumerate(map(len, PARTS)), len(PARTS))
    found = []
    for index, (start, part) in enumerate(zip(starts, PARTS)):
        with Digest(threads=1) as digest:
            digest.update(array.array("H", part), start)
            found.append((index, digest.state_dict()))
    return found


class Merging(unittest.TestCase):
    def refused(self, words, results, parts, error=IronError, **how):
        with self.assertRaisesRegex(error, words):
            merge_indexed(results, parts, **how)

    def test_positions(self):
        counts = list(enumerate(map(len, PARTS)))
        self.assertEqual(positions(reversed(counts), len(PARTS)), CUTS[:-1])
        with self.assertRaisesRegex(IronError, "part 3 of 0 to 6 missing"):
            positions(counts[:3] + counts[4:], 7)

    def test_digests_in_any_order(self):
        results = digests()
        for _ in range(5):
            DICE.shuffle(results)
            self.assertEqual(dict(merge_indexed(iter(results), len(PARTS))), expected(TOKENS))
        whole = merge_indexed([(k, Digest.from_state_dict(s)) for k, s in results], len(PARTS))
        self.assertEqual(dict(whole), expected(TOKENS))

    def test_missing_repeated_and_foreign_parts(self):
        results = digests()
        count = len(results)
        for gone in range(count):
            self.refused(f"part {gone} of 0 to {count - 1} missing",
                         results[:gone] + results[gone + 1:], count)
        self.refused("part 0 and 2 more of 0 to 6 missing", results[3:], count)
        self.refused("part 2 is there twice", results + results[2:3], count)
        self.refused("part 6 of 6; parts are 0 to 5", results, count - 1)
        self.refused("part -1 of 7", [*results[1:], (-1, results[0][1])], count)
        self.refused("0 parts", [], 0)
        # the numbers are right, and the positions are not: the wrong part, or one read twice
        self.refused("seen", [*results[:4], (4, results[3][1]), *results[5:]], count)
        with Digest(threads=1) as digest:
            digest.update(array.array("H", PARTS[4][:-1]), CUTS[4])
            short = digest.state_dict()
        self.refused("not seen", [*results[:4], (4, short), *results[5:]], count)
        self.refused("different kinds", [*results[:6], (6, bag([[1]]))], count)
        self.refused("float is not a part", [(0, .5)], 1, TypeError)
        self.refused("has no manifest", results, count, manifest="x")

    def test_results_are_not_changed(self):
        own = [(0, Digest(threads=1)), (1, Digest(threads=1))]
        own[0][1].update(b"abcd", 0)
        own[1][1].update(b"efg", 4)
        before = [digest.state_dict() for _, digest in own]
        self.assertEqual(merge_indexed(own, 2).tokens, 7)
        self.assertEqual([digest.state_dict() for _, digest in own], before)

    def test_bags(self):
        rows = [TOKENS[k:k + 10] for k in range(0, 60, 10)]
        made = [(k, bag(rows[2 * k:2 * k + 2])) for k in range(3)]
        self.assertEqual(str(merge_indexed(made[::-1], 3)), bag(rows))
        self.assertEqual(merge_indexed([(k, Bag(text)) for k, text in made], 3), Bag(bag(rows)))
        self.refused("part 1 is there twice", made + made[1:2], 3)


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.paths = []
        for name, first, end in (("a.bin", 0, 2001), ("b.bin", 2001, 2001), ("c.bin", 2001, 5003)):
            self.paths.append(str(self.folder / name))
            Path(self.paths[-1]).write_bytes(array.array("H", TOKENS[first:end]).tobytes())

    def test_any_number_of_parts(self):
        whole = sum_file(*self.paths, dtype="u16", sample=100)
        for parts in (1, 2, 7, 40):
            results = [sum_part(k, parts, *self.paths, dtype="u16", sample=100, chunk_tokens=1024)
                       for k in range(parts)]
            DICE.shuffle(results)
            self.assertEqual(merge_indexed(results, parts), whole)
        self.assertEqual({k: whole[k] for k in expected(TOKENS)}, expected(TOKENS))

    def test_refused(self):
        results = [sum_part(k, 3, *self.paths, dtype="u16") for k in range(3)]
        for words, pieces in (("part 1 of 0 to 2 missing", results[::2]),
                              ("part 0 is there twice", results + results[:1]),
                              ("part", [(0, results[1][1]), *results[1:]]),
                              ("other|different|not", [sum_part(0, 3, self.paths[0], dtype="u16"),
                                                       *results[1:]])):
            with self.assertRaisesRegex(IronError, words):
                merge_indexed(pieces, 3)
        with self.assertRaisesRegex(IronError, "part 3 of 3"):
            sum_part(3, 3, *self.paths, dtype="u16")

    @unittest.skipUnless(os.access(IRON, os.X_OK), f"no iron at {IRON}")
    def test_the_same_as_iron(self):
        """Parts of both mix, and the manifest is that of `iron sum --manifest`."""
        def iron(*args):
            subprocess.run([IRON, "sum", *self.paths, "--dtype", "u16", "--chunk", "1024", *args],
                           check=True, stdout=subprocess.DEVNULL)

        iron("--manifest", self.folder / "whole")
        iron("--part", "2/3", "-o", self.folder / "part")
        theirs = (self.folder / "part").read_text()
        ours = [sum_part(k, 3, *self.paths, dtype="u16", chunk_tokens=1024) for k in range(3)]
        self.assertEqual(ours[1][1], theirs)
        merge_indexed([ours[2], (1, theirs), ours[0]], 3, manifest=self.folder / "made")
        self.assertEqual((self.folder / "made").read_bytes(), (self.folder / "whole").read_bytes())


if __name__ == "__main__":
    unittest.main()
