# SPDX-License-Identifier: MIT
"""A well-behaved client over http.client, and the base class of the server's tests.

Every response that passes through `Api` is checked against the OpenAPI document (contract.py).
An `Api` belongs to one thread and keeps its connection open as long as the server does.
"""

import http.client
import json
import os
import select
import shutil
import tempfile
import time
import unittest
from pathlib import Path

import contract
from harness import IRON, iron, parse_json
from serving import Server
from wire import ANSWER_S, Answer, Wire, request

REPORT_KEYS = ("tokens", "batches", "xor", "sum", "state", "seal")


def report_of(document: dict) -> dict:
    """The six words of an engine's report, from any document that contains them."""
    return {key: document[key] for key in REPORT_KEYS}


class Gone(Exception):
    """The connection ended without a response: the request may or may not have been processed."""


class Api:
    """is_patient: for servers with short timeouts; repeats a GET if this client was too slow or its
    idle connection was closed."""

    def __init__(self, server, token=None, timeout=ANSWER_S, context=None, is_patient=False):
        self.server, self.token, self.timeout, self.context = server, token, timeout, context
        self.is_patient = is_patient
        self.connection = self.run_number = None

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def _connect(self):
        if self.run_number != self.server.run_number:  # it was restarted
            self.close()
        if self.connection is None:
            self.run_number = self.server.run_number
            if self.context:
                self.connection = http.client.HTTPSConnection(
                    "localhost", self.server.port, timeout=self.timeout, context=self.context)
            else:
                self.connection = http.client.HTTPConnection("127.0.0.1", self.server.port,
                                                             timeout=self.timeout)
        return self.connection

    def _is_stale(self) -> bool:
        """Whether the server has closed a connection that was idle for too long."""
        sock = self.connection and self.connection.sock
        if not sock:
            return False
        return bool(select.select([sock], [], [], 0)[0])

    def _send(self, method, target, body, headers, is_chunked):
        connection = self._connect()
        try:
            connection.request(method, target, body, headers, encode_chunked=is_chunked)
        except (BrokenPipeError, ConnectionResetError):
            if connection.sock is None:
                raise
            # it may have answered before the body: the answer is read below
        return connection.getresponse()

    def call(self, method, target, body=None, headers=None, is_chunked=False) -> Answer:
        """One request; with is_chunked the body is an iterable.  Raises Gone if there was no
        answer."""
        headers = dict(headers or {})
        if self.token:
            headers.setdefault("Authorization", f"Bearer {self.token}")
        if is_chunked:
            headers["Transfer-Encoding"] = "chunked"
        if method in ("GET", "HEAD") and self._is_stale():
            self.close()
        try:
            found = self._send(method, target, body, headers, is_chunked)
            answer = Answer(found.status, [(n.lower(), v) for n, v in found.getheaders()],
                            found.read())
        except (http.client.HTTPException, ConnectionError, TimeoutError, BrokenPipeError) as why:
            self.close()
            raise Gone(f"{method} {target}: {why!r}") from why
        if found.will_close:
            self.close()
        contract.check(method, target, answer)
        return answer

    def get(self, target, **headers) -> Answer:
        end = time.monotonic() + (ANSWER_S if self.is_patient else 0)
        while True:
            try:
                answer = self.call("GET", target, headers=headers)
            except Gone:
                if time.monotonic() > end:
                    raise
            else:
                if answer.status != 408 or time.monotonic() > end:
                    return answer
            self.close()

    def post_json(self, target, document) -> Answer:
        return self.call("POST", target, json.dumps(document).encode(),
                         {"Content-Type": "application/json"})

    def create(self, name, **plan) -> Answer:
        return self.post_json("/v1/engines", {"name": name, **plan})

    def engine(self, name) -> dict:
        answer = self.get(f"/v1/engines/{name}")
        assert answer.status == 200, answer
        return answer.json

    def feed(self, name, body, dtype=None, at=None, key=None, cuts=None) -> Answer:
        """One feed; with cuts, a list of sizes used cyclically, the body is sent in chunks."""
        query = [f"{n}={v}" for n, v in (("dtype", dtype), ("at", at)) if v is not None]
        headers = {"Content-Type": "application/octet-stream"}
        if key is not None:
            headers["Idempotency-Key"] = key
        target = f"/v1/engines/{name}/feed" + ("?" + "&".join(query) if query else "")
        if cuts is None:
            return self.call("POST", target, body, headers)
        return self.call("POST", target, pieces(body, cuts), headers, is_chunked=True)


def pieces(body: bytes, sizes):
    """The body in pieces of these sizes, cyclically."""
    at, k = 0, 0
    while at < len(body):
        yield body[at:at + sizes[k % len(sizes)]]
        at, k = at + sizes[k % len(sizes)], k + 1


class ServerTest(unittest.TestCase):
    """A test with a temporary folder; its servers are stopped at the end and must exit cleanly."""

    maxDiff = 2000

    @classmethod
    def setUpClass(cls):
        if not os.access(IRON, os.X_OK):
            raise FileNotFoundError(f"no command at {IRON}: build it, or set IRON to its path")

    def setUp(self):
        self.dir = Path(tempfile.mkdtemp(prefix="iron-server-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def server(self, *options, data="data", **kwargs) -> Server:
        """A server that is not started yet."""
        server = Server(self.dir / data, *options, **kwargs)
        self.addCleanup(self._end, server)
        return server

    @staticmethod
    def _end(server):
        if server.process:
            server.stop()

    def serve(self, *options, **kwargs) -> Server:
        return self.server(*options, **kwargs).start()

    def api(self, server, **kwargs) -> Api:
        api = Api(server, **kwargs)
        self.addCleanup(api.close)
        return api

    def wire(self, server, **kwargs) -> Wire:
        wire = Wire(server, **kwargs)
        self.addCleanup(wire.close)
        return wire

    def raw(self, server, method, target, headers=(), body=b"", **kwargs) -> Answer:
        """One request over a raw socket, checked like any other."""
        with Wire(server, **kwargs) as wire:
            wire.send(request(method, target, server.host, headers, body))
            answer = wire.answer(method)
        self.assertIsNotNone(answer, f"{method} {target}: closed without an answer")
        contract.check(method, target, answer)
        return answer

    def hold(self, server, **kwargs) -> Wire:
        """A connection with a request in progress: a stream of events."""
        wire = self.wire(server, **kwargs)
        wire.send(request("GET", "/v1/events", "localhost"))
        self.assertEqual(wire.head().status, 200)
        return wire

    def write(self, name: str, data: bytes) -> Path:
        path = self.dir / name
        path.write_bytes(data)
        return path

    def command(self, *args, **kwargs):
        """`iron ... --json`, which must succeed."""
        result = iron(*args, "--json", cwd=self.dir, **kwargs)
        self.assertEqual(result.code, 0, str(result))
        return parse_json(result.out)

    def created(self, api, name, **plan) -> dict:
        answer = api.create(name, **plan)
        self.assertEqual(answer.status, 201, str(answer))
        return answer.json

    def fed(self, api, name, body, **how) -> dict:
        answer = api.feed(name, body, **how)
        self.assertEqual(answer.status, 200, str(answer))
        return answer.json

    def assert_problem(self, answer, kind, says=None):
        self.assertGreaterEqual(answer.status, 400, str(answer))
        self.assertEqual(contract.kind(answer), kind, str(answer))
        if says:
            self.assertRegex(answer.json["detail"] + " " + answer.json["help"], says)
