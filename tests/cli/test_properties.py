# SPDX-License-Identifier: MIT
"""Random cases against the oracle, and properties that must hold between runs.

The golden vectors fix a few points; here seeded random configurations fill the space
between them: every length around the widths of vector code (0, 1, 3, 4, 15, 16, 17,
4095 ... 4099), vocabularies at both ends of their range and around powers of two, random
lattices, batches and activations.  Then the properties:

  * the width of a token does not matter, nor does the size of the pieces a pipe
    delivers (also when a token is cut in two),
  * several files are one stream, and a directory is its files in natural order,
  * a run that is saved and resumed at a multiple of the batch is one run; elsewhere the
    resumed run begins a new batch, and the oracle does the same; the seal is that of the
    whole stream wherever the cuts are.

The random numbers come from one fixed seed (IRON_TEST_SEED changes it), so a failure can
be repeated.
"""

import random
import subprocess
import unittest

from harness import (CPU_MODES, DTYPE_MAX, REDUCED, SEED, IronTest, config_options, floats32,
                     iron, npy, oracle, pack, parse_json, start)

LENGTHS = (0, 1, 3, 4, 15, 16, 17, 4095, 4096, 4097, 4098, 4099)
VOCABS = (2, 3, 7, 50257, 65536, 128256, 2**31 - 1, 2**31)
RANDOM_CASES = 12 if REDUCED else 40
NODE_STEPS = 20_000  # limits the oracle's time: nodes x batches of one case


def random_lattice(rng: random.Random) -> tuple:
    if rng.random() < 0.4:
        return oracle.DEFAULT_LATTICE
    top = rng.choice((70, 1000, 65535))
    return tuple(sorted(rng.sample(range(1, top + 1), rng.randint(2, 64))))


def random_activation(rng: random.Random) -> float:
    """Any float that is allowed: ordinary, zero, at the lower limit, or huge."""
    ordinary = rng.uniform(-3, 3)
    return rng.choice((ordinary, ordinary, ordinary * 1e6, 0.0, -0.0, 2.0**-96, -2.0**-96,
                       3.0e38, -3.0e38, 1e-20))


