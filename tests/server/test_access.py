# SPDX-License-Identifier: MIT
"""Who is let in: Host, Origin, the token; and what is said before a body is sent."""

import contract
from api import ServerTest
from harness import pack
from wire import Wire, request

TOKEN = "correct-horse-battery-staple-0123456789"
TARGETS = ("/v1/engines", "/v1/engines/e", "/v1/engines/e/state", "/v1/engines/e/batches",
           "/v1/engines/e/events", "/v1/info", "/metrics", "/openapi.json", "/report", "/nothing")


class Hosts(ServerTest):
    def setUp(self):
        super().setUp()
        self.instance = self.serve("--host", "iron.example.org", "--host", "other.example")
        self.client = self.api(self.instance)
        self.created(self.client, "e", nodes=2)

    def ask(self, host, target="/v1/engines", headers=(), method="GET"):
        with Wire(self.instance) as wire:
            answer = wire.send(request(method, target, host, headers)).answer()
        contract.judge(method, target, answer)
        return answer

    def test_names_that_are_ours(self):
        """The port is not looked at: it is another one behind a tunnel, and no name to rebind."""
        port = self.instance.port
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"LocalHost:{port}",
                     "iron.example.org", f"iron.example.org:{port}", "IRON.example.ORG",
                     "127.0.0.1"):
            with self.subTest(host=host):
                self.assertEqual(self.ask(host).status, 200)

    def test_names_that_are_not(self):
        port = self.instance.port
        for host in ("example.org", f"evil.example:{port}", "127.0.0.1.evil.example",
                     "localhost.evil.example", "0.0.0.0", f"evil.iron.example.org:{port}",
                     "iron.example.org..", "127.0.0.1:", "[::2]", "[::1", "192.0.2.1"):
            with self.subTest(host=host):
                answer = self.ask(host)
                self.assertIn(answer.status, (400, 421), str(answer))
        self.assert_problem(self.ask("example.org"), "wrong-host", "--host|example")

    def test_foreign_pages(self):
        port = self.instance.port
        for origin in ("http://evil.example", "https://evil.example:444", "null",
                       f"http://127.0.0.1:{port % 65535 + 1}", "http://127.0.0.1", "file://",
                       f"http://127.0.0.1:{port}.evil.example", f"https://127.0.0.1:{port}"):
            for method, target in (("GET", "/v1/engines"), ("POST", "/v1/engines/e/feed"),
                                   ("DELETE", "/v1/engines/e"), ("GET", "/healthz")):
                with self.subTest(origin=origin, target=target):
                    answer = self.ask(self.instance.host, target, [("Origin", origin)], method)
                    self.assert_problem(answer, "foreign-origin")
        self.assertEqual(self.client.engine("e")["tokens"], 0)

    def test_our_own_page(self):
        for host in (self.instance.host, f"localhost:{self.instance.port}"):
            answer = self.ask(host, headers=[("Origin", f"http://{host}")])
            self.assertEqual(answer.status, 200, str(answer))


