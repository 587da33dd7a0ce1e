# SPDX-License-Identifier: MIT
"""Token files in every format: the same tokens give the same result in every format.

Each container is written here byte by byte, from docs/formats.md. The result of `iron feed`
is compared with the oracle; `iron sniff` must name the format and mark guesses as guesses.
"""

import json
import os
import random
import struct
import unittest

from harness import DTYPES, SEED, IronTest, npy, oracle, pack, parse_json

NPY_TYPES = {"u8": "|u1", "u16": "<u2", "u32": "<u4", "i32": "<i4", "i64": "<i8"}
MEGATRON_CODES = {"u8": 1, "i32": 4, "i64": 5, "u16": 8}
LITPKDS_CODES = {"u8": 1, "i32": 4, "i64": 5, "u16": 8}
LLMC_KINDS = {"u16": (20240520, 1), "u32": (20240801, 7)}
SNIFF_KEYS = {"file", "format", "dtype", "is_guess", "bytes", "data_offset", "tokens", "documents",
              "compression", "rows", "columns", "reasons", "problem"}


def width(dtype: str) -> int:
    return struct.calcsize(DTYPES[dtype])


def llmc(tokens, dtype, count=None) -> bytes:
    magic, version = LLMC_KINDS[dtype]
    header = struct.pack("<3i", magic, version, len(tokens) if count is None else count)
    return header.ljust(1024, b"\0") + pack(tokens, dtype)


def litpkds(tokens, dtype) -> bytes:
    return (b"LITPKDS" + struct.pack("<QBQ", 1, LITPKDS_CODES[dtype], len(tokens))
            + pack(tokens, dtype))


def megatron_index(lengths, dtype, documents=None) -> bytes:
    offsets = [sum(lengths[:k]) * width(dtype) for k in range(len(lengths))]
    documents = [0, len(lengths)] if documents is None else documents
    return (b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, MEGATRON_CODES[dtype], len(lengths),
                                         len(documents))
            + struct.pack(f"<{len(lengths)}i", *lengths) + struct.pack(f"<{len(lengths)}q", *offsets)
            + struct.pack(f"<{len(documents)}q", *documents))


