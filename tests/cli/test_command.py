# SPDX-License-Identifier: MIT
"""How the command behaves: help, reports, read-outs, signals, terminals, files.

Results are tested by test_golden and test_properties, invalid input by test_errors.  This module
tests the rest of the documented behaviour:

  * `--help` and `--version` anywhere, `--json` as one document and nothing else,
  * the keys of the reports, and a state read out as text, JSON, CSV and NPY,
  * an empty stream is valid,
  * a closed pipe prints no error; an interrupt leaves no partial files,
  * progress only on a terminal, no colour with NO_COLOR,
  * a state is replaced in one step, with the permissions the umask gives.
"""

import ast
import csv
import fcntl
import io
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import unittest

from harness import (CPU_MODES, FEED_KEYS, TIMEOUT_S, IronTest, floats32, npy, oracle, pack,
                     parse_json, start, unpack)

SUBCOMMANDS = ("info", "gen", "feed", "state", "quantize", "arena", "selftest",
               "sum", "check", "merge")
STATE_KEYS = ("xor_accumulators", "potentials", "activations", "nodes", "vocab", "batch",
              "positions", "lattice", "tokens", "batches", "xor", "sum", "state")
GRACE_S = 300  # how long an interrupted command may take to clean up


class Help(IronTest):
    def test_version(self):
        self.assertRegex(self.succeeds("--version").text, r"\A[^\n]*\d+\.\d+[^\n]*\n\Z")

    def test_help(self):
        text = self.succeeds("--help").text
        self.assertRegex(text.lower(), "usage")
        for name in SUBCOMMANDS:
            self.assertIn(name, text)

    def test_help_of_each_subcommand(self):
        for name in SUBCOMMANDS:
            with self.subTest(name=name):
                text = self.succeeds(name, "--help").text
                self.assertRegex(text.lower(), "usage")
                self.assertIn(f"iron {name}", text)

    def test_help_as_a_command(self):
        self.assertEqual(self.succeeds("help").text, self.succeeds("--help").text)
        for name in SUBCOMMANDS:
            self.assertEqual(self.succeeds("help", name).text, self.succeeds(name, "--help").text)
        self.refused("help", "frobnicate", says="frobnicate")

    def test_help_of_feed_names_its_options(self):
        text = self.succeeds("feed", "--help").text
        for option in ("--vocab", "--nodes", "--batch", "--positions", "--lattice",
                       "--activations", "--mode", "--seal", "--state", "--resume", "--dtype",
                       "--format", "--threads", "--backend", "--device", "--memory", "--json"):
            self.assertIn(option, text)

    def test_info(self):
        self.assertTrue(self.succeeds("info").text)
        info = self.json("info")
        self.assertIsInstance(info, dict)
        self.assertEqual([c["name"] for c in info["codecs"]],
                         ["zstd", "gzip", "xz", "lz4", "snappy"])
        for library in [*info["codecs"], info["remote"]]:
            self.assertIsInstance(library["available"], bool)
            self.assertTrue(library["library"] and library["package"])

    def test_selftest(self):
        """CPU only; the CTest test `selftest` covers all devices and takes half a minute."""
        cpu_only = {"IRON_CUDA_LIBRARY": "none", "IRON_OPENCL_LIBRARY": "none"}
        self.succeeds("selftest", "--quick", env=cpu_only)


