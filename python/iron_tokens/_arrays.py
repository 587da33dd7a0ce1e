# SPDX-License-Identifier: MIT
"""Finds the address, count and type of the tokens in an array, tensor, buffer or list.

The protocols are tried in this order: lists, the buffer protocol, __array_interface__, __dlpack__
(which makes sure that a GPU has written the tokens before they are read), __cuda_array_interface__,
__array__.  Several dimensions are read in C order.  Memory is read in place; only lists, and arrays
that are not contiguous or not aligned, are copied first.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import re
from array import array as packed
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ContextManager, NoReturn, Optional, Union

from . import _dlpack
from ._library import (DTYPE_I32, DTYPE_I64, DTYPE_U8, DTYPE_U16, DTYPE_U32, Handle, IronError,
                       Options, Result, call, library, sized)

# (is signed, bytes).  uint64 is read as int64: valid token ids have the same bits in both types, and
# all other values are refused in both.  int8 and int16 are read as unsigned once check_signed has
# seen that no value is negative.
DTYPES = {(False, 1): DTYPE_U8, (False, 2): DTYPE_U16, (False, 4): DTYPE_U32, (True, 4): DTYPE_I32,
          (True, 8): DTYPE_I64, (False, 8): DTYPE_I64, (True, 1): DTYPE_U8, (True, 2): DTYPE_U16}
SMALL_TOKENS = 1024  # a digest to check them would take longer than Python

OTHER_FORMATS = {"e": "float16", "f": "float32", "d": "float64", "g": "long double", "?": "bool",
                 "c": "char"}
OTHER_KINDS = {"f": "float", "c": "complex", "b": "bool", "M": "datetime", "m": "timedelta",
               "S": "string", "U": "string", "V": "void", "O": "object"}


@dataclass
class Tokens:
    """`count` tokens of type `dtype` at an address, in host memory or on a CUDA device."""

    kind: tuple[bool, int]  # is signed, bytes
    address: Optional[int]
    count: int
    on_device: bool = False
    device: Optional[int] = None  # the device's number, if known
    stream: Optional[int] = None  # the stream that produces the tokens

    @property
    def dtype(self) -> int:
        return DTYPES[self.kind]

    def check_signed(self, first: int = 0, device: int = 0) -> None:
        """Refuses negative int8 and int16 values, which the library does not have as types: read as
        unsigned, they are at least half the type's range.  `first` is the position of the first."""
        signed, size = self.kind
        if not signed or size > 2 or self.count == 0:
            return
        half = 128 if size == 1 else 32768
        at, value = self._find_least(half, device)
        if at is not None:
            raise IronError(f"token at position {first + at} is {value - 2 * half}; tokens must be "
                            "0 to 4294967295: check the dtype", "IRON_E_FORMAT")

    def _find_least(self, least: int, device: int) -> tuple[Optional[int], int]:
        """The position and value of the first token that is at least `least`."""
        if self.count <= SMALL_TOKENS and not self.on_device:
            number = ctypes.c_uint8 if self.dtype == DTYPE_U8 else ctypes.c_uint16
            values = (number * self.count).from_address(self.address or 0)
            return next(((k, v) for k, v in enumerate(values) if v >= least), (None, 0))
        handle, result = Handle(), sized(Result)
        options = sized(Options, vocab=least, device=device, backend=b"cuda")
        call("iron_digest_init", ctypes.byref(handle), ctypes.byref(options))
        try:
            where = (ctypes.byref(handle), 0, self.dtype, self.address, self.count)
            if self.on_device:
                call("iron_digest_update_device", *where, self.stream)
            else:
                call("iron_digest_update", *where)
            call("iron_digest_final", ctypes.byref(handle), ctypes.byref(result))
        finally:
            library().iron_digest_deinit(ctypes.byref(handle))
        if result.out_of_vocab == 0:
            return None, 0
        return result.first_out_position, result.first_out_value


@contextlib.contextmanager
def unsigned_errors(tokens: Tokens) -> Iterator[None]:
    """uint64 is read as int64, so the library reports values from 2^63 on as negative."""
    try:
        yield
    except IronError as error:
        if tokens.kind != (False, 8):
            raise
        text = re.sub(r" is (-\d+);", lambda m: f" is {int(m[1]) + 2**64};", str(error))
        raise IronError(text, error.status) from None


def refuse(what: str) -> NoReturn:
    raise TypeError(f"{what} values are not token ids; convert them to an integer type of 8 to 64 "
                    "bits")


def kind_of(signed: bool, size: int) -> tuple[bool, int]:
    if (signed, size) not in DTYPES:
        refuse(f"{'' if signed else 'u'}int{8 * size}")
    return signed, size


