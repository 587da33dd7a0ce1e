# SPDX-License-Identifier: MIT
"""What `iron diff` says of one edit is exactly what was done, whatever the formats and --chunk.

Random blocks are repeated, dropped, swapped, moved, inserted, changed or cut off.  The report is
applied to the first stream; the result must be the second one.  Placements may be others than the
ones chosen here, if they make the same stream.
"""

import os
import random
import struct
import unittest

from harness import SEED, IronTest, applied_edit, npy, pack, parse_json

TRIALS = 400 if os.environ.get("IRON_TEST_FULL") or os.environ.get("IRON_TEST_LONG") else 60
BLOCK_MIN = 256


class Edits(IronTest):
    def setUp(self):
        super().setUp()
        self.dice = random.Random(SEED)

    def tokens(self, count, limit):
        return [min(int(self.dice.paretovariate(0.3)), limit) for _ in range(count)] \
            if self.dice.random() < 0.5 else [self.dice.randrange(limit) for _ in range(count)]

    def length(self, most):
        return min(most, int(BLOCK_MIN * 2 ** self.dice.uniform(0, 6)))

    def edited(self, a, limit) -> tuple:
        """An edited stream and the kind of the edit."""
        dice, size = self.dice, self.length(len(a) // 4)
        at = dice.randrange(len(a) - size)
        block = a[at:at + size]
        kind = dice.choice(("repeated", "deleted", "reordered", "moved", "inserted", "truncated",
                            "changed"))
        if kind == "repeated":
            to = dice.choice((at + size, dice.randrange(len(a))))
            return a[:to] + block + a[to:], kind
        if kind == "deleted":
            return a[:at] + a[at + size:], kind
        if kind == "inserted":
            return a[:at] + self.tokens(size, limit) + a[at:], kind
        if kind == "truncated":
            return a[:at], kind
        if kind == "changed":
            return a[:at] + [(t + 1 + dice.randrange(limit - 1)) % limit for t in block] + \
                a[at + size:], kind
        rest = a[:at] + a[at + size:]
        if kind == "moved":
            to = dice.choice([k for k in (0, len(rest), dice.randrange(len(rest))) if k != at])
            return rest[:to] + block + rest[to:], kind
        first, second = self.length(len(a) // 4), self.length(len(a) // 4)
        between = dice.randrange(1, len(a) - first - second)
        at = dice.randrange(len(a) - first - second - between + 1)
        x, y = a[at:at + first], a[at + first + between:at + first + between + second]
        return a[:at] + y + a[at + first:at + first + between] + x + \
            a[at + first + between + second:], kind

    def store(self, name, tokens) -> tuple:
        """Writes the stream in some format; returns its path and the --dtype it needs."""
        form = self.dice.choice(("u16", "u32", "i64", "npy", "llmc", "shards"))
        if form == "npy":
            self.write(name, npy(tokens, "<u2", "H"))
            return name, "u16"
        if form == "llmc":
            header = struct.pack("<256i", 20240520, 1, len(tokens), *[0] * 253)
            self.write(name, header + pack(tokens, "u16"))
            return name, "u16"
        if form == "shards":
            cut = self.dice.randrange(len(tokens))
            self.write(f"{name}.d/0.bin", pack(tokens[:cut], "u32"))
            self.write(f"{name}.d/1.bin", pack(tokens[cut:], "u32"))
            return f"{name}.d", "u32"
        self.write_tokens(name, tokens, form)
        return name, form

    def test_one_edit_is_named_exactly(self):
        for trial in range(TRIALS):
            limit = self.dice.choice((50257, 50257, 65535, 300))
            a = self.tokens(self.dice.randrange(3000, 40000), limit)
            b, kind = self.edited(a, limit)
            (x, dtype_x), (y, dtype_y) = self.store("a", a), self.store("b", b)
            options = self.dice.choice(([], ["--chunk", 1024], ["--chunk", 4096]))
            with self.subTest(trial=trial, kind=kind, tokens=len(a), options=options):
                result = self.iron("diff", x, y, "--json", "--dtype", f"{dtype_x},{dtype_y}",
                                   "--threads", trial % 3 + 1, *options)
                report = parse_json(result.out)
                if a == b:
                    self.assertTrue(report["equal"], report)
                    continue
                self.assertEqual((result.code, report["equal"]), (1, False), report)
                self.assertEqual((report["kind"], report["edits"], report["more_edits"]),
                                 (kind, 1, False), report)
                self.assertEqual(applied_edit(a, b, report), b, report)
                if kind in ("changed", "reordered"):
                    differ = [k for k in range(len(a)) if a[k] != b[k]]
                    self.assertEqual(report["position"], differ[0])
                    self.assertEqual(report["length"], differ[-1] - differ[0] + 1)

    def test_several_edits(self):
        a = self.tokens(30000, 50000)
        cases = (
            # a loader that repeats a batch and still ends after as many tokens
            (a[:8192] + a[4096:8192] + a[8192:-4096], "repeated", 8192, 4096, 4096, 2),
            (a[:100] + [60000] + a[101:20000] + a[20300:], "changed", 100, 1, None, 2),
            (a[:100] + a[400:20000] + [60000] + a[20000:], "deleted", 100, 300, None, 2),
            (a[300:600] + a[:300] + a[600:20000] + [60000] + a[20001:],
             "moved", None, 300, None, 2),
        )
        for b, kind, position, length, source, edits in cases:
            self.write_tokens("a", a)
            self.write_tokens("b", b)
            with self.subTest(kind=kind):
                report = parse_json(self.iron("diff", "a", "b", "--json", "--dtype", "u32").out)
                self.assertEqual((report["kind"], report["length"], report["edits"]),
                                 (kind, length, edits), report)
                if position is not None:
                    self.assertEqual((report["position"], report["source"]), (position, source))


if __name__ == "__main__":
    unittest.main()