class FeedReport(IronTest):
    def setUp(self):
        super().setUp()
        self.values = oracle.gen(3, 1000, 50257)
        self.tokens = self.write_tokens("tokens.bin", self.values)
        self.engine = oracle.Engine(oracle.Config(nodes=16, batch=64)).feed(self.values)
        self.options = ["--dtype", "u32", "--nodes", 16, "--batch", 64]

    def test_keys(self):
        report = self.feed(self.tokens, *self.options)
        self.assertEqual([], [k for k in FEED_KEYS if k not in report])
        self.assertIsNone(report.get("seal"))
        self.assert_report(self.engine.report(), report)

    def test_types(self):
        report = self.feed(self.tokens, *self.options, "--seal")
        self.assertIsInstance(report["tokens"], int)
        self.assertIsInstance(report["batches"], int)
        self.assertRegex(report["xor"], r"\A[0-9a-f]{8}\Z")
        self.assertRegex(report["sum"], r"\A(0|[1-9][0-9]*)\Z")
        self.assertRegex(report["state"], r"\A[0-9a-f]{16}\Z")
        self.assertRegex(report["seal"], r"\A[0-9a-f]{32}\Z")
        self.assertEqual(report["backend"], "cpu")
        self.assertIsInstance(report["device"], str)
        self.assertTrue(report["mode_reason"])
        for key in ("seconds", "gb_per_s", "setup_seconds"):
            self.assertIsInstance(report[key], (int, float))
            self.assertGreaterEqual(report[key], 0)

    def test_mode_reports_the_mode_used(self):
        for mode in CPU_MODES[1:]:
            self.assertEqual(self.feed(self.tokens, *self.options, "--mode", mode)["mode"], mode)
        self.assertIn(self.feed(self.tokens, *self.options)["mode"], CPU_MODES[1:])

    def test_slow_mode_warns_before_it_runs(self):
        path = self.write("many.bin", bytes(4 * 100_000))
        note = self.first_line("feed", path, "--dtype", "u32", "--nodes", 2**20, "--mode", "node",
                               "--backend", "cpu", "--threads", 1)
        self.assertRegex(note, r"\Airon: note: mode node .*about \d+ minutes; .*champion.*\n\Z")

    def test_json_is_one_document(self):
        out = self.succeeds("feed", self.tokens, *self.options, "--json").out
        self.assertTrue(out.endswith(b"\n"))
        self.assertIsInstance(parse_json(out), dict)

    def test_text_report(self):
        text = self.succeeds("feed", self.tokens, *self.options, "--seal").text
        report = self.engine.report()
        for word in (report["xor"], report["sum"], report["state"], oracle.seal(self.values)):
            self.assertIn(word, text)

    def test_options_may_come_first(self):
        result = self.succeeds("feed", "--json", *self.options, self.tokens)
        self.assert_report(self.engine.report(), parse_json(result.out))

    def test_names_that_need_escaping(self):
        for name in ('quote"back\\slash', "tab\there", "new\nline", "umlaut-\u00fc"):
            with self.subTest(name=name):
                path = self.write_tokens(name, self.values)
                self.assert_report(self.engine.report(), self.feed(path, *self.options))

    def test_name_that_is_not_utf8(self):
        path = os.fsencode(self.dir) + b"/broken-\xff\xfe"
        with open(path, "wb") as file:
            file.write(pack(self.values))
        self.assert_report(self.engine.report(), self.feed(path, *self.options))

    def test_file_order_of_a_directory_is_printed(self):
        for number in (10, 2, 1):
            self.write_tokens(f"corpus/part-{number}.bin", [number])
        result = self.iron("feed", "corpus", "--dtype", "u32")
        said = result.text + result.message
        self.assertEqual(result.code, 0, str(result))
        places = [said.find(f"part-{n}.bin") for n in (1, 2, 10)]
        self.assertTrue(-1 not in places and places == sorted(places), said)

    def test_no_escape_codes_without_a_terminal(self):
        for args in (["feed", self.tokens, *self.options], ["info"], ["--help"]):
            self.assertNotIn(b"\x1b", self.succeeds(*args).out)


class EmptyStream(IronTest):
    def check_empty(self, *args, stdin=b"", **config):
        engine = oracle.Engine(oracle.Config(**config))
        report = self.feed(*args, "--dtype", "u32", "--seal", stdin=stdin)
        self.assert_report(dict(engine.report(), seal=oracle.seal([])), report)
        self.assertEqual((report["tokens"], report["batches"]), (0, 0))

    def test_from_a_pipe_and_a_file(self):
        self.check_empty("-")
        self.check_empty(self.write("empty.bin", b""))
        self.check_empty(self.write("a.bin", b""), self.write("b.bin", b""))
        self.check_empty("-", "--nodes", 5, nodes=5)

    def test_in_every_mode(self):
        for mode in CPU_MODES:
            with self.subTest(mode=mode):
                self.check_empty("-", "--mode", mode)

    def test_from_dev_null(self):
        with open("/dev/null", "rb") as null:
            self.check_empty("-", stdin=null)

    def test_empty_state_can_be_saved_and_resumed(self):
        engine = oracle.Engine(oracle.Config(nodes=5, batch=3))
        self.feed("-", "--dtype", "u32", "--nodes", 5, "--batch", 3, "--state", "run.state")
        self.assert_nodes(engine, self.read_state("run.state"))
        report = self.feed("-", "--resume", "run.state", "--dtype", "u32", stdin=pack([9] * 10))
        self.assert_report(engine.feed([9] * 10).report(), report)


