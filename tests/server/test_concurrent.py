# SPDX-License-Identifier: MIT
"""Concurrent clients, engines and body sizes give the same result as one request after another.

A client that gets a 409 tries again, from the reported position or without one.  The order of
commits follows from the responses; the oracle, which is sequential, must give the same report for
that order.
"""

import random
import threading

import contract
from api import Api, ServerTest, report_of
from exposition import uploads
from harness import SANITIZED, SEED, oracle, pack
from load import ENGINES, Load
from model import by_command, in_order, plan_of
from serving import wait_until
from wire import Wire, request

FEEDS = 150 if SANITIZED else 600


class Clients(ServerTest):
    def test_keys_and_random_cuts(self):
        server = self.serve()
        load = Load(server, f"{SEED} clients", threads=8, large=60).create()
        load.start().run_until(FEEDS, 300).join()
        self.assertEqual(load.settle(), 0)  # no connection was lost
        load.prove()
        self.assertGreater(min(len(load.ordered(name)) for name in ENGINES), 10)
        server.kill()
        server.start()
        load.prove()


class Positions(ServerTest):
    """With `at` and without a key: a refused client learns the position of the engine."""

    def setUp(self):
        super().setUp()
        self.instance = self.serve()
        self.lock, self.done, self.broken = threading.Lock(), [], []

    def worker(self, number, rounds, large, has_at):
        rng = random.Random(f"{SEED} {number}")
        api = Api(self.instance)
        position = 0
        try:
            for _ in range(rounds):
                count = rng.randint(17000, 19000) if rng.random() < large else rng.randint(1, 99)
                tokens = [rng.randrange(2**32) for _ in range(count)]
                while True:
                    cuts = [rng.randint(500, 9000)] if rng.random() < 0.5 else None
                    answer = api.feed("shared", pack(tokens), at=position if has_at else None,
                                      cuts=cuts)
                    if answer.status == 200:
                        break
                    assert contract.kind(answer) == "position-mismatch", answer
                    position = answer.json["position"]
                position = answer.json["tokens"]
                with self.lock:
                    self.done.append((tokens, answer.json))
        except Exception as why:  # pylint: disable=broad-except
            self.broken.append(repr(why))
        api.close()

    def race(self, threads, rounds, large, has_at):
        config = ENGINES["stream"]
        self.created(self.api(self.instance), "shared", **plan_of(config))
        workers = [threading.Thread(target=self.worker, args=(k, rounds, large, has_at(k)))
                   for k in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual(self.broken, [])
        self.assertEqual(len(self.done), threads * rounds)
        bodies = in_order(self.done)
        engine = oracle.Engine(config)
        for tokens in bodies:
            engine.feed(tokens)
        found = self.api(self.instance).engine("shared")
        stream = [token for tokens in bodies for token in tokens]
        self.assertEqual(report_of(found), dict(engine.report(), seal=oracle.seal(stream)))

    def test_all_clients_send_a_position(self):
        self.race(8, 6 if SANITIZED else 20, 0.1, lambda k: True)

    def test_some_clients_send_a_position(self):
        self.race(8, 6 if SANITIZED else 20, 0.1, lambda k: k % 2)

    def test_small_bodies_without_a_position_are_all_accepted(self):
        """Small bodies are queued; none is refused."""
        self.created(self.api(self.instance), "e", nodes=2)
        refused = []

        def feed(k):
            api = Api(self.instance)
            for _ in range(40):
                answer = api.feed("e", pack([k] * 100))
                if answer.status != 200:
                    refused.append(str(answer))
            api.close()

        threads = [threading.Thread(target=feed, args=(k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(refused, [])
        self.assertEqual(self.api(self.instance).engine("e")["tokens"], 8 * 40 * 100)


class Large(ServerTest):
    def test_overtaken_large_body_is_refused(self):
        """It is refused with the position and changes nothing."""
        server = self.serve()
        api = self.api(server)
        self.created(api, "e", nodes=4, batch=1000)
        body = pack(oracle.gen(1, 50_000, 1000))
        first, rest = body[:100_000], body[100_000:]
        for framing, header, first, rest in (
                ("length", ("Content-Length", str(len(body))), first, rest),
                ("chunked", ("Transfer-Encoding", "chunked"),
                 b"%x\r\n" % len(first) + first + b"\r\n",
                 b"%x\r\n" % len(rest) + rest + b"\r\n0\r\n\r\n")):
            with self.subTest(framing=framing):
                head = request("POST", "/v1/engines/e/feed", server.host, [header])
                wait_until("a body that is overtaken",
                           lambda h=head + first, r=rest: self.is_overtaken(server, api, h, r))

    def is_overtaken(self, server, api, first, rest) -> bool:
        """A body is counted just before it reads the position of the engine.  If it is delayed in
        between, it is accepted, and the attempt proves nothing."""
        before = api.engine("e")["tokens"]
        with Wire(server) as slow:
            slow.send(first)
            wait_until("the upload", lambda: uploads(api) == 1)
            self.fed(api, "e", pack([1, 2, 3]))
            answer = slow.send(rest).answer()
        contract.check("POST", "/v1/engines/e/feed", answer)
        if answer.status == 200:
            self.assertEqual(answer.json["tokens"], before + 3 + 50_000)
            return False
        self.assert_problem(answer, "position-mismatch")
        self.assertEqual(answer.json["position"], before + 3)
        self.assertEqual(api.engine("e")["tokens"], before + 3)
        return True

    def test_large_bodies_equal_the_command(self):
        """Several clients send megabytes, each to its own engine and to a shared one."""
        server = self.serve()
        api = self.api(server)
        config = oracle.Config(nodes=64, batch=100_000)
        for name in ("a", "b", "shared"):
            self.created(api, name, **plan_of(config))
        done, lock, broken = {"a": [], "b": [], "shared": []}, threading.Lock(), []

        def write(number):
            rng, client = random.Random(f"{SEED} large {number}"), Api(server)
            try:
                for _ in range(3):
                    for name in (("a", "b")[number % 2], "shared"):
                        body = rng.randbytes(4 * rng.randint(20_000, 600_000))
                        while (answer := client.feed(name, body, cuts=[70_001])).status == 409:
                            pass
                        assert answer.status == 200, answer
                        with lock:
                            done[name].append((body, answer.json))
            except Exception as why:  # pylint: disable=broad-except
                broken.append(repr(why))
            client.close()

        threads = [threading.Thread(target=write, args=(k,)) for k in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(broken, [])
        for name, feeds in done.items():
            feeds.sort(key=lambda feed: feed[1]["tokens"])
            files = [(self.write(f"{name}-{k}", body), "u32") for k, (body, _) in enumerate(feeds)]
            expected = by_command(config, files, self.dir)
            self.assertEqual(report_of(api.engine(name)), report_of(expected))

    def test_engine_deleted_during_a_large_body(self):
        server = self.serve()
        api = self.api(server)
        self.created(api, "e", nodes=4)
        with Wire(server) as slow:
            slow.send(request("POST", "/v1/engines/e/feed", server.host,
                              [("Content-Length", "400000")]) + bytes(200_000))
            wait_until("the upload", lambda: uploads(api) == 1)
            self.assertEqual(api.call("DELETE", "/v1/engines/e").status, 204)
            self.created(api, "e", nodes=4)
            slow.send(bytes(200_000))
            answer = slow.answer()
            contract.check("POST", "/v1/engines/e/feed", answer)
            self.assert_problem(answer, "no-such-engine")
        self.assertEqual(api.engine("e")["tokens"], 0)
