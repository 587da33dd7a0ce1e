# SPDX-License-Identifier: MIT
"""Shared code of the tests of the command: running it and making its inputs.

The tests in this folder treat `iron` as a black box: arguments, bytes on standard
input, files, exit status, standard output and standard error.  They were written
from the documents, not from the code, and compare against the oracle
(tests/oracle/oracle.py) and the golden vectors (tests/golden/engine.json).

Environment:
  IRON                 path of the command; default build/iron at the top of the tree
  IRON_TEST_SANITIZED  1 in builds with a sanitizer: smaller samples, and no address-space
                       limits (a sanitizer reserves terabytes)
  IRON_TEST_SEED       another seed for the random cases
  IRON_TEST_PIPE_MIB   how much test_bounded sends through a pipe
  IRON_TEST_FULL       1 runs the full counts (make test-all); without it sweeps are reduced
  IRON_TEST_LONG       1 adds tests that take too long for CI (make test-long)
  IRON_TEST_CACHE      a cache folder to use and to keep; building kernels may take a minute

Built kernels and calibrations are kept in a cache folder that the tests of one run share.  It is
removed at the end unless IRON_TEST_CACHE names it; the home directory is not used.

`IronTest` is the base class.  Each test gets an empty folder of its own, `self.dir`,
which is also the command's working directory, so files that the command leaves
behind are detected.  `refused` checks the rule for errors: exit 2, nothing on standard
output, exactly one line on standard error that begins with `iron: `, and no file that
was not there before.
"""

import array
import atexit
import json
import os
import re
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
from dataclasses import dataclass
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
GOLDEN_PATH = REPO / "tests" / "golden" / "engine.json"
sys.path.insert(0, str(REPO / "tests" / "oracle"))

import oracle  # noqa: E402  (found through the path set above)

IRON = os.path.abspath(os.environ.get("IRON") or REPO / "build" / "iron")
SANITIZED = os.environ.get("IRON_TEST_SANITIZED") == "1"
LONG = os.environ.get("IRON_TEST_LONG") == "1"
FULL = LONG or os.environ.get("IRON_TEST_FULL") == "1"
REDUCED = SANITIZED or not FULL  # fewer cases and smaller files
SEED = int(os.environ.get("IRON_TEST_SEED", "20260131"))
TIMEOUT_S = 600  # reached only by a hung test

CPU_MODES = ("auto", "scalar", "vector", "threads", "champion", "node", "hybrid")
NODE_MODES = ("node", "hybrid")  # work grows with nodes x tokens: small cases only
REPORT_KEYS = ("tokens", "batches", "xor", "sum", "state")
FEED_KEYS = REPORT_KEYS + ("mode", "mode_reason", "backend", "device", "memory", "seconds",
                           "gb_per_s", "setup_seconds")

# struct letters of the raw token widths, and the largest token each can hold.
DTYPES = {"u8": "B", "u16": "H", "u32": "I", "i32": "i", "i64": "q"}
DTYPE_MAX = {"u8": 2**8 - 1, "u16": 2**16 - 1, "u32": 2**32 - 1, "i32": 2**31 - 1,
             "i64": 2**32 - 1}

CACHE = Path(os.environ.get("IRON_TEST_CACHE") or tempfile.mkdtemp(prefix="iron-cli-cache-"))
if not os.environ.get("IRON_TEST_CACHE"):
    atexit.register(shutil.rmtree, CACHE, ignore_errors=True)


@dataclass
class Result:
    """How one run of the command ended."""

    args: tuple
    code: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        return self.out.decode("utf-8")

    @property
    def message(self) -> str:
        return self.err.decode("utf-8", "replace")

    def __str__(self) -> str:
        shown = self.out if len(self.out) <= 400 else self.out[:400] + b"..."
        command = " ".join(map(str, self.args))
        return f"iron {command}: exit {self.code}, stdout {shown!r}, stderr {self.message!r}"


