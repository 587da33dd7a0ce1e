#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs a command under the system-call rules of a systemd unit: confined.py UNIT COMMAND...

systemd does not have to run: `systemd-analyze syscall-filter` expands the sets in
SystemCallFilter=, and libseccomp builds the filter, as in systemd; likewise for
RestrictAddressFamilies= and MemoryDenyWriteExecute=.  Calls that are not allowed fail with EPERM.
IRON_TEST_FORBID names further forbidden calls, for negative controls.
"""

import ctypes
import errno
import os
import re
import socket
import subprocess
import sys

ALLOW = 0x7FFF0000
DENY = 0x00050000 | errno.EPERM
NOT_EQUAL, MASKED_EQUAL = 1, 7
PROT_WRITE, PROT_EXEC = 2, 4
PR_SET_NO_NEW_PRIVS = 38


class Comparison(ctypes.Structure):
    _fields_ = [("argument", ctypes.c_uint), ("how", ctypes.c_int),
                ("first", ctypes.c_uint64), ("second", ctypes.c_uint64)]


def settings(unit: str, name: str) -> list:
    """The values of a setting, in order."""
    with open(unit, encoding="utf-8") as file:
        return re.findall(rf"^{name}=(.*)$", file.read(), re.MULTILINE)


def members(name: str) -> set:
    """The calls of a set such as @system-service, including nested sets."""
    if not name.startswith("@"):
        return {name}
    said = subprocess.run(["systemd-analyze", "syscall-filter", name], check=True, text=True,
                          capture_output=True).stdout
    names = [line.strip() for line in said.splitlines()[1:]]
    return set().union(*(members(n) for n in names if n and not n.startswith("#")))


def allowed(unit: str) -> set:
    """The calls that the unit's SystemCallFilter= lines allow; systemd always allows a few."""
    found = members("@default") | {"execve", "exit", "exit_group", "rt_sigreturn"}
    for value in settings(unit, "SystemCallFilter"):
        calls = set().union(*(members(n) for n in value.removeprefix("~").split()))
        found = found - calls if value.startswith("~") else found | calls
    return found - set(os.environ.get("IRON_TEST_FORBID", "").split())


class Filter:
    def __init__(self):
        self.library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
        self.library.seccomp_init.restype = ctypes.c_void_p
        self.library.seccomp_init.argtypes = [ctypes.c_uint32]
        self.library.seccomp_load.argtypes = [ctypes.c_void_p]
        self.library.seccomp_rule_add_array.argtypes = [
            ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p]
        self.context = self.library.seccomp_init(ALLOW)
        assert self.context, "libseccomp does not begin"

    def number(self, call: str) -> int:
        return self.library.seccomp_syscall_resolve_name(call.encode())

    def deny(self, call, *comparisons):
        number = self.number(call)
        if number < 0:  # not on this architecture
            return
        array = (Comparison * len(comparisons))(*comparisons)
        code = self.library.seccomp_rule_add_array(self.context, DENY, number, len(comparisons),
                                                   array)
        assert code == 0, f"{call}: {os.strerror(-code)}"

    def load(self):
        code = self.library.seccomp_load(self.context)
        assert code == 0, f"the filter cannot be loaded: {os.strerror(-code)}"


def confine(unit: str):
    rules, kept = Filter(), allowed(unit)
    assert len(kept) > 100, f"{unit} allows hardly anything: {sorted(kept)}"
    for call in sorted(members("@known") - kept):
        rules.deny(call)
    families = [getattr(socket, f) for f in settings(unit, "RestrictAddressFamilies")[0].split()]
    assert len(families) == 1, families
    rules.deny("socket", Comparison(0, NOT_EQUAL, families[0], 0))
    if settings(unit, "MemoryDenyWriteExecute") == ["yes"]:
        both = PROT_WRITE | PROT_EXEC
        rules.deny("mmap", Comparison(2, MASKED_EQUAL, both, both))
        rules.deny("mprotect", Comparison(2, MASKED_EQUAL, PROT_EXEC, PROT_EXEC))
    assert ctypes.CDLL(None).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    rules.load()


if __name__ == "__main__":
    confine(sys.argv[1])
    os.execv(sys.argv[2], sys.argv[2:])