class ReadOut(IronTest):
    """`iron state` of one saved engine in all four forms."""

    def setUp(self):
        super().setUp()
        activations = tuple(floats32([0.1, -2.5, 1e30, 3e-20, 0.0, -7.0, 1 / 3]))
        self.config = oracle.Config(1000, 7, 32, "batch", (2, 9, 40, 77), activations)
        self.engine = oracle.Engine(self.config).feed(oracle.gen(4, 500, 2**32))
        self.write("activations.npy", npy(activations))
        self.feed("-", "--dtype", "u32", "--vocab", 1000, "--nodes", 7, "--batch", 32,
                  "--positions", "batch", "--lattice", "2,9,40,77", "--activations",
                  "activations.npy", "--state", "run.state",
                  stdin=pack(oracle.gen(4, 500, 2**32)))

    def test_json(self):
        state = self.read_state("run.state")
        self.assertEqual([], [k for k in STATE_KEYS if k not in state])
        self.assert_report(self.engine.report(), state)
        self.assert_nodes(self.engine, state)
        self.assertEqual([state[k] for k in ("nodes", "vocab", "batch", "positions", "lattice")],
                         [7, 1000, 32, "batch", [2, 9, 40, 77]])

    def test_text(self):
        self.assertIn(self.engine.report()["state"], self.succeeds("state", "run.state").text)

    def test_csv(self):
        text = self.succeeds("state", "run.state", "--csv").text
        self.assertTrue(text.startswith("node,xor_accumulators,potentials,activations\n"), text)
        rows = list(csv.reader(io.StringIO(text)))[1:]
        self.assertEqual([int(row[0]) for row in rows], list(range(7)))
        self.assert_nodes(self.engine, {
            "xor_accumulators": [int(row[1]) for row in rows],
            "potentials": [float(row[2]) for row in rows],
            "activations": [float(row[3]) for row in rows]})

    def test_npy(self):
        (self.dir / "arrays").mkdir()
        self.succeeds("state", "run.state", "--npy", "arrays")
        self.assertEqual(sorted(p.name for p in (self.dir / "arrays").iterdir()),
                         ["activations.npy", "potentials.npy", "xor_accumulators.npy"])
        self.assert_nodes(self.engine, {
            "xor_accumulators": self.read_npy("xor_accumulators", "<u4", "I"),
            "potentials": self.read_npy("potentials", "<f4", "f"),
            "activations": self.read_npy("activations", "<f4", "f")})

    def read_npy(self, name: str, descr: str, letter: str) -> list:
        """The values of a version 1.0 file; checks its header."""
        data = (self.dir / "arrays" / f"{name}.npy").read_bytes()
        self.assertEqual(data[:8], b"\x93NUMPY\x01\x00")
        begin = 10 + struct.unpack("<H", data[8:10])[0]
        self.assertEqual(begin % 64, 0, "the data must be aligned to 64 bytes")
        self.assertTrue(data[:begin].endswith(b"\n"))
        header = ast.literal_eval(data[10:begin].decode("ascii").strip())
        self.assertEqual(header, {"descr": descr, "fortran_order": False, "shape": (7,)})
        self.assertEqual(len(data), begin + 7 * 4)
        return list(struct.unpack(f"<7{letter}", data[begin:]))

    def test_npy_feeds_back_as_activations(self):
        (self.dir / "arrays").mkdir()
        self.succeeds("state", "run.state", "--npy", "arrays")
        self.feed("-", "--dtype", "u32", "--nodes", 7, "--activations", "arrays/activations.npy",
                  "--state", "next.state")
        self.assertEqual(self.read_state("run.state")["activations"],
                         self.read_state("next.state")["activations"])