def environment(extra=None) -> dict:
    """The environment without variables that change the output, plus `extra`; a value of None
    removes a variable."""
    env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    env.update({"LC_ALL": "C.UTF-8", "IRON_CACHE_DIR": str(CACHE / "iron"),
                "XDG_CACHE_HOME": str(CACHE)})
    env.setdefault("IRON_CEILING_MIB", "16")  # seconds for each race otherwise
    env.setdefault("POCL_CACHE_DIR", str(CACHE / "pocl"))  # the build's, which is filled already
    # at the end: instead of a second for each process; signal stacks: PoCL's compiler makes its own
    env.setdefault("TSAN_OPTIONS", "atexit_sleep_ms=50:use_sigaltstack=0")
    env.update(extra or {})
    return {name: value for name, value in env.items() if value is not None}


def argv(args) -> list[str]:
    return [IRON] + [a if isinstance(a, (str, bytes)) else str(a) for a in args]


def iron(*args, stdin=b"", env=None, cwd=None, timeout=TIMEOUT_S, stdout=subprocess.PIPE,
         **popen) -> Result:
    """Runs the command; stdin is bytes (sent through a pipe) or an open file."""
    feed = {"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin}
    done = subprocess.run(argv(args), stdout=stdout, stderr=subprocess.PIPE, cwd=cwd,
                          env=environment(env), timeout=timeout, check=False, **feed, **popen)
    return Result(args, done.returncode, done.stdout or b"", done.stderr)


def start(*args, env=None, cwd=None, **popen) -> subprocess.Popen:
    """Starts the command without waiting for it."""
    return subprocess.Popen(argv(args), cwd=cwd, env=environment(env), **popen)


def parse_json(data: bytes):
    """Strict JSON: one document without NaN and Infinity, which Python would accept."""
    def no_constant(name):
        raise ValueError(f"{name} is not JSON")
    return json.loads(data.decode("utf-8"), parse_constant=no_constant)


def pack(tokens, dtype="u32") -> bytes:
    """Tokens as the little-endian bytes of a raw file."""
    return struct.pack(f"<{len(tokens)}{DTYPES[dtype]}", *tokens)


def unpack(data: bytes, dtype="u32") -> list[int]:
    return list(struct.unpack(f"<{len(data) // struct.calcsize(DTYPES[dtype])}{DTYPES[dtype]}", data))


def npy(values, descr="<f4", letter="f", shape=None, fortran=False) -> bytes:
    """A NumPy file, version 1.0, built byte by byte."""
    shape = (len(values),) if shape is None else shape
    header = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}"
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("ascii")
            + struct.pack(f"<{len(values)}{letter}", *values))


def applied_edit(a, b, report) -> list:
    """The first stream with the one edit that `iron diff` reports."""
    kind, at, length = report["kind"], report["position"], report["length"]
    source = report["source"]
    if kind in ("deleted", "truncated"):
        return a[:at] + a[at + length:]
    if kind in ("inserted", "extended"):
        return a[:at] + b[at:at + length] + a[at:]
    if kind == "repeated":
        gone = length if len(a) == len(b) else 0  # in place of others
        return a[:at] + a[source:source + length] + a[at + gone:]
    if kind == "moved":
        rest = a[:source] + a[source + length:]
        return rest[:at] + a[source:source + length] + rest[at:]
    return a[:at] + b[at:at + length] + a[at + length + len(a) - len(b):]  # changed, reordered


def floats32(values) -> list[float]:
    """Values rounded to float32."""
    return list(array.array("f", values))


def config_options(config: oracle.Config, activations_file=None) -> list:
    """The options of `iron feed` that make this configuration."""
    options = ["--vocab", config.vocab, "--nodes", config.nodes, "--batch", config.batch,
               "--positions", config.positions, "--lattice", ",".join(map(str, config.lattice))]
    if activations_file is not None:
        options += ["--activations", activations_file]
    return options


def load_golden() -> dict:
    return json.loads(GOLDEN_PATH.read_text(encoding="utf-8"))


