# SPDX-License-Identifier: MIT
"""Errors at start, with exit status 2 and one line of advice; TLS."""

import os
import shutil
import socket
import sqlite3
import ssl
import subprocess
from concurrent.futures import ThreadPoolExecutor

import contract
from api import ServerTest, report_of
from harness import TIMEOUT_S, environment, iron, oracle, pack, parse_json
from probes import CHUNKS, REFUSED
from serving import NotServing, Server

TOKEN = b"0123456789abcdef0123456789abcdef\n"
AT_ONCE = 20  # probes; some wait for a timeout
# libmicrohttpd refuses the line before the rest of the header is late, or closes at a line that does
# not begin with a word and a blank.
UNLIKE_UNDER_TLS = {"HTTP/0.9": [["too-slow"], ["malformed-request"]],
                    **{name: [["malformed-request"], []] for name in (
                        "a leading blank", "an empty method", "bare CR all through",
                        "tabs for blanks")}}


def make_certificate(folder, *options, name="cert"):
    """A certificate for localhost and its key, of 2048 bits, for two days unless told."""
    cert, key = folder / f"{name}.pem", folder / f"{name}-key.pem"
    options = options or ("-newkey", "rsa:2048", "-days", "2")
    subprocess.run(["openssl", "req", "-x509", "-nodes", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", cert,
                    *options], check=True, capture_output=True, timeout=TIMEOUT_S)
    return cert, key


class Warnings(ServerTest):
    """What is dangerous is served, and said."""

    def warned(self, *options):
        server = self.serve(*options)
        server.stop()
        return [line for line in server.lines if not line.endswith("stopping")
                and "iron: serving" not in line]

    def test_tokens(self):
        for text, count in ((b"short", 1), (b"0123456789abcdef", 0), (TOKEN, 0),
                            (b"short read\nbrief read\n0123456789abcdef admin\n", 2)):
            path = self.write("token", text)
            path.chmod(0o600)
            said = self.warned("--token-file", path)
            self.assertEqual(len(said), bool(count), said)
            if said:
                self.assertRegex(said[0], f"^iron: {count} tokens? (is|are) shorter than 16")

    def test_writable_directory(self):
        self.assertEqual(self.warned(), [])
        (self.dir / "data").chmod(0o777)
        self.assertRegex("\n".join(self.warned()), "^iron: every user can write to .*data")

    def test_certificates(self):
        good = make_certificate(self.dir)
        self.assertEqual(self.warned("--tls-cert", good[0], "--tls-key", good[1]), [])
        weak = make_certificate(self.dir, "-newkey", "rsa:1024", "-days", "2", name="weak")
        said = self.warned("--tls-cert", weak[0], "--tls-key", weak[1])
        self.assertRegex("\n".join(said), r"^iron: certificate \S+ has a weak key of 1024 bits$")
        old = self.dir / "old.pem"
        subprocess.run(["openssl", "x509", "-in", good[0], "-signkey", good[1], "-days", "-1",
                        "-out", old], check=True, capture_output=True, timeout=TIMEOUT_S)
        said = self.warned("--tls-cert", old, "--tls-key", good[1])
        self.assertRegex("\n".join(said), r"^iron: certificate \S+ has expired")


