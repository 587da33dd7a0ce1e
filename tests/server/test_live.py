# SPDX-License-Identifier: MIT
"""The event stream of the dashboard: all engines, one selected engine, and incoming bodies."""

import threading
import time
from contextlib import contextmanager

from api import ServerTest, report_of
from events import Events
from harness import pack
from wire import Wire, request

PLAN = {"nodes": 5, "batch": 16}


def row_of(event, name):
    """The row of an engine in an `engines` event, or None."""
    rows = event.data["engines"] if event.name == "engines" else ()
    return next((row for row in rows if row["name"] == name), None)


class LiveTest(ServerTest):
    def setUp(self):
        super().setUp()
        # a body that a test pauses halfway must not count as too slow
        self.instance = self.serve("--min-body-rate", "1")
        self.client = self.api(self.instance)

    def live(self, query="") -> Events:
        events = Events(self.instance, target=f"/v1/events{query}")
        self.addCleanup(events.wire.close)
        return events

    def row(self, events, name, **expected):
        """Reads events until the engine has these values; returns its row."""
        def matches(event):
            row = row_of(event, name)
            return row is not None and all(row[key] == value for key, value in expected.items())
        return row_of(events.until(matches), name)


class All(LiveTest):
    def test_first_event_is_complete(self):
        first = self.live().next()
        self.assertEqual((first.name, first.data),
                         ("engines", {"complete": True, "engines": [], "removed": []}))
        for name in ("b", "a", "c"):
            self.created(self.client, name, **PLAN)
        self.fed(self.client, "b", pack(range(40)))
        first = self.live().next()
        self.assertEqual((first.name, first.data["complete"], first.data["removed"]),
                         ("engines", True, []))
        self.assertEqual([row["name"] for row in first.data["engines"]], ["a", "b", "c"])
        for row in first.data["engines"]:
            engine = self.client.engine(row["name"])
            for key in ("tokens", "batches", "feeds", "changed"):
                self.assertEqual(row[key], engine[key], (row["name"], key))

    def test_changes_by_another_client_are_reported(self):
        events = self.live()
        events.next()
        self.created(self.client, "x", **PLAN)
        self.assertEqual(self.row(events, "x")["tokens"], 0)
        answer = self.fed(self.client, "x", pack(range(33)))
        row = self.row(events, "x", tokens=33)
        self.assertEqual((row["batches"], row["feeds"]), (answer["batches"], 1))
        self.created(self.client, "y", **PLAN)
        self.row(events, "y")
        self.assertEqual(self.client.call("DELETE", "/v1/engines/x").status, 204)
        event = events.until(lambda e: e.name == "engines" and e.data["removed"])
        self.assertEqual((event.data["removed"], event.data["complete"]), (["x"], False))

    def test_unchanged_engines_are_not_reported(self):
        for name in ("still", "fed"):
            self.created(self.client, name, **PLAN)
        events = self.live()
        events.next()
        self.fed(self.client, "fed", pack([1]))
        event = events.until(lambda e: row_of(e, "fed") and row_of(e, "fed")["tokens"] == 1)
        self.assertIsNone(row_of(event, "still"))

    def test_rate_returns_to_zero(self):
        """Also after a short feed, the last event reports a rate of 0."""
        self.created(self.client, "x", **PLAN)
        events = self.live()
        events.next()
        self.fed(self.client, "x", pack(range(100)))
        self.row(events, "x", tokens=100, rate=0, incoming=0)

    def test_at_most_four_events_per_second(self):
        self.created(self.client, "x", **PLAN)
        begun = time.monotonic()
        events = self.live()
        for k in range(300):
            self.fed(self.client, "x", pack([k]))
        count = 1
        while not ((row := row_of(events.next(), "x")) and row["tokens"] == 300):
            count += 1
        self.assertLessEqual(count, 4 * (time.monotonic() - begun) + 2)

    def test_many_engines(self):
        names = [f"e{k:03}" for k in range(200)]
        for name in names:
            self.created(self.client, name, nodes=1)
        events = self.live()
        self.assertEqual([row["name"] for row in events.next().data["engines"]], names)
        for name in names[::2]:
            self.assertEqual(self.client.call("DELETE", f"/v1/engines/{name}").status, 204)
        removed = []
        while len(removed) < 100:
            removed += events.next().data["removed"]
        self.assertEqual(sorted(removed), names[::2])


