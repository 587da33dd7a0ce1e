# SPDX-License-Identifier: MIT
"""Parts of one stream, computed anywhere and merged in any order.

Job arrays, Dask, Ray, Spark and MPI all give results as pairs of a part's number, from 0, and what
a worker computed.  merge_indexed joins them, and refuses a part that is missing or there twice.  A
part is one of

  - what sum_part returns for files, the text that `iron sum --part` writes;
  - a Digest, or its state_dict(), of tokens at their positions in the stream;
  - a Bag, or its text, of samples, which need no positions.

Where workers have partitions of unknown length, positions() says where each begins in the stream.
docs/scale.md has recipes.
"""

from __future__ import annotations

import ctypes
import operator
import os
import tempfile
import warnings
from collections.abc import Iterable
from ctypes import byref
from dataclasses import replace
from typing import Any, Optional

from ._bag import Bag
from ._library import (NO_POSITION, WARNING_SKIPPED, BagResult, IronError, Result, ScanOptions,
                       SourceOptions, Warn, call, library)
from .digest import Digest, DigestResult, _result_of
from .files import _cut, _dtype_number

CHUNK_TOKENS = 1 << 20


def sum_part(index: int, parts: int, *paths: Any, dtype: Any = None, format: Optional[str] = None,
             vocab: int = 50257, threads: int = 0, chunk_tokens: int = CHUNK_TOKENS,
             column: Optional[str] = None, bag: bool = False, sample: Optional[int] = None,
             eos: Optional[int] = None) -> tuple[int, str]:
    """(index, text): part `index` of `parts`, from 0, of the stream that sum_file would read.

    All parts need the same options and see the same files.  The text is what `iron sum --part`
    writes, with index + 1, so that `iron merge` can join parts of both.  `chunk_tokens` is the size
    of the manifest's chunks.
    """
    index = _index(index, parts)
    options, manifest = ScanOptions(), ctypes.c_void_p()
    library().iron_scan_options_init_sized(byref(options), ctypes.sizeof(options))
    options.vocab, options.threads, options.backend = vocab, threads, b"cpu"
    options.chunk_tokens, options.part, options.parts = chunk_tokens, index + 1, parts
    options.bag = _cut(bag, sample, eos) or options.bag
    source, found, _kept = _open(paths, dtype, format, column)
    try:
        first, count = ctypes.c_uint64(), ctypes.c_uint64()
        tokens = library().iron_source_tokens(source)
        if tokens == NO_POSITION:
            raise IronError("a stream of unknown length has no parts; give files, not a pipe")
        call("iron_part_range", tokens, index + 1, parts, byref(first), byref(count))
        options.first, options.count = first.value, count.value
        call("iron_scan", source, byref(options), byref(manifest))
    finally:
        library().iron_source_close(source)
    for text in found:
        warnings.warn(text, stacklevel=2)
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "part")
            call("iron_manifest_write", manifest, os.fsencode(path))
            with open(path, encoding="utf-8", errors="surrogateescape") as written:
                return index, written.read()
    finally:
        library().iron_manifest_destroy(manifest)


def positions(counts: Iterable[tuple[int, int]], parts: int) -> list[int]:
    """Where each part begins in the stream, from (index, number of tokens) in any order."""
    starts, total = [], 0
    for count in _in_order(counts, parts):
        starts.append(total)
        total += operator.index(count)
    return starts


def merge_indexed(results: Iterable[tuple[int, Any]], parts: int,
                  manifest: Optional[str] = None) -> Any:
    """The whole of all parts, from (index, part) in any order: a DigestResult, or a Bag.

    A part that is missing, there twice or unlike the others raises IronError, and so do digests
    whose positions overlap or leave a gap.  `manifest` is a path for the manifest of the whole
    stream, if the parts are those of sum_part.
    """
    found = _in_order(results, parts)
    kinds = {_kind(part) for part in found}
    if len(kinds) > 1:
        raise IronError(f"the parts are of different kinds: {', '.join(sorted(kinds))}")
    kind = kinds.pop()
    if manifest is not None and kind != "part of sum_part":
        raise IronError(f"a {kind} has no manifest; use sum_part")
    if kind == "part of sum_part":
        return _merge_texts(found, manifest)
    if kind == "bag":
        bags = Bag()
        for part in found:
            bags.merge(part if isinstance(part, Bag) else Bag(part))
        return bags
    with _digest(found[0]).copy() as whole:
        for part in found[1:]:
            whole.merge(_digest(part))
        return whole.result()


