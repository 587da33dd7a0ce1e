# SPDX-License-Identifier: MIT
"""Feeding: bodies are fed completely or not at all, at the right position, once.

Bodies of every length and framing, ragged ones, invalid tokens, `at` right and wrong,
keys repeated with the same content and with another, before and after a restart.
"""

import base64
import hashlib
import struct
import threading

from api import ServerTest, report_of
from exposition import uploads
from harness import DTYPES, SANITIZED, iron, oracle, pack
from model import by_command, by_oracle, plan_of
from serving import wait_until
from wire import Wire, chunked, request

SMALL = oracle.Config(vocab=1000, nodes=6, batch=10)
LARGE_BYTES = 70_000  # too large to be queued (64 KiB)
BAD_NUMBERS = ("", "-1", "+1", "1.0", "1e3", "0x1", "01x", " 1", "1 ", "one",
               "18446744073709551616", "9" * 100, "%31%00", "٣")


class FeedTest(ServerTest):
    def setUp(self):
        super().setUp()
        self.instance = self.serve()
        self.client = self.api(self.instance)
        self.created(self.client, "e", **plan_of(SMALL))

    def assert_unchanged(self, before: dict):
        self.assertEqual(before, self.client.engine("e"))

    def refuses(self, kind, body, name="e", **how):
        before = self.client.engine("e")
        answer = self.client.feed(name, body, **how)
        self.assert_problem(answer, kind)
        self.assert_unchanged(before)
        return answer


