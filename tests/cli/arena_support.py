# SPDX-License-Identifier: MIT
"""Shared code of the tests of `iron arena`: names of contenders, plans, small races.

No test depends on timing.  Figures are compared with each other (a rate is the bytes
over the median, a share is of the device's own ceiling), and comparisons use reports whose samples
were changed by a factor that no machine makes up for.

Every race measures the ceilings first, which takes a second or more, so a class runs its races once
and its tests look at the reports.  What does not need a race uses `--dry-run`.  `further_race` marks
races that cover no code which another race has not covered: they run with IRON_TEST_FULL=1 only.
"""

import re
import shutil
import tempfile
import unittest
from pathlib import Path

from harness import FULL, SANITIZED, IronTest, iron, parse_json

CPU_ONLY = {"IRON_CUDA_LIBRARY": "none", "IRON_OPENCL_LIBRARY": "none"}
ATAX_CPU = ("naive", "interchanged", "blocked", "vector", "threads", "single-pass-one-thread",
            "single-pass")
ATAX_GPU = ("naive", "constant", "transposed", "tiled", "coalesced", "single-pass")
TOKENS_GPU = ("atomic2d", "node", "hybrid", "tiled", "tiled-wide", "tiled-vector",
              "hybrid-vector", "reduce", "champion")
TOKENS_CPU = ("scalar", "threads", "node", "hybrid")  # vector and champion: one per instruction set
STRATEGIES = {"pageable", "pinned", "streams", "uvm", "uvm-prefetch", "zero-copy"}
SIZES = {
    "talk": {"MINI": "32x32", "SMALL": "500x500", "STANDARD": "4000x4000", "LARGE": "8000x8000",
             "EXTRALARGE": "20000x20000"},
    "acc": {"MINI": "1024x1024", "SMALL": "2048x2048", "STANDARD": "4096x4096",
            "LARGE": "8192x8192", "EXTRALARGE": "16384x16384"},
    "polybench": {"MINI": "38x42", "SMALL": "116x124", "MEDIUM": "390x410", "LARGE": "1900x2100",
                  "EXTRALARGE": "1800x2200"},
}
TOP_KEYS = ["schema", "iron", "host", "devices", "ceilings", "results", "data"]
ROW_KEYS = ["op", "contender", "backend", "memory", "device", "size", "dtype", "params", "peer",
            "useful_bytes", "cache_resident", "status", "reason", "verified", "baseline",
            "speedup", "scopes"]
SCOPE_KEYS = ["median_ms", "mean_ms", "min_ms", "p95_ms", "noise_percent", "gb_s",
              "percent_of_ceiling", "samples"]
FIGURES = ("median_ms", "mean_ms", "min_ms", "p95_ms", "gb_s", "percent_of_ceiling", "speedup")
BAD_NUMBERS = ("", "-1", "+1", "1.5", "0x10", "1e-3", "many", " 1", "4294967296",
               "18446744073709551616")
CLOSE = 1e-6  # reports have nine digits
GRACE_S = 300
further_race = unittest.skipIf(SANITIZED or not FULL,
                                 "a further race: set IRON_TEST_FULL=1, without a sanitizer")
SMALL = ("atax.cpu.naive", "--size", "16x16", "--runs", 3)  # about the cheapest race


def row_name(row: dict) -> str:
    return f"{row['op']}.{row['backend']}.{row['contender']}"


HOW_PARAMS = ("nodes", "streams", "threads", "size_name")  # the others belong to the case


def case_of(row: dict) -> tuple:
    params = {name: row["params"][name] for name in row["params"] if name not in HOW_PARAMS}
    return row["op"], row["size"], row["dtype"], tuple(sorted(params.items()))


def listed_axes() -> dict[str, dict[str, list[str]]]:
    """For each op with parameters: their names and the raced values."""
    axes = {}
    for op, name, values in re.findall(r"(?m)^(\S+) +(\w+): ([^(]+) \(",
                                       iron("arena", "--list", env=CPU_ONLY)
                                       .text.partition("\nparameters\n")[2]):
        axes.setdefault(op, {})[name] = values.split(", ")
    return axes


def planned_params(text: str) -> list[tuple]:
    """(name, parameters) of each line of a plan."""
    return re.findall(r"(?m)^(\S+) .* MB  (\S+ [^;]*); ", text)


def planned(text: str) -> list[tuple]:
    """(name, memory, size, dtype) of each line of a plan."""
    return [tuple(line.split()[:4]) for line in text.split("\n\n")[0].splitlines() if line]


class ArenaTest(IronTest):
    def arena(self, *args, **kwargs):
        return self.iron("arena", *args, **kwargs)

    def plan(self, *args, **kwargs) -> list[tuple]:
        return planned(self.succeeds("arena", "--dry-run", *args, **kwargs).text)

    def names(self, *args) -> list[str]:
        return [name for name, *_ in self.plan(*args, env=CPU_ONLY)]

    def race(self, *args, env=None, code=0) -> dict:
        """The JSON of a race, by default on the CPU only."""
        result = self.arena(*args, "--json", "-", env=CPU_ONLY if env is None else env)
        self.assertEqual(result.code, code, str(result))
        return parse_json(result.out)


class Races(ArenaTest):
    """A class that runs its races once, in one folder."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.home = Path(tempfile.mkdtemp(prefix="iron-arena-"))
        cls.addClassCleanup(shutil.rmtree, cls.home, ignore_errors=True)
