# SPDX-License-Identifier: MIT
"""Reading an engine: its state in three formats, its batches in pages, its events."""

import ast
import random
import struct

import contract
from api import ServerTest, report_of
from events import Events
from harness import SEED, floats32, iron, oracle, pack, parse_json
from model import batches_by_oracle, plan_of
from serving import wait_until

CONFIG = oracle.Config(vocab=999, nodes=77, batch=13, lattice=(2, 30, 400))
ARRAYS = {"xor_accumulators": ("<u4", "I"), "potentials": ("<f4", "f"), "activations": ("<f4", "f")}


def npy_parts(data: bytes):
    """The header and the elements of a NumPy file, read by its definition."""
    assert data[:6] == b"\x93NUMPY", data[:16]
    version = data[6], data[7]
    assert version in ((1, 0), (2, 0)), version
    width = 2 if version == (1, 0) else 4
    length = int.from_bytes(data[8:8 + width], "little")
    start = 8 + width + length
    text = data[8 + width:start].decode("ascii")
    assert start % 64 == 0 and text.endswith("\n"), "the header is not padded as NumPy does"
    header = ast.literal_eval(text)
    assert set(header) == {"descr", "fortran_order", "shape"}, header
    return header, data[start:]


class LookTest(ServerTest):
    def setUp(self):
        super().setUp()
        self.instance = self.serve()
        self.client = self.api(self.instance)
        self.created(self.client, "e", **plan_of(CONFIG))
        self.model, self.bodies = oracle.Engine(CONFIG), []
        rng = random.Random(f"{SEED} looking")
        for count in (5, 40, 1, 13, 26, 100):
            tokens = [rng.randrange(2000) for _ in range(count)]
            self.fed(self.client, "e", pack(tokens))
            self.model.feed(tokens)
            self.bodies.append(tokens)

    def get(self, rest="", status=200, **headers):
        answer = self.client.get(f"/v1/engines/e{rest}", **headers)
        self.assertEqual(answer.status, status, str(answer))
        return answer


class State(LookTest):
    def test_json(self):
        for answer in (self.get("/state"), self.get("/state?format=json"),
                       self.get("/state", Accept="application/json"),
                       self.get("/state", Accept="text/html, application/*;q=0.5"),
                       self.get("/state", Accept="*/*")):
            self.assertEqual(answer.type, "application/json")
            state = answer.json
            self.assertEqual(state["xor_accumulators"], self.model.xor_accumulators)
            self.assertEqual(floats32(state["potentials"]), self.model.potentials)
            self.assertEqual(floats32(state["activations"]), self.model.activations)
            self.assertEqual({k: v for k, v in state.items() if k not in ARRAYS},
                             self.client.engine("e"))

    def test_command_reads_a_saved_state(self):
        for answer in (self.get("/state?format=state"),
                       self.get("/state", Accept="application/octet-stream")):
            self.assertEqual(answer.type, "application/octet-stream")
            path = self.write("e.state", answer.body)
            state = self.command("state", path)
            self.assertEqual(state["xor_accumulators"], self.model.xor_accumulators)
            self.assertEqual(floats32(state["potentials"]), self.model.potentials)
            self.assertEqual(floats32(state["activations"]), self.model.activations)
            self.assertEqual({k: state[k] for k in ("tokens", "batches", "xor", "sum", "state")},
                             self.model.report())

    def test_command_resumes_a_saved_state(self):
        path = self.write("e.state", self.get("/state?format=state").body)
        more = [3, 1, 4, 1, 5]
        done = iron("feed", "-", "--dtype", "u32", "--resume", path, "--seal", "--json",
                    "--backend", "cpu", stdin=pack(more))
        self.assertEqual(done.code, 0, str(done))
        answer = self.fed(self.client, "e", pack(more))
        self.assertEqual(report_of(answer), report_of(parse_json(done.out)))

    def test_npy(self):
        header, data = npy_parts(self.get("/state?format=npy").body)
        self.assertEqual(header["descr"], [(n, d) for n, (d, _) in ARRAYS.items()])
        self.assertEqual((header["shape"], header["fortran_order"]), ((77,), False))
        rows = list(struct.iter_unpack("<Iff", data))
        for k, name in enumerate(ARRAYS):
            self.assertEqual([row[k] for row in rows], getattr(self.model, name), name)

    def test_one_array(self):
        for name, (descr, letter) in ARRAYS.items():
            header, data = npy_parts(self.get(f"/state?format=npy&array={name}").body)
            self.assertEqual((header["descr"], header["shape"], header["fortran_order"]),
                             (descr, (77,), False))
            self.assertEqual(list(struct.unpack(f"<77{letter}", data)), getattr(self.model, name))

    def test_unsupported_formats_are_refused(self):
        for accept in ("text/html", "image/png, text/*", "application/json;q=0",
                       "application/xml"):
            with self.subTest(accept=accept):
                self.assert_problem(self.get("/state", 406, Accept=accept), "not-acceptable")
        for query in ("format=csv", "format=", "format=npy&array=nodes", "array=potentials&x=1",
                      "format=json&format=json"):
            with self.subTest(query=query):
                self.assert_problem(self.get(f"/state?{query}", 400), "bad-query")


