#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Two ways to detect a data loader that repeats a batch after a resume.

A run is stopped and resumed from a checkpoint.  The loader has a common bug: it saves its position
before the batch in flight is counted, so that batch is delivered twice.

 1. By position.  The digest is saved in the checkpoint and knows which positions the run has seen:
    the repeated batch is refused at once, with its positions.
 2. By the seal.  A loader that does not report positions appends; at the end, its seal differs from
    the seal of the corpus, which was computed once, when the corpus was made.

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
    """Yields batches in order; state() is the position to save, one batch short if is_buggy."""

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
    """Stops a run after STOP batches, resumes it from a checkpoint, and returns its seal."""
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
    print(f"correct loader:                 seal {right}: "
          f"{'the same' if right == want else 'NOT the same'}")

    caught = None
    try:
        train(corpus, is_buggy=True, tells_positions=True)
    except IronError as error:
        caught = str(error)
    print(f"repeated batch, with positions: {caught or 'NOT caught'}")

    wrong = train(corpus, is_buggy=True, tells_positions=False)
    print(f"repeated batch, no positions:   seal {wrong}: "
          f"{'NOT caught' if wrong == want else 'not the corpus, caught'}")

    first = (STOP - 1) * BATCH
    named = caught is not None and f"positions {first} to {first + BATCH - 1}" in caught
    return 0 if right == want and named and wrong != want else 1


if __name__ == "__main__":
    sys.exit(main())
