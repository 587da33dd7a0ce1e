# SPDX-License-Identifier: MIT
"""Everything except engines: health, metrics, the OpenAPI document, methods, paths and types."""

import json

import contract
import exposition
from api import ServerTest
from harness import TIMEOUT_S, pack

GETS = ("/healthz", "/readyz", "/metrics", "/openapi.json", "/v1/info", "/v1/engines",
        "/v1/engines/e", "/v1/engines/e/state", "/v1/engines/e/batches")
ALLOWED = {"/healthz": "GET HEAD", "/readyz": "GET HEAD", "/metrics": "GET HEAD",
           "/openapi.json": "GET HEAD", "/v1/info": "GET HEAD", "/report": "GET HEAD",
           "/v1/engines": "GET HEAD POST", "/v1/engines/e": "GET HEAD DELETE",
           "/v1/engines/e/feed": "POST", "/v1/engines/e/quantize": "POST",
           "/v1/engines/e/state": "GET HEAD", "/v1/engines/e/batches": "GET HEAD",
           "/v1/engines/e/events": "GET HEAD", "/v1/events": "GET HEAD", "/v1/tickets": "POST"}
NOWHERE = ("/nothing", "/v1", "/v1/", "/v2/engines", "/v1/engines/", "/v1/engines/e/", "/healthz/",
           "//healthz", "/v1//engines", "/v1/engines/e/feed/", "/v1/engines/e/feed/x", "/HEALTHZ",
           "/v1/engine", "/etc/passwd", "/../../etc/passwd", "/v1/engines/../engines",
           "/./healthz", "/%2e%2e/healthz", "/healthz%2f", "/v1%2fengines", "/openapi.json.gz",
           "/openapi.yaml", "/favicon.ico", "/.git/config", "/v1/engines/e/../e")