class Quantize(IronTest):
    def points(self, *args, stdin=b"") -> list[float]:
        return [float(line) for line in self.succeeds("quantize", *args, stdin=stdin).text.splitlines()]

    def test_real_is_the_default(self):
        values = [0, 0.25, 11, 11.5, 39, 39.5, 447, 447.5, 1e6]
        expected = [oracle.quantize_real(oracle.DEFAULT_LATTICE, v) for v in values]
        self.assertEqual(expected, self.points(*values))
        self.assertEqual(expected, self.points("--kind", "real", *values))

    def test_negative_values(self):
        self.assertEqual([-7, -15, 7, -511], self.points("-0.25", "-11.5", "7", "-9999"))
        self.assertEqual([-7], self.points("-1"))
        self.assertEqual([-7], self.points("--kind", "real", "-1"))

    def test_standard_input(self):
        self.assertEqual([7, -7, 0, 511], self.points("-", stdin=b"7\n-0.5\n0\n512\n"))
        self.assertEqual([7, 15], self.points("-", stdin=b"7\n15"))

    def test_xor(self):
        values = list(range(0, 1200, 7)) + [2**32 - 1, 2**31]
        expected = [oracle.quantize_xor(oracle.DEFAULT_LATTICE, v) for v in values]
        self.assertEqual(expected, self.points("--kind", "xor", *values))
        stdin = "".join(f"{v}\n" for v in values).encode()
        self.assertEqual(expected, self.points("--kind", "xor", "-", stdin=stdin))

    def test_lattice(self):
        for lattice in ((1, 2), (3, 10, 100, 1000, 4000), (1, 65535), tuple(range(2, 130, 2))):
            values = [v / 4 for v in range(-45, 500, 11)]
            option = ["--lattice", ",".join(map(str, lattice))]
            with self.subTest(lattice=lattice):
                self.assertEqual([oracle.quantize_real(lattice, v) for v in values],
                                 self.points(*option, *values))
                whole = range(0, 5000, 97)
                self.assertEqual([oracle.quantize_xor(lattice, v) for v in whole],
                                 self.points("--kind", "xor", *option, *whole))


class Gen(IronTest):
    def args(self, seed, count, limit, *more) -> list:
        return ["gen", "--seed", seed, "--count", count, "--limit", limit, *more]

    def test_equals_the_oracle(self):
        for seed, count, limit, dtype in ((1, 1000, 50257, "u32"), (0, 17, 2**32, "u32"),
                                          (2**64 - 1, 4099, 3, "u16"), (7, 70001, 65536, "u16"),
                                          (7, 1, 1, "u16"), (9, 0, 5, "u32")):
            with self.subTest(seed=seed, count=count, limit=limit, dtype=dtype):
                expected = pack(oracle.gen(seed, count, limit), dtype)
                args = self.args(seed, count, limit, "--dtype", dtype, "-o")
                self.assertEqual(expected, self.succeeds(*args, "-").out)
                self.succeeds(*args, "new.bin")
                self.assertEqual(expected, (self.dir / "new.bin").read_bytes())
                self.assertEqual(list(self.listing()), ["new.bin"])

    def test_any_limit_is_valid_without_dtype(self):
        out = self.succeeds(*self.args(1, 100, 2**32, "-o", "-")).out
        self.assertEqual(oracle.gen(1, 100, 2**32), unpack(out))

    def test_u16_limit(self):
        self.refused(*self.args(1, 10, 65537, "--dtype", "u16", "-o", "new.bin"))
        self.succeeds(*self.args(1, 10, 65536, "--dtype", "u16", "-o", "new.bin"))

    def test_existing_file_is_replaced_atomically(self):
        self.write("new.bin", bytes(100000))
        self.succeeds(*self.args(1, 10, 5, "--dtype", "u32", "-o", "new.bin"))
        self.assertEqual(pack(oracle.gen(1, 10, 5)), (self.dir / "new.bin").read_bytes())


class ClosedPipe(IronTest):
    """The reader closes the pipe, with SIGPIPE at its default (as in a shell) and ignored."""

    def stderr_after_closing(self, *args, keep=16, restore_signals=True) -> bytes:
        with start(*args, cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                   stdin=subprocess.DEVNULL, restore_signals=restore_signals) as command:
            self.assertEqual(len(command.stdout.read(keep)), keep)
            command.stdout.close()
            return command.stderr.read()

    def check_silent(self, *args):
        for restore in (True, False):
            with self.subTest(args=args[0], default_sigpipe=restore):
                self.assertEqual(b"", self.stderr_after_closing(*args, restore_signals=restore))

    def test_gen(self):
        self.check_silent("gen", "--seed", 1, "--count", 100000000, "--limit", 9, "-o", "-")

    def test_state(self):
        self.feed("-", "--dtype", "u32", "--nodes", 100000, "--state", "run.state")
        self.check_silent("state", "run.state", "--csv")
        self.check_silent("state", "run.state", "--json")


