# SPDX-License-Identifier: MIT
"""`iron push` against a fake server that fails on demand (fake_server.py).

Every token must arrive exactly once, whichever requests or responses are lost; a permanent failure
is reported in one line.  The real server is tested in tests/server.
"""

import datetime
import email.utils
import os
import pty
import re
import shutil
import signal
import subprocess
import unittest

from fake_server import FakeServer
from harness import TIMEOUT_S, IronTest, config_options, iron, npy, oracle, pack, start

KEYS = {"engine", "url", "tokens", "batches", "xor", "sum", "state", "seal", "resumed_at",
        "pushed", "retried", "seconds", "gb_per_s"}
TOKENS = oracle.gen(5, 100, 1000)


class PushTest(IronTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        said = iron("sum", "http://127.0.0.1:1/x").message
        if "need libcurl" in said:
            raise unittest.SkipTest(said.strip())

    def setUp(self):
        super().setUp()
        self.server = self.serve()
        self.file = self.write_tokens("tokens.bin", TOKENS, "u16")

    def serve(self, **options) -> FakeServer:
        server = FakeServer(**options)
        self.addCleanup(server.stop)
        return server

    def push(self, *options, server=None, file="tokens.bin", dtype=("--dtype", "u16"), **kwargs):
        """Pushes in pieces of two batches; the JSON must match the engine."""
        server = server or self.server
        found = self.json("push", file, server.url, *dtype, "--piece", 32, *options, **kwargs)
        self.assertEqual(set(found), KEYS)
        self.assert_report(server.report(), found)
        self.assertEqual((found["engine"], found["url"]), ("corpus", server.url))
        return found

    def refuse(self, says, *options, url=None, **kwargs):
        return self.refused("push", "tokens.bin", url or self.server.url, "--dtype", "u16",
                            "--piece", 32, *options, says=says, **kwargs)


class Sending(PushTest):
    def test_report_equals_that_of_feed(self):
        found = self.push()
        self.assertEqual((found["resumed_at"], found["pushed"], found["retried"]), (0, 100, 0))
        self.assertEqual(self.server.posts, 4)
        self.assert_report(self.feed("tokens.bin", "--dtype", "u16", "--seal",
                                     *config_options(self.server.config)), found)
        self.assertEqual(self.server.connections, 1, "the connection is not reused")
        version = self.succeeds("--version").text.split()[1]
        self.assertEqual(self.server.agents, {f"iron/{version}"})
        self.assertEqual(self.server.paths[1:3], ["/v1/engines/corpus/feed?dtype=u16&at=0",
                                                  "/v1/engines/corpus/feed?dtype=u16&at=32"])

    def test_every_width_is_sent_unchanged(self):
        tokens = oracle.gen(1, 50, 200)
        for dtype in ("u8", "u16", "u32", "i32", "i64"):
            with self.subTest(dtype):
                self.server.clear()
                self.write_tokens("wide.bin", tokens, dtype)
                self.push(file="wide.bin", dtype=("--dtype", dtype))
                self.assertEqual(self.server.tokens, tokens)
                self.assertIn(f"dtype={dtype}&", self.server.paths[-1])

    def test_other_formats_and_directories(self):
        self.write("a.npy", npy(TOKENS, "<u2", "H"))
        self.push(file="a.npy", dtype=())
        self.assertEqual(self.server.tokens, TOKENS)
        self.server.clear()
        self.write_tokens("shards/9.bin", TOKENS[:33], "u16")
        self.write_tokens("shards/10.bin", TOKENS[33:], "u16")
        self.push(file="shards")
        self.assertEqual(self.server.tokens, TOKENS)

    def test_pieces_are_whole_batches(self):
        for piece, posts in ((1, 7), (16, 7), (31, 7), (32, 4), (1000, 1)):
            with self.subTest(piece=piece):
                self.server.clear()
                self.server.posts = 0
                self.json("push", "tokens.bin", self.server.url, "--dtype", "u16", "--piece", piece)
                self.assertEqual((self.server.posts, self.server.tokens), (posts, TOKENS))

    def test_url_may_end_with_feed(self):
        self.json("push", "tokens.bin", self.server.url + "/feed", "--dtype", "u16")
        self.assertEqual(self.server.tokens, TOKENS)

    def test_empty_file_sends_nothing(self):
        self.write("empty.bin", b"")
        found = self.push(file="empty.bin")
        self.assertEqual((found["pushed"], self.server.posts), (0, 0))

    def test_text_report(self):
        result = self.succeeds("push", "tokens.bin", self.server.url, "--dtype", "u16")
        report = self.server.report()
        self.assertIn("pushed    100 tokens\n", result.text)
        for key in ("tokens", "batches", "xor", "sum", "state", "seal"):
            self.assertIn(f"{key:9} {report[key]}\n", result.text)

    def test_proxy_is_not_used_for_localhost(self):
        self.push(env={"http_proxy": "http://127.0.0.1:9", "all_proxy": "http://127.0.0.1:9"})


class Resuming(PushTest):
    def test_resumes_at_any_token(self):
        for held in (1, 2, 3, 4, 15, 16, 17, 63, 96, 99):
            with self.subTest(held=held):
                self.server.clear()
                self.server.feed(TOKENS[:held])
                found = self.push()
                self.assertEqual((found["resumed_at"], found["pushed"]), (held, 100 - held))
                self.assertEqual(self.server.tokens, TOKENS)

    def test_resume_at_a_batch_gives_the_state_of_feed(self):
        self.server.feed(TOKENS[:48])
        self.assert_report(self.feed("tokens.bin", "--dtype", "u16", "--seal",
                                     *config_options(self.server.config)), self.push())

    def test_complete_file_is_not_sent_again(self):
        self.push()
        self.server.posts = 0
        found = self.push()
        self.assertEqual((found["resumed_at"], found["pushed"], self.server.posts), (100, 0, 0))
        result = self.succeeds("push", "tokens.bin", self.server.url, "--dtype", "u16")
        self.assertIn("nothing: the engine has the whole file", result.text)

    def test_different_tokens_are_refused(self):
        self.server.feed(TOKENS[:20] + [TOKENS[20] ^ 1])
        self.refuse([r"engine corpus holds 21 tokens that are not the beginning of tokens\.bin",
                     r"seal [0-9a-f]{32} against [0-9a-f]{32}", "--append"])
        self.assertEqual(self.server.posts, 0)

    def test_engine_longer_than_the_file_is_refused(self):
        self.server.feed(TOKENS + [1])
        self.refuse([r"holds 101 tokens", r"the file has 100", "--append"])

    def test_append_adds_to_any_engine(self):
        for before in ([], [7, 8, 9], TOKENS, TOKENS + TOKENS):
            with self.subTest(before=len(before)):
                self.server.clear()
                self.server.feed(before)
                found = self.push("--append")
                self.assertEqual((found["resumed_at"], found["pushed"]), (0, 100))
                self.assertEqual(self.server.tokens, before + TOKENS)

    def test_terminal_shows_progress(self):
        self.server.feed(TOKENS[:40])
        self.server.failures = ["drop"]
        ours, theirs = pty.openpty()
        with start("push", "tokens.bin", self.server.url, "--dtype", "u16", cwd=self.dir,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs) as command:
            os.close(theirs)
            said = b""
            while True:
                try:
                    some = os.read(ours, 4096)
                except OSError:  # the program has closed the terminal
                    break
                if not some:
                    break
                said += some
            self.assertEqual(command.wait(TIMEOUT_S), 0, said)
        os.close(ours)
        self.assertIn(b"iron: resuming at token 40 of 100\r\n", said)
        self.assertRegex(said, rb"trying again in 0\.[12] s \(1 of 8\)")


class Failures(PushTest):
    def survive(self, *failures, retried, questions=()):
        self.server.failures = list(failures)
        self.server.questions = list(questions)
        found = self.push()
        self.assertEqual(self.server.failures, [])
        self.assertEqual(self.server.tokens, TOKENS)
        self.assertEqual(found["retried"], retried)

    def test_lost_request_is_sent_again(self):
        self.survive("drop", "ok", "half", "drop", retried=3)

    def test_lost_response_is_recovered(self):
        self.survive("lost", "ok", "lost", "lost", retried=0)

    def test_delayed_request_is_not_fed_twice(self):
        self.survive("late", retried=1)

    def test_temporary_errors_are_retried(self):
        """The delay grows with each attempt of a piece: no piece has more than two errors."""
        self.survive((503, {}), (429, {}), "ok", (502, {}), (504, {}), "ok", (408, {}), retried=5)

    def test_retry_after_sets_the_delay(self):
        self.server.failures = [(503, {"Retry-After": "1"})]  # without it: 0.1 to 0.2 s
        self.assertGreater(self.push()["seconds"], 1)

    def test_retry_after_may_be_a_date(self):
        later = email.utils.format_datetime(
            datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=3), usegmt=True)
        self.server.failures = [(503, {"Retry-After": later})]
        self.assertGreater(self.push()["seconds"], 1)

    def test_failed_position_queries_are_repeated(self):
        self.survive("lost", retried=0, questions=["ok", "drop", (503, {})])

    def test_first_query_is_repeated(self):
        self.survive(retried=0, questions=[(503, {"Retry-After": "1"})])

    def test_another_client_is_detected(self):
        self.server.failures = ["ok", "other writer"]
        self.refuse(["engine corpus is at token 36 and not at 32 or 64", "another client feeds"])
        self.assertEqual(self.server.tokens, TOKENS[:32] + [1, 2, 3, 4])

    def test_unexpected_position_is_detected(self):
        self.server.failures = ["wrong"]
        self.refuse("is at token 33 and not at 0 or 32: another client feeds this engine")

    def test_number_of_retries_is_limited(self):
        self.server.failures = ["drop"] * 9
        self.refuse(["engine corpus", "tried 2 times", "push again later"], "--retries", 2)
        self.assertEqual(self.server.posts, 3)
        self.server.failures = []
        self.push()

    def test_retries_are_counted_per_piece(self):
        self.server.failures = ["drop", "ok", "drop", "ok", "drop", "ok", "drop", "ok"]
        self.assertEqual(self.push("--retries", 1)["retried"], 4)

    def test_read_only_server_is_not_retried(self):
        self.server.failures = [(503, {"Retry-After": "1"}, "read-only")]
        self.refuse(r"engine corpus: Something is amiss \(503\): what happened; what to do")
        self.assertEqual(self.server.posts, 1)

    def test_permanent_errors_are_not_retried(self):
        for status in (400, 403, 413, 415, 421, 422, 500, 507, 301):
            with self.subTest(status=status):
                self.server.posts = 0
                self.server.failures = [(status, {"Location": self.server.url})]
                self.refuse(rf"engine corpus: .*\({status}\): what happened; what to do")
                self.assertEqual((self.server.posts, self.server.tokens), (1, []))

    def test_too_large_suggests_smaller_pieces(self):
        self.server.failures = [(413, {})]
        self.refuse(r"\(413\).*; --piece makes requests smaller")

    def test_other_servers_are_refused(self):
        self.server.questions = ["garbage"]
        self.refuse("engine corpus: ")
        self.server.questions = ["endless"]
        self.refuse(r"longer than 1048576 bytes; is it iron serve\?")
        self.assertEqual(self.server.posts, 0)

    def test_interrupted_push_can_be_resumed(self):
        self.server.failures = ["ok", "stall"]
        command = start("push", "tokens.bin", self.server.url, "--dtype", "u16", "--piece", 32,
                        cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertTrue(self.server.stalled.wait(TIMEOUT_S))
        command.send_signal(signal.SIGINT)
        self.assertEqual(command.communicate(timeout=TIMEOUT_S), (b"", b""))
        self.assertEqual(command.returncode, -signal.SIGINT)
        self.assertEqual(self.push()["resumed_at"], 32)
        self.assertEqual(self.server.tokens, TOKENS)


class Refusals(PushTest):
    def test_invalid_urls(self):
        for url in ("corpus", "http://127.0.0.1:1", "ftp://127.0.0.1/v1/engines/corpus",
                    self.server.url + "?at=0", self.server.url + "/state",
                    "http://me:secret@127.0.0.1/v1/engines/corpus"):
            with self.subTest(url):
                self.refuse(r"is not the address of an engine; it looks like "
                            r"http://127\.0\.0\.1:8080/v1/engines/NAME", url=url)

    def test_connection_refused(self):
        self.server.stop()
        self.refuse(r"Connection refused; is iron serve running there\?|Failed to connect")

    def test_missing_library(self):
        result = self.iron("push", "tokens.bin", self.server.url, "--dtype", "u16",
                           env={"IRON_CURL_LIBRARY": "none"})
        self.assert_error_line(result, "iron push need libcurl: none: .*; install the package "
                                       "libcurl4 or unset IRON_CURL_LIBRARY")

    def test_unknown_engine(self):
        self.refuse(r"engine other: There is no engine of this name \(404\): what happened",
                    url=self.server.url.replace("corpus", "other"))

    def test_pipes_are_refused(self):
        self.refused("push", "-", self.server.url, "--dtype", "u16", stdin=pack(TOKENS, "u16"),
                     says=["pipe", "save it to a file", "curl"])
        os.mkfifo(self.dir / "fifo")
        writer = os.open(self.dir / "fifo", os.O_RDWR)
        self.addCleanup(os.close, writer)
        result = self.iron("push", "fifo", self.server.url, "--dtype", "u16")
        self.assert_error_line(result, "regular files, which can be sent again")
        os.mkfifo(self.dir / "without a writer")
        result = self.iron("push", "without a writer", f"{self.server.url.partition('/v1/')[0]}/v1/runs/r")
        self.assert_error_line(result, "is not a ledger")

    def test_arguments(self):
        self.refused("push", says="0 arguments")
        self.refused("push", "tokens.bin", says="1 arguments")
        self.refused("push", "tokens.bin", "tokens.bin", self.server.url, says="3 arguments")
        self.refuse("--retries is 0", "--retries", 0)
        self.refuse("--retries is 1001", "--retries", 1001)
        self.refuse("--piece is 0", "--piece", 0)
        self.refused("push", "tokens.bin", self.server.url, says="dtype")
        self.refused("push", "none.bin", self.server.url, "--dtype", "u16", says="none.bin")

    def test_invalid_token_before_the_resume_position(self):
        self.server.feed(TOKENS[:8])
        self.write_tokens("bad.bin", TOKENS[:5] + [-1] * 5, "i32")
        self.refused("push", "bad.bin", self.server.url, "--dtype", "i32",
                     says=r"bad\.bin at byte 20: token at position 5 is -1")


class Secrets(PushTest):
    def secret(self, text=b"a-secret\n", mode=0o600):
        path = self.write("token", text)
        path.chmod(mode)
        return path

    def test_token_is_sent(self):
        server = self.serve(token="a-secret")
        self.push("--token-file", self.secret(), server=server)
        self.assertEqual(server.tokens, TOKENS)

    def test_missing_or_wrong_token_is_refused(self):
        server = self.serve(token="another")
        self.refuse(r"A token is needed \(401\)", url=server.url)
        result = self.refuse(r"A token is needed \(401\)", "--token-file", self.secret(),
                             url=server.url)
        self.assertNotIn("a-secret", result.message)

    def test_unsafe_token_files_are_refused(self):
        self.refuse(["others may read", "chmod 600"], "--token-file",
                    self.secret(mode=0o644))
        self.refuse("write only the token, on one line", "--token-file", self.secret(b"two words\n"))
        self.refuse("token file none", "--token-file", "none")


@unittest.skipUnless(shutil.which("openssl"), "openssl is not installed")
class Certificates(PushTest):
    def setUp(self):
        super().setUp()
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                        "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
                        self.dir / "key", "-out", self.dir / "cert"], check=True,
                       capture_output=True)
        self.server = self.serve(certificate=(self.dir / "cert", self.dir / "key"))

    def test_trusted_certificate(self):
        self.push("--ca", "cert")
        self.assertEqual(self.server.tokens, TOKENS)

    def test_untrusted_certificate_is_refused(self):
        self.refuse(re.compile("certificate|verif").pattern)
        self.refuse("ca|certificate", "--ca", "none")
        self.assertEqual(self.server.tokens, [])

    def test_lost_connections_with_tls(self):
        self.server.failures = ["lost", "half"]
        self.push("--ca", "cert")
        self.assertEqual(self.server.tokens, TOKENS)


if __name__ == "__main__":
    unittest.main()
