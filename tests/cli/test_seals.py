# SPDX-License-Identifier: MIT
"""The seal is the same for the same tokens in any format, and differs after any damage.

The containers are written here byte by byte, from docs/formats.md, with random values for
everything that their writers may choose: documents, header versions, dimensions.  The same tokens
in six formats and five widths, in one file or in shards cut at odd places, from files and through pipes, must have
the oracle's seal; `sum`, `merge`, `check`, `diff` and `stat` must agree about them.  Then damage of
the kinds that happen: every one must be seen by `check`, and found by `diff` at the place where a
comparison of two lists finds it.  Where `diff` says what happened, doing that to the first stream
must give the second.
"""

import random
import shutil
import struct
import unittest
from collections import Counter

from harness import (DTYPE_MAX, DTYPES, REDUCED, SEED, IronTest, applied_edit, load_golden, oracle,
                     pack, parse_json)

CHUNK = 1024
FORMATS = {"raw": ("u8", "u16", "u32", "i32", "i64"), "npy": ("u8", "u16", "u32", "i32", "i64"),
           "llmc": ("u16", "u32"), "ds": ("u16", "u32"), "megatron": ("u8", "u16", "i32", "i64"),
           "litpkds": ("u8", "u16", "i32", "i64")}
PIPED = ("raw", "npy", "llmc", "litpkds")
KINDS = [(form, dtype) for form, dtypes in FORMATS.items() for dtype in dtypes]
EXTENSION = {"npy": "npy", "ds": "ds"}
NPY = {"u8": "|u1", "u16": "<u2", "u32": "<u4", "i32": "<i4", "i64": "<i8"}
LLMC = {"u16": (20240520, 1), "u32": (20240801, 7)}
CODES = {"u8": 1, "i32": 4, "i64": 5, "u16": 8}  # of megatron and litpkds


def width(dtype) -> int:
    return struct.calcsize(DTYPES[dtype])


def cut(rng, tokens, count) -> list:
    """Pieces at odd places; some may be empty."""
    places = sorted(rng.randrange(len(tokens) + 1) | 1 for _ in range(count - 1))
    return [tokens[a:b] for a, b in zip([0, *places], [*places, len(tokens)])]


def npy_file(rng, tokens, dtype) -> bytes:
    version = rng.choice((1, 2, 3))
    rows = rng.choice([r for r in (1, 2, 3, 5, 7) if len(tokens) % r == 0])
    shape = rng.choice((f"({len(tokens)},)", f"({rows}, {len(tokens) // rows})"))
    head = f"{{'descr': '{NPY[dtype]}', 'fortran_order': False, 'shape': {shape}, }}"
    lead = 10 if version == 1 else 12
    head += " " * (-(lead + len(head) + 1) % 64) + "\n"
    length = struct.pack("<H" if version == 1 else "<I", len(head))
    return (b"\x93NUMPY" + bytes([version, 0]) + length + head.encode() + pack(tokens, dtype))


def llmc_file(tokens, dtype) -> bytes:
    return struct.pack("<256i", *LLMC[dtype], len(tokens), *[0] * 253) + pack(tokens, dtype)


def litpkds_file(tokens, dtype) -> bytes:
    head = struct.pack("<QBQ", 1, CODES[dtype], len(tokens))
    return b"LITPKDS" + head + pack(tokens, dtype)


def megatron_index(rng, tokens, dtype) -> bytes:
    lengths = [len(piece) for piece in cut(rng, tokens, rng.randrange(1, 9))]
    if len(tokens) == 0:
        lengths = []
    offsets = [sum(lengths[:k]) * width(dtype) for k in range(len(lengths))]
    documents = [0, *sorted(rng.randrange(len(lengths) + 1) for _ in range(3)), len(lengths)]
    index = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, CODES[dtype], len(lengths), len(documents))
    index += struct.pack(f"<{len(lengths)}i", *lengths)
    index += struct.pack(f"<{len(offsets)}q", *offsets)
    index += struct.pack(f"<{len(documents)}q", *documents)
    return index + bytes(len(lengths) * rng.randrange(2))


def ds_neighbours(rng, tokens, dtype) -> tuple:
    """The cumulative ends of documents, and the metadata."""
    ends, end = [], 0
    for piece in cut(rng, tokens, 5):
        end += len(piece)
        ends.append(end)
    metadata = f"gpt2|{width(dtype)}\n{len(tokens)}\n{len(tokens) / 1000:.1f} kT"
    return struct.pack(f"<{len(ends)}Q", *ends), metadata.encode()


