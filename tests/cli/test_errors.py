# SPDX-License-Identifier: MIT
"""Invalid input: the command must fail with one line of explanation and write no files.

In all cases: exit 2, nothing on standard output, exactly one line on
standard error that begins with `iron: `, and the folder as it was before.  `refused` in
the harness checks it; the tests here list what must be refused.  Where the documents
promise that a message names something (the list of modes, `iron sniff`, the position of a
bad token), the test looks for it; the wording is otherwise free.

Saved states get most attention, since a damaged one that is accepted spoils everything
that follows: each truncation and each flipped bit that is tried must be refused.
"""

import os
import random
import resource
import signal
import struct
import subprocess
import unittest

from harness import CPU_MODES, REDUCED, SANITIZED, SEED, IronTest, Result, iron, npy, pack

BAD_NUMBERS = ("12x", "x", "", "-1", "1e", "1e-3", "k", "1.", ".5k", "1.5", "0x10", "1e30",
               "99999999999999999999")
FLIPS = 80 if REDUCED else 200


class ErrorTest(IronTest):
    def setUp(self):
        super().setUp()
        self.tokens = self.write_tokens("tokens.bin", range(100))

    def refused_feed(self, *options, says=(), **kwargs):
        """`iron feed` of valid tokens with invalid options."""
        return self.refused("feed", self.tokens, "--dtype", "u32", *options, "--json", says=says,
                            **kwargs)

    def refused_each(self, option, values, says=()):
        for value in values:
            with self.subTest(option=option, value=value):
                self.refused_feed(option, value, says=says)


class Usage(ErrorTest):
    def test_no_arguments(self):
        self.refused(says="help")

    def test_unknown_subcommand(self):
        self.refused("frobnicate", says="frobnicate")
        self.refused("", says=())

    def test_unknown_option(self):
        for command in (["feed", self.tokens, "--dtype", "u32"], ["info"], ["quantize", "1"],
                        ["gen", "--seed", 1, "--count", 1, "--limit", 2, "-o", "-"],
                        ["state", self.tokens], ["selftest"]):
            with self.subTest(command=command[0]):
                self.refused(*command, "--frobnicate", says="--frobnicate")
        self.refused("--frobnicate", says="--frobnicate")

    def test_missing_option_value(self):
        for option in ("--vocab", "--nodes", "--batch", "--positions", "--lattice", "--mode",
                       "--activations", "--threads", "--backend", "--device", "--format",
                       "--state", "--resume"):
            with self.subTest(option=option):
                self.refused("feed", self.tokens, "--dtype", "u32", option, says=option)
        self.refused("feed", self.tokens, "--dtype", says="--dtype")
        self.refused("gen", "--seed", 1, "--count", 1, "--limit", 2, "-o", says="-o")

    def test_no_files(self):
        self.refused("feed", "--dtype", "u32")
        self.refused("feed")
        self.refused("state")
        self.refused("quantize")

    def test_unknown_values(self):
        self.refused_each("--positions", ("", "Stream", "batches", "0"))
        self.refused_each("--format", ("", "parquet"))
        self.refused_each("--backend", ("", "foo"))
        for dtype in ("", "u64", "f32", "U32"):
            with self.subTest(dtype=dtype):
                self.refused("feed", self.tokens, "--dtype", dtype)
        self.refused("quantize", "--kind", "complex", "1", says="complex")

    def test_numbers(self):
        for option in ("--vocab", "--nodes", "--batch", "--threads", "--device"):
            self.refused_each(option, BAD_NUMBERS)

    def test_numbers_of_gen(self):
        good = {"--seed": 1, "--count": 1, "--limit": 2}
        for option in good:
            for value in BAD_NUMBERS + ("18446744073709551616",):
                with self.subTest(option=option, value=value):
                    args = [word for pair in (good | {option: value}).items() for word in pair]
                    self.refused("gen", *args, "-o", "new.bin")

    def test_values_of_quantize(self):
        for value in ("", "x", "7x", "nan", "--5", "1,2"):
            with self.subTest(value=value):
                self.refused("quantize", "--kind", "real", value)
        for value in ("", "x", "7x", "-1", "1.5", "4294967296"):
            with self.subTest(value=value, kind="xor"):
                self.refused("quantize", "--kind", "xor", value)

    def test_invalid_value_on_standard_input(self):
        result = self.iron("quantize", "-", stdin=b"1\nx\n")
        self.assertEqual(result.code, 2, str(result))
        self.assertRegex(result.message, r"\Airon: [^\n]+\n\Z")

    def test_quantize_lattice(self):
        for lattice in ("7", "7,7", "0,7", "7,x"):
            with self.subTest(lattice=lattice):
                self.refused("quantize", "--lattice", lattice, "1")


