# SPDX-License-Identifier: MIT
"""Access control by Host, Origin and token, and refusals before the body is sent."""

import hashlib
import re
import threading
import time

import contract
from api import ServerTest
from harness import pack
from serving import wait_until
from wire import Wire, request

TOKEN = "correct-horse-battery-staple-0123456789"
TARGETS = ("/v1/engines", "/v1/engines/e", "/v1/engines/e/state", "/v1/engines/e/batches",
           "/v1/engines/e/events", "/v1/events", "/v1/tickets", "/v1/info", "/metrics",
           "/openapi.json", "/report", "/nothing")


class Hosts(ServerTest):
    def setUp(self):
        super().setUp()
        self.instance = self.serve("--host", "iron.example.org", "--host", "other.example")
        self.client = self.api(self.instance)
        self.created(self.client, "e", nodes=2)

    def ask(self, host, target="/v1/engines", headers=(), method="GET"):
        with Wire(self.instance) as wire:
            answer = wire.send(request(method, target, host, headers)).answer()
        contract.check(method, target, answer)
        return answer

    def test_allowed_hosts(self):
        """The port is ignored: it differs behind a tunnel, and DNS rebinding uses only names."""
        port = self.instance.port
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"LocalHost:{port}",
                     "iron.example.org", f"iron.example.org:{port}", "IRON.example.ORG",
                     "127.0.0.1"):
            with self.subTest(host=host):
                self.assertEqual(self.ask(host).status, 200)

    def test_other_hosts_are_refused(self):
        port = self.instance.port
        for host in ("example.org", f"evil.example:{port}", "127.0.0.1.evil.example",
                     "localhost.evil.example", "0.0.0.0", f"evil.iron.example.org:{port}",
                     "iron.example.org..", "127.0.0.1:", "[::2]", "[::1", "192.0.2.1"):
            with self.subTest(host=host):
                answer = self.ask(host)
                self.assertIn(answer.status, (400, 421), str(answer))
        self.assert_problem(self.ask("example.org"), "wrong-host", "--host|example")

    def test_foreign_origins_are_refused(self):
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

    def test_own_origin_is_allowed(self):
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

    def test_valid_token(self):
        self.assertEqual(self.fed(self.client, "e", pack([1]))["tokens"], 1)
        answer = self.raw(self.instance, "GET", "/v1/engines",
                          [("Authorization", f"bearer {TOKEN}")])  # the scheme is case-insensitive
        self.assertEqual(answer.status, 200)

    def test_missing_and_wrong_tokens_are_refused(self):
        wrong = [[], [("Authorization", "Bearer")], [("Authorization", "Bearer ")],
                 [("Authorization", f"Bearer {TOKEN}x")],
                 [("Authorization", f"Bearer {TOKEN[:-1]}")],
                 [("Authorization", f"Bearer {TOKEN.upper()}")], [("Authorization", TOKEN)],
                 [("Authorization", f"Basic {TOKEN}")], [("Authorization", f"Bearer {TOKEN} x")],
                 [("Authorization", f"Bearer  x{TOKEN}")], [("X-Token", TOKEN)],
                 [("Authorization", "Bearer " + "x" * 5000)]]
        for k, headers in enumerate(wrong):  # an address that is wrong too often has to wait
            for target in TARGETS:
                with self.subTest(headers=str(headers)[:70], target=target):
                    answer = self.raw(self.instance, "GET", target, headers,
                                      source=(f"127.0.0.{2 + k}", 0))
                    self.assert_problem(answer, "unauthorized")
                    self.assertRegex(answer.get("www-authenticate"), "^Bearer")
                    self.assertNotIn(TOKEN, answer.body.decode())
        twice = [("Authorization", f"Bearer {TOKEN}"), ("Authorization", "Bearer x")]
        self.assertIn(self.raw(self.instance, "GET", "/v1/engines", twice).status, (400, 401))

    def test_wrong_tokens_are_answered_slowly(self):
        """Right tokens from the same address are not; a second's wait each leaves few guesses."""
        guesses, is_over = [], threading.Event()

        def guess():
            with Wire(self.instance) as wire:
                while not is_over.is_set():
                    wire.send(request("GET", "/v1/engines", self.instance.host,
                                      [("Authorization", "Bearer wrong")]))
                    answer = wire.answer()
                    contract.check("GET", "/v1/engines", answer)
                    guesses.append(answer.status)
        guessers = [threading.Thread(target=guess) for _ in range(8)]
        start = time.monotonic()
        for guesser in guessers:
            guesser.start()
        for _ in range(30):
            self.assertEqual(self.raw(self.instance, "GET", "/v1/engines",
                                      [("Authorization", f"Bearer {TOKEN}")]).status, 200)
            self.assertEqual(self.raw(self.instance, "GET", "/v1/engines").status, 401)
            time.sleep(0.05)
        is_over.set()
        for guesser in guessers:
            guesser.join()
        self.assertEqual(set(guesses), {401})
        self.assertLessEqual(len(guesses), 20 + 9 * (time.monotonic() - start + 1))

    def test_too_many_wrong_tokens_at_once(self):
        self.instance.set_options("--token-file", self.token_file, "--max-connections", 8)
        self.instance.restart()
        wrong = request("GET", "/v1/engines", self.instance.host,
                        [("Authorization", "Bearer wrong")])
        with Wire(self.instance) as wire:
            for _ in range(20):
                self.assertEqual(wire.send(wrong).answer().status, 401)

        def is_throttled():
            wires = [Wire(self.instance).send(wrong) for _ in range(5)]
            answers = [wire.answer() for wire in wires]
            for wire in wires:
                wire.close()
            return [a for a in answers if a and contract.kind(a) == "too-many-guesses"
                    and int(a.get("retry-after")) > 0]
        wait_until("a 429", is_throttled)
        self.client.close()
        self.assertEqual(self.client.engine("e")["tokens"], 0)

    def test_health_needs_no_token(self):
        for target in ("/healthz", "/readyz"):
            self.assertEqual(self.raw(self.instance, "GET", target).status, 200)
        health = self.raw(self.instance, "GET", "/healthz")  # also without a token
        self.assertEqual(health.get("www-authenticate"), "Bearer")
        health = self.raw(self.serve(data="open"), "GET", "/healthz")
        self.assertIsNone(health.get("www-authenticate"))

    def test_refusal_comes_before_the_body(self):
        """The response must come after the header of a large body, before any byte of the body."""
        for extra in ([], [("Expect", "100-continue")]):
            for headers in ([("Content-Length", str(1 << 30))], [("Transfer-Encoding", "chunked")]):
                with self.subTest(headers=headers + extra), Wire(self.instance) as wire:
                    wire.send(request("POST", "/v1/engines/e/feed", self.instance.host,
                                      headers + extra))
                    answer = wire.answer()
                    self.assertEqual(answer.status, 401, str(answer))

    def test_responses_do_not_contain_the_token(self):
        self.instance.stop()
        self.assertNotIn(TOKEN, "\n".join(self.instance.said))


