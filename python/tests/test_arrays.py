# SPDX-License-Identifier: MIT
"""Reading tokens from buffers, NumPy arrays and array interfaces; refusing everything else."""

import array
import ctypes
import mmap
import tempfile
import unittest

from support import DigestTest, needs_numpy, numpy, oracle

from iron_tokens import IronError, seal

TOKENS = oracle.gen(11, 60, 120)


class Interface:
    """An object that has only an array interface."""

    def __init__(self, name, interface, keep=None):
        setattr(self, name, interface)
        self.keep = keep


class Buffers(DigestTest):
    def test_formats(self):
        for code in "BHILQbhilq":
            self.assert_taken(array.array(code, TOKENS), TOKENS)
        self.assert_taken(bytes(TOKENS), TOKENS)
        self.assert_taken(bytearray(TOKENS), TOKENS)
        self.assert_taken(memoryview(bytes(TOKENS)).cast("H"),
                          list(memoryview(bytes(TOKENS)).cast("H")))
        self.assert_taken((ctypes.c_uint16 * 60)(*TOKENS), TOKENS)
        self.assert_taken(memoryview(bytes(TOKENS)).cast("B", (3, 4, 5)), TOKENS)

    def test_mapped_files(self):
        with tempfile.TemporaryFile() as file:
            file.write(bytes(TOKENS))
            file.flush()
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
                self.assert_taken(mapped, TOKENS)

    def test_buffers_that_are_not_contiguous(self):
        self.assert_taken(memoryview(array.array("I", TOKENS))[::-2], TOKENS[::-2])

    def test_buffers_that_are_not_aligned(self):
        data = memoryview(b"x" + array.array("I", TOKENS).tobytes())[1:].cast("I")
        self.assert_taken(data, TOKENS)

    def test_buffer_is_released(self):
        data = bytearray(TOKENS)
        self.assert_taken(data, TOKENS)
        data.append(1)  # BufferError if the buffer were still held

    def test_invalid_values_are_refused(self):
        for code, name in (("f", "float32"), ("d", "float64")):
            self.assert_refused(array.array(code, [1, 2]), TypeError, f"{name} values")
        self.assert_refused(array.array("i", [1, -2]), IronError, "position 3 is -2;")
        self.assert_refused(array.array("q", [2**32]), IronError, "is 4294967296;")
        self.assert_refused(array.array("Q", [1, 2**64 - 5]), IronError,
                            "position 3 is 18446744073709551611;")
        self.assert_refused("text", TypeError, "cannot read tokens from str")
        self.assert_refused(None, TypeError, "NoneType")
        self.assert_refused(iter(TOKENS), TypeError, "cannot read tokens from list_iterator")

    def test_narrow_signed_values(self):
        for code, most in (("b", 127), ("h", 32767)):
            for count in (2, 5000):  # Python looks at few values, the library at many
                values = array.array(code, [0, most] * count)
                self.assert_taken(values, list(values))
                for at in (0, count, 2 * count - 1):
                    values = array.array(code, [0, most] * count)
                    values[at] = -most - 1
                    self.assert_refused(values, IronError,
                                        f"position {2 + at} is {-most - 1}; tokens must be 0 to")


class Lists(DigestTest):
    def test_lists(self):
        for values in (TOKENS, tuple(TOKENS), [TOKENS[:30], TOKENS[30:]], [[TOKENS], []]):
            self.assert_taken(values, TOKENS)
        self.assert_taken(range(5, 70, 2), list(range(5, 70, 2)))
        self.assert_taken([], [])
        self.assert_taken([[], ()], [])
        self.assert_taken([0, 2**32 - 1], [0, 2**32 - 1])

    def test_refused_lists(self):
        self.assert_refused([1, -2], IronError, "position 3 is -2; tokens must be 0 to 4294967295")
        self.assert_refused([1, 2**32], IronError, "position 3 is 4294967296;")
        for far in (2**63, -2**70):
            self.assert_refused([5, 1, far], IronError, f"token 2 of the list is {far};")
            self.assert_refused([[5, 1], [far]], IronError, f"token 2 of the list is {far};")
        for bad, name in ((1.0, "float"), (True, "bool"), ("7", "str"), (None, "NoneType"),
                          (b"7", "bytes")):
            self.assert_refused([3, bad], TypeError, f"token 1 of the list is .*, a {name}; token")


