# SPDX-License-Identifier: MIT
"""Creating, listing and deleting engines, with all options, invalid requests and limits."""

import json
import random
import string

from api import ServerTest, report_of
from harness import SEED, oracle, pack

EMPTY_SEAL = oracle.seal([])
INVALID_DOCUMENTS = {  # the document's text, and the expected problem kinds
    "nothing": (b"", "bad-json"),
    "no JSON": (b"hello", "bad-json"),
    "half a document": (b'{"name": "x"', "bad-json"),
    "two documents": (b'{"name": "x"} {}', "bad-json"),
    "an array": (b"[]", "bad-json"),
    "a string": (b'"x"', "bad-json"),
    "null": (b"null", "bad-json"),
    "no name": (b"{}", "bad-json bad-name"),
    "a name that is a number": (b'{"name": 7}', "bad-json bad-name"),
    "a name twice": (b'{"name": "x", "name": "y"}', "bad-json"),
    "a member twice": (b'{"name": "x", "nodes": 3, "nodes": 3}', "bad-json"),
    "an unknown member": (b'{"name": "x", "node": 3}', "bad-json bad-configuration"),
    "a trailing comma": (b'{"name": "x",}', "bad-json"),
    "a comment": (b'{"name": "x" /* y */}', "bad-json"),
    "not UTF-8": (b'{"name": "x", "mode": "\xff\xfe"}', "bad-json bad-configuration"),
    "an overlong zero": (b'{"name": "x\xc0\x80"}', "bad-json bad-name"),
    "half a surrogate": (b'{"name": "\\ud800"}', "bad-json bad-name"),
    "a zero byte": (b'{"name": "x\\u0000y"}', "bad-json bad-name"),
    "a raw zero byte": (b'{"name": "x\0y"}', "bad-json bad-name"),
    "a control character": (b'{"name": "x\ny"}', "bad-json bad-name"),
    "a deep nest": (b'{"name": ' + b"[" * 100000 + b"]" * 100000 + b"}", "bad-json bad-name"),
}
BAD_VALUES = {  # invalid JSON texts of the member
    "nodes": ("0", "-1", "1048577", "1.5", "1e400", "true", "null", '"12"', "[]", "{}", "01", "+1",
              "0x10", "1e", ".5", "NaN", "Infinity", "18446744073709551617", "9" * 400),
    "vocab": ("0", "1", "-2", "2147483649", "2.5", '"2"', "null", "18446744073709551618"),
    "batch": ("0", "-16", "0.5", '"16"', "null", "[16]", "4611686018427387905", "9" * 30),
    "positions": ('"streams"', '"Stream"', '""', "0", "null", "true", '["stream"]'),
    "lattice": ("[]", "[7]", "[7, 7]", "[15, 7]", "[0, 7]", "[7, 65536]", "[7, 15.5]", '["7", 15]',
                '"7,15"', "7", "null", "[7, null]", str(list(range(1, 66))), "[-7, 7]"),
    "mode": ('"fastest"', '""', "0", "null", '"' + "x" * 48 + '"', '"' + "x" * 9999 + '"',
             '"tiled\\u0000"'),
    "backend": ('"tpu"', '""', "0", "null", '"CPU"'),
    "device": ("-1", "1.5", '"0"', "null", "4294967296", "7"),
}
BAD_NAMES = ("", ".", "..", ".x", "-x", "_x", "a b", "a/b", "a%2fb", "a\\b", "ä", "a\n", "x" * 65,
             "a;b", "a?b", "a#b", "a'b", 'a"b', "<a>", "a\u0000b", "\u202ea", "a\u2028")
GOOD_NAMES = ("a", "0", "A.b_c-d", "x" * 64, "con", "null", "v1", "feed", "a..b", "9-", "a.",
              "CASE", "case")


