# SPDX-License-Identifier: MIT
"""Malformed requests over raw sockets: none is accepted, each is answered or closed, nothing
changes.

After each probe the server must still answer /healthz and the engine must be unchanged. Answers are
read strictly, errors are Problems, and after a request with ambiguous framing the connection must
be closed, because the rest cannot be interpreted.
"""

import random
from concurrent.futures import ThreadPoolExecutor

import contract
from api import ServerTest, report_of
from harness import SANITIZED, SEED, pack
from probes import CRLF, EIGHT, FEED, LENIENT, LENGTH, LINES, REFUSED, SILENT, post
from wire import BadAnswer, Wire

MUTANTS = 150 if SANITIZED else 500
AT_ONCE = 25  # many wait for the header timeout
NO_BODY = ("a body without a length",)


class ProbeTest(ServerTest):
    def setUp(self):
        super().setUp()
        self.instance = self.serve()
        self.client = self.api(self.instance, is_patient=True)
        self.created(self.client, "probe", nodes=3)
        self.created(self.client, "mutant", nodes=2)
        self.fed(self.client, "probe", pack([1, 2, 3]))
        self.before = self.client.engine("probe")

    def hurry(self):
        """Restarts it with short timeouts."""
        self.instance.set_options("--header-seconds", 2, "--request-seconds", 6)
        self.instance.restart()

    def bytes_of(self, probe: bytes) -> bytes:
        return probe.replace(b"%H", self.instance.host.encode())

    def send(self, probe: bytes) -> list:
        """Every answer to the probe until the connection ended, except 100 Continue."""
        with Wire(self.instance) as wire:
            wire.send(self.bytes_of(probe)).finish()
            return [a for a in wire.answers() if a.status != 100]

    def assert_healthy(self):
        self.client.close()  # it may have been idle for longer than the server allows
        self.assertEqual(self.client.get("/healthz").status, 200)
        self.assertEqual(self.before, self.client.engine("probe"))

    def assert_refused(self, answers):
        for answer in answers:
            self.assertGreaterEqual(answer.status, 400, str(answer))
            if answer.type == contract.PROBLEM_TYPE:
                contract.check_problem(answer, "probe")
        self.assertLessEqual(len(answers), 1, "one request, two answers")


class Refused(ProbeTest):
    def setUp(self):
        super().setUp()
        self.hurry()

    def test_each_probe(self):
        for name, probe in REFUSED.items():
            with self.subTest(probe=name):
                self.assert_refused(self.send(probe))
                self.assert_healthy()

    def test_errors_are_problems(self):
        """Each gets a problem response or is closed without one."""
        bare = {}
        for name, probe in REFUSED.items():
            for answer in self.send(probe):
                if answer.type != contract.PROBLEM_TYPE:
                    bare[name] = answer.status
        self.assertEqual(bare, {})

    def test_lines_after_a_first_request(self):
        """libmicrohttpd reads these lines: its own page is not sent."""
        first = b"GET /healthz HTTP/1.1\r\nHost: %H\r\n\r\n"
        kinds = {}
        for name, probe in LINES.items():
            with self.subTest(probe=name):
                answers = self.send(first + probe)
                self.assertEqual(answers.pop(0).status, 200)
                self.assert_refused(answers)
                kinds[name] = [answer.json["type"].rpartition(":")[2] for answer in answers]
        for name in ("the preface of HTTP/2", "HTTP/2.0", "HTTP/0.9 by name"):
            self.assertEqual(kinds[name], ["unsupported-version"], name)
        for name in ("no version", "HTTP/3", "a proxy's preface"):
            self.assertEqual(kinds[name], ["malformed-request"], name)
        self.assert_healthy()

    def test_connection_ends_after_a_malformed_request(self):
        """The server closes first: what follows a malformed request must not be interpreted."""
        for name in ("length and chunked", "two lengths", "smuggled behind a length", "a minus",
                     "a blank before the colon", "xchunked", "a negative chunk", "a folded line",
                     "two hosts"):
            with self.subTest(probe=name), Wire(self.instance) as wire:
                more = b"GET /healthz HTTP/1.1\r\nHost: %H\r\n\r\n"
                wire.send(self.bytes_of(REFUSED[name] + more))
                self.assert_refused(wire.answers())
        self.assert_healthy()

    def test_incomplete_header_times_out(self):
        """All at once, since each waits for the timeout."""
        with ThreadPoolExecutor(len(SILENT)) as pool:
            found = dict(zip(SILENT, pool.map(self.wait_for_end, SILENT.values())))
        for name, answers in found.items():
            with self.subTest(probe=name):
                self.assert_refused(answers)
        self.assert_healthy()

    def wait_for_end(self, probe):
        with Wire(self.instance) as wire:
            return wire.send(self.bytes_of(probe)).answers()