class Focus(LiveTest):
    def setUp(self):
        super().setUp()
        self.created(self.client, "x", **PLAN)

    def test_event_at_start_and_after_each_change(self):
        events = self.live("?engine=x")
        self.assertTrue(events.next().data["complete"])
        first = events.next()
        self.assertEqual((first.name, first.data["name"]), ("engine", "x"))
        self.assertEqual(report_of(first.data), report_of(self.client.engine("x")))
        version = first.data["version"]
        for k in range(5):
            answer = self.fed(self.client, "x", pack([k]))
            event = events.until(lambda e: e.name == "engine" and e.data["tokens"] == k + 1)
            self.assertEqual(report_of(event.data), report_of(answer))
            self.assertEqual(event.data["feeds"], k + 1)
            self.assertGreater(event.data["version"], version)
            version = event.data["version"]

    def test_at_most_sixty_events_per_second(self):
        begun = time.monotonic()
        events = self.live("?engine=x")
        feeders = [threading.Thread(target=self.feed_often, args=(200,)) for _ in range(4)]
        for feeder in feeders:
            feeder.start()
        count = 0
        while True:
            event = events.next()
            count += event.name == "engine"
            if event.name == "engine" and event.data["tokens"] == 800:
                break
        for feeder in feeders:
            feeder.join()
        self.assertLessEqual(count, 60 * (time.monotonic() - begun) + 2)

    def feed_often(self, times):
        client = self.api(self.instance)
        for k in range(times):
            self.fed(client, "x", pack([k]))

    def test_other_engines_are_reported_too(self):
        self.created(self.client, "y", **PLAN)
        events = self.live("?engine=x")
        events.next()
        self.fed(self.client, "y", pack([1, 2]))
        self.row(events, "y", tokens=2)

    def test_stream_survives_deletion_of_the_engine(self):
        events = self.live("?engine=x")
        self.fed(self.client, "x", pack([1]))
        events.until(lambda e: e.name == "engine" and e.data["tokens"] == 1)
        self.assertEqual(self.client.call("DELETE", "/v1/engines/x").status, 204)
        gone = events.until(lambda e: e.name == "deleted")
        self.assertEqual(gone.data, {"name": "x"})
        self.created(self.client, "y", **PLAN)
        self.row(events, "y")
        self.created(self.client, "x", **PLAN)
        again = events.until(lambda e: e.name == "engine")
        self.assertEqual((again.data["name"], again.data["tokens"]), ("x", 0))

    def test_unknown_engine_is_refused(self):
        self.assert_problem(self.client.get("/v1/events?engine=none"), "no-such-engine")
        self.assert_problem(self.client.get("/v1/events?engine=-"), "bad-name")
        self.assert_problem(self.client.get("/v1/events?engine="), "bad-name")
        for query in ("name=x", "engine=x&engine=x"):
            self.assert_problem(self.client.get(f"/v1/events?{query}"), "bad-query")