class Roles(ServerTest):
    def setUp(self):
        super().setUp()
        hashed = hashlib.sha256(b"the-token-that-is-stored-as-a-hash").hexdigest()
        self.token_file = self.write("token", f"""# who may do what
token-that-may-read read
token-that-may-feed-some feed team-*
token-that-may-do-all admin
sha256:{hashed} admin team-*
""".encode())
        self.token_file.chmod(0o600)
        self.instance = self.serve("--token-file", self.token_file)
        self.reader = self.api(self.instance, token="token-that-may-read")
        self.feeder = self.api(self.instance, token="token-that-may-feed-some")
        self.admin = self.api(self.instance, token="token-that-may-do-all")
        self.team = self.api(self.instance, token="the-token-that-is-stored-as-a-hash")
        for name in ("team-1", "other"):
            self.created(self.admin, name, nodes=2)

    def test_roles(self):
        self.assertEqual(self.reader.engine("other")["tokens"], 0)
        for refused in (self.reader.feed("other", pack([1])), self.reader.create("more"),
                        self.reader.call("DELETE", "/v1/engines/other"),
                        self.feeder.create("team-2"),
                        self.feeder.call("DELETE", "/v1/engines/team-1")):
            self.assertEqual(refused.status, 403)
            self.assert_problem(refused, "forbidden", "role")
        self.fed(self.feeder, "team-1", pack([1]))
        self.fed(self.admin, "other", pack([1]))
        self.assertEqual(self.reader.post_json("/v1/engines/other/quantize",
                                               {"values": [1]}).status, 200)
        self.assertEqual(self.reader.call("POST", "/v1/tickets").status, 201)

    def test_engines(self):
        for refused in (self.feeder.feed("other", pack([1])), self.team.create("more"),
                        self.feeder.get("/v1/engines/other"), self.feeder.get("/v1/engines/none"),
                        self.feeder.get("/v1/engines/other/state"),
                        self.feeder.get("/v1/engines/other/events"),
                        self.feeder.get("/v1/events?engine=other"),
                        self.team.call("DELETE", "/v1/engines/other")):
            self.assert_problem(refused, "forbidden", "other|more|none")
        self.created(self.team, "team-2", nodes=2)
        for client, names in ((self.reader, ["other", "team-1", "team-2"]),
                              (self.feeder, ["team-1", "team-2"])):
            listed = client.get("/v1/engines").json["engines"]
            self.assertEqual([e["name"] for e in listed], names)
            self.assertEqual(set(re.findall(r'engine="([^"]+)"',
                                            client.get("/metrics").body.decode())), set(names))
            with Wire(self.instance) as wire:
                wire.send(request("GET", "/v1/events", self.instance.host,
                                  [("Authorization", f"Bearer {client.token}")]))
                self.assertEqual(wire.head().status, 200)
                while b"\n\n" not in wire.seen:
                    wire._more()
                self.assertEqual(b"other" in wire.seen, "other" in names)
        self.assertEqual(self.team.call("DELETE", "/v1/engines/team-2").status, 204)


