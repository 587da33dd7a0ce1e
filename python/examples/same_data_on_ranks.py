#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every rank reads the same data.

The loader is never told its rank: a DistributedSampler was forgotten, or an iterable dataset was
not split among the ranks.  The loss falls as usual, on a fraction of the data.

    python3 python/examples/same_data_on_ranks.py     # exit 0: found
"""

import sys

import numpy

from training import DATA, ledger, new_runs, train, verdict

BATCH = 4


def shuffled(rank, world):
    """The bug: an order that all ranks share, and no rank takes a part of it."""
    order = numpy.random.default_rng(7).permutation(len(DATA))
    return [DATA[order[first:first + BATCH]] for first in range(0, len(DATA), BATCH)]


def split(rank, world):
    return shuffled(rank, world)[rank::world]


def main():
    with new_runs("buggy", "correct"):
        train("buggy", shuffled, (3, 8))
        train("correct", split, (3, 8))
        return verdict((ledger("check", "buggy"), 1), (ledger("check", "correct"), 0))


if __name__ == "__main__":
    sys.exit(main())
