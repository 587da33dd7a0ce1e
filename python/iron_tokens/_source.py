# SPDX-License-Identifier: MIT
"""Opens token files for the functions that read them, and lets Ctrl-C and callbacks through."""

from __future__ import annotations

import ctypes
import operator
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from ctypes import byref
from typing import Any, Optional, Union

from ._library import (CUT_EOS, CUT_FORMAT, CUT_SAMPLE, NO_POSITION, WARNING_SKIPPED, BagCut, Error,
                       IronError, Progress, SourceOptions, Warn, call, library, raise_error, sized)

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Paths = Union[Path, Sequence[Path]]
OnProgress = Callable[[int, Optional[int]], object]  # tokens done; in total, if known


def paths_of(given: Iterable[Paths]) -> list[bytes]:
    """Paths and lists of paths, in order."""
    found: list[bytes] = []
    for one in given:
        if isinstance(one, (list, tuple)):
            found += paths_of(one)
        else:
            found.append(os.fsencode(one))  # type: ignore[arg-type]
    return found


def texts_of(values: Union[str, Sequence[str], None]) -> Any:
    """Strings as a C array, or None."""
    if not values:
        return None
    listed = [values] if isinstance(values, str) else values
    return (ctypes.c_char_p * len(listed))(*(os.fsencode(value) for value in listed))


def dtype_number(dtype: Any) -> int:
    """The library's number for "u16", "uint16", numpy.uint16, numpy.dtype("u2") or torch.int32."""
    number = ctypes.c_int(0)
    if dtype is not None:
        if getattr(dtype, "byteorder", "=") == ">":
            raise IronError(f"dtype is {dtype}, big-endian; token files are little-endian")
        name = getattr(dtype, "__name__", None) or getattr(dtype, "name", None) or str(dtype)
        call("iron_dtype_parse", name.rpartition(".")[2].encode(), byref(number))
    return number.value


def dtype_name(number: int) -> str:
    text: bytes = library().iron_dtype_name(number)
    return text.decode()


def cut_of(bag: bool, sample: Optional[int], eos: Optional[int]) -> BagCut:
    """How a stream is cut into samples; of kind 0 if no bag is wanted."""
    if sample is not None and eos is not None:
        raise IronError("sample and eos both say what a sample is; give one of them")
    if sample is not None:
        return BagCut(CUT_SAMPLE, operator.index(sample))
    if eos is not None:
        return BagCut(CUT_EOS, operator.index(eos))
    return BagCut(CUT_FORMAT if bag else 0, 0)


def known(value: int) -> Optional[int]:
    return None if value == NO_POSITION else value


class Source:
    """Open token files: a context manager.  At its end it warns about what the library noticed; the
    warnings name the line that called the function with the `with` statement."""

    def __init__(self, paths: Sequence[bytes], dtype: Any = None, format: Optional[str] = None,
                 column: Optional[str] = None, recursive: bool = False,
                 include: Union[str, Sequence[str], None] = None,
                 exclude: Union[str, Sequence[str], None] = None, seekable: bool = False) -> None:
        if not paths:
            raise IronError("no files were given; name at least one")
        self._found: list[str] = []
        self._warn = Warn(self._notice)
        includes, excludes = texts_of(include), texts_of(exclude)
        options = sized(
            SourceOptions, dtype=dtype_number(dtype), warn=self._warn, path_count=len(paths),
            format=format.encode() if format is not None else None,
            paths=(ctypes.c_char_p * len(paths))(*paths), is_recursive=bool(recursive),
            include=includes, include_count=len(includes or ()), exclude=excludes,
            exclude_count=len(excludes or ()),
            column=column.encode() if column is not None else None, wants_seekable=seekable)
        self.own = ctypes.c_void_p()
        call("iron_source_open", byref(options), byref(self.own))

    def _notice(self, _: Any, warning: Any) -> None:
        name, text = os.fsdecode(warning.contents.file), warning.contents.text.decode()
        self._found.append(f"{name} is skipped: {text}, not tokens"
                           if warning.contents.kind == WARNING_SKIPPED else f"{name}: {text}")

    @property
    def tokens(self) -> Optional[int]:
        return known(library().iron_source_tokens(self.own))

    def close(self) -> None:
        library().iron_source_close(self.own)

    def __enter__(self) -> Source:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        self.close()
        for text in self._found if kind is None else ():
            warnings.warn(text, stacklevel=3)


class Watch:
    """The progress callback of a long call, for the caller's function and for Ctrl-C.

    Python sees signals only where it runs, which is in the callback.  An exception cannot pass
    through the library: the call is cancelled, and raises it afterwards.  Ctrl-C has a handler of
    its own meanwhile, since an exception might arise before the callback's first line.
    """

    def __init__(self, progress: Optional[OnProgress]) -> None:
        self._progress = progress
        self._error: Optional[BaseException] = None
        self.callback = Progress(self._called)

    def _called(self, _: Any, done: int, total: int) -> int:
        try:
            if self._progress is not None:
                self._progress(done, known(total))
        except BaseException as why:
            self._error = why
        return int(self._error is not None)

    def _interrupted(self, *_: object) -> None:
        self._error = KeyboardInterrupt()

    def call(self, name: str, *arguments: Any) -> None:
        err, is_ours = Error(), (threading.current_thread() is threading.main_thread() and
                                 signal.getsignal(signal.SIGINT) is signal.default_int_handler)
        if is_ours:
            signal.signal(signal.SIGINT, self._interrupted)
        try:
            status = getattr(library(), name)(*arguments, byref(err))
        finally:
            if is_ours:
                signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._error is not None:
            raise self._error
        if status:
            raise_error(err)