class Incoming(LiveTest):
    """A large body whose sender continues, pauses and stops under control of the test."""

    PIECE = bytes(16 << 10)  # one-byte tokens

    def setUp(self):
        super().setUp()
        self.created(self.client, "x", **PLAN)
        self.sent = 0

    @contextmanager
    def body(self):
        with Wire(self.instance) as wire:
            wire.send(request("POST", "/v1/engines/x/feed?dtype=u8", self.instance.host,
                              [("Transfer-Encoding", "chunked")]))
            yield wire

    def send_until(self, wire, is_enough):
        while not is_enough.is_set():
            wire.send(b"%x\r\n" % len(self.PIECE) + self.PIECE + b"\r\n")
            self.sent += len(self.PIECE)
            is_enough.wait(0.01)

    def send_until_seen(self, wire, events):
        """Sends until an event reports incoming tokens."""
        is_enough = threading.Event()
        sender = threading.Thread(target=self.send_until, args=(wire, is_enough))
        sender.start()
        try:
            events.until(lambda e: (row := row_of(e, "x")) and row["rate"] > 0
                         and row["incoming"] > 0)
        finally:
            is_enough.set()
            sender.join()

    def test_incoming_count_ends_with_the_body(self):
        events = self.live()
        with self.body() as wire:
            self.send_until_seen(wire, events)
            row = self.row(events, "x", incoming=self.sent, rate=0)
            self.assertEqual(row["tokens"], 0)
            first = self.row(self.live(), "x")
            self.assertEqual((first["incoming"], first["tokens"]), (self.sent, 0))
            answer = wire.send(b"0\r\n\r\n").answer()
            self.assertEqual((answer.status, answer.json["tokens"]), (200, self.sent))
        row = self.row(events, "x", incoming=0, rate=0)
        self.assertEqual(row["tokens"], self.sent)

    def test_incoming_count_ends_with_the_connection(self):
        events = self.live()
        with self.body() as wire:
            self.send_until_seen(wire, events)
            self.row(events, "x", incoming=self.sent)
            wire.reset()
        row = self.row(events, "x", incoming=0, rate=0)
        self.assertEqual((row["tokens"], row["feeds"]), (0, 0))

    def test_tokens_are_never_counted_twice(self):
        """No event counts the same tokens as incoming and as part of the engine."""
        events = self.live()
        with self.body() as wire:
            self.send_until_seen(wire, events)
            wire.send(b"0\r\n\r\n").answer()
        while (row := row_of(events.next(), "x")) is None or row["tokens"] == 0:
            pass
        self.assertEqual((row["tokens"], row["incoming"]), (self.sent, 0))

    def test_repeated_body_is_not_counted_as_incoming(self):
        body = bytes(200_000)
        self.fed(self.client, "x", body, dtype="u8", key="k")
        self.instance.restart()  # the rate starts at 0
        events = self.live()
        self.row(events, "x", rate=0)
        self.assertTrue(self.fed(self.client, "x", body, dtype="u8", key="k")["repeated"])
        self.fed(self.client, "x", b"1", dtype="u8")
        row = self.row(events, "x", tokens=200_001)
        self.assertLess(row["rate"], 2)


class Ends(LiveTest):
    def test_stop_ends_the_stream(self):
        self.created(self.client, "x", **PLAN)
        streams = [self.live(), self.live("?engine=x")]
        for events in streams:
            events.next()
        self.instance.stop()
        for events in streams:
            while events.next() is not None:
                pass
            self.assertTrue(events.is_ended)

    def test_token_is_required(self):
        token = self.write("token", b"s3cret\n")
        token.chmod(0o600)
        server = self.serve("--token-file", token, data="guarded")
        answer = self.raw(server, "GET", "/v1/events")
        self.assert_problem(answer, "unauthorized")
        with Events(server, target="/v1/events", token="s3cret") as events:
            self.assertTrue(events.next().data["complete"])

    def test_disconnected_readers_do_not_affect_others(self):
        self.created(self.client, "x", **PLAN)
        streams = [self.live("?engine=x") for _ in range(20)]
        for events in streams[::2]:
            events.wire.reset()
        self.fed(self.client, "x", pack([7]))
        for events in streams[1::2]:
            events.until(lambda e: e.name == "engine" and e.data["tokens"] == 1)
        self.assertEqual(self.client.get("/healthz").status, 200)
