# SPDX-License-Identifier: MIT
"""/metrics under a load that is known exactly: every counter equals what was sent.

A connection is one thread of the server: requests on the scraping connection are counted in a later
scrape of it.  For other connections, a test waits for the count.
"""

import re
import shutil
import subprocess
import threading
import time
from pathlib import Path

import exposition
from api import ServerTest
from exposition import value
from harness import pack
from serving import wait_until
from wire import request

import ledger as book

DOCS = Path(__file__).resolve().parents[2] / "docs" / "server.md"
PROBLEMS = Path(__file__).resolve().parents[2] / "src" / "server" / "http.h"
EDGES = ["0.0005", "0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1",
         "2.5", "5", "10", "30", "60", "+Inf"]


def scrape(api) -> dict:
    return exposition.parse(api.get("/metrics").body.decode())


def requests_of(families, route) -> float:
    return value(families, "iron_request_seconds_count", route=route)


def rejected(families) -> dict:
    """{reason: count} of the nonzero counts."""
    return {re.search('"(.*)"', labels)[1]: count for (_, labels), count
            in families["iron_rejected_total"]["samples"].items() if count}


def counters(families) -> dict:
    """Everything that must never decrease."""
    found = {}
    for name, family in families.items():
        if family["kind"] != "gauge":
            found.update({key: v for key, v in family["samples"].items()})
    return found


