# SPDX-License-Identifier: MIT
"""DLPack: reads tensors of other libraries without a copy.

A producer returns a capsule named "dltensor" that holds a DLManagedTensor.  The consumer renames it
to "used_dltensor", so that the capsule's destructor does not free the tensor, and calls the tensor's
deleter when done.  Only the plain structs are needed here, not the producer's library.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p
from typing import Any, Optional

CPU, CUDA, CUDA_HOST = 1, 2, 3
DEVICE_NAMES = {4: "OpenCL", 7: "Vulkan", 8: "Metal", 9: "VPI", 10: "ROCm", 11: "ROCm host",
                13: "CUDA managed", 14: "oneAPI", 15: "WebGPU", 16: "Hexagon"}
KINDS = {0: "int", 1: "uint", 2: "float", 3: "opaque", 4: "bfloat", 5: "complex", 6: "bool"}


class DLDevice(ctypes.Structure):
    _fields_ = [("type", c_int32), ("id", c_int32)]


class DLDataType(ctypes.Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device", DLDevice), ("ndim", c_int32), ("dtype", DLDataType),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]


class DLManagedTensor(ctypes.Structure):
    pass


# PYFUNCTYPE keeps the interpreter lock, because deleters release Python objects.
Deleter = ctypes.PYFUNCTYPE(None, POINTER(DLManagedTensor))
DLManagedTensor._fields_ = [("tensor", DLTensor), ("manager", c_void_p), ("deleter", c_void_p)]

FRESH, USED = b"dltensor", b"used_dltensor"  # capsules keep a pointer to these

_api = ctypes.pythonapi
_is_valid = ctypes.PYFUNCTYPE(c_int, ctypes.py_object, c_char_p)(("PyCapsule_IsValid", _api))
_get_pointer = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, c_char_p)(
    ("PyCapsule_GetPointer", _api))
_set_name = ctypes.PYFUNCTYPE(c_int, ctypes.py_object, c_char_p)(("PyCapsule_SetName", _api))


def consume(capsule: Any) -> DLManagedTensor:
    """Takes the tensor out of the capsule: a DLManagedTensor that the caller must release."""
    if not _is_valid(capsule, FRESH):
        raise TypeError(f"__dlpack__ returned {capsule!r}, expected a capsule named 'dltensor'; "
                        "was it used before?")
    managed = DLManagedTensor.from_address(_get_pointer(capsule, FRESH))
    _set_name(capsule, USED)
    return managed


def release(managed: DLManagedTensor) -> None:
    if managed.deleter:
        Deleter(managed.deleter)(ctypes.byref(managed))


def shape_of(tensor: DLTensor) -> tuple[int, ...]:
    return tuple(tensor.shape[k] for k in range(tensor.ndim))


def strides_of(tensor: DLTensor) -> Optional[tuple[int, ...]]:
    """Strides in elements; None if the producer omitted them, which means C order."""
    if not tensor.strides:
        return None
    return tuple(tensor.strides[k] for k in range(tensor.ndim))