class SealTest(IronTest):
    def setUp(self):
        super().setUp()
        self.rng = random.Random(f"{SEED} {self.id()}")

    def some_tokens(self, count, limit=256) -> list:
        return [self.rng.randrange(limit) for _ in range(count)]

    def container(self, form, dtype, tokens, stem) -> str:
        """Writes the tokens with their sidecars; returns the file name."""
        name = f"{stem}.{EXTENSION.get(form, 'bin')}"
        data = pack(tokens, dtype)
        if form == "npy":
            data = npy_file(self.rng, tokens, dtype)
        elif form == "llmc":
            data = llmc_file(tokens, dtype)
        elif form == "litpkds":
            data = litpkds_file(tokens, dtype)
        elif form == "megatron":
            self.write(f"{stem}.idx", megatron_index(self.rng, tokens, dtype))
        elif form == "ds":
            index, metadata = ds_neighbours(self.rng, tokens, dtype)
            self.write(f"{name}.index", index)
            self.write(f"{name}.metadata", metadata)
        self.write(name, data)
        return name

    def containers(self, tokens) -> list:
        """The tokens in every format and every width that holds them: (name, format, dtype)."""
        top = max(tokens, default=0)
        return [(self.container(form, dtype, tokens, f"{form}-{dtype}"), form, dtype)
                for form, dtype in KINDS if DTYPE_MAX[dtype] >= top]

    def assert_line(self, result, seal, name):
        line, *comments = result.text.splitlines()
        self.assertEqual(line, f"{seal}  {name}", str(result))
        self.assertTrue(all(c.startswith("# iron sum --") for c in comments[:1]), str(result))
        self.assertEqual(comments[1:], [], str(result))

    def assert_checks(self, printed, *options):
        """`check` of the output of `sum` reports OK for every line."""
        self.write("list", printed.encode())
        names = [line.split("  ", 1)[1] for line in printed.splitlines() if line[0] != "#"]
        self.assertEqual(self.succeeds("check", "list", *options).text,
                         "".join(f"{name}: OK\n" for name in names))


