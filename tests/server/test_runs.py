# SPDX-License-Identifier: MIT
"""Live runs: records that arrive in any order and any number of times, and what is found in them.

The findings are compared with those of `iron ledger check` on the same ledgers."""

import json
import random
import shutil
import sqlite3
import struct

import contract
from api import Gone, ServerTest
from events import Events
from exposition import parse, value
from harness import REDUCED, SEED, iron, start
from serving import wait_until

import ledger as book
from ledger import Record

SECOND = 10**9
HEADER = 64
FINDING = ("kind", "step", "rank", "first_step", "first_rank", "count")


def sample(number):
    return tuple((number * 31 + 7 * k) % 50000 for k in range(4)) + (number,)


def plain(world=2, steps=10, first=0, begun=0):
    """{rank: a ledger} in which every sample is seen once; with its own times."""
    made = {}
    for rank in range(world):
        made[rank] = book.header(rank, world, begun * SECOND) + b"".join(
            book.step(Record(at, [sample((at * world + rank) * 2 + k) for k in range(2)]),
                      time_ns=begun * SECOND + (at + 1) * 1000 + rank)
            for at in range(first, first + steps))
    return made


def frames(ledger):
    """The header and the list of frames."""
    found, at = [], HEADER
    while at < len(ledger):
        size = 16 + struct.unpack_from("<I", ledger, at + 4)[0]
        found.append(ledger[at:at + size])
        at += size
    return ledger[:HEADER], found


def repeated(step, of, time_ns, world=1):
    """A step with the samples of an earlier one of plain(world)."""
    return book.step(Record(step, [sample(of * world * 2 + k) for k in range(2)]), time_ns=time_ns)


class RunsTest(ServerTest):
    def post(self, api, run, body, status=200):
        answer = api.call("POST", f"/v1/runs/{run}/steps", body)
        self.assertEqual(answer.status, status, str(answer))
        return answer.json

    def found(self, api, run):
        answer = api.get(f"/v1/runs/{run}/findings")
        self.assertEqual(answer.status, 200, str(answer))
        self.assertTrue(answer.json["is_current"], str(answer))
        return answer.json

    def findings(self, api, run):
        return [tuple(f[key] for key in FINDING) for f in self.found(api, run)["findings"]]

    def by_command(self, ledgers):
        """What `iron ledger check` says about these ledgers."""
        folder = self.dir / "checked"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for rank, data in ledgers.items():
            (folder / f"rank-{rank}.ledger").write_bytes(data)
        return json.loads(iron("ledger", "check", folder, "--json").out)

    def assert_same(self, api, run, ledgers):
        """The server finds what the command finds in the same ledgers."""
        here, there = self.found(api, run), self.by_command(ledgers)
        for key in ("steps", "ranks", "world", "samples", "tokens", "first_step", "last_step",
                    "records", "superseded", "findings_total", "totals"):
            self.assertEqual(here[key], there[key], key)
        strip = [{key: f[key] for key in FINDING} for f in here["findings"]]
        self.assertEqual(strip, there["findings"])
        return here


