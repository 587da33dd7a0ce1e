# SPDX-License-Identifier: MIT
"""Manifest: what one pass over a stream found, as an object and as a file."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from ctypes import byref
from dataclasses import dataclass
from typing import Any, NoReturn, Optional, Union

from ._library import (BagCut, BagResult, IronError, ManifestFile, ManifestInfo, Result,
                       ScanOptions, call, library, sized)
from ._source import OnProgress, Path, Paths, Source, Watch, cut_of, dtype_name, paths_of
from .digest import DigestResult, _result_of

CHUNK_TOKENS = 1 << 20


@dataclass(frozen=True)
class StreamFile:
    """A file of a manifest's stream."""

    path: str  #: as it was given
    dtype: str  #: "u16"
    format: str  #: "npy"
    first: int  #: the position of its first token in the stream
    tokens: int
    column: Optional[str]  #: of a table
    compression: Optional[str]  #: "zstd"


class Manifest:
    """The digest of a stream, its files, and marks that tell later what has changed and where.

    A manifest is made by scan(), read() or merge(), and written by write(); files are those of
    `iron sum --manifest`.  Manifests do not change.  They are equal if they are of the same tokens,
    in the same files and chunks.

    >>> from pathlib import Path
    >>> _ = Path("tokens.bin").write_bytes(bytes(range(8)))
    >>> manifest = Manifest.scan("tokens.bin", dtype="u8")
    >>> manifest.write("tokens.manifest")
    >>> Manifest.read("tokens.manifest") == manifest
    True
    >>> manifest.tokens, manifest.files[0].dtype
    (8, 'u8')
    """

    __module__ = "iron_tokens"

    def __init__(self, own: ctypes.c_void_p, path: Optional[str] = None) -> None:
        """For the class methods: takes the library's manifest."""
        self._own, self._path = own, path
        info = sized(ManifestInfo)
        call("iron_manifest_describe", own, byref(info))
        self.first: int = info.first  #: position of the first token that was scanned
        self.tokens: int = info.tokens  #: how many were scanned
        self.stream_tokens: int = info.stream_tokens
        self.chunk_tokens: int = info.chunk_tokens  #: 0: without chunks
        self.vocab: int = info.vocab
        #: (1, 8): the first of eight parts; None: the whole stream
        self.part: Optional[tuple[int, int]] = (info.part, info.parts) if info.parts else None
        self.files: tuple[StreamFile, ...] = tuple(map(self._file_at, range(info.file_count)))
        self.result: DigestResult = self._result()

    def _file_at(self, index: int) -> StreamFile:
        file = sized(ManifestFile)
        call("iron_manifest_file_at", self._own, index, byref(file))
        return StreamFile(os.fsdecode(file.path), dtype_name(file.dtype), file.format.decode(),
                          file.first, file.tokens, file.column.decode() if file.column else None,
                          file.compression.decode() if file.compression else None)

    def _result(self) -> DigestResult:
        raw, bag = sized(Result), sized(BagResult)
        call("iron_manifest_digest", self._own, byref(raw))
        call("iron_manifest_bag", self._own, byref(bag))
        return _result_of(raw, bag=bag.text.decode() or None,
                          samples=bag.bag.samples if bag.cut.kind else None,
                          bag_cut=bag.cut_text.decode() or None)

    @classmethod
    def scan(cls, *paths: Paths, dtype: Any = None, format: Optional[str] = None,
             column: Optional[str] = None, recursive: bool = False,
             include: Union[str, Sequence[str], None] = None,
             exclude: Union[str, Sequence[str], None] = None, vocab: int = 50257, threads: int = 0,
             chunk_tokens: int = CHUNK_TOKENS, part: Optional[tuple[int, int]] = None,
             bag: bool = False, sample: Optional[int] = None, eos: Optional[int] = None,
             progress: Optional[OnProgress] = None) -> Manifest:
        """Reads the files once; see sum_file for what they may be.

        chunk_tokens  a seal for each piece of so many tokens, and one for each file; 0: neither
        part          (i, n): reads only part i of n (from 1), for merge()
        """
        with Source(paths_of(paths), dtype, format, column, recursive, include, exclude,
                    seekable=part is not None) as source:
            return scanned(source, vocab, threads, chunk_tokens, part, cut_of(bag, sample, eos),
                           progress)

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """Reads a manifest's file."""
        own = ctypes.c_void_p()
        call("iron_manifest_read", os.fsencode(path), byref(own))
        return cls(own, os.fsdecode(path))

    @classmethod
    def merge(cls, parts: Sequence[Manifest]) -> Manifest:
        """Joins the parts of one stream, in any order."""
        own, all_parts = ctypes.c_void_p(), (ctypes.c_void_p * len(parts))(*(p._own for p in parts))
        call("iron_manifest_merge", all_parts, len(parts), byref(own))
        return cls(own)

    def write(self, path: Path) -> None:
        """Writes the file, which is replaced completely or not at all."""
        call("iron_manifest_write", self._own, os.fsencode(path))

    def _open_files(self) -> Optional[Source]:
        """The stream's files if all exist and have as many tokens: under their names, or beside the
        manifest, where names may lack folders that all of them begin with."""
        names = [file.path for file in self.files]
        if not names or self.part:
            return None
        places = [names]
        if self._path is not None:
            folder, common = os.path.dirname(self._path), os.path.commonprefix(names)
            cuts = [0] + [at + 1 for at, character in enumerate(common) if character == "/"]
            places += [[os.path.join(folder, name[cut:]) for name in names] for cut in cuts]
        formats = {file.format for file in self.files}
        for place in places:
            if not all(map(os.path.isfile, place)):
                continue
            try:
                source = Source([os.fsencode(name) for name in place], self.files[0].dtype,
                                formats.pop() if len(formats) == 1 else None, self.files[0].column)
            except (OSError, ValueError):  # not such a file any more
                continue
            if source.tokens == self.tokens:
                return source
            source.close()
        return None

    def _identity(self) -> tuple[Any, ...]:
        return (self.result, self.result.bag, self.first, self.stream_tokens, self.chunk_tokens,
                self.part, self.files)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Manifest):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        part = f"part {self.part[0]} of {self.part[1]}, " if self.part else ""
        return (f"<iron_tokens.Manifest {self.result.seal} of {self.tokens} tokens, {part}"
                f"{len(self.files)} file{'' if len(self.files) == 1 else 's'}>")

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Manifest is not copied or pickled; write() it, and read() it there")

    def __del__(self) -> None:
        if getattr(self, "_own", None) is not None:
            library().iron_manifest_destroy(self._own)


def scanned(source: Source, vocab: int, threads: int, chunk_tokens: int,
            part: Optional[tuple[int, int]], cut: BagCut,
            progress: Optional[OnProgress]) -> Manifest:
    options, watch = ScanOptions(), Watch(progress)
    library().iron_scan_options_init_sized(byref(options), ctypes.sizeof(options))
    options.vocab, options.threads, options.chunk_tokens = vocab, threads, chunk_tokens
    options.backend, options.bag, options.progress = b"cpu", cut, watch.callback
    if part is not None:
        if source.tokens is None:
            raise IronError("a stream of unknown length has no parts; give files, not a pipe")
        options.part, options.parts = part
        first, count = ctypes.c_uint64(), ctypes.c_uint64()
        call("iron_part_range", source.tokens, *part, byref(first), byref(count))
        options.first, options.count = first.value, count.value
    own = ctypes.c_void_p()
    try:
        watch.call("iron_scan", source.own, byref(options), byref(own))
    except BaseException:
        library().iron_manifest_destroy(own)
        raise
    return Manifest(own)


def manifest_of(what: Union[Manifest, Path]) -> Manifest:
    """A manifest, or the one in a file."""
    return what if isinstance(what, Manifest) else Manifest.read(what)
