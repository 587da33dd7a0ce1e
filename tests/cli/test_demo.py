# SPDX-License-Identifier: MIT
"""scripts/demo, which `make demo` runs: its steps, its closing lines, and the report it leaves.

It runs a small race; the speed is not checked.
"""

import re
import subprocess
import unittest

from harness import IRON, REPO, TIMEOUT_S, IronTest, environment

SEAL = "0b3cdf60bd0d7be1e9bd0f8d46f616b4"  # of the demo's stream, as README.md shows it
OPS = ("tokens", "seal", "atax")
RACE = "--size 4096,64x64 --runs 3"


class Demo(IronTest):
    def demo(self, *args, **env):
        return subprocess.run([REPO / "scripts" / "demo", *args], env=environment(env), check=False,
                              capture_output=True, text=True, timeout=TIMEOUT_S)

    def test_steps_and_report(self):
        folder = self.dir / "made"
        done = self.demo(folder, IRON=IRON, IRON_DEMO_RACE=RACE)
        self.assertEqual(done.returncode, 0, done.stderr)
        # Fed at once, resumed, piped; sealed as 16 bits, as 32 bits, in shards.
        self.assertEqual(done.stdout.count(SEAL), 6, done.stdout)
        self.assertIn("equal, bit for bit", done.stdout)
        self.assertIn("first difference at position 6172839", done.stdout)
        self.assertNotIn("stay in this processor's cache", done.stdout)

        closing = done.stdout.split("The fastest of each race:\n")[1]
        for op in OPS:
            self.assertRegex(closing, rf"(?m)^  {op}\.cpu\.\S+ +[0-9.]+ GB/s, "
                                      r"[0-9.]+ % of measured read bandwidth")
        report = folder / "report.html"
        self.assertIn(f"  {report.resolve()}\n", closing)
        html = report.read_text(encoding="utf-8")
        for op in OPS:
            rows = re.findall(rf'"op": "{op}", "contender": "\S+", "backend": "cpu"'
                              r'[^\n]*"status": "ok"', html)
            self.assertGreaterEqual(len(rows), 3, op)
        self.assertEqual(sorted(p.name for p in folder.iterdir()),
                         ["race.txt", "report.html", "tokens.bin"])

        # The suggested next commands work.
        tries = re.findall(r"(?m)^  (\S+iron) (.*?) +# ", closing)
        self.assertEqual(len(tries), 3, closing)
        for command, rest in tries:
            tried = subprocess.run([command, *rest.split()], cwd=REPO, env=environment(),
                                   check=False, capture_output=True, text=True, timeout=TIMEOUT_S)
            self.assertEqual((tried.returncode, tried.stderr), (0, ""), rest)

    def test_data_do_not_fit_the_cache(self):
        """Or the demonstration says so, where the cache is too large for a short race."""
        size, cache = "--size ([0-9]+),([0-9]+)x", self.dir / "iron"
        for mib, tokens, says in ((8, 192 << 18, False), (64, 256 << 18, False),
                                  (300, 192 << 18, True)):
            cache.write_text(f"""#!/bin/sh
[ "$1" = info ] && echo '"l2_bytes": 1048576, "l3_bytes": {mib << 20}' && exit
[ "$1" = arena ] || exec {IRON} "$@"
printf ' 1   tokens.cpu.champion 1 2 3\\n'
""", encoding="utf-8")
            cache.chmod(0o755)
            done = self.demo(self.dir / "made", IRON=str(cache), IRON_DEMO_RACE="")
            self.assertEqual(done.returncode, 0, done.stderr)
            count, rows = map(int, re.search(size, done.stdout).groups())
            self.assertEqual(count, tokens)
            self.assertGreaterEqual(8 * rows * rows, 4 * tokens)
            self.assertEqual("stay in this processor's cache of 300 MiB" in done.stdout, says)
            if not says:
                self.assertGreaterEqual(4 * count, 4 * mib << 20)

    def test_missing_command_fails(self):
        done = self.demo(self.dir / "none", IRON=str(self.dir / "iron"))
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("run make demo", done.stderr)
        self.assertFalse((self.dir / "none").exists())


if __name__ == "__main__":
    unittest.main()
