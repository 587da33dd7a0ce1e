# SPDX-License-Identifier: MIT
"""Temporary file systems: ext4 in a file, which can be shut down as by a power failure, and a small
tmpfs that fills up soon.  Both need root; `Unable` has the reason if something is missing. A
disk is made in two steps, so that a test's cleanup (`end`) is registered before the first mount."""

import fcntl
import os
import shutil
import struct
import subprocess
import time
from pathlib import Path

# _IOR('X', 125, __u32), and the flag that drops the journal and all unsynced data
FS_IOC_SHUTDOWN = 2 << 30 | 4 << 16 | ord("X") << 8 | 125
NOLOGFLUSH = 2
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
    """Its image is in memory, because the duration of a sync on the machine's own disk does not
    matter here.  The image's content at the power failure is what remains."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.memory = folder / "memory"
        self.image = self.memory / "image"

    def make(self, mib=256):
        need_root()
        if not shutil.which("mkfs.ext4"):
            raise Unable("mkfs.ext4 is not installed (Debian: e2fsprogs)")
        self.mount(self.memory, "-t", "tmpfs", "-o", f"size={mib + 16}m,mode=0700", "tmpfs")
        with open(self.image, "wb") as file:
            file.truncate(mib << 20)
        run("mkfs.ext4", "-q", "-F", self.image)
        self.mount(self.place, "-o", "loop", self.image)

    def cut_power(self):
        """From now on nothing reaches the image, and unsynced data is lost."""
        descriptor = os.open(self.place, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, FS_IOC_SHUTDOWN, struct.pack("I", NOLOGFLUSH))
        except OSError as why:
            raise Unable(f"FS_IOC_SHUTDOWN: {why}") from why
        finally:
            os.close(descriptor)

    def power_on(self):
        """Mounts it again: the journal is replayed, as after a real power failure.  Loop devices
        are few and may all be in use for a while."""
        self.umount(self.place)
        self.mount(self.place, "-o", "loop", self.image, how=run_with_retries)


class SmallDisk(Disk):
    def make(self, kib):
        need_root()
        self.mount(self.place, "-t", "tmpfs", "-o", f"size={kib}k,mode=0700", "tmpfs")

    def grow(self, kib):
        run("mount", "-o", f"remount,size={kib}k", self.place)