@needs_numpy
class NumPy(DigestTest):
    def test_every_width_and_shape(self):
        for dtype in ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8"):
            flat = numpy.array(TOKENS, dtype)
            self.assert_taken(flat, TOKENS)
            self.assert_taken(flat.reshape(3, 4, 5), TOKENS)
            self.assert_taken(flat[::3], TOKENS[::3])
            self.assert_taken(flat.reshape(6, 10).T, list(flat.reshape(6, 10).T.flatten()))
            self.assert_taken(numpy.asfortranarray(flat.reshape(6, 10)), TOKENS)
            self.assert_taken(flat[:0], [])
            self.assert_taken(flat.reshape(60, 1)[:, None], TOKENS)
            self.assert_taken(numpy.array(TOKENS[7], dtype), [TOKENS[7]])

    def test_read_only(self):
        tokens = numpy.array(TOKENS, "u2")
        tokens.flags.writeable = False
        self.assert_taken(tokens, TOKENS)
        self.assert_taken(numpy.broadcast_to(numpy.uint16(9), 5), [9] * 5)

    def test_scalars(self):
        self.assert_taken(numpy.uint16(9), [9])

    def test_invalid_values_are_refused(self):
        for dtype, name in (("f2", "float16"), ("f4", "float32"), ("f8", "float64"),
                            ("?", "bool"), ("c8", "Zf"),
                            (">u4", "big-endian"), (">i8", "big-endian"),
                            ("datetime64[s]", "datetime"), ("S3", "3s")):
            self.assert_refused(numpy.zeros(4, dtype), TypeError, name)
        self.assert_refused(numpy.zeros(2, [("a", "u4")]), TypeError, "T{")
        masked = numpy.ma.array(numpy.array(TOKENS, "u2"))
        self.assert_taken(masked, TOKENS)
        masked[3] = numpy.ma.masked
        self.assert_refused(masked, TypeError, "mask")
        self.assert_refused(numpy.array([1, -1], "i8"), IronError, "position 3 is -1;")
        self.assert_taken(numpy.array([1], ">u1"), [1])
        self.assert_refused([numpy.uint16(1), numpy.float32(2)], TypeError, "token 1 of the list")
        self.assert_refused([numpy.zeros(2, "u2")], TypeError, "of type ndarray; token ids")

    def test_lists_of_scalars(self):
        self.assert_taken([numpy.uint16(9), numpy.int64(3), 4], [9, 3, 4])

    def test_objects_that_become_arrays(self):
        class Series:
            def __init__(self, values):
                self.values = values

            def __array__(self, dtype=None):
                return self.values

        self.assert_taken(Series(numpy.array(TOKENS, "i2")), TOKENS)
        self.assert_refused(Series(numpy.array([1.5])), TypeError, "float64 values")
        self.assert_refused(Series(numpy.array([1, -1])), IronError, "position 3 is -1;")
        with self.assertRaisesRegex(TypeError, "cannot read tokens from type"):
            seal(Series)


@needs_numpy
class Interfaces(DigestTest):
    def interface(self, tokens, **changes):
        return Interface("__array_interface__", {**tokens.__array_interface__, **changes}, tokens)

    def test_array_interface(self):
        tokens = numpy.array(TOKENS, "u4")
        self.assert_taken(self.interface(tokens), TOKENS)
        self.assert_taken(self.interface(tokens.reshape(6, 10)), TOKENS)
        self.assert_taken(self.interface(tokens, shape=(6, 10), strides=(40, 4)), TOKENS)

    def test_refused_interfaces(self):
        tokens = numpy.array(TOKENS, "u4")
        for changes, words in (({"typestr": "<f4"}, "float32 values"),
                               ({"typestr": "|b1"}, "bool values"),
                               ({"typestr": ">u4"}, "big-endian"),
                               ({"typestr": "<f2"}, "float16 values"),
                               ({"typestr": "|V4"}, "void values"),
                               ({"version": 1}, "version 1"),
                               ({"data": None}, "no address"),
                               ({"mask": tokens}, "mask"),
                               ({"shape": (30,), "strides": (8,)}, "not contiguous")):
            self.assert_refused(self.interface(tokens, **changes), TypeError, words)


class CudaInterfaces(DigestTest):
    """Without a GPU, a well-formed interface gets as far as the library's error."""

    def fake(self, **changes):
        interface = {"shape": (4,), "typestr": "<i8", "data": (4096, False), "version": 3,
                     "strides": None, "stream": 1}
        return Interface("__cuda_array_interface__", {**interface, **changes})

    def test_library_error_is_raised(self):
        for changes in ({}, {"version": 2, "stream": None}, {"shape": (2, 2), "strides": (16, 8)},
                        {"typestr": "<u2"}, {"typestr": "|i1"}, {"stream": 2}):
            self.assert_refused(self.fake(**changes), IronError,
                                r"cannot read tokens on a GPU: .*; copy them to the CPU \(\.cpu")

    def test_empty_array_needs_no_gpu(self):
        self.assert_taken(self.fake(shape=(0,), data=(0, False)), [])

    def test_refused_interfaces(self):
        for changes, words in (({"version": 1}, "version 1"), ({"typestr": "<f2"}, "float16"),
                               ({"mask": 1}, "mask"),
                               ({"shape": (2, 2), "strides": (8, 16)}, "not contiguous")):
            self.assert_refused(self.fake(**changes), TypeError, words)


if __name__ == "__main__":
    unittest.main()
