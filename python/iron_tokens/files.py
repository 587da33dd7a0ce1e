# SPDX-License-Identifier: MIT
"""Digests of token files, in every format that `iron sum` reads."""

import ctypes
import os
from ctypes import byref

from ._library import SourceOptions, call, library
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
    for its files in natural order.
    """
    names = (ctypes.c_char_p * len(paths))(*(os.fsencode(path) for path in paths))
    options = SourceOptions(ctypes.sizeof(SourceOptions), _dtype_number(dtype),
                            format.encode() if format is not None else None, names, len(paths))
    source = ctypes.c_void_p()
    call("iron_source_open", byref(options), byref(source))
    try:
        return _sum_source(source, vocab, threads)
    finally:
        library().iron_source_close(source)


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