class Configuration(ErrorTest):
    def test_vocab(self):
        self.refused_each("--vocab", (0, 1, 2147483649), says="vocab")

    def test_nodes(self):
        self.refused_each("--nodes", (0, 1048577), says="nodes")

    def test_batch(self):
        self.refused_each("--batch", (0,), says="batch")

    def test_batch_times_vocab(self):
        for vocab, batch in ((2**31, 2**31 + 1), (2, 2**61 + 1), (50257, 2**62 // 50257 + 1),
                             (2, 2**63), (2**31, 2**63), (2**31, 2**64 - 1)):
            with self.subTest(vocab=vocab, batch=batch):
                self.refused_feed("--vocab", vocab, "--batch", batch, says="batch")

    def test_lattice(self):
        too_many = ",".join(str(p) for p in range(1, 66))
        self.refused_each("--lattice", (
            "7", "7,7", "15,7", "7,15,15", "7,23,15", "0,7", "7,65536", too_many,
            "", ",", "7,", ",7,15", "7,,15", "7;15", "a,b", "7,15x", "-7,15", "7,1e-2", "7.5,9",
            "7,99999999999999999999", "7,4294967303"), says="lattice")

    def test_unknown_mode_lists_the_modes(self):
        self.refused_each("--mode", ("", "fast", "Champion"))
        self.refused_feed("--mode", "fast", "--backend", "cpu", says=CPU_MODES)

    def test_gpu_mode_on_the_cpu_lists_the_modes(self):
        for mode in ("atomic2d", "tiled", "reduce"):
            with self.subTest(mode=mode):
                self.refused_feed("--mode", mode, "--backend", "cpu", says=(mode,) + CPU_MODES)

    def test_absent_backends(self):
        absent = {"IRON_CUDA_LIBRARY": "none", "IRON_OPENCL_LIBRARY": "none"}
        for backend in ("cuda", "opencl"):
            with self.subTest(backend=backend):
                result = iron("feed", self.tokens, "--dtype", "u32", "--backend", backend, "--json",
                              cwd=self.dir, env=absent)
                self.assertEqual(result.code, 2)
                self.assert_error_line(result, says=backend)


class Activations(ErrorTest):
    def refused_activations(self, data: bytes, says=()):
        path = self.write("activations.npy", data)
        self.refused_feed("--nodes", 4, "--activations", path, says=says)

    def test_values(self):
        for value in (float("nan"), float("inf"), float("-inf"), 1e-30, -1e-30, 1e-45,
                      2.0**-96 * (1 - 2.0**-24)):
            with self.subTest(value=value):
                self.refused_activations(npy([1.0, 2.0, value, 4.0]), says="activation")

    def test_values_at_the_limit_are_accepted(self):
        path = self.write("activations.npy", npy([2.0**-96, -(2.0**-96), 0.0, -0.0]))
        self.feed(self.tokens, "--dtype", "u32", "--nodes", 4, "--activations", path)

    def test_wrong_count(self):
        for count in (0, 1, 3, 5, 4096):
            with self.subTest(count=count):
                self.refused_activations(npy([1.0] * count))

    def test_not_an_npy(self):
        good = npy([1.0, 2.0, 3.0, 4.0])
        for name, data in {"empty": b"", "text": b"1.0\n2.0\n3.0\n4.0\n",
                           "bare": struct.pack("<4f", 1, 2, 3, 4), "magic alone": good[:6],
                           "short header": good[:40], "truncated": good[:-1],
                           "half": good[:-8], "trailing": good + b"\0",
                           "version 9": good[:6] + b"\x09" + good[7:],
                           "header too long": good[:8] + b"\xff\xff" + good[10:]}.items():
            with self.subTest(name=name):
                self.refused_activations(data)

    def test_other_types_and_shapes(self):
        for name, data in {"big-endian": npy([1.0] * 4, descr=">f4"),
                           "integers": npy([1, 2, 3, 4], descr="<i4", letter="i"),
                           "shape lies": npy([1.0] * 4, shape=(5,)),
                           "shape wraps": npy([1.0] * 4, shape=(2**62 + 4,)),
                           "shape negative": npy([1.0] * 4, shape=(-4,))}.items():
            with self.subTest(name=name):
                self.refused_activations(data)

    def test_missing(self):
        self.refused_feed("--activations", self.dir / "absent.npy", says="absent.npy")
        self.refused_feed("--activations", self.dir)


class Tokens(ErrorTest):
    def test_missing_file(self):
        self.refused("feed", "absent.bin", "--dtype", "u32", says="absent.bin")
        self.refused("feed", self.tokens, "absent.bin", "--dtype", "u32", says="absent.bin")
        self.refused("feed", "", "--dtype", "u32")
        self.refused("feed", self.tokens / "below", "--dtype", "u32")

    def test_name_with_a_line_break_is_printed_on_one_line(self):
        self.refused("feed", "absent\nfile\r.bin", "--dtype", "u32")

    def test_very_long_name(self):
        self.refused("feed", "x" * 3000, "--dtype", "u32")

    def test_empty_directory(self):
        (self.dir / "empty").mkdir()
        self.refused("feed", "empty", "--dtype", "u32", says="empty")

    def test_odd_size(self):
        for dtype, size in (("u16", 7), ("u32", 7), ("i32", 401), ("i64", 12), ("u32", 1)):
            with self.subTest(dtype=dtype, size=size):
                path = self.write("odd.bin", bytes(size))
                self.refused("feed", path, "--dtype", dtype, says="odd.bin")
                self.refused("feed", "-", "--dtype", dtype, stdin=bytes(size))
                whole = self.write("whole.bin", bytes(64))
                self.refused("feed", whole, path, "--dtype", dtype, says="odd.bin")

    def test_raw_without_dtype_names_sniff(self):
        self.refused("feed", self.tokens, says="iron sniff")
        self.refused("feed", self.tokens, "--format", "raw", says="iron sniff")
        self.refused("feed", "-", stdin=bytes(8), says="iron sniff")

    def test_values_outside_32_bits(self):
        for dtype, value in (("i32", -1), ("i32", -2**31), ("i64", -1), ("i64", 2**32),
                             ("i64", -2**63), ("i64", 2**63 - 1), ("i64", -2**32)):
            for position in (0, 1237, 2999):
                with self.subTest(dtype=dtype, value=value, position=position):
                    self.check_bad_value(dtype, value, position)

    def check_bad_value(self, dtype, value, position):
        tokens = [5] * 3000
        tokens[position] = value
        where = rf"(?<!\d){position}(?!\d)"
        path = self.write_tokens("bad.bin", tokens, dtype)
        self.refused("feed", path, "--dtype", dtype, "--state", "s", says=where)
        self.refused("feed", "-", "--dtype", dtype, "--batch", 100, "--threads", 4,
                     stdin=pack(tokens, dtype), says=where)

    def test_first_of_two_invalid_values_is_reported(self):
        tokens = [5] * 60000
        tokens[1237] = tokens[51237] = -1
        path = self.write_tokens("bad.bin", tokens, "i64")
        for threads in (1, 8):
            self.refused("feed", path, "--dtype", "i64", "--threads", threads,
                         says=r"(?<!\d)1237(?!\d)")

    def test_first_of_two_invalid_values_of_large_files_is_reported(self):
        """Files of 20 and 40 MB are mapped, and their values are checked while they are summed."""
        count, first, second = 5_000_000, 3_210_987, 4_321_098
        for dtype, value in (("i32", -7), ("i64", 1 << 32), ("i64", -1)):
            width = len(pack([0], dtype))
            data = bytearray(pack([5], dtype) * count)
            for position in (first, second):
                data[position * width:(position + 1) * width] = pack([value], dtype)
            path = self.write("bad.bin", data)
            for command in (["feed"], ["feed", "--seal"], ["sum"], ["sum", "--manifest", "m"]):
                for threads in (1, 8):
                    with self.subTest(dtype=dtype, command=command, threads=threads):
                        self.refused(*command, path, "--dtype", dtype, "--threads", threads,
                                     says=rf"byte {first * width}:.*position {first} is {value};")

    def test_gen_limits(self):
        for limit in (0, 4294967297):
            self.refused("gen", "--seed", 1, "--count", 5, "--limit", limit, "-o", "new.bin",
                         says="limit")
        self.refused("gen", "--seed", 1, "--count", 5, "--limit", 65537, "--dtype", "u16", "-o",
                     "new.bin", says="65536")
        for dtype in ("u8", "i32", "u64", ""):
            self.refused("gen", "--seed", 1, "--count", 5, "--limit", 5, "--dtype", dtype, "-o",
                         "new.bin")

    def test_gen_targets(self):
        for target in ("", ".", "absent/new.bin", "tokens.bin/new.bin"):
            with self.subTest(target=target):
                self.refused("gen", "--seed", 1, "--count", 5, "--limit", 5, "-o", target)


class StateTargets(ErrorTest):
    def test_target_must_be_a_regular_file(self):
        (self.dir / "folder").mkdir()
        self.refused_feed("--state", "folder", says="folder")
        os.mkfifo(self.dir / "fifo")
        self.refused_feed("--state", "fifo", says="fifo")

    def test_device_is_refused_and_not_replaced(self):
        null = self.device_node("null", 3)
        self.refused_feed("--state", null, says="null")
        self.assertTrue(null.is_char_device())

    def test_missing_directory(self):
        self.refused_feed("--state", "absent/run.state", says="absent")
        self.refused_feed("--state", self.tokens / "run.state")
        self.refused_feed("--state", "")

    def test_later_error_keeps_the_old_state(self):
        self.feed(self.tokens, "--dtype", "u32", "--nodes", 4, "--state", "run.state")
        bad = self.write_tokens("bad.bin", [1, 2, -3], "i32")
        self.refused("feed", bad, "--dtype", "i32", "--nodes", 4, "--state", "run.state")

    def test_file_that_is_not_a_state(self):
        for command in (["state", self.tokens],
                        ["feed", self.tokens, "--dtype", "u32", "--resume", self.tokens]):
            self.refused(*command, says="iron feed --state")

    def test_invalid_output_of_state(self):
        self.feed(self.tokens, "--dtype", "u32", "--nodes", 4, "--state", "run.state")
        self.refused("state", "run.state", "--npy", self.tokens)
        self.refused("state", "run.state", "--npy", self.tokens / "below")


class DamagedStates(ErrorTest):
    """`--resume` and `iron state` with damaged files."""

    def setUp(self):
        super().setUp()
        self.feed(self.tokens, "--dtype", "u32", "--nodes", 5, "--batch", 7, "--seal",
                  "--state", "good.state")
        self.good = (self.dir / "good.state").read_bytes()
        self.rng = random.Random(f"{SEED} {self.id()}")

    def attempts(self, data: bytes) -> list[Result]:
        """Resuming from the data and reading it out."""
        path = self.write("bad.state", data)
        return [iron("feed", self.tokens, "--dtype", "u32", "--resume", path, cwd=self.dir),
                iron("state", path, "--json", cwd=self.dir)]

    def refused_state(self, data: bytes, says=()) -> str:
        for result in self.attempts(data):
            self.assert_error_line(result, says)
        return result.message

    def test_missing(self):
        self.refused_feed("--resume", "absent.state", says="absent.state")
        self.refused("state", "absent.state", says="absent.state")
        self.refused_feed("--resume", self.dir)
        self.refused("state", self.dir)

    def test_other_files_are_refused(self):
        for name, data in {"text": b"hello, world\n" * 40, "zeros": bytes(4096),
                           "random": self.rng.randbytes(4096), "tokens": pack(range(5000)),
                           "npy": npy([1.0] * 4), "shifted": b"\0" + self.good,
                           "line": b"\n"}.items():
            with self.subTest(name=name):
                self.refused_state(data, says="bad.state")

    def test_empty(self):
        self.refused_state(b"", says="bad.state")

    def test_truncated(self):
        cuts = {1, 4, 8, 15, 16, 31, len(self.good) // 2, len(self.good) - 4, len(self.good) - 1}
        for cut in sorted(cuts):
            with self.subTest(cut=cut):
                self.refused_state(self.good[:cut])
        self.refused_state(self.good[:-1], says="truncated|short|size|bytes|ends")

    def test_extended(self):
        for tail in (b"\0", b"\n", self.good):
            with self.subTest(tail=len(tail)):
                self.refused_state(self.good + tail)

    def test_any_flipped_bit_is_detected(self):
        head = [8 * byte + self.rng.randrange(8) for byte in range(min(64, len(self.good)))]
        rest = [self.rng.randrange(8 * len(self.good)) for _ in range(FLIPS - len(head))]
        for bit in head + rest:
            with self.subTest(byte=bit // 8, bit=bit % 8):
                self.assert_error_line(self.attempts(self.flipped(bit))[0])

    def test_damage_in_the_middle_is_reported_as_damage(self):
        bit = 8 * (len(self.good) - 20) + 3
        self.refused_state(self.flipped(bit), says="checksum|damaged|corrupt")

    def test_newer_version_is_reported(self):
        """The version is near the beginning, and the checksum of a newer version is unknown.  At
        least one bit flip in the first bytes must therefore report the version."""
        messages = [self.attempts(self.flipped(8 * byte + 1))[0].message for byte in range(32)]
        named = [m for m in messages if "version" in m.lower() or "newer" in m.lower()]
        self.assertTrue(named, "no flip of the first 32 bytes was called a newer version: "
                        + repr(sorted(set(messages))))

    def flipped(self, bit: int) -> bytes:
        data = bytearray(self.good)
        data[bit // 8] ^= 1 << bit % 8
        return bytes(data)

    def test_options_that_contradict_the_state(self):
        other = self.write("other.npy", npy([1.0, 2.0, 3.0, 4.0, 5.0]))
        for flags in (["--vocab", 7], ["--nodes", 6], ["--batch", 8], ["--positions", "batch"],
                      ["--lattice", "1,2,3"], ["--activations", other]):
            with self.subTest(flag=flags[0]):
                self.refused_feed("--resume", "good.state", *flags, says=flags[0].strip("-"))

    def test_refused_resume_keeps_the_target(self):
        self.write("bad.state", self.good[:-1])
        self.refused_feed("--resume", "bad.state", "--state", "good.state")
        self.refused_feed("--resume", "bad.state", "--state", "new.state")


class FullDisk(ErrorTest):
    """A full disk: a small tmpfs if it can be mounted, and a file size limit everywhere."""

    GEN = ("gen", "--seed", 1, "--count", 1000000, "--limit", 9, "-o")

    def setUp(self):
        super().setUp()
        self.small_state = ("feed", self.tokens, "--dtype", "u32", "--nodes", 4, "--state")
        self.large_state = ("feed", self.tokens, "--dtype", "u32", "--nodes", 65536, "--state")

    def tiny_disk(self):
        """A tmpfs of 16 KiB inside the test's folder; always unmounted at the end."""
        disk = self.dir / "disk"
        disk.mkdir()
        try:
            mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", disk],
                                     stderr=subprocess.PIPE, check=False)
        except OSError as error:
            self.skipTest(f"no tiny tmpfs: {error}")
        if mounted.returncode != 0:
            self.skipTest(f"no tiny tmpfs: {mounted.stderr.decode().strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=False)
        return disk

    def test_saving_a_state(self):
        disk = self.tiny_disk()
        self.refused(*self.large_state, disk / "new.state", says="space")
        self.succeeds(*self.small_state, disk / "run.state")
        self.refused(*self.large_state, disk / "run.state", says="space")
        self.succeeds("state", disk / "run.state")

    def test_generating(self):
        disk = self.tiny_disk()
        self.refused(*self.GEN, disk / "new.bin", says="space")
        self.write("disk/old.bin", b"precious")
        self.refused(*self.GEN, disk / "new.bin", says="space")

    def test_reading_out(self):
        disk = self.tiny_disk()
        self.succeeds(*self.large_state, "large.state")
        target = disk / "arrays"
        target.mkdir()
        self.refused("state", "large.state", "--npy", target, says="space")

    def limited(self) -> dict:
        """A limit of 16 KiB on files, with the signal ignored, so that writing fails with EFBIG."""
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (16384, 16384))
        return {"preexec_fn": limit, "restore_signals": False}

    @unittest.skipIf(SANITIZED, "a sanitizer's own files do not fit the limit")
    def test_file_size_limit(self):
        self.succeeds(*self.small_state, "run.state")
        self.refused(*self.large_state, "run.state", **self.limited())
        self.refused(*self.large_state, "new.state", **self.limited())
        self.refused(*self.GEN, "new.bin", **self.limited())

    def test_full_device(self):
        full = self.device_node("full", 7)
        self.refused(*self.GEN, full)
        self.assertTrue(full.is_char_device())

    def test_standard_output_on_a_full_device(self):
        self.succeeds(*self.small_state, "run.state")
        for command in (["feed", self.tokens, "--dtype", "u32", "--json"],
                        ["feed", self.tokens, "--dtype", "u32"], [*self.GEN, "-"],
                        ["gen", "--seed", 1, "--count", 1, "--limit", 9, "-o", "-"],
                        ["state", "run.state"], ["state", "run.state", "--json"],
                        ["state", "run.state", "--csv"], ["quantize", "1"], ["info"],
                        ["--version"], ["--help"], ["feed", "--help"]):
            with self.subTest(command=command), open("/dev/full", "wb") as full:
                self.refused(*command, stdout=full)


if __name__ == "__main__":
    unittest.main()
