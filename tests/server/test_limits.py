# SPDX-License-Identifier: MIT
"""Clients that are slow, cut off, or too many: they are ended politely, and cost nothing for good.

Deadlines are set short.  That something ends is what is tested; how soon is not, but for the far
deadline of every read (wire.ANSWER_S), without which a test could wait for ever.
"""

import time

import contract
from api import ServerTest
from exposition import uploads
from harness import SANITIZED, pack
from serving import wait_until
from wire import Wire, chunked, request

FEED = "/v1/engines/e/feed"
CUTS = 200 if SANITIZED else 1000


class LimitTest(ServerTest):
    def begin(self, *options):
        """An engine that was fed, and then the server with these options."""
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
        """An answer of one of these kinds and then the end, or the end alone."""
        answers = wire.answers()
        self.assertLessEqual(len(answers), 1)
        for answer in answers:
            contract.judge("POST", FEED, answer)
            self.assertIn(contract.kind(answer), kinds)
        return answers


class Slow(LimitTest):
    def test_a_header_that_does_not_come(self):
        self.begin("--header-seconds", 1)
        for part in (b"", b"P", b"POST /v1/engines/e/feed HTTP/1.1\r\n",
                     self.post(("Content-Length", "8"))[:-2]):
            with self.subTest(part=part), Wire(self.instance) as wire:
                self.assert_ended(wire.send(part))
        self.assert_as_before()

    def test_a_header_that_trickles(self):
        """Each byte in time, the whole not: an inactivity timeout would wait for ever."""
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
            wait_until("the end of a trickling header", is_ended)
        self.assert_as_before()

    def test_an_idle_connection_is_closed(self):
        self.begin("--header-seconds", 2)

        def is_served_and_closed():
            """Unless it was closed because this client itself was too slow to ask."""
            with Wire(self.instance) as wire:
                first = wire.send(request("GET", "/healthz", self.instance.host)).answer()
                self.assert_ended(wire)
            return first is not None and first.status == 200
        wait_until("an answer, and the end", is_served_and_closed)

    def test_a_body_that_does_not_come(self):
        self.begin("--request-seconds", 1)
        for headers, body in (((("Content-Length", "8"),), b"1234"),
                              ((("Content-Length", "800000"),), bytes(300_000)),
                              ((("Transfer-Encoding", "chunked"),), b"8\r\n1234"),
                              ((("Transfer-Encoding", "chunked"),), b"4\r\n1234\r\n")):
            with self.subTest(headers=headers), Wire(self.instance) as wire:
                self.assert_ended(wire.send(self.post(*headers, body=body)))
        self.assert_as_before()

    def test_a_body_that_trickles(self):
        self.begin("--request-seconds", 2)
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
            wait_until("the end of a trickling body", is_ended)
        self.assert_as_before()

    def test_a_body_below_the_least_rate(self):
        """After ten seconds of grace; the request as a whole would have an hour."""
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
            wait_until("the end of a slow body", is_ended, 120)
            self.assertGreater(time.monotonic() - start, 5, "there are ten seconds of grace")
        self.assert_as_before()

    def test_others_are_served_meanwhile(self):
        self.begin("--request-seconds", 10)
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
    def test_half_a_body(self):
        """Closed, half closed and reset in the middle, before and after it was large."""
        self.begin()
        for size in (8, 4000, 60_000, 300_000):
            for framing in ("length", "chunked"):
                for way in ("close", "finish", "reset"):
                    with self.subTest(size=size, framing=framing, way=way):
                        wire = Wire(self.instance)
                        if framing == "length":
                            body = bytes(size // 2)
                            headers = ("Content-Length", str(size))
                        else:
                            body = chunked(bytes(size // 2), [1000])[:-5]
                            headers = ("Transfer-Encoding", "chunked")
                        wire.send(self.post(headers, body=body))
                        getattr(wire, way)()
                        if way == "finish":
                            for answer in wire.answers():
                                self.assertGreaterEqual(answer.status, 400)
                            wire.close()
        self.assert_as_before()

    def test_a_thousand_cut_uploads_leave_nothing(self):
        self.begin()
        self.cut(50)  # what is allocated once is allocated now
        wait_until("the end of what was cut", lambda: self.instance.descriptors() < 100)
        memory, files = self.instance.resident_mib(), self.instance.descriptors()
        disk = self.disk()
        self.cut(CUTS)
        wait_until("room", lambda: self.api(self.instance).get("/healthz").status == 200)
        self.assert_as_before()
        wait_until("descriptors to come back",
                   lambda: self.instance.descriptors() <= files + 2)
        if not SANITIZED:  # which keeps freed memory back
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
        """What a further request gets, or None where the connection was just closed."""
        with Wire(self.instance) as wire:
            return wire.send(request("GET", "/healthz", self.instance.host)).answer()

    def assert_polite(self, answer, statuses):
        self.assertIsNotNone(answer, "closed without a word")
        contract.judge("GET", "/healthz", answer)
        self.assertIn(answer.status, statuses, str(answer))
        self.assertGreaterEqual(int(answer.get("retry-after")), 0)

    def serves_again(self):
        answer = self.refusal()
        return answer is not None and answer.status == 200

    def refuses(self, idle, statuses):
        """Five times in a row. The place of a connection of ours that was closed before becomes
        free when the server notices; then one more idle connection takes it."""
        in_a_row = 0

        def is_refused():
            nonlocal in_a_row
            answer = self.refusal()
            if answer is not None and answer.status == 200:
                idle.append(Wire(self.instance))
                in_a_row = 0
                return False
            self.assert_polite(answer, statuses)
            in_a_row += 1
            return in_a_row == 5

        wait_until("refusals in a row", is_refused)

    def test_two_hundred_idle_connections(self):
        self.begin("--max-connections", 50)
        self.client.close()
        idle = [Wire(self.instance) for _ in range(200)]
        self.refuses(idle, (429, 503))
        for wire in idle:
            wire.close()
        wait_until("room again", self.serves_again)
        self.assert_as_before()

    def test_few_descriptors(self):
        """Where the system gives few, fewer connections are taken, and the others refused."""
        self.instance = self.serve("--header-seconds", 600, wrapper=("prlimit", "--nofile=64:64"))
        limits = self.api(self.instance).get("/v1/info").json["limits"]
        self.assertEqual(limits["max_connections"], 32)
        for _ in range(40):
            self.wire(self.instance)
        self.assert_polite(self.refusal(), (503,))

    def test_idle_connections_that_stay_are_ended(self):
        self.begin("--max-connections", 20, "--header-seconds", 2)
        self.client.close()
        idle = [Wire(self.instance) for _ in range(60)]
        wait_until("room again", self.serves_again)
        for wire in idle:
            wire.close()
        self.assert_as_before()

    def test_too_many_from_one_address(self):
        self.begin("--max-per-address", 10)
        self.client.close()
        idle = [Wire(self.instance) for _ in range(12)]
        self.refuses(idle, (429,))
        with Wire(self.instance, source=("127.0.0.2", 0)) as other:  # another address
            other.send(request("GET", "/healthz", self.instance.host))
            self.assertEqual(other.answer().status, 200)
        for wire in idle:
            wire.close()
        wait_until("room again", self.serves_again)
        self.assert_as_before()

    def test_too_many_uploads(self):
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
        self.fed(self.client, "e", pack([1]))  # a small one is no upload
        for wire in wires:
            wire.send(bytes(200_000))
            self.assertEqual(wire.answer().status, 200)
            wire.close()
        self.fed(self.client, "e", bytes(200_000), at=before["tokens"] + 1)
