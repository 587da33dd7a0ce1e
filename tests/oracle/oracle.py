#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The engine's meaning in plain Python: an oracle for the tests.

This file is a second, independent reading of the definition that the C code
implements (docs/semantics.md).  It shares no code, no tables and no tricks with
it: every rule is written once, in the words of the definition, with Python's
unbounded integers, and is as slow as that makes it.  Where the C code has lanes,
threads, reciprocals and composed maps, here is a loop.

Three things deserve an argument.

* Integers.  Python's are unbounded, so each `mod 2^32` or `mod 2^64` of the
  definition is a visible `& U32` or `& U64`.

* float32.  Python has only doubles.  `f32(x)` rounds a double once to float,
  through `struct`, to nearest with ties to even; what is too large becomes an
  infinity, as a C conversion does.  A float operation is then "the double
  operation, rounded by f32", which is exactly the correctly rounded float
  operation although it rounds twice:
    - a product of two 24-bit significands has at most 48 bits and so is exact in
      a double (53 bits; the exponents of floats are far inside those of doubles):
      the only rounding is f32's.
    - a sum or a quotient of floats is rounded to 53 bits first, then to 24.
      Double rounding is known to be innocuous for + - * / and the square root
      when the wide format has at least 2p + 2 digits (Figueroa, 1995): 53 >= 50.
      In our case potentials are whole numbers, and below 2^53 the double sum is
      even exact.
  `batch_pot` is not a float product: the definition asks for one conversion of an
  int64 to double, one double product and one rounding to float, and that is what
  Python's `float(n) * inv` and f32 are (int -> float rounds half to even).

* Ties.  `nearest` compares `2*v <= low + high`: doubling is exact, and so is the
  sum of two small integers; so a tie is a tie and goes to the lower point.

Run as a program it verifies the golden vectors:

    python3 tests/oracle/oracle.py --check tests/golden/engine.json
    python3 tests/oracle/oracle.py --check tests/golden/bag.json

