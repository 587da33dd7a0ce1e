# SPDX-License-Identifier: MIT
"""Clients that are too slow, disconnect early or open too many connections.

The server must close their connections, with an error response where that is possible, and keep
nothing of them.  The tests set short timeouts.  They check that a connection ends, not how soon;
every read has a timeout (wire.ANSWER_S) that only a hung server reaches.
"""

import select
import time

import contract
from api import ServerTest
from exposition import uploads
from harness import LONG, SANITIZED, pack
from serving import wait_until
from wire import Wire, chunked, request

FEED = "/v1/engines/e/feed"
CUTS = 200 if SANITIZED else 1000
SILENT = 1000 if LONG else 100


class LimitTest(ServerTest):
    def begin(self, *options):
        """Creates and feeds an engine, then restarts the server with these options."""
        self.instance = self.serve()
        self.client = self.api(self.instance, is_patient=True)
        self.created(self.client, "e", nodes=1000)
        self.fed(self.client, "e", pack([1, 2, 3]))
        self.before = self.client.engine("e")
        self.instance.set_options(*options)
        self.instance.restart()

    def assert_as_before(self):
        self.client.close()
        self.assertEqual(self.before, self.client.engine("e"))

    def post(self, *headers, body=b""):
        return request("POST", FEED, self.instance.host, headers, body)

    def assert_ended(self, wire, kinds=("too-slow",)):
        """The connection ends, after at most one response, a problem of one of these kinds."""
        answers = wire.answers()
        self.assertLessEqual(len(answers), 1)
        for answer in answers:
            contract.check("POST", FEED, answer)
            self.assertIn(contract.kind(answer), kinds)
        return answers


class Slow(LimitTest):
    def assert_all_ended(self, beginnings):
        """Sends each incomplete request over its own connection; the server ends all of them."""
        wires = [self.wire(self.instance).send(text) for text in beginnings]
        for text, wire in zip(beginnings, wires):
            with self.subTest(text=text[:200]):
                self.assert_ended(wire)
        self.assert_as_before()

    def test_incomplete_header_times_out(self):
        self.begin("--header-seconds", 1)
        self.assert_all_ended([b"", b"P", b"POST /v1/engines/e/feed HTTP/1.1\r\n",
                               self.post(("Content-Length", "8"))[:-2]])

    def test_slow_header_times_out(self):
        """The time limit is for the whole header: inactivity alone would never end it."""
        self.begin("--header-seconds", 1)
        with Wire(self.instance, timeout=0.05) as wire:
            wire.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: ")

            def is_ended():
                wire.send(b"y")
                try:
                    return wire.socket.recv(4096) == b""
                except TimeoutError:
                    return False
                except ConnectionError:
                    return True
            wait_until("a slow header times out", is_ended)
        self.assert_as_before()

    def test_idle_connection_is_closed(self):
        self.begin("--header-seconds", 1)

        def is_served_and_closed():
            """False if this client was too slow itself to send the first request."""
            with Wire(self.instance) as wire:
                first = wire.send(request("GET", "/healthz", self.instance.host)).answer()
                self.assert_ended(wire)
            return first is not None and first.status == 200
        wait_until("a response, and the end of the connection", is_served_and_closed)

    def test_incomplete_body_times_out(self):
        self.begin("--request-seconds", 1)
        self.assert_all_ended([
            self.post(("Content-Length", "8"), body=b"1234"),
            self.post(("Content-Length", "800000"), body=bytes(300_000)),
            self.post(("Transfer-Encoding", "chunked"), body=b"8\r\n1234"),
            self.post(("Transfer-Encoding", "chunked"), body=b"4\r\n1234\r\n")])

    def test_slow_body_times_out(self):
        self.begin("--request-seconds", 1)
        with Wire(self.instance, timeout=0.05) as wire:
            wire.send(self.post(("Content-Length", "1000000")))

            def is_ended():
                wire.send(bytes(10))
                try:
                    return not wire.socket.recv(4096)
                except TimeoutError:
                    return False
                except ConnectionError:
                    return True
            wait_until("a slow body times out", is_ended)
        self.assert_as_before()

    def test_body_below_minimum_rate_is_ended(self):
        """The rate is checked after ten seconds; the time limit of the request is an hour."""
        self.begin("--min-body-rate", 1_000_000)
        with Wire(self.instance, timeout=0.25) as wire:
            wire.send(self.post(("Content-Length", "100000000")))
            start = time.monotonic()

            def is_ended():
                wire.send(bytes(1000))
                try:
                    return not wire.socket.recv(4096)
                except TimeoutError:
                    return False
                except ConnectionError:
                    return True
            wait_until("the end of a body below the minimum rate", is_ended)
            self.assertGreater(time.monotonic() - start, 5, "the rate was checked too early")
        self.assert_as_before()

    def test_slow_clients_do_not_block_others(self):
        self.begin("--request-seconds", 3)
        slow = [Wire(self.instance) for _ in range(20)]
        for k, wire in enumerate(slow):
            wire.send(self.post(("Content-Length", "900000"), body=bytes(k * 10_000)))
        for _ in range(20):
            self.assertEqual(self.client.get("/healthz").status, 200)
        self.fed(self.client, "e", pack([4]))
        for wire in slow:
            self.assert_ended(wire)
            wire.close()


