# SPDX-License-Identifier: MIT
"""Loads the C library, declares its functions, and turns its errors into exceptions.

The structs mirror include/iron/iron.h, iron_digest.h and iron_ledger.h; struct_size lets the
library detect a mismatch.
"""

import ctypes
import functools
import os
from ctypes import (POINTER, byref, c_char, c_char_p, c_double, c_int, c_size_t, c_uint32, c_uint64,
                    c_void_p)
from pathlib import Path

NAME = "libiron.so.0"
NO_POSITION = 2**64 - 1

DTYPE_U8, DTYPE_U16, DTYPE_U32, DTYPE_I32, DTYPE_I64 = 1, 2, 3, 4, 5


class IronError(ValueError):
    """An error with the library's message; `status` is the name of its status code."""

    def __init__(self, text, status="IRON_E_ARG"):
        super().__init__(text)
        self.status = status


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
                ("backend", c_char_p), ("bag", BagCut), ("progress", c_void_p),
                ("context", c_void_p), ("devices", c_char_p)]


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
    "iron_dtype_bytes": (c_size_t, [c_int]),
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
    "iron_manifest_write": (c_int, [c_void_p, c_char_p, POINTER(Error)]),
    "iron_manifest_read": (c_int, [c_char_p, POINTER(c_void_p), POINTER(Error)]),
    "iron_manifest_merge": (c_int, [POINTER(c_void_p), c_size_t, POINTER(c_void_p),
                                    POINTER(Error)]),
    "iron_part_range": (c_int, [c_uint64, c_uint32, c_uint32, POINTER(c_uint64),
                                POINTER(c_uint64), POINTER(Error)]),
    "iron_source_tokens": (c_uint64, [c_void_p]),
    "iron_source_open": (c_int, [POINTER(SourceOptions), POINTER(c_void_p), POINTER(Error)]),
    "iron_source_close": (None, [c_void_p]),
    "iron_source_dtype": (c_int, [c_void_p]),
    "iron_source_read": (c_int, [c_void_p, c_void_p, c_size_t, POINTER(c_size_t), POINTER(Error)]),
}


def candidates():
    """Paths and names to try, in order."""
    named = os.environ.get("IRON_LIBRARY")
    if named:
        return [named]
    here = Path(__file__).resolve().parent
    beside, checkout = here / NAME, here.parents[1] / "build" / NAME
    return [str(path) for path in (beside, checkout) if path.exists()] + [NAME]


@functools.lru_cache(maxsize=None)
def library():
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
    raise ImportError("iron_tokens needs libiron.so.0 of the same version; build it (make build), "
                      "install it, or set IRON_LIBRARY to its path. Tried " + "; ".join(tried))


def library_path():
    """Path of the loaded library, or its name if the system's loader found it."""
    return library()._name


def version():
    return library().iron_version().decode()


def call(name, *arguments):
    """Calls a function that can fail; raises IronError with the library's message if it does."""
    err = Error()
    status = getattr(library(), name)(*arguments, byref(err))
    if status:
        raise IronError(err.text.decode(errors="replace"),
                        library().iron_status_name(status).decode())
