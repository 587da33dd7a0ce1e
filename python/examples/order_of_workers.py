#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Data whose order depends on the number of ranks and workers (allenai/OLMo #95 and #268).

Each worker of each rank shuffles a share of its own with a seed of its own.  The same configuration
with other machines, or with one worker more, is another run.  The correct loader shuffles once for
all: step k has the k-th part of that order, whatever the number of ranks and workers, and a run may
even go on with another number of ranks.

    python3 python/examples/order_of_workers.py     # exit 0: found
"""

import sys

import numpy

from training import DATA, ledger, new_runs, train, verdict

GLOBAL_BATCH = 8  # samples of all ranks


def seeded_by_worker(workers):
    """The bug, in a loader for each rank."""
    def make(rank, world):
        shares = []
        for worker in range(rank * workers, (rank + 1) * workers):
            share = numpy.arange(worker, len(DATA), world * workers)
            numpy.random.default_rng(worker).shuffle(share)
            shares.append(share.reshape(-1, GLOBAL_BATCH // world))
        # the batches of the workers in turn
        return [DATA[share[turn]] for turn in range(len(shares[0])) for share in shares]
    return make


class Loader:
    """Correct: ranks and workers take parts of one order."""

    def __init__(self, rank, world):
        self.rank, self.world, self.step = rank, world, 0
        self.order = numpy.random.default_rng(0).permutation(len(DATA)).reshape(-1, GLOBAL_BATCH)

    def __iter__(self):
        size = GLOBAL_BATCH // self.world
        for step in range(self.step, len(self.order)):  # by workers, whose batches come in turn
            self.step = step + 1
            yield DATA[self.order[step][self.rank * size:(self.rank + 1) * size]]

    def state_dict(self):
        return {"step": self.step}

    def load_state_dict(self, state):
        self.step = state["step"]


def main():
    with new_runs("two-ranks", "two-workers", "four-ranks", "correct-2", "correct-4", "correct-2-4"):
        train("two-ranks", seeded_by_worker(1), (2, 12))
        train("two-workers", seeded_by_worker(2), (2, 12))
        train("four-ranks", seeded_by_worker(1), (4, 12))
        train("correct-2", Loader, (2, 12))
        train("correct-4", Loader, (4, 12))
        train("correct-2-4", Loader, (2, 5), (4, 12))
        return verdict((ledger("diff", "two-ranks", "two-workers"), 1),
                       (ledger("diff", "two-ranks", "four-ranks"), 1),
                       (ledger("diff", "correct-2", "correct-4"), 0),
                       (ledger("diff", "correct-2", "correct-2-4"), 0),
                       (ledger("check", "correct-2-4"), 0))


if __name__ == "__main__":
    sys.exit(main())
