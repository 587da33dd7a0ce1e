# SPDX-License-Identifier: MIT
"""The server under a service manager: socket activation, notifications and the watchdog.

The manager is the test itself (managed.py); one test uses systemd-socket-activate where it is
installed.
"""

import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import threading

from api import ServerTest
from harness import IRON, TIMEOUT_S, environment, oracle, pack
from managed import Listener, handed, held, short_busy_timeout, why_not_held
from serving import NotServing, wait_until
from wire import ANSWER_S

TOKEN = b"0123456789abcdef0123456789abcdef\n"
GET = b"GET /v1/engines/e HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


class ManagedTest(ServerTest):
    def listening(self, address="127.0.0.1", family=socket.AF_INET):
        found = socket.create_server((address, 0), family=family)
        self.addCleanup(found.close)
        return found

    def hearing(self, address=None) -> Listener:
        listener = Listener(address or str(self.dir / "notify"))
        self.addCleanup(listener.close)
        return listener

    def refused(self, *options, says, **how):
        """The server prints one line and exits with status 2."""
        server = self.server(*options, **how)
        with self.assertRaises(NotServing) as caught:
            server.start()
        self.assertEqual(caught.exception.code, 2, str(caught.exception))
        self.assertEqual(len(caught.exception.lines), 1, str(caught.exception))
        self.assertRegex(caught.exception.lines[0], rf"^iron: .*{says}", str(caught.exception))

    def client(self, port, request=GET):
        """A connection with a request sent, before any server accepts it."""
        wire = socket.create_connection(("127.0.0.1", port), ANSWER_S)
        self.addCleanup(wire.close)
        wire.sendall(request)
        return wire

    @staticmethod
    def answer(wire) -> bytes:
        found = b""
        while piece := wire.recv(65536):
            found += piece
        return found

    def with_history(self) -> dict:
        """Leaves an engine without a snapshot, so that the next start must replay it."""
        server = self.serve()
        api = self.api(server)
        self.created(api, "e", nodes=20, vocab=100, batch=1)
        for k in range(4):
            self.fed(api, "e", pack(oracle.gen(k, 10_000, 1000)))
        before = api.engine("e")
        self.assertEqual(before["batches"], 40_000)
        server.kill()
        return before


