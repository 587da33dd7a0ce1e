# SPDX-License-Identifier: MIT
"""Where the server listens, what SIGHUP makes it read again, and how it drains before it stops."""

import os
import shutil
import signal
import socket
import ssl
import stat
import threading

from api import ServerTest
from harness import pack
from serving import NotServing, wait_until
from test_start import make_certificate
from wire import Wire, request

TOKENS = ("first-token-of-these-tests", "second-token-of-these-tests")


class UnixWire(Wire):
    """A connection to a file system socket."""

    def __init__(self, path):  # pylint: disable=super-init-not-called
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(300)
        self.socket.connect(str(path))
        self.seen, self.is_ended = b"", False


class Listening(ServerTest):
    def test_several_addresses(self):
        path = self.dir / "socket"
        server = self.serve("--listen", "127.0.0.2:0", "--listen", f"unix:{path}")
        other = next(line.split()[3] for line in server.lines if "127.0.0.2" in line)
        self.assertIn(f"iron: listening on unix:{path} too", server.lines)
        port = int(other.rsplit(":", 1)[1])
        self.created(self.api(server), "e", nodes=2)
        with socket.create_connection(("127.0.0.2", port)) as second:
            second.sendall(request("GET", "/v1/engines/e", "127.0.0.2"))
            self.assertTrue(second.recv(100).startswith(b"HTTP/1.1 200 "))
        with UnixWire(path) as wire:
            self.assertEqual(wire.send(request("GET", "/v1/engines/e", "any.name")).answer().status,
                             200)
        server.stop()
        self.assertFalse(path.exists())

    def test_unix_socket(self):
        """Requests, refusals in the middle of a body, and large bodies."""
        path = self.dir / "socket"
        server = self.serve("--listen", f"unix:{path}", "--max-per-address", 1,
                            "--max-body", 1_000_000)
        self.assertTrue(stat.S_ISSOCK(path.stat().st_mode))
        self.assertFalse(path.stat().st_mode & 0o007)
        self.created(self.api(server), "e", nodes=2)
        wires = [UnixWire(path) for _ in range(4)]  # they have no address to count
        for wire in wires:
            wire.send(request("POST", "/v1/engines/e/feed", "x", [("Content-Length", "400000")],
                              bytes(400_000)))
            self.assertEqual(wire.answer().status, 200)
            wire.close()
        with UnixWire(path) as wire:
            wire.send(request("POST", "/v1/engines/e/feed", "x", [("Transfer-Encoding", "chunked")],
                              b"f4240\r\n" + bytes(1_000_000) + b"\r\n4\r\n1234\r\n"))
            self.assert_problem(wire.answer(), "too-large")
        with UnixWire(path) as wire:
            self.assert_problem(wire.send(b"GET /healthz HTTP/1.1\r\n\r\n").answer(),
                                "malformed-request")
        self.assertEqual(self.api(server).engine("e")["tokens"], 400_000)

    def test_stale_and_used_paths(self):
        path = self.dir / "socket"
        first = self.serve("--listen", f"unix:{path}")
        with self.assertRaises(NotServing) as why:
            self.serve("--listen", f"unix:{path}", data="other")
        self.assertIn("cannot listen on unix:", str(why.exception))
        first.kill()
        self.assertTrue(path.exists())
        first.start()
        with UnixWire(path) as wire:
            self.assertEqual(wire.send(request("GET", "/healthz", "x")).answer().status, 200)

    def test_public_addresses_need_a_token(self):
        with self.assertRaises(NotServing) as why:
            self.serve("--listen", "0.0.0.0:0")
        self.assertIn("needs a token file", str(why.exception))