class Records(RunsTest):
    def setUp(self):
        super().setUp()
        self.instance = self.serve()
        self.client = self.api(self.instance)

    def test_a_run(self):
        ledgers = plain(world=2, steps=5)
        for rank, data in ledgers.items():
            said = self.post(self.client, "a", data)
            self.assertEqual((said["rank"], said["received"], said["added"]), (rank, 5, 6))
        run = self.client.get("/v1/runs/a").json
        self.assertEqual((run["ranks"], run["records"]), (2, 12))
        self.assertEqual([(r["rank"], r["world"], r["steps"], r["last_step"], r["is_closed"])
                          for r in run["by_rank"]], [(0, 2, 5, 4, False), (1, 2, 5, 4, False)])
        self.assertEqual(run["bytes"], sum(len(d) - HEADER + 32 for d in ledgers.values()))
        self.assertEqual([r["name"] for r in self.client.get("/v1/runs").json["runs"]], ["a"])
        self.assertEqual(self.assert_same(self.client, "a", ledgers)["findings"], [])

    def test_closing_is_shown(self):
        header, steps = frames(plain(world=1, steps=2)[0])
        self.post(self.client, "a", header + b"".join(steps) + book.end(SECOND))
        self.assertTrue(self.client.get("/v1/runs/a").json["by_rank"][0]["is_closed"])

    def test_repeated_records_are_harmless(self):
        ledger = plain(world=1)[0]
        header, steps = frames(ledger)
        self.assertEqual(self.post(self.client, "a", ledger)["added"], 11)
        before = self.client.get("/v1/runs/a").json
        for body in (ledger, header, header + steps[3], header + b"".join(steps[2:5])):
            self.assertEqual(self.post(self.client, "a", body)["added"], 0)
        self.assertEqual(self.client.get("/v1/runs/a").json, before)
        said = self.post(self.client, "a", header + steps[9] + book.step(
            Record(10, [sample(1000)]), time_ns=SECOND))
        self.assertEqual((said["received"], said["added"]), (2, 1))

    def test_any_order(self):
        """Pieces in random order, some of them several times, with a resume among them."""
        pick = random.Random(f"{SEED} runs")
        for attempt in range(3 if REDUCED else 20):
            ledgers = plain(world=2, steps=8)
            for rank in ledgers:  # resumes at step 5 with other tokens: conflicts
                ledgers[rank] += book.resume(2, SECOND) + b"".join(
                    book.step(Record(at, [sample(5000 + 2 * at + rank)]),
                              time_ns=SECOND + at * 1000) for at in range(5, 9))
            pieces = []
            for data in ledgers.values():
                header, parts = frames(data)
                while parts:
                    count = pick.randint(1, 5)
                    pieces.append(header + b"".join(parts[:count]))
                    parts = parts[count:]
            pieces += pick.choices(pieces, k=4)
            pick.shuffle(pieces)
            for body in pieces:
                self.post(self.client, f"run-{attempt}", body)
            report = self.assert_same(self.client, f"run-{attempt}", ledgers)
            self.assertEqual(report["totals"]["conflicting-step"], 6)

    def test_a_clock_that_was_set_back(self):
        """A piece that begins with the last frame of the one before keeps the order of the ledger,
        whatever the times in it."""
        header, steps = frames(plain(world=1, steps=6)[0])
        later = [book.resume(1, 2000)] + [book.step(Record(at, [sample(700 + at)]), time_ns=10)
                                          for at in range(3, 7)]
        self.post(self.client, "a", header + b"".join(steps))
        self.post(self.client, "a", header + b"".join([steps[-1], *later[:2]]))
        self.post(self.client, "a", header + b"".join(later[1:]))
        report = self.assert_same(self.client, "a",
                                  {0: header + b"".join(steps + later)})
        self.assertEqual(report["totals"]["conflicting-step"], 3)

    def test_a_ledger_that_was_begun_anew(self):
        """A rank whose file was lost resumes with another header."""
        self.post(self.client, "a", plain(world=1, steps=6)[0])
        self.post(self.client, "a", plain(world=1, steps=4, first=6, begun=5)[0])
        self.assertEqual(self.findings(self.client, "a"), [])
        self.assertEqual(self.client.get("/v1/runs/a").json["by_rank"][0]["steps"], 10)

    def test_damage_is_refused(self):
        """400, and nothing of the body is stored."""
        ledger = plain(world=1)[0]
        header, steps = frames(ledger)
        bodies = {"nothing": b"", "half a header": ledger[:40], "text": b"x" * 100,
                  "torn": ledger[:-1], "no checksum": ledger[:-1] + bytes([ledger[-1] ^ 1]),
                  "early": header + steps[0][:-3] + b"\0\0\0" + b"".join(steps[1:]),
                  "another kind": header + book.frame(9, b"12345678"),
                  "no header": b"".join(steps), "rank": book.header(3, 2),
                  "step": header + steps[0] + book.step(Record(2**64 - 1, [(1, 2)]))}
        for what, body in bodies.items():
            with self.subTest(what):
                answer = self.client.call("POST", "/v1/runs/a/steps", body)
                self.assertEqual((answer.status, contract.kind(answer)), (400, "bad-ledger"))
                self.assertEqual(self.client.get("/v1/runs/a").status, 404)
        self.post(self.client, "a", ledger)
        before = self.client.get("/v1/runs/a").json
        self.client.call("POST", "/v1/runs/a/steps", header + book.resume(1, SECOND) + b"\0")
        self.assertEqual(self.client.get("/v1/runs/a").json, before)

    def test_progress(self):
        """The steps of each rank with their times; of a long run, evenly chosen ones."""
        def long(rank, steps):
            return book.header(rank, 2) + b"".join(
                book.step(Record(at, [sample(at)]), time_ns=SECOND + at * 10**7)
                for at in range(steps))
        self.post(self.client, "a", long(0, 1000))
        self.post(self.client, "a", long(1, 3) + book.end(9 * SECOND))
        first, second = self.client.get("/v1/runs/a/progress").json["by_rank"]
        self.assertEqual(second, {"rank": 1, "points": [[1000, 0], [1010, 1], [1020, 2]]})
        steps = [step for _, step in first["points"]]
        self.assertEqual((steps[0], steps[-1]), (0, 999))
        self.assertTrue(100 <= len(steps) <= 200, len(steps))
        self.assertLessEqual(max(b - a for a, b in zip(steps, steps[1:])), 10)
        self.assertEqual([time for time, _ in first["points"]],
                         [1000 + 10 * step for step in steps])
        self.post(self.client, "b", book.header(0, 1))
        self.assertEqual(self.client.get("/v1/runs/b/progress").json["by_rank"], [])

    def test_other_refusals(self):
        ledger = plain(world=1)[0]
        for method, target, body, status, kind in (
                ("POST", "/v1/runs/.a/steps", ledger, 400, "bad-name"),
                ("POST", f"/v1/runs/{'a' * 65}/steps", ledger, 400, "bad-name"),
                ("GET", "/v1/runs/b", None, 404, "no-such-run"),
                ("GET", "/v1/runs/b/findings", None, 404, "no-such-run"),
                ("GET", "/v1/runs/b/events", None, 404, "no-such-run"),
                ("GET", "/v1/runs/b/progress", None, 404, "no-such-run"),
                ("GET", "/v1/runs/b/diff?reference=b", None, 404, "no-such-run"),
                ("DELETE", "/v1/runs/b", None, 404, "no-such-run"),
                ("PUT", "/v1/runs/b", None, 405, "method-not-allowed"),
                ("POST", "/v1/runs/b/steps", bytes((1 << 20) + 1), 413, "too-large")):
            with self.subTest(method + target[:20]):
                answer = self.client.call(method, target, body)
                self.assertEqual((answer.status, contract.kind(answer)), (status, kind))

    def test_delete(self):
        self.post(self.client, "a", plain()[0])
        self.post(self.client, "b", plain()[0])
        self.assertEqual(self.client.call("DELETE", "/v1/runs/a").status, 204)
        self.assertEqual(self.client.call("DELETE", "/v1/runs/a").status, 404)
        self.assertEqual([r["name"] for r in self.client.get("/v1/runs").json["runs"]], ["b"])
        self.assertEqual(self.post(self.client, "a", plain(steps=1)[0])["records"], 2)
        self.instance.stop()
        self.instance.start()
        rows = "SELECT count(DISTINCT run) FROM run_records"

        def is_clean():
            with sqlite3.connect(f"file:{self.instance.data}/iron.db?mode=ro", uri=True) as base:
                return base.execute(rows).fetchone() == (2,)
        wait_until("the records of the deleted run are removed", is_clean)