class FormatTest(IronTest):
    def setUp(self):
        super().setUp()
        self.rng = random.Random(f"{SEED} {self.id()}")

    def some_tokens(self, count=1000, limit=256):
        return [self.rng.randrange(limit) for _ in range(count)]

    def containers(self, tokens, dtype, folder=""):
        """Writes the tokens in every format that has the width: {format: path}."""
        paths = {"raw": self.write(f"{folder}raw.bin", pack(tokens, dtype)),
                 "npy": self.write(f"{folder}a.npy",
                                   npy(tokens, NPY_TYPES[dtype], DTYPES[dtype]))}
        if dtype in LLMC_KINDS:
            paths["llmc"] = self.write(f"{folder}llmc.bin", llmc(tokens, dtype))
            paths["ds"] = self.write(f"{folder}X.ds", pack(tokens, dtype))
            self.write(f"{folder}X.ds.index", struct.pack("<2Q", len(tokens) // 3, len(tokens)))
            self.write(f"{folder}X.ds.metadata",
                       f"gpt2|{width(dtype)}\n{len(tokens)}\n1.0 kT".encode())
        if dtype in MEGATRON_CODES:
            half = len(tokens) // 2
            paths["megatron"] = self.write(f"{folder}P.bin", pack(tokens, dtype))
            self.write(f"{folder}P.idx",
                       megatron_index([half, 0, len(tokens) - half], dtype, [0, 1, 3]))
            paths["litpkds"] = self.write(f"{folder}chunk.bin", litpkds(tokens, dtype))
        return paths

    def report(self, *args, **kwargs):
        found = self.feed(*args, "--nodes", 64, "--batch", 300, "--seal", **kwargs)
        return {k: found[k] for k in ("tokens", "batches", "xor", "sum", "state", "seal")}

    def wanted(self, tokens):
        engine = oracle.Engine(oracle.Config(nodes=64, batch=300)).feed(tokens)
        return engine.report() | {"seal": oracle.seal(tokens)}

    def sniff(self, *paths, code=0):
        result = self.iron("sniff", *paths, "--json")
        self.assertEqual(result.code, code, str(result))
        found = parse_json(result.out)
        self.assertIsInstance(found, list)
        self.assertEqual([f["file"] for f in found], [str(p) for p in paths])
        for f in found:
            self.assertEqual(set(f), SNIFF_KEYS)
        return found


class SameTokens(FormatTest):
    def test_every_container_of_every_width(self):
        tokens = self.some_tokens()
        wanted, seen = self.wanted(tokens), 0
        for dtype in DTYPES:
            for name, path in self.containers(tokens, dtype).items():
                with self.subTest(dtype=dtype, format=name):
                    given = ["--dtype", dtype]
                    self.assertEqual(self.report(path, *given), wanted)
                    self.assertEqual(self.report(path, *given, "--format", name), wanted)
                    if name != "raw":
                        self.assertEqual(self.report(path), wanted)
                        self.assertEqual(self.report(path, "--format", name), wanted)
                    seen += 1
        self.assertEqual(seen, 5 + 5 + 2 + 2 + 4 + 4)

    def test_empty_containers(self):
        for dtype in DTYPES:
            for name, path in self.containers([], dtype).items():
                with self.subTest(dtype=dtype, format=name):
                    self.assertEqual(self.report(path, "--dtype", dtype), self.wanted([]))

    def test_through_pipes(self):
        tokens = self.some_tokens()
        wanted = self.wanted(tokens)
        for dtype in DTYPES:
            for name, path in self.containers(tokens, dtype).items():
                data = path.read_bytes()
                with self.subTest(dtype=dtype, format=name):
                    if name in ("megatron", "ds"):
                        self.refused("feed", "-", "--format", name, stdin=data, says="pipe")
                    elif name != "raw":
                        self.assertEqual(self.report("-", stdin=data), wanted)
                        self.assertEqual(self.report("-", "--format", name, stdin=data), wanted)
                        with path.open("rb") as file:
                            self.assertEqual(self.report("-", stdin=file), wanted)
                    else:
                        self.assertEqual(self.report("-", "--dtype", dtype, stdin=data), wanted)

    def test_directory_with_all_formats(self):
        tokens = self.some_tokens(limit=50257)
        paths = self.containers(tokens, "u16", "all/")
        found = self.feed(self.dir / "all", "--dtype", "u16")
        names = sorted(paths.values())  # no numbers in the names: natural order is plain order
        self.assertEqual(found["files"], [str(p) for p in names])
        self.assertEqual(found["tokens"], len(tokens) * 6)

    def test_names_of_a_megatron_pair(self):
        tokens = self.some_tokens()
        self.containers(tokens, "i32")
        wanted = self.wanted(tokens)
        for name in ("P", "P.bin", "P.idx"):
            self.assertEqual(self.report(name, "--format", "megatron"), wanted)
        self.refused("feed", "P.idx", "--dtype", "i32", says=["P.idx", "P.bin"])


class Refused(FormatTest):
    def test_conflicting_dtypes_are_refused(self):
        self.write("a.npy", npy([1, 2], "<u2", "H"))
        self.write("b.npy", npy([1, 2], "<i8", "q"))
        self.refused("feed", "a.npy", "b.npy", says=[r"a\.npy", r"b\.npy", "u16", "i64"])
        self.refused("feed", "a.npy", "--dtype", "u32", says=[r"a\.npy", "u16", "u32"])

    def test_wrong_header_reports_the_file(self):
        path = self.write("cut.bin", llmc([1, 2, 3], "u16", count=4))
        self.refused("feed", path, says=[r"cut\.bin", "4 tokens", "3 tokens"])
        self.write("bad.bin", pack([1, 2, 3], "u16"))
        self.write("bad.idx", megatron_index([2, 2], "u16"))
        self.refused("feed", "bad.bin", says=[r"bad\.idx at byte \d+", "expected"])

    def test_pipes_with_a_wrong_token_count(self):
        data = llmc(list(range(50)), "u16")
        self.refused("feed", "-", stdin=data[:-2], says=["49", "50"])
        self.refused("feed", "-", stdin=data + b"\1\0", says="50")
        self.refused("feed", "-", "--dtype", "u32", stdin=data, says=["u16", "u32"])

    def test_sidecars_name_their_main_file(self):
        self.containers(self.some_tokens(), "u16")
        for name in ("X.ds.index", "X.ds.metadata"):
            self.refused("feed", name, "--dtype", "u8", says=r"X\.ds,")

    def test_invalid_value_reports_file_and_byte(self):
        first = self.write("first.npy", npy([5, 6], "<i4", "i"))
        second = self.write("second.npy", npy([5, 6, -7], "<i4", "i"))
        offset = len(second.read_bytes()) - 4
        self.refused("feed", first, second, says=[rf"second\.npy at byte {offset}", "position 4",
                                                  "-7"])


class Sniff(FormatTest):
    def test_every_container(self):
        tokens = self.some_tokens(limit=50257)
        for dtype in ("u16", "u32"):
            for name, path in self.containers(tokens, dtype).items():
                with self.subTest(dtype=dtype, format=name):
                    [found] = self.sniff(path)
                    self.assertEqual(found["format"], name)
                    self.assertEqual(found["dtype"], dtype)
                    self.assertEqual(found["tokens"], len(tokens))
                    self.assertEqual(found["bytes"], path.stat().st_size)
                    self.assertEqual(found["data_offset"],
                                     path.stat().st_size - len(tokens) * width(dtype))
                    self.assertEqual(found["is_guess"], name == "raw")
                    self.assertEqual(found["documents"], {"ds": 2, "megatron": 2}.get(name))
                    self.assertIsNone(found["problem"])
                    self.assertTrue(found["reasons"])

    def test_guess_can_be_fed(self):
        for dtype, limit in (("u16", 50257), ("u32", 128256), ("i64", 128256)):
            path = self.write_tokens("t.bin", self.some_tokens(limit=limit), dtype)
            [found] = self.sniff(path)
            self.assertEqual((found["dtype"], found["is_guess"]), (dtype, True))
            self.assertIn(f"--dtype {dtype}", " ".join(found["reasons"]))
            self.assertEqual(self.feed(path, "--dtype", found["dtype"])["tokens"], 1000)

    def test_text_report(self):
        path = self.write("t.bin", llmc([1, 2, 3], "u16"))
        text = self.succeeds("sniff", path).text
        for word in (r"file +.*t\.bin", "format +llmc", "dtype +u16\n", "tokens +3\n", "20240520"):
            self.assertRegex(text, word)
        path = self.write_tokens("r.bin", self.some_tokens(limit=50257), "u16")
        text = self.succeeds("sniff", path).text
        for word in ("format +raw", r"dtype +u16 \(a guess\)", "--dtype u16"):
            self.assertRegex(text, word)

    def test_several_files_and_one_damaged(self):
        good = self.write("good.bin", llmc([1, 2, 3], "u16"))
        liar = self.write("liar.bin", llmc([1, 2, 3], "u16", count=5))
        found = self.sniff(good, liar, self.dir / "gone", code=2)
        self.assertEqual([f["format"] for f in found], ["llmc", "llmc", None])
        self.assertIsNone(found[0]["problem"])
        self.assertIn("5 tokens", found[1]["problem"])
        self.assertIn("gone", found[2]["problem"])
        self.assertIsNone(found[1]["tokens"])
        result = self.iron("sniff", good, liar)
        self.assertEqual(result.code, 2)
        self.assertRegex(result.text, "problem +.*5 tokens")
        self.assertRegex(result.message, r"\Airon: .*5 tokens[^\n]*\n\Z")

    def test_invalid_arguments_are_refused(self):
        os.mkfifo(self.dir / "fifo")
        for path, word in (("fifo", "pipe"), (".", "directory"), ("gone", "gone"), ("-", "-")):
            result = self.iron("sniff", path)
            self.assertEqual(result.code, 2)
            self.assertIn(word, result.message)
        self.refused("sniff", says="file")
        self.refused("sniff", "x", "--frobnicate", says="--frobnicate")

    def test_names_that_need_json_escaping(self):
        name = 'a"b\\c\nd.bin'
        self.write(name, llmc([1], "u16"))
        result = self.succeeds("sniff", name, "--json")
        self.assertEqual(json.loads(result.out)[0]["file"], name)
        self.assertEqual(self.succeeds("sniff", name).text.count("\n"),
                         self.succeeds("sniff", "./" + name).text.count("\n"))


if __name__ == "__main__":
    unittest.main()
