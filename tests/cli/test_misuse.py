# SPDX-License-Identifier: MIT
"""Inputs that are not what the user says: containers, text, wrong widths and folders with other
files.  Each is refused or warned about by name; nothing that is not tokens is sealed without a
word.  The second half is as important: tokens of every kind stay silent.
"""

import bz2
import gzip
import io
import json
import lzma
import os
import pickle
import random
import sqlite3
import struct
import tarfile
import unittest
import zipfile

from harness import IronTest, npy, oracle, pack

BODY = bytes(range(256)) * 40  # what a container contains


def zipfile_of(name) -> bytes:
    to = io.BytesIO()
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, BODY)
    return to.getvalue()


def tar_of(layout) -> bytes:
    to = io.BytesIO()
    with tarfile.open(fileobj=to, mode="w", format=layout) as archive:
        info = tarfile.TarInfo("tokens.bin")
        info.size = len(BODY)
        archive.addfile(info, io.BytesIO(BODY))
    return to.getvalue()


def sqlite_file() -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.execute("create table tokens (id integer)")
    connection.execute("insert into tokens values (7)")
    connection.commit()
    return connection.serialize()


def safetensors() -> bytes:
    header = b'{"tokens":{"dtype":"I64","shape":[640],"data_offsets":[0,5120]}}'
    return struct.pack("<Q", len(header)) + header + BODY[:5120]


def lz4_legacy(blocks) -> bytes:
    """lz4 -l: blocks of literals alone, each after its size."""
    return b"\x02\x21\x4c\x18" + b"".join(
        struct.pack("<I", 17 + len(BODY) % 255) + b"\xf0" + bytes([len(BODY) % 255])
        + BODY[:15 + len(BODY) % 255] for _ in range(blocks))


def bmp() -> bytes:
    size = 54 + len(BODY)
    return (b"BM" + struct.pack("<IHHI", size, 0, 0, 54)
            + struct.pack("<IiiHH", 40, 64, 64, 1, 24) + bytes(24) + BODY)


def tiff(order, mark) -> bytes:
    head = mark + struct.pack(order + "HI", 42, 8)
    return head + struct.pack(order + "HHHII", 1, 256, 4, 1, 640) + BODY


def windows_program() -> bytes:
    return b"MZ" + bytes(58) + struct.pack("<I", 128) + bytes(64) + b"PE\0\0" + BODY


def text(line, count=60) -> bytes:
    return (line * count).encode()


OBJECT = {"vocab_size": 65, "itos": {k: chr(65 + k) for k in range(26)},
          "stoi": {chr(65 + k): k for k in range(26)}}
LONG_OBJECT = [{"text": f"line {k}", "ids": list(range(k, k + 40))} for k in range(300)]

