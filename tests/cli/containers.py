# SPDX-License-Identifier: MIT
"""Containers of tokens for the tests, made by others than iron: compressed files by zstandard, gzip,
lzma and lz4, Arrow and Parquet files by the npm packages of tests/containers.  MDS folders and
`save_to_disk` folders are written here, from the descriptions of their formats, and so is a Parquet
file with checksums, which none of the packages writes.
"""

import array
import functools
import gzip
import hashlib
import json
import lzma
import shutil
import struct
import subprocess
import sys
import zlib
from pathlib import Path

from harness import DTYPES, REPO, pack

WRITE = REPO / "tests" / "containers" / "write.mjs"
TOKENIZE = REPO / "tests" / "containers" / "tokenize.mjs"
DEBIAN_PACKAGES = "/usr/lib/python3/dist-packages"  # for a python that is not Debian's


# The packages of tests/containers.

@functools.lru_cache(maxsize=None)
def node_missing() -> str:
    """Why Arrow and Parquet files cannot be written here; "" if they can."""
    node = shutil.which("node") or shutil.which("nodejs")
    if not node:
        return "node is not installed (make deps installs it)"
    tried = subprocess.run([node, str(WRITE), "--try"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "tests/containers/node_modules is missing (make deps installs it)"


def node(script, *args, stdin=b"") -> bytes:
    done = subprocess.run([shutil.which("node") or "nodejs", str(script), *map(str, args)], input=stdin,
                          capture_output=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{Path(script).name} failed: {done.stderr.decode()}")
    return done.stdout


def write(jobs):
    """Writes files with the packages: see tests/containers/write.mjs."""
    node(WRITE, stdin=json.dumps(jobs, default=str).encode())


# Compressed files.

def command_missing(*names) -> str:
    missing = [name for name in names if not shutil.which(name)]
    return f"{missing[0]} is not installed (make deps installs it)" if missing else ""


@functools.lru_cache(maxsize=None)
def zstandard():
    """Debian's python3-zstandard, or None."""
    try:
        import zstandard as module
    except ImportError:
        sys.path.append(DEBIAN_PACKAGES)
        try:
            import zstandard as module
        except ImportError:
            return None
        finally:
            sys.path.remove(DEBIAN_PACKAGES)
    return module


def pieces(data, count):
    """The data in `count` pieces that differ in length by one at most; some may be empty."""
    return [data[len(data) * k // count:len(data) * (k + 1) // count] for k in range(count)]


def zstd(data, frames=1, content_size=True, checksum=False, level=1) -> bytes:
    module = zstandard()
    parameters = module.ZstdCompressionParameters.from_level(
        level, write_content_size=content_size, write_checksum=checksum)
    out = b""
    for piece in pieces(data, frames):
        compressor = module.ZstdCompressor(compression_params=parameters)
        if content_size:
            out += compressor.compress(piece)
        else:
            stream = compressor.compressobj()
            out += stream.compress(piece) + stream.flush()
    return out


def zstd_skippable(data=b"a note") -> bytes:
    """A skippable frame, as indexes of seekable files are."""
    return struct.pack("<II", 0x184D2A50, len(data)) + data


def gzipped(data, members=1, level=1) -> bytes:
    return b"".join(gzip.compress(piece, level, mtime=0) for piece in pieces(data, members))


def xz(data, streams=1, block=None, check=lzma.CHECK_CRC64) -> bytes:
    """Streams of the lzma module, or with `block` one stream of blocks by the command xz."""
    if block:
        return run(["xz", "-1", "-c", "-T2", f"--block-size={block}"], data)
    return b"".join(lzma.compress(piece, preset=0, check=check) for piece in pieces(data, streams))


def lz4(data, frames=1, options=()) -> bytes:
    return b"".join(run(["lz4", "-q", "-c", "-1", *options], piece) for piece in pieces(data, frames))


def run(command, data) -> bytes:
    return subprocess.run(command, input=data, capture_output=True, check=True).stdout


# MDS: MosaicML Streaming's folders.

MDS_CODES = {"uint8": 8, "int8": 9, "uint16": 16, "int16": 17, "uint32": 32, "int32": 33, "uint64": 64,
             "int64": 65}
LETTERS = {"uint8": "B", "int8": "b", "uint16": "H", "int16": "h", "uint32": "I", "int32": "i",
           "uint64": "Q", "int64": "q"}


def mds_value(encoding, values) -> bytes:
    """One sample's value of a column: a list of integers, or a string."""
    kind, *parts = encoding.split(":")
    if kind == "str":
        return values.encode()
    if kind == "bytes":
        return pack(values, "u16")
    if kind == "int":
        return struct.pack("<q", *values)
    if kind in LETTERS:
        return struct.pack(f"<{LETTERS[kind]}", *values)
    dtype = parts[0] if parts else "uint32"
    head = b"" if parts else bytes([MDS_CODES[dtype]])
    if len(parts) < 2:  # one axis, its length in the smallest width
        width = 0 if len(values) < 2**8 else 1 if len(values) < 2**16 else 2
        head += bytes([1 << 2 | width]) + len(values).to_bytes(1 << width, "little")
    if isinstance(values, array.array) and values.typecode == LETTERS[dtype]:
        return head + values.tobytes()
    return head + struct.pack(f"<{len(values)}{LETTERS[dtype]}", *values)


def mds_size(encoding):
    """The size of a column whose values have one, else None."""
    kind, *parts = encoding.split(":")
    if kind == "ndarray" and len(parts) == 2:
        count = 1
        for extent in parts[1].split(","):
            count *= int(extent)
        return count * struct.calcsize(LETTERS[parts[0]])
    return 8 if kind == "int" else struct.calcsize(LETTERS[kind]) if kind in LETTERS else None


def mds_shard(samples, columns) -> bytes:
    """A shard of samples {column: value}; columns {name: encoding}."""
    names = sorted(columns)
    sizes = [mds_size(columns[name]) for name in names]
    config = json.dumps({"version": 2, "format": "mds", "column_names": names,
                         "column_encodings": [columns[n] for n in names], "column_sizes": sizes},
                        sort_keys=True).encode()
    bodies = []
    for sample in samples:
        data = [mds_value(columns[name], sample[name]) for name in names]
        head = b"".join(struct.pack("<I", len(d)) for d, size in zip(data, sizes) if size is None)
        bodies.append(head + b"".join(data))
    at = 4 + 4 * (len(bodies) + 1) + len(config)
    offsets = [at]
    for body in bodies:
        offsets.append(offsets[-1] + len(body))
    return struct.pack(f"<I{len(offsets)}I", len(bodies), *offsets) + config + b"".join(bodies)


def mds_folder(folder, shards, columns, hashes=("sha1",), compression=None, keep_raw=False):
    """Writes shards, each a list of samples, and index.json."""
    folder.mkdir(parents=True, exist_ok=True)
    names, entries = sorted(columns), []
    for number, samples in enumerate(shards):
        raw, base = mds_shard(samples, columns), f"shard.{number:05}.mds"
        zipped = zstd(raw) if compression else None
        if not compression or keep_raw:
            (folder / base).write_bytes(raw)
        if compression:
            (folder / f"{base}.{compression.split(':')[0]}").write_bytes(zipped)

        def described(data, name):
            return {"basename": name, "bytes": len(data),
                    "hashes": {h: hashlib.new(h, data).hexdigest() for h in hashes}}
        entries.append({
            "column_encodings": [columns[n] for n in names], "column_names": names,
            "column_sizes": [mds_size(columns[n]) for n in names], "compression": compression,
            "format": "mds", "hashes": list(hashes), "raw_data": described(raw, base),
            "samples": len(samples), "size_limit": 67108864, "version": 2,
            "zip_data": described(zipped, f"{base}.{compression.split(':')[0]}") if compression else None})
    (folder / "index.json").write_text(json.dumps({"shards": entries, "version": 2}))
    return folder


# Hugging Face: what save_to_disk writes beside its Arrow streams.

def hf_state(folder, names):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "state.json").write_text(json.dumps({
        "_data_files": [{"filename": name} for name in names], "_fingerprint": "d0c5b3a1f2e49687",
        "_format_columns": None, "_format_kwargs": {}, "_format_type": None,
        "_output_all_columns": False, "_split": "train"}, indent=2))
    (folder / "dataset_info.json").write_text(json.dumps({
        "citation": "", "description": "", "features": {"input_ids": {
            "feature": {"dtype": "int32", "_type": "Value"}, "_type": "Sequence"}},
        "homepage": "", "license": ""}, indent=2))
    return folder


# Parquet with checksums: pages of PLAIN values, with Thrift's compact protocol.

BOOL_FALSE, I32, I64, BINARY, LIST, STRUCT = 2, 5, 6, 8, 9, 12


def varint(n) -> bytes:
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def zigzag(n) -> bytes:
    return varint(n << 1 if n >= 0 else (-n << 1) - 1)


def thrift_value(kind, value) -> bytes:
    if kind in (I32, I64):
        return zigzag(value)
    if kind == BINARY:
        data = value.encode()
        return varint(len(data)) + data
    if kind == STRUCT:
        return thrift(value)
    if kind == BOOL_FALSE:
        return b""
    of, items = value  # a list
    head = bytes([len(items) << 4 | of]) if len(items) < 15 else bytes([0xF0 | of]) + varint(len(items))
    return head + b"".join(thrift_value(of, item) for item in items)


def thrift(fields) -> bytes:
    """A struct of (id, kind, value), in the order of ids; value None leaves a field out."""
    out, last = b"", 0
    for number, kind, value in fields:
        if value is not None:
            out += bytes([number - last << 4 | kind]) + thrift_value(kind, value)
            last = number
    return out + b"\0"


def parquet_page(values: bytes, count, crc=True, levels=b"") -> bytes:
    """A data page of version 1, uncompressed: PLAIN values after their levels."""
    body = levels + values
    check = zlib.crc32(body)
    header = thrift([(1, I32, 0), (2, I32, len(body)), (3, I32, len(body)),
                     (4, I32, (check - 2**32 if check >= 2**31 else check) if crc else None),
                     (5, STRUCT, [(1, I32, count), (2, I32, 0), (3, I32, 3), (4, I32, 3)])])
    return header + body


def list_levels(lengths, is_optional=False) -> bytes:
    """Levels of a page of lists, none of which is empty; optional: lists and values could be null."""
    repetition = b"".join(varint(1 << 1) + b"\0" + (varint(n - 1 << 1) + b"\1" if n > 1 else b"") for n in lengths)
    definition = varint(sum(lengths) << 1) + (b"\3" if is_optional else b"\1")
    return b"".join(struct.pack("<I", len(part)) + part for part in (repetition, definition))


def parquet_footer(column, groups, is_list, is_optional=False) -> bytes:
    """groups: (offset of the first page, bytes, values, rows) of each row group; values of 32 bits."""
    kind, repetition = 1, int(is_optional)
    root = [(4, BINARY, "schema"), (5, I32, 1)]
    if is_list:
        schema = [root, [(3, I32, repetition), (4, BINARY, column), (5, I32, 1), (6, I32, 3)],
                  [(3, I32, 2), (4, BINARY, "list"), (5, I32, 1)],
                  [(1, I32, kind), (3, I32, repetition), (4, BINARY, "element")]]
        path = [column, "list", "element"]
    else:
        schema, path = [root, [(1, I32, kind), (3, I32, 0), (4, BINARY, column)]], [column]
    entries = []
    for at, size, values, rows in groups:
        meta = [(1, I32, kind), (2, LIST, (I32, [0, 3])), (3, LIST, (BINARY, path)), (4, I32, 0),
                (5, I64, values), (6, I64, size), (7, I64, size), (9, I64, at)]
        entries.append([(1, LIST, (STRUCT, [[(2, I64, at), (3, STRUCT, meta)]])), (2, I64, size),
                        (3, I64, rows)])
    footer = thrift([(1, I32, 1), (2, LIST, (STRUCT, schema)), (3, I64, sum(g[3] for g in groups)),
                     (4, LIST, (STRUCT, entries)), (6, BINARY, "iron's tests")])
    return footer + struct.pack("<I", len(footer)) + b"PAR1"


def parquet(tokens, lengths=None, crc=True, page=100, pages_in_group=2, is_optional=False) -> bytes:
    """A Parquet file of one column: integers, or with `lengths` lists of them, none empty."""
    out, groups = b"PAR1", []
    rows = list(lengths) if lengths else [1] * len(tokens)
    at = row = 0
    while row < len(rows):
        first, values, count = len(out), 0, 0
        for _ in range(pages_in_group):
            part = rows[row:row + page]
            total = sum(part)
            out += parquet_page(pack(tokens[at:at + total], "u32"), total, crc,
                                list_levels(part, is_optional) if lengths else b"")
            at, row, values, count = at + total, row + len(part), values + total, count + len(part)
            if row == len(rows):
                break
        groups.append((first, len(out) - first, values, count))
    return out + parquet_footer("input_ids", groups, bool(lengths), is_optional)


# Arrow streams: the messages of one, to repeat them.

def arrow_messages(data):
    """The encapsulated messages of a stream: metadata and body, without the end marker."""
    at, out = 0, []
    while at < len(data):
        marker, size = struct.unpack_from("<II", data, at)
        assert marker == 0xFFFFFFFF
        if size == 0:
            break
        body = arrow_body_length(data, at + 8)
        out.append(data[at:at + 8 + size + body])
        at += 8 + size + body
    return out


def arrow_body_length(data, at):
    """bodyLength, the field 3 of the FlatBuffers table Message at `at`."""
    table = at + struct.unpack_from("<I", data, at)[0]
    vtable = table - struct.unpack_from("<i", data, table)[0]
    size = struct.unpack_from("<H", data, vtable)[0]
    field = struct.unpack_from("<H", data, vtable + 10)[0] if size > 10 else 0
    return struct.unpack_from("<q", data, table + field)[0] if field else 0


def u32_file(path, values):
    """A raw file for write.mjs."""
    data = array.array("I", values)
    if sys.byteorder == "big":
        data.byteswap()
    path.write_bytes(data.tobytes())
    return str(path)


def width(dtype) -> int:
    return struct.calcsize(DTYPES[dtype])