class Tickets(ServerTest):
    """A link cannot send a token; a ticket opens the report once."""

    def setUp(self):
        super().setUp()
        token_file = self.write("token", TOKEN.encode() + b"\n")
        token_file.chmod(0o600)
        page = self.write("page.html", b"<!doctype html><title>t</title>")
        self.instance = self.serve("--token-file", token_file, "--report", page)
        self.client = self.api(self.instance, token=TOKEN)

    def ticket(self) -> str:
        answer = self.client.call("POST", "/v1/tickets")
        self.assertEqual((answer.status, answer.json["seconds"]), (201, 60), str(answer))
        self.assertEqual(answer.get("cache-control"), "no-store")
        return answer.json["ticket"]

    def look(self, ticket, method="GET"):
        return self.raw(self.instance, method, f"/report?ticket={ticket}")

    def test_ticket_is_valid_once(self):
        one, other = self.ticket(), self.ticket()
        self.assertNotEqual(one, other)
        answer = self.look(one)
        self.assertEqual((answer.status, answer.type), (200, "text/html"))
        again = self.look(one)
        self.assert_problem(again, "unauthorized", "ticket .* used.*POST /v1/tickets")
        self.assertRegex(again.get("www-authenticate"), "^Bearer")
        self.assertEqual(self.look(other, "HEAD").status, 200)
        self.assert_problem(self.look(other), "unauthorized")

    def test_invalid_tickets_are_refused(self):
        good = self.ticket()
        for guess in ("", "0", "0" * 32, good[:-1], good + "0", good[:-1] + "G", good[::-1] + "x",
                      "%00", TOKEN, f"{good}%20", f"%20{good}"):
            with self.subTest(guess=guess):
                answer = self.look(guess)
                self.assertIn(answer.status, (400, 401), str(answer))
        self.assertEqual(self.look(good).status, 200)

    def test_ticket_is_valid_only_for_the_report(self):
        good = self.ticket()
        for target in (f"/v1/engines?ticket={good}", f"/v1/info?ticket={good}",
                       f"/metrics?ticket={good}", f"/nothing?ticket={good}"):
            self.assert_problem(self.raw(self.instance, "GET", target), "unauthorized")
        for method, target in (("POST", f"/v1/tickets?ticket={good}"),
                               ("POST", f"/report?ticket={good}"),
                               ("DELETE", f"/report?ticket={good}")):
            self.assert_problem(self.raw(self.instance, method, target), "unauthorized")
        self.assertEqual(self.look(good).status, 200)

    def test_ticket_requires_the_token(self):
        self.assert_problem(self.raw(self.instance, "POST", "/v1/tickets"), "unauthorized")

    def test_token_does_not_use_up_the_ticket(self):
        good = self.ticket()
        self.assertEqual(self.client.get(f"/report?ticket={good}").status, 200)
        self.assertEqual(self.look(good).status, 200)

    def test_oldest_ticket_expires_first(self):
        all_ = [self.ticket() for _ in range(65)]
        self.assert_problem(self.look(all_[0]), "unauthorized")
        self.assertEqual(self.look(all_[1]).status, 200)
        self.assertEqual(self.look(all_[64]).status, 200)

    def test_concurrent_uses_of_one_ticket_succeed_once(self):
        ticket, found = self.ticket(), []
        askers = [threading.Thread(target=lambda: found.append(self.look(ticket).status))
                  for _ in range(16)]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
        self.assertEqual(sorted(found), [200] + [401] * 15)

    def test_ticket_is_not_logged(self):
        ticket = self.ticket()
        self.look(ticket)
        self.look(ticket)
        self.instance.stop()
        self.assertNotIn(ticket, "\n".join(self.instance.said))

    def test_report_is_sandboxed(self):
        answer = self.look(self.ticket())
        policy = {p.strip() for p in answer.get("content-security-policy").split(";")}
        self.assertIn("sandbox allow-scripts allow-downloads allow-popups", policy)
        self.assertEqual(answer.get("referrer-policy"), "no-referrer")

    def test_tickets_without_a_token(self):
        page = self.write("page.html", b"<!doctype html><title>t</title>")
        server = self.serve("--report", page, data="open")
        client = self.api(server)
        ticket = client.call("POST", "/v1/tickets").json["ticket"]
        for target in ("/report", f"/report?ticket={ticket}", f"/report?ticket={ticket}"):
            self.assertEqual(client.get(target).status, 200)


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
        contract.check("POST", target, answer)
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

    def test_expect_continue(self):
        """A client that sends Expect: 100-continue gets 100, then the response."""
        with Wire(self.instance) as wire:
            wire.send(request("POST", "/v1/engines/e/feed", self.instance.host,
                              [("Content-Length", "8"), ("Expect", "100-continue")]))
            self.assertEqual(wire.answer().status, 100)
            wire.send(pack([1, 2]))
            self.assertEqual(wire.answer().json["tokens"], 2)
