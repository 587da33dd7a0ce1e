# SPDX-License-Identifier: MIT
"""Where two streams differ: `iron diff`.

Every result is checked by comparing two Python lists: the first difference and its values, the
differing chunks and their ranges.  Claims about what happened (tokens inserted, a shard repeated)
are compared with the edit that was made.  The two sides come as files of any format and width, in
other shards, as a pipe, as manifests with and without their files.
"""

import json
import os
import random
import resource
import struct
import threading
import unittest

from harness import DTYPES, SEED, IronTest, npy, oracle, pack, parse_json

KEYS = ["equal", "kind", "position", "length", "source", "edits", "more_edits", "tokens",
        "first_difference", "chunk_tokens", "chunks", "differing_chunks", "ranges", "verified", "text"]
CHUNK = 1024


def compared(a, b, size=CHUNK) -> dict:
    """The expected report for two lists, without the explanation."""
    longer = max(len(a), len(b))
    common = min(len(a), len(b))
    first = next((k for k in range(common) if a[k] != b[k]), common if len(a) != len(b) else None)
    chunks = range(0, longer, size)
    ranges = []
    for begin in chunks:
        if a[begin:begin + size] == b[begin:begin + size]:
            continue
        end = min(begin + size, longer)
        if ranges and ranges[-1][1] == begin:
            ranges[-1][1] = end
        else:
            ranges.append([begin, end])
    differing = sum(a[k:k + size] != b[k:k + size] for k in chunks)
    place = None
    if first is not None:
        values = [s[first] if first < len(s) else None for s in (a, b)]
        place = {"position": first, "end": first + 1, "values": values}
    return {"equal": first is None, "tokens": [len(a), len(b)], "first_difference": place,
            "chunk_tokens": size, "chunks": len(chunks), "differing_chunks": differing,
            "ranges": ranges}


def llmc(tokens) -> bytes:
    return struct.pack("<256i", 20240520, 1, len(tokens), *[0] * 253) + pack(tokens, "u16")


def limit_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))


class DiffTest(IronTest):
    def setUp(self):
        super().setUp()
        self.dice = random.Random(SEED)

    def tokens(self, count, limit=50000):
        return [self.dice.randrange(limit) for _ in range(count)]

    def diff(self, *args, **kwargs) -> dict:
        """`iron diff --json`; the exit status must agree with the report."""
        result = self.iron("diff", *args, "--json", **kwargs)
        self.assertIn(result.code, (0, 1), str(result))
        self.assertEqual(result.err, b"", str(result))
        report = parse_json(result.out)
        self.assertEqual(list(report), KEYS)
        self.assertEqual(result.code, 0 if report["equal"] else 1, str(result))
        self.assertEqual(report["equal"], report["kind"] == "equal")
        return report

    def assert_compared(self, a, b, *args, size=CHUNK, **kwargs) -> dict:
        report = self.diff(*args, **kwargs)
        expected = compared(a, b, size)
        if report["edits"] and report["kind"] not in ("changed", "truncated", "extended"):
            # what follows an edit has moved: the ranges may contain more than what differs
            inside = [range(*r) for r in report["ranges"]]
            for begin, end in expected.pop("ranges"):
                self.assertTrue(any(begin in r and end - 1 in r for r in inside), report)
            self.assertGreaterEqual(report["differing_chunks"], expected.pop("differing_chunks"))
        self.assertEqual({k: report[k] for k in expected}, expected)
        return report

    def manifest(self, name, *paths, dtype="u32", chunk=CHUNK):
        self.succeeds("sum", *paths, "--dtype", dtype, "--manifest", name, "--chunk", chunk)
        return name


