# SPDX-License-Identifier: MIT
"""A server under test: starts, stops, kills and restarts it.

The tests see the server only from outside: its options, the line on standard error when it is
ready, its port, its exit status, and its memory in /proc.  A stopped server must exit with status 0
and, in builds with a sanitizer, without a report.
"""

import json
import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

from harness import IRON, environment

READY = re.compile(r"iron: serving (https?)://(\S+):(\d+), data in (.*), (\d+) engines?\Z")
REPORTS = re.compile(r"AddressSanitizer|LeakSanitizer|ThreadSanitizer|runtime error:|SUMMARY:")
# How long anything may take before it counts as hung; a loaded machine may well need a minute.
START_S = STOP_S = 300
# A client on a loaded machine must not count as a slow one; tests of slow clients set these options
# themselves.
PATIENT = {"--header-seconds": "600", "--min-body-rate": "1"}


def ready(line):
    """(scheme, port, engines) if it is the ready line, in either log format."""
    if line.startswith("{"):
        event = json.loads(line)
        line = "iron: serving {url}, data in {data}, {engines} engines".format(
            **event) if event.get("event") == "ready" else ""
    found = READY.match(line)
    return found and (found[1], int(found[3]), int(found[5]))


class NotServing(Exception):
    """The server did not start; the text is its output."""

    def __init__(self, code, lines):
        super().__init__(f"exit {code}: {lines}")
        self.code, self.lines = code, lines


class Server:
    """One `iron serve` on a data folder; `start` can be called again after it has ended."""

    def __init__(self, data, *options, listen="127.0.0.1:0", env=None, wrapper=(),
                 pass_fds=()):
        self.data, self.listen = Path(data), listen
        self.set_options(*options)
        # Leak detection takes seconds per process; only one test enables it. Signal stacks: PoCL's
        # compiler makes its own.
        self.env = {"IRON_CUDA_LIBRARY": "none", "IRON_OPENCL_LIBRARY": "none",
                    "ASAN_OPTIONS": "detect_leaks=0:use_sigaltstack=0", **(env or {})}
        self.wrapper, self.pass_fds = list(wrapper), list(pass_fds)
        self.process = None
        self.run_number = 0
        self.said = []  # all lines of all runs
        self.port = self.engines = self.scheme = None

    def set_options(self, *options):
        """Options of the next start."""
        self.options = [str(o) for o in options]
        for name, value in PATIENT.items():
            if name not in self.options:
                self.options += [name, value]

    def command(self) -> list:
        listen = ["--listen", self.listen] if self.listen is not None else []
        return [*self.wrapper, IRON, "serve", *listen, "--data", str(self.data), *self.options]

    def start(self) -> "Server":
        self.lines, self.is_told = [], threading.Event()
        self.run_number += 1
        self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=environment(self.env), pass_fds=self.pass_fds)
        self.listener = threading.Thread(target=self._listen, args=(self.process,), daemon=True)
        self.listener.start()
        self.is_told.wait(START_S)
        if self.port is None:
            self.process.kill()
            code = self.process.wait()
            self._forget()
            raise NotServing(code, self.lines)
        return self

    def _listen(self, process):
        self.port = None
        for raw in process.stderr:
            line = raw.decode("utf-8", "replace").rstrip("\n")
            self.lines.append(line)
            self.said.append(line)
            found = ready(line)
            if found and self.port is None:
                self.scheme, self.port, self.engines = found
                self.is_told.set()
        process.wait()
        self.is_told.set()

    @property
    def host(self) -> str:
        """The value of the Host header."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}"

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def _end(self, number, patience) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            code = self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            self._forget()
            raise AssertionError(
                f"the server did not end in {patience} s; it said {self.lines}") from None
        self._forget()
        return code

    def _forget(self):
        """The process has ended."""
        self.listener.join()
        self.process.stdout.close()
        self.process.stderr.close()
        self.process = None

    def stop(self, number=signal.SIGTERM, code=0):
        """Stops it gracefully; the status is 0, or 2 if something could not be written."""
        leftover = None
        if self.process.poll() is not None:
            leftover = f"it had ended by itself with status {self.process.returncode}"
        found = self._end(number, STOP_S)
        assert not leftover, f"{leftover}; it said {self.lines}"
        assert found == code, f"a stopped server ended with status {found}; it said {self.lines}"
        self.assert_no_report()

    def kill(self):
        """Ends it with SIGKILL."""
        self._end(signal.SIGKILL, STOP_S)
        self.assert_no_report()

    def assert_no_report(self):
        found = [line for line in self.said if REPORTS.search(line)]
        assert not found, "\n".join(self.said)

    def restart(self) -> "Server":
        if self.is_alive:
            self.stop()
        return self.start()

    def _status_kib(self, name) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(re.search(rf"^{name}:\s+(\d+) kB$", status, re.MULTILINE)[1])

    def peak_mib(self) -> float:
        """The peak of resident memory (VmHWM)."""
        return self._status_kib("VmHWM") / 1024

    def resident_mib(self) -> float:
        return self._status_kib("VmRSS") / 1024

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


def wait_until(what, claim, seconds=START_S):
    """Polls; the deadline is far longer than needed and ends a test that would hang."""
    end = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.02)
