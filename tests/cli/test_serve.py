# SPDX-License-Identifier: MIT
"""`iron serve` as a command: options, the line printed when it is ready, and signals.  HTTP requests
are tested in tests/server."""

import re
import signal
import socket
import subprocess
import threading
import time
import unittest
import urllib.request

from harness import TIMEOUT_S, IronTest, iron, start

READY = re.compile(rb"\Airon: serving (http://127\.0\.0\.1:[0-9]+), data in ([^,]+), "
                   rb"([0-9]+) engines?\n\Z")
LIMITS = {"max-engines": 1000000, "max-connections": 65536, "max-per-address": 65536,
          "max-uploads": 65536, "header-seconds": 86400, "request-seconds": 1000000,
          "grace-seconds": 86400}


class ServeTest(IronTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        said = iron("serve", "--listen", "nowhere").message
        if "not part of this build" in said:
            raise unittest.SkipTest(said.strip())

    def serve(self, *options, **popen):
        """Starts the server; returns the process and its URL."""
        command = start("serve", "--listen", "127.0.0.1:0", *options, cwd=self.dir,
                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                        **popen)
        self.addCleanup(command.communicate)
        self.addCleanup(command.kill)
        watchdog = threading.Timer(TIMEOUT_S, command.kill)
        watchdog.start()
        line = command.stderr.readline()
        watchdog.cancel()
        found = READY.match(line)
        self.assertTrue(found, line)
        self.ready = found
        return command, found.group(1).decode()

    def read(self, url):
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
            self.assertEqual(answer.status, 200)
            return answer.read()

    def create(self, url, name):
        request = urllib.request.Request(
            url + "/v1/engines", data=b'{"name": "%s"}' % name.encode(),
            headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            self.assertEqual(answer.status, 201)

    def end(self, command, how):
        command.send_signal(how)
        out, err = command.communicate(timeout=TIMEOUT_S)
        return command.returncode, out, err


class Serving(ServeTest):
    def test_ready_line_comes_when_the_server_is_ready(self):
        command, url = self.serve()
        self.assertEqual(self.ready.group(2, 3), (b"iron-data", b"0"))
        self.read(url + "/healthz")
        self.assertEqual(self.end(command, signal.SIGINT), (0, b"", b"iron: stopping\n"))

    def test_both_signals_stop_it_cleanly(self):
        for how in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(how):
                command, _ = self.serve("--data", "elsewhere")
                self.assertEqual(self.ready.group(2), b"elsewhere")
                self.assertEqual(self.end(command, how), (0, b"", b"iron: stopping\n"))

    def test_second_signal_ends_it_at_once(self):
        command, url = self.serve("--grace-seconds", 3600)
        self.create(url, "a")
        # an incomplete body: the stop waits for it during the grace period
        with socket.create_connection(("127.0.0.1", int(url.rsplit(":", 1)[1]))) as slow:
            slow.sendall(b"POST /v1/engines/a/feed HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                         b"Content-Length: 1000000\r\n\r\n" + bytes(100000))
            while b"\niron_uploads 1\n" not in self.read(url + "/metrics"):
                time.sleep(0.01)
            command.send_signal(signal.SIGTERM)
            self.assertEqual(command.stderr.readline(), b"iron: stopping\n")
            code, _, err = self.end(command, signal.SIGTERM)
        self.assertEqual((code, err), (-signal.SIGTERM, b""))

    def test_ignored_signal_stays_ignored(self):
        def ignore():
            signal.signal(signal.SIGHUP, signal.SIG_IGN)

        command, url = self.serve(preexec_fn=ignore)
        command.send_signal(signal.SIGHUP)
        self.read(url + "/healthz")
        self.assertEqual(self.end(command, signal.SIGTERM), (0, b"", b"iron: stopping\n"))

    def test_server_survives_a_closed_stderr(self):
        command, url = self.serve()
        command.stderr.close()
        command.stderr = None
        self.read(url + "/healthz")
        command.send_signal(signal.SIGTERM)
        self.assertEqual(command.wait(TIMEOUT_S), 0)

    def test_second_server_on_the_same_data_is_refused(self):
        self.serve()
        result = self.iron("serve", "--listen", "127.0.0.1:0")
        self.assert_error_line(result, "iron-data")

    def test_engines_are_counted(self):
        command, url = self.serve()
        for name in ("a", "b"):
            self.create(url, name)
        self.end(command, signal.SIGTERM)
        self.serve()
        self.assertEqual(self.ready.group(3), b"2")


class Refusals(ServeTest):
    def test_limits(self):
        for name, most in LIMITS.items():
            for value in (0, most + 1, 2**64 - 1):
                self.refused("serve", f"--{name}", value,
                             says=f"--{name} is {value}; it must be 1 to {most}")
        self.refused("serve", "--max-body", 0, says="--max-body is 0")
        self.refused("serve", "--min-body-rate", 0, says="--min-body-rate is 0")
        self.refused("serve", "--max-uploads", "many", says="many")
        self.refused("serve", "--drain-seconds", 86401, says="it must be 0 to 86400")

    def test_arguments(self):
        self.refused("serve", "8080", says="unexpected argument '8080'")
        self.refused("serve", "--tls-cert", "cert", says="belong together")
        self.refused("serve", "--tls-key", "key", says="belong together")
        self.refused("serve", *["--host", "x"] * 65, says="host")

    def test_addresses(self):
        self.refused("serve", "--listen", "nowhere", says="nowhere")
        self.refused("serve", "--listen", "127.0.0.1:65536", says="65536")

    def test_port_in_use(self):
        _, url = self.serve()
        port = url.rsplit(":", 1)[1]
        result = self.iron("serve", "--listen", f"127.0.0.1:{port}", "--data", "other")
        self.assert_error_line(result, port)

    def test_public_address_requires_a_token(self):
        self.refused("serve", "--listen", "0.0.0.0:0", says="token")


if __name__ == "__main__":
    unittest.main()