class Comparing(DiffTest):
    def test_random_streams(self):
        for trial in range(25):
            a = self.tokens(self.dice.randrange(1, 9000))
            b = a[:self.dice.randrange(1, len(a) + 1)]
            for _ in range(self.dice.randrange(4)):
                b[self.dice.randrange(len(b))] = self.dice.randrange(50000)
            self.write_tokens("a", a)
            self.write_tokens("b", b)
            with self.subTest(trial=trial):
                options = ["--dtype", "u32", "--chunk", CHUNK, "--threads", trial % 3 + 1]
                self.assert_compared(a, b, "a", "b", *options)
                self.assert_compared(b, a, "b", "a", *options)

    def test_every_pair_of_widths(self):
        a = self.tokens(5000, 256)
        b = a[:]
        b[4097] ^= 1
        for x in DTYPES:
            for y in DTYPES:
                self.write_tokens("a", a, x)
                self.write_tokens("b", b, y)
                with self.subTest(a=x, b=y):
                    self.assert_compared(a, b, "a", "b", "--dtype", f"{x},{y}", "--chunk", CHUNK)

    def test_formats_and_shards(self):
        a = self.tokens(6000)
        b = a[:]
        b[3333] = 7
        self.write("a.npy", npy(a, "<u4", "I"))
        for k, (begin, end) in enumerate(((0, 1000), (1000, 1001), (1001, 3333), (3333, 6000))):
            self.write(f"b/part-{k + 7}.bin", llmc(b[begin:end]))
        self.assert_compared(a, b, "a.npy", "b", "--chunk", CHUNK)
        self.assert_compared(b, a, "b", "a.npy", "--chunk", CHUNK)
        self.write_tokens("raw", b, "u16")
        self.assert_compared(a, b, "a.npy", "raw", "--dtype", "u32,u16", "--chunk", CHUNK)
        text = self.iron("diff", "a.npy", "b").text
        self.assertRegex(text, r"\Afirst difference at position 3333: \d+ \| 7\n")
        self.assertIn("A a.npy, token 3333\n", text)
        self.assertIn("B b/part-10.bin, token 0\n", text)

    def test_standard_input(self):
        a = self.tokens(5000)
        b = a[:2000] + [9] + a[2000:]
        self.write_tokens("a", a)
        options = ["--dtype", "u32", "--chunk", CHUNK]
        self.assert_compared(a, b, "a", "-", *options, stdin=pack(b))
        self.assert_compared(b, a, "-", "a", *options, stdin=pack(b))
        report = self.assert_compared(a, a[:100], "a", "-", *options, stdin=pack(a[:100]))
        self.assertEqual(report["kind"], "truncated")
        self.assert_compared(a, a, "a", "-", *options, stdin=pack(a))

    def test_more_shards_than_descriptors(self):
        """Two folders of 60 shards each under `ulimit -n 16`, on many threads."""
        a = self.tokens(60 * 500)
        b = list(a)
        b[20 * 500 + 7] ^= 1
        for folder, tokens in (("left", a), ("right", b)):
            (self.dir / folder).mkdir()
            for k in range(60):
                self.write_tokens(f"{folder}/part-{k}", tokens[500 * k:500 * (k + 1)], "u16")
        for threads in (1, 8):
            self.assert_compared(a, b, "left", "right", "--dtype", "u16", "--chunk", CHUNK,
                                 "--threads", threads, preexec_fn=limit_descriptors)

    def test_empty_streams(self):
        self.write("none", b"")
        self.write_tokens("one", [5])
        self.assert_compared([], [], "none", "none", "--dtype", "u32", size=2**20)
        report = self.assert_compared([], [5], "none", "one", "--dtype", "u32", size=2**20)
        self.assertEqual(report["kind"], "extended")

    def test_text(self):
        a = self.tokens(40000)
        self.write_tokens("a", a)
        self.assertEqual(self.succeeds("diff", "a", "a", "--dtype", "u32").text,
                         "equal: 40000 tokens\n")
        b = a[:]
        for k in range(0, 26000, 2 * CHUNK):
            b[k] = 60000
        self.write_tokens("b", b)
        result = self.iron("diff", "a", "b", "--dtype", "u32", "--chunk", CHUNK)
        self.assertEqual(result.code, 1)
        self.assertIn(f"first difference at position 0: {a[0]} | 60000\n", result.text)
        self.assertIn("13 of 40 chunks of 1024 tokens differ: positions 0-1023, 2048-3071",
                      result.text)
        self.assertIn("and 3 more\n", result.text)
        self.assertIn("\nchanged: ", result.text)
        self.write_tokens("c", a[:10])
        text = self.iron("diff", "a", "c", "--dtype", "u32").text
        self.assertIn(f"first difference at position 10: {a[10]} | the end\n", text)


