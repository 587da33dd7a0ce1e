# SPDX-License-Identifier: MIT
"""A file server for the tests of remote files, which fails on demand.

`files` maps paths to bytes.  `serves` tells how bodies are sent: "ranges", "whole" (Range is ignored),
"chunked" (whole, without a length) or "close" (whole, neither length nor chunks).  `failures` are what
happens to the next GET requests, one each:

    "ok"             normal response
    "drop"           the connection ends without a response
    ("cut", N)       the connection ends after N bytes of the body
    ("short", N)     the header announces, and the body has, N bytes less than asked for
    "wrong range"    Content-Range starts one byte late
    "no range"       206 without Content-Range
    "changed"        from now on the file has another ETag
    "grown"          from now on the file has four more bytes
    "stall"          no response until the client disconnects or the server stops
    (503, {...})     this status, with these headers

Requests for other paths, such as indexes beside a file, get 404 and take no failure.  `user` is
"name:password", required of every request.  `redirects` maps paths to addresses.  With `keys`, a
dictionary of access keys and secrets, every request must be signed (AWS signature version 4); the
signature is computed here from the request as it came, with the rules of Amazon's documentation.
"""

import base64
import hashlib
import hmac
import re
import socket
import ssl
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FileServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, files=None, serves="ranges", failures=(), user=None, certificate=None, keys=None,
                 region="us-east-1", token=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = dict(files or {})
        self.serves, self.failures, self.user = serves, list(failures), user
        self.keys, self.region, self.token = keys, region, token
        self.redirects, self.version, self.etags = {}, 1, True
        self.requests = []  # (path, headers)
        self.lock, self.stopping = threading.Lock(), threading.Event()
        self.scheme = "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True,
                                              do_handshake_on_connect=False)
            self.scheme = "https"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02},
                         daemon=True).start()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    def url(self, path="/tokens.bin", user="") -> str:
        return f"{self.scheme}://{user}{self.host}{path}"

    def handle_error(self, request, client_address):
        """Disconnecting clients are expected."""

    def stop(self):
        self.stopping.set()
        self.shutdown()
        self.server_close()


def signature_problem(server, path, headers):
    """The code of S3's error for a request that is not signed as it should be, or None."""
    algorithm, _, rest = headers.get("Authorization", "").partition(" ")
    if algorithm != "AWS4-HMAC-SHA256":
        return "AccessDenied"
    given = dict(part.strip().split("=", 1) for part in rest.split(","))
    key, *scope = given["Credential"].split("/")
    names, stamp = given["SignedHeaders"].split(";"), headers["x-amz-date"]
    if key not in server.keys:
        return "InvalidAccessKeyId"
    if scope != [stamp[:8], server.region, "s3", "aws4_request"]:
        return "AuthorizationHeaderMalformed"
    if "host" not in names or any(name.lower() not in names for name in headers
                                  if name.lower().startswith("x-amz-")):
        return "AccessDenied"
    if server.token and headers.get("x-amz-security-token") != server.token:
        return "InvalidToken"

    def encode(text, safe="~"):
        return urllib.parse.quote(text, safe=safe)

    raw, _, query = path.partition("?")
    pairs = sorted((encode(name), encode(value))
                   for name, value in urllib.parse.parse_qsl(query, keep_blank_values=True))
    canonical = "\n".join(
        ["GET", encode(urllib.parse.unquote(raw), "/~"), "&".join(f"{n}={v}" for n, v in pairs)]
        + [f"{name}:{headers[name].strip()}" for name in sorted(names)]
        + ["", ";".join(sorted(names)), headers["x-amz-content-sha256"]])
    text = "\n".join([algorithm, stamp, "/".join(scope),
                      hashlib.sha256(canonical.encode()).hexdigest()])
    secret = ("AWS4" + server.keys[key]).encode()
    for part in scope + [text]:
        secret = hmac.new(secret, part.encode(), hashlib.sha256).digest()
    return None if given["Signature"] == secret.hex() else "SignatureDoesNotMatch"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FileServer

    def log_message(self, *_):
        pass

    def plain(self, status, headers=None, body=b""):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def hang_up(self):
        self.close_connection = True
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def do_HEAD(self):
        self.plain(405)  # as signed addresses do: they are for GET alone

    def do_GET(self):
        server = self.server
        with server.lock:
            server.requests.append((self.path, dict(self.headers)))
            path = self.path.split("?")[0]
            is_there = path in server.files or path in server.redirects
            failure = server.failures.pop(0) if server.failures and is_there else "ok"
        if server.user:
            wanted = "Basic " + base64.b64encode(server.user.encode()).decode()
            if self.headers["Authorization"] != wanted:
                return self.plain(401, {"WWW-Authenticate": 'Basic realm="x"'})
        if server.keys is not None:
            problem = signature_problem(server, self.path, self.headers)
            if problem:
                return self.plain(403, {}, f"<Error><Code>{problem}</Code></Error>".encode())
        if failure == "drop":
            return self.hang_up()
        if failure == "stall":
            server.stopping.wait(60)
            return self.hang_up()
        if failure == "changed":
            server.version += 1
        if failure == "grown":
            server.files[path] += bytes(4)
        if isinstance(failure, tuple) and isinstance(failure[0], int):
            return self.plain(*failure)
        if path in server.redirects:
            return self.plain(302, {"Location": server.redirects[path]})
        if path not in server.files:
            return self.plain(404)
        return self.send_file(server.files[path], failure)

    def send_file(self, data, failure):
        server, asked = self.server, re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"] or "")
        first, last = 0, len(data) - 1
        if asked and server.serves == "ranges":
            if int(asked[1]) >= len(data):
                return self.plain(416, {"Content-Range": f"bytes */{len(data)}"})
            first, last = int(asked[1]), min(int(asked[2]), last)
            if failure[0] == "short":
                last -= failure[1]
            self.send_response(206)
            shown = first + (failure == "wrong range")
            if failure != "no range":
                self.send_header("Content-Range", f"bytes {shown}-{last}/{len(data)}")
        else:
            self.send_response(200)
        body = data[first:last + 1]
        if server.etags:
            self.send_header("ETag", f'"v{server.version}"')
        self.send_header("Last-Modified", f"Tue, 17 Nov 2026 00:00:{server.version:02} GMT")
        if server.serves == "chunked":
            self.send_header("Transfer-Encoding", "chunked")
        elif server.serves == "close":
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if failure[0] == "cut":
            body = body[:failure[1]]
        try:
            if server.serves == "chunked":
                for at in range(0, len(body), 50000):
                    part = body[at:at + 50000]
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                if failure[0] != "cut":
                    self.wfile.write(b"0\r\n\r\n")
            else:
                self.wfile.write(body)
            self.wfile.flush()
        except OSError:  # the client has seen enough
            self.close_connection = True
        if failure[0] == "cut":
            self.hang_up()
