# SPDX-License-Identifier: MIT
"""Token files, in every format that `iron sum` reads: sum_file, stat, diff and check."""

from __future__ import annotations

import contextlib
import ctypes
import os
from array import array
from collections.abc import Iterator, Sequence
from ctypes import byref
from dataclasses import dataclass
from typing import Any, Optional, Union

from ._library import (BAG_CUT_TEXT, NO_POSITION, CheckFile, CheckOptions, DiffOptions, DiffReport,
                       DiffSide, StatOptions, StatReport, call, library, sized)
from ._source import OnProgress, Path, Paths, Source, Watch, cut_of, known, paths_of
from .digest import DigestResult
from .manifest import Manifest, manifest_of, scanned

DIFF_KINDS = ("equal", "changed", "truncated", "extended", "inserted", "deleted", "reordered",
              "repeated", "moved", "shuffled")
CHECK_STATES = ("ok", "failed", "missing", "error", "unchecked", "partly")


def sum_file(*paths: Paths, dtype: Any = None, format: Optional[str] = None, vocab: int = 50257,
             threads: int = 0, column: Optional[str] = None, bag: bool = False,
             sample: Optional[int] = None, eos: Optional[int] = None, recursive: bool = False,
             include: Union[str, Sequence[str], None] = None,
             exclude: Union[str, Sequence[str], None] = None,
             progress: Optional[OnProgress] = None) -> DigestResult:
    """The DigestResult of one stream: the tokens of all files in the given order.

    A path may also be a list of paths.  Raw files do not record their token type and need dtype, for
    example "u16" or numpy.uint16.  A directory stands for its token files in natural order, with
    `recursive` also for those in its folders; `include` and `exclude` are globs that choose among
    them.  A warning tells which files of a directory are skipped because they are not tokens, and
    which raw files do not look like dtype.  `column` is that of Arrow, Parquet and MDS files; None:
    input_ids, tokens, token_ids or ids, or the only column of integers.

    With bag, sample or eos the result also has the stream's bag (see Bag): of samples of `sample`
    tokens, of documents that end with the token `eos`, or, with bag=True alone, of the rows or
    documents that the files' format has.

    `progress` is called now and then with the tokens done and the total, or None if that is unknown.
    An exception in it, or Ctrl-C, ends the call.

    >>> sum_file("missing.bin", dtype="u16")
    Traceback (most recent call last):
    FileNotFoundError: [Errno 2] cannot open missing.bin: No such file or directory
    """
    with Source(paths_of(paths), dtype, format, column, recursive, include, exclude) as source:
        return scanned(source, vocab, threads, 0, None, cut_of(bag, sample, eos), progress).result


@dataclass(frozen=True)
class Stat:
    """Statistics of a stream.  Lengths of documents count the eos; the median is the length that at
    least half of the documents do not exceed, p95 that of 95 in 100."""

    tokens: int
    vocab: int
    min: Optional[int]  #: None if there are no tokens
    max: Optional[int]
    zeros: int
    out_of_vocab: int
    first_out: tuple[tuple[int, int], ...]  #: (position, value) of the first eight of them
    run_length: int  #: of the longest run of one value, the first of its length
    run_position: int
    run_value: int
    document_cut: Optional[str]  #: "eos=50256", "rows" or "documents"; None: no documents are known
    documents: Optional[int]
    document_min: Optional[int]
    document_max: Optional[int]
    document_mean: Optional[float]
    document_median: Optional[int]
    document_p95: Optional[int]
    empty_documents: Optional[int]  #: only an eos; rows and documents: no tokens
    is_last_open: bool  #: the stream does not end with the eos
    histogram: Optional[Sequence[int]]  #: how often each id occurs; these only with histogram=True
    used_ids: Optional[int]
    unused_ids: Optional[int]
    entropy_bits: Optional[float]  #: per token
    entropy_limit_bits: Optional[float]  #: if all ids were equally frequent