It prints how many values were compared; the exit status is 1 if one differs.
"""

import argparse
import json
import math
import struct
import sys
from dataclasses import dataclass
from typing import Optional, Sequence

U32 = 0xFFFFFFFF
U64 = 0xFFFFFFFFFFFFFFFF
GOLDEN_RATIO_64 = 0x9E3779B97F4A7C15

DEFAULT_LATTICE = (7, 15, 23, 31, 47, 63, 95, 127, 191, 255, 383, 511)
DEFAULT_VOCAB = 50257
DEFAULT_NODES = 4096
DEFAULT_BATCH = 786432


# The generator: token k of gen(seed, limit).

def mix64(z: int) -> int:
    """The usual 64-bit finalizer (splitmix64's)."""
    z ^= z >> 30
    z = z * 0xBF58476D1CE4E5B9 & U64
    z ^= z >> 27
    z = z * 0x94D049BB133111EB & U64
    return z ^ z >> 31


def gen_token(seed: int, limit: int, k: int) -> int:
    return mix64((seed + (k + 1) * GOLDEN_RATIO_64) & U64) % limit


def gen(seed: int, count: int, limit: int) -> list[int]:
    return [gen_token(seed, limit, k) for k in range(count)]


# Tokens and positions; the contribution of a batch.

def position_hash(i: int) -> int:
    """h(i), with i a 64-bit number and the result 32 bits."""
    return (137 * i + 17 * (i >> 4)) & U32


@dataclass(frozen=True)
class Contribution:
    """(count, xor, sum): what a batch comes down to; a commutative monoid."""

    count: int = 0
    xor: int = 0
    sum: int = 0

    def merge(self, other: "Contribution") -> "Contribution":
        return Contribution(self.count + other.count, self.xor ^ other.xor,
                            (self.sum + other.sum) & U64)


def contribution(tokens: Sequence[int], first_position: int, vocab: int) -> Contribution:
    """The contribution of tokens that stand at first_position, first_position + 1, ..."""
    xor = total = 0
    for i, token in enumerate(tokens, first_position):
        positioned = (token + position_hash(i)) & U32
        xor ^= positioned
        total += positioned % vocab
    return Contribution(len(tokens), xor, total & U64)


def as_int64(word: int) -> int:
    """The two's complement reading of a number modulo 2^64."""
    word &= U64
    return word - (1 << 64) if word >> 63 else word


def batch_potential(part: Contribution, vocab: int) -> float:
    """int64 -> double, one double product, one rounding to float."""
    half = vocab // 2
    inverse = 1.0 / half
    return f32(float(as_int64(part.sum - part.count * half)) * inverse)


# float32.

def f32(x: float) -> float:
    """x rounded once to float32: to nearest, ties to even, too large becomes infinite."""
    try:
        return struct.unpack("<f", struct.pack("<f", x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


# The lattice.

def nearest(lattice: Sequence[int], v: float) -> int:
    """The lattice point nearest to v; a tie goes to the lower point."""
    for low, high in zip(lattice, lattice[1:]):
        if 2 * v <= low + high:
            return low
    return lattice[-1]


def quantize_xor(lattice: Sequence[int], x: int) -> int:
    """The v = x modulo the lattice's span that lies in [first, last], then nearest."""
    first, last = lattice[0], lattice[-1]
    span = last - first + 1
    return nearest(lattice, first + (x - first) % span)


def quantize_real(lattice: Sequence[int], c: float) -> float:
    """0 for 0; else nearest(|c| clamped into the lattice) with the sign of c."""
    if c == 0.0:
        return 0.0
    clamped = min(max(abs(c), lattice[0]), lattice[-1])
    return math.copysign(float(nearest(lattice, clamped)), c)


# The engine: a configuration, the nodes, and what it reports.

@dataclass(frozen=True)
class Config:
    vocab: int = DEFAULT_VOCAB
    nodes: int = DEFAULT_NODES
    batch: int = DEFAULT_BATCH
    positions: str = "stream"
    lattice: tuple = DEFAULT_LATTICE
    activations: Optional[tuple] = None

    def first_activations(self) -> list[float]:
        if self.activations is not None:
            return [f32(a) for a in self.activations]
        return [f32((j + 1) / self.nodes) for j in range(self.nodes)]


class Engine:
    """The nodes and the running report.  One call of feed is one run of the command:
    it begins a new batch, and its last batch may be shorter than the others."""

    def __init__(self, config: Config):
        points = config.lattice
        self.config = config
        self.xor_accumulators = [points[j % len(points)] for j in range(config.nodes)]
        self.potentials = [0.0] * config.nodes
        self.activations = config.first_activations()
        self.batches = 0
        self.merged = Contribution()

    def feed(self, tokens: Sequence[int]) -> "Engine":
        for start in range(0, len(tokens), self.config.batch):
            self._feed_batch(tokens[start:start + self.config.batch])
        return self

    def _feed_batch(self, tokens: Sequence[int]) -> None:
        first = self.merged.count if self.config.positions == "stream" else 0
        part = contribution(tokens, first, self.config.vocab)
        self._apply(part)
        self.merged = self.merged.merge(part)
        self.batches += 1

    def _apply(self, part: Contribution) -> None:
        lattice = self.config.lattice
        potential = batch_potential(part, self.config.vocab)
        for j, activation in enumerate(self.activations):
            self.xor_accumulators[j] = quantize_xor(lattice, self.xor_accumulators[j] ^ part.xor)
            step = quantize_real(lattice, f32(activation * potential))
            self.potentials[j] = f32(self.potentials[j] + step)

    def report(self) -> dict:
        return {
            "tokens": self.merged.count,
            "batches": self.batches,
            "xor": f"{self.merged.xor:08x}",
            "sum": str(self.merged.sum),
            "state": state_hash(self.xor_accumulators, self.potentials),
        }


def fnv1a(data: bytes) -> int:
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 & U64
    return h


def state_hash(xor_accumulators: Sequence[int], potentials: Sequence[float]) -> str:
    """FNV-1a over the bytes of all accumulators, then of all potentials, as 16 hex digits."""
    words = struct.pack(f"<{len(xor_accumulators)}I", *xor_accumulators)
    floats = struct.pack(f"<{len(potentials)}f", *potentials)
    return f"{fnv1a(words + floats):016x}"


# The seal.

def rotl32(x: int, bits: int) -> int:
    return (x << bits | x >> 32 - bits) & U32


def seal_keys(q: int) -> tuple[int, int, int, int]:
    """The four keys of quad q: a window word of the high half, a mix of the low half."""
    window = mix64(((q >> 32) + GOLDEN_RATIO_64) & U64)
    z = ((q & U32) * 0x9E3779B1 + 0x165667B1) & U32
    z ^= z >> 16
    z = z * 0x7FEB352D & U32
    z ^= z >> 15
    z = z * 0x846CA68B & U32
    z ^= z >> 16
    k0 = z ^ (window & U32)
    k1 = ((z * 0x9E3779B1 + 0x7F4A7C15) & U32) ^ (window >> 32)
    return k0, k1, rotl32(k0, 13), rotl32(k1, 19)


def seal_quad(q: int, quad: Sequence[int]) -> tuple[int, int]:
    """What quad q adds to the words A and B."""
    a, b, c, d = quad
    k0, k1, k2, k3 = seal_keys(q)
    word_a = ((a + k0) & U32) * ((b + k1) & U32) + ((c + k2) & U32) * ((d + k3) & U32)
    word_b = ((a + k2) & U32) * ((c + k0) & U32) + ((b + k3) & U32) * ((d + k1) & U32)
    return word_a & U64, word_b & U64


def seal_words(tokens: Sequence[int]) -> tuple[int, int, int, int]:
    """(count, T, A, B) of a whole stream; past its end the last quad is filled with zeros."""
    word_a = word_b = 0
    for q in range((len(tokens) + 3) // 4):
        quad = list(tokens[4 * q:4 * q + 4])
        more_a, more_b = seal_quad(q, quad + [0] * (4 - len(quad)))
        word_a += more_a
        word_b += more_b
    return len(tokens), sum(tokens) & U64, word_a & U64, word_b & U64


def seal_half(s: int, words: Sequence[int]) -> int:
    h = s
    for word in words:
        h = mix64(((h ^ word) + GOLDEN_RATIO_64) & U64)
    return h


def seal_text(words: Sequence[int]) -> str:
    return f"{seal_half(0, words):016x}{seal_half(1, words):016x}"


def seal(tokens: Sequence[int]) -> str:
    return seal_text(seal_words(tokens))


# The bag.

def bag(samples) -> str:
    """The sums of both halves of every sample's seal, and the number of samples."""
    high = low = count = 0
    for sample in samples:
        text = seal(sample)
        high += int(text[:16], 16)
        low += int(text[16:], 16)
        count += 1
    return f"{high & U64:016x}{low & U64:016x}-{count}"


def cut(tokens: Sequence[int], how: str) -> list:
    """The samples of a stream: how is sample=LENGTH or eos=TOKEN."""
    kind, value = how.split("=")
    if kind == "sample":
        return [tokens[k:k + int(value)] for k in range(0, len(tokens), int(value))]
    samples, begin = [], 0
    for k, token in enumerate(tokens):
        if token == int(value):
            samples.append(tokens[begin:k + 1])
            begin = k + 1
    return samples + ([tokens[begin:]] if begin < len(tokens) else [])


def statistics(tokens: Sequence[int], vocab: int) -> dict:
    """min, max and the count of tokens outside the vocabulary; nothing for an empty stream."""
    if not tokens:
        return {}
    return {"min": min(tokens), "max": max(tokens),
            "out_of_vocab": sum(1 for t in tokens if t >= vocab)}


# Golden vectors: each function yields (what, expected, found).

def golden_tokens(case: dict) -> list[int]:
    """A case's tokens: given one by one, or as parameters of the generator."""
    return case["tokens"] if "tokens" in case else gen(**case["gen"])


def golden_config(case: dict) -> Config:
    activations = case.get("activations")
    return Config(case["vocab"], case["nodes"], case["batch"], case.get("positions", "stream"),
                  tuple(case.get("lattice", DEFAULT_LATTICE)),
                  tuple(activations) if activations is not None else None)


def check_cases(golden: dict):
    for case in golden["cases"]:
        engine = Engine(golden_config(case)).feed(golden_tokens(case))
        found = dict(engine.report(), xor_accumulators=engine.xor_accumulators,
                     potentials=engine.potentials)
        for key, expected in case["expect"].items():
            yield f"case {case['name']}: {key}", expected, found[key]


def check_seals(golden: dict):
    for case in golden["seals"]:
        tokens = golden_tokens(case)
        words = seal_words(tokens)
        yield f"seal {case['name']}: words", case["words"], [str(w) for w in words]
        yield f"seal {case['name']}: text", case["seal"], seal_text(words)
        yield f"seal {case['name']}: stats", case.get("stats", {}), statistics(tokens, case["vocab"])


def check_tables(golden: dict):
    for q, quad, words in golden["seal_quad"]:
        yield f"seal quad {q}", words, [str(w) for w in seal_quad(int(q), quad)]
    for x, point in golden["quantize_xor"]:
        yield f"quantize_xor({x})", point, quantize_xor(DEFAULT_LATTICE, x)
    for c, point in golden["quantize_real"]:
        yield f"quantize_real({c})", point, quantize_real(DEFAULT_LATTICE, c)
    for i, h in golden["position_hash"]:
        yield f"position hash of {i}", h, position_hash(i)


def check_bags(golden: dict):
    for case in golden["cases"]:
        samples = case["rows"] if "rows" in case else cut(golden_tokens(case), case["cut"])
        yield f"bag {case['name']}", case["bag"], bag(samples)
        yield f"samples {case['name']}", case["samples"], len(samples)


def check(golden: dict) -> tuple[int, list[str]]:
    """How many values were compared, and a line for each that differs."""
    compared, mismatches = 0, []
    is_engine = "seals" in golden
    for part in (check_cases, check_seals, check_tables) if is_engine else (check_bags,):
        for what, expected, found in part(golden):
            compared += 1
            if expected != found:
                mismatches.append(f"{what}: expected {expected}, found {found}")
    return compared, mismatches


def main() -> int:
    parser = argparse.ArgumentParser(description="Verify golden vectors with the oracle.")
    parser.add_argument("--check", metavar="FILE", required=True, help="tests/golden/engine.json, or bag.json")
    with open(parser.parse_args().check, encoding="utf-8") as file:
        compared, mismatches = check(json.load(file))
    for line in mismatches:
        print(line)
    print(f"oracle: {compared} values compared, {len(mismatches)} differ")
    return 1 if mismatches or compared == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
