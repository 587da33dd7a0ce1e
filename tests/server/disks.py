# SPDX-License-Identifier: MIT
"""Temporary file systems: ext4 in an image that can be copied at one moment, as a power failure
would leave it, and a small tmpfs that fills up soon.  Both need root; `Unable` has the reason if
something is missing. A disk is made in two steps, so that a test's cleanup (`end`) is registered
before the first mount."""

import fcntl
import os
import shutil
import subprocess
import time
from pathlib import Path

FIFREEZE, FITHAW = (3 << 30 | 4 << 16 | ord("X") << 8 | number for number in (119, 120))
PATIENCE_S = 300  # reached only by a hung command


class Unable(Exception):
    """This machine or user cannot do it; the text is the reason."""


def run(*command):
    try:
        done = subprocess.run([str(c) for c in command], capture_output=True, timeout=PATIENCE_S,
                              check=False, env={**os.environ, "LC_ALL": "C"})
    except OSError as why:
        raise Unable(f"{command[0]}: {why}") from why
    if done.returncode != 0:
        raise Unable(f"{' '.join(map(str, command))}: {done.stderr.decode().strip()}")


def run_with_retries(*command):
    """Retries a command that can fail only because of other processes."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            return run(*command)
        except Unable:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def need_root():
    if os.geteuid() != 0:
        raise Unable("needs root, to mount a file system of its own")


class Disk:
    """A mounted file system below a folder."""

    def __init__(self, folder: Path):
        self.place = folder / "disk"
        self.mounted = []  # in the order of creation

    def mount(self, place: Path, *options, how=run):
        place.mkdir(exist_ok=True)
        how("mount", *options, place)
        self.mounted.append(place)

    def umount(self, place: Path):
        """Retries: a reader of /proc may hold the mappings of a killed process for a moment."""
        run_with_retries("umount", place)
        self.mounted.remove(place)

    def end(self):
        """For a test's cleanup: unmounts everything, even if it is still in use."""
        for place in reversed(self.mounted):
            subprocess.run(["umount", "-l", str(place)], check=False, timeout=PATIENCE_S)
        self.mounted = []


class PowerDisk(Disk):
    """An ext4 in an image, which lies on an outer ext4 in memory (the duration of a sync on the
    machine's own disk does not matter here).  While the outer one is frozen nothing reaches the
    image: a copy of it has what a disk has after a power failure, everything that was synced and of
    the rest what happened to be written, even if requests were in progress."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.memory, self.outer = folder / "memory", folder / "outer"
        self.image = self.outer / "image"

    def make(self, mib=128):
        need_root()
        if not shutil.which("mkfs.ext4"):
            raise Unable("mkfs.ext4 is not installed (Debian: e2fsprogs)")
        self.mount(self.memory, "-t", "tmpfs", "-o", "mode=0700", "tmpfs")
        self._format(self.memory / "disk", mib + 64)
        self.mount(self.outer, "-o", "loop", self.memory / "disk", how=run_with_retries)
        self._format(self.image, mib)
        self.mount(self.place, "-o", "loop", self.image, how=run_with_retries)

    @staticmethod
    def _format(image, mib):
        with open(image, "wb") as file:
            file.truncate(mib << 20)
        run("mkfs.ext4", "-q", "-F", image)

    def cut_power(self):
        """The image as it is now is what remains, whatever is written to it later."""
        outer = os.open(self.outer, os.O_RDONLY)
        try:
            fcntl.ioctl(outer, FIFREEZE, 0)
            try:
                run("cp", "--sparse=always", self.image, self.memory / "cut")
            finally:
                fcntl.ioctl(outer, FITHAW, 0)
        except OSError as why:
            raise Unable(f"freezing {self.outer}: {why}") from why
        finally:
            os.close(outer)

    def power_on(self):
        """Mounts what remained: the journal is replayed, as after a real power failure.  Loop
        devices are few and may all be in use for a while."""
        self.umount(self.place)
        run("cp", "--sparse=always", self.memory / "cut", self.image)
        self.mount(self.place, "-o", "loop", self.image, how=run_with_retries)


class SmallDisk(Disk):
    def make(self, kib):
        need_root()
        self.mount(self.place, "-t", "tmpfs", "-o", f"size={kib}k,mode=0700", "tmpfs")

    def grow(self, kib):
        run("mount", "-o", f"remount,size={kib}k", self.place)