class Interrupt(IronTest):
    def wait_for_output(self, command: subprocess.Popen):
        """Waits until the command has a file in the folder open.  The file may have no name yet, so
        a listing of the folder would not show it."""
        folder, descriptors = os.path.realpath(self.dir) + os.sep, f"/proc/{command.pid}/fd"
        deadline = time.monotonic() + TIMEOUT_S
        while not any(self.link_target(descriptors, name).startswith(folder)
                      for name in os.listdir(descriptors)):
            self.assertIsNone(command.poll(), "the command ended before it opened its output")
            self.assertLess(time.monotonic(), deadline, "the command does not open its output")
            time.sleep(0.005)

    @staticmethod
    def link_target(folder: str, name: str) -> str:
        try:
            return os.readlink(os.path.join(folder, name))
        except OSError:  # closed meanwhile
            return ""

    def interrupt(self, command: subprocess.Popen):
        """Sends SIGINT; the command must end with a failure."""
        try:
            self.assertIsNone(command.poll(), "the command ended before the interrupt")
            command.send_signal(signal.SIGINT)
            self.assertNotEqual(command.wait(GRACE_S), 0)
        finally:
            command.kill()
            command.wait()

    def interrupt_gen(self, name: str):
        command = start("gen", "--seed", 1, "--count", 1000000000, "--limit", 50257, "--dtype",
                        "u32", "-o", name, cwd=self.dir, stderr=subprocess.DEVNULL)
        self.addCleanup(command.wait)
        self.addCleanup(command.kill)
        self.wait_for_output(command)
        self.interrupt(command)

    def test_interrupted_gen_leaves_no_files(self):
        self.interrupt_gen("new.bin")
        self.assertEqual(self.listing(), {})

    def test_interrupted_gen_keeps_the_old_file(self):
        self.write("old.bin", b"precious")
        self.interrupt_gen("old.bin")
        self.assertEqual(self.listing(), {"old.bin": b"precious"})

    def interrupt_feed(self, *options):
        """A feed whose pipe has delivered something and then stalls."""
        command = start("feed", "-", "--dtype", "u32", "--nodes", 4, "--batch", 16, "--state",
                        "run.state", *options, cwd=self.dir, stdin=subprocess.PIPE,
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        command.stdin.write(bytes(100003))
        command.stdin.flush()
        self.wait_until_read(command.stdin)
        self.interrupt(command)
        command.stdin.close()

    def wait_until_read(self, pipe):
        """Waits until the command has read everything written to the pipe."""
        deadline, unread = time.monotonic() + TIMEOUT_S, bytes(4)
        while int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, unread), sys.byteorder) > 0:
            self.assertLess(time.monotonic(), deadline, "the command does not read its input")
            time.sleep(0.005)

    def test_interrupted_feed_leaves_no_files(self):
        self.interrupt_feed()
        self.assertEqual(self.listing(), {})

    def test_interrupted_feed_keeps_the_old_state(self):
        self.feed("-", "--dtype", "u32", "--nodes", 4, "--batch", 16, "--state", "run.state",
                  stdin=bytes(400))
        before = self.listing()
        self.interrupt_feed("--threads", 4)
        self.assertEqual(before, self.listing())


