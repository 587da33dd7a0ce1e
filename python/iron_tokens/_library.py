# SPDX-License-Identifier: MIT
"""Loads the C library, declares its functions, and turns its errors into exceptions.

The structs mirror include/iron/iron.h, iron_digest.h and iron_ledger.h; struct_size lets the
library detect a mismatch.
"""

from __future__ import annotations

import ctypes
import functools
import os
from ctypes import (POINTER, byref, c_char, c_char_p, c_double, c_int, c_size_t, c_uint32, c_uint64,
                    c_void_p)
from pathlib import Path
from typing import Any, TypeVar

NAME = "libiron.so.0"
NO_POSITION = 2**64 - 1  # also IRON_COUNT_UNKNOWN
E_NOMEM, E_IO = 2, 4  # iron_status

DTYPE_U8, DTYPE_U16, DTYPE_U32, DTYPE_I32, DTYPE_I64 = 1, 2, 3, 4, 5


class IronError(ValueError):
    """A value that cannot be used; `status` is the name of the library's status code.

    >>> import iron_tokens
    >>> iron_tokens.seal([5, -1])
    Traceback (most recent call last):
    iron_tokens.IronError: token at position 1 is -1; tokens must be 0 to 4294967295: check the dtype
    """

    __module__ = "iron_tokens"  # as users import it

    def __init__(self, text: str, status: str = "IRON_E_ARG") -> None:
        super().__init__(text)
        self.status = status

    def __reduce__(self) -> tuple[Any, ...]:
        return IronError, (str(self), self.status)


class Error(ctypes.Structure):
    _fields_ = [("status", c_int), ("native", c_int), ("text", c_char * 240)]


class Handle(ctypes.Structure):
    """iron_digest"""

    _fields_ = [("own", c_void_p)]


class Options(ctypes.Structure):
    """iron_digest_options"""

    _fields_ = [("struct_size", c_uint32), ("threads", c_uint32), ("vocab", c_uint64),
                ("device", c_uint32), ("backend", c_char_p), ("allocator", c_void_p)]


class Result(ctypes.Structure):
    """iron_digest_result"""

    _fields_ = [("struct_size", c_uint32), ("seal_version", c_uint32), ("seal", c_char * 33),
                ("words", c_uint64 * 4), ("tokens", c_uint64), ("vocab", c_uint64),
                ("out_of_vocab", c_uint64), ("first_out_position", c_uint64),
                ("first_out_value", c_uint32), ("min", c_uint32), ("max", c_uint32)]


class FileWarning(ctypes.Structure):
    """iron_warning"""

    _fields_ = [("kind", c_int), ("file", c_char_p), ("text", c_char_p)]


Warn = ctypes.CFUNCTYPE(None, c_void_p, POINTER(FileWarning))  # iron_warn
WARNING_SKIPPED = 2


class SourceOptions(ctypes.Structure):
    """iron_source_options"""

    _fields_ = [("struct_size", c_uint32), ("dtype", c_int), ("format", c_char_p),
                ("paths", POINTER(c_char_p)), ("path_count", c_size_t),
                ("dtype_is_for_raw", c_uint32), ("is_recursive", c_uint32),
                ("include", POINTER(c_char_p)), ("include_count", c_size_t),
                ("exclude", POINTER(c_char_p)), ("exclude_count", c_size_t),
                ("warn", Warn), ("warn_context", c_void_p), ("column", c_char_p),
                ("wants_seekable", c_uint32)]


Progress = ctypes.CFUNCTYPE(c_int, c_void_p, c_uint64, c_uint64)  # iron_progress


class RawBag(ctypes.Structure):
    """iron_bag"""

    _fields_ = [("hi", c_uint64), ("lo", c_uint64), ("samples", c_uint64)]


class BagCut(ctypes.Structure):
    """iron_bag_cut"""

    _fields_ = [("kind", c_int), ("value", c_uint64)]


CUT_FORMAT, CUT_SAMPLE, CUT_EOS = 1, 4, 5  # iron_bag_cut_kind
BAG_TEXT, BAG_CUT_TEXT = 54, 32


class BagResult(ctypes.Structure):
    """iron_bag_result"""

    _fields_ = [("struct_size", c_uint32), ("bag", RawBag), ("cut", BagCut),
                ("text", c_char * BAG_TEXT), ("cut_text", c_char * BAG_CUT_TEXT)]


