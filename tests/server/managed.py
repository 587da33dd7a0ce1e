# SPDX-License-Identifier: MIT
"""A service manager for one server: hands a socket over and hears what it is told.

It speaks systemd's protocol from the other side: LISTEN_PID, LISTEN_FDS and descriptor 3, a
datagram socket in NOTIFY_SOCKET, WATCHDOG_USEC.
"""

import os
import socket
import time
from pathlib import Path

from harness import REPO, SANITIZED
from serving import START_S, Server

HEAR_S = 2 * START_S
HELD_SYNC = os.environ.get("IRON_TEST_HELD_SYNC", "")
UNITS = REPO / "deploy" / "systemd"


class Listener:
    """The socket that a server tells its manager through."""

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

    def hear_until(self, claim) -> list:
        """Everything up to the first that the claim is true of, with it."""
        said, end = [], time.monotonic() + HEAR_S
        while not said or not claim(said[-1]):
            assert time.monotonic() < end, f"it was never told; heard {said[-20:]}"
            said.append(self.hear())
        return said

    def rest(self) -> list:
        """What has come already."""
        said = []
        try:
            while True:
                said.append(self.hear(0.001))
        except (TimeoutError, BlockingIOError):
            return said

    def close(self):
        self.socket.close()


def handed(sockets, number=None) -> dict:
    """How `Server` starts a process that finds the sockets from descriptor 3 on."""
    moved = "".join(f" {100 + k}<&{s.fileno()}" for k, s in enumerate(sockets))
    placed = "".join(f" {3 + k}<&{100 + k} {100 + k}<&-" for k in range(len(sockets)))
    count = len(sockets) if number is None else number
    script = f'exec{moved}; export LISTEN_PID=$$ LISTEN_FDS={count}; exec "$@"{placed}'
    return {"wrapper": ["bash", "-c", script, "bash"], "listen": None,
            "pass_fds": [s.fileno() for s in sockets]}


def why_not_held() -> str:
    """Why the disk cannot be held here; "" if it can."""
    if SANITIZED:
        return "a preloaded library and a sanitizer's do not go together"
    if not os.path.exists(HELD_SYNC):
        return "no library that holds fsync (IRON_TEST_HELD_SYNC)"
    return ""


def held(path: Path) -> dict:
    """The environment of a server whose disk stands still while the file is there."""
    return {"LD_PRELOAD": HELD_SYNC, "IRON_TEST_HOLD": str(path)}


__all__ = ["HEAR_S", "Listener", "Server", "UNITS", "handed", "held", "why_not_held"]