class IronTest(unittest.TestCase):
    """A test of the command, with a temporary folder and common assertions."""

    maxDiff = 2000

    @classmethod
    def setUpClass(cls):
        if not os.access(IRON, os.X_OK):
            raise FileNotFoundError(f"no command at {IRON}: build it, or set IRON to its path")

    def setUp(self):
        self.dir = Path(tempfile.mkdtemp(prefix="iron-cli-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    # Inputs.

    def write(self, name: str, data: bytes) -> Path:
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def write_tokens(self, name: str, tokens, dtype="u32") -> Path:
        return self.write(name, pack(tokens, dtype))

    def device_node(self, name: str, minor: int) -> Path:
        """A character device like /dev/null (3) or /dev/full (7) as an output.

        For root it is a new node in the test's folder: a command that wrongly renames a file over
        its target must not replace the machine's /dev/null.  Other users cannot do that, and use
        the real one.
        """
        if os.geteuid() != 0:
            return Path("/dev") / name
        path = self.dir / name
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, minor))
            path.open("rb").close()
        except OSError as error:
            self.skipTest(f"a device node cannot be made here: {error}")
        return path

    # Running.

    def iron(self, *args, **kwargs) -> Result:
        kwargs.setdefault("cwd", self.dir)
        return iron(*args, **kwargs)

    def succeeds(self, *args, **kwargs) -> Result:
        """Exit 0 and an empty standard error, except for a warning that `--vocab` asks for."""
        result = self.iron(*args, **kwargs)
        self.assertEqual(result.code, 0, str(result))
        if args[0] not in ("sum", "feed") or "--vocab" not in args:
            self.assertEqual(result.err, b"", str(result))
        return result

    def first_line(self, *args) -> str:
        """The first line of standard error; the command is then killed."""
        with start(*args, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.PIPE) as command:
            watchdog = threading.Timer(TIMEOUT_S, command.kill)
            watchdog.start()
            line = command.stderr.readline().decode("utf-8")
            watchdog.cancel()
            command.kill()
        return line

    def json(self, *args, **kwargs):
        result = self.succeeds(*args, "--json", **kwargs)
        try:
            return parse_json(result.out)
        except ValueError as error:
            self.fail(f"not one JSON document ({error}): {result}")

    def feed(self, *args, stdin=b"", backend="cpu", **kwargs) -> dict:
        """`iron feed --json` on the CPU."""
        return self.json("feed", *args, "--backend", backend, stdin=stdin, **kwargs)

    def read_state(self, path) -> dict:
        return self.json("state", path)

    # Checking.

    def assert_report(self, expected: dict, found: dict):
        """Compares the five words of the report, and `seal` if one is expected."""
        keys = [k for k in REPORT_KEYS + ("seal",) if k in expected]
        self.assertEqual({k: expected[k] for k in keys}, {k: found.get(k) for k in keys})

    def assert_nodes(self, engine: oracle.Engine, state: dict):
        """Compares the three arrays of a state, bit for bit."""
        self.assertEqual(engine.xor_accumulators, state["xor_accumulators"])
        self.assertEqual(engine.potentials, state["potentials"])
        self.assertEqual(engine.activations, floats32(state["activations"]))

    def listing(self) -> dict:
        """Every path below the test's folder, with the bytes of the regular files."""
        return {str(p.relative_to(self.dir)): p.read_bytes() if p.is_file() else None
                for p in sorted(self.dir.rglob("*"))}

    def assert_error_line(self, result: Result, says=()):
        """Exit 2, empty standard output, one line that begins with `iron: ` and has the expected
        text."""
        self.assertEqual(result.code, 2, str(result))
        self.assertEqual(result.out, b"", str(result))
        self.assertRegex(result.message, r"\Airon: [^\n\r]+\n\Z", str(result))
        for wanted in [says] if isinstance(says, str) else says:
            self.assertRegex(result.message, re.compile(wanted, re.IGNORECASE), str(result))

    def refused(self, *args, says=(), **kwargs) -> Result:
        """The command fails with a one-line reason and leaves the folder unchanged."""
        before = self.listing()
        result = self.iron(*args, **kwargs)
        self.assert_error_line(result, says)
        self.assertEqual(before, self.listing(), f"left something behind: {result}")
        return result
