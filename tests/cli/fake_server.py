# SPDX-License-Identifier: MIT
"""A server with one engine that fails on demand, for the tests of `iron push`.

The engine is the oracle's.  Requests are answered as by the real server, except for the failures
listed in `failures`: each POST takes the next entry.  `questions` does the same for GET.

    "ok"            normal response
    "drop"          the connection ends before the body is read
    "half"          ... in the middle of the body
    "lost"          the body is fed, and the connection ends without a response
    "late"          the connection ends, and the body is fed after the next GET
    "wrong"         the body is fed; the response has a wrong position
    "other writer"  another client feeds four tokens first, so the request gets a 409
    "garbage"       the response is not HTTP
    "endless"       a response of two megabytes
    "stall"         no response until the client disconnects
    (503, {...})    this status, with these headers, before the body is read
"""

import json
import socket
import ssl
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness import oracle, unpack

TITLES = {404: "There is no engine of this name", 409: "The engine is at another position",
          401: "A token is needed"}


class FakeServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, config=None, token=None, certificate=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.config = config or oracle.Config(vocab=1000, nodes=8, batch=16)
        self.token = token
        self.failures, self.questions = [], []
        self.posts, self.agents, self.paths = 0, set(), []
        self.connections = 0
        self.late = None
        self.scheme = "http"
        self.stalled = threading.Event()
        self.clear()
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True)
            self.scheme = "https"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02},
                         daemon=True).start()

    def clear(self):
        self.engine, self.tokens = oracle.Engine(self.config), []

    def handle_error(self, request, client_address):
        """Disconnecting clients are expected."""

    def get_request(self):
        self.connections += 1
        return super().get_request()

    @property
    def url(self):
        return f"{self.scheme}://127.0.0.1:{self.server_port}/v1/engines/corpus"

    def feed(self, tokens):
        self.engine.feed(tokens)
        self.tokens += tokens

    def report(self):
        return self.engine.report() | {"seal": oracle.seal(self.tokens)}

    def stop(self):
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body, headers=None):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def problem(self, status, headers=None, kind="some-kind", **more):
        self.close_connection = True
        title = TITLES.get(status, "Something is amiss")
        self.answer(status, {"type": f"urn:iron:problem:{kind}", "title": title, "status": status,
                             "detail": "what happened", "help": "what to do"} | more,
                    {"Connection": "close"} | (headers or {}))
        # read the rest of the body, so that a reset does not discard the response
        self.connection.settimeout(60)
        try:
            self.connection.shutdown(socket.SHUT_WR)
            while self.connection.recv(1 << 16):
                pass
        except OSError:
            pass

    def hang_up(self):
        self.close_connection = True
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def is_authorized(self):
        self.server.agents.add(self.headers["User-Agent"])
        self.server.paths.append(self.path)
        if self.server.token and self.headers["Authorization"] != f"Bearer {self.server.token}":
            self.problem(401)
            return False
        if urllib.parse.urlsplit(self.path).path.split("/")[3] != "corpus":
            self.problem(404)
            return False
        return True

    def do_GET(self):
        if not self.is_authorized():
            return
        server = self.server
        failure = server.questions.pop(0) if server.questions else "ok"
        if failure == "drop":
            self.hang_up()
            return
        if failure != "ok":
            self.act(failure)
            return
        self.answer(200, {"name": "corpus", "batch": server.config.batch} | server.report())
        if server.late:
            server.feed(server.late)
            server.late = None

    def do_POST(self):
        if not self.is_authorized():
            return
        self.server.posts += 1
        self.act(self.server.failures.pop(0) if self.server.failures else "ok")

    def act(self, failure):
        if isinstance(failure, tuple):
            self.problem(*failure)
            return
        {"ok": self.take, "drop": self.hang_up, "half": self.take_half, "lost": self.lose,
         "late": self.feed_later, "wrong": self.answer_wrong_position,
         "other writer": self.feed_others_first, "garbage": self.send_garbage,
         "endless": self.send_too_much, "stall": self.stall}[failure]()

    def query(self):
        return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))

    def read_tokens(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        return unpack(data, self.query()["dtype"])

    def take(self):
        tokens = self.read_tokens()
        if int(self.query()["at"]) != len(self.server.tokens):
            self.problem(409, position=len(self.server.tokens), kind="position-mismatch")
            return
        self.server.feed(tokens)
        self.answer(200, self.server.report())

    def take_half(self):
        self.rfile.read(int(self.headers["Content-Length"]) // 2)
        self.hang_up()

    def lose(self):
        tokens = self.read_tokens()
        if int(self.query()["at"]) == len(self.server.tokens):
            self.server.feed(tokens)
        self.hang_up()

    def feed_later(self):
        self.server.late = self.read_tokens()
        self.hang_up()

    def answer_wrong_position(self):
        self.server.feed(self.read_tokens())
        self.answer(200, self.server.report() | {"tokens": len(self.server.tokens) + 1})

    def feed_others_first(self):
        self.read_tokens()
        self.server.feed([1, 2, 3, 4])
        self.problem(409, position=len(self.server.tokens), kind="position-mismatch")

    def send_garbage(self):
        self.wfile.write(b"220 smtp.example.org ready\r\n")
        self.hang_up()

    def send_too_much(self):
        self.answer(200, b" " * (2 << 20))

    def stall(self):
        self.server.stalled.set()
        self.connection.settimeout(60)
        try:
            self.read_tokens()
            self.connection.recv(1)
        except OSError:
            pass
        self.hang_up()
