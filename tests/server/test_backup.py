# SPDX-License-Identifier: MIT
"""Backups of a running server, made and restored as docs/operations.md describes."""

import re
import shutil
import subprocess

from api import ServerTest, report_of
from harness import REPO, SEED, TIMEOUT_S, environment, iron, oracle, pack
from load import ENGINES, Load
from managed import short_busy_timeout
from model import by_oracle, in_order
from serving import NotServing

BACKUPS = 3
FEEDS = 60  # acknowledged, at least, between two backups
PAGE = REPO / "docs" / "operations.md"


class Backup(ServerTest):
    def setUp(self):
        super().setUp()
        if not shutil.which("sqlite3"):
            self.skipTest("sqlite3 is not installed (Debian: sqlite3)")

    def back_up(self, server, name):
        """Runs the backup command of the page; returns a data folder for a server."""
        command = re.search(r"^\((umask 077; sqlite3 .*)\)$", PAGE.read_text(encoding="utf-8"),
                            re.MULTILINE)[1]
        folder = self.dir / name
        folder.mkdir(mode=0o700)
        subprocess.run(["bash", "-euc", command.replace("backup/iron.db", str(folder / "iron.db"))],
                       env=environment({"DATA": str(server.data)}), check=True,
                       timeout=4 * TIMEOUT_S)
        self.assertEqual((folder / "iron.db").stat().st_mode & 0o777, 0o600)
        return folder

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
        for path in [*server.data.glob("iron.db*"), server.data / "marker"]:
            path.unlink()
        shutil.copy(copy / "iron.db", server.data)
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