class Limits(RunsTest):
    def test_bytes_of_a_run(self):
        client = self.api(self.serve("--max-run", 65536))
        ledger = plain(world=1, steps=600)[0]
        header, steps = frames(ledger)
        refused = self.post(client, "a", ledger, status=507)
        self.assertIn("--max-run", refused["detail"])
        self.assertEqual(client.get("/v1/runs").json["runs"], [])
        self.post(client, "a", header + b"".join(steps[:400]))
        self.post(client, "a", header + b"".join(steps), status=507)
        self.post(client, "a", header + b"".join(steps[:400]))
        self.assertEqual(client.get("/v1/runs/a").json["records"], 401)
        self.assertEqual(client.get("/v1/info").json["limits"]["max_run"], 65536)

    def test_number_of_runs(self):
        client = self.api(self.serve())
        header = book.header(0, 1)
        for number in range(256):
            self.post(client, f"run-{number}", header)
        self.assertIn("256 runs", self.post(client, "one-more", header, status=507)["detail"])
        self.post(client, "run-7", plain(world=1)[0])
        self.assertEqual(client.call("DELETE", "/v1/runs/run-9").status, 204)
        self.post(client, "one-more", header)


class Findings(RunsTest):
    def setUp(self):
        super().setUp()
        self.instance = self.serve()
        self.client = self.api(self.instance)

    def test_as_by_the_command(self):
        ledgers = plain(world=2, steps=20)
        header, steps = frames(ledgers[1])
        ledgers[1] = header + b"".join(steps[:9] + steps[11:]) + b"".join(
            repeated(20 + k, 3 + k, SECOND + k, world=2) for k in range(2))
        for data in ledgers.values():
            self.post(self.client, "a", data)
        report = self.assert_same(self.client, "a", ledgers)
        self.assertEqual(report["totals"]["missing-step"], 1)
        self.assertEqual(report["totals"]["repeated-step"], 2)
        self.assertIn("step 20 on rank 1 repeats step 3 on rank 0: 2 samples",
                      [f["sentence"] for f in report["findings"]])

    def test_events(self):
        header, steps = frames(plain(world=1)[0])
        self.post(self.client, "a", header + b"".join(steps[:5]))
        with Events(self.instance, target="/v1/runs/a/events") as events:
            events.until(lambda e: e.name == "run" and e.data["is_current"] and
                         e.data["steps"] == 5)
            self.post(self.client, "a", header + repeated(5, 2, SECOND))
            found = events.until(lambda e: e.name == "finding")
            self.assertEqual(found.data["sentence"],
                             "step 5 on rank 0 repeats step 2: 2 samples")
            self.post(self.client, "a", header + repeated(6, 3, SECOND + 1))
            again = events.until(lambda e: e.name == "finding")
            self.assertEqual(again.data["step"], 6)
            self.client.call("DELETE", "/v1/runs/a")
            events.until(lambda e: e.name == "deleted")
            self.assertIsNone(events.next())

    def test_in_the_list(self):
        self.post(self.client, "a", plain(world=1)[0] + repeated(10, 2, SECOND))
        self.found(self.client, "a")
        run, = self.client.get("/v1/runs").json["runs"]
        self.assertEqual((run["steps"], run["findings_total"]), (11, 1))

    def diff(self, run, reference):
        answer = self.client.get(f"/v1/runs/{run}/diff?reference={reference}")
        self.assertEqual(answer.status, 200, str(answer))
        return answer.json

    def test_comparing(self):
        """As `iron ledger diff REFERENCE RUN`."""
        header, steps = frames(plain(world=1, steps=12)[0])
        runs = {"same": header + b"".join(steps), "short": header + b"".join(steps[:7]),
                "other": header + b"".join(steps[:5]) + repeated(5, 2, SECOND)}
        for name, data in runs.items():
            self.post(self.client, name, data)
            self.write(name + ".ledger", data)
        for name, kind in (("same", "equal"), ("short", "shorter"), ("other", "repeated")):
            found = self.diff(name, "same")
            self.assertEqual(found["kind"], kind)
            said = json.loads(iron("ledger", "diff", self.dir / "same.ledger",
                                   self.dir / f"{name}.ledger", "--json").out)
            for key in ("first_step", "sentence", "steps_equal", "steps_a", "steps_b"):
                self.assertEqual(found[key], said[key], (name, key))
        for query, status, kind in (("", 400, "bad-query"), ("?reference=none", 404, "no-such-run"),
                                    ("?reference=", 404, "no-such-run")):
            answer = self.client.get(f"/v1/runs/same/diff{query}")
            self.assertEqual((answer.status, contract.kind(answer)), (status, kind))

    def metric(self, name, **labels):
        return value(parse(self.client.get("/metrics").body.decode()), name, **labels)

    def test_metrics(self):
        self.assertEqual(self.metric("iron_runs"), 0)
        self.post(self.client, "a", plain(world=1)[0] + repeated(10, 2, SECOND))
        totals = self.found(self.client, "a")["totals"]
        self.assertEqual(self.metric("iron_runs"), 1)
        self.assertEqual(self.metric("iron_run_records_total", run="a"), 12)
        self.assertEqual({kind: self.metric("iron_run_findings_total", run="a", kind=kind)
                          for kind in totals}, totals)
        self.assertEqual(totals["repeated-step"], 1)

    def test_a_gap_that_is_filled_later(self):
        """The finding goes; the counter stays."""
        header, steps = frames(plain(world=1)[0])
        self.post(self.client, "a", header + b"".join(steps[:3] + steps[6:]))
        self.assertEqual(self.findings(self.client, "a"), [("missing-step", 3, 0, 3, 0, 3)])
        self.post(self.client, "a", header + b"".join(steps[3:6]))
        self.assertEqual(self.findings(self.client, "a"), [])
        self.assertEqual(self.metric("iron_run_findings_total", run="a", kind="missing-step"), 1)