class Terminal(IronTest):
    """Progress and colour, with a pseudo-terminal as standard error."""

    def open_terminal(self) -> tuple[int, int]:
        try:
            return pty.openpty()
        except OSError as error:  # a container without /dev/pts
            self.skipTest(f"no pseudo-terminal available: {error}")

    def read_terminal(self, fd: int, seconds: float) -> bytes:
        """Reads from the terminal's other end until it closes or the time is over."""
        deadline, seen = time.monotonic() + seconds, b""
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([fd], [], [], left)[0]:
                break
            try:
                data = os.read(fd, 4096)
            except OSError:  # the command has closed the terminal
                break
            if not data:
                break
            seen += data
        return seen

    def feed_slowly(self, command: subprocess.Popen, terminal: int) -> bytes:
        """Two seconds of a slow pipe, then its end."""
        seen = b""
        for _ in range(20):
            command.stdin.write(bytes(1 << 20))
            command.stdin.flush()
            seen += self.read_terminal(terminal, 0.1)
        command.stdin.close()
        return seen + self.read_terminal(terminal, TIMEOUT_S)

    def on_terminal(self, *options, env=None) -> tuple:
        """Runs a slow feed; returns (standard output, what the terminal saw)."""
        leader, follower = self.open_terminal()
        with os.fdopen(leader, "rb", buffering=0):
            with start("feed", "-", "--dtype", "u32", *options, cwd=self.dir, stderr=follower,
                       env={"TERM": "xterm", "COLUMNS": "80", **(env or {})},
                       stdin=subprocess.PIPE, stdout=subprocess.PIPE) as command:
                os.close(follower)
                seen = self.feed_slowly(command, leader)
                out = command.stdout.read()
        self.assertEqual(command.returncode, 0, (out, seen))
        return out, seen

    def test_progress_on_a_terminal(self):
        out, seen = self.on_terminal("--json")
        self.assertNotEqual(seen.strip(), b"")
        self.assertEqual(parse_json(out)["tokens"], 20 << 18)

    def test_no_color_disables_colour(self):
        _, seen = self.on_terminal(env={"NO_COLOR": "1"})
        self.assertNotRegex(seen, rb"\x1b\[[0-9;]*m")

    def test_no_progress_without_a_terminal(self):
        with start("feed", "-", "--dtype", "u32", "--json", cwd=self.dir, stdin=subprocess.PIPE,
                   stdout=subprocess.PIPE, stderr=subprocess.PIPE) as command:
            for _ in range(15):
                command.stdin.write(bytes(1 << 20))
                command.stdin.flush()
                time.sleep(0.1)
            out, err = command.communicate()
        self.assertEqual((command.returncode, err), (0, b""))
        self.assertNotIn(b"\x1b", out)

    def test_errors_on_a_terminal_honour_no_color(self):
        leader, follower = self.open_terminal()
        with os.fdopen(leader, "rb", buffering=0):
            with start("feed", "absent", "--dtype", "u32", stderr=follower, cwd=self.dir,
                       env={"TERM": "xterm", "NO_COLOR": "1"}, stdout=subprocess.PIPE) as command:
                os.close(follower)
                seen = self.read_terminal(leader, TIMEOUT_S)
        self.assertEqual(command.returncode, 2)
        self.assertTrue(seen.startswith(b"iron: "), seen)
        self.assertNotIn(b"\x1b", seen)


class StateFiles(IronTest):
    FEED = ("feed", "-", "--dtype", "u32", "--nodes", 4, "--state")

    def test_permissions_follow_the_umask(self):
        for umask, mode in ((0o022, 0o644), (0o077, 0o600), (0o002, 0o664), (0o027, 0o640)):
            with self.subTest(umask=oct(umask)):
                name = f"{umask:o}.state"
                self.succeeds(*self.FEED, name, stdin=pack([1, 2, 3]), umask=umask)
                self.assertEqual((self.dir / name).stat().st_mode & 0o777, mode)

    def test_old_state_is_replaced_atomically(self):
        path = self.dir / "run.state"
        self.succeeds(*self.FEED, path, stdin=pack([1, 2, 3]))
        old, old_bytes = path.stat(), path.read_bytes()
        os.link(path, self.dir / "link.state")
        self.succeeds(*self.FEED, path, stdin=pack([4, 5, 6, 7]))
        self.assertNotEqual(old.st_ino, path.stat().st_ino, "written in place, not renamed")
        self.assertEqual(old_bytes, (self.dir / "link.state").read_bytes())
        self.assertEqual(self.read_state(path)["tokens"], 4)
        self.assertEqual(sorted(self.listing()), ["link.state", "run.state"])

    def test_any_old_file_is_replaced(self):
        path = self.write("run.state", b"not a state")
        self.succeeds(*self.FEED, path, stdin=pack([1]))
        self.assertEqual(self.read_state(path)["tokens"], 1)

    def test_resuming_and_saving_to_the_same_file(self):
        self.succeeds(*self.FEED, "run.state", stdin=pack([1, 2]))
        self.succeeds("feed", "-", "--dtype", "u32", "--resume", "run.state", "--state",
                      "run.state", stdin=pack([3]))
        self.assertEqual(self.read_state("run.state")["tokens"], 3)
        self.assertEqual(sorted(self.listing()), ["run.state"])


if __name__ == "__main__":
    unittest.main()