class Explaining(DiffTest):
    def found(self, a, b, *options) -> dict:
        self.write_tokens("a", a)
        self.write_tokens("b", b)
        return self.assert_compared(a, b, "a", "b", "--dtype", "u32", "--chunk", CHUNK, *options)

    def assert_found(self, report, **expected):
        self.assertEqual({k: report[k] for k in expected}, expected, report["text"])

    def test_inserted_and_deleted(self):
        a = self.tokens(20000)
        for count in (1, 3, 4, 1000, 1025):
            at = self.dice.randrange(len(a))
            b = a[:at] + [60000] * count + a[at:]
            self.assert_found(self.found(a, b), kind="inserted", length=count, position=at,
                              edits=1, more_edits=False, source=None, verified=True)
            self.assert_found(self.found(b, a), kind="deleted", length=count, position=at,
                              edits=1, more_edits=False, source=None, verified=True)

    def test_unrelated(self):
        for limit in (2, 50000):
            a, b = self.tokens(9000, limit), self.tokens(9001, limit)
            self.write_tokens("a", a)
            self.write_tokens("b", b)
            report = self.diff("a", "b", "--dtype", "u32")
            self.assert_found(report, kind="changed", source=None)

    def test_sentences(self):
        a = self.tokens(20000)

        def says(b, *words):
            self.write_tokens("a", a)
            self.write_tokens("b", b)
            text = self.iron("diff", "a", "b", "--dtype", "u32").text
            for word in words:
                self.assertIn(word, text)
        says(a[:9000] + a[3000:4000] + a[9000:],
             "repeated: at position 9000 the second repeats 1000 tokens of the first, from its "
             "position 3000 on; the rest agrees\n")
        says(a[:5000] + a[6000:9000] + a[5000:6000] + a[9000:],
             "moved: 1000 tokens moved from position 5000 of the first to 8000 of the second")
        says(a[:5000] + a[6000:], "deleted: 1000 tokens of the first, from position 5000 on, were")
        says(a[:5000] + [60000] + a[5001:], "changed: the token at position 5000 changed; the rest")
        says(a[:5000] + [60000, 60001] + a[5000:-3], "inserted: 2 tokens were inserted at position "
             "5000; the first of 2 edits\n")
        says(a[:-3], "truncated: the second is the beginning of the first, which has 3 tokens more")