class Durability(RunsTest):
    def test_killed_between_posts(self):
        """What was acknowledged is there after kill -9; the client sends the rest again."""
        server = self.serve()
        client = self.api(server)
        ledgers = plain(world=2, steps=24)
        for part in range(4):
            for data in ledgers.values():
                header, steps = frames(data)
                self.post(client, "a", header + b"".join(steps[:6 * (part + 1)]))
            server.kill()
            server.start()
            client = self.api(server)
            self.assertEqual(client.get("/v1/runs/a").json["records"], 2 * (6 * (part + 1) + 1))
        self.assertEqual(self.assert_same(client, "a", ledgers)["findings"], [])

    def test_killed_during_posts(self):
        server = self.serve()
        header, steps = frames(plain(world=1, steps=2000)[0])
        acknowledged, at = 0, 0
        while at < len(steps):
            client = self.api(server)
            try:
                while at < len(steps):
                    self.post(client, "a", header + b"".join(steps[max(at - 1, 0):at + 100]))
                    at += 100
                    acknowledged = at
                    if at in (500, 1200):
                        server.process.kill()
            except (Gone, ConnectionError):
                server.kill()
                server.start()
                client = self.api(server)
                self.assertGreaterEqual(client.get("/v1/runs/a").json["records"],
                                        acknowledged + 1)
        self.assertEqual(client.get("/v1/runs/a").json["records"], 2001)
        self.assertEqual(self.findings(client, "a"), [])

    def test_backup_and_verify(self):
        server = self.serve()
        self.post(self.api(server), "a", plain(world=1)[0])
        self.assertEqual(iron("serve", "backup", server.data, self.dir / "copy").code, 0)
        server.stop()
        copy = self.serve(data="copy")
        run = self.api(copy).get("/v1/runs/a").json
        self.assertEqual(run["records"], 11)
        copy.stop()
        self.assertIn("1 run, 11 records", iron("serve", "verify", self.dir / "copy").text)
        changes = ("UPDATE run_records SET time = time + 1 WHERE time = 3000",
                   "UPDATE run_records SET bytes = zeroblob(136) WHERE time = 3000",
                   "DELETE FROM run_records WHERE time = 3000",
                   "UPDATE run_ranks SET steps = 9", "DELETE FROM run_ranks",
                   "UPDATE runs SET bytes = bytes - 1")
        for change in changes:
            with self.subTest(change):
                shutil.rmtree(self.dir / "bad", ignore_errors=True)
                shutil.copytree(self.dir / "copy", self.dir / "bad")
                with sqlite3.connect(self.dir / "bad" / "iron.db") as base:
                    self.assertEqual(base.execute(change).rowcount, 1)
                base.close()
                done = iron("serve", "verify", self.dir / "bad")
                self.assertEqual(done.code, 1, str(done))
                self.assertIn("damaged", done.message)

    def test_an_older_data_folder(self):
        """A database without the tables of runs opens, and keeps its engines."""
        server = self.serve()
        self.created(self.api(server), "e", nodes=2)
        server.stop()
        with sqlite3.connect(server.data / "iron.db") as base:
            names = [n for n, in base.execute("SELECT name FROM sqlite_master")]
        self.assertFalse([n for n in names if n.startswith("run")], names)
        server.start()
        client = self.api(server)
        self.assertEqual(client.get("/v1/runs").json["runs"], [])
        self.post(client, "a", plain()[0])
        self.assertEqual(client.engine("e")["tokens"], 0)


