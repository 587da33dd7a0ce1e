#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A loader whose second resume starts the stream anew (huggingface/datasets #8308).

The state to save is a dict that the iterator updates.  load_state_dict replaces the iterator's dict
by a new one, so that state_dict keeps returning the old one, which never changes again.  The first
resume is right; every checkpoint after it says "position 0".

    python3 python/examples/second_resume_restarts.py     # exit 0: found
"""

import sys

from training import DATA, ledger, new_runs, train, verdict

BATCH = 4


class Loader:
    def __init__(self, rank, world, is_buggy):
        self.rank, self.world, self.is_buggy = rank, world, is_buggy
        self.saved = self.live = {"position": 0}

    def __iter__(self):
        while self.live["position"] < len(DATA):
            first = self.live["position"] + self.rank * BATCH
            self.live["position"] += self.world * BATCH
            yield DATA[first:first + BATCH]

    def state_dict(self):
        return dict(self.saved)

    def load_state_dict(self, state):
        self.live = dict(state)
        if self.is_buggy:
            self.saved = {"position": 0}  # no longer what the iterator updates
        else:
            self.saved = self.live


def main():
    with new_runs("buggy", "correct", "uninterrupted"):
        train("buggy", lambda *place: Loader(*place, is_buggy=True), (2, 4), (2, 8), (2, 12))
        train("correct", lambda *place: Loader(*place, is_buggy=False), (2, 4), (2, 8), (2, 12))
        train("uninterrupted", lambda *place: Loader(*place, is_buggy=False), (2, 12))
        return verdict((ledger("check", "buggy"), 1), (ledger("diff", "uninterrupted", "buggy"), 1),
                       (ledger("check", "correct"), 0),
                       (ledger("diff", "uninterrupted", "correct"), 0))


if __name__ == "__main__":
    sys.exit(main())