class Site(ServerTest):
    def setUp(self):
        super().setUp()
        self.instance = self.serve()
        self.client = self.api(self.instance)
        self.created(self.client, "e", nodes=3)

    def test_health(self):
        self.assertEqual(self.client.get("/healthz").json, {"status": "ok"})
        self.assertEqual(self.client.get("/readyz").json, {"status": "ready"})

    def test_info(self):
        info = self.client.get("/v1/info").json
        self.assertEqual((info["name"], info["engines"]), ("iron", 1))
        self.assertEqual((info["report"], info["is_token_needed"], info["is_writable"]),
                         (False, False, True))
        self.assertGreater(info["data_free_bytes"], 0)
        self.assertGreaterEqual(info["connections"], 1)
        backends = {b["name"]: b["is_available"] for b in info["backends"]}
        self.assertEqual(backends, {"cpu": True, "cuda": False, "opencl": False})
        self.assertTrue(all(b["reason"] for b in info["backends"] if not b["is_available"]))
        limits = info["limits"]
        self.assertEqual((limits["max_body"], limits["max_engines"], limits["max_connections"],
                          limits["max_per_address"], limits["max_uploads"]),
                         (2**40, 256, 512, 256, 64))

    def test_info_has_the_options(self):
        token_file = self.write("token", b"s3cret\n")
        token_file.chmod(0o600)
        page = self.write("page.html", b"<!doctype html><title>t</title>")
        other = self.serve("--report", page, "--token-file", token_file, data="other")
        info = self.api(other, token="s3cret").get("/v1/info").json
        self.assertEqual((info["report"], info["is_token_needed"]), (True, True))
        self.assertEqual(self.api(other, token="s3cret").get("/v1/info").json["started"],
                         info["started"])

    def test_info_has_the_limits(self):
        other = self.serve("--max-body", 12345, "--max-engines", 3, "--max-connections", 40,
                           "--max-per-address", 30, "--max-uploads", 2, "--header-seconds", 9,
                           "--request-seconds", 99, "--grace-seconds", 2, "--min-body-rate", 77,
                           data="other")
        limits = self.api(other).get("/v1/info").json["limits"]
        for name, value in (("max_body", 12345), ("max_engines", 3), ("max_connections", 40),
                            ("max_per_address", 30), ("max_uploads", 2), ("header_seconds", 9),
                            ("request_seconds", 99), ("grace_seconds", 2), ("min_body_rate", 77)):
            self.assertEqual(limits[name], value, name)

    def test_openapi_document_is_served(self):
        answer = self.client.get("/openapi.json")
        self.assertEqual(answer.json, contract.DOCUMENT)
        tag = answer.get("etag")
        again = self.client.get("/openapi.json", **{"If-None-Match": tag})
        self.assertEqual((again.status, again.body), (304, b""))
        other = self.client.get("/openapi.json", **{"If-None-Match": '"another"'})
        self.assertEqual(other.status, 200)

    def test_metrics(self):
        before = exposition.parse(self.client.get("/metrics").body.decode())
        for k in range(7):
            self.fed(self.client, "e", pack([k] * 10))
        answer = self.client.get("/metrics")
        self.assertIn("version=0.0.4", answer.get("content-type"))
        families = exposition.parse(answer.body.decode())
        self.assertTrue(all(name.startswith(("iron_", "process_")) for name in families), families)
        self.assertTrue(any(f["kind"] == "histogram" for f in families.values()), families)
        grown = {name for name, family in families.items() if family["kind"] == "counter"
                 and sum(family["samples"].values()) > sum(before[name]["samples"].values())}
        for word, least in (("feed", 1), ("token", 1), ("request", 1)):
            self.assertGreaterEqual(sum(word in name for name in grown), least, grown)
        tokens = [sum(f["samples"].values()) for n, f in families.items() if "tokens" in n]
        self.assertIn(70.0, tokens, sorted(families))

    def test_head_is_get_without_a_body(self):
        for target in GETS:
            with self.subTest(target=target):
                full = self.raw(self.instance, "GET", target)
                head = self.raw(self.instance, "HEAD", target)
                self.assertEqual((head.status, head.type, head.body), (200, full.type, b""))
                if target not in ("/metrics", "/v1/info"):
                    self.assertEqual(head.get("content-length"), full.get("content-length"))
        lost = self.raw(self.instance, "HEAD", "/v1/engines/none")
        self.assertEqual((lost.status, lost.body), (404, b""))

    def test_connections_are_reused(self):
        with self.wire(self.instance) as wire:
            for k in range(20):
                method = ("GET", "HEAD", "GET")[k % 3]
                target = ("/healthz", "/v1/engines/e", "/v1/engines/none")[k % 3]
                wire.send(f"{method} {target} HTTP/1.1\r\nHost: {self.instance.host}\r\n\r\n"
                          .encode())
                answer = wire.answer(method)
                contract.check(method, target, answer)
                self.assertNotEqual((answer.get("connection") or "").lower(), "close")

    def test_unknown_paths(self):
        for target in NOWHERE:
            for method in ("GET", "POST", "DELETE"):
                with self.subTest(target=target, method=method):
                    answer = self.raw(self.instance, method, target)
                    self.assertIn(answer.status, (400, 404), str(answer))

    def test_methods(self):
        for target, allowed in ALLOWED.items():
            for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"):
                if method in allowed.split():
                    continue
                with self.subTest(method=method, target=target):
                    answer = self.raw(self.instance, method, target)
                    self.assert_problem(answer, "method-not-allowed")
                    found = {m.strip() for m in answer.get("allow").split(",")}
                    self.assertEqual(found, set(allowed.split()))
        self.assertEqual(self.client.engine("e")["tokens"], 0)

    def test_unexpected_queries_are_refused(self):
        for target in GETS:
            for query in ("?x=1", "?since", "?%00"):
                if "batches" in target and query == "?since":
                    continue
                with self.subTest(target=target + query):
                    answer = self.raw(self.instance, "GET", target + query)
                    self.assertEqual(answer.status, 400, str(answer))

    def test_unexpected_bodies_are_refused(self):
        for method, target in [("GET", t) for t in GETS] + [("DELETE", "/v1/engines/e")]:
            for headers, body in (([("Content-Length", "3")], b"abc"),
                                  ([("Transfer-Encoding", "chunked")], b"3\r\nabc\r\n0\r\n\r\n")):
                with self.subTest(method=method, target=target, headers=headers):
                    answer = self.raw(self.instance, method, target, headers, body)
                    self.assert_problem(answer, "unexpected-body")
        self.assertEqual(self.client.engine("e")["name"], "e")

    def test_quantize(self):
        target = "/v1/engines/e/quantize"
        self.assertEqual(self.client.post_json(target, {"values": []}).json, {"points": []})
        most = self.client.post_json(target, {"values": [1] * 65536})
        self.assertEqual(len(most.json["points"]), 65536)
        for text in (b"", b"{}", b"[]", b'{"values": 1}', b'{"values": ["1"]}',
                     b'{"values": [null]}', b'{"values": [NaN]}', b'{"values": [1e999]}',
                     b'{"kind": "complex", "values": [1]}', b'{"kind": "xor", "values": [-1]}',
                     b'{"kind": "xor", "values": [1.5]}',
                     b'{"kind": "xor", "values": [4294967296]}',
                     b'{"values": [1], "more": 1}', b'{"values": [1], "values": [2]}',
                     b'{"kind": null, "values": [1]}',
                     json.dumps({"values": [1] * 65537}).encode()):
            with self.subTest(text=text[:60]):
                answer = self.client.call("POST", target, text,
                                          {"Content-Type": "application/json"})
                self.assert_problem(answer, "bad-json")
        self.assert_problem(self.client.post_json("/v1/engines/none/quantize", {"values": []}),
                            "no-such-engine")

    def test_report_is_read_at_start(self):
        self.assert_problem(self.client.get("/report"), "no-such-path")
        page = self.write("page.html", b"<!doctype html><title>t</title>" + b"x" * 100_000)
        other = self.serve("--report", page, data="other")
        page.unlink()
        answer = self.api(other).get("/report")
        self.assertEqual((answer.status, len(answer.body)), (200, 100_031))

    def test_security_headers(self):
        for target in GETS:
            answer = self.raw(self.instance, "GET", target)
            self.assertEqual(answer.get("x-content-type-options"), "nosniff", target)
            self.assertIsNone(answer.get("access-control-allow-origin"), target)
