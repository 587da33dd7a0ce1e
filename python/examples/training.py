# SPDX-License-Identifier: MIT
"""Shared by the examples of loader bugs: a dataset, a training run with resumes, and `iron ledger`.

The ranks of a run are trained one after another in one process.  Ledgers and findings are those
that real ranks would give, because every rank has a Recorder of its own.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # not needed once installed

import numpy

from iron_tokens import Recorder, library_path

SAMPLES, LENGTH = 96, 32
DATA = numpy.random.default_rng(4).integers(50257, size=(SAMPLES, LENGTH), dtype=numpy.uint16)


def train(run, make_loader, *parts):
    """Trains in parts of (world size, last step); each but the first resumes from a checkpoint.

    A loader is made anew for each part and rank, as a new process would.  It yields the batches of
    its rank, and has state_dict and load_state_dict if there are several parts.
    """
    checkpoint = None
    for world, end in parts:
        resumed = checkpoint
        for rank in range(world):
            loader = make_loader(rank, world)
            with Recorder(f"{run}/rank-{rank}.ledger", rank, world, append=True) as recorder:
                if resumed:
                    loader.load_state_dict(resumed["loader"])
                    recorder.load_state_dict(resumed["recorder"])
                first = resumed["recorder"]["step"] if resumed else 0
                for batch in islice(recorder.watch(loader), end - first):
                    assert batch.shape[1] == LENGTH  # here a model would learn from it
                checkpoint = {"recorder": recorder.state_dict()}
                if hasattr(loader, "state_dict"):
                    checkpoint["loader"] = loader.state_dict()


def ledger(*args):
    """Runs `iron ledger`, shows command and findings, and returns its exit status."""
    iron = os.environ.get("IRON") or shutil.which("iron", path=os.pathsep.join(
        (str(Path(library_path()).parent), os.environ.get("PATH", ""))))
    if not iron:
        sys.exit("no iron; build it, or put it on PATH, or set IRON to its path")
    print("$ iron ledger", *args)
    done = subprocess.run([iron, "ledger", *args], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT)
    print("".join(f"    {line}\n" for line in done.stdout.splitlines()), end="")
    return done.returncode


@contextlib.contextmanager
def new_runs(*names):
    """A temporary folder with one folder for each run, as the working directory."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for name in names:
                os.mkdir(name)
            yield
        finally:
            os.chdir(before)


def verdict(*statuses):
    """The exit status of an example: 0 if the right runs pass and all others have findings."""
    is_right = all(found == want for found, want in statuses)
    print("as expected" if is_right else "NOT as expected")
    return 0 if is_right else 1
