# SPDX-License-Identifier: MIT
"""The same tokens in more than twenty places: one seal, one bag, one histogram, and no difference.

The tokens are real: gpt-tokenizer's cl100k_base over text files that every Debian has, 20 million in
the full run (more than any reader keeps in memory) and fewer in the reduced one.  A document is a text file, or a piece of a long one.
Little-endian machines only, as the formats are.
"""

import array
import http.server
import itertools
import os
import random
import re
import shutil
import struct
import tempfile
import threading
import unittest
from pathlib import Path

import containers
from containers import command_missing, gzipped, lz4, node_missing, xz, zstd
from harness import FULL, REPO, SANITIZED, SEED, IronTest, iron, parse_json

COUNT = 200_000 if SANITIZED else 20_000_000 if FULL else 1_000_000
VOCAB = 100_277
SAMPLE = 2048
ROOTS = ("/usr/share/common-licenses", "/usr/share/perl", "/usr/share/perl5", "/usr/include", "/usr/lib/python3",
         "/usr/share/doc", str(REPO / "docs"), str(REPO / "src"))


class Place:
    """Where the tokens are: one path, or several that are one stream; and whether documents are known."""

    def __init__(self, *paths, dtype=None, rows=True, env=None):
        self.paths, self.rows, self.env = [str(p) for p in paths], rows, env
        self.options = ["--dtype", dtype] if dtype else []

    def moved(self, url, env=None):
        """The same file below a URL."""
        place = Place(f"{url}/{Path(self.paths[0]).name}", rows=self.rows, env=env)
        place.options = self.options
        return place


