#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The seal of token files and of a Dask array, computed on a Dask cluster.

    python3 python/examples/seal_on_dask.py                        # a cluster of this machine
    python3 python/examples/seal_on_dask.py scheduler:8786 u16 /data/shards/*.bin

Without arguments it makes files of its own, and compares the results with those of one process.
"""

import sys
import tempfile
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # not needed once installed

import dask.array
import numpy
from dask.distributed import Client, LocalCluster

from iron_tokens import seal, sum_file
from iron_tokens.dask import digest_array, sum_files


def demo():
    with tempfile.TemporaryDirectory() as folder, \
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, \
            Client(cluster) as client:
        tokens = numpy.random.default_rng(1).integers(50257, size=300007, dtype=numpy.uint16)
        paths = [f"{folder}/{k}.bin" for k in range(3)]
        for path, shard in zip(paths, numpy.array_split(tokens, 3)):
            shard.tofile(path)
        manifest = f"{folder}/manifest"
        found = sum_files(client, *paths, dtype="u16", parts=7, manifest=manifest)
        print(f"files: {found.seal} of {found.tokens} tokens, in 7 parts")
        rows = dask.array.from_array(tokens[:300000].reshape(3000, 100), chunks=(701, 100))
        of_array = digest_array(rows).seal
        print(f"array: {of_array}, in {rows.numblocks[0]} blocks")
        is_right = (found == sum_file(*paths, dtype="u16") and of_array == seal(tokens[:300000])
                    and Path(manifest).exists())
        print("the same as in one process" if is_right else "NOT the same as in one process")
        return 0 if is_right else 1


def main():
    if len(sys.argv) == 1:
        return demo()
    address, dtype, *paths = sys.argv[1:]
    with Client(address) as client:
        print(sum_files(client, *paths, dtype=dtype).seal)
    return 0


if __name__ == "__main__":  # LocalCluster starts this file again in its workers
    warnings.simplefilter("ignore", DeprecationWarning)
    sys.exit(main())
