# SPDX-License-Identifier: MIT
"""The golden vectors over HTTP: with a client of ours, with curl and with `iron push`.

Each engine case is created and fed whole (Content-Length and chunked, in every width that holds
its tokens) and cut into bodies.  The end of a body ends its batch, so bodies are cut where
batches end; then tokens, batches, xor, sum, state and seal must be the golden ones.  The case
with activations of its own cannot be asked for over HTTP and is left to the command's tests; how
potentials round beyond 2^24, which is what it is about, is asked here in another way.
"""

import json
import random
import subprocess

import contract
from api import ServerTest, report_of
from harness import (DTYPE_MAX, SEED, TIMEOUT_S, environment, iron, load_golden, oracle, pack,
                     parse_json)
from model import by_command, plan_of
from wire import Answer

GOLDEN = load_golden()
CASES = [case for case in GOLDEN["cases"] if "activations" not in case]
BIG = 100_000  # tokens; beyond this the oracle is too slow for every method


def token_count(case: dict) -> int:
    return len(case["tokens"]) if "tokens" in case else case["gen"]["count"]


class GoldenTest(ServerTest):
    def setUp(self):
        super().setUp()
        self.instance = self.serve()
        self.client = self.api(self.instance)
        self.number = 0

    def tokens_file(self, case: dict):
        path = self.dir / f"{case['name']}.bin"
        if path.exists():
            return path
        if "tokens" in case:
            return self.write(path.name, pack(case["tokens"]))
        made = case["gen"]
        done = iron("gen", "--seed", made["seed"], "--count", made["count"], "--limit",
                    made["limit"], "--dtype", "u32", "-o", path)
        self.assertEqual(done.code, 0, str(done))
        return path

    def seal(self, path, dtype="u32") -> str:
        report, = self.command("sum", path, "--format", "raw", "--dtype", dtype)
        return report["seal"]

    def new_engine(self, case: dict) -> str:
        self.number += 1
        name = f"{case['name']}-{self.number}"
        self.created(self.client, name, **plan_of(oracle.golden_config(case)))
        return name

    def assert_case(self, case: dict, name: str, answer=None):
        """The last answer and the engine have the golden words."""
        expected = {k: case["expect"][k] for k in ("tokens", "batches", "xor", "sum", "state")}
        expected["seal"] = self.seal(self.tokens_file(case))
        if answer is not None:
            self.assertEqual(expected, report_of(answer))
        self.assertEqual(expected, report_of(self.client.engine(name)))

    def curl(self, target, *options, stdin=None) -> Answer:
        """Runs curl; its response is checked like any other."""
        headers, body = self.dir / "curl.headers", self.dir / "curl.body"
        done = subprocess.run(
            ["curl", "-sS", "-D", headers, "-o", body, *options, self.instance.url + target],
            stdin=stdin, stderr=subprocess.PIPE, timeout=TIMEOUT_S, env=environment(), check=False)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        blocks = headers.read_bytes().decode("latin-1").strip().split("\r\n\r\n")
        status, *fields = blocks[-1].split("\r\n")
        pairs = [(n.lower(), v.strip()) for n, _, v in (f.partition(":") for f in fields)]
        answer = Answer(int(status.split()[1]), pairs, body.read_bytes())
        contract.check("POST", target, answer)
        self.assertEqual(answer.status, 200, str(answer))
        return answer


