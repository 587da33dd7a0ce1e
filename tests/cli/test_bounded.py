# SPDX-License-Identifier: MIT
"""Streams larger than memory: the command needs the same little for any size.

`iron gen` writes a long stream into a pipe, and `iron feed` reads it under an address
space of 512 MiB (`ulimit -v 524288`), with one thread and with eight.  The result must be
that of the scalar reference without any limit, and the peak of resident memory stays
under 200 MiB.  A file larger than the whole address space must be readable as well.

The pipe carries IRON_TEST_PIPE_MIB mebibytes: 256 unless told (64 in sanitized builds);
the long test sends 3072.  A sanitizer reserves terabytes of address space, so there the
limit cannot be set and those tests are skipped; its shadow memory is resident as well, so
the bound on memory is wider.  IRON_TEST_LONG=1 adds a stream that passes position 2^32.
"""

import os
import resource
import subprocess
import threading
import unittest

from harness import (LONG, REPORT_KEYS, SANITIZED, IronTest, argv, environment, oracle, pack,
                     parse_json)

MIB = 1 << 20
PIPE_MIB = int(os.environ.get("IRON_TEST_PIPE_MIB", "64" if SANITIZED else "256"))
ADDRESS_SPACE = 524288 * 1024
RESIDENT_KIB = (1600 if SANITIZED else 200) * 1024
TIMEOUT_S = 120 + PIPE_MIB  # a mebibyte a second is a very slow machine
NO_LIMIT = "a sanitizer cannot start in a limited address space"


def limit_address_space():
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))


class BoundedTest(IronTest):
    """Long inputs, and the command's peak of memory beside its report."""

    def open_gen(self, dtype="u32") -> subprocess.Popen:
        count = PIPE_MIB * MIB // (4 if dtype == "u32" else 2)
        return subprocess.Popen(
            argv(["gen", "--seed", 12, "--count", count, "--limit", 50257, "--dtype", dtype,
                  "-o", "-"]), stdout=subprocess.PIPE, env=environment())

    def feed_measured(self, source, *options, limited=False) -> tuple:
        """Feeds an open file; returns the report and the peak resident KiB of that process.

        wait4 gives the usage of this child alone; the peak includes the moment before it
        became `iron`, when it was a copy of this small interpreter.
        """
        args = argv(["feed", *options, "--backend", "cpu", "--json"])
        command = subprocess.Popen(args, stdin=source, stdout=subprocess.PIPE, cwd=self.dir,
                                   stderr=subprocess.PIPE, env=environment(),
                                   preexec_fn=limit_address_space if limited else None)
        watchdog = threading.Timer(TIMEOUT_S, command.kill)
        watchdog.start()
        with command.stdout, command.stderr:
            out, err = command.stdout.read(), command.stderr.read()
        _, status, usage = os.wait4(command.pid, 0)
        command.returncode = os.waitstatus_to_exitcode(status)
        watchdog.cancel()
        self.assertEqual((command.returncode, err), (0, b""))
        return parse_json(out), usage.ru_maxrss

    def feed_gen(self, *options, dtype="u32", limited=False) -> tuple:
        with self.open_gen(dtype) as source:
            found = self.feed_measured(source.stdout, "-", "--dtype", dtype, *options,
                                       limited=limited)
        self.assertEqual(source.returncode, 0)
        return found

    def assert_same(self, expected: dict, found: dict):
        self.assert_report({k: expected[k] for k in REPORT_KEYS}, found)

    def sparse_file(self, size: int):
        """Zeros that take no space on the disk."""
        path = self.dir / "zeros.bin"
        with open(path, "wb") as file:
            file.truncate(size)
        return path


class Bounded(BoundedTest):
    def test_resident_memory(self):
        expected, _ = self.feed_gen("--mode", "scalar")
        self.assertEqual(expected["tokens"], PIPE_MIB * MIB // 4)
        for threads in (1, 8):
            with self.subTest(threads=threads):
                found, peak = self.feed_gen("--mode", "champion", "--threads", threads, "--seal")
                self.assert_same(expected, found)
                self.assertLess(peak, RESIDENT_KIB)

    @unittest.skipIf(SANITIZED, NO_LIMIT)
    def test_a_long_pipe_in_a_small_address_space(self):
        expected, _ = self.feed_gen("--mode", "scalar")
        for options in (["--threads", 1], ["--threads", 8, "--mode", "champion"],
                        ["--threads", 8, "--seal", "--state", "run.state"]):
            with self.subTest(options=options):
                found, _ = self.feed_gen(*options, limited=True)
                self.assert_same(expected, found)

    @unittest.skipIf(SANITIZED, NO_LIMIT)
    def test_narrow_tokens_and_small_batches(self):
        options = ["--batch", 1000, "--nodes", 64]
        expected, _ = self.feed_gen(*options, "--mode", "scalar", dtype="u16")
        self.assertEqual(expected["tokens"], PIPE_MIB * MIB // 2)
        found, _ = self.feed_gen(*options, "--threads", 8, dtype="u16", limited=True)
        self.assert_same(expected, found)

    @unittest.skipIf(SANITIZED, NO_LIMIT)
    def test_a_batch_larger_than_the_address_space(self):
        options = ["--batch", 2**40, "--vocab", 65536]
        expected, _ = self.feed_gen(*options, "--mode", "scalar")
        found, _ = self.feed_gen(*options, limited=True)
        self.assertEqual(found["batches"], 1)
        self.assert_same(expected, found)

    @unittest.skipIf(SANITIZED, NO_LIMIT)
    def test_a_file_larger_than_the_address_space(self):
        size = max(768, PIPE_MIB) * MIB
        path = self.sparse_file(size)
        expected = self.feed(path, "--dtype", "u32", "--mode", "scalar")
        self.assertEqual(expected["tokens"], size // 4)
        found, _ = self.feed_measured(subprocess.DEVNULL, path, "--dtype", "u32", "--threads", 8,
                                      limited=True)
        self.assert_same(expected, found)


class FarPositions(BoundedTest):
    @unittest.skipUnless(LONG, "four gibibytes: set IRON_TEST_LONG=1")
    def test_positions_beyond_2_32(self):
        """2^32 tokens are fed and saved; what the next ones add, the oracle knows."""
        far = 2**32 + 5
        before, _ = self.feed_measured(subprocess.DEVNULL, self.sparse_file(far), "--dtype", "u8",
                                       "--nodes", 4, "--state", "far.state")
        tokens = oracle.gen(1, 4099, 2**32)
        for mode in ("scalar", "champion"):
            after = self.feed("-", "--resume", "far.state", "--dtype", "u32", "--mode", mode,
                              stdin=pack(tokens))
            added = oracle.contribution(tokens, far, oracle.DEFAULT_VOCAB)
            self.assertEqual(after["tokens"], far + 4099)
            self.assertEqual(int(after["xor"], 16) ^ int(before["xor"], 16), added.xor)
            self.assertEqual(int(after["sum"]) - int(before["sum"]), added.sum)


if __name__ == "__main__":
    unittest.main()
