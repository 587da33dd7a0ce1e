# SPDX-License-Identifier: MIT
"""iron_tokens: checks that two token streams contain the same tokens in the same order.

A Digest takes pieces of a token stream, in any order and from any number of processes, and returns
the stream's seal: 32 hex digits that depend only on the tokens and their order, not on how they
were stored, split, sharded or read.  It records which positions it has seen, so repeated and missing
pieces are errors.  The seal is a checksum against accidents, not against an adversary.

    from iron_tokens import Digest

    digest = Digest(vocab=50257)
    for batch in loader:                    # NumPy, PyTorch, array.array, bytes, CUDA tensors, ...
        digest.update(batch.tokens, position=batch.first_token)
    print(digest.hexdigest())

A Bag is the order-free counterpart: the same samples in any order have the same bag.

    from iron_tokens import bag

    bag(batch) == bag(batch[::-1])          # the rows of a 2-D array are its samples

merge_indexed joins parts that were computed anywhere (parts.py), and iron_tokens.dask runs them on
a Dask cluster.  A Recorder writes down what each step of a training run consumed (recorder.py).

The package uses iron's C library, libiron.so.0, and needs no build step.  The library is loaded from

 1. the path in the environment variable IRON_LIBRARY; if that is set, nothing else is tried;
 2. the directory of this package;
 3. build/ of the checkout that contains this package;
 4. the system's library path (an installed libiron; ldconfig, LD_LIBRARY_PATH).
"""

from ._library import IronError, library_path, version
from ._bag import Bag, bag
from .digest import Digest, DigestResult, seal
from .files import sum_file
from .parts import merge_indexed, positions, sum_part
from .recorder import Recorder

__all__ = ["Bag", "Digest", "DigestResult", "IronError", "Recorder", "bag", "library_path",
           "merge_indexed", "positions", "seal", "sum_file", "sum_part", "version"]
