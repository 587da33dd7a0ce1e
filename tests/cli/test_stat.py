# SPDX-License-Identifier: MIT
"""`iron stat` against a short Python model, with every kind of input."""

import math
import os
import random
import subprocess
import threading
from collections import Counter

from harness import DTYPES, IronTest, SEED, npy, pack, parse_json, start

PLACES = 8
KEYS = ("tokens", "min", "max", "zeros", "vocab", "out_of_vocab", "out_of_vocab_places",
        "longest_run", "files", "seconds", "gb_per_s")


def longest_run(tokens):
    best = None
    begin = 0
    for k, token in enumerate(tokens):
        if token != tokens[begin]:
            begin = k
        if best is None or k - begin + 1 > best["length"]:
            best = {"length": k - begin + 1, "position": begin, "value": token}
    return best


def documents(tokens, eos):
    lengths, empty, open_length = [], 0, 0
    for token in tokens:
        open_length += 1
        if token == eos:
            empty += open_length == 1
            lengths.append(open_length)
            open_length = 0
    if open_length:
        lengths.append(open_length)
    n = len(lengths)
    lengths.sort()
    return {"count": n, "min": lengths[0] if n else None, "max": lengths[-1] if n else None,
            "mean": len(tokens) / n if n else None,
            "median": lengths[(n + 1) // 2 - 1] if n else None,
            "p95": lengths[-(-95 * n // 100) - 1] if n else None,
            "empty": empty, "last_open": open_length > 0}


def unused_ranges(counts, vocab):
    ranges = []
    for token in range(vocab):
        if counts[token]:
            continue
        if ranges and ranges[-1][1] == token - 1:
            ranges[-1][1] = token
        else:
            ranges.append([token, token])
    return ranges


def histogram(tokens, vocab, top):
    counts = Counter(t for t in tokens if t < vocab)
    total = sum(counts.values())
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:top]
    return {"used": len(counts), "unused": vocab - len(counts),
            "entropy_bits": math.fsum(c / total * math.log2(total / c) for c in counts.values()),
            "top": [{"id": token, "count": count} for token, count in ranked],
            "unused_ids": unused_ranges(counts, vocab)[:16]}


def model(tokens, vocab, eos=None, hist=False, top=10):
    strangers = [{"position": k, "value": t} for k, t in enumerate(tokens) if t >= vocab]
    found = {"tokens": len(tokens), "min": min(tokens, default=None),
             "max": max(tokens, default=None), "zeros": tokens.count(0), "vocab": vocab,
             "out_of_vocab": len(strangers), "out_of_vocab_places": strangers[:PLACES],
             "longest_run": longest_run(tokens)}
    if eos is not None:
        found["documents"] = documents(tokens, eos)
        found["document_cut"] = f"eos={eos}"
    if hist:
        found["histogram"] = histogram(tokens, vocab, top)
    return found


class StatTest(IronTest):
    def setUp(self):
        super().setUp()
        self.rng = random.Random(f"{SEED} {self.id()}")

    def stream(self, count, values, run=1):
        tokens = []
        while len(tokens) < count:
            tokens += [self.rng.randrange(values)] * (1 + self.rng.randrange(run))
        return tokens[:count]

    def assert_found(self, wanted, found):
        self.assertEqual(set(found), set(KEYS) | ({"documents", "document_cut", "histogram"} & set(wanted)))
        for place in found["out_of_vocab_places"]:
            place.pop("file"), place.pop("offset")
        if "histogram" in wanted:
            bits = wanted["histogram"].pop("entropy_bits")
            self.assertAlmostEqual(bits, found["histogram"].pop("entropy_bits"), delta=1e-9)
        if wanted.get("documents", {}).get("mean") is not None:
            mean = wanted["documents"].pop("mean")
            self.assertAlmostEqual(mean, found["documents"].pop("mean"), delta=1e-9 * mean)
        self.assertEqual(wanted, {key: found[key] for key in wanted})


class Figures(StatTest):
    def check(self, tokens, vocab, eos=None, hist=False, dtype="u16", options=()):
        path = self.write_tokens("t.bin", tokens, dtype)
        flags = ["--eos", eos] if eos is not None else []
        flags += ["--hist"] if hist else []
        found = self.json("stat", path, "--dtype", dtype, "--vocab", vocab, *flags, *options)
        self.assert_found(model(tokens, vocab, eos, hist), found)

    def test_empty_stream_and_one_token(self):
        self.check([], 5, eos=1, hist=True)
        self.check([], 5)
        for token in (0, 1, 4, 5, 65535):
            self.check([token], 5, eos=1, hist=True)

    def test_every_width(self):
        for dtype in DTYPES:
            self.check(self.stream(3000, 120, run=7), 100, eos=3, hist=True, dtype=dtype)

    def test_one_repeated_value(self):
        for token in (0, 6, 9):
            self.check([token] * 2000, 7, eos=6, hist=True)

    def test_any_number_of_threads(self):
        tokens = self.stream(200000, 300, run=40)
        tokens[60000:70000] = [7] * 10000  # across the end of a piece
        for threads in (1, 2, 5):
            self.check(tokens, 290, eos=299, hist=True, options=("--threads", threads))

    def test_large_values(self):
        tokens = [2**32 - 1, 2**32 - 2, 2**31, 0, 2**32 - 1]
        self.check(tokens, 2**32, eos=2**32 - 1, dtype="u32")
        self.check(tokens, 2**32 - 1, eos=2**32 - 2, dtype="u32")

    def test_eos_larger_than_the_dtype(self):
        self.check(self.stream(1000, 9), 9, eos=70000)

    def test_top(self):
        tokens = self.stream(5000, 40)
        path = self.write_tokens("t.bin", tokens, "u8")
        for top in (0, 1, 39, 1000):
            found = self.json("stat", path, "--dtype", "u8", "--vocab", 50, "--hist", "--top", top)
            self.assertEqual(found["histogram"]["top"], histogram(tokens, 50, top)["top"])

    def test_ranges_of_unused_ids_are_bounded(self):
        found = self.json("stat", self.write_tokens("t.bin", range(0, 1000, 2), "u16"), "--dtype",
                          "u16", "--vocab", 1000, "--hist")
        self.assertEqual(found["histogram"]["unused"], 500)
        self.assertEqual(found["histogram"]["unused_ids"], [[k, k] for k in range(1, 33, 2)])


class Streams(StatTest):
    def test_several_files_are_one_stream(self):
        tokens = self.stream(9000, 60, run=9)
        cuts = [0, 10, 10, 4000, 4001, 9000]
        names = []
        for k in range(5):
            self.write_tokens(f"d/f{k}", tokens[cuts[k]:cuts[k + 1]], "u16")
            names.append(f"d/f{k}")
        for inputs in (names, ["d"]):
            found = self.json("stat", *inputs, "--dtype", "u16", "--vocab", 50, "--eos", 2, "--hist")
            self.assertEqual([os.path.normpath(f) for f in found["files"]], names)
            for place in found["out_of_vocab_places"]:
                file = os.path.normpath(place["file"])
                k = names.index(file)
                self.assertEqual(place["position"], cuts[k] + place["offset"])
                self.assertLess(place["position"], cuts[k + 1])
            self.assert_found(model(tokens, 50, 2, True), found)

    def test_files_with_headers(self):
        tokens = self.stream(3000, 60, run=9)
        self.write("a.npy", npy(tokens[:1111], "<u2", "H"))
        self.write("b.npy", npy(tokens[1111:], "<u2", "H"))
        found = self.json("stat", "a.npy", "b.npy", "--vocab", 59, "--eos", 2, "--hist")
        for place in found["out_of_vocab_places"]:
            first = {"a.npy": 0, "b.npy": 1111}[place["file"]]
            self.assertEqual(place["position"], first + place["offset"])
        self.assert_found(model(tokens, 59, 2, True), found)

    def test_standard_input(self):
        tokens = self.stream(100000, 60, run=9)
        found = self.json("stat", "-", "--dtype", "u16", "--vocab", 50, "--eos", 2, "--hist",
                          stdin=pack(tokens, "u16"))
        self.assertEqual({p["file"] for p in found["out_of_vocab_places"]}, {"-"})
        self.assert_found(model(tokens, 50, 2, True), found)

    def test_named_pipe(self):
        tokens = self.stream(3000, 9)
        os.mkfifo(self.dir / "pipe")
        writer = threading.Thread(
            target=lambda: (self.dir / "pipe").write_bytes(pack(tokens, "u8")))
        writer.start()
        found = self.json("stat", "pipe", "--dtype", "u8", "--vocab", 7, "--eos", 2)
        writer.join()
        self.assert_found(model(tokens, 7, 2), found)

    def test_pipe_with_small_writes(self):
        tokens = self.stream(5000, 9)
        with start("stat", "-", "--dtype", "u32", "--vocab", 9, "--json", cwd=self.dir,
                   stdin=subprocess.PIPE, stdout=subprocess.PIPE) as command:
            data = pack(tokens)
            for k in range(0, len(data), 1001):
                command.stdin.write(data[k:k + 1001])
                command.stdin.flush()
            out, _ = command.communicate()
        self.assertEqual(command.returncode, 0)
        self.assert_found(model(tokens, 9), parse_json(out))


class Example(StatTest):
    def test_histogram_of_the_library(self):
        program = os.environ.get("IRON_EXAMPLE_HISTOGRAM")
        if not program:
            self.skipTest("IRON_EXAMPLE_HISTOGRAM names the built examples/histogram.c")
        for tokens in ([], [7], [3] * 5 + [9] * 5 + [65535] + list(range(20)) * 4):
            path = self.write_tokens("tokens.bin", tokens, "u16")
            done = subprocess.run([program, path], capture_output=True, check=True, text=True)
            found = self.json("stat", path, "--dtype", "u16", "--vocab", 65536, "--hist")
            expected = [[str(top["id"]), str(top["count"])] for top in found["histogram"]["top"]]
            lines = [line.split() for line in done.stdout.splitlines()]
            self.assertEqual(lines, [[str(len(tokens)), "tokens"], *expected])


class Text(StatTest):
    ARGS = ("stat", "t.bin", "--dtype", "u16", "--vocab", 50, "--eos", 3, "--hist")

    def test_text_report(self):
        self.write_tokens("t.bin", [0, 0, 0, 5, 3, 3, 9, 9], "u16")
        lines = dict(line.split(maxsplit=1) for line in self.succeeds(*self.ARGS).text.splitlines()
                     if not line.startswith("longest"))
        self.assertEqual(lines["tokens"], "8")
        self.assertEqual(lines["zeros"], "3 (37.500 %)")
        self.assertEqual(lines["documents"], "3, the last one without eos")
        self.assertEqual(lines["median"], "2")
        self.assertEqual(lines["empty"], "1")
        self.assertIn("3 times 0, starting at position 0", self.succeeds(*self.ARGS).text)
        self.assertIn("0 of 8 tokens", self.succeeds(*self.ARGS).text)
        self.assertIn("1-2, 4, 6-8, 10-49", self.succeeds(*self.ARGS).text)

    def test_tokens_outside_the_vocabulary_are_a_warning(self):
        self.write_tokens("t.bin", [1, 2, 77, 3] * 5, "u16")
        result = self.iron(*self.ARGS)
        self.assertEqual(result.code, 0)
        self.assertRegex(result.message,
                         r"\Airon: warning: 5 of 20 tokens [^\n]* 77 at position 2\n\Z")
        self.assertIn("position 6: 77, in t.bin at 6", result.text)
        self.succeeds(*self.ARGS, "--json")

    def test_long_lists_are_truncated(self):
        self.write_tokens("t.bin", [99] * 20, "u16")
        result = self.iron(*self.ARGS)
        self.assertEqual(result.text.count("in t.bin"), PLACES)
        self.assertIn("... and 12 more", result.text)

    def test_empty_stream(self):
        self.write("t.bin", b"")
        text = self.succeeds(*self.ARGS).text
        self.assertIn("documents     0\n", text)
        self.assertNotIn("longest run", text)

    def test_help(self):
        self.assertIn("--eos E", self.succeeds("stat", "--help").text)
        self.assertIn("stat", self.succeeds("--help").text)


class Refusals(StatTest):
    def setUp(self):
        super().setUp()
        self.tokens = self.write_tokens("t.bin", [1, 2, 3], "u16")

    def refused_stat(self, *options, says=()):
        self.refused("stat", "t.bin", "--dtype", "u16", *options, says=says)

    def test_options(self):
        self.refused_stat(says="--vocab")
        for vocab in (0, 2**32 + 1):
            self.refused_stat("--vocab", vocab, says=["vocab", str(vocab)])
        self.refused_stat("--vocab", 9, "--eos", 2**32, says="eos")
        self.refused_stat("--vocab", 2**26 + 1, "--hist", says=["67108865", "--hist"])
        self.refused_stat("--vocab", 9, "--top", 3, says="--hist")
        self.refused_stat("--vocab", 9, "--hist", "--top", 1001, says="1000")
        self.refused_stat("--vocab", 9, "--threads", 0, says="threads")
        self.refused_stat("--vocab", 9, "--threads", 1025, says="threads")
        self.refused_stat("--vocab", 9, "--device", 1, says="device")
        for backend in ("cuda", "opencl", "quantum"):
            self.refused_stat("--vocab", 9, "--backend", backend, says=["cpu", backend])
        for backend in ("cpu", "auto"):
            self.succeeds("stat", "t.bin", "--dtype", "u16", "--vocab", 9, "--backend", backend)

    def test_inputs(self):
        self.refused("stat", "--vocab", 9)
        self.refused("stat", "absent.bin", "--dtype", "u16", "--vocab", 9, says="absent.bin")
        self.refused("stat", "t.bin", "--vocab", 9, says="dtype")
        self.refused("stat", "t.bin", "--dtype", "u32", "--vocab", 9, says="6 bytes")
        self.refused("stat", "-", "--dtype", "u16", "--vocab", 9, stdin=b"abc")
        self.write_tokens("bad.bin", [1] * 70000 + [-7, -8], "i32")
        self.refused("stat", "bad.bin", "--dtype", "i32", "--vocab", 9, says=["70000", "-7", "bad.bin at byte 280000"])

    def test_standard_output_on_a_full_device(self):
        for options in ((), ("--json",)):
            with open("/dev/full", "wb") as full:
                self.refused("stat", "t.bin", "--dtype", "u16", "--vocab", 9, *options, stdout=full)