class Load(ServerTest):
    def setUp(self):
        super().setUp()
        self.instance = self.serve("--max-body", 1 << 22)
        self.client = self.api(self.instance)

    def test_initial_values(self):
        families = scrape(self.client)
        kinds = set(re.findall(r'X\("([a-z-]+)", \d{3},', PROBLEMS.read_text(encoding="utf-8")))
        self.assertGreater(len(kinds), 30)
        reasons = {re.search('reason="(.*)"', labels)[1]
                   for _, labels in families["iron_rejected_total"]["samples"]}
        self.assertEqual(reasons, kinds)
        self.assertEqual(rejected(families), {})
        for name in ("iron_feeds_total", "iron_tokens_total", "iron_fed_bytes_total",
                     "iron_batches_total", "iron_commits_total", "iron_commit_seconds_count",
                     "iron_last_commit_timestamp_seconds", "iron_engines", "iron_uploads",
                     "iron_commit_queue", "iron_log_dropped_total", "iron_read_only"):
            self.assertEqual(value(families, name), 0, name)
        self.assertEqual(value(families, "iron_requests_total"), 1)
        self.assertEqual(value(families, "iron_requests_in_flight"), 1)
        self.assertEqual(value(families, "iron_connections"), 1)
        self.assertEqual(value(families, "iron_connections_limit"), 512)
        self.assertEqual(value(families, "iron_uploads_limit"), 64)
        self.assertEqual(value(families, "iron_engines_limit"), 256)

    def test_feeds(self):
        self.created(self.client, "e", batch=100)
        self.created(self.client, "other")
        self.fed(self.client, "e", pack([1] * 250))  # three batches
        self.fed(self.client, "e", bytes(7), dtype="u8")
        self.fed(self.client, "e", bytes(16), dtype="i64", key="k")
        self.fed(self.client, "e", bytes(16), dtype="i64", key="k")  # not counted again
        families = scrape(self.client)
        for name, wanted in (("iron_feeds_total", 3), ("iron_tokens_total", 259),
                             ("iron_fed_bytes_total", 1000 + 7 + 16), ("iron_batches_total", 5),
                             ("iron_commits_total", 6), ("iron_commit_seconds_count", 6),
                             ("iron_commit_jobs_total", 6)):
            self.assertEqual(value(families, name), wanted, name)
        for name, wanted in (("tokens_total", 259), ("batches_total", 5), ("feeds_total", 3)):
            name = f"iron_engine_{name}"
            self.assertEqual(value(families, name, engine="e"), wanted, name)
            self.assertEqual(value(families, name, engine="other"), 0, name)
        self.assertEqual(value(families, "iron_feeds_refused_total", reason="repeated"), 1)
        self.assertEqual(value(families, "iron_engine_incoming_tokens", engine="e"), 0)
        self.assertGreaterEqual(value(families, "iron_engine_tokens_per_second", engine="e"), 0)
        self.assertEqual(requests_of(families, "/v1/engines/{name}/feed"), 4)
        self.assertEqual(requests_of(families, "/v1/engines"), 2)
        self.assertEqual(rejected(families), {})
        self.assertLess(abs(value(families, "iron_last_commit_timestamp_seconds") - time.time()),
                        3600)

    def test_body_in_progress(self):
        """Paused halfway until it was seen; then completed, and counted once."""
        self.created(self.client, "e")
        body = pack([3] * 200_000)
        wire = self.wire(self.instance)
        whole = request("POST", "/v1/engines/e/feed", self.instance.host,
                        [("Content-Length", str(len(body)))], body)
        wire.send(whole[:-400_000])

        def incoming():
            return value(scrape(self.client), "iron_engine_incoming_tokens", engine="e")

        wait_until("tokens are incoming", lambda: incoming() > 0)
        families = scrape(self.client)
        self.assertEqual(value(families, "iron_uploads"), 1)
        self.assertEqual(value(families, "iron_requests_in_flight"), 2)
        self.assertEqual(value(families, "iron_connections"), 2)
        self.assertEqual(value(families, "iron_tokens_total"), 0)
        self.assertLessEqual(incoming(), 100_000)
        wire.send(whole[-400_000:])
        self.assertEqual(wire.answer("POST").status, 200)
        wait_until("the request is over",
                   lambda: value(scrape(self.client), "iron_requests_in_flight") == 1)
        families = scrape(self.client)
        self.assertEqual(value(families, "iron_tokens_total"), 200_000)
        self.assertEqual(value(families, "iron_uploads"), 0)
        self.assertEqual(value(families, "iron_engine_incoming_tokens", engine="e"), 0)
        self.assertGreaterEqual(value(families, "iron_body_bytes_total"), len(body))

    def test_refusals(self):
        self.created(self.client, "e")
        sent = {"no-such-path": 3, "no-such-engine": 2, "method-not-allowed": 2, "bad-query": 2,
                "engine-exists": 1, "bad-json": 2, "position-mismatch": 2, "ragged-body": 1,
                "bad-token-value": 1, "too-large": 1, "malformed-request": 2, "wrong-host": 1,
                "unsupported-version": 1, "key-reused": 1, "unexpected-body": 1}
        for _ in range(2):
            self.assert_problem(self.client.get("/nothing"), "no-such-path")
            self.assert_problem(self.client.get("/v1/engines/none"), "no-such-engine")
            self.assert_problem(self.client.call("PUT", "/healthz"), "method-not-allowed")
            self.assert_problem(self.client.get("/healthz?x=1"), "bad-query")
            self.assert_problem(self.client.call("POST", "/v1/engines", b"{"), "bad-json")
            self.assert_problem(self.client.feed("e", pack([1]), at=9), "position-mismatch")
        self.assertEqual(self.raw(self.instance, "HEAD", "/nothing").status, 404)
        self.assert_problem(self.client.create("e"), "engine-exists")
        self.assert_problem(self.client.feed("e", b"abc"), "ragged-body")
        self.assert_problem(self.client.feed("e", b"\xff" * 8, dtype="i64"), "bad-token-value")
        self.fed(self.client, "e", pack([1]), key="k")
        self.assert_problem(self.client.feed("e", pack([2]), key="k"), "key-reused")
        # before the body, in the acceptor, and after it
        self.assert_problem(self.raw(self.instance, "POST", "/v1/engines/e/feed",
                                     [("Content-Length", str(1 << 23))]), "too-large")
        self.assert_problem(self.raw(self.instance, "GET", "/healthz",
                                     [("Content-Length", "1")], b"x"), "unexpected-body")
        for text, kind in ((b"GET x HTTP/1.1\r\nHost: a\r\n\r\n", "malformed-request"),
                           (b"GET /healthz HTTP/1.1\r\n\r\n", "malformed-request"),
                           (b"GET /healthz HTTP/3.0\r\nHost: a\r\n\r\n", "unsupported-version"),
                           (b"GET /healthz HTTP/1.1\r\nHost: elsewhere\r\n\r\n", "wrong-host")):
            with self.wire(self.instance) as wire:
                wire.send(text)
                self.assert_problem(wire.answer("GET"), kind)
        families = scrape(self.client)
        self.assertEqual(rejected(families), sent)
        total = sum(sent.values())
        classes = {k: value(families, "iron_answers_total", **{"class": k})
                   for k in ("4xx", "5xx")}
        self.assertEqual(classes, {"4xx": total - 1, "5xx": 1})
        self.assertEqual(value(families, "iron_requests_malformed_total"), 3)
        self.assertEqual(value(families, "iron_feeds_refused_total", reason="position"), 2)
        self.assertEqual(value(families, "iron_feeds_refused_total", reason="key_reused"), 1)

    def test_requests_add_up(self):
        """Every completed request is in one histogram, including those refused by the acceptor."""
        self.created(self.client, "e")
        for k in range(20):
            self.client.get(("/healthz", "/v1/engines/e", "/nothing", "/v1/info")[k % 4])
        with self.wire(self.instance) as wire:
            wire.send(b"GET x HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertEqual(wire.answer("GET").status, 400)
        families = scrape(self.client)
        series = exposition.histogram_series("iron_request_seconds",
                                             families["iron_request_seconds"])
        self.assertEqual([e for e, _ in series['route="none"']["buckets"]], EDGES)
        self.assertEqual(sum(s["count"] for s in series.values()), 22)
        self.assertEqual(value(families, "iron_requests_total"), 23)  # and the scrape itself
        self.assertEqual(requests_of(families, "/healthz"), 5)
        self.assertEqual(requests_of(families, "/v1/engines/{name}"), 5)
        self.assertEqual(requests_of(families, "none"), 6)
        commits = exposition.histogram_series("iron_commit_seconds",
                                              families["iron_commit_seconds"])
        self.assertEqual([e for e, _ in commits[""]["buckets"]], EDGES)
        self.assertEqual(requests_of(scrape(self.client), "/metrics"), 1)

    def test_streams_count_when_they_begin(self):
        self.created(self.client, "e")
        with self.wire(self.instance) as wire:
            wire.send(request("GET", "/v1/engines/e/events", self.instance.host))
            wait_until("the stream is counted", lambda: requests_of(
                scrape(self.client), "/v1/engines/{name}/events") == 1)
            self.assertEqual(value(scrape(self.client), "iron_requests_in_flight"), 2)
        wait_until("the stream is over", lambda: value(
            scrape(self.client), "iron_requests_in_flight") == 1)
        self.assertEqual(requests_of(scrape(self.client), "/v1/engines/{name}/events"), 1)

    def test_bytes_of_answers(self):
        before = value(scrape(self.client), "iron_answer_bytes_total")
        first = len(self.client.get("/openapi.json").body)
        self.client.call("HEAD", "/openapi.json")
        lost = len(self.client.get("/nothing").body)
        families = scrape(self.client)
        # the body of the first scrape is counted after it was made
        more = value(families, "iron_answer_bytes_total") - before - first - lost
        self.assertGreater(more, 0)
        self.assertLess(more, 100_000)

    def test_counters_never_decrease(self):
        self.created(self.client, "e")
        is_over = threading.Event()

        def feed():
            with_own = self.api(self.instance)
            while not is_over.is_set():
                with_own.feed("e", pack([1] * 10))
                with_own.get("/nothing")

        feeders = [threading.Thread(target=feed) for _ in range(3)]
        for feeder in feeders:
            feeder.start()
        try:
            before = counters(scrape(self.client))
            for _ in range(30):
                now = counters(scrape(self.client))
                fallen = {key: (v, now.get(key)) for key, v in before.items()
                          if now.get(key, -1) < v}
                self.assertEqual(fallen, {})
                before = now
        finally:
            is_over.set()
            for feeder in feeders:
                feeder.join()
        families = scrape(self.client)
        fed = value(families, "iron_feeds_total")
        self.assertEqual(value(families, "iron_tokens_total"), 10 * fed)
        self.assertEqual(value(families, "iron_engine_tokens_total", engine="e"), 10 * fed)
        wait_until("all requests are over", lambda: value(
            scrape(self.client), "iron_requests_in_flight") == 1)
        self.assertEqual(requests_of(scrape(self.client), "/v1/engines/{name}/feed"), fed)

    def test_process_metrics(self):
        self.created(self.client, "e")
        self.fed(self.client, "e", pack([1]))
        families = scrape(self.client)
        pid = self.instance.process.pid
        # between a count before and one after, because threads start and end
        self.assertGreater(value(families, "process_open_fds"), 5)
        limits = Path(f"/proc/{pid}/limits").read_text(encoding="ascii")
        self.assertEqual(value(families, "process_max_fds"),
                         int(re.search(r"Max open files +(\d+)", limits)[1]))
        self.assertGreater(value(families, "process_cpu_seconds_total"), 0)
        self.assertGreater(value(families, "process_resident_memory_bytes"), 1 << 20)
        start = value(families, "process_start_time_seconds")
        self.assertLess(abs(start - time.time()), 3600)
        self.assertEqual(value(scrape(self.client), "process_start_time_seconds"), start)
        database = self.instance.data / "iron.db"
        self.assertEqual(value(families, "iron_database_bytes"), database.stat().st_size)
        self.assertGreater(value(families, "iron_database_log_bytes"), 0)
        disk = shutil.disk_usage(self.instance.data)
        self.assertEqual(value(families, "iron_data_size_bytes"), disk.total)
        self.assertLessEqual(value(families, "iron_data_free_bytes"), disk.total)
        self.assertGreater(value(families, "iron_data_free_bytes"), 0)

    def test_snapshots(self):
        self.created(self.client, "e")
        self.fed(self.client, "e", pack([1]))
        self.assertEqual(value(scrape(self.client), "iron_snapshots_total"), 0)
        self.instance.restart()  # a stop takes a snapshot; counters start at 0 again
        families = scrape(self.client)
        self.assertEqual(value(families, "iron_snapshots_total"), 0)
        self.assertEqual(value(families, "iron_engine_tokens_total", engine="e"), 1)
        self.assertEqual(value(families, "iron_tokens_total"), 0)

    def test_256_engines(self):
        names = [f"{'E.-_'[k % 4] if k % 4 != 1 else 'x'}{k}".lstrip(".-_") + ".-_"
                 for k in range(256)]
        for name in names:
            self.created(self.client, name, nodes=1)
        self.fed(self.client, names[77], pack([1] * 5))
        self.assert_problem(self.client.create("one-more"), "too-many-engines")
        families = scrape(self.client)
        self.assertEqual(value(families, "iron_engines"), 256)
        for family in ("tokens_total", "batches_total", "feeds_total", "tokens_per_second",
                       "incoming_tokens"):
            found = families[f"iron_engine_{family}"]["samples"]
            self.assertEqual({re.search('engine="(.*)"', labels)[1] for _, labels in found},
                             set(names), family)
        self.assertEqual(value(families, "iron_engine_tokens_total", engine=names[77]), 5)
        self.check_with_promtool(self.client.get("/metrics").body)

    def check_with_promtool(self, text):
        if not shutil.which("promtool"):
            self.skipTest("promtool is not installed (scripts/deps test installs it)")
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True,
                              timeout=120, check=False)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, b""))

    def test_promtool(self):
        self.created(self.client, "e")
        self.fed(self.client, "e", pack([1] * 5))
        self.client.get("/nothing")
        self.check_with_promtool(self.client.get("/metrics").body)

    def test_documented_names(self):
        """The table of docs/server.md and /metrics have the same families, kinds and order."""
        self.created(self.client, "e")
        self.client.call("POST", "/v1/runs/r/steps", book.header(0, 1))
        self.client.get("/v1/runs/r/findings")  # waits until it is checked
        section = DOCS.read_text(encoding="utf-8").split("\n## Metrics\n")[1].split("\n## ")[0]
        told = re.findall(r"^\| `([a-z_]+)(?:\{([a-z,]+)\})?` \| (\w+) \|", section, re.MULTILINE)
        families = scrape(self.client)
        found = []
        for name, family in families.items():
            labels = {label for _, text in family["samples"] for label in
                      re.findall(r'(\w+)="', text) if label != "le"}
            found.append((name, ",".join(sorted(labels)), family["kind"]))
        self.assertEqual(found, told)


