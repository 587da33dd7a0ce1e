# SPDX-License-Identifier: MIT
"""The systemd units in deploy/systemd: valid, restrictive, and sufficient for a server.

systemd does not have to run: systemd-analyze checks the files, and confined.py runs a real server
under the system-call rules of the unit.  Namespaces, users and cgroups are not tested.
"""

import json
import os
import re
import shlex
import shutil
import socket
import ssl
import struct
import subprocess
import threading

from api import ServerTest, report_of
from harness import IRON, SANITIZED, TIMEOUT_S, environment, oracle, pack
from managed import Listener, UNITS, handed
from serving import NotServing
from wire import request

TOKEN = "0123456789abcdef0123456789abcdef"
EXPOSURE = 0.5  # of 10; smaller is better
CONFINED = UNITS.parents[1] / "tests" / "server" / "confined.py"
# Tags of an access list, and the ids of root and others in it.
OWNER, USER, GROUP, NAMED_GROUP, MASK, OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
NOBODY, READ = 0xFFFFFFFF, 4


class UnitTest(ServerTest):
    def setUp(self):
        super().setUp()
        if not shutil.which("systemd-analyze"):
            self.skipTest("no systemd-analyze here (Debian: systemd)")
        self.units = self.dir / "units"
        self.units.mkdir()
        text = (UNITS / "iron.service.in").read_text(encoding="utf-8")
        self.service = self.units / "iron.service"
        self.service.write_text(text.replace("@IRON_COMMAND@", IRON), encoding="utf-8")
        shutil.copy(UNITS / "iron.socket", self.units)

    def drop_in(self, source, unit):
        folder = self.units / f"{unit}.d"
        folder.mkdir(exist_ok=True)
        shutil.copy(UNITS / source, folder)

    def analyze(self, *args, code=0):
        env = environment({"SYSTEMD_UNIT_PATH": f"{self.units}:"})
        done = subprocess.run(["systemd-analyze", *map(str, args)], env=env, capture_output=True,
                              text=True, timeout=TIMEOUT_S, check=False)
        self.assertEqual(done.returncode, code, f"{args}: {done.stdout}{done.stderr}")
        return done


class Files(UnitTest):
    def verify(self):
        done = self.analyze("verify", self.service, self.units / "iron.socket")
        self.assertEqual(done.stdout + done.stderr, "")

    def exposure(self) -> float:
        """The exposure level of systemd-analyze, from 0 to 10."""
        said = self.analyze("security", "--offline=true", "--no-pager", self.service).stdout
        return float(re.search(r"exposure level for iron.service: ([0-9.]+)", said)[1])

    def test_units_are_valid(self):
        self.verify()
        self.drop_in("iron-public.conf", "iron.service")
        self.drop_in("iron-public-socket.conf", "iron.socket")
        self.verify()
        self.drop_in("iron-gpu.conf", "iron.service")
        self.verify()

    def test_errors_in_units_are_detected(self):
        """Both the check and the threshold can fail."""
        text = self.service.read_text(encoding="utf-8")
        self.service.write_text(text.replace("Type=notify", "Type=whatever"), encoding="utf-8")
        said = subprocess.run(["systemd-analyze", "verify", self.service], capture_output=True,
                              text=True, timeout=TIMEOUT_S, check=False)
        self.assertIn("whatever", said.stdout + said.stderr)
        open_text = "\n".join(line for line in text.splitlines()
                              if not line.startswith(("SystemCallFilter", "Capab", "DynamicUser")))
        self.service.write_text(open_text, encoding="utf-8")
        self.assertGreater(self.exposure(), EXPOSURE)

    def test_exposure(self):
        self.assertLessEqual(self.exposure(), EXPOSURE)
        self.drop_in("iron-public.conf", "iron.service")
        self.assertLessEqual(self.exposure(), EXPOSURE)
        self.drop_in("iron-gpu.conf", "iron.service")
        self.assertLessEqual(self.exposure(), 2)

    def test_stop_timeout_is_long_enough(self):
        text = self.service.read_text(encoding="utf-8")
        stop = re.search(r"^TimeoutStopSec=(\d+)min$", text, re.MULTILINE)
        self.assertGreater(int(stop[1]) * 60, 10 + 60)  # grace period and a minute for snapshots
        descriptors = int(re.search(r"^LimitNOFILE=(\d+)$", text, re.MULTILINE)[1])
        tasks = int(re.search(r"^TasksMax=(\d+)$", text, re.MULTILINE)[1])
        self.assertGreaterEqual(descriptors, 2 * 512 + 1024)
        self.assertGreaterEqual(tasks, 512 + 64 + 100)