class Bodies(FeedTest):
    def test_empty_body_changes_nothing(self):
        self.fed(self.client, "e", pack([1, 2, 3]))
        before = self.client.engine("e")
        for how in ({}, {"cuts": [5]}, {"dtype": "i64"}, {"at": 3}):
            answer = self.fed(self.client, "e", b"", **how)
            self.assertEqual(report_of(answer), report_of(before))
            self.assertEqual(answer["fed"], {"tokens": 0, "batches": 0})
            self.assert_unchanged(before)
        answer = self.raw(self.instance, "POST", "/v1/engines/e/feed", [("Content-Length", "0")])
        self.assertEqual(answer.status, 200)
        self.assert_unchanged(before)

    def test_each_length(self):
        bodies = [list(range(n)) for n in (1, 2, 3, 4, 5, 9, 10, 11, 19, 20, 21, 101)]
        for k, tokens in enumerate(bodies):
            answer = self.fed(self.client, "e", pack(tokens), cuts=[1 + k] if k % 2 else None)
            self.assertEqual(report_of(answer), by_oracle(SMALL, bodies[:k + 1]))
            self.assertEqual(answer["fed"], {"tokens": len(tokens),
                                             "batches": -(-len(tokens) // 10)})
            self.assertEqual(report_of(answer), report_of(self.client.engine("e")))
        self.assertEqual(self.client.engine("e")["feeds"], len(bodies))

    def test_sizes_around_the_small_body_limit(self):
        """64 KiB, one token less and more, with and without a length."""
        bodies = []
        for count in (16383, 16384, 16385):
            for cuts in (None, [65536], [65535], [1021]):
                tokens = oracle.gen(len(bodies), count, 2**32)
                bodies.append(tokens)
                answer = self.fed(self.client, "e", pack(tokens), cuts=cuts)
        self.assertEqual(report_of(answer), by_oracle(SMALL, bodies))

    def test_ragged_bodies(self):
        self.fed(self.client, "e", pack([7]))
        for dtype, letter in DTYPES.items():
            width = struct.calcsize(letter)
            for count in {1, width - 1, width + 1, LARGE_BYTES * width - 1} - {0}:
                if count % width == 0:
                    continue
                for cuts in (None, [3], [65536]):
                    with self.subTest(dtype=dtype, bytes=count, cuts=cuts):
                        if cuts == [3] and count > 100:
                            continue
                        self.refuses("ragged-body", bytes(count), dtype=dtype, cuts=cuts)

    def test_invalid_tokens_are_refused(self):
        bad = {"i32": (-1, -2**31), "i64": (-1, 2**32, 2**62, -2**63)}
        for dtype, values in bad.items():
            for value in values:
                for count, cuts in ((1, None), (100, [7]), (40_000, None), (40_000, [4000])):
                    with self.subTest(dtype=dtype, value=value, count=count):
                        body = pack([5] * (count - 1) + [value], dtype)
                        self.refuses("bad-token-value", body, dtype=dtype, cuts=cuts)
        edge = self.fed(self.client, "e", pack([0, 2**32 - 1], "i64"), dtype="i64")
        self.assertEqual(edge["tokens"], 2)

    def test_invalid_dtypes_are_refused(self):
        for dtype in ("", "u64", "U32", "float", "u32%20", "u8,u8", "%00"):
            with self.subTest(dtype=dtype):
                self.refuses("bad-query", pack([1]), dtype=dtype)

    def test_invalid_queries_are_refused(self):
        for query in ("x=1", "dtype=u8&dtype=u8", "at=0&at=0", "dtype", "at", "AT=0", "&&x", "=1",
                      "at=0&x=", "dtype=u32;at=0", "at=%", "at=%4", "at=%zz", "%00=1", "at=0%00"):
            with self.subTest(query=query):
                before = self.client.engine("e")
                answer = self.raw(self.instance, "POST", f"/v1/engines/e/feed?{query}",
                                  [("Content-Length", "4")], pack([1]))
                self.assertEqual(answer.status, 400, str(answer))
                self.assert_unchanged(before)

    def test_content_types(self):
        target = "/v1/engines/e/feed"
        for wrong in ("application/json", "text/plain", "multipart/form-data; boundary=x"):
            answer = self.client.call("POST", target, pack([1]), {"Content-Type": wrong})
            self.assert_problem(answer, "unsupported-type")
        for right in ("application/octet-stream", "Application/Octet-Stream",
                      "application/x-www-form-urlencoded"):
            answer = self.client.call("POST", target, pack([1]), {"Content-Type": right})
            self.assertEqual(answer.status, 200, str(answer))
        answer = self.raw(self.instance, "POST", target, [("Content-Length", "4")], pack([1]))
        self.assertEqual(answer.json["tokens"], 4)

    def test_sixty_four_mebibytes(self):
        config = oracle.Config(nodes=100, batch=786432 if not SANITIZED else 100_000)
        self.created(self.client, "big", **plan_of(config))
        path = self.dir / "big.bin"
        count = (2 if SANITIZED else 16) << 20
        self.command_gen(path, count)
        body = path.read_bytes()
        self.fed(self.client, "big", body, key="whole")
        half = self.fed(self.client, "big", body, cuts=[1_000_003])
        expected = by_command(config, [(path, "u32")] * 2, self.dir)
        self.assertEqual(report_of(half), report_of(expected))
        again = self.fed(self.client, "big", body, key="whole")
        self.assertTrue(again["repeated"])
        self.assertEqual(report_of(self.client.engine("big")), report_of(expected))

    def command_gen(self, path, count):
        done = iron("gen", "--seed", 1, "--count", count, "--limit", 50257, "-o", path)
        self.assertEqual(done.code, 0, str(done))


class At(FeedTest):
    def test_correct_position(self):
        position = 0
        for count in (1, 10, 20_000, 3):
            answer = self.fed(self.client, "e", pack([2] * count), at=position)
            position += count
            self.assertEqual(answer["tokens"], position)

    def test_wrong_position_is_refused(self):
        self.fed(self.client, "e", pack([1] * 7))
        for at in (0, 6, 8, 2**32 + 7, 2**63 + 7, 2**64 - 1):
            for body in (b"", pack([1]), bytes(LARGE_BYTES)):
                for cuts in (None, [999]):
                    with self.subTest(at=at, bytes=len(body), cuts=cuts):
                        answer = self.refuses("position-mismatch", body, at=at, cuts=cuts)
                        self.assertEqual(answer.json["position"], 7)

    def test_wrong_position_is_refused_before_a_large_body(self):
        with Wire(self.instance) as wire:
            wire.send(request("POST", "/v1/engines/e/feed?at=5", self.instance.host,
                              [("Content-Length", str(1 << 30)), ("Expect", "100-continue")]))
            answer = wire.answer()
        self.assertEqual((answer.status, answer.json["position"]), (409, 0))

    def test_position_must_be_a_number(self):
        for at in BAD_NUMBERS:
            with self.subTest(at=at):
                answer = self.raw(self.instance, "POST",
                                  "/v1/engines/e/feed?at=" + at.replace(" ", "%20").encode()
                                  .decode("latin-1"), [("Content-Length", "4")], pack([1]))
                self.assertEqual(answer.status, 400, str(answer))
        self.assertEqual(self.client.engine("e")["tokens"], 0)


class Keys(FeedTest):
    def assert_repeated(self, first: dict, body, **how):
        before = self.client.engine("e")
        answer = self.client.feed("e", body, **how)
        self.assertEqual((answer.status, answer.get("idempotency-replayed")), (200, "true"),
                         str(answer))
        self.assertEqual(answer.json, dict(first, repeated=True))
        self.assert_unchanged(before)

    def test_repeated_key_gets_the_first_response(self):
        for body, cuts in ((pack([1, 2, 3]), None), (bytes(LARGE_BYTES), None),
                           (bytes(LARGE_BYTES), [5000])):
            with self.subTest(bytes=len(body), cuts=cuts):
                key = f"key-{len(body)}-{cuts}"
                answer = self.client.feed("e", body, key=key, cuts=cuts)
                self.assertEqual((answer.status, answer.get("idempotency-replayed")), (200, None))
                self.assertFalse(answer.json["repeated"])
                self.assert_repeated(answer.json, body, key=key)
                self.fed(self.client, "e", pack([4]))
                for again in (None, [1009]):
                    self.assert_repeated(answer.json, body, key=key, cuts=again)

    def test_key_with_different_content_is_refused(self):
        first = {"small": pack([1, 2, 3]), "large": bytes(LARGE_BYTES)}
        for name, body in first.items():
            self.fed(self.client, "e", body, key=name)
        for name, body in first.items():
            changed = body[:-4] + pack([77])
            for other in (changed, body + pack([0]), body[:-4], first["large" if name == "small"
                                                                     else "small"]):
                for cuts in (None, [4096]):
                    with self.subTest(key=name, bytes=len(other), cuts=cuts):
                        self.refuses("key-reused", other, key=name, cuts=cuts)

    def test_key_is_checked_before_position(self):
        for body in (pack([1, 2]), bytes(LARGE_BYTES)):
            at = self.client.engine("e")["tokens"]
            first = self.fed(self.client, "e", body, key=f"k{len(body)}", at=at)
            self.fed(self.client, "e", pack([5]))
            self.assert_repeated(first, body, key=f"k{len(body)}", at=at)
            self.assert_repeated(first, body, key=f"k{len(body)}", at=2**40)
            self.refuses("key-reused", body[:-4] + pack([9]), key=f"k{len(body)}", at=2**40)

    def test_refused_feed_does_not_use_its_key(self):
        self.refuses("position-mismatch", pack([1]), key="k", at=9)
        self.refuses("ragged-body", b"123", key="k")
        self.refuses("bad-token-value", pack([-1], "i32"), key="k", dtype="i32")
        self.assertFalse(self.fed(self.client, "e", pack([1]), key="k")["repeated"])

    def test_keys_belong_to_an_engine(self):
        self.created(self.client, "f", nodes=2)
        self.fed(self.client, "e", pack([1]), key="k")
        self.assertFalse(self.fed(self.client, "f", pack([2]), key="k")["repeated"])

    def test_keys_survive_restarts(self):
        bodies = [pack([1, 2, 3]), bytes(LARGE_BYTES), pack([4])]
        first = [self.fed(self.client, "e", body, key=f"k{k}") for k, body in enumerate(bodies)]
        for way in (self.instance.stop, self.instance.kill):
            way()
            self.instance.start()
            for k, body in enumerate(bodies):
                self.assert_repeated(first[k], body, key=f"k{k}")
                self.refuses("key-reused", body + pack([1]), key=f"k{k}")

    def test_valid_and_invalid_keys(self):
        for key in ("x", "x" * 255, '"quoted"', "a,b;c=d", "!~"):
            with self.subTest(good=key):
                self.assertFalse(self.fed(self.client, "e", pack([1]), key=key)["repeated"])
        target = "/v1/engines/e/feed"
        for key in ("", "x" * 256, "a b", "ä", "a\tb", "x" * 4000, '""', '"a', '"a"b', '"a\\b"',
                    f'"{"x" * 256}"', '"ä"', '"a\\'):
            with self.subTest(bad=key[:20]):
                before = self.client.engine("e")
                answer = self.raw(self.instance, "POST", target,
                                  [("Content-Length", "4"), ("Idempotency-Key", key)], pack([1]))
                self.assertEqual(answer.status, 400, str(answer))
                self.assert_unchanged(before)
        twice = [("Content-Length", "4"), ("Idempotency-Key", "p"), ("Idempotency-Key", "q")]
        self.assertEqual(self.raw(self.instance, "POST", target, twice, pack([1])).status, 400)

    def test_keys_are_strings(self):
        """In quotes and without, with escapes, blanks and parameters (RFC 8941)."""
        for k, keys in enumerate((("one", '"one"', '"one";x=1', '"one" ; x'),
                                  ('"two words"', '"two words";a'), ('"a\\"b\\\\c"', 'a"b\\c'))):
            first = self.fed(self.client, "e", pack([k]), key=keys[0])
            for key in keys[1:]:
                if key == '"one" ; x':
                    self.assert_problem(self.client.feed("e", pack([k]), key=key), "bad-key")
                else:
                    self.assert_repeated(first, pack([k]), key=key)

    def test_problems_of_keys_have_a_link(self):
        self.fed(self.client, "e", pack([1]), key="k")
        for answer in (self.refuses("key-reused", pack([2]), key="k"),
                       self.refuses("bad-key", pack([2]), key='"')):
            self.assertRegex(answer.get("link"), '</openapi.json>; rel="describedby"')

    def test_large_bodies_with_one_key_at_once(self):
        """The second waits for the first and gets its response, not 409."""
        body, answers = bytes(2 * LARGE_BYTES), []
        first = Wire(self.instance)
        first.send(request("POST", "/v1/engines/e/feed", self.instance.host,
                           [("Content-Length", str(len(body))), ("Idempotency-Key", "k")],
                           body[:LARGE_BYTES]))
        wait_until("the first upload", lambda: uploads(self.client) == 1)
        others = [threading.Thread(target=lambda: answers.append(
            self.api(self.instance).feed("e", body, key='"k"'))) for _ in range(3)]
        for other in others:
            other.start()
        wait_until("the others", lambda: b"\niron_requests_in_flight 5\n" in
                   self.client.get("/metrics").body)
        first.send(body[LARGE_BYTES:])
        answer = first.answer()
        self.assertEqual((answer.status, answer.json["repeated"]), (200, False))
        for other in others:
            other.join()
        first.close()
        self.assertEqual([(a.status, a.json["repeated"]) for a in answers], [(200, True)] * 3)
        self.assertEqual({a.json["seal"] for a in answers}, {answer.json["seal"]})
        self.assertEqual(self.client.engine("e")["feeds"], 1)

    def test_key_is_free_after_an_upload_breaks_off(self):
        body = bytes(2 * LARGE_BYTES)
        with Wire(self.instance) as first:
            first.send(request("POST", "/v1/engines/e/feed", self.instance.host,
                               [("Content-Length", str(len(body))), ("Idempotency-Key", "k")],
                               body[:LARGE_BYTES]))
            wait_until("the first upload", lambda: uploads(self.client) == 1)
        self.assertFalse(self.fed(self.client, "e", body, key="k")["repeated"])

    def test_empty_bodies_with_keys(self):
        first = self.fed(self.client, "e", b"", key="empty")
        again = self.fed(self.client, "e", b"", key="empty")
        self.assertEqual((first["tokens"], first["repeated"], again["repeated"]), (0, False, True))
        self.assertEqual(report_of(first), report_of(again))
        self.assertEqual(report_of(first), report_of(self.client.engine("e")))
        self.refuses("key-reused", pack([1]), key="empty")


class Digests(FeedTest):
    """Content-Digest and Repr-Digest (RFC 9530)."""

    @staticmethod
    def digest(body, algorithm="sha256"):
        return base64.b64encode(hashlib.new(algorithm, body).digest()).decode()

    def feed(self, body, *headers, target="/v1/engines/e/feed", is_chunked=False):
        framing = ("Transfer-Encoding", "chunked") if is_chunked else ("Content-Length",
                                                                       str(len(body)))
        return self.raw(self.instance, "POST", target, [framing, *headers],
                        chunked(body, [1000]) if is_chunked else body)

    def test_right_digests(self):
        for body in (b"", pack([1]), bytes(63 * 4), bytes(LARGE_BYTES), bytes(1_000_000)):
            right = self.digest(body)
            for value in (f"sha-256=:{right}:", f"sha-512=:AAAA:, sha-256=:{right}:",
                          f"sha-256=:{right}:;a=1 , md5=:x:", "sha-512=:AAAA:", "unixsum=30637",
                          f"sha-256=:{right}:,sha-256=:{right}:"):
                for name in ("Content-Digest", "repr-digest"):
                    with self.subTest(bytes=len(body), value=value[:30], name=name):
                        answer = self.feed(body, (name, value), is_chunked=name == "repr-digest")
                        self.assertEqual(answer.status, 200, str(answer))

    def test_wrong_digests_feed_nothing(self):
        for body in (b"", pack([1]), bytes(LARGE_BYTES)):
            right = self.digest(body)
            wrong = self.digest(body + b"x")
            for values in ([f"sha-256=:{wrong}:"], ["sha-256=:AAAA:"], ["sha-256=1"],
                           ["sha-256=::"], [f"sha-256=:{right[:-2]}*=:"], [f"sha-256={right}"],
                           [f"sha-512=:AAAA:,sha-256=:{wrong}:"],
                           [f"sha-256=:{right}:", f"sha-256=:{wrong}:"]):
                for is_chunked in (False, True):
                    with self.subTest(bytes=len(body), values=values, is_chunked=is_chunked):
                        before = self.client.engine("e")
                        answer = self.feed(body, ("Idempotency-Key", "k"),
                                           *(("Content-Digest", v) for v in values),
                                           is_chunked=is_chunked)
                        self.assertEqual(answer.status, 400)
                        self.assert_problem(answer, "bad-digest", "digest|SHA-256")
                        self.assert_unchanged(before)
        self.assertFalse(self.fed(self.client, "e", pack([1]), key="k")["repeated"])

    def test_documents(self):
        body = b'{"name": "other", "nodes": 2}'
        wrong = ("Content-Digest", f"sha-256=:{self.digest(b'x')}:")
        self.assert_problem(self.feed(body, wrong, target="/v1/engines"), "bad-digest")
        self.assertEqual(self.client.get("/v1/engines/other").status, 404)
        right = ("Content-Digest", f"sha-256=:{self.digest(body)}:")
        self.assertEqual(self.feed(body, right, target="/v1/engines").status, 201)
