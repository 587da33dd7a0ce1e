# SPDX-License-Identifier: MIT
"""Finds the address, count and type of the tokens in an array, tensor or buffer.

The protocols are tried in this order: buffer protocol, __array_interface__, __dlpack__ (which makes
sure that a GPU has written the tokens before they are read), __cuda_array_interface__.  Several
dimensions are read in C order.  Memory is read in place; only buffers that are not contiguous or
not aligned are copied first.
"""

import contextlib
import ctypes
import math
from array import array as packed
from dataclasses import dataclass
from typing import Optional

from . import _dlpack
from ._library import DTYPE_I32, DTYPE_I64, DTYPE_U8, DTYPE_U16, DTYPE_U32, IronError

# (is signed, bytes).  uint64 is read as int64: valid token ids have the same bits in both types, and
# all other values are refused in both.
DTYPES = {(False, 1): DTYPE_U8, (False, 2): DTYPE_U16, (False, 4): DTYPE_U32, (True, 4): DTYPE_I32,
          (True, 8): DTYPE_I64, (False, 8): DTYPE_I64}

OTHER_FORMATS = {"e": "float16", "f": "float32", "d": "float64", "g": "long double", "?": "bool",
                 "c": "char"}
OTHER_KINDS = {"f": "float", "c": "complex", "b": "bool", "M": "datetime", "m": "timedelta",
               "S": "string", "U": "string", "V": "void", "O": "object"}


@dataclass
class Tokens:
    """`count` tokens of type `dtype` at an address, in host memory or on a CUDA device."""

    dtype: int
    address: Optional[int]
    count: int
    is_uint64: bool = False
    on_device: bool = False
    device: Optional[int] = None  # the device's number, if known
    stream: Optional[int] = None  # the stream that produces the tokens


def refuse(what):
    raise TypeError(f"{what} values are not token ids; convert them to uint8, uint16, uint32, "
                    "int32 or int64")


def dtype_of(signed, size, name=None):
    if (signed, size) not in DTYPES:
        refuse(name or f"{'' if signed else 'u'}int{8 * size}")
    return DTYPES[signed, size], (signed, size) == (False, 8)


def dtype_of_format(code, size):
    """The type for a buffer's format, such as 'H' or '<i'."""
    plain = code.lstrip("@=<")
    if plain[:1] in (">", "!"):
        if size > 1:
            refuse(f"big-endian ('{code}')")
        plain = plain[1:]
    if len(plain) != 1 or plain not in "bBhHiIlLqQnN":
        refuse(OTHER_FORMATS.get(plain, f"'{code}'"))
    return dtype_of(plain in "bhilqn", size)


def dtype_of_typestr(typestr):
    """The type for an array interface's typestr, such as '<u2'."""
    order, kind, size = typestr[:1], typestr[1:2], typestr[2:]
    if kind not in "iu" or not size.isdigit():
        bits = str(8 * int(size)) if kind in "fc" and size.isdigit() else ""
        refuse(OTHER_KINDS.get(kind, f"'{typestr}'") + bits)
    if order == ">" and size != "1":
        refuse(f"big-endian ('{typestr}')")
    return dtype_of(kind == "i", int(size))


def is_compact(shape, strides, step):
    """Whether the array is C-contiguous; `step` is the size of an element in units of `strides`."""
    if strides is None or 0 in shape:
        return True
    for length, stride in zip(reversed(shape), reversed(strides)):
        if length != 1 and stride != step:
            return False
        step *= length
    return True


def require_compact(shape, strides, step):
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


def aligned_copy(data, size):
    """A copy that is aligned for any token type; keep it alive while its address is used."""
    copy = (ctypes.c_uint64 * (size // 8 + 1))()
    ctypes.memmove(copy, data, size)
    return copy


@contextlib.contextmanager
def of_buffer(view):
    dtype, is_uint64 = dtype_of_format(view.format, view.itemsize)
    count = view.nbytes // view.itemsize
    if count == 0:
        yield Tokens(dtype, None, 0)
        return
    if not view.c_contiguous:
        copy = aligned_copy(view.tobytes(), view.nbytes)
        yield Tokens(dtype, ctypes.addressof(copy), count, is_uint64)
        return
    raw = PyBuffer()
    _get_buffer(view, ctypes.byref(raw), 0)  # the only way to get the address of read-only memory
    try:
        address, copy = raw.buf, None
        if address % view.itemsize:
            copy = aligned_copy(address, view.nbytes)
            address = ctypes.addressof(copy)
        yield Tokens(dtype, address, count, is_uint64)
        del copy
    finally:
        _release_buffer(ctypes.byref(raw))


def of_interface(interface, on_device):
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
    shape, typestr = interface["shape"], interface["typestr"]
    dtype, is_uint64 = dtype_of_typestr(typestr)
    require_compact(shape, interface.get("strides"), int(typestr[2:]))
    return Tokens(dtype, interface["data"][0] or None, math.prod(shape), is_uint64, on_device,
                  stream=interface.get("stream") if on_device else None)


@contextlib.contextmanager
def of_dlpack(array):
    kind, device = array.__dlpack_device__()
    if kind not in (_dlpack.CPU, _dlpack.CUDA, _dlpack.CUDA_HOST):
        raise TypeError(f"cannot read tokens on a device of kind "
                        f"{_dlpack.DEVICE_NAMES.get(kind, int(kind))}; copy them to the CPU or to CUDA")
    on_device = kind == _dlpack.CUDA
    # 1 is CUDA's default stream: the producer makes it wait until the tokens are written
    capsule = array.__dlpack__(stream=1) if on_device else array.__dlpack__()
    managed = _dlpack.consume(capsule)
    try:
        tensor = managed.tensor
        bits, kind_name = tensor.dtype.bits, _dlpack.KINDS.get(tensor.dtype.code, "unknown")
        if kind_name not in ("int", "uint") or tensor.dtype.lanes != 1 or bits % 8:
            lanes = f"x{tensor.dtype.lanes}" if tensor.dtype.lanes != 1 else ""
            refuse(f"{kind_name}{bits}{lanes}")
        dtype, is_uint64 = dtype_of(kind_name == "int", bits // 8)
        shape = _dlpack.shape_of(tensor)
        require_compact(shape, _dlpack.strides_of(tensor), 1)
        address = (tensor.data or 0) + tensor.byte_offset
        yield Tokens(dtype, address or None, math.prod(shape), is_uint64, on_device,
                     device if on_device else None)
    finally:
        _dlpack.release(managed)


def tokens_of(array):
    """A context manager that yields the array's Tokens and keeps their memory valid."""
    mask = getattr(array, "mask", None)
    if hasattr(mask, "any") and mask.any():  # the buffer protocol ignores NumPy's masks
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
        return of_dlpack(array)
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is not None:
        return contextlib.nullcontext(of_interface(interface, on_device=True))
    raise TypeError(f"cannot read tokens from {type(array).__name__}; use a NumPy array, a tensor, "
                    "bytes or array.array('I', ...)")


def readable(sample):
    """Lists and tuples of numbers as an array; everything else as it is."""
    if not isinstance(sample, (list, tuple)):
        return sample
    try:
        return packed("I", sample)
    except (TypeError, OverflowError) as why:
        raise IronError(f"a sample is not a list of token ids: {why}") from None


def shape_of(samples):
    """The shape of an array, tensor or buffer; None if it has none."""
    shape = getattr(samples, "shape", None)
    if shape is None:
        try:
            shape = memoryview(samples).shape
        except TypeError:
            return None
    return tuple(shape)
