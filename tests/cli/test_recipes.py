# SPDX-License-Identifier: MIT
"""The two-line recipes of docs/formats.md: each is run as it stands there, then on damaged data."""

import os
import re
import shutil
import subprocess
import unittest

import containers
from harness import IRON, REPO, IronTest, pack
from test_remote import S3, S3Server

ROWS = [list(range(k, k + k % 5)) for k in range(40)]


def recipes() -> list:
    """The sh blocks of the section, in order."""
    text = (REPO / "docs" / "formats.md").read_text(encoding="utf-8")
    section = text.split("## Three datasets, two lines each\n")[1].split("\n## ")[0]
    return re.findall(r"```sh\n(.*?)```", section, re.S)


def npy(tokens) -> bytes:
    head = f"{{'descr': '<u2', 'fortran_order': False, 'shape': ({len(tokens)},), }}".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\1\0" + len(head).to_bytes(2, "little") + head + pack(tokens, "u16")


class Recipes(IronTest):
    def setUp(self):
        super().setUp()
        (self.dir / "bin").mkdir()
        (self.dir / "bin" / "iron").symlink_to(IRON)

    def run_recipe(self, recipe, code=0, env=None):
        self.assertEqual(len(recipe.strip().splitlines()), 2, recipe)
        done = subprocess.run(["sh", "-e", "-c", recipe], cwd=self.dir, capture_output=True, check=False,
                              env={**os.environ, **(env or {}), "PATH": f"{self.dir}/bin:{os.environ['PATH']}"})
        self.assertEqual(done.returncode, code, done)
        return done.stdout.decode()

    def check_again(self, recipe, env=None):
        """Only the second line, which must find what has changed."""
        done = subprocess.run(["sh", "-c", recipe.strip().splitlines()[1]], cwd=self.dir, capture_output=True,
                              check=False, env={**os.environ, **(env or {}),
                                                "PATH": f"{self.dir}/bin:{os.environ['PATH']}"})
        self.assertEqual(done.returncode, 1, done)
        self.assertIn(b"FAILED", done.stdout)

    def test_there_are_three(self):
        self.assertEqual(len(recipes()), 3)

    def arrow(self, path, rows):
        values = [token for row in rows for token in row]
        containers.write([{"out": str(path), "writer": "arrow", "kind": "stream", "rows": [len(r) for r in rows],
                           "columns": [{"name": "input_ids", "type": "list<int32>", "values": values}]}])

    @unittest.skipIf(containers.node_missing(), containers.node_missing())
    def test_save_to_disk(self):
        names = ["data-00000-of-00002.arrow", "data-00001-of-00002.arrow"]
        train = containers.hf_state(self.dir / "my_dataset" / "train", names)
        (self.dir / "my_dataset" / "dataset_dict.json").write_text('{"splits": ["train"]}')
        self.arrow(train / names[0], ROWS[:20])
        self.arrow(train / names[1], ROWS[20:])
        self.assertIn("OK", self.run_recipe(recipes()[0]))
        self.arrow(train / names[1], ROWS[20:39] + [[7, 7]])
        self.check_again(recipes()[0])

    @unittest.skipUnless(shutil.which("node") and (S3 / "node_modules" / "s3rver").is_dir(),
                         "s3rver is not installed (scripts/deps test)")
    def test_bucket(self):
        server = S3Server(self.dir / "s3")
        self.addCleanup(server.stop)
        env = {"AWS_ENDPOINT_URL": server.endpoint, "AWS_ACCESS_KEY_ID": "S3RVER",
               "AWS_SECRET_ACCESS_KEY": "S3RVER"}
        for k in range(3):
            server.put("tokens", f"corpus/part-{k}.npy", npy(ROWS[k + 3] * 9))
        self.assertEqual(self.run_recipe(recipes()[1], env=env).count(": OK"), 3)
        server.put("tokens", "corpus/part-1.npy", npy(ROWS[3] * 9))
        self.check_again(recipes()[1], env=env)

    def test_mds(self):
        shards = [[{"tokens": row} for row in ROWS[:9]], [{"tokens": row} for row in ROWS[9:20]]]
        self.mds(shards)
        self.assertIn("OK", self.run_recipe(recipes()[2]))
        shards[1][0]["tokens"] = [*shards[1][0]["tokens"], 5]
        shutil.rmtree(self.dir / "mds_folder")
        self.mds(shards)
        self.check_again(recipes()[2])

    def mds(self, shards):
        containers.mds_folder(self.dir / "mds_folder", shards, {"tokens": "ndarray:uint16"})


if __name__ == "__main__":
    unittest.main()
