# SPDX-License-Identifier: MIT
"""The examples exit with status 0 and print what they caught."""

import subprocess
import sys
import unittest

from support import REPO, subprocess_environment


class Examples(unittest.TestCase):
    def run_example(self, name):
        done = subprocess.run([sys.executable, str(REPO / "python" / "examples" / name)],
                              capture_output=True, text=True, timeout=600,
                              env=subprocess_environment())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stderr, "")
        self.assertNotIn("NOT", done.stdout)
        return done.stdout

    def test_catch_repeated_batch(self):
        said = self.run_example("catch_repeated_batch.py")
        self.assertIn("positions 114688 to 118783 were seen before", said)
        self.assertIn("not the corpus, caught", said)

    def test_compare_world_sizes(self):
        said = self.run_example("compare_world_sizes.py")
        self.assertEqual(said.count("differs"), 3)
        self.assertIn("correct loaders: 1 seal", said)


if __name__ == "__main__":
    unittest.main()