class Executed(UnitTest):
    def credentials(self, **files):
        """A folder as systemd makes it without access lists: owned by us, 0400."""
        folder = self.dir / "credentials"
        folder.mkdir(exist_ok=True)
        for name, text in files.items():
            (folder / name).write_bytes(text)
            (folder / name).chmod(0o400)
        return folder

    def options(self, unit_text, credentials, data) -> list:
        """The arguments of the ExecStart line, with variables replaced."""
        line = re.search(r"^ExecStart=(.*)$", unit_text, re.MULTILINE)[1]
        more = re.findall(r'^Environment="?IRON_OPTIONS=(.*?)"?$', unit_text, re.MULTILINE)[-1]
        line = line.replace("$IRON_OPTIONS", more).replace("%d", str(credentials))
        words = shlex.split(line.replace("%S/iron", str(data)))
        self.assertEqual(words[:2], [IRON, "serve"])
        self.assertNotIn("%", " ".join(words))
        self.assertNotIn("$", " ".join(words))
        return words[2:]

    def start(self, unit_text, *more, wrapper=(), **files):
        data = self.dir / "state"
        data.mkdir(mode=0o700, exist_ok=True)  # StateDirectory=
        options = self.options(unit_text, self.credentials(token=TOKEN.encode(), **files), data)
        self.assertEqual(options[:2], ["--data", str(data)])
        listening = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listening.close)
        how = handed([listening])
        how["wrapper"] += wrapper
        return self.serve(*options[2:], *more, data="state", **how)

    def test_start_as_in_the_unit(self):
        server = self.start(self.service.read_text(encoding="utf-8"))
        self.assertEqual(self.api(server).get("/v1/info").status, 401)
        self.assertEqual(self.api(server, token=TOKEN).get("/v1/info").status, 200)

    def test_start_as_in_the_public_drop_in(self):
        cert, key = self.dir / "cert.pem", self.dir / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                        "-keyout", key, "-out", cert], check=True,
                       capture_output=True, timeout=TIMEOUT_S)
        text = self.service.read_text(encoding="utf-8")
        text += (UNITS / "iron-public.conf").read_text(encoding="utf-8")
        wrapper = [] if SANITIZED else ["python3", str(CONFINED), str(self.service)]
        server = self.start(text, wrapper=wrapper, cert=cert.read_bytes(), key=key.read_bytes())
        self.assertEqual(server.scheme, "https")
        api = self.api(server, token=TOKEN, context=ssl.create_default_context(cafile=str(cert)))
        self.created(api, "e", nodes=5)
        self.assertEqual(self.fed(api, "e", pack(oracle.gen(1, 100_000, 50)))["tokens"], 100_000)

    def test_server_works_under_the_filter(self):
        """Everything a server does, under all restrictions of the unit."""
        if SANITIZED:
            self.skipTest("a sanitizer uses calls of its own")
        text = self.service.read_text(encoding="utf-8")
        wrapper = ["python3", str(CONFINED), str(self.service)]
        listener = Listener(str(self.dir / "notify"))
        self.addCleanup(listener.close)
        os.environ["NOTIFY_SOCKET"] = listener.address
        self.addCleanup(os.environ.pop, "NOTIFY_SOCKET", None)
        server = self.start(text, wrapper=wrapper)
        listener.hear_until(lambda said: "READY" in said)
        self.work(server)
        server.stop()
        listener.hear_until(lambda said: "STOPPING" in said)
        server.start()
        tokens = self.api(server, token=TOKEN).engine("e")["tokens"]
        self.assertEqual(tokens, 600_000)
        server.kill()
        server.start()
        self.assertEqual(self.api(server, token=TOKEN).engine("e")["tokens"], tokens)

    def work(self, server):
        api = self.api(server, token=TOKEN)
        self.created(api, "e", nodes=50, batch=100)
        tokens = oracle.gen(1, 600_000, 1000)
        self.fed(api, "e", pack(tokens[:1000]), key="small")
        events = [threading.Thread(target=self.listen, args=(server,)) for _ in range(3)]
        for thread in events:
            thread.start()
        answer = self.fed(api, "e", pack(tokens[1000:]), key="large", cuts=[70_000, 1])
        self.assertEqual(answer["seal"], oracle.seal(tokens))
        for thread in events:
            thread.join()
        for target in ("/metrics", "/v1/info", "/v1/engines", "/v1/engines/e/state?format=npy",
                       "/v1/engines/e/batches?limit=10", "/openapi.json", "/nothing"):
            self.assertIn(api.get(target).status, (200, 404), target)
        self.assertEqual(report_of(api.engine("e"))["tokens"], 600_000)
        self.created(api, "gone", nodes=5)
        self.assertEqual(api.call("DELETE", "/v1/engines/gone").status, 204)

    def listen(self, server):
        with socket.create_connection(("127.0.0.1", server.port), TIMEOUT_S) as wire:
            wire.sendall(request("GET", "/v1/engines/e/events", server.host,
                                 [("Authorization", f"Bearer {TOKEN}")]))
            found = b""
            while b"event: engine" not in found:
                piece = wire.recv(4096)
                assert piece, found
                found += piece

    def test_filter_forbids_needed_calls(self):
        """The same without one call that a server needs: it must not start."""
        if SANITIZED:
            self.skipTest("a sanitizer uses calls of its own")
        text = self.service.read_text(encoding="utf-8")
        for call in ("epoll_create1", "flock"):
            os.environ["IRON_TEST_FORBID"] = call
            self.addCleanup(os.environ.pop, "IRON_TEST_FORBID", None)
            with self.assertRaises(NotServing) as caught:
                self.start(text, wrapper=["python3", str(CONFINED), str(self.service)])
            self.assertIn("not permitted", " ".join(caught.exception.lines))

    def test_calls_allowed_by_the_filter(self):
        done = subprocess.run(["python3", "-c", f"import sys; sys.path.insert(0, '{CONFINED.parent}')\n"
                               f"import confined, json\nprint(json.dumps(sorted(confined.allowed("
                               f"'{self.service}'))))"], capture_output=True, check=True,
                              env=environment(), timeout=TIMEOUT_S)
        left = set(json.loads(done.stdout))
        self.assertFalse(left & {"mount", "ptrace", "bpf", "setuid", "chown", "reboot", "kexec_load",
                                 "init_module", "perf_event_open", "add_key", "process_vm_readv",
                                 "userfaultfd", "unshare", "setns", "chroot", "swapon",
                                 "io_uring_setup", "memfd_create", "pipe2", "setrlimit"})
        self.assertLessEqual({"read", "write", "fdatasync", "accept4", "clone3", "mmap"}, left)