def kind_of_format(code: str, size: int) -> tuple[bool, int]:
    """The type for a buffer's format, such as 'H' or '<i'."""
    plain = code.lstrip("@=<")
    if plain[:1] in (">", "!"):
        if size > 1:
            refuse(f"big-endian ('{code}')")
        plain = plain[1:]
    if len(plain) != 1 or plain not in "bBhHiIlLqQnN":
        refuse(OTHER_FORMATS.get(plain, f"'{code}'"))
    return kind_of(plain in "bhilqn", size)


def kind_of_typestr(typestr: str) -> tuple[bool, int]:
    """The type for an array interface's typestr, such as '<u2'."""
    order, kind, size = typestr[:1], typestr[1:2], typestr[2:]
    if kind not in "iu" or not size.isdigit():
        bits = str(8 * int(size)) if kind in "fc" and size.isdigit() else ""
        refuse(OTHER_KINDS.get(kind, f"'{typestr}'") + bits)
    if order == ">" and size != "1":
        refuse(f"big-endian ('{typestr}')")
    return kind_of(kind == "i", int(size))


def is_compact(shape: Any, strides: Any, step: int) -> bool:
    """Whether the array is C-contiguous; `step` is the size of an element in units of `strides`."""
    if strides is None or 0 in shape:
        return True
    for length, stride in zip(reversed(shape), reversed(strides)):
        if length != 1 and stride != step:
            return False
        step *= length
    return True


def require_compact(shape: Any, strides: Any, step: int) -> None:
    if not is_compact(shape, strides, step):
        raise TypeError(f"an array of shape {tuple(shape)} with strides {tuple(strides)} is not "
                        "contiguous; make a contiguous copy of it (.contiguous(), .copy())")


class PyBuffer(ctypes.Structure):
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.c_void_p), ("len", ctypes.c_ssize_t),
                ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int), ("ndim", ctypes.c_int),
                ("format", ctypes.c_char_p), ("shape", ctypes.c_void_p),
                ("strides", ctypes.c_void_p), ("suboffsets", ctypes.c_void_p),
                ("internal", ctypes.c_void_p)]


_get_buffer = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(PyBuffer),
                                ctypes.c_int)(("PyObject_GetBuffer", ctypes.pythonapi))
_release_buffer = ctypes.PYFUNCTYPE(None, ctypes.POINTER(PyBuffer))(
    ("PyBuffer_Release", ctypes.pythonapi))