class SameTokens(SealTest):
    def test_every_container_and_width(self):
        tokens = self.some_tokens(4115)  # a multiple of 5, and not of 4
        seal = oracle.seal(tokens)
        made = self.containers(tokens)
        self.assertEqual(len(made), 22)
        for name, form, dtype in made:
            with self.subTest(format=form, dtype=dtype):
                given = ["--dtype", dtype] if form == "raw" else []
                printed = self.succeeds("sum", name, *given)
                self.assert_line(printed, seal, name)
                self.assert_checks(printed.text, *given)
                for options in (["--stream"], ["--format", form], ["--dtype", dtype]):
                    self.assert_line(self.succeeds("sum", name, *given, *options), seal, name)
        for dtype in DTYPES:  # a list of all formats
            names = [name for name, _, d in made if d == dtype]
            printed = self.succeeds("sum", *names, "--dtype", dtype).text
            self.assertEqual(printed, "".join(f"{seal}  {name}\n" for name in names) +
                             f"# iron sum --dtype {dtype}\n")
            self.assert_checks(printed, "--dtype", dtype)

    def test_short_streams(self):
        for count in (0, 1, 5) if REDUCED else range(6):
            tokens = self.some_tokens(count)
            for name, form, dtype in self.containers(tokens):
                with self.subTest(count=count, format=form, dtype=dtype):
                    self.assert_line(self.succeeds("sum", name, "--dtype", dtype),
                                     oracle.seal(tokens), name)

    def test_the_largest_tokens_of_each_width(self):
        for form, dtype in KINDS:
            top = DTYPE_MAX[dtype]
            tokens = [top - t for t in self.some_tokens(1021)] + [0, top]
            with self.subTest(format=form, dtype=dtype):
                name = self.container(form, dtype, tokens, "top")
                self.assert_line(self.succeeds("sum", name, "--dtype", dtype), oracle.seal(tokens),
                                 name)
                (self.dir / name).unlink()
                (self.dir / "top.idx").unlink(missing_ok=True)

    def test_golden_seals(self):
        for case in load_golden()["seals"]:
            tokens = oracle.golden_tokens(case)
            made = self.containers(tokens)
            self.assertIn("i64", {dtype for _, _, dtype in made})
            for name, form, dtype in made:
                with self.subTest(case=case["name"], format=form, dtype=dtype):
                    self.assert_golden(case, self.json("sum", name, "--dtype", dtype, "--vocab",
                                                       case["vocab"])[0])

    def assert_golden(self, case, report):
        self.assertEqual((report["seal"], report["words"]), (case["seal"], case["words"]))
        stats = case.get("stats", {"min": None, "max": None, "out_of_vocab": 0})
        self.assertEqual({key: report[key] for key in stats}, stats)

    def test_pipes(self):
        tokens = self.some_tokens(70001)
        seal = oracle.seal(tokens)
        for name, form, dtype in self.containers(tokens):
            data = (self.dir / name).read_bytes()
            given = ["--format", form] + (["--dtype", dtype] if form == "raw" else [])
            with self.subTest(format=form, dtype=dtype):
                if form not in PIPED:
                    self.refused("sum", "-", *given, stdin=data, says="pipe")
                    continue
                self.assert_line(self.succeeds("sum", "-", *given, stdin=data), seal, "-")
                with open(self.dir / name, "rb") as file:
                    self.assert_line(self.succeeds("sum", "-", *given, "--stream", stdin=file),
                                     seal, "-")
                self.write("list", f"{seal}  -\n".encode())
                self.assertEqual(self.succeeds("check", "list", *given, stdin=data).text, "-: OK\n")
                short = data[:-width(dtype)]
                result = self.iron("check", "list", *given, stdin=short)
                self.assertEqual(result.code, 1, str(result))

    def test_diff_of_every_pair(self):
        tokens = self.some_tokens(2 * CHUNK + 7)
        made = self.containers(tokens)
        pairs = [(a, b) for k, a in enumerate(made) for b in made[k:]]
        for (a, form_a, dtype_a), (b, form_b, dtype_b) in self.rng.sample(
                pairs, 50 if REDUCED else len(pairs)):
            with self.subTest(a=(form_a, dtype_a), b=(form_b, dtype_b)):
                given = ["--dtype", f"{dtype_a},{dtype_b}"]
                self.assertEqual(self.succeeds("diff", a, b, *given).text,
                                 f"equal: {len(tokens)} tokens\n")

    def test_stat_of_every_container(self):
        tokens = self.some_tokens(5003)
        zeros, out = tokens.count(0), sum(t >= 200 for t in tokens)
        for name, form, dtype in self.containers(tokens):
            with self.subTest(format=form, dtype=dtype):
                report, = self.json("sum", name, "--dtype", dtype, "--vocab", 200)
                figures = self.json("stat", name, "--dtype", dtype, "--vocab", 200, "--hist")
                for key in ("tokens", "min", "max", "out_of_vocab", "vocab"):
                    self.assertEqual(figures[key], report[key], key)
                self.assertEqual((figures["zeros"], figures["out_of_vocab"]), (zeros, out))
                first = figures["out_of_vocab_places"][0]
                self.assertEqual({k: first[k] for k in ("position", "value")},
                                 report["first_out_of_vocab"])
                (common, times), = Counter(t for t in tokens if t < 200).most_common(1)
                top = figures["histogram"]["top"][0]
                self.assertEqual((top["count"], tokens.count(top["id"])), (times, times), common)