class Creation(ServerTest):
    def setUp(self):
        super().setUp()
        self.instance = self.serve()
        self.client = self.api(self.instance)

    def names(self) -> list:
        return [engine["name"] for engine in self.client.get("/v1/engines").json["engines"]]

    def post(self, text: bytes, content_type="application/json"):
        return self.client.call("POST", "/v1/engines", text, {"Content-Type": content_type})

    def test_pages(self):
        """All pages together are the whole list, also if engines come and go meanwhile."""
        names = ["a", "b", "c.1", "d", "e"]
        for name in reversed(names):
            self.created(self.client, name, nodes=1)
        whole = self.client.get("/v1/engines").json
        self.assertEqual(([e["name"] for e in whole["engines"]], "next" in whole), (names, False))
        for limit in (1, 2, 3, 5, 9):
            found, target, pages = [], f"/v1/engines?limit={limit}", 0
            while target:
                page = self.client.get(target).json
                self.assertLessEqual(len(page["engines"]), limit)
                found += page["engines"]
                target, pages = page.get("next"), pages + 1
            self.assertEqual(found, whole["engines"])
            self.assertEqual(pages, max(1, -(-len(names) // limit)))
        page = self.client.get("/v1/engines?limit=2").json
        self.assertEqual(self.client.call("DELETE", "/v1/engines/b").status, 204)
        rest = self.client.get(page["next"]).json
        self.assertEqual([e["name"] for e in rest["engines"]], ["c.1", "d"])
        self.assertEqual(self.client.get("/v1/engines?after=e").json, {"engines": []})
        for query in ("limit=0", "limit=x", "after=", "after=.x", "since=1"):
            self.assert_problem(self.client.get(f"/v1/engines?{query}"), "bad-query")

    def test_defaults(self):
        answer = self.client.create("plain")
        self.assertEqual((answer.status, answer.get("location")), (201, "/v1/engines/plain"))
        engine = answer.json
        self.assertEqual(
            (engine["nodes"], engine["vocab"], engine["batch"], engine["positions"],
             engine["lattice"], engine["backend"]),
            (4096, 50257, 786432, "stream", list(oracle.DEFAULT_LATTICE), "cpu"))
        self.assertNotEqual(engine["mode"], "auto")
        fresh = oracle.Engine(oracle.Config()).report()
        self.assertEqual(report_of(engine), dict(fresh, seal=EMPTY_SEAL))
        self.assertEqual(engine, self.client.engine("plain"))

    def test_every_key(self):
        plan = {"nodes": 17, "vocab": 1000, "batch": 99, "positions": "batch",
                "lattice": [1, 2, 300], "mode": "scalar", "backend": "cpu", "device": 0}
        engine = self.created(self.client, "full", **plan)
        self.assertEqual(plan, {key: engine[key] for key in plan})
        config = oracle.Config(1000, 17, 99, "batch", (1, 2, 300))
        tokens = oracle.gen(3, 1234, 5000)
        expected = oracle.Engine(config).feed(tokens).report()
        self.assertEqual(report_of(self.fed(self.client, "full", pack(tokens))),
                         dict(expected, seal=oracle.seal(tokens)))

    def test_limits_of_each_value_are_accepted(self):
        for k, plan in enumerate((
                {"nodes": 1}, {"nodes": 2**20}, {"vocab": 2}, {"vocab": 2**31}, {"batch": 1},
                {"batch": 2**53 - 1, "vocab": 2}, {"batch": 2**31, "vocab": 2**31},
                {"lattice": [1, 65535]}, {"lattice": list(range(1, 65))},
                {"backend": "auto", "mode": "auto"})):
            with self.subTest(plan=plan):
                engine = self.created(self.client, f"edge-{k}", **plan)
                for key, value in plan.items():
                    if value != "auto":
                        self.assertEqual(engine[key], value)

    def test_batch_times_vocab_is_limited(self):
        for batch, vocab in ((2**61 + 1, 2), (2**31 + 1, 2**31), (2**62, 2)):
            answer = self.client.create("large", batch=batch, vocab=vocab)
            self.assertEqual(answer.status, 400, str(answer))
        self.assertEqual(self.names(), [])

    def test_invalid_documents_are_refused(self):
        for name, (text, kinds) in INVALID_DOCUMENTS.items():
            with self.subTest(mistake=name):
                answer = self.post(text)
                self.assertEqual(answer.status, 400, str(answer))
                self.assertIn(answer.json["type"].rsplit(":")[-1], kinds.split())
        self.assertEqual(self.names(), [])

    def test_invalid_values_are_refused(self):
        for key, texts in BAD_VALUES.items():
            for text in texts:
                with self.subTest(key=key, value=text[:40]):
                    document = '{"name": "x", "%s": %s}' % (key, text)
                    answer = self.post(document.encode())
                    self.assertIn(answer.status, (400, 501) if key == "device" else (400,),
                                  str(answer))
        self.assertEqual(self.names(), [])

    def test_names(self):
        for name in BAD_NAMES:
            with self.subTest(bad=name):
                answer = self.client.create(name)
                self.assertEqual(answer.status, 400, str(answer))
        for name in GOOD_NAMES:
            with self.subTest(good=name):
                self.assertEqual(self.created(self.client, name, nodes=1)["name"], name)
                self.assertEqual(self.client.engine(name)["name"], name)
        self.assertEqual(self.names(), sorted(GOOD_NAMES))

    def test_duplicate_name_is_refused(self):
        first = self.created(self.client, "one", nodes=3)
        self.assert_problem(self.client.create("one", nodes=4), "engine-exists")
        self.assertEqual(self.client.engine("one"), first)

    def test_missing_backend_is_refused(self):
        for backend in ("cuda", "opencl"):
            self.assert_problem(self.client.create("gpu", backend=backend), "backend-unavailable")
        self.assert_problem(self.client.create("gpu", backend="cpu", mode="tiled"),
                            "bad-configuration")
        self.assertEqual(self.names(), [])

    def test_content_types(self):
        text = b'{"name": "typed"}'
        for wrong in ("text/plain", "application/octet-stream", "application/jsonx", "json", "*/*",
                      "multipart/form-data; boundary=x", "text/json", ""):
            with self.subTest(type=wrong):
                self.assert_problem(self.post(text, wrong), "unsupported-type")
        for k, right in enumerate(("application/json", "application/json; charset=utf-8",
                                   "APPLICATION/JSON;charset=UTF-8",
                                   "application/x-www-form-urlencoded")):
            with self.subTest(type=right):
                answer = self.post(b'{"name": "typed-%d"}' % k, right)
                self.assertEqual(answer.status, 201, str(answer))

    def test_document_too_long(self):
        long = b'{"name": "x"' + b" " * (1 << 20) + b"}"
        self.assert_problem(self.post(long), "too-large")
        chunks = [long[k:k + 9999] for k in range(0, len(long), 9999)]
        answer = self.client.call("POST", "/v1/engines", iter(chunks),
                                  {"Content-Type": "application/json"}, is_chunked=True)
        self.assert_problem(answer, "too-large")
        self.assertEqual(self.names(), [])

    def test_random_documents(self):
        """Random documents: 201 if valid, otherwise 400 or 409, and never a crash."""
        rng = random.Random(f"{SEED} documents")
        for _ in range(300):
            text = json.dumps({"name": "r", "nodes": 3, "lattice": [1, 2, 3], "mode": "auto"})
            for _ in range(rng.randint(1, 4)):
                at = rng.randrange(len(text))
                text = text[:at] + rng.choice(string.printable + "é\0") + text[at + 1:]
            answer = self.post(text.encode())
            self.assertIn(answer.status, (201, 400, 409), (text, str(answer)))


class Lifecycle(ServerTest):
    def setUp(self):
        super().setUp()
        self.instance = self.serve("--max-engines", 5)
        self.client = self.api(self.instance)

    def test_list_in_order(self):
        self.assertEqual(self.client.get("/v1/engines").json, {"engines": []})
        for name in ("b", "a", "C", "10", "9"):
            self.created(self.client, name, nodes=2)
        engines = self.client.get("/v1/engines").json["engines"]
        self.assertEqual([e["name"] for e in engines], ["10", "9", "C", "a", "b"])
        self.assertEqual(engines, [self.client.engine(e["name"]) for e in engines])

    def test_engine_limit(self):
        for k in range(5):
            self.created(self.client, f"e{k}", nodes=1)
        refusal = self.client.create("e5", nodes=1)
        self.assert_problem(refusal, "too-many-engines")
        self.assertIsNone(refusal.get("Retry-After"))
        self.assertEqual(self.client.call("DELETE", "/v1/engines/e2").status, 204)
        self.created(self.client, "e5", nodes=1)

    def test_deleted_engine_frees_its_name(self):
        self.created(self.client, "once", nodes=4)
        self.fed(self.client, "once", pack([1, 2, 3]), key="k")
        answer = self.client.call("DELETE", "/v1/engines/once")
        self.assertEqual((answer.status, answer.body), (204, b""))
        for method, rest in (("GET", ""), ("DELETE", ""), ("GET", "/state"), ("GET", "/batches"),
                             ("GET", "/events"), ("POST", "/feed")):
            found = self.client.call(method, f"/v1/engines/once{rest}")
            self.assert_problem(found, "no-such-engine")
        fresh = self.created(self.client, "once", nodes=4)
        self.assertEqual((fresh["tokens"], fresh["feeds"]), (0, 0))
        other = self.fed(self.client, "once", pack([9]), key="k")  # keys were deleted too
        self.assertEqual((other["tokens"], other["repeated"]), (1, False))
        self.assertEqual(len(self.client.get("/v1/engines/once/batches").json["batches"]), 1)

    def test_engines_survive_a_restart(self):
        self.created(self.client, "kept", nodes=4, lattice=[5, 6, 7], positions="batch", batch=2)
        self.created(self.client, "gone", nodes=4)
        self.fed(self.client, "kept", pack([1, 2, 3]))
        self.client.call("DELETE", "/v1/engines/gone")
        before = [self.client.get(f"/v1/engines{p}").json for p in ("", "/kept", "/kept/batches")]
        for way in (self.instance.stop, self.instance.kill):
            way()
            self.instance.start()
            self.assertEqual(self.instance.engines, 1)
            after = [self.client.get(f"/v1/engines{p}").json
                     for p in ("", "/kept", "/kept/batches")]
            self.assertEqual(before, after)
