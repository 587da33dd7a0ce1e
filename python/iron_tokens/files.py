# SPDX-License-Identifier: MIT
"""Digests of token files, in every format that `iron sum` reads."""

import ctypes
import operator
import os
import warnings
from ctypes import byref
from dataclasses import replace

from ._library import (CUT_EOS, CUT_FORMAT, CUT_SAMPLE, WARNING_SKIPPED, BagCut, BagResult, IronError,
                       Result, ScanOptions, SourceOptions, Warn, call, library)
from .digest import Digest, _result_of

BUFFER_TOKENS = 1 << 20


def _dtype_number(name):
    number = ctypes.c_int(0)
    if name is not None:
        call("iron_dtype_parse", name.encode(), byref(number))
    return number.value


def _cut(bag, sample, eos):
    """The cut of the bag that is wanted, or None."""
    if sample is not None and eos is not None:
        raise IronError("sample and eos both say what a sample is; give one of them")
    if sample is not None:
        return BagCut(CUT_SAMPLE, operator.index(sample))
    if eos is not None:
        return BagCut(CUT_EOS, operator.index(eos))
    return BagCut(CUT_FORMAT, 0) if bag else None


def sum_file(*paths, dtype=None, format=None, vocab=50257, threads=0, column=None, bag=False,
             sample=None, eos=None):
    """The DigestResult of one stream: the tokens of all files in the given order.

    Raw files do not record their token type and need dtype, for example "u16".  A directory stands
    for its token files in natural order.  A warning tells which files of a directory are skipped
    because they are not tokens, and which raw files do not look like dtype.  `column` is that of
    Arrow, Parquet and MDS files; None: input_ids, tokens, token_ids or ids, or the only column of
    integers.

    With bag, sample or eos the result also has the stream's bag (see Bag): of samples of `sample`
    tokens, of documents that end with the token `eos`, or, with bag=True alone, of the rows or
    documents that the files' format has.
    """
    cut = _cut(bag, sample, eos)
    found = []

    def warn(_, warning):
        name, text = os.fsdecode(warning.contents.file), warning.contents.text.decode()
        found.append(f"{name} is skipped: {text}, not tokens"
                     if warning.contents.kind == WARNING_SKIPPED else f"{name}: {text}")

    names = (ctypes.c_char_p * len(paths))(*(os.fsencode(path) for path in paths))
    options = SourceOptions(ctypes.sizeof(SourceOptions), _dtype_number(dtype),
                            format.encode() if format is not None else None, names, len(paths),
                            warn=Warn(warn),
                            column=column.encode() if column is not None else None)
    source = ctypes.c_void_p()
    call("iron_source_open", byref(options), byref(source))
    try:
        if cut is None:
            result = _sum_source(source, vocab, threads)
        else:
            result = _scan_source(source, vocab, threads, cut)
    finally:
        library().iron_source_close(source)
    for text in found:
        warnings.warn(text, stacklevel=2)
    return result


def _sum_source(source, vocab, threads):
    number = library().iron_source_dtype(source)
    width = library().iron_dtype_bytes(number)
    buffer = (ctypes.c_uint64 * (BUFFER_TOKENS * width // 8))()
    count, position = ctypes.c_size_t(1), 0
    with Digest(vocab, threads) as digest:
        while count.value:
            call("iron_source_read", source, buffer, BUFFER_TOKENS, byref(count))
            call("iron_digest_update", digest._open(), position, number, buffer, count.value)
            position += count.value
        return digest.result()


def _scan_source(source, vocab, threads, cut):
    options, manifest = ScanOptions(), ctypes.c_void_p()
    raw, bag = Result(struct_size=ctypes.sizeof(Result)), BagResult()
    bag.struct_size = ctypes.sizeof(bag)
    library().iron_scan_options_init_sized(byref(options), ctypes.sizeof(options))
    options.vocab, options.threads, options.bag = vocab, threads, cut
    options.backend = b"cpu"
    call("iron_scan", source, byref(options), byref(manifest))
    try:
        call("iron_manifest_digest", manifest, byref(raw))
        call("iron_manifest_bag", manifest, byref(bag))
    finally:
        library().iron_manifest_destroy(manifest)
    return replace(_result_of(raw), bag=bag.text.decode(), samples=bag.bag.samples,
                   bag_cut=bag.cut_text.decode())