class Roles(RunsTest):
    def test_roles_and_names(self):
        tokens = {"read": "r" * 40, "feed": "f" * 40, "admin": "a" * 40, "mine": "m" * 40}
        path = self.write("tokens", "".join(
            f"{t} {'feed' if n == 'mine' else n}{' mine-*' if n == 'mine' else ''}\n"
            for n, t in tokens.items()).encode())
        path.chmod(0o600)
        server = self.serve("--token-file", path)
        ledger = plain(world=1)[0]

        def status(who, method, target, body=None):
            return self.api(server, token=tokens.get(who)).call(method, target, body).status
        self.assertEqual(status(None, "POST", "/v1/runs/a/steps", ledger), 401)
        self.assertEqual(status("read", "POST", "/v1/runs/a/steps", ledger), 403)
        self.assertEqual(status("feed", "POST", "/v1/runs/a/steps", ledger), 200)
        self.assertEqual(status("mine", "POST", "/v1/runs/a/steps", ledger), 403)
        self.assertEqual(status("mine", "POST", "/v1/runs/mine-1/steps", ledger), 200)
        for target in ("/v1/runs", "/v1/runs/a", "/v1/runs/a/findings"):
            self.assertEqual(status(None, "GET", target), 401)
            self.assertEqual(status("read", "GET", target), 200)
        for target in ("/v1/runs/a", "/v1/runs/a/progress", "/v1/runs/a/diff?reference=mine-1"):
            self.assertEqual(status("mine", "GET", target), 403)
        self.assertEqual(status("mine", "GET", "/v1/runs/mine-1/diff?reference=a"), 404)
        self.assertEqual(status("feed", "GET", "/v1/runs/mine-1/diff?reference=a"), 200)
        listed = self.api(server, token=tokens["mine"]).get("/v1/runs").json["runs"]
        self.assertEqual([r["name"] for r in listed], ["mine-1"])
        self.assertEqual(status("feed", "DELETE", "/v1/runs/a"), 403)
        self.assertEqual(status("admin", "DELETE", "/v1/runs/a"), 204)