class Reloading(ServerTest):
    def reload(self, server, says):
        count = sum(says in line for line in server.said)
        server.process.send_signal(signal.SIGHUP)
        wait_until(says, lambda: sum(says in line for line in server.said) > count)

    def write_secret(self, name, text):
        path = self.dir / name
        path.write_text(text, encoding="ascii")
        path.chmod(0o600)
        return path

    def test_tokens(self):
        server = self.serve("--token-file", self.write_secret("token", TOKENS[0]))
        first, second = (self.api(server, token=token) for token in TOKENS)
        self.created(first, "e", nodes=2)
        upload = self.wire(server).send(request(
            "POST", "/v1/engines/e/feed", server.host,
            [("Content-Length", "8"), ("Authorization", f"Bearer {TOKENS[0]}")], pack([1])))
        self.assertEqual(second.get("/v1/engines").status, 401)
        self.write_secret("token", f"{TOKENS[1]} read\n")
        self.reload(server, "were read again")
        self.assertEqual(first.get("/v1/engines").status, 401)
        self.assertEqual(second.engine("e")["tokens"], 0)
        self.assertEqual(second.feed("e", pack([1])).status, 403)
        upload.send(pack([2]))  # what was open stays open
        self.assertEqual(upload.answer().status, 200)
        self.assertEqual(second.engine("e")["tokens"], 2)

    def test_bad_files_change_nothing(self):
        token = self.write_secret("token", TOKENS[0])
        server = self.serve("--token-file", token)
        client = self.api(server, token=TOKENS[0])
        for spoil in (lambda: token.write_text("a b c\n"), token.unlink,
                      lambda: self.write_secret("token", TOKENS[1]).chmod(0o644)):
            spoil()
            self.reload(server, "the old tokens and certificate stay in use: token file")
            self.assertEqual(client.get("/v1/engines").status, 200)
        self.assertNotIn("a b c", "\n".join(server.said))

    def test_without_secrets(self):
        server = self.serve()
        self.reload(server, "were read again")
        self.assertEqual(self.api(server).get("/readyz").status, 200)

    def certificate_of(self, server):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with socket.create_connection(("127.0.0.1", server.port)) as plain:
            with context.wrap_socket(plain) as wrapped:
                return ssl.DER_cert_to_PEM_cert(wrapped.getpeercert(True))

    def test_certificates(self):
        one, two = (make_certificate(self.dir, name=name) for name in ("one", "two"))
        for source, name in zip(one, ("cert.pem", "key.pem")):
            shutil.copy(source, self.dir / name)
        server = self.serve("--tls-cert", self.dir / "cert.pem", "--tls-key", self.dir / "key.pem")
        old = self.api(server, context=ssl.create_default_context(cafile=str(one[0])))
        self.created(old, "e", nodes=2)
        self.assertEqual(self.certificate_of(server), one[0].read_text())
        shutil.copy(two[0], self.dir / "cert.pem")  # not with this key
        self.reload(server, "stay in use: TLS cannot start")
        self.assertEqual(self.certificate_of(server), one[0].read_text())
        shutil.copy(two[1], self.dir / "key.pem")
        self.reload(server, "were read again")
        self.assertEqual(self.certificate_of(server), two[0].read_text())
        sock = old.connection.sock
        self.fed(old, "e", pack([1]))
        self.assertIs(old.connection.sock, sock, "the connection was dropped")
        for k in range(20):  # more often than certificates can be in use at the same time
            for source, name in zip((one, two)[k % 2], ("cert.pem", "key.pem")):
                shutil.copy(source, self.dir / name)
            self.reload(server, "were read again")
        self.assertEqual(self.certificate_of(server), two[0].read_text())
        self.fed(old, "e", pack([1]))
        threads = len(os.listdir(f"/proc/{server.process.pid}/task"))
        self.assertLess(threads, 40)


class Draining(ServerTest):
    def test_readyz_says_so_first(self):
        """New connections are served until the drain is over; only /readyz tells."""
        server = self.serve("--drain-seconds", 3600)
        client = self.api(server)
        self.created(client, "e", nodes=2)
        self.assertEqual(self.raw(server, "GET", "/readyz").status, 200)
        server.process.send_signal(signal.SIGTERM)
        wait_until("/readyz says 503",
                   lambda: self.raw(server, "GET", "/readyz").status == 503)
        self.assert_problem(self.raw(server, "GET", "/readyz"), "stopping")
        server.process.send_signal(signal.SIGHUP)  # there is nothing to reload any more
        self.assertEqual(self.raw(server, "GET", "/healthz").status, 200)
        self.fed(self.api(server), "e", pack([1]))
        server.process.send_signal(signal.SIGTERM)  # a second signal does not wait
        server.process.wait()
        server._forget()
        server.set_options()
        server.start()
        self.assertEqual(self.api(server).engine("e")["tokens"], 1)

    def test_drain_ends(self):
        server = self.serve("--drain-seconds", 1)
        self.assertEqual(self.api(server).get("/v1/info").json["limits"]["drain_seconds"], 1)
        server.stop()

    def test_new_connections_while_stopping(self):
        """While a request is in progress, new ones are answered with 503."""
        server = self.serve("--grace-seconds", 600)
        client = self.api(server)
        self.created(client, "e", nodes=2)
        upload = self.wire(server).send(request("POST", "/v1/engines/e/feed", server.host,
                                                [("Content-Length", "8")], pack([1])))
        wait_until("the upload",
                   lambda: b"iron_requests_in_flight 2" in client.get("/metrics").body)
        stopper = threading.Thread(target=server.stop)
        stopper.start()
        wait_until("/readyz says 503",
                   lambda: self.raw(server, "GET", "/readyz").status == 503)
        self.assert_problem(self.raw(server, "GET", "/v1/engines"), "stopping")
        upload.send(pack([2]))
        self.assertEqual(upload.answer().status, 200)
        stopper.join()
