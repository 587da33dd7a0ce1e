#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A last batch that is filled up with samples seen before, or dropped.

The number of samples is not a multiple of the ranks' batches.  Samplers fill up by default with
samples from the beginning, which `check` finds; with drop_last they leave out the rest, which no
ledger shows alone: `trace` compares it with the dataset.  Both can be right; neither should be a
surprise.

    python3 python/examples/last_batch.py     # exit 0: found
"""

import sys

import numpy

from training import DATA, LENGTH, ledger, new_runs, train, verdict

BATCH, COUNT = 4, 90  # 90 samples are 11 steps of two ranks, and two samples more


def loader(how):
    def make(rank, world):
        order, whole = numpy.arange(COUNT), BATCH * world
        if how == "padded":
            order = numpy.resize(order, -(-COUNT // whole) * whole)
        elif how == "dropped":
            order = order[:COUNT // whole * whole]
        mine = order[rank::world]
        return [DATA[mine[first:first + BATCH]] for first in range(0, len(mine), BATCH)]
    return make


def main():
    with new_runs("padded", "dropped", "whole"):
        DATA[:COUNT].tofile("data.bin")
        trace = "--in", "data.bin", "--dtype", "u16", "--sample", str(LENGTH)
        train("padded", loader("padded"), (2, 100))
        train("dropped", loader("dropped"), (2, 100))
        train("whole", loader("whole"), (2, 100))
        return verdict((ledger("check", "padded"), 1), (ledger("check", "dropped"), 0),
                       (ledger("trace", "dropped", *trace), 0), (ledger("check", "whole"), 0),
                       (ledger("diff", "whole", "dropped"), 1))


if __name__ == "__main__":
    sys.exit(main())