class Places:
    """Writes the tokens to all places."""

    def __init__(self, folder):
        self.folder = folder
        self.places = {}
        containers.node(containers.TOKENIZE, COUNT, folder / "raw.u32", folder / "lengths.u32",
                        *(root for root in ROOTS if os.path.isdir(root)))
        self.tokens, self.lengths = (array.array("I", (folder / name).read_bytes())
                                     for name in ("raw.u32", "lengths.u32"))
        self.starts = [0, *itertools.accumulate(self.lengths)]
        self.shards = self.cut(7)
        self.raw_formats()
        self.tables()
        self.folders()
        self.compressed()

    def cut(self, count):
        """(first row, end row) of shards of about the same number of rows."""
        rows = len(self.lengths)
        return [(rows * k // count, rows * (k + 1) // count) for k in range(count)]

    def put(self, name, data):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        return path

    def raw_formats(self):
        tokens = self.tokens
        self.places["raw-u32"] = Place(self.folder / "raw.u32", dtype="u32", rows=False)
        self.places["raw-i64"] = Place(self.put("raw.i64", array.array("q", tokens)), dtype="i64", rows=False)
        self.places["npy"] = Place(self.put("a.npy", npy_of(tokens, "<u4")), rows=False)
        self.places["npy-i64"] = Place(self.put("b.npy", npy_of(array.array("q", tokens), "<i8")), rows=False)
        self.places["llmc"] = Place(self.put("llmc.bin", struct.pack("<3i", 20240801, 7, len(tokens)).ljust(1024, b"\0")
                                             + tokens.tobytes()), rows=False)
        self.places["litpkds"] = Place(self.put("lit.bin", b"LITPKDS" + struct.pack("<QBQ", 1, 4, len(tokens))
                                                + tokens.tobytes()), rows=False)
        self.places["megatron"] = Place(self.put("P.bin", tokens.tobytes()))
        count = len(self.lengths)
        self.put("P.idx", b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 4, count, count + 1) + self.lengths.tobytes()
                 + array.array("q", (4 * s for s in self.starts[:-1])).tobytes()
                 + array.array("q", range(count + 1)).tobytes())
        self.places["ds"] = Place(self.put("X.ds", tokens.tobytes()))
        self.put("X.ds.index", array.array("Q", self.starts[1:]).tobytes())
        self.put("X.ds.metadata", f"cl100k_base|4\n{len(tokens)}\n1 tokens".encode())
        for k, (row, end) in enumerate(self.shards):  # names in natural order
            self.put(f"shards/part-{k + 7}.bin", self.slice(row, end))
        self.places["raw-7-files"] = Place(self.folder / "shards", dtype="u32", rows=False)

    def slice(self, row, end) -> bytes:
        return self.tokens[self.starts[row]:self.starts[end]].tobytes()

    def tables(self):
        jobs = []
        whole = {"tokens": str(self.folder / "raw.u32"), "rows": str(self.folder / "lengths.u32")}

        def job(name, writer, type_, **options):
            is_list = "list" in type_
            beside = [{"name": "text", "type": "string"}] if is_list and "encoding" not in options else []
            jobs.append({"out": str(self.folder / name), "writer": writer, **whole,
                         **({} if is_list else {"rows": None}),
                         "columns": [*beside, {"name": "input_ids", "type": type_}], **options})
            self.places[name] = Place(self.folder / name, rows=is_list)

        some = len(self.lengths) // 9 + 1
        job("stream.arrow", "arrow", "list<int32>", kind="stream", batch=some)
        job("file.arrow", "arrow", "list<uint32>", kind="file", batch=some)
        job("large-list.arrow", "arrow", "large_list<int64>", kind="file", batch=some)
        job("flat.arrow", "arrow", "int32", kind="file", batch=COUNT // 7)
        if not command_missing("lz4", "zstd"):
            job("lz4.arrow", "arrow", "list<int32>", kind="stream", batch=some, compression="lz4")
            job("zstd.arrow", "arrow", "list<int64>", kind="file", batch=some, compression="zstd")
        job("plain.parquet", "parquet-wasm", "list<int32>", row_group=some)
        job("snappy-v2-dictionary.parquet", "parquet-wasm", "list<int32>", compression="SNAPPY", version=2,
            dictionary=True, row_group=some)
        job("gzip.parquet", "parquet-wasm", "list<int64>", compression="GZIP", row_group=some)
        job("zstd-v2.parquet", "parquet-wasm", "list<int64>", compression="ZSTD", version=2, row_group=some)
        job("lz4.parquet", "parquet-wasm", "list<uint32>", compression="LZ4_RAW")
        job("delta.parquet", "parquet-wasm", "list<int32>", encoding="DELTA_BINARY_PACKED", version=2)
        job("split.parquet", "parquet-wasm", "int32", encoding="BYTE_STREAM_SPLIT", compression="ZSTD")
        job("flat.parquet", "parquet-wasm", "uint32", row_group=COUNT // 5)
        job("hyparquet.parquet", "hyparquet", "list<int32>", compression="SNAPPY", row_group=some)
        jobs += [{"out": str(self.folder / folder / name.format(k)), "writer": writer,
                  "tokens": str(self.put(f"parts/{k}.u32", self.slice(row, end))),
                  "rows": str(self.put(f"parts/{k}.lengths", self.lengths[row:end])),
                  "columns": [{"name": "input_ids", "type": "list<int32>"}], **options}
                 for k, (row, end) in enumerate(self.shards)
                 for folder, name, writer, options in (
                     ("parquet", "train-{:05}-of-00007.parquet", "parquet-wasm", {"compression": "ZSTD"}),
                     ("saved", "data-{:05}-of-00007.arrow", "arrow", {"kind": "stream", "batch": 1000}))]
        for folder in ("parquet", "saved"):
            (self.folder / folder).mkdir()
        containers.write(jobs)
        shutil.rmtree(self.folder / "parts")
        self.places["parquet-7-files"] = Place(self.folder / "parquet")
        parts = [self.folder / "parquet" / f"train-{k:05}-of-00007.parquet" for k in range(3)]
        parts += [self.folder / "saved" / f"data-{k:05}-of-00007.arrow" for k in range(3, 6)]
        last = self.put("last.npy", npy_of(self.tokens[self.starts[self.shards[6][0]]:], "<u4"))
        self.places["mixed"] = Place(*parts, last, rows=False)
        self.places["save_to_disk"] = Place(containers.hf_state(
            self.folder / "saved", [f"data-{k:05}-of-00007.arrow" for k in range(7)]))

    def folders(self):
        samples = [{"tokens": self.tokens[s:e], "id": str(k)}
                   for k, (s, e) in enumerate(itertools.pairwise(self.starts))]
        shards = [samples[row:end] for row, end in self.shards]
        columns = {"tokens": "ndarray:uint32", "id": "str"}
        self.places["mds"] = Place(containers.mds_folder(self.folder / "mds", shards, columns))
        if containers.zstandard():
            self.places["mds-zstd"] = Place(containers.mds_folder(self.folder / "mds-zstd", shards, columns,
                                                                  compression="zstd"))

    def compressed(self):
        raw, options = self.tokens.tobytes(), {"dtype": "u32", "rows": False}
        if containers.zstandard():
            self.places["zst"] = Place(self.put("raw.zst", zstd(raw)), **options)
            self.places["zst-frames"] = Place(self.put("frames.zst", zstd(raw, frames=50)), **options)
            self.places["npy.zst"] = Place(self.put("a.npy.zst", zstd(npy_of(self.tokens, "<u4"), content_size=False)),
                                           rows=False)
            stream = (self.folder / "stream.arrow").read_bytes()
            self.places["arrow.zst"] = Place(self.put("stream.arrow.zst", zstd(stream, frames=9)))
        self.places["gz"] = Place(self.put("raw.gz", gzipped(raw, members=3)), **options)
        if not command_missing("xz", "lz4"):
            self.places["xz"] = Place(self.put("raw.xz", xz(raw, block=2**20)), **options)
            self.places["lz4"] = Place(self.put("raw.lz4", lz4(raw, frames=3)), **options)


def npy_of(values, descr) -> bytes:
    """A NumPy file of an array."""
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({len(values)},), }}"
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + values.tobytes()


class Server(http.server.BaseHTTPRequestHandler):
    """Serves the files of a folder, below /ranges/ with ranges and below /whole/ without."""

    protocol_version = "HTTP/1.1"
    folder = Path()

    def do_HEAD(self):
        self.answer(False)

    def do_GET(self):
        self.answer(True)

    def answer(self, has_body):
        kind, _, name = self.path.lstrip("/").partition("/")
        try:
            with open(self.folder / name, "rb") as file:
                self.send_part(file, kind == "ranges", has_body)
        except FileNotFoundError:
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()

    def send_part(self, file, has_ranges, has_body):
        size = os.fstat(file.fileno()).st_size
        first, end, asked = 0, size, re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if has_ranges and asked and int(asked[1]) < size:
            first, end = int(asked[1]), min(int(asked[2] or size - 1), size - 1) + 1
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{end - 1}/{size}")
        else:
            self.send_response(200)
        self.send_header("Accept-Ranges", "bytes" if has_ranges else "none")
        self.send_header("Content-Length", str(end - first))
        self.end_headers()
        if not has_body:
            return
        self.wfile.flush()
        try:
            while first < end:
                first += os.sendfile(self.connection.fileno(), file.fileno(), first, end - first)
        except OSError:
            self.close_connection = True  # the command has read enough

    def log_message(self, *_):
        pass


class Same(IronTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        why = node_missing()
        if why:
            raise unittest.SkipTest(why)
        cls.folder = Path(tempfile.mkdtemp(prefix="iron-same-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.places = Places(cls.folder).places
        cls.rng = random.Random(f"{SEED} same")
        cls.serve()

    @classmethod
    def serve(cls):
        """Adds remote places, if this build reads them."""
        handler = type("Handler", (Server,), {"folder": cls.folder})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        cls.addClassCleanup(server.server_close)
        cls.addClassCleanup(server.shutdown)
        url = f"http://127.0.0.1:{server.server_port}"
        cls.remote_missing = iron("sum", f"{url}/ranges/a.npy").message
        if cls.remote_missing:
            return
        by_file = {Path(p.paths[0]).name: p for p in cls.places.values()}
        s3 = {"AWS_ENDPOINT_URL": url, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "somebody",
              "AWS_SECRET_ACCESS_KEY": "something"}
        for name in ("a.npy", "plain.parquet", "zstd.arrow", "stream.arrow", "frames.zst"):
            if name in by_file:
                cls.places[f"http {name}"] = by_file[name].moved(f"{url}/ranges")
                cls.places[f"s3 {name}"] = by_file[name].moved("s3://ranges", s3)
        for name in ("a.npy", "stream.arrow", "frames.zst"):
            if name in by_file:
                cls.places[f"http without ranges {name}"] = by_file[name].moved(f"{url}/whole")
        cls.places["http 7 files"] = Place(*(f"{url}/ranges/parquet/train-{k:05}-of-00007.parquet" for k in range(7)))

    def found(self, command, *options, only=None):
        """{place: JSON} of a command."""
        out = {}
        for name, place in self.places.items():
            if only is None or only(place):
                with self.subTest(place=name):
                    result = self.iron(command, *place.paths, *place.options, *options, "--json", env=place.env)
                    self.assertEqual((result.code, result.message), (0, ""), str(result))
                    found = parse_json(result.out)
                    out[name] = found[0] if isinstance(found, list) else found
        return out

    def one(self, values):
        """All are equal."""
        kinds = {}
        for name, value in values.items():
            kinds.setdefault(str(value), []).append(name)
        self.assertEqual(len(kinds), 1, kinds)

    def test_places(self):
        self.assertGreaterEqual(len(self.places), 20)
        if self.remote_missing:
            self.skipTest(f"remote places: {self.remote_missing.strip()}")

    def test_one_seal(self):
        found = self.found("sum", "--stream")
        self.one({name: (f["seal"], f["tokens"], f["min"], f["max"]) for name, f in found.items()})
        self.assertEqual(found["npy"]["tokens"], COUNT)

    def test_one_bag(self):
        found = self.found("sum", "--stream", "--bag", "--sample", SAMPLE)
        self.one({name: (f["bag"], f["samples"], f["bag_cut"]) for name, f in found.items()})
        self.assertEqual(found["npy"]["samples"], -(-COUNT // SAMPLE))

    def test_one_bag_of_documents(self):
        found = self.found("sum", "--stream", "--bag", only=lambda place: place.rows)
        self.one({name: (f["bag"], f["samples"]) for name, f in found.items()})
        self.assertGreaterEqual(len(found), 10)

    def test_one_histogram(self):
        found = self.found("stat", "--vocab", VOCAB, "--hist", "--top", 1000)
        self.one({name: (f["histogram"], f["longest_run"]) for name, f in found.items()})
        self.one({name: f["documents"] for name, f in found.items() if self.places[name].rows})

    def test_no_difference(self):
        names = [name for name, place in self.places.items() if len(place.paths) == 1]
        pairs = [("npy", name) for name in names]
        pairs += [self.rng.sample(names, 2) for _ in range(len(names))]
        for a, b in pairs:
            first, second = self.places[a], self.places[b]
            if first.options and second.options and first.options != second.options:
                continue  # one option for two raw files
            with self.subTest(a=a, b=b):
                result = self.iron("diff", *first.paths, *second.paths, *(first.options or second.options),
                                   "--json", env=first.env or second.env)
                self.assertEqual((result.code, result.message), (0, ""), str(result))
                self.assertIs(parse_json(result.out)["equal"], True)


if __name__ == "__main__":
    unittest.main()