class Manifests(DiffTest):
    def setUp(self):
        super().setUp()
        self.a = self.tokens(20000)
        self.b = self.a[:9000] + [60000, 60001, 60002] + self.a[9000:]
        self.write_tokens("a.bin", self.a)
        self.write_tokens("b.bin", self.b)

    def test_with_their_files(self):
        self.manifest("a.m", "a.bin")
        self.manifest("b.m", "b.bin")
        for pair in (("a.m", "b.m"), ("a.m", "b.bin"), ("a.bin", "b.m")):
            with self.subTest(pair=pair):
                report = self.assert_compared(self.a, self.b, *pair, "--dtype", "u32")
                self.assertEqual(
                    (report["kind"], report["length"], report["position"], report["verified"]),
                    ("inserted", 3, 9000, True))

    def test_without_their_files(self):
        self.manifest("a.m", "a.bin")
        self.manifest("b.m", "b.bin")
        os.remove(self.dir / "b.bin")
        report = self.diff("a.m", "b.m")
        expected = compared(self.a, self.b)
        expected["first_difference"] = {"position": 8192, "end": 9216, "values": [None, None]}
        self.assertEqual({k: report[k] for k in expected}, expected)
        self.assertEqual((report["kind"], report["length"], report["position"], report["verified"]),
                         ("inserted", 3, 8192, True))
        os.remove(self.dir / "a.bin")
        report = self.diff("a.m", "b.m")
        self.assertEqual((report["kind"], report["length"], report["verified"]),
                         ("inserted", 3, False))
        self.assertIn("first difference in positions 8192 to 9215", self.iron("diff", "a.m",
                                                                              "b.m").text)

    def test_files_beside_the_manifest(self):
        os.makedirs(self.dir / "away")
        os.rename(self.dir / "b.bin", self.dir / "away" / "b.bin")
        self.succeeds("sum", "b.bin", "--dtype", "u32", "--manifest", "b.m", "--chunk", CHUNK,
                      cwd=self.dir / "away")
        self.assert_compared(self.a, self.b, "a.bin", "away/b.m", "--dtype", "u32")
        self.manifest("c.m", "away/b.bin")  # and then moved beside the file, away from here
        os.rename(self.dir / "c.m", self.dir / "away" / "c.m")
        os.rename(self.dir / "away", self.dir / "else")
        self.assert_compared(self.a, self.b, "a.bin", "else/c.m", "--dtype", "u32")

    def test_files_changed_after_the_manifest(self):
        self.manifest("a.m", "a.bin")
        self.manifest("b.m", "b.bin")
        changed = self.b[:]
        changed[9001] ^= 1
        self.write_tokens("b.bin", changed)
        report = self.diff("a.m", "b.m")
        self.assertEqual(report["first_difference"],
                         {"position": 8192, "end": 9216, "values": [None, None]})
        self.assertIn("b.m are no longer what its manifest says", report["text"])

    def test_the_manifest_tells_the_dtype(self):
        self.write_tokens("u16.bin", self.a, "u16")
        self.write_tokens("changed.bin", self.a[:50] + [7] + self.a[51:], "u16")
        self.manifest("u16.m", "u16.bin", dtype="u16")
        self.assertEqual(self.diff("u16.m", "changed.bin")["position"], 50)
        self.assertEqual(self.diff("changed.bin", "u16.m")["length"], 1)
        self.assertEqual(self.diff("u16.m", "a.bin", "--dtype", "u32")["kind"], "equal")

    def test_equal_manifests(self):
        self.manifest("a.m", "a.bin")
        self.manifest("c.m", "a.bin", chunk=4096)
        text = self.succeeds("diff", "a.m", "a.bin", "--dtype", "u32").text
        self.assertEqual(text, f"equal: 20000 tokens, seal {oracle.seal(self.a)}\n")
        self.assertEqual(self.diff("a.m", "c.m")["kind"], "equal")
        os.remove(self.dir / "a.bin")
        self.assertEqual(self.diff("a.m", "c.m")["kind"], "equal")

    def test_different_chunk_sizes(self):
        self.manifest("a.m", "a.bin")
        self.manifest("b.m", "b.bin", chunk=2048)
        self.assert_compared(self.a, self.b, "a.m", "b.m")
        self.assert_compared(self.a, self.b, "a.m", "b.m", "--chunk", 4096, size=4096)
        os.remove(self.dir / "a.bin")
        self.assertEqual(self.diff("a.m", "b.m")["chunk_tokens"], CHUNK)
        self.refused("diff", "a.m", "b.m", "--chunk", 2048, says="--chunk")
        os.remove(self.dir / "b.bin")
        self.refused("diff", "a.m", "b.m", says=["--chunk", "not available"])

    def test_sorted_members(self):
        self.manifest("a.m", "a.bin")
        members = json.loads((self.dir / "a.m").read_text())
        text = json.dumps(members, sort_keys=True, indent=400)  # the schema comes late
        self.write("sorted.m", text.encode())
        self.assertEqual(self.diff("sorted.m", "a.bin", "--dtype", "u32")["kind"], "equal")
        self.assert_compared(self.a, self.b, "sorted.m", "b.bin", "--dtype", "u32")

    def test_manifest_with_a_wrong_seal(self):
        self.manifest("a.m", "a.bin")
        m = json.loads((self.dir / "a.m").read_text())
        words = oracle.seal_words(self.a)
        m["words"][2] = str(words[2] ^ 1)
        m["seal"] = oracle.seal_text([words[0], words[1], words[2] ^ 1, words[3]])
        self.write("bad.m", json.dumps(m).encode())
        self.refused("diff", "a.m", "bad.m", says=["bad.m", "damaged manifest", m["seal"]])
        self.refused("diff", "bad.m", "a.bin", "--dtype", "u32", says="bad.m is a damaged")
        self.refused("diff", "a.bin", "bad.m", "--dtype", "u32", says="bad.m is a damaged")

    def test_named_pipe(self):
        os.mkfifo(self.dir / "fifo")
        data = pack(self.a, "u32")
        for other, code in (("a.bin", 0), ("b.bin", 1)):
            writer = threading.Thread(target=(self.dir / "fifo").write_bytes, args=(data,))
            writer.start()
            result = self.iron("diff", "fifo", other, "--dtype", "u32")
            writer.join()
            self.assertEqual(result.code, code, str(result))

    def test_pipe_and_redirected_file(self):
        """What changed is exact in a pipe, too; of a file on standard input everything is told."""
        data = {"changed": self.a[:500] + [7, 8, self.a[502], 9] + self.a[504:],
                "inserted": self.a[:500] + [7, 8] + self.a[500:]}
        for kind, tokens in data.items():
            path = self.write_tokens(kind, tokens)
            with path.open("rb") as file:
                result = self.iron("diff", "a.bin", "-", "--dtype", "u32", "--json", stdin=file)
            found = json.loads(result.out)
            self.assertEqual((result.code, found["kind"], found["position"]), (1, kind, 500), str(result))
            piped = json.loads(self.iron("diff", "a.bin", "-", "--dtype", "u32", "--json", stdin=path.read_bytes()).out)
            self.assertEqual((piped["kind"], piped["position"]), ("changed", 500))
            if kind == "changed":
                self.assertEqual((found["length"], piped["length"]), (4, 4))

    def test_partial_manifest(self):
        self.succeeds("sum", "a.bin", "--dtype", "u32", "--part", "1/2", "-o", "part.m")
        self.refused("diff", "part.m", "b.bin", "--dtype", "u32", says="iron merge")