class Shards(SealTest):
    def shards(self, tokens, dtype, forms, count, folder) -> list:
        """Pieces in files whose natural order is not that of their letters."""
        return [self.container(self.rng.choice(forms), dtype, piece, f"{folder}/part-{k + 8}")
                for k, piece in enumerate(cut(self.rng, tokens, count))]

    def test_every_container_in_shards(self):
        tokens = self.some_tokens(9001)
        seal = oracle.seal(tokens)
        for form, dtype in KINDS:
            folder = f"{form}-{dtype}"
            names = self.shards(tokens, dtype, [form], 5, folder)
            with self.subTest(format=form, dtype=dtype):
                self.assert_shards(names, folder, seal, ["--dtype", dtype])
                self.assert_parts(names, seal, ["--dtype", dtype])

    def test_formats_mixed(self):
        tokens = self.some_tokens(9001)
        for dtype in DTYPES:
            forms = [form for form, dtypes in FORMATS.items() if dtype in dtypes]
            names = self.shards(tokens, dtype, forms, 9, dtype)
            with self.subTest(dtype=dtype, names=names):
                self.assert_shards(names, dtype, oracle.seal(tokens), ["--dtype", dtype])
                self.assert_parts(names, oracle.seal(tokens), ["--dtype", dtype])
        for a in DTYPES:  # one stream, in other shards and another width
            for b in DTYPES:
                self.assertEqual(self.succeeds("diff", a, b, "--dtype", f"{a},{b}").text,
                                 f"equal: {len(tokens)} tokens\n")

    def assert_shards(self, names, folder, seal, given):
        """As a list of files, as a folder, with a manifest, with `stat`."""
        whole = self.succeeds("sum", *names, *given, "--stream")
        self.assert_line(whole, seal, " ".join(names))
        printed = self.succeeds("sum", folder, *given, "--stream")
        self.assert_line(printed, seal, folder)
        self.assert_checks(printed.text, *given)
        self.assert_checks(self.succeeds("sum", *names, *given).text, *given)
        self.succeeds("sum", *names, *given, "--manifest", "m", "--chunk", CHUNK)
        self.assertEqual(self.succeeds("check", "m").text,
                         "".join(f"{name}: OK\n" for name in names))
        figures = self.json("stat", folder, *given, "--vocab", 256)
        self.assertEqual((figures["tokens"], figures["files"]), (9001, names))

    def assert_parts(self, names, seal, given):
        count = self.rng.randrange(2, 9)
        parts = [f"p{k}" for k in range(1, count + 1)]
        for k, part in enumerate(parts, 1):
            self.succeeds("sum", *names, *given, "--part", f"{k}/{count}", "-o", part, "--chunk",
                          CHUNK)
        self.rng.shuffle(parts)
        self.assert_line(self.succeeds("merge", *parts, "-o", "merged"), seal, " ".join(names))
        self.assertEqual((self.dir / "merged").read_bytes(), (self.dir / "m").read_bytes())
        self.refused("merge", *parts[1:], says="missing")
        self.refused("merge", *parts, parts[0], says="twice")


