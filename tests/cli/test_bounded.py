# SPDX-License-Identifier: MIT
"""Streams larger than memory: memory use does not depend on the size of the input.

`iron gen` writes a long stream into a pipe, and `iron feed` reads it under an address
space of 512 MiB (`ulimit -v 524288`), with one thread and with eight.  The result must be
that of the scalar reference without any limit, and the peak of resident memory stays
under 200 MiB.  A file larger than the whole address space must be readable as well.

The pipe carries IRON_TEST_PIPE_MIB mebibytes: 256 unless told (64 in sanitized builds);
the long test sends 3072.  A sanitizer reserves terabytes of address space, so there the
limit cannot be set and those tests are skipped; its shadow memory is resident as well, so
the bound on memory is wider.  IRON_TEST_LONG=1 adds a stream that passes position 2^32.

The commands of the seal read files of 10 GiB (64 MiB in sanitized builds) that are zeros but
for a few tokens and take no space on the disk.  The oracle cannot go through so many tokens,
and need not: the words of a seal are sums over quads, so those of such a file are the words
of as many zeros, taken by another width, plus what the oracle says of the few quads; each
chunk of a manifest is that of 2^20 zeros, changed likewise; and a short range anywhere in a
stream, as `--part I/N` cuts it, the oracle does go through.  `sum` and `stat` read all 10 GiB;
the others less, unless IRON_TEST_LONG=1, which also sends 10 GiB through pipes and reads on
behind position 2^34, where the keys of the seal change their window.
"""

import json
import os
import random
import resource
import subprocess
import threading
import unittest

from harness import (FULL, LONG, REDUCED, REPORT_KEYS, SANITIZED, SEED, IronTest, argv, environment,
                     oracle, pack, parse_json)

