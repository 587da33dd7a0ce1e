# SPDX-License-Identifier: MIT
"""The engines of docs/scale.md: Dask on a cluster of two processes, mpi4py under mpirun, and the
recipes for Ray, Spark and datatrove, taken from the page and run on stand-ins for these engines:
partitions one after another, results in another order."""

import array
import contextlib
import io
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
import warnings
from pathlib import Path

from support import REPO, iron_tokens

from iron_tokens import IronError, merge_indexed, seal, sum_file

EXAMPLES = REPO / "python" / "examples"
MPIRUN = shutil.which(os.environ.get("MPIRUN") or "mpirun")
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
       "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none",
       "OMPI_MCA_btl": "self,vader", "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
DICE = random.Random(6)
TOKENS = array.array("H", (DICE.randrange(50257) for _ in range(4099)))


def why_not(module):
    """Why tests with a module are skipped; empty if it is there."""
    done = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True)
    return f"no {module} in {sys.executable}" if done.returncode else ""


class EngineTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.paths = [str(self.folder / name) for name in ("a.bin", "b.bin")]
        Path(self.paths[0]).write_bytes(TOKENS[:1001].tobytes())
        Path(self.paths[1]).write_bytes(TOKENS[1001:].tobytes())

    def run_command(self, *command, **env):
        return subprocess.run(command, capture_output=True, text=True, timeout=600,
                              env={**os.environ, "IRON_LIBRARY": iron_tokens.library_path(), **env})


@unittest.skipIf(why_not("numpy, distributed"), why_not("numpy, distributed"))
class Dask(EngineTest):
    @unittest.skipUnless(os.environ.get("IRON_TEST_FULL"), "seconds: needs IRON_TEST_FULL=1")
    def test_example(self):
        done = self.run_command(sys.executable, "-B", EXAMPLES / "seal_on_dask.py")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("the same as in one process", done.stdout)

    def test_errors_and_arrays(self):
        """In one process: the scheduler's threads are enough for what is left."""
        warnings.simplefilter("ignore", DeprecationWarning)
        import dask.array
        import numpy
        from dask.distributed import Client
        from iron_tokens.dask import digest_array, sum_files
        with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None,
                    silence_logs=50) as client:
            self.assertEqual(sum_files(client, *self.paths, dtype="u16"),
                             sum_file(*self.paths, dtype="u16"))
            with self.assertRaisesRegex((IronError, OSError), "cannot open"):
                sum_files(client, "/no/such/file", dtype="u16", parts=2)
            square = numpy.array(TOKENS[:4096]).reshape(64, 64)
            for rows in (1, 7, 64):
                chunked = dask.array.from_array(square, chunks=(rows, 64))
                self.assertEqual(digest_array(chunked).seal, seal(square))
            with self.assertRaisesRegex(IronError, "rechunk it to whole rows"):
                digest_array(dask.array.from_array(square, chunks=(64, 32)))


@unittest.skipUnless(MPIRUN, "no mpirun")
@unittest.skipIf(why_not("mpi4py"), why_not("mpi4py"))
class Mpi4py(EngineTest):
    def ranks(self, count, *args):
        return self.run_command(MPIRUN, "--quiet", "-n", str(count), sys.executable, "-B",
                                EXAMPLES / "seal_with_mpi4py.py", *args, **MPI)

    def test_ranks(self):
        for count in (1, 3):
            done = self.ranks(count, "u16", *self.paths)
            self.assertEqual((done.returncode, done.stdout), (0, f"{seal(TOKENS)}\n"), done.stderr)

    def test_a_failed_rank_ends_the_job(self):
        done = self.ranks(2, "u16", "/no/such/file")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("cannot open /no/such/file", done.stderr)


class Rows:
    """Stands in for an RDD and for a Ray dataset: a list of partitions."""

    def __init__(self, parts):
        self.parts = parts

    def getNumPartitions(self):
        return len(self.parts)

    def mapPartitionsWithIndex(self, function):
        made = [list(function(index, iter(part))) for index, part in enumerate(self.parts)]
        return Rows(DICE.sample(made, len(made)))

    def collect(self):
        return [row for part in self.parts for row in part]

    def map_batches(self, function, batch_size):
        made = []
        for first in range(0, len(self.parts), batch_size):
            columns = function({"id": self.parts[first:first + batch_size]})
            made += [dict(zip(columns, row)) for row in zip(*columns.values())]
        return Rows(DICE.sample(made, len(made)))

    def take_all(self):
        return self.parts


class Recipes(EngineTest):
    def recipe(self, words, **names):
        """Runs the block of docs/scale.md that contains the words; returns its names and output."""
        page = (REPO / "docs" / "scale.md").read_text(encoding="utf-8")
        blocks = [block for block in re.findall(r"```python\n(.*?)```", page, re.S) if words in block]
        self.assertEqual(len(blocks), 1, words)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec(blocks[0], names)  # the page is ours
        return names, said.getvalue()

    def modules(self, **modules):
        sys.modules.update(modules)
        self.addCleanup(lambda: [sys.modules.pop(name) for name in modules])

    def test_ray(self):
        data = types.SimpleNamespace(range=lambda count: Rows(list(range(count))))
        self.modules(ray=types.SimpleNamespace(data=data))
        _, said = self.recipe("import ray", PARTS=5, PATHS=self.paths)
        self.assertEqual(said, f"{seal(TOKENS)}\n")

    def test_spark(self):
        samples = [TOKENS[k:k + 97].tolist() for k in range(0, len(TOKENS), 97)]
        sc = types.SimpleNamespace(broadcast=lambda value: types.SimpleNamespace(value=value))
        parts = Rows([samples[:10], [], samples[10:11], samples[11:]])
        _, said = self.recipe("mapPartitionsWithIndex", rdd=parts, sc=sc)
        self.assertEqual(said, f"{seal(TOKENS)}\n")

    def test_datatrove(self):
        base = types.ModuleType("datatrove.pipeline.base")
        base.PipelineStep = type("PipelineStep", (), {})
        self.modules(**{"datatrove": types.ModuleType("datatrove"),
                        "datatrove.pipeline": types.ModuleType("datatrove.pipeline"),
                        "datatrove.pipeline.base": base})
        names, _ = self.recipe("PipelineStep")
        for rank in range(3):
            step = names["SealPart"](self.paths, self.folder)
            self.assertEqual(list(step.run(iter("ab"), rank, 3)), ["a", "b"])
        texts = [(k, (self.folder / f"{k}.json").read_text()) for k in (2, 0, 1)]
        self.assertEqual(merge_indexed(texts, 3).seal, seal(TOKENS))


if __name__ == "__main__":
    unittest.main()