def aligned_copy(data: Any, size: int) -> Any:
    """A copy that is aligned for any token type; keep it alive while its address is used."""
    copy = (ctypes.c_uint64 * (size // 8 + 1))()
    ctypes.memmove(copy, data, size)
    return copy


@contextlib.contextmanager
def of_buffer(view: memoryview) -> Iterator[Tokens]:
    kind = kind_of_format(view.format, view.itemsize)
    count = view.nbytes // view.itemsize
    if count == 0:
        yield Tokens(kind, None, 0)
        return
    if not view.c_contiguous:
        copy = aligned_copy(view.tobytes(), view.nbytes)
        yield Tokens(kind, ctypes.addressof(copy), count)
        return
    raw = PyBuffer()
    _get_buffer(view, ctypes.byref(raw), 0)  # the only way to get the address of read-only memory
    try:
        address, copy = raw.buf, None
        if address % view.itemsize:
            copy = aligned_copy(address, view.nbytes)
            address = ctypes.addressof(copy)
        yield Tokens(kind, address, count)
        del copy
    finally:
        _release_buffer(ctypes.byref(raw))


def of_interface(interface: dict[str, Any], on_device: bool) -> Tokens:
    """Tokens from an __array_interface__ or a __cuda_array_interface__, which have the same fields."""
    name = "__cuda_array_interface__" if on_device else "__array_interface__"
    least = 2 if on_device else 3
    if interface.get("version", 0) < least:
        raise TypeError(f"{name} has version {interface.get('version')}; {least} or newer is "
                        "needed")
    if interface.get("mask") is not None:
        raise TypeError(f"{name} has a mask; fill the masked values first")
    if not isinstance(interface.get("data"), tuple):
        raise TypeError(f"{name} has no address; convert the array first")
    shape, kind = interface["shape"], kind_of_typestr(interface["typestr"])
    require_compact(shape, interface.get("strides"), kind[1])
    return Tokens(kind, interface["data"][0] or None, math.prod(shape), on_device,
                  stream=interface.get("stream") if on_device else None)


@contextlib.contextmanager
def of_dlpack(array: Any) -> Iterator[Tokens]:
    kind, device = array.__dlpack_device__()
    if kind not in (_dlpack.CPU, _dlpack.CUDA, _dlpack.CUDA_HOST):
        name = _dlpack.DEVICE_NAMES.get(kind, int(kind))
        raise TypeError(f"cannot read tokens on a device of kind {name}; copy them to the CPU or to "
                        "CUDA")
    on_device = kind == _dlpack.CUDA
    # 1 is CUDA's default stream: the producer makes it wait until the tokens are written
    try:
        capsule = array.__dlpack__(stream=1) if on_device else array.__dlpack__()
    except (RuntimeError, BufferError) as why:
        raise TypeError(f"{type(array).__name__} cannot be read: {why}") from None
    managed = _dlpack.consume(capsule)
    try:
        tensor = managed.tensor
        bits, kind_name = tensor.dtype.bits, _dlpack.KINDS.get(tensor.dtype.code, "unknown")
        if kind_name not in ("int", "uint") or tensor.dtype.lanes != 1 or bits % 8:
            lanes = f"x{tensor.dtype.lanes}" if tensor.dtype.lanes != 1 else ""
            refuse(f"{kind_name}{bits}{lanes}")
        element = kind_of(kind_name == "int", bits // 8)
        shape = _dlpack.shape_of(tensor)
        require_compact(shape, _dlpack.strides_of(tensor), 1)
        address = (tensor.data or 0) + tensor.byte_offset
        yield Tokens(element, address or None, math.prod(shape), on_device,
                     device if on_device else None)
    finally:
        _dlpack.release(managed)


def flattened(values: Union[list[Any], tuple[Any, ...], range]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (list, tuple, range)):
            yield from flattened(value)
        else:
            yield value


def of_list(values: Union[list[Any], tuple[Any, ...], range]) -> packed[int]:
    """Integers in lists, also nested ones, as an array of int64."""
    kinds = set(map(type, values))
    if any(issubclass(kind, (list, tuple, range)) for kind in kinds):
        values = list(flattened(values))
        kinds = set(map(type, values))
    if bool not in kinds:
        with contextlib.suppress(TypeError, OverflowError):
            return packed("q", values)
    for at, value in enumerate(values):  # the first that is not a token id
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(f"token {at} of the list is {value!r}, a {type(value).__name__}; token "
                            "ids are integers")
        try:
            packed("q", [value])
        except TypeError:  # an array of several elements
            raise TypeError(f"token {at} of the list is of type {type(value).__name__}; token ids "
                            "are integers") from None
        except OverflowError:
            raise IronError(f"token {at} of the list is {value}; tokens must be 0 to 4294967295",
                            "IRON_E_FORMAT") from None
    return packed("q", values)


def tokens_of(array: Any) -> ContextManager[Tokens]:
    """A context manager that yields the array's Tokens and keeps their memory valid."""
    if isinstance(array, (list, tuple, range)):
        return of_buffer(memoryview(of_list(array)))
    mask = getattr(array, "mask", None)
    # the buffer protocol ignores NumPy's masks
    if mask is not None and hasattr(mask, "any") and mask.any():
        raise TypeError("the array has a mask; fill the masked values first")
    try:
        view = memoryview(array)
    except (TypeError, ValueError, BufferError):
        view = None
    if view is not None:
        return of_buffer(view)
    interface = getattr(array, "__array_interface__", None)
    if interface is not None:
        return contextlib.nullcontext(of_interface(interface, on_device=False))
    if hasattr(array, "__dlpack__") and hasattr(array, "__dlpack_device__"):
        # torch's own copy of a tensor with gaps, on its device
        return of_dlpack(array.contiguous() if hasattr(array, "contiguous") else array)
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is not None:
        return contextlib.nullcontext(of_interface(interface, on_device=True))
    if hasattr(array, "__array__") and not isinstance(array, type):
        return of_buffer(memoryview(array.__array__()))
    raise TypeError(f"cannot read tokens from {type(array).__name__}; use a NumPy array, a tensor, "
                    "a list of integers, bytes or array.array('I', ...)")


def in_host_memory(batch: Any) -> Any:
    """A tensor on a GPU copied to the host; everything else as it is."""
    if getattr(getattr(batch, "device", None), "type", "cpu") != "cpu" and hasattr(batch, "cpu"):
        return batch.cpu()
    return batch


def shape_of(samples: Any) -> Optional[tuple[int, ...]]:
    """The shape of an array, tensor or buffer; None if it has none."""
    shape: Any = getattr(samples, "shape", None)
    if shape is None:
        try:
            shape = memoryview(samples).shape
        except TypeError:
            return None
    return tuple(shape)