# name, bytes, what the message must say
CONTAINERS = [
    ("bzip2", bz2.compress(BODY), "is a bzip2 file"),
    ("bzip2 of nothing", bz2.compress(b""), "is a bzip2 file"),
    ("lzma", lzma.compress(BODY, lzma.FORMAT_ALONE), "is an lzma file"),
    ("zip", zipfile_of("tokens.bin"), "is a zip archive"),
    ("npz", zipfile_of("arr_0.npy"), "is a zip archive"),
    ("torch .pt", zipfile_of("archive/data.pkl"), "is a zip archive"),
    ("empty zip", b"PK\5\6" + bytes(18), "is a zip archive"),
    ("7z", b"7z\xbc\xaf\x27\x1c\0\4" + BODY, "is an archive"),
    ("rar", b"Rar!\x1a\x07\x01\0" + BODY, "is an archive"),
    ("tar, ustar", tar_of(tarfile.USTAR_FORMAT), "is a tar archive"),
    ("tar, GNU", tar_of(tarfile.GNU_FORMAT), "is a tar archive"),
    ("tar, pax", tar_of(tarfile.PAX_FORMAT), "is a tar archive"),
    ("avro", b"Obj\1\4\x16avro.schema\x14{}" + BODY, "is an Avro file"),
    ("avro of Spark", b"Obj\1\4\x30org.apache.spark.version\x0a3.5.1\x16avro.schema\x14{}" + BODY,
     "is an Avro file"),
    ("Feather", b"FEA1\0\0\0\0" + BODY + struct.pack("<I", 64) + b"FEA1", "is a Feather file of version 1"),
    ("lz4 -l", lz4_legacy(1), "is an lz4 file of the legacy format"),
    ("lz4 -l, blocks", lz4_legacy(40), "is an lz4 file of the legacy format"),
    ("lz4 -l, frames", lz4_legacy(2) + lz4_legacy(3), "is an lz4 file of the legacy format"),
    ("HDF5", b"\x89HDF\r\n\x1a\n\0\0\0\0" + BODY, "is an HDF5 file"),
    ("HDF5 behind a user block", bytes(512) + b"\x89HDF\r\n\x1a\n\0\0" + BODY, "is an HDF5 file"),
    ("SQLite", sqlite_file(), "is an SQLite database"),
    ("LMDB", bytes(16) + b"\xde\xc0\xef\xbe\1\0\0\0" + BODY, "is an LMDB database"),
    *((f"pickle, protocol {k}", pickle.dumps(OBJECT, k), "is a pickle") for k in (2, 3, 4, 5)),
    *((f"long pickle, protocol {k}", pickle.dumps(LONG_OBJECT, k), "is a pickle")
      for k in (2, 3, 4, 5)),
    ("pickle of one number", pickle.dumps(5, 4), "is a pickle"),
    ("two pickles", pickle.dumps(OBJECT, 4) + pickle.dumps(OBJECT, 4), "is a pickle"),
    ("a pickled string", pickle.dumps("text " * 20000, 5), "is a pickle"),
    ("old torch .pt", pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(1001, 2) + BODY,
     "is a pickle"),
    ("pickle, protocol 0", pickle.dumps(OBJECT, 0), "is text"),
    ("safetensors", safetensors(), "is a safetensors file"),
    ("GGUF", b"GGUF" + struct.pack("<IQQ", 3, 291, 24) + BODY, "is a GGUF model"),
    ("SentencePiece", b"\x0a\x0e\x0a\x05<unk>\x15\0\0\0\0\x18\x02" + BODY, "is a SentencePiece"),
    ("PDF", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n" + BODY, "is a PDF document"),
    ("PNG", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + BODY, "is a PNG image"),
    ("JPEG", b"\xff\xd8\xff\xe0\0\x10JFIF\0\1" + BODY, "is a JPEG image"),
    ("JPEG of a camera", b"\xff\xd8\xff\xe1\x24\x7fExif\0\0" + BODY, "is a JPEG image"),
    ("GIF", b"GIF89a\x40\0\x40\0" + BODY, "is a GIF image"),
    ("WebP", b"RIFF\x10\x28\0\0WEBPVP8 " + BODY, "is a WebP, WAV or AVI file"),
    ("WAV", b"RIFF\x10\x28\0\0WAVEfmt " + BODY, "is a WebP, WAV or AVI file"),
    ("BMP", bmp(), "is a BMP image"),
    ("TIFF", tiff("<", b"II"), "is a TIFF image"),
    ("TIFF, big-endian", tiff(">", b"MM"), "is a TIFF image"),
    ("ELF", b"\x7fELF\2\1\1" + bytes(9) + BODY, "is an executable"),
    ("Windows program", windows_program(), "is a Windows program"),
    ("Mach-O", b"\xcf\xfa\xed\xfe\x0c\0\0\1\0\0\0\0\2\0\0\0" + BODY, "is a compiled program"),
    ("WebAssembly", b"\0asm\1\0\0\0" + BODY, "is a compiled program"),
    ("compiled Python", b"\xa7\x0d\x0d\x0a" + bytes(4) + b"\1\2\3\4\5\6\0\0\xe3" + bytes(8) + BODY,
     "is a compiled program"),
    ("Git LFS pointer", b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab\n"
     b"size 12345\n", "is a Git LFS pointer"),
    ("JSON", json.dumps(LONG_OBJECT).encode(), "is text"),
    ("JSON lines", text('{"text": "the quick brown fox", "id": 17}\n'), "is text"),
    ("CSV", text("id,text,count\n1,the,40\n"), "is text"),
    ("Python", text("def encode(text):\n    return [stoi[c] for c in text]\n"), "is text"),
    ("Markdown", text("# Readme\n\nTokens of *everything*.\n"), "is text"),
    ("a short note", b"tokens of 2026-11\n", "is text"),
    ("German", text("Überall wächst Gras, größer als früher.\n"), "is text"),
    ("Chinese", text("讨论如何处理标记。\n"), "is text"),
    ("UTF-16", "the quick brown fox jumps\n".encode("utf-16-le").join([b"\xff\xfe", b""]),
     "is UTF-16 text"),
]


def zipf(seed, count, vocab):
    """Ids with the frequencies of words: id k has a probability of about 1/(k+1)."""
    r = random.Random(seed)
    return [min(int((vocab + 1) ** r.random()) - 1, vocab - 1) for _ in range(count)]


def uniform(seed, count, vocab):
    r = random.Random(seed)
    return [r.randrange(vocab) for _ in range(count)]


def padded(seed, count, vocab, pad):
    r = random.Random(seed)
    return [pad if r.random() < 0.9 else k for k in zipf(seed + 1, count, vocab)]


# the tokens, how they are stored, how they are read, what they look like
WIDTHS = [
    (zipf(1, 600, 50257), "u16", "u32", "u16"),
    (zipf(2, 3000, 32000), "u16", "u32", "u16"),
    (uniform(3, 1200, 50257), "u16", "u32", "u16"),
    (uniform(4, 20000, 32000), "u16", "u32", "u16"),
    (zipf(5, 3000, 50257), "u16", "u8", "u16"),
    (uniform(6, 3000, 32000), "u16", "u8", "u16"),
    (zipf(7, 500, 32000), "u32", "u16", "u32"),
    (uniform(8, 500, 50257), "u32", "u16", "u32"),
    (zipf(9, 500, 100277), "u32", "u16", "u32"),
    (uniform(10, 500, 128256), "u32", "u16", "u32"),
    (zipf(11, 500, 151643), "u32", "u16", "u32"),
    (uniform(12, 500, 200019), "u32", "u16", "u32"),
    (zipf(13, 500, 200019), "u32", "u8", "u32"),
    (uniform(14, 500, 50257), "i32", "u16", "u32"),
    (zipf(15, 500, 128256), "i64", "u32", "i64"),
    (uniform(16, 500, 50257), "i64", "u16", "i64"),
    (zipf(17, 500, 50257), "i64", "u8", "i64"),
    (zipf(18, 500, 32000), "i64", "i32", "i64"),
    (uniform(19, 2000, 20), "u8", "u16", "u8"),
    (zipf(20, 4000, 256), "u8", "u32", "u8"),
    (uniform(21, 2000, 12), "u16", "u32", "u16"),
    (padded(22, 4000, 50257, 50256), "u16", "u32", "u16"),
    (padded(23, 4000, 128256, 128001), "u32", "u16", "u32"),
]

# tokens that are read as they are stored, and must not cause a warning
LEGITIMATE = [
    *((uniform(30 + k, 5000, vocab), dtype) for k, (vocab, dtype) in enumerate([
        (2, "u8"), (5, "u8"), (20, "u8"), (256, "u8"), (2, "u16"), (12, "u16"), (256, "u16"),
        (300, "u16"), (32000, "u16"), (50257, "u16"), (65536, "u16"), (2, "u32"), (12, "u32"),
        (50257, "u32"), (65536, "u32"), (100277, "u32"), (200019, "u32"), (2**20, "u32"),
        (2**24, "u32"), (2**31, "u32"), (2**32, "u32"), (50257, "i32"), (2**31, "i32"),
        (128256, "i64"), (2**32, "i64")])),
    *((zipf(70 + k, 5000, vocab), dtype) for k, (vocab, dtype) in enumerate([
        (20, "u8"), (256, "u8"), (12, "u16"), (1000, "u16"), (32000, "u16"), (50257, "u16"),
        (65536, "u16"), (12, "u32"), (32000, "u32"), (128256, "u32"), (200019, "u32"),
        (2**31, "u32"), (50257, "i32"), (151643, "i64")])),
    (padded(90, 5000, 50257, 0), "u16"), (padded(91, 5000, 128256, 0), "u32"),
    (padded(92, 5000, 128256, 128001), "u32"), (padded(93, 5000, 2**20, 0x20002), "u32"),
    ([0] * 5000, "u8"), ([0] * 5000, "u16"), ([0] * 5000, "u32"), ([0] * 5000, "i64"),
    ([0x2020] * 5000, "u16"), ([65537] * 5000, "u32"), ([0x61626364] * 5000, "u32"),
    ([k * 257 for k in uniform(94, 5000, 256)], "u16"),
    (list(range(5000)), "u16"), (list(range(5000)), "u32"), (list(range(100000, 105000)), "u32"),
    ([2**32 - 1 - k for k in range(5000)], "u32"),
    ([1, 0] * 2500, "u16"), ([7], "u16"), ([], "u16"), (uniform(95, 3, 50257), "u32"),
    # four codebooks of an audio codec, interleaved
    ([k % 4 * 1024 + t for k, t in enumerate(uniform(96, 6000, 1024))], "u16"),
]


class Containers(IronTest):
    def test_refused_by_name(self):
        self.assertGreaterEqual(len(CONTAINERS), 40)
        for name, data, says in CONTAINERS:
            even = data + bytes(len(data) % 2)  # the size must not be the reason
            for content in {data, even} if says != "is a pickle" else {data}:
                with self.subTest(name=name, bytes=len(content)):
                    self.write("file", content)
                    self.refused("sum", "file", "--dtype", "u16", says=f"file {says}.*--format raw")

    def test_orc(self):
        """Recognised by both ends in files, by the beginning alone where the end cannot be seen."""
        self.write("file", b"ORC" + BODY + b"\x08\x96\x01\x10\x00\x82\xf4\x03\x03ORC\x0c")
        self.refused("sum", "file", "--dtype", "u16", says="file is an ORC file.*Parquet or Arrow.*--format raw")
        self.assertEqual(self.json("sniff", "file")[0]["format"], "orc")
        self.write("file.gz", gzip.compress((self.dir / "file").read_bytes()))
        self.refused("sum", "file.gz", "--dtype", "u16", says="file.gz is an ORC file")
        self.write("words.gz", gzip.compress(b"ORCHIDS AND OTHER WORDS " * 20))
        self.succeeds("sum", "words.gz", "--dtype", "u8")

    def test_by_every_reader(self):
        self.write("tokens.bin", bz2.compress(BODY))
        for args in (["sum", "--stream"], ["stat", "--vocab", 9], ["feed"], ["diff", "tokens.bin"],
                     ["push", "http://127.0.0.1:9/v1/engines/x"]):
            with self.subTest(command=args[0]):
                self.refused(args[0], "tokens.bin", *args[1:], "--dtype", "u8", says="bzip2 file")
        self.refused("sum", "tokens.bin", says="bzip2 file")  # before the missing --dtype
        self.write("meta.pkl", pickle.dumps(OBJECT, 1))
        self.refused("sum", "meta.pkl", "--dtype", "u8", says="is a pickle")

    def test_through_pipes(self):
        for name, data, says in CONTAINERS:
            if "short" in name or "one number" in name or "empty" in name or "nothing" in name:
                continue
            with self.subTest(name=name):
                self.assert_error_line(self.iron("sum", "-", "--dtype", "u32", stdin=data),
                                       says=f"standard input {says}")

    def seals_bytes(self, cases, *args):
        for k, (_, data, _) in enumerate(cases):
            self.write(f"f{k}", data)
        names = [f"f{k}" for k in range(len(cases))]
        lines = self.succeeds("sum", *names, "--dtype", "u8", *args).text.splitlines()
        for line, name, (title, data, _) in zip(lines, names, cases):
            self.assertEqual(line, f"{oracle.seal(list(data))}  {name}", title)

    def test_format_raw_reads_the_bytes(self):
        self.seals_bytes(CONTAINERS, "--format", "raw")

    def test_text_as_bytes(self):
        self.seals_bytes([case for case in CONTAINERS if case[2] == "is text"])

    def test_sniff_names_them(self):
        cases = [case for case in CONTAINERS if "text" not in case[2]]
        for k, (_, data, _) in enumerate(cases):
            self.write(f"f{k}", data)
        found = self.json("sniff", *(f"f{k}" for k in range(len(cases))))
        for (name, _, says), one in zip(cases, found, strict=True):
            with self.subTest(name=name):
                self.assertIsNone(one["dtype"])
                self.assertFalse(one["is_guess"])
                self.assertIn(says.removeprefix("is "), one["reasons"][0])

    def test_tokens_that_begin_like_a_container(self):
        """The magic alone is one or two tokens: not enough to refuse a file."""
        tail = zipf(99, 2000, 50257)
        for magic in (b"PK\3\4", b"BM", b"\x1f\x8b\x08\0", b"BZh9", b"MZ", b"II*\0", b"\x80\4\x95\0",
                      b"\x80\2}q", b"PAR1", b"GGUF", b"\xff\xd8\xff\xe0", b"{\"", b"Obj\1", b"RIFF",
                      b"\x1f\x8b\x08\0\0\0\0\0\0\3", b"\xff\xff\xff\xff\x40\0\0\0\x10\0\0\0",
                      b"\x04\x22\x4d\x18", b"\x02\x21\x4c\x18", b"ORC\0", b"FEA1", b"FEA1\0\0\0\0",
                      b"\x28\xb5\x2f\xfd\x08\0", b"\xff\xff\xff\xff", b"\xff\xfe",
                      b"\x7fEL" + b"F"):
            with self.subTest(magic=magic):
                self.write("file", magic + pack(tail, "u16"))
                self.succeeds("sum", "file", "--dtype", "u16")


class Widths(IronTest):
    def test_wrong_widths_are_warned_about(self):
        for tokens, stored, read, looks in WIDTHS:
            with self.subTest(stored=stored, read=read, tokens=len(tokens), max=max(tokens)):
                self.write("file", pack(tokens, stored))
                result = self.iron("sum", "file", "--dtype", read)
                self.assertEqual(result.code, 0, str(result))
                self.assertIn(b"  file\n", result.out)
                self.assertRegex(result.message, rf"\Airon: warning: file: .*look like {looks}, but "
                                                 rf"are read as {read}: [^\n]*\n\Z")
                strict = self.iron("sum", "file", "--dtype", read, "--strict")
                self.assertEqual((strict.code, strict.out, strict.err),
                                 (1, result.out, result.err))
                piped = self.iron("sum", "-", "--dtype", read, stdin=pack(tokens, stored))
                self.assertIn(f"standard input: its values look like {looks}", piped.message)
                self.assertEqual(piped.code, 0)
                raw = self.iron("sum", "file", "--dtype", read, "--format", "raw")
                self.assertEqual(raw.err, result.err)

    def test_sniff_agrees(self):
        for k, (tokens, stored, _, _) in enumerate(WIDTHS):
            self.write(f"f{k}", pack(tokens, stored))
        found = self.json("sniff", *(f"f{k}" for k in range(len(WIDTHS))))
        for (tokens, stored, _, looks), one in zip(WIDTHS, found, strict=True):
            with self.subTest(stored=stored, tokens=len(tokens), max=max(tokens)):
                self.assertEqual(one["dtype"], looks)

    def test_legitimate_tokens_are_silent(self):
        """All files of a dtype at once, and each through a pipe: a warning names the first."""
        for dtype in ("u8", "u16", "u32", "i32", "i64"):
            files = [pack(tokens, dtype) for tokens, stored in LEGITIMATE if stored == dtype]
            for k, data in enumerate(files):
                self.write(f"{dtype}/{k}", data)
                self.succeeds("sum", "-", "--dtype", dtype, "--strict", stdin=data)
            self.succeeds("sum", dtype, "--dtype", dtype, "--strict")

    def test_every_reader_warns(self):
        self.write("file", pack(zipf(1, 3000, 50257), "u16"))
        for args in (["sum", "--stream"], ["sum", "--manifest", "m"], ["stat", "--vocab", 2**32],
                     ["feed", "--vocab", 2**31, "--backend", "cpu"], ["diff", "file"]):
            with self.subTest(args=args):
                result = self.iron(args[0], "file", *args[1:], "--dtype", "u32")
                self.assertEqual(result.code, 0, str(result))
                self.assertIn("iron: warning: file: its values look like u16", result.message)

    def test_one_warning_for_many_files(self):
        for k in range(30):
            self.write(f"d/{k}.bin", pack(zipf(k, 600, 50257), "u16"))
        for args in ([], ["--stream"]):
            result = self.iron("sum", "d", *args, "--dtype", "u32", "--strict")
            self.assertEqual((result.code, result.err.count(b"\n")), (1, 1), str(result))
            self.assertRegex(result.message, r"warning: d/0.bin: .*\(29 other files, too\)\n")

    def test_a_warning_is_not_lost_behind_an_error(self):
        self.write("file", pack(zipf(1, 600, 50257), "u16"))
        result = self.iron("sum", "missing", "file", "--dtype", "u32", "--strict")
        self.assertEqual(result.code, 2)
        self.assertIn("cannot open missing", result.message)
        self.assertIn("warning: file: its values look like u16", result.message)

    def test_strict_statistics(self):
        self.write_tokens("file", [1, 2, 300], "u16")
        for args in ([], ["--json"]):
            relaxed = self.iron("stat", "file", "--dtype", "u16", "--vocab", 100, *args)
            strict = self.iron("stat", "file", "--dtype", "u16", "--vocab", 100, "--strict", *args)
            self.assertEqual((relaxed.code, strict.code), (0, 1))
            self.assertEqual(relaxed.err, strict.err)
        self.succeeds("stat", "file", "--dtype", "u16", "--vocab", 301, "--strict")

    def test_the_middle_is_looked_at(self):
        self.write("file", bytes(40000) + pack(zipf(1, 40000, 50257), "u16"))
        self.assertIn("look like u16", self.iron("sum", "file", "--dtype", "u32").message)


class Folders(IronTest):
    def setUp(self):
        super().setUp()
        self.tokens = {name: zipf(k, 400, 50257)
                       for k, name in enumerate(["d/train-2.bin", "d/train-10.bin", "d/sub/val.bin",
                                                 "d/sub/deep/x.bin"])}
        for name, tokens in self.tokens.items():
            self.write_tokens(name, tokens, "u16")

    def lines(self, *names):
        return "".join(f"{oracle.seal(self.tokens[f'd/{n}'])}  d/{n}\n" for n in names)

    def sums(self, expected, *args, warning=None, code=0):
        result = self.iron("sum", "d", "--dtype", "u16", *args)
        self.assertEqual(result.text, self.lines(*expected) + "# iron sum --dtype u16\n")
        self.assertEqual(result.code, code, str(result))
        if warning is None:
            self.assertEqual(result.err, b"")
        else:
            self.assertRegex(result.message, rf"\Airon: warning: {warning}\n\Z")
        stream = self.iron("sum", "d", "--dtype", "u16", "--stream", *args)
        whole = [t for n in expected for t in self.tokens[f"d/{n}"]]
        self.assertEqual(stream.text.split()[0], oracle.seal(whole))
        self.assertEqual(stream.err, result.err)

    def test_other_files_are_skipped_with_one_warning(self):
        self.write("d/meta.pkl", pickle.dumps(OBJECT))
        self.write("d/prepare.py", b"import numpy\n")
        self.sums(["train-2.bin", "train-10.bin"],
                  warning=r"skipped 2 files that are not tokens: d/meta.pkl \(a pickle\), "
                          r"d/prepare.py \(text\)")
        self.write("d/readme.md", b"# tokens\n")
        self.write("d/val.jsonl.gz", gzip.compress(b'{"text": "some text"}\n' * 99))
        self.write("d/info.json", b"{}")
        self.write("d/empty.lock", b"")
        self.write("d/old.pkl", b"no pickle at all\0\1")
        self.sums(["train-2.bin", "train-10.bin"],
                  warning=r"skipped 7 files that are not tokens: d/empty.lock \(text, judged by "
                          r"its name\), d/info.json \(text\), d/meta.pkl \(a pickle\) and 4 more")
        self.sums(["train-2.bin", "train-10.bin"], "--strict", code=1, warning="skipped 7 files.*")
        self.sums(["train-2.bin", "train-10.bin"], "--include", "*.bin")
        for args in (["stat", "--vocab", 50257], ["feed", "--backend", "cpu"], ["diff", "d"]):
            result = self.iron(args[0], "d", *args[1:], "--dtype", "u16")
            self.assertEqual(result.code, 0, str(result))
            self.assertIn("warning: skipped", result.message)

    def test_refused_when_nothing_is_left(self):
        self.write("h5/train.h5", b"\x89HDF\r\n\x1a\n\0\0\0\0" + BODY)
        self.write("h5/readme.txt", b"tokens of a corpus\n")
        for args in ([], ["--stream"]):
            self.refused("sum", "h5", "--dtype", "u16", *args,
                         says="directory h5 has no token files: train.h5 is an HDF5 file, not tokens; "
                              "neither are the others")
        self.write("one/a.npz", zipfile_of("arr_0.npy"))
        self.refused("stat", "one", "--vocab", 9, "--dtype", "u16",
                     says="no token files: a.npz is a zip archive")
        (self.dir / "empty").mkdir()
        self.refused("sum", "empty", "--dtype", "u16", says="has no files")
        (self.dir / "parent/child").mkdir(parents=True)
        self.refused("sum", "parent", "--dtype", "u16", says="only subdirectories; give -r")

    def test_descending(self):
        self.sums(["train-2.bin", "train-10.bin"])
        self.sums(["sub/deep/x.bin", "sub/val.bin", "train-2.bin", "train-10.bin"], "-r")
        self.sums(["sub/deep/x.bin", "sub/val.bin", "train-2.bin", "train-10.bin"], "--recursive")
        os.symlink("..", self.dir / "d/sub/loop")
        self.sums(["sub/deep/x.bin", "sub/val.bin", "train-2.bin", "train-10.bin"], "-r")

    def test_choosing(self):
        for expected, *globs in (
                (["train-2.bin", "train-10.bin"], "--include", "train*"),
                (["train-2.bin"], "--include", "train*", "--exclude", "*10*"),
                (["sub/val.bin", "train-2.bin"], "--include", "*2.bin", "--include", "val*"),
                (["sub/val.bin"], "--include", "sub/*.bin"),
                (["sub/val.bin"], "--include", "/sub/*.bin"),
                (["sub/deep/x.bin", "sub/val.bin"], "--include", "sub/**"),
                (["sub/deep/x.bin"], "--include", "**/x.bin"),
                (["train-2.bin"], "--include", "**/train-2.bin"),
                (["train-2.bin", "train-10.bin"], "--exclude", "sub"),
                (["train-2.bin", "train-10.bin"], "--exclude", "sub/"),
                (["sub/val.bin", "train-2.bin", "train-10.bin"], "--exclude", "deep"),
                (["sub/val.bin", "train-2.bin", "train-10.bin"], "--exclude", "sub/deep"),
                (["sub/deep/x.bin", "sub/val.bin", "train-10.bin"], "--exclude=train-2.bin")):
            with self.subTest(globs=globs):
                self.sums(expected, "-r", *globs)
        self.refused("sum", "d", "--dtype", "u16", "--include", "*.npy",
                     says="no file of directory d is chosen by --include")
        # files that are named are not subject to the globs
        self.assertEqual(self.succeeds("sum", "d/train-2.bin", "--dtype", "u16", "--exclude",
                                       "*").text.splitlines()[0], self.lines("train-2.bin").strip())

    def test_choosing_containers_with_format_raw(self):
        data = bz2.compress(BODY)
        self.write("z/a.bz2", data)
        self.refused("sum", "z", "--dtype", "u8", "--include", "*.bz2", says="is a bzip2 file")
        result = self.succeeds("sum", "z", "--dtype", "u8", "--include", "*.bz2", "--format", "raw")
        self.assertTrue(result.text.startswith(oracle.seal(list(data))))
        self.refused("sum", "z", "--dtype", "u8", "--format", "raw", says="is a bzip2 file")

    def test_text_in_a_folder_of_bytes(self):
        self.write("t/a.txt", text("the quick brown fox\n"))
        self.write("t/b.json", b"{}")
        self.assertEqual(self.succeeds("sum", "t", "--dtype", "u8").text.count("  t/"), 2)
        self.refused("sum", "t", "--dtype", "u16", says="no token files")

    def test_a_missing_shard_is_an_error_but_not_for_the_others(self):
        os.symlink("nowhere", self.dir / "d/train-5.bin")
        result = self.iron("sum", "d", "--dtype", "u16")
        self.assertEqual(result.code, 2)
        self.assertEqual(result.text, self.lines("train-2.bin", "train-10.bin")
                         + "# iron sum --dtype u16\n")
        self.assertRegex(result.message, r"\Airon: cannot open d/train-5.bin: No such file.*\n\Z")
        self.refused("sum", "d", "--dtype", "u16", "--stream", says="cannot open d/train-5.bin")
        self.refused("stat", "d", "--dtype", "u16", "--vocab", 9, says="cannot open d/train-5.bin")
        self.sums(["train-2.bin", "train-10.bin"], "--exclude", "train-5*")


class Formats(IronTest):
    def test_the_prefix_of_megatron_files(self):
        tokens = uniform(1, 10, 1000)
        self.write_tokens("m.bin", tokens, "u16")
        self.write("m.idx", b"MMIDIDX\0\0" + struct.pack("<QBQQiq2q", 1, 8, 1, 2, 10, 0, 0, 1))
        for name in ("m", "m.bin", "m.idx"):
            self.assertEqual(self.succeeds("sum", name, "--format", "megatron").text.split()[0],
                             oracle.seal(tokens))

    def test_a_damaged_index_is_named(self):
        self.write_tokens("m.bin", uniform(1, 500, 1000), "u16")
        self.write("m.idx", b"MMIDIDY\0\0" + bytes(60))
        self.refused("sum", "m.bin", says="the .idx file beside it is not a Megatron index")
        reasons = self.json("sniff", "m.bin")[0]["reasons"]
        self.assertIn("does not begin with MMIDIDX", reasons[0])
        self.assertNotIn("no index beside it", " ".join(reasons))

    def test_hints_name_the_cause(self):
        good = npy([1, 2, 3], "<u2", "H")
        self.write("long.npy", good + b"\0\0")
        self.refused("sum", "long.npy", says="3 tokens .* 4 tokens; was something appended")
        self.write("short.npy", good[:-2])
        self.refused("sum", "short.npy", says="3 tokens .* 2 tokens; is it cut off")
        self.write("odd", b"LITPKDS" + struct.pack("<QBQ", 1, 8, 2) + b"\1\0\2")
        message = self.refused("sum", "odd", says="not a whole number of u16 tokens").message
        self.assertNotIn("--dtype", message)

    def test_numpy_arrays_of_any_order(self):
        """What numpy.ravel gives, whatever the order and the byte order in the file."""
        shapes = [(24,), (4, 6), (2, 3, 4), (2, 1, 3, 4), (1, 24), (), (0, 3)]
        for shape in shapes:
            count = 1
            for length in shape:
                count *= length
            values = uniform(count, count, 50257)
            turned = [0] * count
            for k in range(count):
                index, rest = [], k
                for length in reversed(shape):
                    index.insert(0, rest % length)
                    rest //= length
                at = 0
                for i, length in zip(reversed(index), reversed(shape), strict=True):
                    at = at * length + i
                turned[at] = values[k]
            for fortran, stored in ((False, values), (True, turned)):
                for descr, letter in (("<u2", "H"), (">u2", "H"), (">u4", "I"), (">i8", "q")):
                    data = npy(stored, descr, letter, shape, fortran)
                    if descr[0] == ">":
                        width = struct.calcsize(letter)
                        head = len(data) - count * width
                        data = data[:head] + b"".join(
                            data[k:k + width][::-1] for k in range(head, len(data), width))
                    with self.subTest(shape=shape, fortran=fortran, descr=descr):
                        self.write("a.npy", data)
                        self.assertEqual(self.succeeds("sum", "a.npy").text.split()[0],
                                         oracle.seal(values))
        self.write("f.npy", npy([1.5], "<f4", "f"))
        self.refused("sum", "f.npy", says="NumPy type '<f4', expected")


if __name__ == "__main__":
    unittest.main()