class Batches(LookTest):
    def setUp(self):
        super().setUp()
        self.rows = batches_by_oracle(CONFIG, self.bodies)

    def test_all(self):
        page = self.get("/batches").json
        self.assertEqual(page, {"batches": self.rows, "first": 0, "next": len(self.rows),
                                "total": len(self.rows)})

    def test_pages(self):
        total = len(self.rows)
        for since in (0, 1, 7, total - 1, total, total + 1, 2**64 - 1):
            for limit in (1, 2, 3, total, 10000):
                with self.subTest(since=since, limit=limit):
                    page = self.get(f"/batches?since={since}&limit={limit}").json
                    rows = self.rows[since:since + limit]
                    self.assertEqual((page["batches"], page["total"]), (rows, total))
                    if since <= total:
                        self.assertEqual(page["next"], since + len(rows))

    def test_invalid_numbers_are_refused(self):
        for query in ("since=", "since=-1", "since=x", "since=1.5", "since=18446744073709551616",
                      "limit=0", "limit=10001", "limit=-1", "limit=", "limit=1e3",
                      "limit=5&limit=5", "from=0"):
            with self.subTest(query=query):
                self.assert_problem(self.get(f"/batches?{query}", 400), "bad-query")

    def test_many(self):
        """More than a page, and more batches than a snapshot interval, in one body."""
        config = oracle.Config(vocab=7, nodes=1, batch=1)
        self.created(self.client, "many", **plan_of(config))
        tokens = oracle.gen(5, 25_000, 2**32)
        self.fed(self.client, "many", pack(tokens))
        rows, since = [], 0
        while True:
            page = self.client.get(f"/v1/engines/many/batches?since={since}&limit=9999").json
            rows += page["batches"]
            since = page["next"]
            if since == page["total"]:
                break
        self.assertEqual(rows, batches_by_oracle(config, [tokens]))


    def test_history_is_kept_as_long_as_told(self):
        """Old batches and keys are gone; the rest, and a proof of all of it, is as before."""
        self.instance.set_options("--keep-batches", 1000, "--keep-keys", 600)
        self.instance.restart()
        limits = self.client.get("/v1/info").json["limits"]
        self.assertEqual((limits["keep_batches"], limits["keep_keys"]), (1000, 600))
        config = oracle.Config(vocab=7, nodes=1, batch=1)
        self.created(self.client, "long", **plan_of(config))
        bodies = [oracle.gen(5, 70_000, 2**32), oracle.gen(6, 900, 2**32), oracle.gen(7, 9, 2**32)]
        for k, tokens in enumerate(bodies):
            self.fed(self.client, "long", pack(tokens), key=f"key-{k}")
        self.instance.restart()  # with a snapshot
        self.assertEqual(self.page("long")["first"], 0)  # the keys are too young
        self.instance.set_options("--keep-batches", 1000)
        self.instance.restart()
        self.fed(self.client, "long", pack(oracle.gen(8, 100, 2**32)))
        self.instance.restart()
        wait_until("fewer batches", lambda: self.page("long")["first"] == 70_000)
        page = self.page("long")
        stream = [token for tokens in bodies + [oracle.gen(8, 100, 2**32)] for token in tokens]
        rows = batches_by_oracle(config, [stream])[70_000:]
        self.assertEqual((page["batches"], page["next"], page["total"]),
                         (rows[:1000], 71_000, len(stream)))
        self.assertTrue(self.fed(self.client, "long", pack(bodies[2]), key="key-2")["repeated"])
        self.assertFalse(self.fed(self.client, "long", pack(bodies[0]), key="key-0")["repeated"])
        self.instance.stop()
        said = iron("serve", "verify", self.instance.data)
        self.assertEqual(said.code, 0, str(said))
        self.assertRegex(str(said.out), "; [14] older feeds are no longer kept")

    def page(self, name):
        return self.client.get(f"/v1/engines/{name}/batches").json


class Changes(LookTest):
    def test_event_at_start_and_after_each_change(self):
        with Events(self.instance, "e") as events:
            first = events.next()
            self.assertEqual(first.name, "engine")
            self.assertEqual(report_of(first.data), report_of(self.client.engine("e")))
            version = first.data["version"]
            for k in range(5):
                answer = self.fed(self.client, "e", pack([k]))
                event = events.next()
                while event.data["tokens"] < answer["tokens"]:
                    event = events.next()
                self.assertEqual(report_of(event.data), report_of(answer))
                self.assertGreater(event.data["version"], version)
                version = event.data["version"]

    def test_deletion_ends_the_events(self):
        with Events(self.instance, "e") as events:
            events.next()
            self.assertEqual(self.client.call("DELETE", "/v1/engines/e").status, 204)
            event = events.next()
            while event.name == "engine":
                event = events.next()
            self.assertEqual((event.name, event.data), ("deleted", {"name": "e"}))
            self.assertIsNone(events.next())

    def test_disconnected_listeners(self):
        listeners = [Events(self.instance, "e") for _ in range(20)]
        for listener in listeners[::2]:
            listener.wire.reset()
        answer = self.fed(self.client, "e", pack([1]))
        for listener in listeners[1::2]:
            event = listener.next()
            while event.data["tokens"] != answer["tokens"]:
                event = listener.next()
            listener.wire.close()
        self.assertEqual(self.client.get("/healthz").status, 200)

    def test_stop_ends_the_events(self):
        with Events(self.instance, "e") as events:
            events.next()
            self.instance.stop()
            while events.wire.seen or not events.is_ended:
                try:
                    if events.next() is None:
                        break
                except contract.Undeclared:
                    raise
                except AssertionError:
                    break  # the connection ended between two events
            self.assertTrue(events.is_ended or events.wire.is_ended)