def stat(*paths: Paths, vocab: int = 50257, eos: Optional[int] = None, histogram: bool = False,
         dtype: Any = None, format: Optional[str] = None, column: Optional[str] = None,
         recursive: bool = False, include: Union[str, Sequence[str], None] = None,
         exclude: Union[str, Sequence[str], None] = None, threads: int = 0,
         progress: Optional[OnProgress] = None) -> Stat:
    """Statistics of one stream, like `iron stat`.  The files are those of sum_file.

    Documents end with `eos`; without it they are the rows or documents of the files, if all have
    them.

    >>> from pathlib import Path
    >>> _ = Path("tokens.bin").write_bytes(bytes([7, 7, 7, 0, 9, 0]))
    >>> found = stat("tokens.bin", dtype="u8", vocab=10, eos=0, histogram=True)
    >>> found.documents, found.document_mean, found.run_length, found.histogram[7]
    (2, 3.0, 3, 3)
    """
    with Source(paths_of(paths), dtype, format, column, recursive, include, exclude) as source:
        options, watch, own = StatOptions(), Watch(progress), ctypes.c_void_p()
        library().iron_stat_options_init_sized(byref(options), ctypes.sizeof(options))
        options.vocab, options.threads, options.progress = vocab, threads, watch.callback
        options.eos = NO_POSITION if eos is None else eos
        options.wants_histogram = bool(histogram)
        try:
            watch.call("iron_stat_source", source.own, byref(options), byref(own))
            return _stat_of(own, vocab)
        finally:
            library().iron_stat_destroy(own)


def _stat_of(own: ctypes.c_void_p, vocab: int) -> Stat:
    r, ids, text = sized(StatReport), ctypes.c_uint64(), ctypes.create_string_buffer(BAG_CUT_TEXT)
    call("iron_stat_describe", own, byref(r))
    library().iron_bag_cut_format(byref(r.document_cut), text)
    counts = library().iron_stat_histogram(own, byref(ids))
    histogram = array("Q", ctypes.string_at(counts, 8 * ids.value)) if counts else None
    documents: list[Any] = [text.value.decode(), r.documents, r.document_min, r.document_max,
                            r.document_mean, r.document_median, r.document_p95, r.empty_documents]
    counted: list[Any] = [histogram, r.used_ids, r.unused_ids, r.entropy_bits, r.entropy_limit_bits]
    if r.document_cut.kind == 0:
        documents = [None] * len(documents)
    if histogram is None:
        counted = [None] * len(counted)
    values: list[Any] = [
        r.tokens, vocab, r.min if r.tokens else None, r.max if r.tokens else None, r.zeros,
        r.out_of_vocab, tuple((p.position, p.value) for p in r.places[:r.place_count]),
        r.run_length, r.run_position, r.run_value, *documents, bool(r.is_last_open), *counted]
    return Stat(*values)


@dataclass(frozen=True)
class Difference:
    """What happened to the first stream, A, to make the second, B; true if they differ, and str() is
    the finding in a sentence.  docs/diff.md explains the kinds."""

    #: equal changed inserted deleted repeated moved reordered truncated extended shuffled
    kind: str
    tokens: tuple[int, int]  #: of A and B
    first: Optional[int]  #: the first position that differs; None: none does
    values: tuple[Optional[int], Optional[int]]  #: the tokens there, if they are known
    position: Optional[int]  #: where the edit begins in B; deleted, truncated: in A
    length: Optional[int]
    source: Optional[int]  #: where A has what was repeated or moved
    edits: Optional[int]  #: how many were found; None: unknown
    has_more_edits: bool
    is_verified: bool  #: seen in the tokens or chunks; else it is what the manifests suggest
    text: str

    @property
    def equal(self) -> bool:
        """Both streams have the same tokens in the same order."""
        return self.kind == "equal"

    def __bool__(self) -> bool:
        return not self.equal

    def __str__(self) -> str:
        return self.text