class Damage(SealTest):
    """The first stream is a raw file of u16; the second comes in any container."""

    COUNT = 40 * CHUNK + 3

    def setUp(self):
        super().setUp()
        self.a = self.some_tokens(self.COUNT, 50000)
        self.container("raw", "u16", self.a, "a")
        self.list = self.succeeds("sum", "a.bin", "--dtype", "u16").text
        self.assert_line(self.succeeds("sum", "a.bin", "--dtype", "u16"), oracle.seal(self.a),
                         "a.bin")
        self.succeeds("sum", "a.bin", "--dtype", "u16", "--manifest", "m", "--chunk", CHUNK)

    def damaged(self, b, kinds=None) -> dict:
        """`check` and `diff` detect the damage.  Returns the report of `diff`, whose claims are checked."""
        self.assertNotEqual(self.a, b)
        self.assert_not_ok(b)
        form, dtype = self.rng.choice([k for k in KINDS if DTYPE_MAX[k[1]] >= 65535])
        name = self.container(form, dtype, b, f"b-{form}-{dtype}")
        result = self.iron("diff", "a.bin", name, "--dtype", f"u16,{dtype}", "--chunk", CHUNK,
                           "--json")
        self.assertEqual((result.code, result.err), (1, b""), str(result))
        report = parse_json(result.out)
        self.assert_first(b, report["first_difference"])
        self.assert_claim(b, report)
        if kinds:
            self.assertIn(report["kind"], kinds, report["text"])
        return report

    def assert_not_ok(self, b):
        """The damaged stream under the name of the original: the list and the manifest fail."""
        self.write("away/a.bin", pack(b, "u16"))
        self.write("away/list", self.list.encode())
        self.write("away/m", (self.dir / "m").read_bytes())
        for args in (["list", "--dtype", "u16"], ["m"]):
            result = self.iron("check", *args, cwd=self.dir / "away")
            self.assertEqual(result.code, 1, str(result))
            self.assertRegex(result.text, r"\Aa\.bin: FAILED", str(result))

    def assert_first(self, b, found):
        a = self.a
        common = min(len(a), len(b))
        first = next((k for k in range(common) if a[k] != b[k]), common)
        values = [s[first] if first < len(s) else None for s in (a, b)]
        self.assertEqual(found, {"position": first, "end": first + 1, "values": values})

    def assert_claim(self, b, report):
        """Applying the changes that `diff` reports to the first stream gives the second."""
        a, kind, text = self.a, report["kind"], report["text"]
        self.assertNotEqual(kind, "equal")
        self.assertTrue(report["verified"], text)
        if report["edits"] == 1 and not report["more_edits"]:
            self.assertEqual(applied_edit(a, b, report), b, text)
        if kind in ("repeated", "moved"):
            source, at, length = report["source"], report["position"], report["length"]
            self.assertEqual(a[source:source + length], b[at:at + length], text)

    def two_places(self, distance) -> tuple:
        """Two different tokens at this distance."""
        while True:
            k = self.rng.randrange(self.COUNT - distance)
            if self.a[k] != self.a[k + distance]:
                return k, k + distance

    def test_swapped_tokens(self):
        for distance in (1, 2, 3, 4, 5, 7, 8, 12, 16, 64, 256, 1000, 1024, 4096, 4100, 32768):
            with self.subTest(distance=distance):
                i, j = self.two_places(distance)
                b = self.a[:]
                b[i], b[j] = b[j], b[i]
                report = self.damaged(b, ["changed"])
                self.assertEqual(report["differing_chunks"], len({i // CHUNK, j // CHUNK}))

    def test_changes_that_cancel_in_a_sum(self):
        for distance in (1, 2, 3, 4, 8, 1024, 16384, 40000):
            with self.subTest(distance=distance):
                i, j = self.two_places(distance)
                b = self.a[:]
                b[i] += 1
                b[j] += -1 if b[j] else 2
                self.damaged(b, ["changed"])

    def test_double_bit_flips(self):
        for bit in range(16):
            i, j = self.two_places(self.rng.randrange(1, 20000))
            b = self.a[:]
            b[i] ^= 1 << bit
            b[j] ^= 1 << bit
            with self.subTest(bit=bit):
                self.damaged(b, ["changed"])

    def test_moved_blocks(self):
        for size in (1, 4, 5, 100, CHUNK, 3 * CHUNK + 1):
            begin = self.rng.randrange(self.COUNT - size)
            rest = self.a[:begin] + self.a[begin + size:]
            to = (begin + self.rng.randrange(5 * CHUNK, 20 * CHUNK)) % len(rest)
            with self.subTest(size=size, begin=begin, to=to):
                b = rest[:to] + self.a[begin:begin + size] + rest[to:]
                self.damaged(b)

    def test_moved_chunks(self):
        for size in (1, 2, 7):
            begin = self.rng.randrange(20) * CHUNK
            end = begin + size * CHUNK
            to = end + self.rng.randrange(1, 10) * CHUNK
            b = self.a[:begin] + self.a[end:to] + self.a[begin:end] + self.a[to:]
            with self.subTest(size=size):
                self.assertEqual(self.damaged(b, ["moved"])["edits"], 1)

    def test_truncated_and_grown_tails(self):
        for count in (1, 2, 3, 4, 5, CHUNK, 17 * CHUNK + 1):
            with self.subTest(count=count):
                self.damaged(self.a[:-count], ["truncated"])
                self.damaged(self.a + self.some_tokens(count, 50000), ["extended"])
                self.damaged(self.a[:-count] + [0] * count, ["changed"])  # filled with zeros
        self.damaged(self.a + [0], ["extended"])

    def test_inserted_and_deleted(self):
        for count in (1, 2, 3, 4, 7, CHUNK, 5000):
            at = self.rng.randrange(CHUNK, self.COUNT - 8 * CHUNK)
            with self.subTest(count=count, at=at):
                b = self.a[:at] + [50001] * count + self.a[at:]
                report = self.damaged(b, ["inserted"])
                self.assertEqual((report["length"], report["position"]), (count, at))
                b = self.a[:at] + self.a[at + count:]
                self.assertEqual(self.damaged(b, ["deleted"])["length"], count)

    def test_insertion_followed_by_a_change(self):
        """False claims must not be reported as verified."""
        for _ in range(6):
            at = self.rng.randrange(self.COUNT - 20 * CHUNK)
            b = self.a[:at] + [50001, 50002, 50003] + self.a[at:]
            b[at + self.rng.randrange(4, 19 * CHUNK)] = 50004
            with self.subTest(at=at):
                self.damaged(b)

    def test_several_edits(self):
        """In both directions: every claim of `diff` must be true."""
        a, at, later = self.a, 5 * CHUNK + 1, 25 * CHUNK + 2
        edits = {"two insertions": a[:at] + [50001] * 3 + a[at:later] + [50002] + a[later:],
                 "two deletions": a[:at] + a[at + 3:later] + a[later + 1:],
                 "undone": a[:at] + [50001] * 3 + a[at:later] + a[later + 3:],
                 "undone deletion": a[:at] + a[at + 1:later] + [50001] + a[later:],
                 "inserted and cut": a[:at] + [50001] * 3 + a[at:later],
                 "deleted and grown": a[:at] + a[at + 3:] + [50001] * 5000,
                 "another beginning": self.some_tokens(7, 50000) + a[5:],
                 "another end": a[:later] + self.some_tokens(9 * CHUNK + 1, 50000)}
        for name, b in edits.items():
            with self.subTest(edit=name):
                self.damaged(b)


class DamagedShards(SealTest):
    """Shards that a loader has read twice, in another order, or not at all."""

    def setUp(self):
        super().setUp()
        self.even = [self.some_tokens(6 * CHUNK, 50000) for _ in range(5)]
        self.odd = [self.some_tokens(6 * CHUNK + 5 * k + 1, 50000) for k in range(5)]

    def compared(self, shards, order, form) -> dict:
        a = [t for shard in shards for t in shard]
        b = [t for k in order for t in shards[k]]
        for folder, parts in (("a", shards), ("b", [shards[k] for k in order])):
            shutil.rmtree(self.dir / folder, ignore_errors=True)
            for k, part in enumerate(parts):
                self.container(form, "u16", part, f"{folder}/{k + 8}")
        given = ["--dtype", "u16"] if form == "raw" else []
        self.assert_line(self.succeeds("sum", "a", *given, "--stream"), oracle.seal(a), "a")
        self.write("list", f"{oracle.seal(a)}  b\n".encode())
        check = self.iron("check", "list", *given)
        self.assertEqual((check.code, check.text), (1, "b: FAILED\n"), str(check))
        result = self.iron("diff", "a", "b", *given, "--chunk", CHUNK, "--json")
        self.assertEqual(result.code, 1, str(result))
        report = parse_json(result.out)
        common = min(len(a), len(b))
        first = next((k for k in range(common) if a[k] != b[k]), common)
        self.assertEqual(report["first_difference"]["position"], first)
        self.assertEqual(report["tokens"], [len(a), len(b)])
        if report["edits"] == 1:
            self.assertEqual(applied_edit(a, b, report), b, report)
        return report

    def test_swapped(self):
        for form in ("raw", "npy", "llmc", "megatron", "ds", "litpkds"):
            with self.subTest(format=form):
                report = self.compared(self.even, (0, 3, 2, 1, 4), form)
                self.assertEqual((report["kind"], report["edits"]), ("reordered", 1))

    def test_repeated(self):
        report = self.compared(self.even, (0, 1, 2, 2, 4), "llmc")
        self.assertEqual((report["kind"], report["length"]), ("repeated", 6 * CHUNK))
        report = self.compared(self.odd, (0, 1, 1, 2, 3, 4), "raw")
        self.assertEqual((report["kind"], report["source"]), ("repeated", len(self.odd[0])))
        report = self.compared(self.odd, (0, 1, 2, 3, 4, 0), "npy")
        self.assertEqual((report["kind"], report["source"]), ("repeated", 0))

    def test_missing_shard(self):
        report = self.compared(self.odd, (0, 1, 3, 4), "ds")
        self.assertEqual((report["kind"], report["length"], report["position"]),
                         ("deleted", len(self.odd[2]), len(self.odd[0] + self.odd[1])))
        self.assertEqual(self.compared(self.odd, (0, 1, 2, 3), "megatron")["kind"], "truncated")

    def test_swapped_shards_that_do_not_align_with_chunks(self):
        report = self.compared(self.odd, (0, 2, 1, 3, 4), "litpkds")
        self.assertEqual((report["kind"], report["length"]), ("moved", len(self.odd[1])))
        self.assertEqual(self.compared(self.odd, (0, 3, 2, 1, 4), "litpkds")["kind"], "reordered")


if __name__ == "__main__":
    unittest.main()