MIB = 1 << 20
PIPE_MIB = int(os.environ.get("IRON_TEST_PIPE_MIB", "64" if REDUCED else "256"))
ADDRESS_SPACE = 524288 * 1024
RESIDENT_KIB = (1600 if SANITIZED else 200) * 1024
LARGE = (64 if SANITIZED else 10240 if FULL else 1536) * MIB
TIMEOUT_S = 600 + max(PIPE_MIB, LARGE // MIB // 8)  # reached only by a hung test
MEDIUM = LARGE if LONG else min(LARGE, 1536 * MIB)  # still three times the address space
CHUNK = 2**20
U64 = 2**64 - 1
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
        """Feeds an open file; returns the report and the peak resident KiB of that process."""
        return self.measured(source, "feed", *options, limited=limited)

    def measured(self, source, *args, limited=False, code=0, says=b"") -> tuple:
        """Runs a command on the CPU; returns its JSON and the peak resident KiB of that process.

        wait4 gives the usage of this child alone; the peak includes the moment before it
        became `iron`, when it was a copy of this small interpreter.
        """
        command = subprocess.Popen(argv([*args, "--backend", "cpu", "--json"]), stdin=source,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.dir,
                                   env=environment(),
                                   preexec_fn=limit_address_space if limited else None)
        watchdog = threading.Timer(TIMEOUT_S, command.kill)
        watchdog.start()
        with command.stdout, command.stderr:
            out, err = command.stdout.read(), command.stderr.read()
        _, status, usage = os.wait4(command.pid, 0)
        command.returncode = os.waitstatus_to_exitcode(status)
        watchdog.cancel()
        self.assertEqual((command.returncode, err), (code, says), f"{args}: {out[:400]}")
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
    def test_resident_memory_is_bounded(self):
        expected, _ = self.feed_gen("--mode", "scalar")
        self.assertEqual(expected["tokens"], PIPE_MIB * MIB // 4)
        for threads in (1, 8):
            with self.subTest(threads=threads):
                found, peak = self.feed_gen("--mode", "champion", "--threads", threads, "--seal")
                self.assert_same(expected, found)
                self.assertLess(peak, RESIDENT_KIB)

    @unittest.skipIf(SANITIZED, NO_LIMIT)
    def test_long_pipe_in_a_small_address_space(self):
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
    def test_batch_larger_than_the_address_space(self):
        options = ["--batch", 2**40, "--vocab", 65536]
        expected, _ = self.feed_gen(*options, "--mode", "scalar")
        found, _ = self.feed_gen(*options, limited=True)
        self.assertEqual(found["batches"], 1)
        self.assert_same(expected, found)

    @unittest.skipIf(SANITIZED, NO_LIMIT)
    def test_file_larger_than_the_address_space(self):
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
        """Feeds and saves 2^32 tokens; the oracle checks the contribution of the next ones."""
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


class Sparse:
    """A raw file of zeros except for a few tokens, and its expected figures."""

    def __init__(self, path, dtype, count, tokens):
        self.path, self.dtype, self.count, self.tokens = path, dtype, count, dict(tokens)
        with open(path, "wb") as file:
            file.truncate(count * len(pack([0], dtype)))
        for position, value in tokens.items():
            self.put(position, value)

    def put(self, position, value):
        data = pack([value], self.dtype)
        with open(self.path, "r+b") as file:
            file.seek(position * len(data))
            file.write(data)
        self.tokens[position] = value

    def piece(self, first, count) -> list:
        return [self.tokens.get(k, 0) for k in range(first, first + count)]

    def added(self) -> tuple:
        """How far the words are from those of as many zeros."""
        a = b = 0
        for q in {position // 4 for position in self.tokens}:
            with_tokens = oracle.seal_quad(q, self.piece(4 * q, 4))
            of_zeros = oracle.seal_quad(q, [0] * 4)
            a += with_tokens[0] - of_zeros[0]
            b += with_tokens[1] - of_zeros[1]
        return 0, sum(self.tokens.values()), a, b

    def longest_run(self) -> dict:
        ends = [-1, *sorted(self.tokens), self.count]
        length, before = max((right - left - 1, -left) for left, right in zip(ends, ends[1:]))
        return {"length": length, "position": 1 - before, "value": 0}


def words_at(tokens, first) -> list:
    """The words of a piece of a stream that begins at a multiple of 4, at its place."""
    a = b = 0
    for k in range(0, len(tokens), 4):
        quad = tokens[k:k + 4]
        more = oracle.seal_quad((first + k) // 4, quad + [0] * (4 - len(quad)))
        a, b = a + more[0], b + more[1]
    return [len(tokens), sum(tokens) & U64, a & U64, b & U64]


class SparseTest(BoundedTest):
    """The commands of the seal, in the small address space (where one can be set)."""

    def setUp(self):
        super().setUp()
        self.rng = random.Random(f"{SEED} {self.id()}")

    def sparse(self, name, dtype, size) -> Sparse:
        """Tokens in the first quad, the last one, at both sides of a chunk, and anywhere."""
        count = size // len(pack([0], dtype))
        places = [1, 2, count - 1, 7 * CHUNK - 1, 7 * CHUNK]
        places += [self.rng.randrange(count) for _ in range(9)]
        limit = 256 if dtype == "u8" else 60000
        return Sparse(self.dir / name, dtype, count,
                      {k: self.rng.randrange(1, limit) for k in places if k < count})

    def bounded(self, *args, source=subprocess.DEVNULL, **expected):
        found, peak = self.measured(source, *args, limited=not SANITIZED, **expected)
        self.assertLess(peak, RESIDENT_KIB, str(args))
        return found

    def sum(self, stream, *options, **expected) -> dict:
        report, = self.bounded("sum", stream.path, "--dtype", stream.dtype, *options, **expected)
        return report

    def words_of_zeros(self, count) -> list:
        """Computed with one-byte tokens, which use a different kernel."""
        zeros = Sparse(self.dir / "zeros.u8", "u8", count, {})
        report = self.sum(zeros, "--threads", 3)
        self.assertEqual((report["min"], report["max"], report["out_of_vocab"]), (0, 0, 0))
        return [int(w) for w in report["words"]]

    def assert_sum(self, stream, report, of_zeros):
        words = [(zero + more) & U64 for zero, more in zip(of_zeros, stream.added())]
        self.assertEqual(report["words"], [str(w) for w in words])
        self.assertEqual(report["seal"], oracle.seal_text(words))
        out = {k: v for k, v in stream.tokens.items() if v >= report["vocab"]}
        self.assertEqual((report["tokens"], report["min"], report["max"], report["out_of_vocab"]),
                         (stream.count, 0, max(stream.tokens.values()), len(out)))
        first = {"position": min(out), "value": out[min(out)]} if out else None
        self.assertEqual(report["first_out_of_vocab"], first)

    def assert_part(self, stream, index, parts, *options):
        """One short part, wherever it lies, against the oracle."""
        report = self.sum(stream, "--part", f"{index}/{parts}", "-o", self.dir / "part", *options)
        first, count = report["first"], report["tokens"]
        self.assertEqual((first % 4, report["stream_tokens"]), (0, stream.count))
        self.assertLess(abs(count - stream.count // parts), 8)
        words = words_at(stream.piece(first, count), first)
        self.assertEqual(report["words"], [str(w) for w in words])
        return first, count

    def assert_part_with(self, stream, position, parts, *options):
        """Checks the short part that contains a position; rounding may shift it by a few parts."""
        index = position * parts // stream.count + 1
        for _ in range(4):
            first, count = self.assert_part(stream, index, parts, *options)
            if first <= position < first + count:
                return
            index += (position - first) // count
        self.fail(f"no part with position {position}")


class SparseFiles(SparseTest):
    def test_sum(self):
        for dtype in ("u32", "u16"):
            with self.subTest(dtype=dtype):
                stream = self.sparse(f"large.{dtype}", dtype, LARGE)
                of_zeros = self.words_of_zeros(stream.count)
                self.assertEqual(of_zeros[:2], [stream.count, 0])
                out = {k: v for k, v in stream.tokens.items() if v >= 30000}
                warning = (f"iron: warning: {stream.path}: {len(out)} of {stream.count} tokens are "
                           f"not below --vocab 30000; the first is {out[min(out)]} at position "
                           f"{min(out)}\n")
                self.assertGreater(len(out), 1)
                self.assert_sum(stream, self.sum(stream, "--vocab", 30000, says=warning.encode()),
                                of_zeros)
                parts = stream.count // 2000
                for position in (0, stream.count - 1, *stream.tokens):
                    self.assert_part_with(stream, position, parts)

    def test_parts_at_distant_positions(self):
        """Four key windows; only short parts are read.  Chunks of 2^20 tokens end at window
        boundaries; chunks of the other size cross them."""
        stream = self.sparse("far.u8", "u8", 2**36 + 5)
        for window in range(1, 4):
            stream.put(window * 2**34 - 1, 200 + window)
            stream.put(window * 2**34, 100 + window)
        stream.put(stream.count - 1, 77)
        parts = 2**24 - 3  # 4096 tokens each, at odd places
        for position in (0, stream.count - 1, *stream.tokens):
            for chunk in (CHUNK, 4 * 8199):
                self.assert_part_with(stream, position, parts, "--chunk", chunk)

    def test_merged_parts_equal_the_whole(self):
        stream = self.sparse("parts.u16", "u16", MEDIUM)
        names = [f"part-{k}" for k in range(1, 6)]
        for k, name in enumerate(names, 1):
            self.sum(stream, "--part", f"{k}/5", "-o", name, "--threads", k)
        whole = self.sum(stream, "--manifest", "whole")
        self.rng.shuffle(names)
        merged, = self.json("merge", *names, "-o", "merged")
        self.assertEqual(merged["words"], whole["words"])
        self.assertEqual((self.dir / "merged").read_bytes(), (self.dir / "whole").read_bytes())

    def test_manifest_check_and_diff(self):
        stream = self.sparse("medium.u16", "u16", MEDIUM)
        other = Sparse(self.dir / "other.u16", "u16", stream.count, stream.tokens)
        self.sum(stream, "--manifest", "m")
        self.assert_chunks(stream, json.loads((self.dir / "m").read_text())["chunks"])
        found, = self.bounded("check", "m")
        self.assertEqual(found["status"], "ok")
        same = self.bounded("diff", stream.path, other.path, "--dtype", "u16")
        self.assertEqual((same["equal"], same["tokens"]), (True, [stream.count] * 2))
        position = stream.count - 3 * CHUNK // 2
        value = stream.tokens.get(position, 0)
        other.put(position, value ^ 1)
        for side in (stream.path, "m"):
            self.assert_changed(self.bounded("diff", side, other.path, "--dtype", "u16", code=1),
                                stream, position, [value, value ^ 1])
        stream.put(position, value ^ 1)
        self.assert_check_failed(position)

    def assert_chunks(self, stream, chunks):
        """Every chunk's words: those of 2^20 zeros, and more where tokens are."""
        self.assertEqual(len(chunks), -(-stream.count // CHUNK))
        self.assertEqual(stream.count % CHUNK, 0)
        _, _, a0, b0 = oracle.seal_words([0] * CHUNK)
        for k, line in enumerate(chunks):
            inside = {p - k * CHUNK: v for p, v in stream.tokens.items() if p // CHUNK == k}
            t = sum(inside.values())
            a, b = a0, b0
            for q in {p // 4 for p in inside}:
                quad = [inside.get(p, 0) for p in range(4 * q, 4 * q + 4)]
                a += oracle.seal_quad(q, quad)[0] - oracle.seal_quad(q, [0] * 4)[0]
                b += oracle.seal_quad(q, quad)[1] - oracle.seal_quad(q, [0] * 4)[1]
            self.assertEqual(line.split()[:3], [f"{w & U64:x}" for w in (t, a, b)], f"chunk {k}")

    def assert_changed(self, report, stream, position, values):
        begin = position // CHUNK * CHUNK
        self.assertEqual(report["first_difference"],
                         {"position": position, "end": position + 1, "values": values})
        self.assertEqual((report["kind"], report["differing_chunks"], report["ranges"]),
                         ("changed", 1, [[begin, begin + CHUNK]]))
        self.assertEqual(report["tokens"], [stream.count] * 2)

    def assert_check_failed(self, position):
        found, = self.bounded("check", "m", code=1, says=b"iron: 1 file differs\n")
        begin = position // CHUNK * CHUNK
        self.assertEqual(found["status"], "failed")
        self.assertIn(f"positions {begin} to {begin + CHUNK - 1} differ", found["reason"])

    def test_stat(self):
        stream = self.sparse("stat.u32", "u32", LARGE)
        eos = stream.tokens[1]
        report = self.bounded("stat", stream.path, "--dtype", "u32", "--vocab", 30000, "--eos", eos,
                              "--hist")
        self.assertEqual((report["tokens"], report["zeros"], report["min"], report["max"]),
                         (stream.count, stream.count - len(stream.tokens), 0,
                          max(stream.tokens.values())))
        out = sorted(k for k, v in stream.tokens.items() if v >= 30000)
        self.assertEqual(report["out_of_vocab"], len(out))
        self.assertEqual([(p["position"], p["value"]) for p in report["out_of_vocab_places"]],
                         [(k, stream.tokens[k]) for k in out[:8]])
        self.assertEqual(report["longest_run"], stream.longest_run())
        ends = sorted(k + 1 for k, v in stream.tokens.items() if v == eos)
        count = len(ends) + (ends[-1] != stream.count)
        self.assertEqual(report["documents"]["count"], count)
        self.assertEqual(report["histogram"]["top"][0], {"id": 0, "count": report["zeros"]})

    def piped(self, stream, *args, code=0):
        with subprocess.Popen(["cat", stream.path], stdout=subprocess.PIPE) as source:
            found = self.bounded(*args, source=source.stdout, code=code)
        self.assertEqual(source.returncode, 0)
        return found

    def test_pipes(self):
        stream = self.sparse("piped.u16", "u16", LARGE if LONG else min(PIPE_MIB, 256) * MIB)
        report, = self.piped(stream, "sum", "-", "--dtype", "u16")
        self.assert_sum(stream, report, self.words_of_zeros(stream.count))
        again, = self.piped(stream, "sum", "-", "--dtype", "u16", "--manifest", "piped.m")
        self.assertEqual(again["words"], report["words"])
        figures = self.piped(stream, "stat", "-", "--dtype", "u16", "--vocab", 30000)
        self.assertEqual((figures["tokens"], figures["longest_run"]),
                         (stream.count, stream.longest_run()))
        other = Sparse(self.dir / "other.u16", "u16", stream.count, stream.tokens)
        other.put(stream.count - CHUNK // 2, 60001)
        value = stream.tokens.get(stream.count - CHUNK // 2, 0)
        report = self.piped(other, "diff", stream.path, "-", "--dtype", "u16", code=1)
        self.assert_changed(report, stream, stream.count - CHUNK // 2, [value, 60001])

    @unittest.skipUnless(LONG and not SANITIZED, "16 gibibytes: set IRON_TEST_LONG=1")
    def test_second_key_window(self):
        stream = self.sparse("windows.u8", "u8", 2**34 + 4 * CHUNK)
        stream.put(2**34 - 1, 201)
        stream.put(2**34, 202)
        self.assert_sum(stream, self.sum(stream), self.words_of_zeros(stream.count))


if __name__ == "__main__":
    unittest.main()