def diff(a: Union[Manifest, Paths], b: Union[Manifest, Paths], *, sample: Optional[int] = None,
         eos: Optional[int] = None, dtype: Any = None, format: Optional[str] = None,
         column: Optional[str] = None, recursive: bool = False,
         include: Union[str, Sequence[str], None] = None,
         exclude: Union[str, Sequence[str], None] = None, chunk_tokens: int = 0, threads: int = 0,
         progress: Optional[OnProgress] = None) -> Difference:
    """Where two streams differ, and what was done, like `iron diff`.

    Each side is a path or a list of paths, as for sum_file, or a Manifest or the path of one; then
    its files are read too if they still exist.  With `sample` or `eos` it is also found out whether
    samples were shuffled.

    >>> from pathlib import Path
    >>> _ = Path("a.bin").write_bytes(bytes(range(100)))
    >>> _ = Path("b.bin").write_bytes(bytes(range(90)))
    >>> found = diff("a.bin", "b.bin", dtype="u8")
    >>> found.kind, found.position, found.length, found.source
    ('truncated', 90, 10, None)
    >>> diff("a.bin", "a.bin", dtype="u8").equal
    True
    """
    watch, own, report = Watch(progress), ctypes.c_void_p(), sized(DiffReport)
    how = (dtype, format, column, recursive, include, exclude)
    options = sized(DiffOptions, threads=threads, chunk_tokens=chunk_tokens,
                    bag=cut_of(False, sample, eos), progress=watch.callback)
    try:
        with _side(a, how) as first, _side(b, how) as second:
            watch.call("iron_diff_run", byref(first), byref(second), byref(options), byref(own))
        call("iron_diff_describe", own, byref(report))
    finally:
        library().iron_diff_destroy(own)
    values = [v if has else None for v, has in zip(report.value, report.has_value)]
    differs = report.kind != 0
    return Difference(
        DIFF_KINDS[report.kind], (report.tokens[0], report.tokens[1]), known(report.first),
        (values[0], values[1]), known(report.position) if differs else None,
        report.length if differs else None, known(report.source) if differs else None,
        known(report.edits) if differs else 0, bool(report.has_more_edits),
        bool(report.is_verified), report.text.decode(errors="replace"))


@contextlib.contextmanager
def _side(what: Any, how: tuple[Any, ...]) -> Iterator[DiffSide]:
    manifest = what if isinstance(what, Manifest) else None
    paths = [] if manifest else paths_of([what])
    if manifest is None and len(paths) == 1 and library().iron_manifest_is_one(paths[0]):
        manifest = Manifest.read(paths[0])
    name = os.fsencode(manifest._path or "a manifest") if manifest else b", ".join(paths)
    source = manifest._open_files() if manifest else Source(paths, *how)
    with source or contextlib.nullcontext():
        yield DiffSide(manifest._own if manifest else None, source.own if source else None, name)


@dataclass(frozen=True)
class FileCheck:
    """What became of one file of a manifest."""

    path: str  #: as the manifest has it
    #: ok failed missing error; of manifests of version 1 also unchecked partly
    state: str
    reason: str  #: a sentence, or ""
    expected: str  #: the number of tokens, or a seal or bag; or ""
    found: str


@dataclass(frozen=True)
class Check:
    """What a check found: true if every file is what it was; iterates over the files."""

    files: tuple[FileCheck, ...]

    @property
    def bad(self) -> tuple[FileCheck, ...]:
        """The files that are not ok."""
        return tuple(file for file in self.files if file.state != "ok")

    def __bool__(self) -> bool:
        return not self.bad

    def __iter__(self) -> Iterator[FileCheck]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)


def check(manifest: Union[Manifest, Path], *, threads: int = 0,
          progress: Optional[OnProgress] = None) -> Check:
    """Whether the files of a manifest are still what they were, like `iron check`.

    They are searched for under their names, then beside the manifest.

    >>> from pathlib import Path
    >>> _ = Path("tokens.bin").write_bytes(bytes(8))
    >>> manifest = Manifest.scan("tokens.bin", dtype="u8")
    >>> bool(check(manifest))
    True
    >>> Path("tokens.bin").unlink()
    >>> [file.state for file in check(manifest).bad]
    ['missing']
    """
    watch, own = Watch(progress), ctypes.c_void_p()
    options = sized(CheckOptions, threads=threads, backend=b"cpu", progress=watch.callback)
    kept = manifest_of(manifest)
    try:
        watch.call("iron_check_run", kept._own, byref(options), byref(own))
        return Check(tuple(_file_check(own, k)
                           for k in range(library().iron_check_file_count(own))))
    finally:
        library().iron_check_destroy(own)


def _file_check(own: ctypes.c_void_p, index: int) -> FileCheck:
    file = sized(CheckFile)
    call("iron_check_file_at", own, index, byref(file))
    return FileCheck(os.fsdecode(file.path), CHECK_STATES[file.state],
                     file.reason.decode(errors="replace"), file.expected.decode(),
                     file.found.decode())
