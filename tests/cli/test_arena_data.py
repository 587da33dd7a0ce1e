# SPDX-License-Identifier: MIT
"""`iron arena --data`: races over the user's own tokens."""

import json
import unittest
from collections import Counter

from arena_support import CPU_ONLY, ArenaTest, Races, case_of
from harness import REPO, iron, npy, pack, parse_json

try:
    import jsonschema
except ImportError:  # the keys are checked in any case
    jsonschema = None

TOKENS = [k * k % 50021 for k in range(30000)]
# Knows how often each value occurs in the file: the referee's inputs must be other ones.
KNOWS_THE_FILE = """
#include <iron/iron_peer.h>
#include <string.h>
const char iron_contender[] = "iron: op histogram";
static const uint64_t counts[65536] = {%s};
int iron_run(const iron_peer_case *c) { memcpy(c->output, counts, sizeof counts); return 0; }
"""


class Race(Races):
    """Every op that takes tokens, an honest contender from outside, and one that knows the file."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.home / "my tokens.npy").write_bytes(npy(TOKENS, "<u2", "H"))
        template = iron("arena", "--template", "histogram.c").text
        (cls.home / "honest.c").write_text(template)
        known = ", ".join(f"[{token}] = {count}" for token, count in sorted(Counter(TOKENS).items()))
        (cls.home / "known.c").write_text(KNOWS_THE_FILE % known)
        cls.args = ["--data", "my tokens.npy", "--size", "20000", "--runs", "3"]
        race = iron("arena", "*.cpu.*", *cls.args, "--contender", "honest.c", "--contender",
                    "known.c", "--json", "race.json", "--md", "race.md",
                    cwd=cls.home, env=CPU_ONLY, timeout=600)
        cls.code, cls.text = race.code, race.text
        if not (cls.home / "race.json").exists():
            raise AssertionError(str(race))
        cls.document = parse_json((cls.home / "race.json").read_bytes())

    def test_ops_race_over_the_first_tokens_in_their_types(self):
        cases = {case_of(row)[:3] for row in self.document["results"]}
        self.assertEqual(cases, {("tokens", "20000", "u32"), ("seal", "20000", "u32"),
                                 ("histogram", "20000", "u16")})
        for row in self.document["results"]:
            if row["contender"] != "known":
                self.assertIn(row["status"], ("ok", "skipped"), row)
            self.assertEqual(row["params"]["data"], "my_tokens.npy")
            if row["op"] != "histogram":
                self.assertEqual(row["params"]["vocab"], 50257)

    def test_contenders_from_outside_meet_variations(self):
        rows = {row["contender"]: row for row in self.document["results"]}
        self.assertEqual((rows["honest"]["status"], rows["honest"]["verified"]), ("ok", True))
        self.assertEqual(rows["known"]["status"], "wrong")
        self.assertEqual(self.code, 1)

    def test_reports_name_the_file_and_what_was_passed_over(self):
        data = self.document["data"]
        self.assertEqual((data["file"], data["dtype"], data["tokens"], data["file_tokens"]),
                         ("my tokens.npy", "u16", 20000, 30000))
        over, = [text for text in self.document["host"]["remarks"] if text.startswith("passed over")]
        self.assertRegex(over, r"^passed over: atax, .*: not for --data$")
        self.assertNotIn("seal", over)
        text = " ".join(self.text.split())
        self.assertIn("data my tokens.npy: the first 20000 of 30000 tokens, u16 ", text)
        self.assertIn(over, text)
        markdown = (self.home / "race.md").read_text()
        self.assertIn("data my tokens.npy: the first 20000 of 30000 tokens", markdown)
        self.assertIn("--data 'my tokens.npy' --size '20000'", self.document["host"]["command"])

    def test_schema(self):
        if jsonschema is None:
            self.skipTest("python3-jsonschema is not installed")
        schema = json.loads((REPO / "docs/schema/arena-1.json").read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator(schema).validate(self.document)


class Plans(ArenaTest):
    def setUp(self):
        super().setUp()
        self.write("u16.bin", pack([1, 50256, 7] * 1000, "u16"))
        self.write("large.bin", pack([1, 2, 1 << 25], "u32"))

    def sizes(self, *args) -> set:
        return {(name.split(".")[0], size, dtype)
                for name, _, size, dtype in self.plan("*.cpu.*", *args, env=CPU_ONLY)}

    def test_sizes_are_those_of_the_file(self):
        self.assertEqual(self.sizes("--data", "u16.bin", "--dtype", "u16"),
                         {("tokens", "3000", "u32"), ("seal", "3000", "u32"),
                          ("histogram", "3000", "u16")})
        self.assertEqual(self.sizes("--data", "u16.bin", "--dtype", "u8", "--size", "10,5999"),
                         {(op, size, dtype) for size in ("10", "5999")
                          for op, dtype in (("tokens", "u32"), ("seal", "u32"),
                                            ("histogram", "u8"))})

    def test_wide_integers_are_ids(self):
        self.write("ids.npy", npy([5, 6, 200000], "<i8", "q"))
        self.assertEqual(self.sizes("--data", "ids.npy"),
                         {(op, "3", "u32") for op in ("tokens", "seal", "histogram")})
        self.write("not.npy", npy([5, -6], "<i8", "q"))
        self.refused("arena", "--data", "not.npy", says="-6", env=CPU_ONLY)

    def test_an_op_that_cannot_take_the_ids_is_passed_over(self):
        args = ("--data", "large.bin", "--dtype", "u32")
        self.assertEqual({op for op, *_ in self.sizes(*args)}, {"tokens", "seal"})
        text = self.succeeds("arena", "--dry-run", *args, env=CPU_ONLY).text
        self.assertRegex(text, r"(?m)^passed over: histogram: vocab is 33554433")
        self.refused("arena", "histogram", *args, says="vocab is 33554433", env=CPU_ONLY)

    def test_what_cannot_race_is_refused_in_one_line(self):
        self.write("empty.bin", b"")
        raw = ("--data", "u16.bin", "--dtype", "u16")
        for args, says in ((("--data", "u16.bin"), "--dtype"),
                           (("--data", "absent.bin", "--dtype", "u16"), "absent.bin"),
                           (("--data", "-", "--dtype", "u16"), "length is unknown"),
                           (("--data", "empty.bin", "--dtype", "u16"), "no tokens"),
                           (("--data", "u16.bin", "--dtype", "f32"), "f32"),
                           ((*raw, "--size", "3001"), "3000 tokens"),
                           ((*raw, "--size", "LARGE"), "3000 tokens"),
                           ((*raw, "--vocab", "50256"), "token 50256 at position 1"),
                           ((*raw, "--param", "data=zipf"), "data=zipf"),
                           (("atax.*", *raw), "tokens, seal or histogram"),
                           (("--format", "raw"), "--data"), (("--column", "ids"), "--data")):
            with self.subTest(args=args):
                self.refused("arena", "--dry-run", *args, says=says, env=CPU_ONLY)


if __name__ == "__main__":
    unittest.main()