def random_config(rng: random.Random, length: int) -> oracle.Config:
    batch = rng.choice((1, 4, 7, 16, 100, 1023, 1024, 4096, oracle.DEFAULT_BATCH))
    if length > 200:
        batch = max(batch, 7)
    batches = length // batch + 1
    nodes = rng.randint(1, max(1, min(300, NODE_STEPS // batches)))
    vocab = rng.choice(VOCABS + (rng.randint(2, 2**31), rng.randint(2, 300000)))
    activations = None
    if rng.random() < 0.4:
        activations = tuple(floats32([random_activation(rng) for _ in range(nodes)]))
    return oracle.Config(vocab, nodes, batch, rng.choice(("stream", "batch")),
                         random_lattice(rng), activations)


def random_tokens(rng: random.Random, length: int, config: oracle.Config, top=2**32 - 1) -> list:
    limit = min(top + 1, rng.choice((2**32, 2**16, 256, config.vocab)))
    return [rng.randrange(limit) for _ in range(length)]


class PropertyTest(IronTest):
    def setUp(self):
        super().setUp()
        self.rng = random.Random(f"{SEED} {self.id()}")

    def options(self, config: oracle.Config, dtype="u32") -> list:
        activations = None
        if config.activations is not None:
            activations = self.write("activations.npy", npy(config.activations))
        return config_options(config, activations) + ["--dtype", dtype]

    def expected(self, config: oracle.Config, *pieces) -> tuple:
        """The oracle's engine after feeding the pieces, and its report with the seal."""
        engine = oracle.Engine(config)
        for piece in pieces:
            engine.feed(piece)
        whole = [token for piece in pieces for token in piece]
        return engine, dict(engine.report(), seal=oracle.seal(whole))


class RandomCases(PropertyTest):
    def test_random_cases_equal_the_oracle(self):
        lengths = list(LENGTHS) + [self.rng.randint(0, 6000) for _ in range(RANDOM_CASES)]
        for number, length in enumerate(lengths):
            config = random_config(self.rng, length)
            tokens = random_tokens(self.rng, length, config)
            mode = CPU_MODES[number % len(CPU_MODES)]
            with self.subTest(number=number, length=length, mode=mode, config=config):
                self.check_case(config, tokens, mode, self.rng.randint(1, 8))

    def check_case(self, config, tokens, mode, threads):
        engine, expected = self.expected(config, tokens)
        state_file = self.dir / "case.state"
        path = self.write_tokens("case.bin", tokens)
        options = self.options(config) + ["--mode", mode, "--threads", threads, "--seal"]
        self.assert_report(expected, self.feed(path, *options, "--state", state_file))
        state = self.read_state(state_file)
        self.assert_report(engine.report(), state)
        self.assert_nodes(engine, state)
        self.check_configuration(config, state)

    def check_configuration(self, config, state):
        found = {k: state[k] for k in ("vocab", "nodes", "batch", "positions", "lattice")}
        self.assertEqual(found, {"vocab": config.vocab, "nodes": config.nodes,
                                 "batch": config.batch, "positions": config.positions,
                                 "lattice": list(config.lattice)})

    def test_every_length_in_every_mode(self):
        config = oracle.Config(vocab=50257, nodes=20, batch=1000)
        for length in LENGTHS:
            tokens = random_tokens(self.rng, length, config)
            _, expected = self.expected(config, tokens)
            path = self.write_tokens("tokens.bin", tokens)
            for mode in CPU_MODES:
                with self.subTest(length=length, mode=mode):
                    found = self.feed(path, *self.options(config), "--mode", mode, "--seal")
                    self.assert_report(expected, found)

    def test_every_vocab_in_the_fast_modes(self):
        for vocab in VOCABS + (2**31 - 2**15, 2**30 + 1, 641, 6700417):
            config = oracle.Config(vocab=vocab, nodes=5, batch=2048)
            tokens = [self.rng.choice((2**32 - 1, 2**31, vocab - 1, vocab, 0,
                                       self.rng.randrange(2**32))) for _ in range(4099)]
            _, expected = self.expected(config, tokens)
            path = self.write_tokens("tokens.bin", tokens)
            for mode in ("scalar", "vector", "threads", "champion"):
                with self.subTest(vocab=vocab, mode=mode):
                    self.assert_report(expected, self.feed(path, *self.options(config),
                                                           "--mode", mode, "--seal"))

    def test_the_largest_batches_that_are_allowed(self):
        tokens = random_tokens(self.rng, 100, oracle.Config())
        for vocab, batch in ((2**31, 2**31), (2, 2**61), (50257, 2**62 // 50257)):
            with self.subTest(vocab=vocab, batch=batch):
                config = oracle.Config(vocab=vocab, nodes=4, batch=batch)
                _, expected = self.expected(config, tokens)
                found = self.feed("-", *self.options(config), "--seal", stdin=pack(tokens))
                self.assert_report(expected, found)

    def test_the_largest_number_of_nodes(self):
        config = oracle.Config(nodes=2**20)
        path = self.dir / "large.state"
        self.feed("-", *self.options(config), "--state", path, stdin=b"")
        state = self.read_state(path)
        self.assertEqual(len(state["potentials"]), 2**20)
        self.assertEqual(floats32(state["activations"][::4099]), config.first_activations()[::4099])

    def test_many_small_batches_beyond_exact_floats(self):
        activations = tuple(floats32([9e9, -9e9, 1.0, -0.125, 3e38]))
        config = oracle.Config(2, 5, 1, "stream", (1, 1000, 65535), activations)
        tokens = [self.rng.randrange(2**32) for _ in range(1500)]
        engine, expected = self.expected(config, tokens)
        self.assertGreater(max(map(abs, engine.potentials)), 2**24)
        for mode in CPU_MODES:
            with self.subTest(mode=mode):
                found = self.feed("-", *self.options(config), "--seal", "--mode", mode,
                                  "--threads", 3, stdin=pack(tokens))
                self.assert_report(expected, found)


class Widths(PropertyTest):
    def test_every_dtype_gives_the_same_result(self):
        for top in (255, 65535, 2**31 - 1, 2**32 - 1):
            config = random_config(self.rng, 1001)
            tokens = random_tokens(self.rng, 1000, config, top) + [top]
            _, expected = self.expected(config, tokens)
            for dtype, largest in DTYPE_MAX.items():
                if largest >= top:
                    with self.subTest(top=top, dtype=dtype):
                        self.check_width(config, tokens, dtype, expected)

    def check_width(self, config, tokens, dtype, expected):
        path = self.write_tokens("wide.bin", tokens, dtype)
        options = self.options(config, dtype) + ["--seal"]
        self.assert_report(expected, self.feed(path, *options))
        self.assert_report(expected, self.feed("-", *options, stdin=pack(tokens, dtype)))
        self.assert_report(expected, self.feed("-", *options, "--format", "raw",
                                               stdin=pack(tokens, dtype)))


class Pieces(PropertyTest):
    def dribble(self, data: bytes, sizes, *options) -> dict:
        """Sends the data through a pipe in pieces of the given sizes, cyclically."""
        with start("feed", "-", *options, "--json", "--backend", "cpu", stdin=subprocess.PIPE,
                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as command:
            offset = turn = 0
            while offset < len(data):
                size = sizes[turn % len(sizes)]
                command.stdin.write(data[offset:offset + size])
                offset, turn = offset + size, turn + 1
            out, err = command.communicate()
        self.assertEqual(command.returncode, 0, err)
        self.assertRegex(err, rb"\A(iron: warning: -: [^\n]* not below --vocab [^\n]*\n)?\Z")
        return parse_json(out)

    def test_pipe_may_split_tokens(self):
        for dtype in ("u16", "u32", "i64"):
            for sizes in ((1,), (3,), (5, 1, 7), (4093, 2)):
                with self.subTest(dtype=dtype, sizes=sizes):
                    config = oracle.Config(vocab=50257, nodes=7, batch=50)
                    tokens = random_tokens(self.rng, 333, config, DTYPE_MAX[dtype])
                    _, expected = self.expected(config, tokens)
                    found = self.dribble(pack(tokens, dtype), sizes, "--seal",
                                         *self.options(config, dtype))
                    self.assert_report(expected, found)

    def split(self, tokens, count) -> list:
        """Tokens cut at random places into `count` pieces; some may be empty."""
        cuts = sorted(self.rng.randint(0, len(tokens)) for _ in range(count - 1))
        return [tokens[a:b] for a, b in zip([0] + cuts, cuts + [len(tokens)])]

    def test_several_files_are_one_stream(self):
        for count in (2, 3, 9):
            config = random_config(self.rng, 3000)
            tokens = random_tokens(self.rng, 3000, config)
            _, expected = self.expected(config, tokens)
            paths = [self.write_tokens(f"{count}-{k}.bin", piece)
                     for k, piece in enumerate(self.split(tokens, count))]
            with self.subTest(count=count, config=config):
                self.assert_report(expected, self.feed(*paths, *self.options(config), "--seal"))

    def test_files_are_read_in_the_given_order(self):
        config = oracle.Config(nodes=9, batch=7)
        first, second = random_tokens(self.rng, 10, config), random_tokens(self.rng, 11, config)
        a, b = self.write_tokens("a.bin", first), self.write_tokens("b.bin", second)
        for order, tokens in (((a, b), first + second), ((b, a), second + first),
                              ((a, a), first + first)):
            _, expected = self.expected(config, tokens)
            self.assert_report(expected, self.feed(*order, *self.options(config), "--seal"))

    def test_directory_is_read_in_natural_order(self):
        names = ["part-1", "part-2", "part-3", "part-10", "part-11", "part-20", "part-100"]
        config = oracle.Config(nodes=9, batch=64)
        tokens = random_tokens(self.rng, 50 * len(names), config)
        for k in self.rng.sample(range(len(names)), len(names)):
            self.write_tokens(f"corpus/{names[k]}.bin", tokens[50 * k:50 * k + 50])
        _, expected = self.expected(config, tokens)
        found = self.feed(self.dir / "corpus", *self.options(config), "--seal")
        self.assert_report(expected, found)


class Resume(PropertyTest):
    def feed_in_pieces(self, config, pieces, *extra) -> tuple:
        """Each piece in a separate run, resumed from the previous state."""
        state_file, report = self.dir / "run.state", None
        for k, piece in enumerate(pieces):
            begin = ["--resume", state_file, "--dtype", "u32"] if k else self.options(config)
            report = self.feed("-", *begin, *extra, "--state", state_file, stdin=pack(piece))
        return report, self.read_state(state_file)

    def check_pieces(self, config, pieces):
        engine, expected = self.expected(config, *pieces)
        report, state = self.feed_in_pieces(config, pieces, "--seal")
        self.assert_report(expected, report)
        self.assert_report(engine.report(), state)
        self.assert_nodes(engine, state)

    def test_resume_at_a_multiple_of_the_batch_equals_one_run(self):
        for batch in (1, 4, 7, 10, 1024):
            for positions in ("stream", "batch"):
                with self.subTest(batch=batch, positions=positions):
                    config = oracle.Config(50257, 33, batch, positions)
                    tokens = random_tokens(self.rng, 5 * batch + batch // 2, config)
                    cut = batch * self.rng.randint(1, 4)
                    self.check_pieces(config, [tokens[:cut], tokens[cut:]])
                    whole, _ = self.expected(config, tokens)
                    halves, _ = self.expected(config, tokens[:cut], tokens[cut:])
                    self.assertEqual(whole.report(), halves.report())

    def test_resume_elsewhere_begins_a_new_batch(self):
        for _ in range(8):
            config = random_config(self.rng, 300)
            tokens = random_tokens(self.rng, 300, config)
            cut = self.rng.randint(0, 300)
            with self.subTest(cut=cut, config=config):
                self.check_pieces(config, [tokens[:cut], tokens[cut:]])

    def test_seal_does_not_depend_on_cuts(self):
        config = oracle.Config(50257, 3, 7)
        tokens = random_tokens(self.rng, 40, config)
        for first in range(0, 9):
            with self.subTest(first=first):
                self.check_pieces(config, [tokens[:first], tokens[first:]])

    def test_many_tiny_resumes(self):
        config = oracle.Config(vocab=3, nodes=4, batch=5)
        pieces = [[self.rng.randrange(2**32) for _ in range(size)]
                  for size in (1, 1, 1, 2, 3, 0, 1, 4, 5, 2, 0, 7)]
        self.check_pieces(config, pieces)

    def test_resuming_in_another_mode_and_width(self):
        config = oracle.Config(nodes=50, batch=16)
        tokens = [self.rng.randrange(256) for _ in range(100)]
        first, second = self.dir / "first.state", self.dir / "second.state"
        engine, expected = self.expected(config, tokens[:37], tokens[37:])
        self.feed("-", *self.options(config), "--seal", "--mode", "scalar", "--state", first,
                  stdin=pack(tokens[:37]))
        before = first.read_bytes()
        found = self.feed("-", "--resume", first, "--seal", "--mode", "champion", "--threads", 3,
                          "--dtype", "u8", "--state", second, stdin=bytes(tokens[37:]))
        self.assert_report(expected, found)
        self.assert_nodes(engine, self.read_state(second))
        self.assertEqual(before, first.read_bytes(), "resuming must not touch the file it reads")

    def test_options_that_match_the_state_are_accepted(self):
        activations = tuple(floats32([0.5, -2.0, 7.25]))
        config = oracle.Config(7, 3, 11, "batch", (2, 9, 40), activations)
        tokens = random_tokens(self.rng, 50, config)
        state_file = self.dir / "run.state"
        self.feed("-", *self.options(config), "--state", state_file, stdin=pack(tokens[:22]))
        engine, _ = self.expected(config, tokens[:22], tokens[22:])
        found = self.feed("-", "--resume", state_file, *self.options(config),
                          stdin=pack(tokens[22:]))
        self.assert_report(engine.report(), found)

    def test_resuming_with_no_tokens_changes_nothing(self):
        config = oracle.Config(nodes=5, batch=10)
        tokens = random_tokens(self.rng, 25, config)
        self.check_pieces(config, [tokens, [], []])

    def test_seal_of_an_unsealed_state_is_correct_or_refused(self):
        """A state saved without a seal: the resumed seal is the true one or refused."""
        tokens = random_tokens(self.rng, 30, oracle.Config())
        state_file = self.dir / "run.state"
        self.feed("-", "--dtype", "u32", "--nodes", 4, "--state", state_file,
                  stdin=pack(tokens[:13]))
        result = iron("feed", "-", "--resume", state_file, "--seal", "--dtype", "u32", "--json",
                      "--backend", "cpu", stdin=pack(tokens[13:]), cwd=self.dir)
        if result.code == 0:
            self.assertEqual(oracle.seal(tokens), parse_json(result.out)["seal"])
        else:
            self.assert_error_line(result, says="seal")


if __name__ == "__main__":
    unittest.main()