class Truncated(LimitTest):
    def test_truncated_body_changes_nothing(self):
        """Closed, half closed and reset halfway, with small and large bodies."""
        self.begin()
        for size in (8, 4000, 60_000, 300_000):
            for framing in ("length", "chunked"):
                for end in ("close", "finish", "reset"):
                    with self.subTest(size=size, framing=framing, end=end):
                        wire = Wire(self.instance)
                        if framing == "length":
                            body = bytes(size // 2)
                            headers = ("Content-Length", str(size))
                        else:
                            body = chunked(bytes(size // 2), [1000])[:-5]
                            headers = ("Transfer-Encoding", "chunked")
                        wire.send(self.post(headers, body=body))
                        getattr(wire, end)()
                        if end == "finish":
                            for answer in wire.answers():
                                self.assertGreaterEqual(answer.status, 400)
                            wire.close()
        self.assert_as_before()

    def test_aborted_uploads_leak_nothing(self):
        self.begin()
        self.cut(50)  # one-time allocations
        wait_until("connections to be closed", lambda: self.instance.descriptors() < 100)
        memory, files = self.instance.resident_mib(), self.instance.descriptors()
        disk = self.disk()
        self.cut(CUTS)
        wait_until("a connection", lambda: self.api(self.instance).get("/healthz").status == 200)
        self.assert_as_before()
        wait_until("descriptors to be closed",
                   lambda: self.instance.descriptors() <= files + 2)
        if not SANITIZED:  # which delays freeing memory
            self.assertLess(self.instance.resident_mib(), memory + 32)
        self.assertLess(self.disk(), disk + (32 << 20))
        self.fed(self.client, "e", bytes(200_000))
        self.instance.restart()
        self.assertEqual(self.client.engine("e")["tokens"], 50_003)

    def cut(self, count):
        for k in range(count):
            wire = Wire(self.instance)
            wire.send(self.post(("Content-Length", "400000"), body=bytes(1000 + 300 * (k % 700))))
            if k % 2:
                wire.reset()
            else:
                wire.close()

    def disk(self):
        return sum(p.stat().st_size for p in self.instance.data.rglob("*") if p.is_file())


class Many(LimitTest):
    def refusal(self):
        """The response to one more request; None if the connection was closed without one."""
        with Wire(self.instance) as wire:
            return wire.send(request("GET", "/healthz", self.instance.host)).answer()

    def assert_refusal(self, answer, statuses):
        self.assertIsNotNone(answer, "closed without a response")
        contract.check("GET", "/healthz", answer)
        self.assertIn(answer.status, statuses, str(answer))
        self.assertGreaterEqual(int(answer.get("retry-after")), 0)

    def serves_again(self):
        answer = self.refusal()
        return answer is not None and answer.status == 200

    def hold(self):
        """A connection with a request whose body is incomplete."""
        return self.wire(self.instance).send(self.post(("Content-Length", "8"), body=b"1234"))

    def refuses(self, held, statuses):
        """Waits for five refusals in a row.  A connection that this test closed earlier may still
        be counted; when its slot becomes free, one more request takes it."""
        in_a_row = 0

        def is_refused():
            nonlocal in_a_row
            answer = self.refusal()
            if answer is not None and answer.status == 200:
                held.append(self.hold())
                in_a_row = 0
                return False
            self.assert_refusal(answer, statuses)
            in_a_row += 1
            return in_a_row == 5

        wait_until("refusals in a row", is_refused)

    def test_connection_limit(self):
        self.begin("--max-connections", 7)  # too few for a share of probes
        self.client.close()
        held = [self.hold() for _ in range(7)]
        self.refuses(held, (503,))
        for wire in held:
            wire.close()
        wait_until("a free connection", self.serves_again)
        self.assert_as_before()

    def test_probes_have_connections_of_their_own(self):
        self.begin("--max-connections", 32)
        self.client.close()
        held = []
        wait_until("all connections of others", lambda: held.append(self.hold()) or select.select(
            held, [], [], 0.1)[0])  # one was refused
        for target in ("/healthz", "/readyz"):
            self.assertEqual(self.raw(self.instance, "GET", target).status, 200)
        answer = self.raw(self.instance, "GET", "/v1/engines")
        self.assert_problem(answer, "busy", "token")

    def test_descriptor_limit_lowers_connection_limit(self):
        """With few file descriptors the server accepts fewer connections and refuses the rest."""
        self.begin()
        self.instance.wrapper = ["prlimit", "--nofile=64:64"]
        self.instance.restart()
        limits = self.client.get("/v1/info").json["limits"]
        self.assertEqual(limits["max_connections"], 32)
        self.client.close()
        for _ in range(40):
            self.hold()
        self.assert_problem(self.raw(self.instance, "GET", "/v1/engines"), "busy")
        for _ in range(100):  # these wait for nothing but a header
            self.wire(self.instance)
        self.assertEqual(self.raw(self.instance, "GET", "/healthz").status, 200)

    def test_idle_connections_time_out(self):
        self.begin("--max-connections", 20, "--header-seconds", 1)
        self.client.close()
        idle = [Wire(self.instance) for _ in range(60)]
        wait_until("a free connection", self.serves_again)
        for wire in idle:
            wire.close()
        self.assert_as_before()

    def test_connection_limit_per_address(self):
        self.begin("--max-per-address", 10)
        self.client.close()
        held = [self.hold() for _ in range(10)]
        self.refuses(held, (429,))
        with Wire(self.instance, source=("127.0.0.2", 0)) as other:  # another address
            other.send(request("GET", "/healthz", self.instance.host))
            self.assertEqual(other.answer().status, 200)
        for wire in held:
            wire.close()
        wait_until("a free connection", self.serves_again)
        self.assert_as_before()

    def test_silent_connections_lock_nobody_out(self):
        """Timeouts are ten minutes here: only making room lets the others in."""
        limits = () if LONG else ("--max-connections", 64, "--max-per-address", 32)
        token_file = self.write("token", b"correct-horse-battery-staple\n")
        token_file.chmod(0o600)
        self.begin("--token-file", token_file, *limits)
        client = self.api(self.instance, token="correct-horse-battery-staple")
        client.engine("e")  # a connection that is kept open
        worst = 0
        for k in range(3 * SILENT):
            wire = self.wire(self.instance, source=(f"127.0.0.{1 + k % 8}", 0))
            if k % 3 == 0:
                wire.send(b"GET / HT")
            if k % 10 == 0:
                start = time.monotonic()
                self.assertEqual(self.raw(self.instance, "GET", "/healthz").status, 200)
                self.fed(client, "e", pack([k]))
                worst = max(worst, time.monotonic() - start)
        self.assertEqual(client.engine("e")["tokens"], 3 + 3 * SILENT // 10)
        print(f"[/healthz and a feed: at most {worst:.3f} s]", end=" ", flush=True)

    def test_upload_limit(self):
        self.begin("--max-uploads", 3)
        wires = []
        for k in range(3):
            self.created(self.client, f"u{k}", nodes=2)
            wires.append(Wire(self.instance))
            wires[k].send(request("POST", f"/v1/engines/u{k}/feed", self.instance.host,
                                  [("Content-Length", "400000")], bytes(200_000)))
        wait_until("three uploads", lambda: uploads(self.client) == 3)
        before = self.client.engine("e")
        answer = self.client.feed("e", bytes(200_000))
        self.assert_problem(answer, "busy")
        self.assertIsNotNone(answer.get("retry-after"))
        self.assertEqual(before, self.client.engine("e"))
        self.fed(self.client, "e", pack([1]))  # a small body does not count as an upload
        for wire in wires:
            wire.send(bytes(200_000))
            self.assertEqual(wire.answer().status, 200)
            wire.close()
        self.fed(self.client, "e", bytes(200_000), at=before["tokens"] + 1)