def _index(index: int, parts: int) -> int:
    if operator.index(parts) < 1:
        raise IronError(f"{parts} parts; there must be at least one")
    if operator.index(index) not in range(parts):
        raise IronError(f"part {index} of {parts}; parts are 0 to {parts - 1}")
    return operator.index(index)


def _in_order(results: Iterable[tuple[int, Any]], parts: int) -> list[Any]:
    found: dict[int, Any] = {}
    for index, part in results:
        if _index(index, parts) in found:
            raise IronError(f"part {index} is there twice; pass each part once")
        found[operator.index(index)] = part
    missing = [k for k in range(_index(0, parts), parts) if k not in found]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise IronError(f"part {missing[0]}{more} of 0 to {parts - 1} missing; compute it again")
    return [found[k] for k in range(parts)]


def _kind(part: Any) -> str:
    if isinstance(part, (Digest, dict)):
        return "digest"
    if isinstance(part, str) and part.lstrip().startswith("{"):
        return "part of sum_part"
    if isinstance(part, (Bag, str)):
        return "bag"
    raise TypeError(f"{type(part).__name__} is not a part: not a Digest, a state_dict, a Bag, or a "
                    "text of sum_part")


def _digest(part: Any) -> Digest:
    return part if isinstance(part, Digest) else Digest.from_state_dict(part)


def _open(paths: Any, dtype: Any, format: Optional[str],
          column: Optional[str]) -> tuple[ctypes.c_void_p, list[str], Any]:
    """The open source of the files, a list of what there is to warn of, and what must be kept as
    long as the source: the library calls back."""
    found: list[str] = []

    def warn(_: Any, warning: Any) -> None:
        name, text = os.fsdecode(warning.contents.file), warning.contents.text.decode()
        found.append(f"{name} is skipped: {text}, not tokens"
                     if warning.contents.kind == WARNING_SKIPPED else f"{name}: {text}")

    names = (ctypes.c_char_p * len(paths))(*(os.fsencode(path) for path in paths))
    options = SourceOptions(ctypes.sizeof(SourceOptions), _dtype_number(dtype),
                            format.encode() if format is not None else None, names, len(paths),
                            warn=Warn(warn), wants_seekable=True,
                            column=column.encode() if column is not None else None)
    source = ctypes.c_void_p()
    call("iron_source_open", byref(options), byref(source))
    return source, found, options


def _merge_texts(texts: list[str], manifest: Optional[str]) -> DigestResult:
    made, whole = (ctypes.c_void_p * len(texts))(), ctypes.c_void_p()
    raw, bag = Result(struct_size=ctypes.sizeof(Result)), BagResult()
    bag.struct_size = ctypes.sizeof(bag)
    try:
        with tempfile.TemporaryDirectory() as folder:
            for k, text in enumerate(texts):
                path, part = os.path.join(folder, f"part-{k}"), ctypes.c_void_p()
                with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
                    file.write(text)
                call("iron_manifest_read", os.fsencode(path), byref(part))
                made[k] = part
                os.unlink(path)
        call("iron_manifest_merge", made, len(texts), byref(whole))
        if manifest is not None:
            call("iron_manifest_write", whole, os.fsencode(manifest))
        call("iron_manifest_digest", whole, byref(raw))
        call("iron_manifest_bag", whole, byref(bag))
    finally:
        for own in (*made, whole):
            library().iron_manifest_destroy(own)
    if not bag.cut.kind:
        return _result_of(raw)
    return replace(_result_of(raw), bag=bag.text.decode(), samples=bag.bag.samples,
                   bag_cut=bag.cut_text.decode())
