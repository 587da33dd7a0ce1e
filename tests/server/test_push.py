# SPDX-License-Identifier: MIT
"""`iron push` against the real server, with restarts, kills and other clients."""

import http.server
import signal
import threading
import time

from api import ServerTest, report_of
from harness import iron, oracle, pack, parse_json, start
from model import by_command, plan_of

CONFIG = oracle.Config(nodes=50, batch=1000)
COUNT = 400_000


class Push(ServerTest):
    def setUp(self):
        super().setUp()
        self.instance = self.serve()
        self.instance.listen = f"127.0.0.1:{self.instance.port}"  # the same port after a restart
        self.client = self.api(self.instance)
        self.created(self.client, "e", **plan_of(CONFIG))
        self.path = self.dir / "tokens"
        done = iron("gen", "--seed", 4, "--count", COUNT, "--limit", 50257, "-o", self.path)
        self.assertEqual(done.code, 0, str(done))
        self.url = f"{self.instance.url}/v1/engines/e"

    def push(self, *options, path=None, code=0):
        done = iron("push", path or self.path, self.url, "--dtype", "u32", "--json", *options)
        self.assertEqual(done.code, code, str(done))
        if code:
            self.assertEqual(done.out, b"")
            self.assertRegex(done.message, r"\Airon: [^\n]+\n\Z")
            return done.message
        return parse_json(done.out)

    def assert_whole(self):
        expected = by_command(CONFIG, [(self.path, "u32")], self.dir)
        self.assertEqual(report_of(self.client.engine("e")), report_of(expected))

    def test_push_survives_restarts_of_the_server(self):
        """Kills the server several times with SIGKILL during a push in small pieces."""
        process = start("push", self.path, self.url, "--dtype", "u32", "--piece", 2000,
                        "--retries", 50, "--json", stdout=-1, stderr=-1)
        for _ in range(3):
            goal = self.client.engine("e")["tokens"] + 20_000
            while process.poll() is None and self.client.engine("e")["tokens"] < min(goal, COUNT):
                time.sleep(0.01)
            self.instance.kill()
            self.instance.start()
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, err)
        report = parse_json(out)
        self.assertEqual(report["pushed"], COUNT)
        self.assert_whole()

    def test_killed_push_can_be_resumed(self):
        for _ in range(3):
            process = start("push", self.path, self.url, "--dtype", "u32", "--piece", 1000,
                            stdout=-1, stderr=-1)
            begun = self.client.engine("e")["tokens"]
            while process.poll() is None and self.client.engine("e")["tokens"] <= begun:
                time.sleep(0.002)
            process.send_signal(signal.SIGKILL)
            process.communicate()
        had = self.client.engine("e")["tokens"]
        report = self.push()
        self.assertGreaterEqual(report["resumed_at"], min(had, COUNT))
        self.assert_whole()

    def test_different_stream_is_refused(self):
        """The engine holds other tokens than the file's beginning: nothing is sent."""
        self.fed(self.client, "e", pack([1, 2, 3, 4]))
        before = self.client.engine("e")
        self.assertRegex(self.push(code=2), "seal|other|differ|append")
        self.assertEqual(before, self.client.engine("e"))
        self.assertEqual(self.push("--append")["tokens"], COUNT + 4)

    def test_longer_stream_is_refused(self):
        self.push()
        short = self.write("short", self.path.read_bytes()[:4000])
        before = self.client.engine("e")
        self.push(path=short, code=2)
        self.assertEqual(before, self.client.engine("e"))

    def test_two_pushes_at_once(self):
        """Both push the same file: each piece is fed once."""
        found = []

        def go():
            found.append(iron("push", self.path, self.url, "--dtype", "u32", "--piece", 3000,
                              "--retries", 100))
        threads = [threading.Thread(target=go) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertIn(0, [done.code for done in found], list(map(str, found)))
        for done in found:  # one that finds an unexpected position may fail
            if done.code:
                self.assertRegex(done.message, r"\Airon: [^\n]*another client[^\n]*\n\Z", str(done))
        self.push()
        self.assert_whole()

    def intrude(self):
        """A proxy that feeds as many tokens as another client before each body."""
        outer = self

        class Way(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def pass_on(self, body=None):
                answer = outer.client.call(self.command, self.path, body)
                self.send_response(answer.status)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

            def do_GET(self):
                self.pass_on()

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.fed(outer.client, "e", bytes(len(body)))
                self.pass_on(body)

            def log_message(self, *_):
                pass

        way = http.server.HTTPServer(("127.0.0.1", 0), Way)
        threading.Thread(target=way.serve_forever, daemon=True).start()
        self.addCleanup(way.server_close)
        self.addCleanup(way.shutdown)
        self.url = f"http://127.0.0.1:{way.server_port}/v1/engines/e"

    def test_tokens_of_another_client_are_detected(self):
        """As many as a piece has, so that the position alone does not show it."""
        self.intrude()
        self.assertRegex(self.push(code=2), "not the beginning of")
        self.assertRegex(self.push("--append", code=2), "another client")
        self.assertEqual(self.client.engine("e")["tokens"], 2 * COUNT)

    def test_refusals(self):
        empty = self.write("empty", b"")
        self.assertEqual(self.push(path=empty)["pushed"], 0)
        self.push(path=self.dir / "none", code=2)
        ragged = self.write("ragged", bytes(7))
        self.push(path=ragged, code=2)
        self.url = f"{self.instance.url}/v1/engines/none"
        self.assertRegex(self.push(code=2), "none")
        for url in ("", "nonsense", "ftp://127.0.0.1/v1/engines/e", self.instance.url,
                    "http://127.0.0.1:1/v1/engines/e", "http:///v1/engines/e",
                    f"{self.instance.url}/v1/engines/e/state"):
            with self.subTest(url=url):
                self.url = url
                self.push("--retries", 1, code=2)
        self.instance.stop()
        self.url = f"http://{self.instance.listen}/v1/engines/e"
        self.push("--retries", 1, code=2)

    def test_push_with_a_token(self):
        secret = self.write("token", b"abcdefghijklmnopqrstuvwxyz012345\n")
        secret.chmod(0o600)
        other = self.serve("--token-file", secret, data="other")
        api = self.api(other, token="abcdefghijklmnopqrstuvwxyz012345")
        self.created(api, "e", **plan_of(CONFIG))
        self.url = f"{other.url}/v1/engines/e"
        self.assertRegex(self.push(code=2), "token")
        self.assertEqual(self.push("--token-file", secret)["pushed"], COUNT)
        secret.chmod(0o644)
        self.push("--token-file", secret, code=2)