class ScanOptions(ctypes.Structure):
    """iron_scan_options"""

    _fields_ = [("struct_size", c_uint32), ("threads", c_uint32), ("vocab", c_uint64),
                ("chunk_tokens", c_uint64), ("first", c_uint64), ("count", c_uint64),
                ("part", c_uint32), ("parts", c_uint32), ("device", c_uint32),
                ("backend", c_char_p), ("bag", BagCut), ("progress", Progress),
                ("context", c_void_p), ("devices", c_char_p)]


class ManifestInfo(ctypes.Structure):
    """iron_manifest_info"""

    _fields_ = [("struct_size", c_uint32), ("part", c_uint32), ("parts", c_uint32),
                ("first", c_uint64), ("tokens", c_uint64), ("stream_tokens", c_uint64),
                ("chunk_tokens", c_uint64), ("chunk_count", c_uint64), ("vocab", c_uint64),
                ("file_count", c_size_t)]


class ManifestFile(ctypes.Structure):
    """iron_manifest_file"""

    _fields_ = [("struct_size", c_uint32), ("dtype", c_int), ("path", c_char_p),
                ("format", c_char_p), ("first", c_uint64), ("tokens", c_uint64),
                ("column", c_char_p), ("compression", c_char_p)]


class CheckOptions(ctypes.Structure):
    """iron_check_options"""

    _fields_ = [("struct_size", c_uint32), ("threads", c_uint32), ("takes_missing", c_uint32),
                ("device", c_uint32), ("backend", c_char_p), ("progress", Progress),
                ("context", c_void_p), ("devices", c_char_p)]


class CheckFile(ctypes.Structure):
    """iron_check_file"""

    _fields_ = [("struct_size", c_uint32), ("state", c_int), ("path", c_char_p),
                ("reason", c_char * 240), ("expected", c_char * 56), ("found", c_char * 56)]


class DiffSide(ctypes.Structure):
    """iron_diff_side"""

    _fields_ = [("manifest", c_void_p), ("source", c_void_p), ("name", c_char_p)]


class DiffOptions(ctypes.Structure):
    """iron_diff_options"""

    _fields_ = [("struct_size", c_uint32), ("threads", c_uint32), ("chunk_tokens", c_uint64),
                ("bag", BagCut), ("progress", Progress), ("context", c_void_p)]


class DiffReport(ctypes.Structure):
    """iron_diff_report"""

    _fields_ = [("struct_size", c_uint32), ("kind", c_int), ("tokens", c_uint64 * 2),
                ("first", c_uint64), ("first_end", c_uint64), ("has_value", c_uint32 * 2),
                ("value", c_uint32 * 2), ("chunk_tokens", c_uint64), ("chunks", c_uint64),
                ("differing_chunks", c_uint64), ("range_count", c_size_t), ("position", c_uint64),
                ("length", c_uint64), ("source", c_uint64), ("edits", c_uint64),
                ("has_more_edits", c_uint32), ("bag_cut", BagCut), ("is_verified", c_uint32),
                ("text", c_char * 240)]


class StatOptions(ctypes.Structure):
    """iron_stat_options"""

    _fields_ = [("struct_size", c_uint32), ("threads", c_uint32), ("vocab", c_uint64),
                ("eos", c_uint64), ("wants_histogram", c_uint32), ("first", c_uint64),
                ("count", c_uint64), ("progress", Progress), ("context", c_void_p)]


class StatPlace(ctypes.Structure):
    """iron_stat_place"""

    _fields_ = [("position", c_uint64), ("value", c_uint32)]


class StatReport(ctypes.Structure):
    """iron_stat_report"""

    _fields_ = [("struct_size", c_uint32), ("min", c_uint32), ("max", c_uint32),
                ("tokens", c_uint64), ("zeros", c_uint64), ("out_of_vocab", c_uint64),
                ("place_count", c_size_t), ("places", StatPlace * 8),
                ("run_length", c_uint64), ("run_position", c_uint64), ("run_value", c_uint32),
                ("document_cut", BagCut), ("documents", c_uint64), ("document_min", c_uint64),
                ("document_max", c_uint64), ("document_median", c_uint64),
                ("document_p95", c_uint64), ("empty_documents", c_uint64),
                ("document_mean", c_double), ("is_last_open", c_uint32), ("used_ids", c_uint64),
                ("unused_ids", c_uint64), ("entropy_bits", c_double),
                ("entropy_limit_bits", c_double)]


