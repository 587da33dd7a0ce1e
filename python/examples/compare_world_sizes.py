#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The same data read by 1, 2, 3 and 8 ranks gives the same seal, unless the loader has a bug.

Each rank digests the pieces it reads, and the digests are merged in any order: by one process here,
by an all-gather of state_dict() in a real run.  Three ways of sharding are shown: blocks (rank r
has the r-th part), turns (piece k goes to rank k mod world) and shuffled pieces.  The buggy loader
drops the last pieces if their number is not a multiple of the world size, as many loaders do to
keep ranks in step; only the seal shows it.

    python3 python/examples/compare_world_sizes.py      # exit 0: equal seals, and the bug caught
"""

import array
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # not needed once installed

from iron_tokens import Digest, IronError

PIECE, PIECES = 999, 250  # 999: pieces do not end at the seal's groups of four tokens
WORLDS = (1, 2, 3, 8)


def make_corpus():
    dice = random.Random(2)
    return array.array("I", (dice.randrange(128256) for _ in range(PIECE * PIECES + 7)))


def pieces_of(corpus):
    return [(first, corpus[first:first + PIECE]) for first in range(0, len(corpus), PIECE)]


def blocks(pieces, rank, world):
    return pieces[len(pieces) * rank // world:len(pieces) * (rank + 1) // world]


def turns(pieces, rank, world):
    return pieces[rank::world]


def shuffled(pieces, rank, world):
    order = pieces[:]
    random.Random(3).shuffle(order)
    return order[rank::world]


def dropping(pieces, rank, world):
    """The bug: all ranks get the same number of pieces, and the rest is dropped."""
    return pieces[:len(pieces) // world * world][rank::world]


def read_by_all(corpus, shard, world):
    """Returns the seal of the tokens that all ranks together have read."""
    states = []
    for rank in range(world):
        with Digest(vocab=128256, threads=1) as digest:
            for first, tokens in shard(pieces_of(corpus), rank, world):
                digest.update(tokens, first)
            states.append(digest.state_dict())  # this is what a rank sends
    random.Random(world).shuffle(states)
    whole = Digest.from_state_dict(states[0])
    for state in states[1:]:
        whole.merge(Digest.from_state_dict(state))
    try:
        return whole.hexdigest()
    except IronError as error:
        return f"no seal: {error}"


def main():
    corpus = make_corpus()
    seals = set()
    for shard in (blocks, turns, shuffled):
        for world in WORLDS:
            found = read_by_all(corpus, shard, world)
            seals.add(found)
            print(f"{shard.__name__:9} {world} ranks: {found}")
    buggy = {world: read_by_all(corpus, dropping, world) for world in WORLDS}
    for world, found in buggy.items():
        print(f"{'dropping':9} {world} ranks: {found}{'' if found in seals else '  <- differs'}")
    is_caught = {world for world, found in buggy.items() if found not in seals}
    is_buggy = {world for world in WORLDS if len(pieces_of(corpus)) % world}
    print(f"correct loaders: {len(seals)} seal; the buggy one is caught with "
          f"{', '.join(map(str, sorted(is_caught)))} ranks")
    return 0 if len(seals) == 1 and is_caught == is_buggy and is_caught else 1


if __name__ == "__main__":
    sys.exit(main())