class Push(RunsTest):
    """`iron push LEDGER URL`."""

    def setUp(self):
        super().setUp()
        self.instance = self.serve()
        self.client = self.api(self.instance)
        self.url = f"{self.instance.url}/v1/runs/a"

    def push(self, ledger, *options):
        path = self.write("rank.ledger", ledger)
        return self.command("push", path, self.url, *options)

    def test_pushed_and_resumed(self):
        whole = plain(world=1, steps=40)[0]
        header, steps = frames(whole)
        said = self.push(header + b"".join(steps[:25]))
        self.assertEqual((said["run"], said["rank"], said["sent"], said["added"]),
                         ("a", 0, 25, 26))
        said = self.push(whole)
        self.assertEqual((said["resumed_at"], said["sent"], said["added"]),
                         (HEADER + sum(map(len, steps[:24])), 15, 15))
        said = self.push(whole + steps[0][:20])
        self.assertEqual((said["sent"], said["added"], said["torn"]), (0, 0, 20))
        self.assertEqual(self.assert_same(self.client, "a", {0: whole})["findings"], [])

    def test_a_gap_in_what_the_server_has(self):
        """Then everything is sent."""
        whole = plain(world=1, steps=12)[0]
        header, steps = frames(whole)
        self.post(self.client, "a", header + b"".join(steps[:3] + steps[6:9]))
        said = self.push(whole)
        self.assertEqual((said["resumed_at"], said["sent"], said["added"]), (0, 12, 6))
        self.assertEqual(self.found(self.client, "a")["findings"], [])

    def test_pieces(self):
        """More than fits into one request, with records that share none and ones that do."""
        def long(at, count):
            seals = struct.pack("<QQ", at, at) * count
            payload = struct.pack("<QIIQQQQQQQ", at, 0, 0, 1, at, at, at, at, count, at + 1)
            return book.frame(1, payload + seals)
        sizes = [40000, 40000, 10, 60000, 1, 1, 20000, 30000, 5]
        body = book.header(0, 1) + b"".join(long(at, n) for at, n in enumerate(sizes))
        said = self.push(body)
        self.assertEqual((said["sent"], said["added"]), (len(sizes), len(sizes) + 1))
        self.assertEqual(self.push(body)["sent"], 0)
        self.assertEqual(self.client.get("/v1/runs/a").json["by_rank"][0]["steps"], len(sizes))
        path = self.write("huge.ledger", body + long(99, 66000))
        refused = iron("push", path, self.url)
        self.assertEqual(refused.code, 2)
        self.assertIn("longer than a server takes", refused.message)

    def test_an_empty_ledger(self):
        said = self.push(book.header(3, 4))
        self.assertEqual((said["rank"], said["sent"], said["added"]), (3, 0, 1))

    def test_text_and_refusals(self):
        path = self.write("rank.ledger", plain(world=1)[0])
        done = iron("push", path, self.url)
        self.assertEqual((done.code, done.text), (0, "run       a\nrank      0\nsent      "
                                                     "10 records\nadded     11, a new header included\n"))
        tokens = self.write("tokens", bytes(100))
        for args, says in (((path, f"{self.instance.url}/v1/engines/e"), "address of a run"),
                           ((tokens, self.url), "is not a ledger"),
                           ((path, f"{self.instance.url}/v1/runs/-a"), "address of a run"),
                           ((path, "http://127.0.0.1:1/v1/runs/a"), "is iron serve running"),
                           ((self.dir / "missing", self.url), "cannot open")):
            done = iron("push", *args)
            self.assertEqual(done.code, 2, str(done))
            self.assertIn(says, done.message)

    def test_restarts_of_the_server(self):
        """The server is killed while a long ledger is pushed in many small records."""
        self.instance.listen = f"127.0.0.1:{self.instance.port}"
        path = self.write("rank.ledger", plain(world=1, steps=60)[0])
        self.instance.kill()
        process = None
        try:
            self.instance.start()
            process = start("push", path, self.url, "--retries", 50, "--json", stdout=-1,
                            stderr=-1)
            self.instance.kill()
            self.instance.start()
            out, err = process.communicate(timeout=300)
        finally:
            if process and process.poll() is None:
                process.kill()
        if process.returncode == 0:
            self.assertEqual(json.loads(out)["sent"], 60)
        else:  # it was not reached even once
            self.assertIn(b"is iron serve running", err)
            self.command("push", path, self.url)
        self.assertEqual(self.client.get("/v1/runs/a").json["records"], 61)