class RecorderOptions(ctypes.Structure):
    """iron_recorder_options"""

    _fields_ = [("struct_size", c_uint32), ("rank", c_uint32), ("world", c_uint32),
                ("is_append", c_uint32), ("is_without_samples", c_uint32),
                ("flush_records", c_uint32), ("flush_seconds", c_double)]


# Result and parameter types of every function used; the last parameter of fallible ones is an Error.
CALLS = {
    "iron_version": (c_char_p, []),
    "iron_status_name": (c_char_p, [c_int]),
    "iron_dtype_parse": (c_int, [c_char_p, POINTER(c_int), POINTER(Error)]),
    "iron_dtype_name": (c_char_p, [c_int]),
    "iron_digest_init": (c_int, [POINTER(Handle), POINTER(Options), POINTER(Error)]),
    "iron_digest_deinit": (None, [POINTER(Handle)]),
    "iron_digest_update": (c_int, [POINTER(Handle), c_uint64, c_int, c_void_p, c_size_t,
                                   POINTER(Error)]),
    "iron_digest_update_device": (c_int, [POINTER(Handle), c_uint64, c_int, c_void_p, c_uint64,
                                          c_void_p, POINTER(Error)]),
    "iron_digest_merge": (c_int, [POINTER(Handle), POINTER(Handle), POINTER(Error)]),
    "iron_digest_final": (c_int, [POINTER(Handle), POINTER(Result), POINTER(Error)]),
    "iron_digest_gap": (None, [POINTER(Handle), POINTER(c_uint64), POINTER(c_uint64)]),
    "iron_digest_save": (c_int, [POINTER(Handle), c_void_p, c_size_t, POINTER(c_size_t),
                                 POINTER(Error)]),
    "iron_digest_load": (c_int, [POINTER(Handle), POINTER(Options), c_char_p, c_size_t,
                                 POINTER(Error)]),
    "iron_bag_add_rows": (c_int, [POINTER(RawBag), c_int, c_void_p, c_size_t, c_size_t,
                                  POINTER(Error)]),
    "iron_bag_merge": (None, [POINTER(RawBag), POINTER(RawBag)]),
    "iron_bag_format": (None, [POINTER(RawBag), c_char_p]),
    "iron_bag_parse": (c_int, [c_char_p, POINTER(RawBag), POINTER(Error)]),
    "iron_recorder_options_init_sized": (None, [POINTER(RecorderOptions), c_size_t]),
    "iron_recorder_open": (c_int, [c_char_p, POINTER(RecorderOptions), POINTER(c_void_p),
                                   POINTER(Error)]),
    "iron_recorder_begin": (c_int, [c_void_p, c_uint64, c_uint32, c_uint32, POINTER(Error)]),
    "iron_recorder_rows": (c_int, [c_void_p, c_int, c_void_p, c_size_t, c_size_t, POINTER(Error)]),
    "iron_recorder_end": (c_int, [c_void_p, POINTER(Error)]),
    "iron_recorder_flush": (c_int, [c_void_p, POINTER(Error)]),
    "iron_recorder_close": (c_int, [c_void_p, POINTER(Error)]),
    "iron_scan_options_init_sized": (None, [POINTER(ScanOptions), c_size_t]),
    "iron_scan": (c_int, [c_void_p, POINTER(ScanOptions), POINTER(c_void_p), POINTER(Error)]),
    "iron_manifest_digest": (c_int, [c_void_p, POINTER(Result), POINTER(Error)]),
    "iron_manifest_bag": (c_int, [c_void_p, POINTER(BagResult), POINTER(Error)]),
    "iron_manifest_destroy": (None, [c_void_p]),
    "iron_manifest_describe": (c_int, [c_void_p, POINTER(ManifestInfo), POINTER(Error)]),
    "iron_manifest_file_at": (c_int, [c_void_p, c_size_t, POINTER(ManifestFile), POINTER(Error)]),
    "iron_manifest_write": (c_int, [c_void_p, c_char_p, POINTER(Error)]),
    "iron_manifest_read": (c_int, [c_char_p, POINTER(c_void_p), POINTER(Error)]),
    "iron_manifest_is_one": (c_int, [c_char_p]),
    "iron_manifest_merge": (c_int, [POINTER(c_void_p), c_size_t, POINTER(c_void_p),
                                    POINTER(Error)]),
    "iron_part_range": (c_int, [c_uint64, c_uint32, c_uint32, POINTER(c_uint64),
                                POINTER(c_uint64), POINTER(Error)]),
    "iron_check_run": (c_int, [c_void_p, POINTER(CheckOptions), POINTER(c_void_p), POINTER(Error)]),
    "iron_check_destroy": (None, [c_void_p]),
    "iron_check_file_count": (c_size_t, [c_void_p]),
    "iron_check_file_at": (c_int, [c_void_p, c_size_t, POINTER(CheckFile), POINTER(Error)]),
    "iron_diff_run": (c_int, [POINTER(DiffSide), POINTER(DiffSide), POINTER(DiffOptions),
                              POINTER(c_void_p), POINTER(Error)]),
    "iron_diff_destroy": (None, [c_void_p]),
    "iron_diff_describe": (c_int, [c_void_p, POINTER(DiffReport), POINTER(Error)]),
    "iron_stat_options_init_sized": (None, [POINTER(StatOptions), c_size_t]),
    "iron_stat_source": (c_int, [c_void_p, POINTER(StatOptions), POINTER(c_void_p),
                                 POINTER(Error)]),
    "iron_stat_destroy": (None, [c_void_p]),
    "iron_stat_describe": (c_int, [c_void_p, POINTER(StatReport), POINTER(Error)]),
    "iron_stat_histogram": (POINTER(c_uint64), [c_void_p, POINTER(c_uint64)]),
    "iron_bag_cut_format": (None, [POINTER(BagCut), c_char_p]),
    "iron_source_open": (c_int, [POINTER(SourceOptions), POINTER(c_void_p), POINTER(Error)]),
    "iron_source_close": (None, [c_void_p]),
    "iron_source_tokens": (c_uint64, [c_void_p]),
}


