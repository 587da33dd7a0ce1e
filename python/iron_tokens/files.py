# SPDX-License-Identifier: MIT
"""Digests of token files, in every format that `iron sum` reads."""

import ctypes
import os
import warnings
from ctypes import byref

from ._library import WARNING_SKIPPED, SourceOptions, Warn, call, library
from .digest import Digest

BUFFER_TOKENS = 1 << 20


def _dtype_number(name):
    number = ctypes.c_int(0)
    if name is not None:
        call("iron_dtype_parse", name.encode(), byref(number))
    return number.value


def sum_file(*paths, dtype=None, format=None, vocab=50257, threads=0):
    """The DigestResult of one stream: the tokens of all files in the given order.

    Raw files do not record their token type and need dtype, for example "u16".  A directory stands
    for its token files in natural order.  A warning tells which files of a directory are skipped
    because they are not tokens, and which raw files do not look like dtype.
    """
    found = []

    def warn(_, warning):
        name, text = os.fsdecode(warning.contents.file), warning.contents.text.decode()
        found.append(f"{name} is skipped: {text}, not tokens"
                     if warning.contents.kind == WARNING_SKIPPED else f"{name}: {text}")

    names = (ctypes.c_char_p * len(paths))(*(os.fsencode(path) for path in paths))
    options = SourceOptions(ctypes.sizeof(SourceOptions), _dtype_number(dtype),
                            format.encode() if format is not None else None, names, len(paths),
                            warn=Warn(warn))
    source = ctypes.c_void_p()
    call("iron_source_open", byref(options), byref(source))
    try:
        result = _sum_source(source, vocab, threads)
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
