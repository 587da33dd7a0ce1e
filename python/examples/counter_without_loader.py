#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A resume that restores the counter of samples, but not the loader (Megatron-Bridge #3503).

The checkpoint has the number of samples consumed, and the trainer goes on counting from there.  The
sampler is built without it, so that the data start again at sample 0, in the same shuffled order.

    python3 python/examples/counter_without_loader.py     # exit 0: found
"""

import sys

import numpy

from training import DATA, ledger, new_runs, train, verdict

BATCH = 4


class Loader:
    """A shuffled sampler that gives each rank every world-th sample."""

    def __init__(self, rank, world, is_buggy):
        self.rank, self.world, self.is_buggy = rank, world, is_buggy
        self.order = numpy.random.default_rng(7).permutation(len(DATA))
        self.consumed = 0  # samples of all ranks

    def __iter__(self):
        order = self.order if self.is_buggy else self.order[self.consumed:]
        mine = order[self.rank::self.world]
        for first in range(0, len(mine), BATCH):
            self.consumed += BATCH * self.world
            yield DATA[mine[first:first + BATCH]]

    def state_dict(self):
        return {"consumed": self.consumed}

    def load_state_dict(self, state):
        self.consumed = state["consumed"]


def main():
    with new_runs("buggy", "correct", "uninterrupted"):
        train("buggy", lambda *place: Loader(*place, is_buggy=True), (2, 7), (2, 12))
        train("correct", lambda *place: Loader(*place, is_buggy=False), (2, 7), (2, 12))
        train("uninterrupted", lambda *place: Loader(*place, is_buggy=False), (2, 12))
        return verdict((ledger("check", "buggy"), 1), (ledger("diff", "uninterrupted", "buggy"), 1),
                       (ledger("check", "correct"), 0),
                       (ledger("diff", "uninterrupted", "correct"), 0))


if __name__ == "__main__":
    sys.exit(main())
