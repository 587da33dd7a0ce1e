# SPDX-License-Identifier: MIT
"""Tables and compressed files: the same tokens give the same seal, the same documents and the same
statistics in every container that others wrote, and a damaged one never gives another seal.

The Arrow and Parquet files come from three npm packages (tests/containers), compressed files from the
codecs' own tools.  Expected values are computed here, by the oracle and by plain Python.
"""

import collections
import os
import random
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import containers
from containers import command_missing, gzipped, lz4, mds_folder, node_missing, xz, zstd
from fake_server import FakeServer
from file_server import FileServer
from harness import (IRON, REDUCED, REPO, SANITIZED, SEED, TIMEOUT_S, IronTest, environment, npy, oracle,
                     pack, parse_json, start)
from test_formats import litpkds, llmc

VOCAB = 50257
RNG = random.Random(f"{SEED} containers")
# Empty rows at the beginning, in the middle and at the end; one row longer than a page or a batch.
ROWS = [0, 3, 1, 0, 0, 17, 130, 2, 0, 40, 9, 64, 1, 1] + [RNG.randrange(30) for _ in range(60)] + [0]
TOKENS = [RNG.choice((0, 1, 2, 7, VOCAB - 1)) if RNG.random() < 0.3 else RNG.randrange(VOCAB)
          for _ in range(sum(ROWS))]
SEAL = oracle.seal(TOKENS)
BESIDE = [{"name": "text", "type": "string"}, {"name": "weight", "type": "float64"},
          {"name": "is_kept", "type": "bool"}, {"name": "number", "type": "int64"}]

FILES: Path = Path()  # where all files are written once
JOBS: list = []


def setUpModule():
    global FILES
    FILES = Path(tempfile.mkdtemp(prefix="iron-containers-"))
    if not node_missing():
        JOBS.extend(table_jobs())
        containers.write(JOBS + odd_jobs())


def tearDownModule():
    shutil.rmtree(FILES, ignore_errors=True)


def split(tokens, lengths):
    rows, at = [], 0
    for length in lengths:
        rows.append(tokens[at:at + length])
        at += length
    return rows


def bag(samples) -> str:
    """The order-free seal of samples."""
    seals = [oracle.seal(sample) for sample in samples]
    high, low = (sum(int(s[k:k + 16], 16) for s in seals) % 2**64 for k in (0, 16))
    return f"{high:016x}{low:016x}-{len(samples)}"


# What the packages write: every name is unique, all have the tokens above.

