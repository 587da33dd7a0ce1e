# SPDX-License-Identifier: MIT
"""HTTP over a raw socket, for requests that a well-behaved client cannot send.

Answers are read strictly: a status line, header lines that end with CRLF, a body framed by
Content-Length, by chunks or by the end of the connection, and nothing else.  An answer that
violates this fails the test.
"""

import json
import re
import socket
import ssl
from dataclasses import dataclass, field

ANSWER_S = 300  # reached only by a hung test
STATUS_LINE = re.compile(rb"HTTP/1\.1 ([1-5][0-9][0-9]) [\x20-\x7e]*\Z")
FIELD_LINE = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\x21-\x7e](?:[\x20-\x7e\t]*"
                        rb"[\x21-\x7e])?|)[ \t]*\Z")


class BadAnswer(AssertionError):
    """The server's output is not HTTP."""


class Silence(AssertionError):
    """Neither an answer nor a close within the time limit."""


@dataclass
class Answer:
    status: int
    headers: list = field(default_factory=list)  # (lower-case name, value)
    body: bytes = b""

    def get(self, name: str, default=None):
        values = [v for n, v in self.headers if n == name.lower()]
        if len(values) > 1:
            raise BadAnswer(f"{name} stands {len(values)} times: {values}")
        return values[0] if values else default

    @property
    def type(self) -> str:
        return (self.get("content-type") or "").split(";")[0].strip().lower()

    @property
    def json(self):
        def no_constant(name):
            raise BadAnswer(f"{name} is not JSON")
        return json.loads(self.body.decode("utf-8"), parse_constant=no_constant)

    def __str__(self):
        return f"{self.status} {self.headers} {self.body[:600]!r}"


class Wire:
    """One connection."""

    def __init__(self, server, timeout=ANSWER_S, context=None, source=None):
        where = ("127.0.0.1", server.port)
        self.socket = socket.create_connection(where, timeout, source)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context:
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        self.seen = b""
        self.is_ended = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def fileno(self):
        return self.socket.fileno()

    def reset(self):
        """Closes with RST instead of FIN, as a client that disappears."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.socket.close()

    def send(self, data: bytes) -> "Wire":
        """Sends as much as the server accepts; it may have answered and closed."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            pass
        except socket.timeout:
            raise Silence("the server stopped reading and said nothing") from None
        return self

    def finish(self) -> "Wire":
        """Ends the sending direction."""
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        return self

    def _more(self) -> bool:
        if self.is_ended:
            return False
        try:
            data = self.socket.recv(65536)
        except (ConnectionResetError, ssl.SSLError, BrokenPipeError):
            data = b""
        except socket.timeout:
            raise Silence(f"no answer and no close; so far {self.seen[:200]!r}") from None
        self.seen += data
        self.is_ended = not data
        return bool(data)

    def _line(self) -> bytes:
        while b"\n" not in self.seen:
            if len(self.seen) > 65536 or not self._more():
                raise BadAnswer(f"an answer that ends within a line: {self.seen[:200]!r}")
        line, _, self.seen = self.seen.partition(b"\n")
        if not line.endswith(b"\r"):
            raise BadAnswer(f"a line that does not end with CRLF: {line[:200]!r}")
        return line[:-1]

    def _exactly(self, count: int) -> bytes:
        while len(self.seen) < count:
            if not self._more():
                raise BadAnswer(f"{count} bytes announced, {len(self.seen)} came")
        data, self.seen = self.seen[:count], self.seen[count:]
        return data

    def _chunks(self) -> bytes:
        body = b""
        while True:
            size = self._line()
            if not re.fullmatch(rb"[0-9A-Fa-f]{1,16}", size):
                raise BadAnswer(f"a chunk's size: {size!r}")
            if int(size, 16) == 0:
                while self._line():
                    pass
                return body
            body += self._exactly(int(size, 16))
            if self._exactly(2) != b"\r\n":
                raise BadAnswer("a chunk does not end with CRLF")

    def _rest(self) -> bytes:
        while self._more():
            pass
        data, self.seen = self.seen, b""
        return data

    def head(self):
        """Status line and fields, or None if the connection ended without a byte."""
        if not self.seen and not self._more():
            return None
        line = self._line()
        status = STATUS_LINE.match(line)
        if not status:
            raise BadAnswer(f"a status line: {line[:200]!r}")
        headers = []
        while line := self._line():
            found = FIELD_LINE.match(line)
            if not found:
                raise BadAnswer(f"a header line: {line[:200]!r}")
            headers.append((found[1].decode().lower(), found[2].decode()))
        return Answer(int(status[1]), headers)

    def answer(self, method="GET"):
        """The next answer, or None if the connection ended."""
        answer = self.head()
        if answer is None or answer.status < 200 or answer.status in (204, 304) or method == "HEAD":
            return answer
        length, coding = answer.get("content-length"), answer.get("transfer-encoding")
        if length is not None and coding is not None:
            raise BadAnswer("both Content-Length and Transfer-Encoding")
        if coding is not None:
            answer.body = self._chunks()
        elif length is not None:
            answer.body = self._exactly(int(length))
        else:
            answer.body = self._rest()
        return answer

    def answers(self) -> list:
        """All answers until the connection ends."""
        found = []
        while (answer := self.answer()) is not None:
            found.append(answer)
        return found

    def expect_close(self):
        """The connection ends without further data."""
        rest = self._rest()
        if rest:
            raise BadAnswer(f"more than one answer: {rest[:300]!r}")


def request(method, target, host, headers=(), body=b"", version="1.1") -> bytes:
    """A request as bytes."""
    lines = [f"{method} {target} HTTP/{version}"]
    if host is not None:
        lines.append(f"Host: {host}")
    lines += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def chunked(data: bytes, sizes=(65536,)) -> bytes:
    """A body in chunks of these sizes, cyclically."""
    parts, at, k = [], 0, 0
    while at < len(data):
        piece = data[at:at + sizes[k % len(sizes)]]
        parts.append(b"%x\r\n" % len(piece) + piece + b"\r\n")
        at, k = at + len(piece), k + 1
    return b"".join(parts) + b"0\r\n\r\n"