class Lenient(ProbeTest):
    def test_each_probe(self):
        for name, probe in LENIENT.items():
            with self.subTest(probe=name):
                before = self.client.engine("probe")
                answers = self.send(probe)
                self.client.close()
                after = self.client.engine("probe")
                if answers and answers[0].status == 200:
                    taken = answers.pop(0).json
                    self.assertEqual(after["tokens"], before["tokens"] + taken["fed"]["tokens"])
                    self.assertEqual(taken["fed"]["tokens"], 0 if name in NO_BODY else 2)
                    self.assertEqual(report_of(taken), report_of(after))
                else:
                    self.assertEqual(before, after)
                self.assert_refused(answers)

    def test_pipelined_requests_are_answered_in_order(self):
        with Wire(self.instance) as wire:
            get = b"GET /v1/engines/probe HTTP/1.1\r\nHost: %H\r\n\r\n"
            wire.send(self.bytes_of(post(LENGTH) + get + post(LENGTH) + get)).finish()
            answers = wire.answers()
        tokens = [a.json["tokens"] for a in answers]
        start = self.before["tokens"]
        self.assertEqual(tokens, [start + 2, start + 2, start + 4, start + 4])

    def test_one_byte_at_a_time(self):
        with Wire(self.instance) as wire:
            for byte in self.bytes_of(post(LENGTH)):
                wire.send(bytes([byte]))
            self.assertEqual(wire.answer().status, 200)


class Random(ProbeTest):
    """A mutated request may still be valid, but must do no harm."""

    def setUp(self):
        super().setUp()
        self.hurry()
        self.rng = random.Random(f"{SEED} mutants")

    def mutant(self) -> bytes:
        base = bytearray(self.bytes_of(self.rng.choice((
            post(LENGTH, target=FEED.replace(b"probe", b"mutant")),
            post(b"Transfer-Encoding: chunked", target=FEED.replace(b"probe", b"mutant"),
                 body=b"8\r\n12345678\r\n0\r\n\r\n"),
            post(b"Content-Type: application/json", b"Content-Length: 27", target=b"/v1/engines",
                 body=b'{"name": "mutant", "nodes":3'),
            b"GET /v1/engines/mutant/batches?since=0&limit=9 HTTP/1.1\r\nHost: %H\r\n"
            b"Accept: */*\r\n\r\n"))))
        for _ in range(self.rng.randint(1, 6)):
            at = self.rng.randrange(len(base))
            piece = self.rng.choice((bytes([self.rng.randrange(256)]), b"", CRLF, b"\n", b"\0",
                                      b" ", b":", b"%", base[at:at + 20] * 2, b"9" * 30, b"\xff"))
            base[at:at + self.rng.choice((0, 1, 1, 3))] = piece
        return bytes(base)

    def harmless(self, probe):
        with Wire(self.instance) as wire:
            try:
                for answer in wire.send(probe).finish().answers():
                    if answer.status >= 400 and answer.type == contract.PROBLEM_TYPE:
                        contract.check_problem(answer, repr(probe[:300]))
            except BadAnswer as why:
                raise AssertionError(f"{why} after {probe[:300]!r}") from why

    def all_harmless(self, requests):
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(self.harmless, requests))
        self.assert_healthy()

    def test_mutants(self):
        self.all_harmless([self.mutant() for _ in range(MUTANTS)])

    def test_noise(self):
        self.all_harmless([self.rng.randbytes(self.rng.randint(1, 3000))
                           for _ in range(MUTANTS // 3)])

    def test_cut_anywhere(self):
        """Every prefix of a request: nothing is fed before the last byte."""
        whole = self.bytes_of(post(LENGTH, b"X: y"))
        self.assertTrue(whole.endswith(EIGHT))
        self.all_harmless([whole[:end] for end in range(0, len(whole), 3 if SANITIZED else 1)])
