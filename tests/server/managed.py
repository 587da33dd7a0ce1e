# SPDX-License-Identifier: MIT
"""A service manager for one server: passes it a socket and receives its notifications.

It implements the manager's side of systemd's protocol: LISTEN_PID, LISTEN_FDS and descriptor 3, a
datagram socket in NOTIFY_SOCKET, WATCHDOG_USEC.
"""

import os
import socket
import time
from pathlib import Path

from harness import IRON, REPO, SANITIZED
from serving import START_S, Server

HEAR_S = 2 * START_S
HELD_SYNC = (os.environ.get("IRON_TEST_HELD_SYNC")
             or str(Path(IRON).parent / "tests" / "libheld_sync.so"))
UNITS = REPO / "deploy" / "systemd"


class Listener:
    """The socket that receives a server's notifications."""

    def __init__(self, address: str):
        self.address = address
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + address[1:] if address.startswith("@") else address)
        self.heard = []

    def hear(self, seconds=HEAR_S) -> dict:
        """The next datagram, as {NAME: VALUE}."""
        self.socket.settimeout(seconds)
        text = self.socket.recv(8192).decode()
        said = dict(line.split("=", 1) for line in text.split("\n"))
        self.heard.append(said)
        return said

    def hear_until(self, predicate) -> list:
        """All messages up to and including the first one that satisfies the predicate."""
        said, end = [], time.monotonic() + HEAR_S
        while not said or not predicate(said[-1]):
            assert time.monotonic() < end, f"the message did not come; received {said[-20:]}"
            said.append(self.hear())
        return said

    def rest(self) -> list:
        """The messages that have already arrived."""
        said = []
        try:
            while True:
                said.append(self.hear(0.001))
        except (TimeoutError, BlockingIOError):
            return said

    def close(self):
        self.socket.close()


def handed(sockets, number=None) -> dict:
    """Arguments of `Server` that pass the sockets as descriptors 3, 4, ..."""
    moved = "".join(f" {100 + k}<&{s.fileno()}" for k, s in enumerate(sockets))
    placed = "".join(f" {3 + k}<&{100 + k} {100 + k}<&-" for k in range(len(sockets)))
    count = len(sockets) if number is None else number
    script = f'exec{moved}; export LISTEN_PID=$$ LISTEN_FDS={count}; exec "$@"{placed}'
    return {"wrapper": ["bash", "-c", script, "bash"], "listen": None,
            "pass_fds": [s.fileno() for s in sockets]}


def why_not_held() -> str:
    """Why fsync cannot be blocked on this machine; "" if it can."""
    if SANITIZED:
        return "a sanitizer does not allow the preloaded library"
    if not os.path.exists(HELD_SYNC):
        return "the library that blocks fsync is missing (IRON_TEST_HELD_SYNC)"
    return ""


def held(path: Path) -> dict:
    """The environment of a server whose fsync blocks while the file exists."""
    return {"LD_PRELOAD": HELD_SYNC, "IRON_TEST_HOLD": str(path)}


def short_busy_timeout() -> dict:
    """The environment of a server that waits only briefly for a locked database, where that can be
    set; otherwise it waits ten seconds."""
    return {} if why_not_held() else {"LD_PRELOAD": HELD_SYNC, "IRON_TEST_BUSY_MS": "200"}


__all__ = ["HEAR_S", "Listener", "Server", "UNITS", "handed", "held", "short_busy_timeout",
           "why_not_held"]
