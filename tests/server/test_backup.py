# SPDX-License-Identifier: MIT
"""Backups of a running server, made and restored as docs/operations.md describes, and verified."""

import contextlib
import shutil
import sqlite3
import subprocess

from api import ServerTest, report_of
from harness import SEED, iron, oracle, pack
from load import ENGINES, Load
from managed import short_busy_timeout
from model import by_oracle, in_order
from serving import NotServing

BACKUPS = 3
FEEDS = 60  # acknowledged, at least, between two backups


class Backup(ServerTest):
    def back_up(self, server, name):
        """Returns a data folder for a server."""
        folder = self.dir / name
        done = iron("serve", "backup", server.data, folder)
        self.assertEqual((done.code, done.err), (0, b""), str(done))
        self.assertEqual((folder / "iron.db").stat().st_mode & 0o777, 0o600)
        self.assertEqual(folder.stat().st_mode & 0o777, 0o700)
        self.assert_sound(folder)
        self.assertEqual(sorted(p.name for p in folder.iterdir()), ["iron.db", "marker"])
        return folder

    def assert_sound(self, folder, *texts):
        done = iron("serve", "verify", folder)
        self.assertEqual((done.code, done.err), (0, b""), str(done))
        for text in ("is sound", *texts):
            self.assertIn(text, done.text)

    @staticmethod
    def acknowledged(load) -> dict:
        """{engine: the tokens of its last answer}"""
        found = {}
        with load.lock:
            for feed in load.feeds:
                if feed.answer:
                    found[feed.engine] = max(found.get(feed.engine, 0), feed.answer["tokens"])
        return found

    def test_backups_under_load_are_consistent(self):
        """Every copy opens, equals an earlier state of the server, and contains everything that
        was acknowledged before the backup started."""
        server = self.serve()
        load = Load(server, f"{SEED} backup").create().start()
        copies = []
        for k in range(BACKUPS):
            load.run_until(FEEDS)
            before = self.acknowledged(load)
            copies.append((self.back_up(server, f"backup-{k}"), before))
        load.join()
        load.prove()
        server.stop()
        for folder, before in copies:
            self.assert_earlier_state(folder, before, load)

    def assert_earlier_state(self, folder, before, load):
        copy = self.serve(data=folder.name)
        api = self.api(copy)
        self.assertEqual(copy.engines, len(ENGINES))
        for name, config in ENGINES.items():
            found = api.engine(name)
            kept = in_order([(f.tokens, f.answer) for f in load.feeds if f.engine == name and
                             f.answer and f.answer["tokens"] <= found["tokens"]])
            self.assertGreaterEqual(found["tokens"], before.get(name, 0))
            self.assertEqual(report_of(found), by_oracle(config, kept))
        copy.stop()

    def test_push_continues_after_restore(self):
        """Replaces the database by the copy, as the page describes; iron push then continues."""
        server = self.serve()
        api = self.api(server)
        self.created(api, "e", nodes=5, batch=100)
        tokens = oracle.gen(1, 5000, 1000)
        self.fed(api, "e", pack(tokens[:2000]), key="first")
        copy = self.back_up(server, "backup")
        self.fed(api, "e", pack(tokens[2000:3000]), key="second")
        server.kill()
        for path in server.data.glob("iron.db*"):
            path.unlink()
        for path in copy.iterdir():  # with its marker: nothing counts as lost
            shutil.copy(path, server.data)
        server.start()
        refusal = api.feed("e", pack(tokens[3000:]), at=3000)
        self.assert_problem(refusal, "position-mismatch")
        self.assertEqual(refusal.json["position"], 2000)
        self.assertTrue(self.fed(api, "e", pack(tokens[:2000]), key="first")["repeated"])
        self.assertFalse(self.fed(api, "e", pack(tokens[2000:3000]), key="second")["repeated"])
        done = iron("push", self.write("tokens", pack(tokens)), f"{server.url}/v1/engines/e",
                    "--dtype", "u32")
        self.assertEqual(done.code, 0, str(done))
        self.assertEqual(api.engine("e")["seal"], oracle.seal(tokens))

    def test_start_fails_while_a_reader_uses_the_database(self):
        """A read transaction that needs the write-ahead log keeps the server from starting."""
        if not shutil.which("sqlite3"):
            self.skipTest("sqlite3 is not installed (Debian: sqlite3)")
        server = self.serve(env=short_busy_timeout())
        self.created(self.api(server), "e", nodes=1)
        server.kill()
        reader = subprocess.Popen(["sqlite3", "-readonly", server.data / "iron.db"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(reader.communicate)
        reader.stdin.write("BEGIN; SELECT count(*) FROM engines;\n")
        reader.stdin.flush()
        self.assertEqual(reader.stdout.readline(), "1\n")
        with self.assertRaises(NotServing) as caught:
            server.start()
        self.assertEqual(caught.exception.code, 2)
        self.assertIn("is being used by another program", caught.exception.lines[0])
        reader.communicate("COMMIT;\n")
        server.start()
        self.assertEqual(self.api(server).engine("e")["tokens"], 0)

    def fed_server(self):
        server = self.serve()
        api = self.api(server)
        self.created(api, "e", nodes=5, batch=100)
        for k in range(20):
            self.fed(api, "e", pack(oracle.gen(k, 300, 1000)))
        return server

    def test_backup_is_complete_or_absent(self):
        server = self.fed_server()
        for target, code in ((self.dir, 2), (self.dir / "no" / "such", 2)):
            self.assertEqual(iron("serve", "backup", server.data, target).code, code)
        left = self.dir / "copy.partial"  # of an interrupted backup
        left.mkdir()
        (left / "iron.db").write_bytes(b"half")
        self.back_up(server, "copy")
        self.assertFalse(left.exists())
        self.assertEqual(iron("serve", "backup", self.dir / "none", self.dir / "x").code, 2)
        self.assertFalse((self.dir / "x").exists())
        server.stop()
        self.back_up(server, "stopped")

    def test_verify(self):
        """While it runs, after kill -9, and stopped; then a difference, named, with exit status 1."""
        server = self.fed_server()
        self.assert_sound(server.data, "1 engine, 20 feeds, 60 batches", "a server is running")
        server.kill()
        self.assert_sound(server.data)
        self.assertTrue((server.data / "iron.db-wal").stat().st_size)
        content = (server.data / "iron.db-wal").read_bytes()
        (server.data / "iron.db-wal").unlink()
        done = iron("serve", "verify", server.data)
        self.assertEqual(done.code, 1, str(done))
        self.assertIn(b"iron.db-wal has 0 bytes and had", done.err)
        (server.data / "iron.db-wal").write_bytes(content)
        server.start()
        server.stop()
        self.assert_sound(server.data)
        with contextlib.closing(sqlite3.connect(server.data / "iron.db")) as database:
            database.execute("UPDATE feeds SET state = state + 1 WHERE number = 7")
            database.commit()
        done = iron("serve", "verify", server.data)
        self.assertEqual(done.code, 1, str(done))
        self.assertIn(b"feed 7 of engine 1", done.err)
        for wrong in (["verify"], ["verify", self.dir / "none"], ["verify", "a", "b"], ["backup"],
                      ["verify", self.dir]):
            self.assertEqual(iron("serve", *wrong).code, 2, wrong)