class Secrets(ServerTest):
    """A credential as systemd makes it: 0400 and owned by us, or by root with an access list."""

    def start(self, is_fine):
        server = self.server("--token-file", self.token)
        if is_fine:
            server.start()
            return server.stop()
        with self.assertRaises(NotServing) as caught:
            server.start()
        self.assertEqual(caught.exception.code, 2)
        self.assertRegex(caught.exception.lines[0], r"^iron: token file .*others may read")
        return None

    def setUp(self):
        super().setUp()
        self.token = self.write("token", TOKEN.encode())

    def give(self, mode, *entries):
        """The file's mode and access list: (tag, permissions, number), except for entries of the
        mode."""
        self.token.chmod(0o600)
        if not entries:
            self.token.chmod(mode)
            return
        rows = {(tag, number): rights for tag, rights, number in
                ((OWNER, READ, NOBODY), (GROUP, 0, NOBODY), (OTHER, 0, NOBODY), *entries)}
        text = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", tag, rows[tag, number], number)
                                               for tag, number in sorted(rows))
        try:
            os.setxattr(self.token, "system.posix_acl_access", text)
        except OSError as why:
            self.skipTest(f"no access lists on this file system: {why}")

    def test_modes(self):
        for mode, is_fine in ((0o400, True), (0o600, True), (0o440, False), (0o404, False),
                              (0o420, False)):
            with self.subTest(mode=oct(mode)):
                self.give(mode)
                self.start(is_fine)

    def test_access_lists(self):
        mine, other = os.geteuid(), os.geteuid() + 4711
        for what, is_fine, entries in (
                ("this user", True, [(USER, READ, mine), (MASK, READ, NOBODY)]),
                ("another user", False, [(USER, READ, other), (MASK, READ, NOBODY)]),
                ("both", False, [(USER, READ, mine), (USER, READ, other), (MASK, READ, NOBODY)]),
                ("a group", False, [(USER, READ, mine), (NAMED_GROUP, READ, 0),
                                    (MASK, READ, NOBODY)]),
                ("the file's group", False, [(USER, READ, mine), (GROUP, READ, NOBODY),
                                             (MASK, READ, NOBODY)]),
                ("a user with nothing", True, [(USER, READ, mine), (USER, 0, other),
                                               (MASK, READ, NOBODY)])):
            with self.subTest(what=what):
                self.give(None, *entries)
                self.assertEqual(os.stat(self.token).st_mode & 0o777, 0o440)
                self.start(is_fine)
