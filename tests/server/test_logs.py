# SPDX-License-Identifier: MIT
"""`iron serve --log json`: one complete line for each request, with its request ID.

A line is written when its request has ended, after the client has received the response.  The tests
therefore wait for lines, or stop the server, which writes all pending lines.
"""

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import threading
from datetime import datetime, timezone

import contract
import exposition
from api import Api, ServerTest
from harness import IRON, TIMEOUT_S, environment, pack
from managed import handed
from serving import STOP_S, wait_until
from wire import Wire, request

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z")
LEVELS = ("debug", "info", "warning", "error")
MEMBERS = {"time": str, "level": str, "event": str, "request_id": str, "method": str, "path": str,
           "route": str, "status": int, "engine": str, "client": str, "bytes_in": int,
           "bytes_out": int, "seconds": (int, float), "problem": str, "detail": str}
ALWAYS = {"time", "level", "event", "request_id", "route", "status", "client", "bytes_in",
          "bytes_out", "seconds"}
SECRET = "a-token-that-must-not-be-logged"


def without_duplicates(pairs) -> dict:
    found = dict(pairs)
    assert len(found) == len(pairs), pairs
    return found


def parsed(line: str) -> dict:
    """A line of the log, parsed and checked."""
    event = json.loads(line, object_pairs_hook=without_duplicates)
    assert list(event)[:3] == ["time", "level", "event"], line
    assert TIME.match(event["time"]) and event["level"] in LEVELS, line
    told = datetime.fromisoformat(event["time"].replace("Z", "+00:00"))
    assert abs((datetime.now(timezone.utc) - told).total_seconds()) < 3600, line
    if event["event"] == "request":
        assert ALWAYS <= set(event) <= set(MEMBERS), line
        assert all(isinstance(v, MEMBERS[n]) for n, v in event.items()), line
        assert re.fullmatch("[0-9a-f]{16}", event["request_id"]) and event["seconds"] >= 0, line
        assert event["route"] == "none" or event["route"].startswith("/"), line
    return event


def requests(lines) -> list:
    return [e for e in map(parsed, lines) if e["event"] == "request"]


