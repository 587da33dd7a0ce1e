# SPDX-License-Identifier: MIT
"""kill -9 and clean stops under load: no acknowledged feed is lost, and none counts twice.

Feeds that got no answer are sent again with their key after the restart.  At the end every body
is in its engine exactly once, in the order that the answers tell, and the oracle agrees.
"""

import random
import signal
import threading
import time

import contract
from api import Gone, ServerTest, report_of
from exposition import uploads
from harness import LONG, SANITIZED, SEED, oracle, pack
from load import Load
from serving import wait_until
from wire import Wire, request

ROUNDS = 100 if LONG else 5
CLIENTS = 8
FEEDS = 40 if SANITIZED else 120  # minimum of acknowledged feeds between two kills


class Killed(ServerTest):
    def test_repeated_kills_under_load(self):
        server = self.serve()
        load = Load(server, f"{SEED} killed", threads=CLIENTS).create()
        rng = random.Random(f"{SEED} kills")
        unknown = known = 0
        for _ in range(ROUNDS):
            load.start().run_until(FEEDS).announce()
            time.sleep(rng.uniform(0, 0.05))
            server.kill()
            load.join()
            unknown += len(load.pending())
            server.start()
            known += load.settle()
        load.prove()
        print(f"[{load.answered()} feeds, {unknown} without an answer, of which {known} were done]",
              end=" ", flush=True)
        server.restart()
        load.prove()

    def test_kill_during_a_large_body(self):
        """Data written for an unfinished body is removed."""
        server = self.serve()
        api = self.api(server)
        self.created(api, "e", nodes=4, batch=1)
        self.fed(api, "e", pack([1, 2, 3]))
        before, size = report_of(api.engine("e")), self.disk(server)
        for _ in range(3):
            with Wire(server) as wire:
                wire.send(request("POST", "/v1/engines/e/feed", server.host,
                                  [("Content-Length", "8000000")]) + bytes(4_000_000))
                self.assertEqual(api.get("/healthz").status, 200)
                server.kill()
            server.start()
            self.assertEqual(before, report_of(api.engine("e")))
            self.assertEqual(api.get("/v1/engines/e/batches").json["total"], 3)
        server.restart()
        self.assertEqual(before, report_of(api.engine("e")))
        self.assertLess(self.disk(server), size + (64 << 20))

    @staticmethod
    def disk(server):
        return sum(p.stat().st_size for p in server.data.rglob("*") if p.is_file())

    def test_long_history_is_replayed(self):
        """More batches than a snapshot interval, in small and large feeds, then kill -9."""
        server = self.serve()
        api = self.api(server)
        config = oracle.Config(vocab=100, nodes=2, batch=1)
        self.created(api, "e", nodes=2, vocab=100, batch=1)
        bodies = [oracle.gen(k, 20_000 if SANITIZED else 40_000, 1000) for k in range(4)]
        for k, tokens in enumerate(bodies):
            if k % 2:
                self.fed(api, "e", pack(tokens))
            else:
                for first in range(0, len(tokens), 10_000):
                    self.fed(api, "e", pack(tokens[first:first + 10_000]))
        server.kill()
        server.start()
        engine = oracle.Engine(config)
        for tokens in bodies:
            engine.feed(tokens)
        stream = [token for tokens in bodies for token in tokens]
        self.assertEqual(report_of(api.engine("e")),
                         dict(engine.report(), seal=oracle.seal(stream)))
        more = [5, 6, 7]
        engine.feed(more)
        self.assertEqual(report_of(self.fed(api, "e", pack(more))),
                         dict(engine.report(), seal=oracle.seal(stream + more)))


class Stopped(ServerTest):
    def test_stop_under_load(self):
        """Every request gets an answer or a clean close; acknowledged feeds are present."""
        server = self.serve("--grace-seconds", 5)
        load = Load(server, f"{SEED} stopped").create()
        for _ in range(3):
            load.start().run_until(FEEDS).announce()
            server.stop()
            load.join()
            server.start()
            load.settle()
        load.prove()

    def test_large_body_may_finish_during_a_stop(self):
        server = self.serve("--grace-seconds", 600)
        api = self.api(server)
        self.created(api, "e", nodes=4)
        body = bytes(400_000)
        with Wire(server) as wire, Wire(server) as late:
            wire.send(request("POST", "/v1/engines/e/feed", server.host,
                              [("Content-Length", str(len(body)))]) + body[:200_000])
            late.send(b"POST /v1/engines/e/feed HTTP/1.1\r\nHost: ")
            wait_until("the upload", lambda: uploads(api) == 1)
            stopper = threading.Thread(target=server.stop)
            stopper.start()
            wait_until("the stop", lambda: self.is_stopping(api))
            late.send(f"{server.host}\r\nContent-Length: 4\r\n\r\n".encode() + pack([1]))
            refusal = late.answer()
            if refusal is not None:
                contract.check("POST", "/v1/engines/e/feed", refusal)
                self.assert_problem(refusal, "stopping")
            wire.send(body[200_000:])
            answer = wire.answer()
            stopper.join()
        self.assertEqual((answer.status, answer.json["tokens"]), (200, 100_000), str(answer))
        server.start()
        self.assertEqual(api.engine("e")["tokens"], 100_000)

    @staticmethod
    def is_stopping(api) -> bool:
        try:
            return api.get("/readyz").status == 503
        except Gone:
            return True  # new connections are refused

    def test_unfinished_body_is_dropped_after_the_grace_time(self):
        server = self.serve("--grace-seconds", 1)
        api = self.api(server)
        self.created(api, "e", nodes=4)
        with Wire(server) as wire:
            wire.send(request("POST", "/v1/engines/e/feed", server.host,
                              [("Content-Length", "400000")]) + bytes(200_000))
            self.assertEqual(api.get("/healthz").status, 200)
            server.stop()
            for answer in wire.answers():
                self.assertGreaterEqual(answer.status, 400)
        server.start()
        self.assertEqual(api.engine("e")["tokens"], 0)

    def test_no_memory_leaks(self):
        """In builds with leak detection: after load, refusals and truncated bodies."""
        server = self.serve(env={"ASAN_OPTIONS": "detect_leaks=1"})
        load = Load(server, f"{SEED} leaks").create().start().run_until(FEEDS).join()
        api = self.api(server)
        for target in ("/metrics", "/v1/info", "/v1/engines/stream/state?format=npy", "/nothing",
                       "/v1/engines/batch/batches?limit=3", "/v1/engines/none", "/openapi.json"):
            api.get(target)
        for end in (10, 70_000):
            with Wire(server) as wire:
                wire.send(request("POST", "/v1/engines/stream/feed", server.host,
                                  [("Content-Length", "400000")]) + bytes(end))
        self.assertEqual(api.call("DELETE", "/v1/engines/lattice").status, 204)
        self.assertGreater(load.answered(), 0)
        server.stop()

    def test_connections_are_refused_after_the_stop(self):
        server = self.serve()
        api = self.api(server)
        self.created(api, "e", nodes=1)
        server.stop()
        with self.assertRaises((Gone, ConnectionError)):
            api.get("/healthz")

    def test_sigint_stops_the_server(self):
        server = self.serve()
        server.stop(signal.SIGINT)