class Activated(ManagedTest):
    def test_passed_socket_is_used(self):
        listening = self.listening()
        server = self.serve(**handed([listening]))
        self.assertEqual(server.port, listening.getsockname()[1])
        api = self.api(server)
        self.created(api, "e", nodes=1)
        self.assertEqual(self.fed(api, "e", pack([1, 2]))["tokens"], 2)

    def test_connections_wait_between_two_servers(self):
        """The socket stays open when the server ends: no connection is refused in between."""
        listening = self.listening()
        server = self.serve(**handed([listening]))
        self.created(self.api(server), "e", nodes=1)
        for end in (server.stop, server.kill):
            end()
            wires = [self.client(listening.getsockname()[1]) for _ in range(5)]
            server.start()
            for wire in wires:
                self.assertRegex(self.answer(wire), rb'(?s)\AHTTP/1.1 200 .*"name": "e"')

    def test_ipv6_loopback(self):
        try:
            listening = self.listening("::1", socket.AF_INET6)
        except OSError as why:
            self.skipTest(f"IPv6 is not available: {why}")
        server = self.serve(**handed([listening]))
        self.assertRegex(server.lines[0], rf"http://\[::1\]:{server.port}, ")

    def test_public_address_requires_a_token(self):
        for address, family in (("0.0.0.0", socket.AF_INET), ("::", socket.AF_INET6)):
            try:
                listening = self.listening(address, family)
            except OSError:
                continue  # IPv6 is not available
            self.refused(says=f"listen '{address}': .*token", **handed([listening]))
        token = self.write("token", TOKEN)
        token.chmod(0o600)
        server = self.serve("--token-file", token, **handed([self.listening("0.0.0.0")]))
        self.assertEqual(self.api(server).get("/v1/info").status, 401)
        self.assertEqual(self.api(server, token=TOKEN.decode().strip()).get("/v1/info").status, 200)

    def test_unusable_sockets_are_refused(self):
        with socket.socket(socket.AF_UNIX) as local:
            local.bind(str(self.dir / "local"))
            local.listen()
            self.refused(says="file system.*ListenStream=", **handed([local]))
        with socket.socket() as idle:
            idle.bind(("127.0.0.1", 0))
            self.refused(says="does not listen", **handed([idle]))
        with socket.socket(type=socket.SOCK_DGRAM) as datagrams:
            datagrams.bind(("127.0.0.1", 0))
            self.refused(says="does not listen", **handed([datagrams]))
        with open(self.write("file", b"x"), "rb") as file:
            self.refused(says="descriptor 3 .*not a socket", **handed([file]))
        self.refused(says="2 sockets.*one", **handed([self.listening(), self.listening()]))

    def test_socket_and_listen_option_are_refused(self):
        how = {**handed([self.listening()]), "listen": "127.0.0.1:0"}
        self.refused(says="'127.0.0.1:0'.*passed.*leave --listen out", **how)

    def test_invalid_variables_are_refused(self):
        for name, value, says in (
                ("LISTEN_PID", "me", "LISTEN_PID is 'me'"),
                ("LISTEN_FDS", "-1", "LISTEN_FDS is '-1'"),
                ("WATCHDOG_USEC", "1s", "WATCHDOG_USEC is '1s'"),
                ("WATCHDOG_USEC", "9" * 30, "WATCHDOG_USEC is"),
                ("WATCHDOG_PID", "", "WATCHDOG_PID is ''"),
                ("NOTIFY_SOCKET", "vsock:2:1", "NOTIFY_SOCKET is 'vsock:2:1'"),
                ("NOTIFY_SOCKET", "/" + "x" * 200, "NOTIFY_SOCKET has 201 bytes")):
            with self.subTest(name=name, value=value):
                self.refused(says=says, env={name: value})

    def test_socket_for_another_process_is_ignored(self):
        server = self.serve(env={"LISTEN_PID": "1", "LISTEN_FDS": "1"})
        self.assertEqual(self.api(server).get("/readyz").status, 200)

    def test_systemd_socket_activate(self):
        tool = shutil.which("systemd-socket-activate")
        if not tool:
            self.skipTest("systemd-socket-activate is not installed (Debian: systemd)")
        listener = self.hearing()
        process, port = self.socket_activate(
            tool, "-E", f"NOTIFY_SOCKET={listener.address}", "-E", "IRON_CUDA_LIBRARY=none",
            "-E", "IRON_OPENCL_LIBRARY=none", "-E", "ASAN_OPTIONS=detect_leaks=0",
            IRON, "serve", "--data", str(self.dir / "data"))
        with process:
            self.addCleanup(process.kill)
            socket.create_connection(("127.0.0.1", port), ANSWER_S).close()  # starts the server
            listener.hear_until(lambda said: said.get("READY") == "1")
            wire = self.client(port, GET.replace(b"/v1/engines/e", b"/readyz"))
            self.assertRegex(self.answer(wire), rb"\AHTTP/1.1 200 ")
            process.terminate()
            listener.hear_until(lambda said: said.get("STOPPING") == "1")
            said = process.communicate(timeout=TIMEOUT_S)[1]
        self.assertEqual(process.returncode, 0, said)

    def socket_activate(self, tool, *command) -> tuple:
        """Starts the tool on a free port; returns (process, port).  The tool does not accept port
        0, so another process may take the port first; then another port is tried."""
        for _ in range(20):
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            process = subprocess.Popen([tool, "-l", f"127.0.0.1:{port}", *command],
                                       stderr=subprocess.PIPE, env=environment())
            line = process.stderr.readline()
            if line.startswith(b"Listening on"):
                return process, port
            line += process.communicate(timeout=TIMEOUT_S)[1]
            self.assertIn(b"Address already in use", line)
        raise AssertionError("every port was taken by another process")