class Logs(ServerTest):
    def logged(self, server, count) -> list:
        """Waits until `count` requests are logged; returns all logged requests."""
        wait_until(f"{count} requests are logged",
                   lambda: len(requests(list(server.lines))) >= count)
        return requests(list(server.lines))

    def test_members_of_a_request(self):
        server = self.serve("--log", "json")
        client = self.api(server)
        made = client.create("e")
        fed = client.feed("e", pack([1, 2, 3]), at=0)
        lost = client.get("/v1/engines/none?x=y")
        head = client.call("HEAD", "/v1/engines/e")
        events = self.logged(server, 4)
        self.assertEqual([e["request_id"] for e in events],
                         [a.get("x-request-id") for a in (made, fed, lost, head)])
        self.assertEqual([(e["method"], e["path"], e["route"], e["status"], e["level"])
                          for e in events],
                         [("POST", "/v1/engines", "/v1/engines", 201, "info"),
                          ("POST", "/v1/engines/e/feed", "/v1/engines/{name}/feed", 200, "info"),
                          ("GET", "/v1/engines/none", "/v1/engines/{name}", 400, "warning"),
                          ("HEAD", "/v1/engines/e", "/v1/engines/{name}", 200, "info")])
        self.assertEqual([e.get("engine") for e in events], [None, "e", "none", "e"])
        self.assertEqual([e.get("problem") for e in events], [None, None, "bad-query", None])
        self.assertEqual([e["bytes_in"] for e in events], [13, 12, 0, 0])
        self.assertEqual([e["bytes_out"] for e in events],
                         [len(made.body), len(fed.body), len(lost.body), 0])
        self.assertEqual({e["client"] for e in events}, {"127.0.0.1"})
        self.assertEqual(lost.json["instance"], f"/requests/{events[2]['request_id']}")

    def test_events_from_start_to_stop(self):
        server = self.serve("--log", "json")
        client = self.api(server)
        for _ in range(50):
            client.get("/v1/info")
        self.logged(server, 50)  # otherwise the last line may come after the stop
        server.stop()
        events = [parsed(line) for line in server.lines]
        self.assertEqual([e["event"] for e in events],
                         ["start", "ready"] + ["request"] * 50 + ["stop"])
        start, ready = events[:2]
        self.assertRegex(start["version"], r"\A\d+\.\d+\.\d+")
        self.assertEqual((ready["data"], ready["engines"]), (str(server.data), 0))
        ids = [e["request_id"] for e in events[2:-1]]
        self.assertEqual(ids, sorted(ids))
        self.assertEqual(len(set(ids)), 50)

    def test_pending_request_is_logged_after_the_stop(self):
        server = self.serve("--log", "json", "--grace-seconds", 1)
        self.created(self.api(server), "e")
        with self.wire(server) as wire:
            wire.send(request("POST", "/v1/engines/e/feed", server.host,
                              [("Content-Length", "400000")], b"x" * 200_000))
            wait_until("the body has begun", lambda: exposition.uploads(self.api(server)) == 1)
            server.stop()
        held = requests(server.lines)[-1]
        self.assertEqual((held["path"], held["bytes_in"]), ("/v1/engines/e/feed", 200_000))
        self.assertIn(held["status"], (0, 503))
        events = [parsed(line)["event"] for line in server.lines]
        self.assertIn("stop", events[:-1], server.lines)
        self.assertEqual(events[-1], "request", server.lines)
        self.assertEqual([e["path"] for e in requests(server.lines)].count(held["path"]), 1)

    def test_health_and_metrics_are_logged_at_debug_level(self):
        """Failed requests of these paths are logged as warnings."""
        quiet, loud = self.serve("--log", "json"), self.serve("--log", "json", "--log-level",
                                                              "debug", data="loud")
        for server in (quiet, loud):
            client = self.api(server)
            for target in ("/healthz", "/readyz", "/metrics", "/healthz?x=1", "/v1/info"):
                client.get(target)
            server.stop()
        self.assertEqual([e["path"] for e in requests(quiet.lines)], ["/healthz", "/v1/info"])
        self.assertEqual([(e["path"], e["level"]) for e in requests(loud.lines)],
                         [("/healthz", "debug"), ("/readyz", "debug"), ("/metrics", "debug"),
                          ("/healthz", "warning"), ("/v1/info", "info")])

    def test_text_log_has_no_requests(self):
        for options in ((), ("--log", "text")):
            server = self.serve(*options, data=f"text{len(options)}")
            client = self.api(server)
            client.get("/v1/info")
            client.get("/nothing")
            server.stop()
            self.assertRegex(server.lines[0], r"\Airon: serving http://127\.0\.0\.1:\d+, data in "
                             + re.escape(str(server.data)) + r", 0 engines\Z")
            self.assertEqual(server.lines[1:], ["iron: stopping"])

    def test_requests_refused_before_routing(self):
        server = self.serve("--log", "json", "--header-seconds", 1, "--request-seconds", 1)
        told = []

        def ask(*texts):
            with self.wire(server) as wire:
                for text in texts:
                    wire.send(text)
                    answer = wire.answer("GET")
                    self.assertIsNotNone(answer)
                told.append((answer.get("x-request-id"), contract.kind(answer)))

        ask(b"GET x HTTP/1.1\r\nHost: a\r\n\r\n")
        ask(b"GET /healthz?token=" + SECRET.encode() + b" HTTP/1.1\r\nHost: elsewhere\r\n\r\n")
        ask(b"\x01\x02\xff\r\n\r\n")
        ask(b"GET /healthz HTTP/1.1\r\n")  # incomplete
        ask(request("GET", "/v1/info", server.host), b"GET /healthz HTTP/1.1\r\n")
        ask(request("POST", "/v1/tickets", server.host, [("Content-Length", "4")], b"ab"))
        server.stop()
        events = {e["request_id"]: e for e in requests(server.lines)}
        self.assertEqual([kind for _, kind in told],
                         ["malformed-request", "wrong-host", "malformed-request", "too-slow",
                          "too-slow", "unexpected-body"])
        for number, kind in told:
            self.assertEqual(events[number]["problem"], kind, events[number])
            self.assertEqual(events[number]["client"], "127.0.0.1")
            self.assertEqual(events[number]["level"], "warning")
        for number, kind in told:
            if kind in ("malformed-request", "too-slow"):
                self.assertTrue(events[number]["detail"], events[number])
        first, foreign = events[told[0][0]], events[told[1][0]]
        self.assertEqual((first["method"], first["path"], first["route"]), ("GET", "x", "none"))
        self.assertEqual((foreign["path"], foreign["status"]), ("/healthz", 421))
        self.assertEqual(len(events), len(told) + 1)  # plus the one that was served

    def test_connection_over_the_limit(self):
        server = self.serve("--log", "json", "--max-per-address", 1)
        self.hold(server)
        answer = self.raw(server, "GET", "/v1/engines?x=1")
        self.assert_problem(answer, "too-many-connections")
        event = self.logged(server, 1)[0]
        self.assertEqual((event["request_id"], event["status"], event["problem"], event["path"],
                          event["route"], event["bytes_out"]),
                         (answer.get("x-request-id"), 429, "too-many-connections", "/v1/engines",
                          "none", len(answer.body)))

    def test_http_2_is_not_our_fault(self):
        server = self.serve("--log", "json")
        with self.wire(server) as wire:
            answer = wire.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").answer()
        self.assert_problem(answer, "unsupported-version")
        self.assertEqual([e["level"] for e in self.logged(server, 1)], ["warning"])

    def test_slow_body(self):
        server = self.serve("--log", "json", "--request-seconds", 1)
        self.created(self.api(server), "e")
        with self.wire(server) as wire:
            wire.send(request("POST", "/v1/engines/e/feed", server.host,
                              [("Content-Length", "8")], b"1234"))
            answer = wire.answer("POST")
        self.assert_problem(answer, "too-slow")
        event = next(e for e in self.logged(server, 2) if e["path"].endswith("/feed"))
        self.assertEqual((event["request_id"], event["status"], event["problem"], event["engine"],
                          event["bytes_in"]),
                         (answer.get("x-request-id"), 408, "too-slow", "e", 4))
        self.assertIn("in time", event["detail"])

    def test_disconnected_client_is_logged_with_status_0(self):
        server = self.serve("--log", "json")
        self.created(self.api(server), "e")
        with self.wire(server) as wire:
            wire.send(request("POST", "/v1/engines/e/feed", server.host,
                              [("Content-Length", "8")], b"1234"))
        event = next(e for e in self.logged(server, 2) if e["path"].endswith("/feed"))
        self.assertEqual((event["status"], event["bytes_out"]), (0, 0))
        self.assertNotIn("problem", event)

    def test_unusual_paths_are_logged_unchanged(self):
        """Any path is logged on one line; long ones are truncated."""
        server = self.serve("--log", "json")
        targets = ['/v1/engines/"quoted"', "/v1/engines/back\\slash", "/v1/engines/%0Aline",
                   "/v1/engines/%22%7B%7D", "/v1/engines/%C3%A9", "/<b>'", "/v1/engines/%ff",
                   "/" + "long" * 1000]
        ids = [self.raw(server, "GET", target).get("x-request-id") for target in targets]
        server.stop()
        events = {e["request_id"]: e for e in requests(server.lines)}
        for number, target in zip(ids, targets):
            wanted = target if len(target) <= 300 else target[:300] + "..."
            self.assertEqual(events[number]["path"], wanted)
        self.assertEqual([events[k].get("engine") for k in ids[:5]],
                         ['"quoted"', "back\\slash", "\nline", '"{}', "\u00e9"])

    def test_secrets_are_not_logged(self):
        token = self.write("token", SECRET.encode() + b"\n")
        token.chmod(0o600)
        page = self.write("page.html", b"<!doctype html><title>t</title>")
        server = self.serve("--log", "json", "--log-level", "debug", "--token-file", token,
                            "--report", page)
        client = self.api(server, token=SECRET)
        client.get("/v1/engines")
        client.get(f"/v1/info?token={SECRET}")
        client.get(f"/v1/engines?{SECRET}=1")
        self.raw(server, "GET", "/v1/info", [("Authorization", f"Basic {SECRET}")])
        self.raw(server, "GET", f"/healthz?{SECRET}", [("X-A", SECRET), ("Host", SECRET)])
        ticket = client.call("POST", "/v1/tickets").json["ticket"]
        for wanted in (200, 401):
            answer = self.raw(server, "GET", f"/report?ticket={ticket}")
            self.assertEqual(answer.status, wanted)
        server.stop()
        told = "\n".join(server.lines)
        self.assertNotIn(SECRET, told)
        self.assertNotIn(ticket, told)
        self.assertEqual(len(requests(server.lines)), 8)

    def test_tls(self):
        """A connection over the limit is closed before the TLS handshake, and logged."""
        cert, key = self.dir / "cert.pem", self.dir / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                        "-keyout", key, "-out", cert], check=True, capture_output=True,
                       timeout=TIMEOUT_S)
        server = self.serve("--log", "json", "--tls-cert", cert, "--tls-key", key,
                            "--max-per-address", 1)
        held = self.hold(server, context=ssl.create_default_context(cafile=str(cert)))
        with self.wire(server) as wire:
            wire.expect_close()
        held.close()
        server.stop()
        events = [parsed(line) for line in server.lines]
        self.assertEqual([e["event"] for e in events if e["event"] != "request"],
                         ["start", "ready", "refused", "stop"])
        refused = next(e for e in events if e["event"] == "refused")
        self.assertEqual((refused["level"], refused["client"]), ("warning", "127.0.0.1"))
        self.assertIn("all 1 connections", refused["message"])
        self.assertEqual([e["path"] for e in requests(server.lines)], ["/v1/events"])

    def test_64_connections_at_once(self):
        server = self.serve("--log", "json", "--max-per-address", 200)
        ids, lock = [], threading.Lock()

        def ask(k):
            own, mine = Api(server), []
            for n in range(15):
                mine.append(own.get(f"/v1/engines/none-{k}-{n}-{'x' * 100}").get("x-request-id"))
            own.close()
            with lock:
                ids.append(mine)

        threads = [threading.Thread(target=ask, args=(k,)) for k in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        server.stop()
        events = requests(server.lines)
        self.assertEqual(len(ids), 64)
        self.assertEqual(sorted(e["request_id"] for e in events), sorted(sum(ids, [])))
        position = {e["request_id"]: k for k, e in enumerate(events)}
        for mine in ids:  # lines of one connection are in order
            self.assertEqual([position[i] for i in mine], sorted(position[i] for i in mine))


class UnwritableLog(ServerTest):
    """The server keeps working, and stops cleanly, when standard error cannot be written."""

    scheme = "http"

    def start(self, stderr, *options, wrapper=()):
        """Passes a listening socket to the server, because it cannot report its port."""
        with socket.create_server(("127.0.0.1", 0)) as listening:
            self.port = listening.getsockname()[1]
            passed = handed([listening])
            self.process = subprocess.Popen(
                [*passed["wrapper"], *wrapper, IRON, "serve", "--log", "json",
                 "--data", self.dir / "mute", *options], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=stderr, pass_fds=passed["pass_fds"],
                env=environment({"IRON_CUDA_LIBRARY": "none", "IRON_OPENCL_LIBRARY": "none",
                                 "ASAN_OPTIONS": "detect_leaks=0"}))
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        self.run_number, self.host = 0, f"127.0.0.1:{self.port}"
        self.assertEqual(self.api(self).get("/healthz").status, 200)  # not logged

    def test_log_level_hides_less_severe_lines(self):
        path = self.dir / "log"
        with open(path, "wb") as log:
            self.start(log, "--log-level", "warning")
        self.work()
        number = self.api(self).get("/nothing").get("x-request-id")
        self.end()
        events = [parsed(line) for line in path.read_text(encoding="utf-8").splitlines()]
        self.assertEqual([(e["request_id"], e["level"]) for e in events], [(number, "warning")])

    def figure(self, name) -> float:
        families = exposition.parse(self.api(self).get("/metrics").body.decode())
        return exposition.value(families, name)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.process.wait(STOP_S), 0)

    def work(self):
        client = self.api(self)
        self.created(client, "e")
        self.assertEqual(self.fed(client, "e", pack([1] * 10))["tokens"], 10)

    def test_closed_stderr(self):
        self.start(None, wrapper=("/bin/sh", "-c", 'exec "$@" 2>&-', "sh"))
        self.work()
        self.end()

    def test_full_disk(self):
        with open("/dev/full", "wb") as full:
            self.start(full)
        self.work()
        wait_until("lines are lost", lambda: self.figure("iron_log_dropped_total") >= 4)
        self.assertEqual(self.figure("iron_log_lines_total"), 0)
        self.end()

    def test_reader_that_closed_the_pipe(self):
        out, into = os.pipe()
        self.start(into)
        os.close(into)
        os.close(out)
        self.work()
        wait_until("lines are lost", lambda: self.figure("iron_log_dropped_total") >= 2)
        self.end()

    def test_reader_that_does_not_read(self):
        out, into = os.pipe()
        self.addCleanup(os.close, out)
        self.start(into)
        os.close(into)
        text = request("GET", "/" + '"' * 300, self.host)
        sent = 0
        with Wire(self) as wire:
            while sent == 0 or self.figure("iron_log_dropped_total") == 0:
                wire.send(text * 100)
                for _ in range(100):
                    self.assertEqual(wire.answer().status, 404)
                sent += 100
                self.assertLess(sent, 100_000, "nothing was dropped: is there no limit?")
        self.work()
        self.end()
