# SPDX-License-Identifier: MIT
"""DLPack: capsules from NumPy and hand-made ones, whose deleter must run exactly once."""

import ctypes
import gc
import unittest

from support import DigestTest, needs_numpy, numpy, oracle

from iron_tokens import Digest, IronError
from iron_tokens import _dlpack

TOKENS = oracle.gen(12, 24, 120)

_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p,
                                 ctypes.c_void_p)(("PyCapsule_New", ctypes.pythonapi))
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi))


class OnlyDLPack:
    """A NumPy array that offers only __dlpack__."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class HandMade:
    """A producer that writes the structs itself and counts what happens to them."""

    def __init__(self, tokens=TOKENS, code=1, bits=32, lanes=1, shape=None, strides=None, offset=0,
                 device=(1, 0), has_deleter=True):
        self.memory = (ctypes.c_uint32 * len(tokens))(*tokens)
        shape = shape or (len(tokens),)
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.strides = (ctypes.c_int64 * len(shape))(*strides) if strides else None
        self.device = device
        self.deleted = self.asked = 0
        self.streams = []
        self.deleter = _dlpack.Deleter(self.delete)
        self.managed = _dlpack.DLManagedTensor()
        tensor = self.managed.tensor
        tensor.data = ctypes.addressof(self.memory) - offset
        tensor.byte_offset = offset
        tensor.device.type, tensor.device.id = device
        tensor.ndim = len(shape)
        tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes = code, bits, lanes
        tensor.shape = ctypes.cast(self.shape, ctypes.POINTER(ctypes.c_int64))
        if strides:
            tensor.strides = ctypes.cast(self.strides, ctypes.POINTER(ctypes.c_int64))
        if has_deleter:
            self.managed.deleter = ctypes.cast(self.deleter, ctypes.c_void_p)

    def delete(self, managed):
        self.deleted += 1
        self.was_ours = ctypes.addressof(managed.contents) == ctypes.addressof(self.managed)

    def __dlpack__(self, **options):
        self.asked += 1
        self.streams.append(options.get("stream"))
        self.capsule = _new_capsule(ctypes.addressof(self.managed), _dlpack.FRESH, None)
        return self.capsule

    def __dlpack_device__(self):
        return self.device


@needs_numpy
class NumPys(DigestTest):
    def test_every_width(self):
        for dtype in ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8"):
            array = numpy.array(TOKENS, dtype)
            self.assert_taken(OnlyDLPack(array), TOKENS)
            self.assert_taken(OnlyDLPack(array.reshape(2, 3, 4)), TOKENS)
            self.assert_taken(OnlyDLPack(array[5:9]), TOKENS[5:9])
            self.assert_taken(OnlyDLPack(array[:0]), [])

    def test_invalid_capsules_are_refused(self):
        array = numpy.array(TOKENS, "u4")
        self.assert_refused(OnlyDLPack(array[::2]), TypeError, "not contiguous")
        self.assert_refused(OnlyDLPack(array.reshape(4, 6).T), TypeError, "not contiguous")
        self.assert_refused(OnlyDLPack(array.astype("f4")), TypeError, "float32 values")
        self.assert_refused(OnlyDLPack(array.astype("?")), TypeError, "bool8|OnlyDLPack cannot")
        self.assert_refused(OnlyDLPack(-array.astype("i2")), IronError, "position 2 is -")
        self.assert_refused(OnlyDLPack(numpy.array([3, -4])), IronError, "position 3 is -4;")

    def test_arrays_are_released(self):
        import sys
        array = numpy.array(TOKENS, "u4")
        before = sys.getrefcount(array)
        for _ in range(10):
            self.assert_taken(OnlyDLPack(array), TOKENS)
            self.assert_refused(OnlyDLPack(array[::2]), TypeError, "contiguous")
        gc.collect()
        self.assertEqual(sys.getrefcount(array), before)


class HandMades(DigestTest):
    def assert_released(self, made):
        self.assertEqual((made.asked, made.deleted), (1, 1))
        self.assertTrue(made.was_ours)
        self.assertTrue(_is_valid(made.capsule, _dlpack.USED))

    def test_taken_and_released(self):
        for options in ({}, {"shape": (4, 6)}, {"shape": (4, 6), "strides": (6, 1)},
                        {"shape": (24, 1), "strides": (1, 77)}, {"offset": 64}, {"code": 0},
                        {"device": (3, 0)}):
            made = HandMade(**options)
            self.assert_taken(made, TOKENS)
            self.assert_released(made)
            self.assertEqual(made.streams, [None])

    def test_without_a_deleter(self):
        made = HandMade(has_deleter=False)
        self.assert_taken(made, TOKENS)
        self.assertEqual(made.deleted, 0)

    def test_refused_and_released(self):
        for options, words in (({"code": 2}, "float32"), ({"code": 6, "bits": 8}, "bool8"),
                               ({"code": 4, "bits": 16}, "bfloat16"), ({"lanes": 2}, "uint32x2"),
                               ({"bits": 128}, "uint128"), ({"bits": 4}, "uint4"),
                               ({"code": 99}, "unknown32"),
                               ({"shape": (4, 6), "strides": (1, 4)}, "not contiguous"),
                               ({"shape": (12,), "strides": (2,)}, "not contiguous")):
            made = HandMade(**options)
            self.assert_refused(made, TypeError, words)
            self.assert_released(made)

    def test_other_devices_are_refused(self):
        for device, words in (((8, 0), "Metal"), ((10, 0), "ROCm"), ((77, 0), "kind 77")):
            made = HandMade(device=device)
            self.assert_refused(made, TypeError, words)
            self.assertEqual((made.asked, made.deleted), (0, 0))

    def test_cuda_goes_to_the_device(self):
        made = HandMade(device=(2, 0))
        self.assert_refused(made, IronError, "cannot read tokens on a GPU: .*copy them to the CPU")
        self.assert_released(made)
        self.assertEqual(made.streams, [1])

    def test_device_of_the_tokens_is_used(self):
        for digest in (Digest(), Digest(device=1)):
            with digest, self.assertRaisesRegex(IronError, "cannot read tokens on a GPU"):
                digest.update(HandMade(device=(2, 1)))
        with Digest(device=0) as digest, \
                self.assertRaisesRegex(IronError, "CUDA device 1, but the digest uses device 0"):
            digest.update(HandMade(device=(2, 1)))
        with Digest() as digest:
            digest.update(TOKENS[:5])
            with self.assertRaises(IronError):
                digest.update(HandMade(device=(2, 1)))
            digest.update(TOKENS[5:])
            self.assert_digest(digest, TOKENS)

    def test_errors_of_the_producer(self):
        class Failing(HandMade):
            def __dlpack__(self, **options):
                raise RuntimeError("tensors that require grad cannot be exported")

        self.assert_refused(Failing(), TypeError, "Failing cannot be read: tensors that require")

    def test_capsule_can_be_used_once(self):
        made = HandMade()
        self.assert_taken(made, TOKENS)

        class Again:
            def __dlpack__(self, **options):
                return made.capsule

            def __dlpack_device__(self):
                return (1, 0)

        self.assert_refused(Again(), TypeError, "used before")
        self.assertEqual(made.deleted, 1)


if __name__ == "__main__":
    unittest.main()
