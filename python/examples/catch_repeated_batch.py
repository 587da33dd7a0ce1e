#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A data loader that repeats a batch after a resume is caught, in two ways.

A run is stopped and resumed from a checkpoint.  The loader's bug is the common one: its position
was saved before the batch in flight was counted, so that batch comes twice.

 1. By position.  The digest is saved in the checkpoint with everything else, and knows what the
    run has seen: the repeated batch is refused when it comes, and its positions are named.
 2. By the seal.  A loader that does not tell positions appends; at the end its seal is not the
    corpus's, whose seal was taken once, when the corpus was made.

    python3 python/examples/catch_repeated_batch.py     # exit 0: caught both times
"""

import array
import json
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # not needed once installed

from iron_tokens import Digest, IronError, seal

BATCH, BATCHES, STOP = 4096, 64, 29


def make_corpus():
    dice = random.Random(1)
    return array.array("H", (dice.randrange(50257) for _ in range(BATCH * BATCHES)))


class Loader:
    """Batches in order, with a position that can be saved; buggy ones forget the last batch."""

    def __init__(self, corpus, is_buggy, batch=0):
        self.corpus, self.is_buggy, self.batch = corpus, is_buggy, batch

    def __iter__(self):
        while self.batch < BATCHES:
            first = self.batch * BATCH
            self.batch += 1
            yield first, self.corpus[first:first + BATCH]

    def state(self):
        return self.batch - 1 if self.is_buggy else self.batch


def train(corpus, is_buggy, tells_positions):
    """One run, stopped after STOP batches and resumed from a checkpoint; its seal."""
    loader, digest = Loader(corpus, is_buggy), Digest()
    for first, tokens in loader:
        digest.update(tokens, first if tells_positions else None)
        if loader.batch == STOP:
            break
    checkpoint = json.dumps({"loader": loader.state(), "digest": digest.state_dict()})

    resumed = json.loads(checkpoint)
    loader = Loader(corpus, is_buggy, resumed["loader"])
    digest = Digest.from_state_dict(resumed["digest"])
    for first, tokens in loader:
        digest.update(tokens, first if tells_positions else None)
    return digest.hexdigest()


def main():
    corpus = make_corpus()
    want = seal(corpus)
    print(f"the corpus: {len(corpus)} tokens, seal {want}")

    right = train(corpus, is_buggy=False, tells_positions=True)
    print(f"a loader that resumes rightly:  seal {right}: "
          f"{'the same' if right == want else 'NOT the same'}")

    caught = None
    try:
        train(corpus, is_buggy=True, tells_positions=True)
    except IronError as error:
        caught = str(error)
    print(f"one that repeats a batch, with positions: {caught or 'NOT caught'}")

    wrong = train(corpus, is_buggy=True, tells_positions=False)
    print(f"the same, without positions:    seal {wrong}: "
          f"{'NOT caught' if wrong == want else 'not the corpus, caught'}")

    first = (STOP - 1) * BATCH
    named = caught is not None and f"positions {first} to {first + BATCH - 1}" in caught
    return 0 if right == want and named and wrong != want else 1


if __name__ == "__main__":
    sys.exit(main())