def candidates() -> list[str]:
    """Paths and names to try, in order."""
    named = os.environ.get("IRON_LIBRARY")
    if named:
        return [named]
    here = Path(__file__).resolve().parent
    beside, checkout = here / NAME, here.parents[1] / "build" / NAME
    return [str(path) for path in (beside, checkout) if path.exists()] + [NAME]


@functools.lru_cache(maxsize=None)
def library() -> ctypes.CDLL:
    """Loads the library once per process and sets the types of its functions."""
    tried = []
    for path in candidates():
        try:
            found = ctypes.CDLL(path)
            for name, (result, parameters) in CALLS.items():
                call = getattr(found, name)
                call.restype, call.argtypes = result, parameters
            return found
        except (OSError, AttributeError) as why:
            tried.append(f"{path}: {why}")
    raise ImportError("iron_tokens needs libiron.so.0 of the same version; install the wheel (make "
                      "wheel), build the library (make build), or set IRON_LIBRARY to its path. "
                      "Tried " + "; ".join(tried))


def library_path() -> str:
    """The path of the loaded library, or its name if the system's loader found it.

    >>> import iron_tokens
    >>> "libiron.so" in iron_tokens.library_path()
    True
    """
    return library()._name


def version() -> str:
    """The library's version.

    >>> import iron_tokens
    >>> iron_tokens.version() == iron_tokens.__version__
    True
    """
    text: bytes = library().iron_version()
    return text.decode()


def raise_error(err: Error) -> None:
    """Raises what Python users expect: OSError with errno (FileNotFoundError and so on) for files,
    MemoryError, and IronError, a ValueError, for the rest."""
    text = err.text.decode(errors="replace")
    if err.status == E_NOMEM:
        raise MemoryError(text)
    if err.status == E_IO:
        raise OSError(err.native, text) if err.native else OSError(text)
    raise IronError(text, library().iron_status_name(err.status).decode())


def call(name: str, *arguments: Any) -> None:
    """Calls a function that can fail; raises an exception with the library's message if it does."""
    err = Error()
    if getattr(library(), name)(*arguments, byref(err)):
        raise_error(err)


S = TypeVar("S", bound=ctypes.Structure)


def sized(struct: type[S], **fields: Any) -> S:
    """A struct that begins with its size."""
    return struct(struct_size=ctypes.sizeof(struct), **fields)