class Help(DiffTest):
    def test_help(self):
        text = self.succeeds("diff", "--help").text
        for word in ("--chunk", "--dtype", "--format", "--threads", "--json", "manifest"):
            self.assertIn(word, text)
        self.assertIn("diff", self.succeeds("--help").text)


class Refusing(DiffTest):
    def setUp(self):
        super().setUp()
        self.write_tokens("a", self.tokens(100))

    def test_invalid_usage_is_refused(self):
        self.refused("diff", says="two streams")
        self.refused("diff", "a", "--dtype", "u32", says="two streams")
        self.refused("diff", "a", "a", "a", "--dtype", "u32", says="two streams")
        self.refused("diff", "-", "-", "--dtype", "u32", says="not both")
        self.refused("diff", "a", "a", says="--dtype")
        for dtype in ("u32,", ",u32", "u32,u64", "u32,u32,u32", "u16,u32678901234"):
            self.refused("diff", "a", "a", "--dtype", dtype)
        for chunk in (0, 1, 1022, 1026, "x"):
            self.refused("diff", "a", "a", "--dtype", "u32", "--chunk", chunk)
        self.refused("diff", "a", "a", "--dtype", "u32", "--backend", "cuda", says="CPU")
        self.refused("diff", "a", "a", "--dtype", "u32", "--threads", 0, says="threads")

    def test_invalid_inputs_are_refused(self):
        self.refused("diff", "a", "missing", "--dtype", "u32", says="missing")
        self.write("odd", b"\0" * 7)
        self.refused("diff", "a", "odd", "--dtype", "u32", says="odd")
        self.write("bad", pack([1, 2, 3, -4, 5], "i32"))
        self.refused("diff", "a", "bad", "--dtype", "u32,i32", says=["bad", "position 3 is -4"])
        self.write("damaged.m", json.dumps({"schema": "iron.manifest/1"}).encode())
        self.refused("diff", "damaged.m", "a", "--dtype", "u32")


if __name__ == "__main__":
    unittest.main()