def table_jobs():
    tokens = containers.u32_file(FILES / "tokens.u32", TOKENS)
    jobs = []

    def job(name, writer, type_, beside=(), **options):
        column = {"name": "input_ids", "type": type_}
        rows = ROWS if "list" in type_ else None
        jobs.append({"out": str(FILES / name), "writer": writer, "tokens": tokens, "rows": rows,
                     "columns": [*beside, column], **options})

    for kind in ("file", "stream"):
        for type_ in ("uint16", "int32", "uint32", "int64", "uint64"):
            job(f"list-{type_}-{kind}.arrow", "arrow", f"list<{type_}>", kind=kind, batch=20)
            job(f"flat-{type_}-{kind}.arrow", "arrow", type_, kind=kind, batch=300)
        job(f"large-{kind}.arrow", "arrow", "large_list<int32>", kind=kind, batch=7)
        job(f"one-batch-{kind}.arrow", "arrow", "list<int32>", kind=kind)
        job(f"batch-a-row-{kind}.arrow", "arrow", "list<uint16>", kind=kind, batch=1)
        job(f"beside-{kind}.arrow", "arrow", "list<int32>", BESIDE, kind=kind, batch=30)
        job(f"dictionary-{kind}.arrow", "arrow", "dictionary<int32>", kind=kind, batch=300)
        job(f"dictionary-list-{kind}.arrow", "arrow", "list<dictionary<int64>>", kind=kind, batch=30)
        job(f"dictionary-delta-{kind}.arrow", "arrow", "dictionary<uint16>", kind=kind, batch=300,
            dictionary="delta")
        if not command_missing("zstd", "lz4"):
            for codec in ("lz4", "zstd"):
                job(f"{codec}-{kind}.arrow", "arrow", "list<int32>", BESIDE, kind=kind, batch=30,
                    compression=codec)
                job(f"{codec}-flat-{kind}.arrow", "arrow", "uint16", kind=kind, batch=300,
                    compression=codec)
    job("dictionary-replaced.arrow", "arrow", "dictionary<int32>", kind="stream", batch=300,
        dictionary="replaced")
    job("legacy.arrow", "arrow", "list<int32>", kind="stream", batch=30, legacy=True)

    for codec in ("UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "LZ4_RAW"):
        for version in (1, 2):
            for dictionary in (False, True):
                name = f"{codec}-v{version}{'-dictionary' if dictionary else ''}"
                options = {"compression": codec, "version": version, "dictionary": dictionary}
                job(f"list-{name}.parquet", "parquet-wasm", "list<int32>", row_group=30, **options)
                job(f"flat-{name}.parquet", "parquet-wasm", "uint16", row_group=400, **options)
    for encoding in ("DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"):
        for type_ in ("int32", "int64", "uint16"):
            for version in (1, 2):
                job(f"list-{encoding}-{type_}-v{version}.parquet", "parquet-wasm", f"list<{type_}>",
                    encoding=encoding, version=version, compression="SNAPPY")
            job(f"hyparquet-{encoding}-{type_}.parquet", "hyparquet", f"list<{type_}>", encoding=encoding)
            job(f"hyparquet-flat-{encoding}-{type_}.parquet", "hyparquet", type_, encoding=encoding,
                compression="SNAPPY", row_group=200)
    for type_ in ("uint32", "int64", "uint64"):
        job(f"list-{type_}.parquet", "parquet-wasm", f"list<{type_}>")
        job(f"flat-{type_}.parquet", "parquet-wasm", type_)
    job("large.parquet", "parquet-wasm", "large_list<int32>", row_group=11)
    for version in (1, 2):
        job(f"pages-v{version}.parquet", "parquet-wasm", "list<int32>", version=version, page=64,
            write_batch=8, compression="ZSTD")
        job(f"pages-dictionary-v{version}.parquet", "parquet-wasm", "list<int64>", version=version,
            page=64, write_batch=8, dictionary=True)
    job("beside.parquet", "parquet-wasm", "list<int32>", BESIDE, row_group=30, compression="SNAPPY")
    job("group-a-row.parquet", "parquet-wasm", "list<int32>", row_group=1)
    job("hyparquet.parquet", "hyparquet", "list<int32>", BESIDE, row_group=30)
    job("hyparquet-snappy.parquet", "hyparquet", "list<uint16>", compression="SNAPPY")
    job("hyparquet-gzip.parquet", "hyparquet", "uint32", compression="GZIP", page=500, column_index=True)
    for nullable in (True, False):
        for item_nullable in (True, False):
            column = {"name": "input_ids", "type": "list<int32>", "nullable": nullable,
                      "item_nullable": item_nullable, "item": "element"}
            for writer, name in (("parquet-wasm", "parquet"), ("hyparquet", "hyparquet.parquet"),
                                 ("arrow", "arrow")):
                jobs.append({"out": str(FILES / f"{int(nullable)}{int(item_nullable)}.{name}"),
                             "writer": writer, "tokens": tokens, "rows": ROWS, "columns": [column],
                             "version": 2, "dictionary": "shared" if writer == "arrow" else True})
    for writer, name in (("parquet-wasm", "required.parquet"), ("hyparquet", "required.hyparquet.parquet"),
                         ("arrow", "required.arrow")):
        jobs.append({"out": str(FILES / name), "writer": writer, "tokens": tokens, "rows": None,
                     "columns": [{"name": "input_ids", "type": "int32", "nullable": False}]})
    return jobs


WRITERS = (("arrow", ".arrow", {"kind": "file"}), ("arrow", ".stream.arrow", {"kind": "stream"}),
           ("parquet-wasm", ".parquet", {}), ("hyparquet", ".hyparquet.parquet", {}))


LONG_NAME = "a name that is longer than most, but which a column may have all the same " * 3


def odd_jobs():
    """Files that have other tokens, or are refused."""
    jobs = []

    def job(name, columns, rows=None, only=None, **options):
        for writer, suffix, given in WRITERS:
            if only is None or suffix in only:
                jobs.append({"out": str(FILES / f"{name}{suffix}"), "writer": writer, "rows": rows,
                             "columns": columns, **given, **options})

    def ids(type_, values, name="input_ids", **more):
        return {"name": name, "type": type_, "values": values, **more}

    job("empty", [ids("int32", [])])
    job("empty-list", [ids("list<int32>", [])], rows=[])
    job("one", [ids("int32", [7])])
    job("one-list", [ids("list<int32>", [7, 8])], rows=[2])
    job("only-empty", [ids("list<int32>", [])], rows=[0, 0, 0])
    job("null", [ids("int32", [1, 2, 3, 4, 5], nulls=[3])])
    job("null-row", [ids("list<int32>", [1, 2, 3], nulls=[1])], rows=[2, 0, 1])
    job("null-item", [ids("list<int32>", [1, 2, 3, 4], item_nulls=[3])], rows=[2, 0, 2])
    for width in (8, 16, 32, 64):
        job(f"narrow-int{width}", [ids(f"list<int{width}>", [0, 1, 127])], rows=[1, 2])
        job(f"narrow-uint{width}", [ids(f"list<uint{width}>", [0, 1, 127])], rows=[1, 2])
        job(f"negative-int{width}", [ids(f"list<int{width}>", [5, 6, 7, -7])], rows=[2, 0, 2])
        job(f"negative-flat-int{width}", [ids(f"int{width}", [5, 6, 7, -7])])
    for sign in ("int64", "uint64"):
        job(f"most-{sign}", [ids(f"list<{sign}>", [2**32 - 1, 0])], rows=[2])
        job(f"large-{sign}", [ids(f"list<{sign}>", [5, 2**32])], rows=[1, 1])
    job("most-uint32", [ids("uint32", [2**32 - 1, 2**31, 0])],
        only=(".arrow", ".stream.arrow", ".parquet"))  # hyparquet-writer refuses them
    job("negative-dictionary", [ids("dictionary<int32>", [5, 6, -7])], only=(".arrow", ".stream.arrow"))
    job("null-dictionary", [ids("dictionary<int32>", [5, 6, 7], nulls=[1])],
        only=(".arrow", ".stream.arrow"))
    job("fixed", [ids("fixed_size_list<int32>[4]", list(range(24)))], rows=[4] * 6, batch=2,
        only=(".arrow", ".stream.arrow", ".parquet"))
    job("fixed-null", [ids("fixed_size_list<int32>[2]", [1, 2, 3, 4], nulls=[1])], rows=[2, 2],
        only=(".arrow", ".stream.arrow", ".parquet"))
    job("choice", [ids("list<int32>", [9, 9], "ids"), ids("list<int32>", [8, 8], "token_ids"),
                   ids("list<int32>", [7, 7], "tokens"), ids("list<int32>", [6, 6], "input_ids")],
        rows=[1, 1])
    job("choice-3", [ids("list<int32>", [9, 9], "ids"), ids("list<int32>", [8, 8], "token_ids"),
                     ids("list<int32>", [7, 7], "tokens")], rows=[1, 1])
    job("choice-2", [ids("list<int32>", [9, 9], "ids"), ids("list<int32>", [8, 8], "token_ids")],
        rows=[1, 1])
    job("choice-1", [ids("list<int32>", [5, 5], "labels"), ids("list<int32>", [9, 9], "ids")], rows=[1, 1])
    job("only-one", [ids("string", [1, 2], "text"), ids("list<int32>", [4, 4], "labels"),
                     ids("float64", [1, 2], "weight")], rows=[1, 1])
    job("ambiguous", [ids("list<int32>", [4, 4], "labels"), ids("int64", [3, 3], "number"),
                      ids("string", [1, 2], "text")], rows=[1, 1])
    job("no-tokens", [ids("string", [1, 2], "text"), ids("float64", [1, 2], "weight")])
    job("wide", [ids("float64", [1, 2], f"weight {k}") for k in range(300)] +
        [ids("int32", [1, 2], "labels"), ids("int32", [3, 4], LONG_NAME)])
    job("strings", [ids("string", [1, 2]), ids("int32", [1, 2], "other")])
    job("floats", [ids("float64", [1, 2])])
    job("bools", [ids("bool", [1, 2])])
    job("list-of-strings", [ids("list<string>", [1, 2])], rows=[1, 1],
        only=(".arrow", ".stream.arrow", ".parquet"))
    job("nested", [ids("list<list<int32>>", [1, 2])], rows=[1, 1],
        only=(".arrow", ".stream.arrow", ".parquet"))
    job("struct", [ids("struct<int32>", [1, 2])], only=(".arrow", ".stream.arrow", ".parquet"))
    for codec in ("BROTLI", "LZ4"):
        job(codec, [ids("int32", list(range(50)))], only=(".parquet",), compression=codec)
    return jobs


class ContainerTest(IronTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        why = node_missing()
        if why:
            raise unittest.SkipTest(why)

    def sums(self, *paths_and_options):
        """{file: JSON} of one run."""
        return {f["file"]: f for f in self.json("sum", *paths_and_options)}

    def every(self, name, only=None):
        """The files of a job of odd_jobs."""
        found = [FILES / f"{name}{suffix}" for _, suffix, _ in WRITERS if only is None or suffix in only]
        return [path for path in found if path.exists()]

    def raw(self, tokens=None):
        return self.write_tokens("raw.bin", TOKENS if tokens is None else tokens)

    def assert_tokens(self, path, tokens, *options):
        [found] = self.json("sum", path, *options)
        self.assertEqual((found["seal"], found["tokens"]), (oracle.seal(tokens), len(tokens)), path.name)


class SameTokens(ContainerTest):
    def test_seals(self):
        found = self.sums(*(job["out"] for job in JOBS))
        self.assertEqual(len(found), len(JOBS))
        wrong = {Path(f).name: v["tokens"] for f, v in found.items()
                 if v["seal"] != SEAL or v["tokens"] != len(TOKENS) or v["max"] != max(TOKENS)}
        self.assertEqual(wrong, {})

    def test_seals_with_many_threads_and_as_one_stream(self):
        paths = [job["out"] for job in JOBS[::5]]
        found = self.sums(*paths, "--threads", 7)
        self.assertEqual({f["seal"] for f in found.values()}, {SEAL})
        wide = self.json("sniff", *paths)
        tables = [f["file"] for f in wide if f["dtype"] == "u32"]  # those of one width
        [stream] = self.json("sum", "--stream", *tables)
        self.assertEqual(stream["seal"], oracle.seal(TOKENS * len(tables)))

    def test_bags(self):
        found = self.sums(*(job["out"] for job in JOBS), "--bag")
        bags = {True: bag(split(TOKENS, ROWS)), False: bag([[t] for t in TOKENS])}
        for job in JOBS:
            with self.subTest(file=Path(job["out"]).name):
                one = found[job["out"]]
                self.assertEqual(one["bag"], bags[bool(job["rows"])])
                self.assertEqual(one["bag_cut"], "rows")
                self.assertEqual(one["samples"], len(ROWS) if job["rows"] else len(TOKENS))
        for options, samples in ((("--sample", 100), [TOKENS[k:k + 100] for k in range(0, len(TOKENS), 100)]),
                                 (("--eos", 7), documents(TOKENS, 7))):
            found = self.sums(*(job["out"] for job in JOBS[::3]), "--bag", *options)
            self.assertEqual({f["bag"] for f in found.values()}, {bag(samples)}, options)

    def test_statistics(self):
        counts = collections.Counter(TOKENS)
        for job in JOBS[::4]:
            with self.subTest(file=Path(job["out"]).name):
                found = self.json("stat", job["out"], "--vocab", VOCAB, "--hist", "--top", 1000)
                lengths = ROWS if job["rows"] else [1] * len(TOKENS)
                self.assertEqual(found["tokens"], len(TOKENS))
                documents_found = found["documents"]
                self.assertEqual(documents_found["count"], len(lengths))
                self.assertEqual(documents_found["empty"], lengths.count(0))
                self.assertEqual((documents_found["min"], documents_found["max"]), (min(lengths), max(lengths)))
                self.assertAlmostEqual(documents_found["mean"], statistics.mean(lengths))
                self.assertEqual({t["id"]: t["count"] for t in found["histogram"]["top"]}, counts)
                self.assertEqual(found["histogram"]["used"], len(counts))

    def test_sniff(self):
        found = self.json("sniff", *(job["out"] for job in JOBS))
        for job, one in zip(JOBS, found, strict=True):
            with self.subTest(file=Path(job["out"]).name):
                self.assertEqual(one["format"], "arrow" if job["writer"] == "arrow" else "parquet")
                self.assertEqual(one["tokens"], len(TOKENS))
                self.assertEqual(one["documents"], len(ROWS) if job["rows"] else len(TOKENS))
                self.assertFalse(one["is_guess"])
                self.assertIsNone(one["problem"])
                self.assertEqual(one["rows"], one["documents"])
                self.assertEqual([c["name"] for c in one["columns"]], [c["name"] for c in job["columns"]])
                [chosen] = [c for c in one["columns"] if c["is_tokens"]]
                self.assertEqual(chosen["name"], "input_ids")
                self.assertIn(job["columns"][-1]["type"].strip(">").rsplit("<")[-1], chosen["type"])
                self.assertEqual("list" in chosen["type"], bool(job["rows"]))

    def test_diff(self):
        self.raw()
        other = self.write_tokens("other.npy", TOKENS[:50] + [5] + TOKENS[50:])
        other.write_bytes(npy(TOKENS[:50] + [5] + TOKENS[50:], "<u4", "I"))
        for job in JOBS[::6]:
            with self.subTest(file=Path(job["out"]).name):
                # --dtype is for files that do not tell: the raw one
                found = self.json("diff", "raw.bin", job["out"], "--dtype", "u32")
                self.assertIs(found["equal"], True)
                result = self.iron("diff", job["out"], "other.npy", "--json")
                self.assertEqual(result.code, 1, str(result))
                found = parse_json(result.out)
                self.assertEqual((found["kind"], found["position"], found["length"]), ("inserted", 50, 1))

    def test_diff_between_containers(self):
        for a, b in zip(JOBS[::7], JOBS[3::7]):
            self.assertIs(self.json("diff", a["out"], b["out"])["equal"], True, (a["out"], b["out"]))

    def test_feed(self):
        want = self.feed(self.raw(), "--dtype", "u32", "--vocab", VOCAB, "--batch", 100, "--seal")
        for job in JOBS[::6]:
            found = self.feed(job["out"], "--vocab", VOCAB, "--batch", 100, "--seal")
            self.assert_report(want, found)
            self.assertEqual(found["seal"], SEAL)

    def test_lint(self):
        for job in JOBS[::6]:
            found = self.iron("lint", job["out"], "--vocab", VOCAB, "--json")
            kinds = {f["kind"] for f in parse_json(found.out)["findings"]}
            self.assertIn(kinds, (set(), {"empty-document"}), str(found))

    def test_parts(self):
        for job in JOBS[::9]:
            for count in (1, 3, 5):
                parts = [self.dir / f"{k}.part" for k in range(count)]
                for k, part in enumerate(parts):
                    self.succeeds("sum", job["out"], "--part", f"{k + 1}/{count}", "--chunk", 1024, "-o", part)
                merged = self.succeeds("merge", *reversed(parts)).text
                self.assertEqual(merged.split()[0], SEAL, (job["out"], count, merged))

    def test_manifest(self):
        for job in JOBS[::9]:
            name = Path(job["out"]).name
            with self.subTest(file=name):
                shutil.copy(job["out"], self.dir / name)
                self.succeeds("sum", name, "--manifest", "m", "--chunk", 1024)
                self.assertEqual(self.iron("check", "m").code, 0)
                self.assertIs(self.json("diff", "m", name)["equal"], True)
                manifest = (self.dir / "m").read_text(errors="replace")
                self.assertIn("input_ids", manifest)

    def test_list_of_seals(self):
        names = [Path(job["out"]).name for job in JOBS[::9]]
        for name in names:
            shutil.copy(FILES / name, self.dir)
        self.write("list", self.succeeds("sum", *names, "--column", "input_ids").out)
        self.assertEqual(self.iron("check", "list").code, 0)
        shutil.copy(FILES / "one.arrow", self.dir / names[0])
        self.assertEqual(self.iron("check", "list").code, 1)

    def test_manifest_finds_the_row_that_changed(self):
        """A manifest of a table finds where the tokens of another table differ."""
        rows = split(list(TOKENS), ROWS)
        changed = [t + 1 if k == 700 else t for k, t in enumerate(TOKENS)]
        moved = [t for row in [rows[-2], *rows[:-2], rows[-1]] for t in row]
        lengths = [ROWS[-2], *ROWS[:-2], ROWS[-1]]
        column = {"name": "input_ids", "type": "list<int32>"}
        containers.write([
            {"out": str(self.dir / "a.parquet"), "writer": "parquet-wasm", "rows": ROWS,
             "columns": [{**column, "values": TOKENS}], "compression": "ZSTD", "row_group": 9},
            {"out": str(self.dir / "changed.arrow"), "writer": "arrow", "kind": "stream", "rows": ROWS,
             "columns": [{**column, "values": changed}]},
            {"out": str(self.dir / "moved.arrow"), "writer": "arrow", "kind": "file", "rows": lengths,
             "columns": [{**column, "values": moved}]}])
        self.succeeds("sum", "a.parquet", "--manifest", "m", "--chunk", 1024)
        result = self.iron("diff", "a.parquet", "changed.arrow", "--json")
        found = parse_json(result.out)
        self.assertEqual((result.code, found["kind"], found["position"], found["length"]), (1, "changed", 700, 1))
        result = self.iron("diff", "a.parquet", "moved.arrow", "--json")
        self.assertEqual(result.code, 1, str(result))
        self.assertIn(parse_json(result.out)["kind"], ("moved", "shuffled"))
        # The same rows in another order: one bag.
        found = self.sums("--bag", "a.parquet", "moved.arrow")
        self.assertEqual(found["a.parquet"]["bag"], found["moved.arrow"]["bag"])
        self.assertNotEqual(found["a.parquet"]["seal"], found["moved.arrow"]["seal"])
        (self.dir / "a.parquet").write_bytes((FILES / "one.parquet").read_bytes())
        self.assertEqual(self.iron("check", "m").code, 1)

    def test_push(self):
        if "not part of this build" in self.iron("push", "none", "none").message:
            self.skipTest("iron push is not part of this build")
        for name in ("list-int32-stream.arrow", "list-ZSTD-v2-dictionary.parquet", "lz4-file.arrow"):
            server = FakeServer()
            try:
                self.json("push", FILES / name, server.url, "--piece", 256)
                self.assertEqual(server.tokens, TOKENS, name)
            finally:
                server.stop()

    @unittest.skipIf(SANITIZED, "an instrumented library cannot be loaded by python")
    def test_python(self):
        library = Path(IRON).with_name("libiron.so")
        if not library.exists():
            self.skipTest(f"no library at {library}")
        script = ("import sys, iron_tokens\nfor path in sys.argv[1:]:\n"
                  "    print(iron_tokens.sum_file(path).seal)\n")
        paths = [job["out"] for job in JOBS[::3]]
        done = subprocess.run([sys.executable, "-B", "-c", script, *paths], capture_output=True, check=False,
                              env=environment({"IRON_LIBRARY": str(library),
                                               "PYTHONPATH": str(REPO / "python")}))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertEqual(set(done.stdout.decode().split()), {SEAL})

    def test_ranks(self):
        from test_mpi import IRON_MPI, MPI_ENVIRONMENT, MPIRUN
        if not MPIRUN or not os.access(IRON_MPI, os.X_OK):
            self.skipTest("no mpirun or no iron-mpi here")
        for name in ("list-int32-stream.arrow", "list-ZSTD-v2-dictionary.parquet"):
            done = subprocess.run([MPIRUN, "--quiet", "-n", "3", IRON_MPI, "sum", str(FILES / name)],
                                  capture_output=True, check=False, timeout=TIMEOUT_S,
                                  env=environment(MPI_ENVIRONMENT))
            self.assertEqual(done.stdout.decode().split()[:1], [SEAL], done.stderr.decode())


def documents(tokens, eos):
    """Documents that end with a token; what follows the last one is another."""
    out, now = [], []
    for token in tokens:
        now.append(token)
        if token == eos:
            out.append(now)
            now = []
    return out + [now] if now else out


class Columns(ContainerTest):
    def test_default(self):
        for name, value in (("choice", 6), ("choice-3", 7), ("choice-2", 8), ("choice-1", 9), ("only-one", 4)):
            for path in self.every(name):
                self.assert_tokens(path, [value, value])

    def test_chosen(self):
        for path in self.every("choice"):
            for column, value in (("ids", 9), ("token_ids", 8), ("tokens", 7), ("input_ids", 6)):
                self.assert_tokens(path, [value, value], "--column", column)
        for path in self.every("ambiguous"):
            self.assert_tokens(path, [4, 4], "--column", "labels")
            self.assert_tokens(path, [3, 3], "--column", "number")

    def test_format_is_given(self):
        for path in self.every("only-one"):
            self.assert_tokens(path, [4, 4], "--format", "arrow" if path.suffix == ".arrow" else "parquet")
        for wrong, path in (("parquet", "one.arrow"), ("arrow", "one.parquet"), ("npy", "one.parquet")):
            self.refused("sum", FILES / path, "--format", wrong)

    def test_refused_with_the_list(self):
        for path in self.every("ambiguous"):
            self.refused("sum", path, says=["labels", "number", "text", "--column"])
        for path in self.every("no-tokens"):
            self.refused("sum", path, says=["text", "weight"])
        for path in self.every("choice"):
            self.refused("sum", path, "--column", "nothing", says=["nothing", "ids", "token_ids"])

    def test_sniff_leaves_the_choice_open(self):
        """What a file is does not depend on which column is wanted."""
        for name, count in (("ambiguous", 3), ("no-tokens", 2)):
            for path in self.every(name):
                with self.subTest(file=path.name):
                    [one] = self.json("sniff", path)
                    self.assertEqual(one["format"], "arrow" if path.suffix == ".arrow" else "parquet")
                    self.assertEqual((one["rows"], one["documents"]), (2, 2))
                    self.assertEqual((one["tokens"], one["dtype"], one["problem"]), (None, None, None))
                    self.assertEqual(len(one["columns"]), count)
                    self.assertFalse(any(c["is_tokens"] for c in one["columns"]))
                    self.assertRegex(" ".join(one["reasons"]), "--column" if count == 3 else "has no tokens")
                    text = self.succeeds("sniff", path).text
                    self.assertRegex(text, r"(?m)^rows +2$")
                    self.assertNotRegex(text, r"(?m)^(tokens|dtype|problem|data) ")

    def test_sniff_counts_the_rows_of_all_batches(self):
        columns = [{"name": name, "type": "int32", "values": list(range(50))} for name in ("a", "b")]
        kinds = ({"kind": "file"}, {"kind": "stream"}, {"kind": "file", "compression": "zstd"})
        jobs = [{"out": str(self.dir / f"{k}.arrow"), "writer": "arrow", "rows": None, "columns": columns,
                 "batch": 7, **kind} for k, kind in enumerate(kinds)]
        containers.write(jobs)
        for one in self.json("sniff", *(job["out"] for job in jobs)):
            self.assertEqual((one["rows"], one["tokens"], one["problem"]), (50, None, None))
        [one] = self.json("sniff", self.write("a.zst", zstd((self.dir / "1.arrow").read_bytes())))
        self.assertEqual((one["rows"], one["tokens"], len(one["columns"])), (50, None, 2))

    def test_sniff_takes_a_column(self):
        for path in self.every("ambiguous"):
            with self.subTest(file=path.name):
                [one] = self.json("sniff", path, "--column", "number")
                self.assertEqual((one["tokens"], one["rows"], one["dtype"]), (2, 2, "u32"))
                self.assertEqual([c["name"] for c in one["columns"] if c["is_tokens"]], ["number"])
                for column, says in (("text", "text is"), ("nothing", "no column nothing")):
                    result = self.iron("sniff", path, "--column", column, "--json")
                    self.assertEqual(result.code, 2)
                    self.assertRegex(result.message, says)
                    [one] = parse_json(result.out)
                    self.assertEqual((one["tokens"], one["rows"], len(one["columns"])), (None, None, 3))
                    self.assertRegex(one["problem"], says)

    def test_sniff_lists_all_columns(self):
        names = [f"weight {k}" for k in range(300)] + ["labels", LONG_NAME]
        for path in self.every("wide"):
            with self.subTest(file=path.name):
                [one] = self.json("sniff", path)
                self.assertEqual([c["name"] for c in one["columns"]], names)
                lines = self.succeeds("sniff", path).text.splitlines()
                self.assertIn("and 270 more; --json lists all", "\n".join(lines))
                lines = self.succeeds("sniff", path, "--column", LONG_NAME).text.splitlines()
                self.assertIn("and 269 more; --json lists all", "\n".join(lines))
                [chosen] = [line for line in lines if line.endswith("(the tokens)")]
                self.assertIn(LONG_NAME, chosen)

    def test_sniff_counts_in_words(self):
        for path in self.every("one", only=(".parquet", ".hyparquet.parquet")):
            [one] = self.json("sniff", path)
            self.assertIn("1 row in 1 row group; pages and levels agree with them", one["reasons"])

    def test_types_that_are_not_tokens(self):
        for name in ("strings", "floats", "bools", "list-of-strings", "nested", "struct"):
            files = self.every(name)
            self.assertTrue(files)
            for path in files:
                with self.subTest(file=path.name):
                    self.refused("sum", path, "--column", "input_ids", says="input_ids")


class Values(ContainerTest):
    def test_small_files(self):
        for name, tokens in (("empty", []), ("empty-list", []), ("one", [7]), ("one-list", [7, 8]),
                             ("only-empty", []), ("most-int64", [2**32 - 1, 0]),
                             ("most-uint64", [2**32 - 1, 0]), ("most-uint32", [2**32 - 1, 2**31, 0]),
                             ("fixed", list(range(24)))):
            for path in self.every(name):
                with self.subTest(file=path.name):
                    self.assert_tokens(path, tokens)

    def test_rows_without_tokens(self):
        for path in self.every("only-empty"):
            with self.subTest(file=path.name):
                [found] = self.json("sum", path, "--bag")
                self.assertEqual(found["bag"], bag([[], [], []]))
                self.assertEqual(self.json("stat", path, "--vocab", 10)["documents"]["count"], 3)
        for path in self.every("empty-list"):
            [found] = self.json("sum", path, "--bag")
            self.assertEqual(found["bag"], bag([]))

    def test_every_width(self):
        for width in (8, 16, 32, 64):
            for sign in ("", "u"):
                for path in self.every(f"narrow-{sign}int{width}"):
                    with self.subTest(file=path.name):
                        self.assert_tokens(path, [0, 1, 127])

    def test_nulls(self):
        for name, row in (("null", 3), ("null-row", 1), ("null-item", 2), ("null-dictionary", 1),
                          ("fixed-null", 1)):
            for path in self.every(name):
                with self.subTest(file=path.name):
                    self.refused("sum", path, says=[rf"row {row}\b", "input_ids", "null"])

    def test_negative_ids(self):
        for width in (8, 16, 32, 64):
            for path in self.every(f"negative-int{width}"):
                with self.subTest(file=path.name):
                    self.refused("sum", path, says=[r"row 2\b", "input_ids", "-7"])
            for path in self.every(f"negative-flat-int{width}"):
                with self.subTest(file=path.name):
                    self.refused("sum", path, says=[r"row 3\b", "input_ids", "-7"])
        for path in self.every("negative-dictionary"):
            self.refused("sum", path, says=["input_ids", "-7"])

    def test_ids_that_are_too_large(self):
        for sign in ("int64", "uint64"):
            for path in self.every(f"large-{sign}"):
                self.refused("sum", path, says=[r"row 1\b", "input_ids", str(2**32)])

    def test_codecs_that_are_not_read(self):
        self.refused("sum", FILES / "BROTLI.parquet", says="brotli")
        self.refused("sum", FILES / "LZ4.parquet", says="lz4")

    def test_given_dtype(self):
        uint16, int32 = FILES / "list-uint16-file.arrow", FILES / "list-int32-file.arrow"
        self.assert_tokens(uint16, TOKENS, "--dtype", "u16")
        self.refused("sum", uint16, "--dtype", "u32", says=["u16", "u32"])
        self.refused("sum", int32, "--dtype", "u16", says="u16")

    def test_dtype_of_a_signed_column(self):
        """--dtype may be what the column is, although its tokens are u32."""
        for name in ("list-int32-file.arrow", "list-int32-stream.arrow", "beside.parquet"):
            with self.subTest(file=name):
                self.assert_tokens(FILES / name, TOKENS, "--dtype", "i32")
                self.assert_tokens(FILES / name, TOKENS, "--dtype", "u32")
                self.refused("sum", FILES / name, "--dtype", "i64", says=["u32", "i64"])
        self.assert_tokens(FILES / "one.hyparquet.parquet", [7], "--dtype", "i32")
        piped = (FILES / "list-int32-stream.arrow").read_bytes()
        [found] = self.json("sum", "-", "--dtype", "i32", stdin=piped)
        self.assertEqual(found["seal"], SEAL)
        self.succeeds("sum", FILES / "list-int32-file.arrow", "--dtype", "i32", "--manifest", "m")
        self.assertEqual(self.iron("check", "m").code, 0)
        self.refused("sum", FILES / "list-uint32-file.arrow", "--dtype", "i32", says=["u32", "i32"])
        self.refused("sum", FILES / "list-int64-file.arrow", "--dtype", "i64", says=["int64", "omit --dtype"])

    def test_lint_names_values(self):
        """Values that are no tokens are not damage of the file."""
        for name, says in (("negative-int32", r"row 2\b.*-7"), ("large-int64", r"row 1\b"),
                           ("negative-flat-int16", r"row 3\b.*-7"), ("null", r"row 3\b.*null"),
                           ("null-item", r"row 2\b.*null"), ("negative-dictionary", "-7")):
            for path in self.every(name):
                with self.subTest(file=path.name):
                    result = self.iron("lint", path, "--json")
                    [found] = parse_json(result.out)["findings"]
                    self.assertEqual((result.code, found["kind"]), (1, "ids"))
                    self.assertRegex(found["text"], says)

    def test_every_command_refuses(self):
        bad = FILES / "null-item.parquet"
        for args in (("sum", bad), ("sum", "--bag", bad), ("feed", bad), ("stat", bad, "--vocab", 10),
                     ("diff", bad, bad), ("sum", bad, "--manifest", "m"),
                     ("sum", bad, "--part", "1/2", "-o", "p")):
            with self.subTest(args=args):
                self.refused(*args, says=["null", r"row 2\b"])


class Pipes(ContainerTest):
    def test_streams(self):
        for job in JOBS:
            name = Path(job["out"]).name
            if job["writer"] != "arrow" or job.get("kind") != "stream":
                continue
            data = (FILES / name).read_bytes()
            with self.subTest(file=name):
                [found] = self.json("sum", "-", stdin=data)
                self.assertEqual(found["seal"], SEAL)
        found = self.json("stat", "-", "--vocab", VOCAB, stdin=(FILES / "beside-stream.arrow").read_bytes())
        self.assertEqual(found["documents"]["count"], len(ROWS))

    def test_files_that_cannot_be_streamed(self):
        """Arrow files and Parquet begin with their end; Arrow files may still be read in order."""
        result = self.iron("sum", "-", stdin=(FILES / "list-uint32.parquet").read_bytes())
        self.assert_error_line(result, says=["parquet", "standard input|pipe"])
        result = self.iron("sum", "-", stdin=(FILES / "list-int32-file.arrow").read_bytes())
        if result.code == 0:
            self.assertEqual(result.text.split()[0], SEAL)
        else:
            self.assert_error_line(result, says="standard input")

    def test_standard_input_that_is_a_file(self):
        rows = bag(split(TOKENS, ROWS))
        for name in ("list-int32-file.arrow", "list-uint32.parquet", "list-int32-stream.arrow"):
            before = self.write("with-a-prefix", b"16 bytes before " + (FILES / name).read_bytes())
            for path, start_at in ((FILES / name, 0), (before, 16)):
                for command in (["sum", "-", "--bag"], ["stat", "-", "--vocab", VOCAB]):
                    with self.subTest(file=name, start=start_at, command=command), path.open("rb") as file:
                        os.lseek(file.fileno(), start_at, os.SEEK_SET)
                        found = self.json(*command, stdin=file)
                        if command[0] == "sum":
                            self.assertEqual((found[0]["seal"], found[0]["bag"]), (SEAL, rows))
                        else:
                            self.assertEqual((found["tokens"], found["documents"]["count"]), (len(TOKENS), len(ROWS)))

    def test_servers_without_ranges(self):
        """Rows are counted while they come; lint and sniff, which need them before, say so."""
        if not containers.zstandard():
            self.skipTest("python3-zstandard is not installed (make deps installs it)")
        stream = (FILES / "list-int32-stream.arrow").read_bytes()
        # small answers are kept, so this is a large one
        server = FileServer({"/a.arrow": zstd(stream) + containers.zstd_skippable(bytes(1 << 20))}, serves="chunked")
        self.addCleanup(server.stop)
        url = server.url("/a.arrow")
        said = self.iron("sum", url).message
        if "libcurl" in said or "IRON_STATIC_COMMAND" in said:
            self.skipTest(said)
        [found] = self.json("sum", "--bag", url)
        self.assertEqual((found["seal"], found["bag"]), (SEAL, bag(split(TOKENS, ROWS))))
        self.refused("lint", url, says="ranges.*download it first")
        result = self.iron("sniff", url)
        self.assertEqual(result.code, 2)
        self.assertIn("ranges", result.message)
        self.refused("sum", "--stream", "--bag", url, url, says="can only be read in order")

    def test_streams_and_tables_together(self):
        stream = self.write("inside.arrow.gz", gzipped((FILES / "list-int32-stream.arrow").read_bytes()))
        names = [FILES / "list-int32-file.arrow", stream, FILES / "list-uint32.parquet"]
        [found] = self.json("sum", "--stream", "--bag", *names)
        self.assertEqual((found["seal"], found["bag"]), (oracle.seal(TOKENS * 3), bag(split(TOKENS, ROWS) * 3)))
        self.assertEqual(self.json("stat", *names, "--vocab", VOCAB)["documents"]["count"], 3 * len(ROWS))


class Compressed(IronTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        why = command_missing("zstd", "lz4", "xz") or (
            "" if containers.zstandard() else "python3-zstandard is not installed (make deps installs it)")
        if why:
            raise unittest.SkipTest(why)

    def codecs(self, data):
        """{name: compressed data}: what each codec can do."""
        return {
            "a.zst": zstd(data), "frames.zst": zstd(data, frames=9), "unknown.zst": zstd(data, content_size=False),
            "unknown-frames.zst": zstd(data, frames=5, content_size=False), "checked.zst": zstd(data, checksum=True),
            "skipped.zst": containers.zstd_skippable() + zstd(data, frames=2) + containers.zstd_skippable(),
            "command.zst": containers.run(["zstd", "-q", "-c", "-T2"], data),
            "a.gz": gzipped(data), "members.gz": gzipped(data, 7), "stored.gz": gzipped(data, level=0),
            "a.xz": xz(data), "streams.xz": xz(data, 5), "blocks.xz": xz(data, block=512),
            "a.lz4": lz4(data), "frames.lz4": lz4(data, 4), "linked.lz4": lz4(data, options=["-BD", "-B4"]),
            "sized.lz4": lz4(data, options=["--content-size", "-BX"]),
        }

    def formats(self, tokens):
        return {"npy": npy(tokens, "<u2", "H"), "llmc": llmc(tokens, "u16"), "litpkds": litpkds(tokens, "u16")}

    def test_raw(self):
        for name, data in self.codecs(pack(TOKENS, "u16")).items():
            self.write(name, data)
        names = sorted(p.name for p in self.dir.iterdir())
        found = self.json("sum", *names, "--dtype", "u16")
        self.assertEqual({f["file"]: f["seal"] for f in found}, {name: SEAL for name in names})
        result = self.refused("sum", "a.zst", says="dtype")
        self.assertIn("sniff", result.message)

    def test_formats(self):
        for form, inner in self.formats(TOKENS).items():
            for name, data in self.codecs(inner).items():
                self.write(f"{form}-{name}", data)
        names = sorted(p.name for p in self.dir.iterdir())
        found = self.json("sum", *names)
        self.assertEqual({f["file"]: f["seal"] for f in found}, {name: SEAL for name in names})

    def test_pipes(self):
        for name, data in self.codecs(pack(TOKENS, "u16")).items():
            [found] = self.json("sum", "-", "--dtype", "u16", stdin=data)
            self.assertEqual(found["seal"], SEAL, name)
        for form, inner in self.formats(TOKENS).items():
            [found] = self.json("sum", "-", stdin=zstd(inner, frames=3))
            self.assertEqual(found["seal"], SEAL, form)

    def test_what_is_inside_a_pipe(self):
        """A compressed pipe is recognised like a file, however slowly it comes."""
        text = b"This is a line of text, and no token.\n" * 9
        stream = None if node_missing() else (FILES / "list-int32-stream.arrow").read_bytes()
        for name, data in self.codecs(text).items():
            with self.subTest(codec=name):
                self.assert_error_line(self.iron("sum", "-", "--dtype", "u16", stdin=data), says="is text")
        for name, data in self.codecs(stream).items() if stream else ():
            for options in ([], ["--dtype", "u32"]):
                [found] = self.json("sum", "-", *options, stdin=data)
                self.assertEqual(found["seal"], SEAL, name)
        for first in (1, 16, 40, 100):
            with start("sum", "-", "--dtype", "u16", cwd=self.dir, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE) as process:
                process.stdin.write(text[:first])
                process.stdin.flush()
                time.sleep(0.2)
                message = process.communicate(text[first:])[1]
            self.assertEqual((process.returncode, b"is text" in message), (2, True), (first, message))

    def test_empty(self):
        for name, data in self.codecs(b"").items():
            [found] = self.json("sum", self.write(name, data), "--dtype", "u16")
            self.assertEqual((found["tokens"], found["seal"]), (0, oracle.seal([])), name)
        self.write_tokens("raw", [1, 2, 3], "u16")
        for form, inner in self.formats([]).items():
            for name, data in self.codecs(inner).items():
                path = self.write(f"{form}-{name}", data)
                [found] = self.json("sum", path)
                self.assertEqual((found["tokens"], found["seal"]), (0, oracle.seal([])), path.name)
            [found] = self.json("sum", "--stream", "raw", path, "raw", "--dtype", "u16")
            self.assertEqual(found["seal"], oracle.seal([1, 2, 3, 1, 2, 3]))

    def test_arrow_streams(self):
        why = node_missing()
        if why:
            self.skipTest(why)
        for name in ("list-int32-stream.arrow", "beside-stream.arrow", "dictionary-stream.arrow"):
            for codec, data in self.codecs((FILES / name).read_bytes()).items():
                with self.subTest(file=name, codec=codec):
                    path = self.write(f"{name}.{codec}", data)
                    [found] = self.json("sum", path)
                    self.assertEqual(found["seal"], SEAL)
        [found] = self.json("sum", "--bag", self.dir / "list-int32-stream.arrow.a.zst")
        self.assertEqual(found["bag"], bag(split(TOKENS, ROWS)))

    def test_arrow_at_any_position(self):
        why = node_missing()
        if why:
            self.skipTest(why)
        plain = FILES / "list-int32-file.arrow"
        rows = split(TOKENS, ROWS)
        shuffled = rows[:]
        random.Random(1).shuffle(shuffled)
        tokens = containers.u32_file(self.dir / "shuffled.u32", [t for row in shuffled for t in row])
        other = self.dir / "shuffled.parquet"
        containers.write([{"out": str(other), "writer": "parquet-wasm", "tokens": tokens,
                           "rows": [len(row) for row in shuffled],
                           "columns": [{"name": "input_ids", "type": "list<uint32>"}]}])
        longer = self.write("longer.npy", npy(TOKENS[:50] + [5] + TOKENS[50:], "<u4", "I"))
        documents_found = self.json("stat", plain, "--vocab", VOCAB)["documents"]
        findings = parse_json(self.iron("lint", plain, "--eos", 7, "--json").out)["findings"]
        for codec, data in self.codecs(plain.read_bytes()).items():
            if codec not in ("a.zst", "frames.zst", "unknown.zst", "members.gz", "blocks.xz", "frames.lz4"):
                continue
            with self.subTest(codec=codec):
                path = self.write(codec, data)
                for k in (1, 2, 3):
                    self.succeeds("sum", path, "--bag", "--chunk", 1024, "--part", f"{k}/3", "-o", f"p{k}")
                [merged] = self.json("merge", "p3", "p1", "p2")
                self.assertEqual((merged["seal"], merged["bag"]), (SEAL, bag(rows)))
                self.assertIs(self.json("diff", path, plain)["equal"], True)
                for against, kind in ((other, "shuffled"), (longer, "inserted")):
                    found = self.iron("diff", path, against, "--json")
                    self.assertEqual((found.code, found.out and parse_json(found.out)["kind"]), (1, kind), str(found))
                self.assertEqual(self.json("stat", path, "--vocab", VOCAB)["documents"], documents_found)
                found = parse_json(self.iron("lint", path, "--eos", 7, "--json").out)["findings"]
                self.assertEqual([{**f, "file": 0} for f in found], [{**f, "file": 0} for f in findings])
                self.feed(path, "--vocab", VOCAB, "--every", 1000, "--state", f"{codec}.state")
                [one] = self.json("sniff", path)
                self.assertEqual((one["tokens"], one["rows"]), (len(TOKENS), len(ROWS)))

    def test_parquet(self):
        why = node_missing()
        if why:
            self.skipTest(why)
        for codec, data in self.codecs((FILES / "pages-dictionary-v2.parquet").read_bytes()).items():
            with self.subTest(codec=codec):
                path = self.write(codec, data)
                [found] = self.json("sum", "--bag", path)
                self.assertEqual((found["seal"], found["bag"]), (SEAL, bag(split(TOKENS, ROWS))))
                with path.open("rb") as file:
                    [found] = self.json("sum", "--bag", "-", stdin=file)
                self.assertEqual((found["seal"], found["bag"]), (SEAL, bag(split(TOKENS, ROWS))))
                self.assert_error_line(self.iron("sum", "-", stdin=data), says="needs a file, not a pipe")
                cut = self.write(f"cut-{codec}", data[:len(data) * 2 // 3])
                self.refused("sum", cut)

    def test_other_commands(self):
        self.write_tokens("raw.bin", TOKENS, "u16")
        for name in ("frames.zst", "a.gz", "blocks.xz", "a.lz4"):
            path = self.write(name, self.codecs(pack(TOKENS, "u16"))[name])
            with self.subTest(file=name):
                self.assertIs(self.json("diff", "raw.bin", path, "--dtype", "u16")["equal"], True)
                found = self.feed(path, "--dtype", "u16", "--seal")
                self.assertEqual(found["seal"], SEAL)
                self.assertEqual(self.json("stat", path, "--dtype", "u16", "--vocab", VOCAB)["tokens"], len(TOKENS))
                [one] = self.json("sniff", path)
                self.assertEqual((one["format"], one["dtype"]), ("raw", "u16"))
                self.succeeds("sum", path, "--dtype", "u16", "--manifest", "m")
                self.assertEqual(self.iron("check", "m").code, 0)
                for k in (1, 2):
                    self.succeeds("sum", path, "--dtype", "u16", "--chunk", 1024, "--part", f"{k}/2", "-o", f"p{k}")
                self.assertEqual(self.succeeds("merge", "p1", "p2").text.split()[0], SEAL)

    def test_contents_are_what_they_are(self):
        """What is compressed is recognised by content as well: an archive is not tokens."""
        self.write("a.tar.gz", gzipped(tar(b"some text")))
        self.refused("sum", "a.tar.gz", "--dtype", "u16", says="tar")
        twice = self.write("twice.gz", gzipped(gzipped(pack(TOKENS, "u16"))))
        result = self.iron("sum", twice, "--dtype", "u16")
        if result.code == 0:
            self.assertEqual(result.text.split()[0], SEAL)
        else:
            self.assert_error_line(result)
        self.write("text.zst", zstd(b"these are words, not tokens\n" * 300))
        self.refused("sum", "text.zst", "--dtype", "u16", says="text")

    def test_raw_overrides(self):
        """--format raw is about what is inside: compressed files are still decompressed."""
        self.write("a.zst", zstd(pack(TOKENS, "u16")))
        self.assertEqual(self.json("sum", "a.zst", "--format", "raw", "--dtype", "u16")[0]["seal"], SEAL)
        data = tar(b"some text")
        self.write("a.tar.gz", gzipped(data))
        result = self.iron("sum", "a.tar.gz", "--format", "raw", "--dtype", "u8")
        self.assertEqual((result.code, result.text.split()[0]), (0, oracle.seal(list(data))), str(result))

    def test_damage_after_the_end(self):
        for name, data in self.codecs(npy(TOKENS, "<u2", "H")).items():
            path = self.write(name, data + b"something else")
            self.refused("sum", path, says=name)


def tar(data) -> bytes:
    import io
    import tarfile
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        info = tarfile.TarInfo("a.txt")
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


class Folders(IronTest):
    """MDS and save_to_disk folders."""

    LENGTHS = [5, 1, 300, 4, 70000, 2, 9]

    def setUp(self):
        super().setUp()
        rng = random.Random(f"{SEED} folders")
        self.tokens = [rng.randrange(VOCAB) for _ in range(sum(self.LENGTHS))]
        self.samples = split(self.tokens, self.LENGTHS)
        self.seal = SEALS.setdefault("folders", oracle.seal(self.tokens))

    def shards(self, encoding="ndarray:uint32", name="input_ids", sizes=(2, 0, 4, 1)):
        samples = [{name: s, "a": f"text {k}", "z": [k]} for k, s in enumerate(self.samples)]
        return split(samples, sizes), {name: encoding, "a": "str", "z": "int"}

    def assert_folder(self, folder, *options):
        [found] = self.json("sum", "--stream", folder, *options)
        self.assertEqual(found["seal"], self.seal, str(folder))

    def test_mds(self):
        for k, encoding in enumerate(("ndarray", "ndarray:uint16", "ndarray:int32", "ndarray:int64",
                                      "ndarray:uint32")):
            folder = mds_folder(self.dir / f"d{k}", *self.shards(encoding))
            with self.subTest(encoding=encoding):
                self.assert_folder(folder)
                self.assert_folder(folder, "--format", "mds", "--column", "input_ids")
                [found] = self.json("sum", "--stream", "--bag", folder)
                self.assertEqual(found["bag"], bag_of("folders", self.samples))
                stat = self.json("stat", folder, "--vocab", VOCAB)
                self.assertEqual(stat["documents"]["count"], len(self.samples))
                self.assertEqual(stat["documents"]["max"], 70000)

    def test_what_spark_writes_beside_its_data(self):
        self.write("d/part-0.bin", pack(self.tokens, "u32"))
        self.write("d/_SUCCESS", b"")
        self.write("d/_metadata", b"PAR1")
        self.assert_folder("d", "--dtype", "u32")

    def test_pipes_in_a_folder_are_skipped(self):
        self.write("d/a.bin", pack(self.tokens, "u32"))
        os.mkfifo(self.dir / "d" / "z")
        result = self.iron("sum", "--stream", "d", "--dtype", "u32")
        self.assertEqual((result.code, result.text.split()[0]), (0, self.seal))
        self.assertIn("d/z (not a regular file)", result.message)

    def test_a_damaged_list_of_files_is_refused(self):
        for name in ("state.json", "dataset_dict.json"):
            for damage in (b'{"_data_files": [', b"\xef\xbb\xbf{}", b""):
                self.write("d/a.bin", pack(self.tokens, "u32"))
                self.write(f"d/{name}", damage)
                self.refused("sum", "--stream", "d", "--dtype", "u32", says=[name, "order"])
            (self.dir / "d" / name).unlink()

    def test_mds_bytes_need_a_dtype(self):
        folder = mds_folder(self.dir / "d", *self.shards("bytes", "tokens"))
        self.refused("sum", "--stream", folder, says="dtype")
        self.refused("sum", "--stream", folder, "--column", "tokens", says="dtype")
        [one] = self.json("sniff", folder / "shard.00002.mds", "--column", "tokens")
        self.assertEqual((one["format"], one["rows"], one["tokens"], one["dtype"]), ("mds", 4, None, None))
        self.assertIn("give --dtype", " ".join(one["reasons"]))
        samples = [{"a": [1, 2], "b": [3]} for _ in range(3)]
        other = mds_folder(self.dir / "two", [samples], {"a": "ndarray:uint16", "b": "ndarray:uint32"})
        [one] = self.json("sniff", other / "shard.00000.mds")
        self.assertEqual((one["rows"], one["tokens"], len(one["columns"])), (3, None, 2))
        self.assertIn("--column", " ".join(one["reasons"]))
        [one] = self.json("sniff", other / "shard.00000.mds", "--column", "a")
        self.assertEqual((one["rows"], one["tokens"], one["dtype"]), (3, 6, "u16"))
        self.assert_folder(folder, "--dtype", "u16", "--column", "tokens")

    def test_mds_fixed_shape_and_scalars(self):
        tokens = [int(t) for t in range(24)]
        for k, (encoding, step) in enumerate((("ndarray:uint16:4", 4), ("ndarray:int32:2,3", 6), ("int", 1),
                                              ("int32", 1), ("uint16", 1), ("uint8", 1), ("int64", 1))):
            samples = [{"tokens": tokens[at:at + step]} for at in range(0, 24, step)]
            folder = mds_folder(self.dir / f"d{k}", [samples[:3], samples[3:]], {"tokens": encoding})
            with self.subTest(encoding=encoding):
                [found] = self.json("sum", "--stream", "--bag", folder)
                self.assertEqual(found["seal"], oracle.seal(tokens))
                self.assertEqual(found["bag"], bag([s["tokens"] for s in samples]))

    @unittest.skipUnless(containers.zstandard(), "python3-zstandard is not installed (make deps installs it)")
    def test_mds_compressed(self):
        for k, compression in enumerate(("zstd", "zstd:3")):
            for keep in (False, True):
                folder = mds_folder(self.dir / f"d{k}{keep}", *self.shards(), compression=compression,
                                    keep_raw=keep)
                self.assert_folder(folder)

    def test_mds_hashes(self):
        for hashes in (("sha1",), ("sha256",), ("md5",), ("sha1", "md5"), ()):
            folder = mds_folder(self.dir / ("d" + "-".join(hashes)), *self.shards(), hashes=hashes)
            self.assert_folder(folder)
        for hashes in (("sha1",), ("sha256",), ("md5",)):
            shard = self.dir / ("d" + hashes[0]) / "shard.00002.mds"
            data = bytearray(shard.read_bytes())
            data[-1] ^= 1
            shard.write_bytes(data)
            self.refused("sum", "--stream", shard.parent, says=["shard.00002.mds", hashes[0]])

    def test_mds_damage(self):
        def damaged(name, change):
            folder = mds_folder(self.dir / name, *self.shards(), hashes=())
            change(folder)
            self.refused("sum", "--stream", folder)

        def cut(folder):
            shard = folder / "shard.00002.mds"
            shard.write_bytes(shard.read_bytes()[:-1])

        damaged("cut", cut)
        damaged("missing", lambda folder: (folder / "shard.00000.mds").unlink())
        damaged("text", lambda folder: (folder / "index.json").write_text("{"))
        damaged("other", lambda folder: (folder / "index.json").write_text('{"version": 9, "shards": []}'))

        def offsets(folder):
            shard = folder / "shard.00002.mds"
            data = bytearray(shard.read_bytes())
            struct.pack_into("<I", data, 8, 2**31)
            shard.write_bytes(data)
        damaged("offsets", offsets)

        def outside(folder):
            index = folder / "index.json"
            index.write_text(index.read_text().replace("shard.00000.mds", "../shard.00000.mds"))
        damaged("outside", outside)

    def save_to_disk(self, folder, order=(2, 0, 1)):
        """A folder whose state.json has another order than the names."""
        why = node_missing()
        if why:
            self.skipTest(why)
        folder.mkdir(parents=True)
        names = [f"data-{k:05}-of-00003.arrow" for k in range(3)]
        parts = [self.samples[:2], self.samples[2:4], self.samples[4:]]
        containers.write([{
            "out": str(folder / names[name]), "writer": "arrow", "kind": "stream", "rows": [len(s) for s in part],
            "columns": [{"name": "input_ids", "type": "list<int32>", "values": [t for s in part for t in s]}],
        } for name, part in zip(order, parts)])
        return containers.hf_state(folder, [names[k] for k in order])

    def test_save_to_disk(self):
        folder = self.save_to_disk(self.dir / "d")
        self.assert_folder(folder)
        [found] = self.json("sum", "--stream", "--bag", folder)
        self.assertEqual(found["bag"], bag_of("folders", self.samples))
        (folder / "cache-0123.arrow").write_bytes((folder / "data-00000-of-00003.arrow").read_bytes())
        self.assert_folder(folder)  # only what state.json names
        (folder / "data-00001-of-00003.arrow").unlink()
        self.refused("sum", "--stream", folder, says="data-00001-of-00003.arrow")

    def test_splits(self):
        train = self.save_to_disk(self.dir / "d" / "train")
        self.write("d/dataset_dict.json", b'{"splits": ["train"]}')
        self.assert_folder(train)
        result = self.iron("sum", "--stream", "d")
        if result.code == 0:
            self.assertEqual(result.text.split()[0], self.seal)
        else:
            self.assert_error_line(result, says="train")


SEALS: dict = {}


def bag_of(name, samples):
    """Computed once: the oracle is slow."""
    if (name, "bag") not in SEALS:
        SEALS[name, "bag"] = bag(samples)
    return SEALS[name, "bag"]


class Damage(IronTest):
    """Files that are cut off, or have a flipped bit: never another seal with exit 0, never a crash.

    Nothing tells the width of a raw file, so that --dtype is never given here: what is no longer
    recognised is refused.
    """

    BATCH = 2000  # files in one run

    def setUp(self):
        super().setUp()
        rng = random.Random(f"{SEED} damage")
        self.tokens = [rng.randrange(VOCAB) for _ in range(120)]
        self.lengths = [3, 1, 40, 6, 2, 8] + [10] * 6
        self.seal = oracle.seal(self.tokens)

    def sweep(self, name, variants):
        """Runs `iron sum` over all variants of a file: a dict of what was read, by variant."""
        memory = Path("/dev/shm")  # thousands of files
        folder = Path(tempfile.mkdtemp(prefix="iron-cli-", dir=memory if os.access(memory, os.W_OK) else None))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        read, batch = {}, []

        def flush():
            result = self.iron("sum", "--threads", 1, *batch, cwd=folder)
            self.assertIn(result.code, (0, 2), str(result)[:2000])
            lines = [line.split("  ", 1) for line in result.text.splitlines() if line[0] != "#"]
            errors = result.message.splitlines()
            for line in errors:
                self.assertTrue(line.startswith("iron: "), line)
            self.assertEqual(len(lines) + len(errors), len(batch), f"{name}: {lines[:3]} {errors[:3]}")
            read.update({file: seal for seal, file in lines})
            for file in batch:
                (folder / file).unlink()
            batch.clear()

        for variant, data in variants:
            (folder / variant).write_bytes(data)
            batch.append(variant)
            if len(batch) == self.BATCH:
                flush()
        if batch:
            flush()
        return read

    def cut_everywhere(self, name, data):
        """Only the whole file is read."""
        read = self.sweep(name, ((f"{n}", data[:n]) for n in range(1, len(data))))
        self.assertEqual(read, {}, f"{name}: cut to these lengths of {len(data)} it was read as if it were whole")

    def flip_everywhere(self, name, data):
        rng = random.Random(f"{SEED} {name}")

        def variants():
            for at in range(len(data)):
                for bit in [rng.randrange(8)] if REDUCED and len(data) > 400 else range(8):
                    changed = bytearray(data)
                    changed[at] ^= 1 << bit
                    yield f"{at}.{bit}", changed
        read = self.sweep(name, variants())
        wrong = {v: seal for v, seal in read.items() if seal != self.seal}
        self.assertEqual(wrong, {}, f"{name}: with these bits flipped other tokens were read")

    def tables(self):
        """{name: data} of small files by the packages."""
        why = node_missing()
        if why:
            self.skipTest(why)
        jobs = {}

        def job(name, writer, type_, **options):
            jobs[name] = {"out": str(self.dir / name), "writer": writer,
                          "rows": self.lengths if "list" in type_ else None,
                          "columns": [{"name": "input_ids", "type": type_, "values": self.tokens}], **options}
        job("file.arrow", "arrow", "list<uint16>", kind="file", batch=6)
        job("stream.arrow", "arrow", "list<int32>", kind="stream", batch=6)
        job("flat.arrow", "arrow", "uint16", kind="file", batch=50)
        job("dictionary.arrow", "arrow", "dictionary<uint16>", kind="stream", batch=60)
        if not command_missing("zstd"):
            job("zstd.arrow", "arrow", "list<uint16>", kind="file", batch=6, compression="zstd")
        job("plain.parquet", "parquet-wasm", "list<int32>", row_group=6)
        job("v2.parquet", "parquet-wasm", "list<int32>", version=2, dictionary=True, compression="SNAPPY")
        job("delta.parquet", "parquet-wasm", "uint16", encoding="DELTA_BINARY_PACKED", compression="GZIP")
        job("hyparquet.parquet", "hyparquet", "list<int32>", compression="SNAPPY")
        containers.write(list(jobs.values()))
        return {name: (self.dir / name).read_bytes() for name in jobs}

    def test_tables_are_cut(self):
        for name, data in self.tables().items():
            with self.subTest(file=name):
                self.cut_everywhere(name, data)

    def test_tables_have_flipped_bits(self):
        """Without checksums other tokens may be read; a crash or a hang would be found."""
        for name, data in self.tables().items():
            rng = random.Random(f"{SEED} {name}")
            at_most = 500 if REDUCED else 5000

            def variants():
                for k in range(at_most):
                    changed = bytearray(data)
                    for _ in range(rng.randrange(1, 4)):
                        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
                    yield str(k), changed
            with self.subTest(file=name):
                self.sweep(name, variants())

    def test_checksums_of_pages(self):
        for name, data in (("flat.parquet", containers.parquet(self.tokens, page=30)),
                           ("list.parquet", containers.parquet(self.tokens, self.lengths, page=4)),
                           ("optional.parquet", containers.parquet(self.tokens, self.lengths, page=4,
                                                                   is_optional=True))):
            with self.subTest(file=name):
                path = self.write(name, data)
                [found] = self.json("sum", path)
                self.assertEqual(found["seal"], self.seal)
                self.flip_everywhere(name, data)
                self.cut_everywhere(name, data)

    def test_checksums_of_codecs(self):
        if command_missing("lz4", "xz") or not containers.zstandard():
            self.skipTest("lz4, xz or python3-zstandard is not installed (make deps installs it)")
        data = npy(self.tokens, "<u2", "H")
        for name, compressed in (("a.zst", zstd(data, checksum=True)), ("a.gz", gzipped(data)), ("a.xz", xz(data)),
                                 ("a.lz4", lz4(data))):
            with self.subTest(file=name):
                path = self.write(name, compressed)
                [found] = self.json("sum", path)
                self.assertEqual(found["seal"], self.seal)
                self.flip_everywhere(name, compressed)
                self.cut_everywhere(name, compressed)

    def test_codecs_are_cut(self):
        if command_missing("lz4", "xz") or not containers.zstandard():
            self.skipTest("lz4, xz or python3-zstandard is not installed (make deps installs it)")
        data = npy(self.tokens, "<u2", "H")
        for name, compressed in (("frames.zst", zstd(data, 3)), ("unknown.zst", zstd(data, 2, content_size=False)),
                                 ("members.gz", gzipped(data, 3)), ("streams.xz", xz(data, 3)),
                                 ("frames.lz4", lz4(data, 3))):
            with self.subTest(file=name):
                self.cut_everywhere(name, compressed)


if __name__ == "__main__":
    unittest.main()