class Refusals(ServerTest):
    def refused(self, *options, says, data="data", listen="127.0.0.1:0"):
        """One line, exit 2, no port."""
        server = Server(self.dir / data, *options, listen=listen)
        try:
            server.start()
        except NotServing as why:
            self.assertEqual(why.code, 2, str(why))
            self.assertEqual(len(why.lines), 1, str(why))
            self.assertRegex(why.lines[0], rf"^iron: .*{says}", str(why))
            return
        server.stop()
        self.fail(f"it was served: {options}")

    def database(self, data="data"):
        found = [p for p in (self.dir / data).iterdir() if p.is_file()
                 and p.read_bytes()[:15] == b"SQLite format 3"]
        self.assertEqual(len(found), 1, list((self.dir / data).iterdir()))
        return found[0]

    def filled(self):
        """A data folder with a fed engine, after its server has stopped."""
        server = self.serve()
        api = self.api(server)
        self.created(api, "e", nodes=100, batch=10)
        for k in range(5):
            self.fed(api, "e", pack(oracle.gen(k, 500, 1000)), key=f"k{k}")
        report = api.engine("e")
        server.stop()
        return report

    def test_second_server_on_the_same_data(self):
        first = self.serve()
        self.created(self.api(first), "e", nodes=1)
        self.refused(says="in use by another iron serve, process")
        (first.data / "lock").unlink()  # the directory itself is locked too
        self.refused(says="in use by another iron serve")
        self.assertEqual(self.fed(self.api(first), "e", pack([1]))["tokens"], 1)
        first.kill()
        first.start()  # a lock ends with its process

    def test_few_descriptors(self):
        """The advice is about them, not about the disk."""
        for limit in range(12, 30):
            server = self.server(wrapper=("prlimit", f"--nofile={limit}:{limit}"),
                                 data=f"data{limit}")
            try:
                server.start()
            except NotServing as why:
                self.assertNotIn("repair", str(why))
            else:
                server.stop()

    def test_newer_database(self):
        self.filled()
        with sqlite3.connect(self.database()) as base:
            version = base.execute("PRAGMA user_version").fetchone()[0]
            self.assertGreater(version, 0)
            base.execute(f"PRAGMA user_version = {version + 1}")
        base.close()
        self.refused(says=f"newer|version.*{version + 1}")

    def test_database_of_another_program(self):
        (self.dir / "data").mkdir()
        self.filled_elsewhere()
        self.refused(says="iron|program|database")

    def filled_elsewhere(self):
        """A data folder whose database belongs to another program."""
        probe = self.serve(data="probe")
        probe.stop()
        name = self.database("probe").name
        with sqlite3.connect(self.dir / "data" / name) as base:
            base.execute("CREATE TABLE songs (title TEXT)")
            base.execute("PRAGMA user_version = 1")
            base.execute("PRAGMA application_id = 77")
        base.close()

    def test_damage(self):
        """A page of zeros, noise in the middle, half a file, no database at all."""
        before = self.filled()
        shutil.copytree(self.dir / "data", self.dir / "good")
        name = self.database().name
        whole = self.database().read_bytes()
        self.assertGreater(len(whole), 8192)
        damaged = {
            "half of it": whole[:len(whole) // 2],
            "a few bytes": whole[:50],
            "text": b"these are not the tables you are looking for\n" * 500,
            "a page of zeros": whole[:4096] + bytes(4096) + whole[8192:],
            "a page of noise": whole[:4096] + b"\xa5" * 4096 + whole[8192:],
        }
        for what, data in damaged.items():
            with self.subTest(damage=what):
                shutil.rmtree(self.dir / "data")
                shutil.copytree(self.dir / "good", self.dir / "data")
                for extra in (self.dir / "data").glob(f"{name}-*"):
                    extra.unlink()
                (self.dir / "data" / name).write_bytes(data)
                self.refused(says=".")
        shutil.rmtree(self.dir / "data")
        shutil.copytree(self.dir / "good", self.dir / "data")
        self.assertEqual(before, self.api(self.serve()).engine("e"))

    def test_changed_values_are_detected_or_harmless(self):
        """Every number of every table, changed by one: startup or reading detects it, or it has no
        visible effect; no false data is shown."""
        before = self.filled()
        shutil.copytree(self.dir / "data", self.dir / "good")
        name, noticed = self.database().name, 0
        for table, column, rowid in self.cells():
            shutil.rmtree(self.dir / "data")
            shutil.copytree(self.dir / "good", self.dir / "data")
            base = sqlite3.connect(self.dir / "data" / name)
            try:
                with base:
                    base.execute(
                        f"UPDATE {table} SET {column} = {column} + 1 WHERE rowid = {rowid}")
            except sqlite3.IntegrityError:
                continue  # rejected by the database itself
            finally:
                base.close()
            with self.subTest(cell=f"{table}.{column} of row {rowid}"):
                noticed += self.notices(before)
        self.assertGreater(noticed, 0)

    def cells(self) -> list:
        base = sqlite3.connect(self.database())
        tables = [row[0] for row in base.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]
        found = []
        for table in tables:
            for column in base.execute(f"PRAGMA table_info({table})").fetchall():
                try:
                    row = base.execute(
                        f"SELECT rowid, typeof({column[1]}) FROM {table} LIMIT 1").fetchone()
                except sqlite3.OperationalError:  # without rowid
                    continue
                if row and row[1] == "integer":
                    found.append((table, column[1], row[0]))
        base.close()
        return found

    def notices(self, before) -> bool:
        """Whether the server refused the folder; if it serves, its results must be unchanged."""
        server = Server(self.dir / "data")
        try:
            server.start()
        except NotServing as why:
            self.assertEqual((why.code, len(why.lines)), (2, 1), str(why))
            return True
        try:
            answer = self.api(server).get("/v1/engines/e")
            if answer.status == 200:
                self.assertEqual(report_of(before), report_of(answer.json))
        finally:
            server.stop()
        return False

    def test_public_address_requires_a_token(self):
        for address in ("0.0.0.0:0", "[::]:0"):
            self.refused(listen=address, says="token")
        token = self.write("token", TOKEN)
        token.chmod(0o600)
        server = self.serve("--token-file", token, listen="0.0.0.0:0")
        self.assertEqual(self.api(server, token=TOKEN.decode().strip()).get("/v1/info").status, 200)

    def test_token_files(self):
        token = self.write("token", TOKEN)
        for mode in (0o644, 0o640, 0o604, 0o660, 0o666):
            token.chmod(mode)
            self.refused("--token-file", token, says="token")
        token.chmod(0o600)
        for text in (b"", b"\n", b"two\nlines of it are too many\n", b"a b" * 20,
                     b"x" * 100_000, b"\0" * 40, b"\xff" * 40):
            token.write_bytes(text)
            with self.subTest(text=text[:20]):
                self.refused("--token-file", token, says="token")
        self.refused("--token-file", self.dir / "none", says="none")
        self.refused("--token-file", self.dir, says="token|director|regular")

    def test_ipv6_loopback(self):
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError as why:
            self.skipTest(f"no IPv6 here: {why}")
        server = self.serve(listen="[::1]:0")
        self.assertRegex(server.lines[0], rf"http://\[::1\]:{server.port}, ")
        for host in (f"[::1]:{server.port}", f"localhost:{server.port}"):
            with socket.create_connection(("::1", server.port), TIMEOUT_S) as wire:
                wire.sendall(f"GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
                self.assertRegex(wire.recv(4096), b"^HTTP/1.1 200 ")

    def test_invalid_addresses(self):
        for listen in ("", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", ":-1",
                       "nowhere.invalid:0", "127.0.0.1:0:0", "[::1:0", "256.0.0.1:0"):
            with self.subTest(listen=listen):
                self.refused(listen=listen, says=".")

    def test_port_in_use(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            self.refused(listen=f"127.0.0.1:{other.getsockname()[1]}", says="port|use|address")

    def test_invalid_data_folders(self):
        self.write("file", b"x")
        self.refused(data="file", says="file")
        self.refused(data="file/below", says="file")

    def test_invalid_options(self):
        for options in (("--max-body", "-1"), ("--max-body", "x"), ("--max-connections", "1.5"),
                        ("--nothing",), ("--tls-cert", "x"), ("--tls-key", "x"), ("extra",),
                        ("--header-seconds", ""), ("--report", "none.html")):
            with self.subTest(options=options):
                done = iron("serve", "--listen", "127.0.0.1:0", "--data", self.dir / "data",
                            *options)
                self.assertEqual(done.code, 2, str(done))
                self.assertRegex(done.message, r"\Airon: [^\n]+\n\Z")

    def test_folder_is_private(self):
        server = self.serve()
        self.assertEqual(os.stat(server.data).st_mode & 0o777, 0o700)


class Tls(ServerTest):
    def setUp(self):
        super().setUp()
        self.cert, self.key = make_certificate(self.dir)
        self.instance = self.serve("--tls-cert", self.cert, "--tls-key", self.key)
        self.context = ssl.create_default_context(cafile=str(self.cert))

    def test_python_curl_and_push(self):
        self.assertEqual(self.instance.scheme, "https")
        api = self.api(self.instance, context=self.context)
        self.created(api, "e", nodes=5, batch=100)
        tokens = oracle.gen(1, 50_000, 1000)
        path = self.write("tokens", pack(tokens))
        base = f"https://localhost:{self.instance.port}/v1/engines"
        done = subprocess.run(["curl", "-sS", "--cacert", self.cert, "--data-binary", f"@{path}",
                               f"{base}/e/feed?at=0"], capture_output=True, timeout=TIMEOUT_S,
                              env=environment(), check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        expected = dict(oracle.Engine(oracle.Config(nodes=5, batch=100)).feed(tokens).report(),
                        seal=oracle.seal(tokens))
        self.assertEqual(report_of(parse_json(done.stdout)), expected)
        self.created(api, "p", nodes=5, batch=100)
        pushed = iron("push", path, f"{base}/p", "--dtype", "u32", "--ca", self.cert, "--json")
        self.assertEqual(pushed.code, 0, str(pushed))
        self.assertEqual(report_of(api.engine("p")), expected)

    def test_untrusted_certificate_is_rejected(self):
        done = iron("push", self.write("tokens", pack([1])),
                    f"https://localhost:{self.instance.port}/v1/engines/e", "--dtype", "u32")
        self.assertEqual(done.code, 2, str(done))
        self.assertRegex(done.message, r"(?i)\Airon: [^\n]*certificate[^\n]*\n\Z")

    def test_chunks_that_cannot_be_read(self):
        """The problem takes the place of libmicrohttpd's page."""
        self.created(self.api(self.instance, context=self.context), "probe", nodes=3)
        for name, probe in CHUNKS.items():
            if name.startswith("a chunk"):
                with self.subTest(probe=name):
                    wire = self.wire(self.instance, context=self.context)
                    wire.send(probe.replace(b"%H", b"localhost"))
                    answer = wire.answer()
                    contract.check("POST", "/v1/engines/probe/feed", answer)
                    self.assert_problem(answer, "malformed-request")
                    self.assertEqual(wire.answers(), [])
        self.assertEqual(self.api(self.instance, context=self.context).engine("probe")["tokens"], 0)

    def test_refused_requests(self):
        """A refused request gets the same problem as without TLS, whoever refuses it."""
        options = ("--header-seconds", 2, "--request-seconds", 6)
        servers = [self.serve(*options, data="plain"),
                   self.serve(*options, "--tls-cert", self.cert, "--tls-key", self.key, data="tls")]

        def kinds_of(name):
            kinds = []
            for server, context in zip(servers, (None, self.context)):
                with self.wire(server, context=context) as wire:
                    wire.send(REFUSED[name].replace(b"%H", f"localhost:{server.port}".encode()))
                    answers = [answer for answer in wire.answers() if answer.status != 100]
                for answer in answers:
                    contract.check_problem(answer, name)
                kinds.append([answer.json["type"].rpartition(":")[2] for answer in answers])
            return kinds
        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = dict(zip(REFUSED, pool.map(kinds_of, REFUSED)))
        unlike = {name: kinds for name, kinds in found.items() if kinds[0] != kinds[1]}
        self.assertEqual(unlike, UNLIKE_UNDER_TLS)

    def test_plain_http_on_a_tls_port(self):
        with self.wire(self.instance) as wire:
            wire.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").finish()
            self.assertNotIn(b" 200 ", wire._rest())  # pylint: disable=protected-access
        api = self.api(self.instance, context=self.context)
        self.assertEqual(api.get("/healthz").status, 200)

    def test_mismatched_keys(self):
        other = self.write("other.pem", b"no certificate\n")
        for options in (("--tls-cert", other, "--tls-key", self.key),
                        ("--tls-cert", self.cert, "--tls-key", other),
                        ("--tls-cert", self.cert), ("--tls-key", self.key),
                        ("--tls-cert", self.dir / "none", "--tls-key", self.key)):
            with self.subTest(options=options):
                done = iron("serve", "--listen", "127.0.0.1:0", "--data", self.dir / "x", *options)
                self.assertEqual(done.code, 2, str(done))
                self.assertRegex(done.message, r"\Airon: [^\n]+\n\Z")
