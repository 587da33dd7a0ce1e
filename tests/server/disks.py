# SPDX-License-Identifier: MIT
"""File systems of a test's own: ext4 in a file, which can be shut down like a machine that loses
its power, and a tmpfs that is full soon.  Both need root; `Unable` says what was missing."""

import fcntl
import os
import shutil
import struct
import subprocess
from pathlib import Path

# _IOR('X', 125, __u32), and the flag that drops the journal and all that was not synced
FS_IOC_SHUTDOWN = 2 << 30 | 4 << 16 | ord("X") << 8 | 125
NOLOGFLUSH = 2


class Unable(Exception):
    """This machine or user cannot do it; the text is the reason."""


def run(*command):
    try:
        done = subprocess.run([str(c) for c in command], capture_output=True, timeout=120,
                              check=False)
    except OSError as why:
        raise Unable(f"{command[0]}: {why}") from why
    if done.returncode != 0:
        raise Unable(f"{' '.join(map(str, command))}: {done.stderr.decode().strip()}")


def need_root():
    if os.geteuid() != 0:
        raise Unable("needs root, to mount a file system of its own")


class Disk:
    """A mounted file system below a folder."""

    def __init__(self, folder: Path):
        need_root()
        self.image, self.place = folder / "image", folder / "disk"
        self.place.mkdir()
        self.is_mounted = False

    def umount(self):
        if self.is_mounted:
            run("umount", self.place)
        self.is_mounted = False

    def end(self):
        """For a test's cleanup: whatever is left of it goes, even if somebody holds it."""
        if self.is_mounted:
            subprocess.run(["umount", "-l", str(self.place)], check=False, timeout=60)


class PowerDisk(Disk):
    def __init__(self, folder: Path, mib=256):
        super().__init__(folder)
        if not shutil.which("mkfs.ext4"):
            raise Unable("mkfs.ext4 is not installed (Debian: e2fsprogs)")
        with open(self.image, "wb") as file:
            file.truncate(mib << 20)
        run("mkfs.ext4", "-q", "-F", self.image)
        self.mount()

    def mount(self):
        run("mount", "-o", "loop", self.image, self.place)
        self.is_mounted = True

    def cut_power(self):
        """From now on nothing reaches the image, and what had not is lost."""
        descriptor = os.open(self.place, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, FS_IOC_SHUTDOWN, struct.pack("I", NOLOGFLUSH))
        except OSError as why:
            raise Unable(f"FS_IOC_SHUTDOWN: {why}") from why
        finally:
            os.close(descriptor)

    def power_on(self):
        """Mounted again: the journal is replayed, as after a real one."""
        self.umount()
        self.mount()


class SmallDisk(Disk):
    def __init__(self, folder: Path, kib):
        super().__init__(folder)
        run("mount", "-t", "tmpfs", "-o", f"size={kib}k,mode=0700", "tmpfs", self.place)
        self.is_mounted = True

    def grow(self, kib):
        run("mount", "-o", f"remount,size={kib}k", self.place)