class Refused(ServerTest):
    """Refusals that need a server with narrow limits."""

    def test_token(self):
        secret = self.write("token", b"a-secret-of-this-test\n")
        secret.chmod(0o600)
        server = self.serve("--token-file", secret)
        for _ in range(3):
            self.assert_problem(self.api(server).get("/v1/engines"), "unauthorized")
        good = self.api(server, token="a-secret-of-this-test")
        self.assertEqual(rejected(scrape(good)), {"unauthorized": 3})
        wait_until("they are over", lambda: requests_of(scrape(good), "/v1/engines") == 3)

    def test_connections(self):
        server = self.serve("--max-connections", 8, "--max-per-address", 2)
        held = [self.hold(server) for _ in range(2)]
        self.assert_problem(self.raw(server, "GET", "/healthz"), "too-many-connections")
        held.pop().close()
        first, families = self.api(server), {}

        def is_served():  # when the closed connection is no longer counted
            nonlocal families
            answer = first.get("/metrics")
            families = scrape(first) if answer.status == 200 else {}
            return families
        wait_until("a connection", is_served)
        refused = rejected(families)["too-many-connections"]
        self.assertEqual(value(families, "iron_connections_refused_total"), refused)
        self.assertEqual(value(families, "iron_connections"), 2)
        dropped = value(families, "iron_connections_dropped_total")
        other = self.api(server)
        self.assertEqual(other.get("/healthz").status, 200)  # the first one was idle
        self.assertEqual(value(scrape(other), "iron_connections_dropped_total"), dropped + 1)

    def test_continue(self):
        server = self.serve()
        client = self.api(server)
        self.created(client, "e", nodes=2)
        with self.wire(server) as wire:
            wire.send(request("POST", "/v1/engines/e/feed", server.host,
                              [("Content-Length", "4"), ("Expect", "100-continue")]))
            self.assertEqual(wire.answer().status, 100)
            self.assertEqual(wire.send(b"1234").answer().status, 200)
        self.assertEqual(value(scrape(client), "iron_answers_total", **{"class": "1xx"}), 1)

    def test_slow_headers_and_bodies(self):
        server = self.serve("--header-seconds", 1, "--request-seconds", 1)
        client = self.api(server)
        self.created(client, "e")
        with self.wire(server) as wire:  # in the acceptor
            wire.send(b"GET /healthz HTTP/1.1\r\n")
            self.assert_problem(wire.answer("GET"), "too-slow")
        with self.wire(server) as wire:  # in the middle of a body
            wire.send(request("POST", "/v1/engines/e/feed", server.host,
                              [("Content-Length", "8")], b"1234"))
            self.assert_problem(wire.answer("POST"), "too-slow")
        with self.wire(server) as wire:  # in the middle of the second header
            wire.send(request("GET", "/healthz", server.host))
            self.assertEqual(wire.answer("GET").status, 200)
            wire.send(b"GET /healthz HTTP/1.1\r\n")
            self.assert_problem(wire.answer("GET"), "too-slow")
        families = scrape(client)
        self.assertEqual(rejected(families), {"too-slow": 3})
        self.assertEqual(value(families, "iron_requests_timed_out_total"), 3)
        self.assertEqual(value(families, "iron_tokens_total"), 0)