class Whole(GoldenTest):
    def test_with_content_length(self):
        for case in CASES:
            with self.subTest(case=case["name"]):
                name = self.new_engine(case)
                body = self.tokens_file(case).read_bytes()
                self.assert_case(case, name, self.fed(self.client, name, body))

    def test_in_chunks(self):
        rng = random.Random(f"{SEED} chunks")
        for case in CASES:
            with self.subTest(case=case["name"]):
                name = self.new_engine(case)
                body = self.tokens_file(case).read_bytes()
                top = max(7, len(body) // 50)
                cuts = [rng.randint(1, top) for _ in range(64)] + [top]
                self.assert_case(case, name, self.fed(self.client, name, body, cuts=cuts))

    def test_every_width(self):
        for case in CASES:
            if token_count(case) > BIG:
                continue
            tokens = oracle.golden_tokens(case)
            for dtype, most in DTYPE_MAX.items():
                if tokens and max(tokens) > most:
                    continue
                with self.subTest(case=case["name"], dtype=dtype):
                    name = self.new_engine(case)
                    answer = self.fed(self.client, name, pack(tokens, dtype), dtype=dtype)
                    self.assert_case(case, name, answer)

    def test_every_mode(self):
        case = next(c for c in CASES if c["name"] == "gen-odd")
        body = self.tokens_file(case).read_bytes()
        for mode in ("auto", "scalar", "vector", "threads", "champion", "node", "hybrid"):
            with self.subTest(mode=mode):
                self.created(self.client, mode, mode=mode, backend="cpu",
                             **plan_of(oracle.golden_config(case)))
                self.assert_case(case, mode, self.fed(self.client, mode, body))

    def test_final_nodes(self):
        for case in CASES:
            if "xor_accumulators" not in case["expect"]:
                continue
            with self.subTest(case=case["name"]):
                name = self.new_engine(case)
                self.fed(self.client, name, pack(case["tokens"]))
                state = self.client.get(f"/v1/engines/{name}/state").json
                for key in ("xor_accumulators", "potentials"):
                    self.assertEqual(case["expect"][key], state[key])


class Cut(GoldenTest):
    def test_where_batches_end(self):
        """Small and large bodies of whole batches, with random widths and framings."""
        rng = random.Random(f"{SEED} cut")
        for case in CASES:
            with self.subTest(case=case["name"]):
                name = self.new_engine(case)
                tokens = self.tokens_file(case).read_bytes()
                step, position, answer = 4 * case["batch"], 0, None
                while position < len(tokens):
                    end = position + step * rng.randint(1, 5)
                    cuts = [rng.randint(1, 70000)] if rng.random() < 0.5 else None
                    at = position // 4 if rng.random() < 0.5 else None
                    answer = self.fed(self.client, name, tokens[position:end], cuts=cuts, at=at)
                    position = end
                self.assert_case(case, name, answer)

    def test_seals_over_odd_bodies(self):
        """The seal depends only on the stream, not on where bodies cut its quads."""
        rng = random.Random(f"{SEED} seals")
        for case in GOLDEN["seals"]:
            with self.subTest(case=case["name"]):
                self.number += 1
                name = f"seal-{self.number}"
                self.created(self.client, name, nodes=3, vocab=case["vocab"])
                tokens = oracle.golden_tokens(case)
                while tokens:
                    count = rng.choice((1, 2, 3, 5, 17, 4099, 30000))
                    self.fed(self.client, name, pack(tokens[:count]))
                    tokens = tokens[count:]
                self.assertEqual(self.client.engine(name)["seal"], case["seal"])


class Curl(GoldenTest):
    def test_data_binary(self):
        for case in CASES:
            with self.subTest(case=case["name"]):
                name = self.new_engine(case)
                answer = self.curl(f"/v1/engines/{name}/feed", "--data-binary",
                                   f"@{self.tokens_file(case)}")
                self.assert_case(case, name, answer.json)

    def test_chunked_from_a_pipe(self):
        for case in CASES:
            with self.subTest(case=case["name"]):
                name = self.new_engine(case)
                with open(self.tokens_file(case), "rb") as file:
                    answer = self.curl(f"/v1/engines/{name}/feed?at=0", "-X", "POST", "-T", "-",
                                       "-H", "Content-Type: application/octet-stream", stdin=file)
                self.assert_case(case, name, answer.json)


class Push(GoldenTest):
    def push(self, path, name, *options) -> dict:
        done = iron("push", path, f"{self.instance.url}/v1/engines/{name}", "--format", "raw",
                    "--dtype", "u32", "--json", *options)
        self.assertEqual(done.code, 0, str(done))
        return parse_json(done.out)

    def test_second_push_sends_nothing(self):
        """A second push of the same file finds all tokens present and sends nothing."""
        for case in CASES:
            with self.subTest(case=case["name"]):
                name = self.new_engine(case)
                report = self.push(self.tokens_file(case), name)
                self.assertEqual((report["resumed_at"], report["pushed"]),
                                 (0, token_count(case)))
                self.assert_case(case, name, report)
                again = self.push(self.tokens_file(case), name)
                self.assertEqual((again["resumed_at"], again["pushed"]), (token_count(case), 0))
                self.assert_case(case, name, again)

    def test_push_continues_at_the_position_of_the_engine(self):
        for case in CASES:
            if token_count(case) <= case["batch"]:
                continue
            with self.subTest(case=case["name"]):
                name = self.new_engine(case)
                path = self.tokens_file(case)
                self.fed(self.client, name, path.read_bytes()[:4 * case["batch"]])
                report = self.push(path, name)
                self.assertEqual(report["resumed_at"], case["batch"])
                self.assertEqual(report["pushed"], token_count(case) - case["batch"])
                self.assert_case(case, name, report)


class Quantize(GoldenTest):
    def points(self, kind, values):
        document = {"values": values} if kind is None else {"kind": kind, "values": values}
        answer = self.client.post_json("/v1/engines/q/quantize", document)
        self.assertEqual(answer.status, 200, str(answer))
        return answer.json["points"]

    def test_tables(self):
        self.created(self.client, "q", nodes=1)
        for kind, table in ((None, "quantize_real"), ("real", "quantize_real"),
                            ("xor", "quantize_xor")):
            values, points = zip(*GOLDEN[table])
            self.assertEqual(list(points), self.points(kind, list(values)), table)
            for value, point in GOLDEN[table]:
                self.assertEqual([point], self.points(kind, [value]))

    def test_custom_lattice(self):
        rng = random.Random(f"{SEED} quantize")
        lattice = sorted(rng.sample(range(1, 65536), 40))
        self.created(self.client, "q", nodes=1, lattice=lattice)
        words = [rng.randrange(2**32) for _ in range(1000)]
        self.assertEqual([oracle.quantize_xor(lattice, w) for w in words],
                         self.points("xor", words))
        reals = [rng.uniform(-70000, 70000) for _ in range(1000)]
        self.assertEqual([oracle.quantize_real(lattice, r) for r in reals],
                         self.points("real", json.loads(json.dumps(reals))))


class FarPotentials(GoldenTest):
    def test_beyond_2_24(self):
        """Three hundred batches of almost -65535 each: additions round, in batch order."""
        config = oracle.Config(vocab=2**31, nodes=7, batch=70001, positions="batch",
                               lattice=(1, 5, 900, 65535))
        self.created(self.client, "far", **plan_of(config))
        path = self.write("far.u8", bytes(300 * config.batch))
        half = 150 * config.batch
        self.fed(self.client, "far", path.read_bytes()[:half], dtype="u8")
        answer = self.fed(self.client, "far", path.read_bytes()[half:], dtype="u8", cuts=[100_003])
        expected = by_command(config, [(path, "u8")], self.dir)
        self.assertEqual(report_of(expected), report_of(answer))
        potentials = self.client.get("/v1/engines/far/state").json["potentials"]
        self.assertLess(potentials[-1], -2**24)
