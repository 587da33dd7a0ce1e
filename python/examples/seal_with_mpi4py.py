#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The seal of token files, read by the ranks of an MPI job: the same for any number of ranks.

    mpirun -n 64 python3 python/examples/seal_with_mpi4py.py u16 /data/shards/*.bin

For files alone, iron-mpi sum does it without Python.  Where ranks have tokens in memory, each makes
a Digest of them at their positions, and the rest is as below.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # not needed once installed

from mpi4py import MPI

from iron_tokens import merge_indexed, sum_part


def main():
    ranks = MPI.COMM_WORLD
    dtype, *paths = sys.argv[1:]
    part = sum_part(ranks.rank, ranks.size, *paths, dtype=dtype, threads=1)
    parts = ranks.gather(part)  # on rank 0, from all
    if ranks.rank == 0:
        print(merge_indexed(parts, ranks.size).seal)


if __name__ == "__main__":
    try:
        main()
    except Exception as why:  # or the other ranks would wait for this one
        print(f"rank {MPI.COMM_WORLD.rank}: {why}", file=sys.stderr, flush=True)
        MPI.COMM_WORLD.Abort(1)