class Tokens(ServerTest):
    def setUp(self):
        super().setUp()
        self.token_file = self.write("token", TOKEN.encode() + b"\n")
        self.token_file.chmod(0o600)
        self.instance = self.serve("--token-file", self.token_file)
        self.client = self.api(self.instance, token=TOKEN)
        self.created(self.client, "e", nodes=2)

    def test_right(self):
        self.assertEqual(self.fed(self.client, "e", pack([1]))["tokens"], 1)
        answer = self.raw(self.instance, "GET", "/v1/engines",
                          [("Authorization", f"bearer {TOKEN}")])  # the scheme has no case
        self.assertEqual(answer.status, 200)

    def test_missing_and_wrong(self):
        wrong = [[], [("Authorization", "Bearer")], [("Authorization", "Bearer ")],
                 [("Authorization", f"Bearer {TOKEN}x")],
                 [("Authorization", f"Bearer {TOKEN[:-1]}")],
                 [("Authorization", f"Bearer {TOKEN.upper()}")], [("Authorization", TOKEN)],
                 [("Authorization", f"Basic {TOKEN}")], [("Authorization", f"Bearer {TOKEN} x")],
                 [("Authorization", f"Bearer  x{TOKEN}")], [("X-Token", TOKEN)],
                 [("Authorization", "Bearer " + "x" * 5000)]]
        for headers in wrong:
            for target in TARGETS:
                with self.subTest(headers=str(headers)[:70], target=target):
                    answer = self.raw(self.instance, "GET", target, headers)
                    self.assert_problem(answer, "unauthorized")
                    self.assertRegex(answer.get("www-authenticate"), "^Bearer")
                    self.assertNotIn(TOKEN, answer.body.decode())
        twice = [("Authorization", f"Bearer {TOKEN}"), ("Authorization", "Bearer x")]
        self.assertIn(self.raw(self.instance, "GET", "/v1/engines", twice).status, (400, 401))

    def test_health_is_open(self):
        for target in ("/healthz", "/readyz"):
            self.assertEqual(self.raw(self.instance, "GET", target).status, 200)

    def test_said_before_the_body(self):
        """A large length and no byte of the body: the answer must come, whatever is waited for."""
        for extra in ([], [("Expect", "100-continue")]):
            for headers in ([("Content-Length", str(1 << 30))], [("Transfer-Encoding", "chunked")]):
                with self.subTest(headers=headers + extra), Wire(self.instance) as wire:
                    wire.send(request("POST", "/v1/engines/e/feed", self.instance.host,
                                      headers + extra))
                    answer = wire.answer()
                    self.assertEqual(answer.status, 401, str(answer))

    def test_the_token_is_not_told(self):
        self.instance.stop()
        self.assertNotIn(TOKEN, "\n".join(self.instance.said))


class BeforeTheBody(ServerTest):
    def setUp(self):
        super().setUp()
        self.instance = self.serve("--max-body", 100_000)
        self.client = self.api(self.instance)
        self.created(self.client, "e", nodes=2)

    def ask(self, target, *headers):
        with Wire(self.instance) as wire:
            wire.send(request("POST", target, self.instance.host, headers))
            answer = wire.answer()
        contract.judge("POST", target, answer)
        return answer

    def test_too_large(self):
        for length in (100_001, 1 << 40, 1 << 60):
            for extra in ((), (("Expect", "100-continue"),)):
                answer = self.ask("/v1/engines/e/feed", ("Content-Length", str(length)), *extra)
                self.assert_problem(answer, "too-large")

    def test_too_large_in_chunks(self):
        self.assert_problem(self.client.feed("e", bytes(100_004), cuts=[5000]), "too-large")
        self.assertEqual(self.client.engine("e")["tokens"], 0)
        self.assertEqual(self.fed(self.client, "e", bytes(100_000), cuts=[5000])["tokens"], 25_000)

    def test_other_refusals(self):
        length = ("Content-Length", "80000")
        self.assert_problem(self.ask("/v1/engines/none/feed", length), "no-such-engine")
        self.assert_problem(self.ask("/v1/engines/e/feed?dtype=f32", length), "bad-query")
        self.assert_problem(self.ask("/v1/engines/e/feed?at=1", length), "position-mismatch")
        self.assert_problem(self.ask("/v1/engines/e/feed", ("Content-Length", "80001")),
                            "ragged-body")
        self.assert_problem(self.ask("/nothing", length), "no-such-path")
        self.assert_problem(self.ask("/v1/engines", length, ("Content-Type", "text/plain")),
                            "unsupported-type")

    def test_continue(self):
        """A client that asks is told to go on, and then answered."""
        with Wire(self.instance) as wire:
            wire.send(request("POST", "/v1/engines/e/feed", self.instance.host,
                              [("Content-Length", "8"), ("Expect", "100-continue")]))
            self.assertEqual(wire.answer().status, 100)
            wire.send(pack([1, 2]))
            self.assertEqual(wire.answer().json["tokens"], 2)