class Notifications(ManagedTest):
    def test_ready_only_after_the_replay(self):
        """While fsync blocks the start, the server sends neither READY nor a response."""
        if why_not_held():
            self.skipTest(why_not_held())
        before, listening, listener = self.with_history(), self.listening(), self.hearing()
        hold = self.write("hold", b"")
        server = self.server(**handed([listening]),
                             env={"NOTIFY_SOCKET": listener.address, **held(hold)})
        starting = threading.Thread(target=server.start)
        wire = self.client(listening.getsockname()[1])
        starting.start()
        try:
            wire.settimeout(0.5)
            with self.assertRaises(TimeoutError):
                wire.recv(1)
            self.assertFalse([s for s in listener.rest() if "READY" in s], listener.heard)
        finally:
            hold.unlink()
        said = listener.hear_until(lambda s: "READY" in s)
        wire.settimeout(ANSWER_S)
        self.assertIn(f'"state": "{before["state"]}"'.encode(), self.answer(wire))
        starting.join()
        self.assertEqual(server.engines, 1)
        replaying = [s for s in said if s.get("STATUS", "").startswith("replaying engine e (1 of 1)")]
        self.assertTrue(replaying, said)
        self.assertTrue(all(int(s["EXTEND_TIMEOUT_USEC"]) > 0 for s in replaying), said)
        self.assertEqual(said[-1]["STATUS"], f"serving {server.url}, 1 engine")

    def test_status_from_start_to_stop(self):
        """Through a socket with a path and one with an abstract name.  The status is sent every two
        seconds, so both servers run at the same time."""
        started = []
        for address in (None, f"@iron-test-{os.getpid()}-{id(self)}"):
            listener = self.hearing(address)
            server = self.serve(env={"NOTIFY_SOCKET": listener.address}, data=f"at{not address}")
            self.assertEqual(listener.hear_until(lambda s: "READY" in s)[-1],
                             {"READY": "1", "STATUS": f"serving {server.url}, 0 engines"})
            self.created(self.api(server), "e", nodes=1)
            started.append((listener, server))
        for listener, server in started:
            listener.hear_until(lambda s: s.get("STATUS", "").endswith(", 1 engine"))
            server.stop()
            said = listener.hear_until(lambda s: "STOPPING" in s)
            self.assertEqual(said[-1]["STATUS"], "stopping: requests in flight have 10 s")
            self.assertFalse([s for s in listener.heard + listener.rest() if "WATCHDOG" in s])

    def test_failed_start_is_reported(self):
        listener = self.hearing()
        self.write("data", b"a file")
        self.refused(says="not a directory", env={"NOTIFY_SOCKET": listener.address})
        said = listener.hear_until(lambda s: "STATUS" in s)
        self.assertRegex(said[-1]["STATUS"], r"\Arefused: .*not a directory")
        self.assertFalse([s for s in listener.heard + listener.rest() if "READY" in s])

    def test_missing_manager_is_logged_once(self):
        """The server works without a manager to notify."""
        server = self.serve(env={"NOTIFY_SOCKET": str(self.dir / "missing"),
                                 "WATCHDOG_USEC": "30000"})
        self.assertEqual(self.api(server).get("/readyz").status, 200)
        server.stop()
        noted = [line for line in server.said if "cannot notify the service manager" in line]
        self.assertEqual(len(noted), 1, server.said)

    def test_watchdog_for_another_process_is_ignored(self):
        listener = self.hearing()
        server = self.serve(env={"NOTIFY_SOCKET": listener.address, "WATCHDOG_USEC": "30000",
                                 "WATCHDOG_PID": "1"})
        server.stop()
        said = listener.hear_until(lambda s: "STOPPING" in s)
        self.assertFalse([s for s in said if "WATCHDOG" in s], said)

    def test_watchdog_messages_pause_while_the_disk_hangs(self):
        """No watchdog message is sent while a commit waits for the disk; they resume after it."""
        listener, hold = self.hearing(), self.dir / "hold"
        env = {"NOTIFY_SOCKET": listener.address, "WATCHDOG_USEC": "300000"}
        server = self.serve(env={**env, **({} if why_not_held() else held(hold))})
        for _ in range(3):
            listener.hear_until(lambda s: "WATCHDOG" in s)
        if why_not_held():
            self.skipTest(why_not_held())
        self.created(self.api(server), "e", nodes=1)
        hold.write_bytes(b"")
        feeding = threading.Thread(target=lambda: self.fed(self.api(server), "e", pack([1])))
        feeding.start()
        try:
            listener.hear_until(lambda s: "the disk has not responded" in s.get("STATUS", ""))
            quiet = [listener.hear() for _ in range(2)]  # status messages, whose seconds increase
            self.assertFalse([s for s in quiet if "WATCHDOG" in s], quiet)
        finally:
            hold.unlink()
        listener.hear_until(lambda s: "WATCHDOG" in s)
        feeding.join()
        self.assertEqual(self.api(server).engine("e")["tokens"], 1)

    def test_read_only_server_reports_the_reason(self):
        """Another process locks the database, and the server becomes read-only.  The manager is
        notified, and watchdog messages continue, because the server can still be read."""
        listener = self.hearing()
        server = self.serve(env={"NOTIFY_SOCKET": listener.address, **short_busy_timeout(),
                                 "WATCHDOG_USEC": str(3600 * 10**6)})
        api = self.api(server)
        self.created(api, "e", nodes=1)
        base = sqlite3.connect(server.data / "iron.db", isolation_level=None)
        base.execute("BEGIN IMMEDIATE")
        self.assert_problem(api.feed("e", pack([1])), "read-only")
        base.close()
        said = listener.hear_until(lambda s: s.get("STATUS", "").startswith("read-only: "))
        self.assertIn("cannot begin a transaction", said[-1]["STATUS"])
        listener.hear_until(lambda s: "WATCHDOG" in s)
        server.stop(code=2)


class Stop(ManagedTest):
    def test_signal_during_replay_stops_after_it(self):
        """The server finishes the replay, then stops cleanly."""
        if why_not_held():
            self.skipTest(why_not_held())
        before, listener = self.with_history(), self.hearing()
        hold = self.write("hold", b"")
        server = self.server(env={"NOTIFY_SOCKET": listener.address, **held(hold)})
        starting = threading.Thread(target=server.start)
        starting.start()
        wait_until("the process", lambda: server.process is not None)
        wait_until("signals are blocked", lambda: self.blocks_signals(server.process.pid))
        server.process.send_signal(signal.SIGTERM)
        hold.unlink()
        starting.join()
        listener.hear_until(lambda s: "STOPPING" in s)
        self.assertEqual(server.process.wait(TIMEOUT_S), 0)
        server._forget()  # pylint: disable=protected-access
        self.assertEqual(before, self.api(self.serve()).engine("e"))

    @staticmethod
    def blocks_signals(pid) -> bool:
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            blocked = [line for line in file if line.startswith("SigBlk:")]
        return bool(int(blocked[0].split()[1], 16) & 1 << (signal.SIGTERM - 1))
