#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A resume that repeats a batch on every rank (huggingface/accelerate #3938).

A loader reads one batch ahead, and its state is corrected by the batch that waits.  With several
ranks the correction is wrong: the inner loader counts the batches of its own rank, while the
correction is that of a loader that reads for all of them.  Each rank sees its last batch again.

    python3 python/examples/resume_repeats_batch.py     # exit 0: found
"""

import sys

from training import DATA, ledger, new_runs, train, verdict

BATCH = 4


class Loader:
    def __init__(self, rank, world, is_buggy):
        self.rank, self.world, self.is_buggy = rank, world, is_buggy
        self.fetched = 0  # batches of this rank, the one that waits included

    def __iter__(self):
        waiting = self.fetch()
        while waiting is not None:
            batch, waiting = waiting, self.fetch()
            yield batch

    def fetch(self):
        first = (self.fetched * self.world + self.rank) * BATCH
        self.fetched += 1
        return DATA[first:first + BATCH] if first < len(DATA) else None

    def state_dict(self):
        return {"batches": self.fetched - (self.world if self.is_buggy else 1)}

    def load_state_dict(self, state):
        self.fetched = state["batches"]


def main():
    with new_runs("buggy", "correct", "uninterrupted"):
        train("buggy", lambda *place: Loader(*place, is_buggy=True), (2, 5), (2, 12))
        train("correct", lambda *place: Loader(*place, is_buggy=False), (2, 5), (2, 12))
        train("uninterrupted", lambda *place: Loader(*place, is_buggy=False), (2, 12))
        return verdict((ledger("check", "buggy"), 1), (ledger("diff", "uninterrupted", "buggy"), 1),
                       (ledger("check", "correct"), 0),
                       (ledger("diff", "uninterrupted", "correct"), 0))


if __name__ == "__main__":
    sys.exit(main())
