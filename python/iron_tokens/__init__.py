# SPDX-License-Identifier: MIT
"""iron_tokens: checks that two token streams contain the same tokens in the same order.

A Digest takes pieces of a token stream, in any order and from any number of processes, and returns
the stream's seal: 32 hex digits that depend only on the tokens and their order, not on how they
were stored, split, sharded or read.  It records which positions it has seen, so repeated and missing
pieces are errors.  The seal is a checksum against accidents, not against an adversary.

    >>> from iron_tokens import Digest
    >>> digest = Digest(vocab=50257)
    >>> for first, batch in ((0, [15496, 11]), (2, [995, 0])):    # or arrays, tensors, bytes, ...
    ...     digest.update(batch, position=first)
    >>> digest.hexdigest()
    '0e1d04fb583e67f8041cd6e340c5b9df'

sum_file, stat, diff and check do for files what the commands of these names do; a Manifest is what
later checks need.  A Bag is the order-free counterpart of the seal: the same samples in any order
have the same bag.  A Recorder writes down what each step of a training run consumed.

merge_indexed joins parts that were computed anywhere, and iron_tokens.dask runs them on a Dask cluster.

The package uses iron's C library, libiron.so.0, which the wheel contains.  It is loaded from

 1. the path in the environment variable IRON_LIBRARY; if that is set, nothing else is tried;
 2. the directory of this package;
 3. build/ of the checkout that contains this package;
 4. the system's library path (an installed libiron; ldconfig, LD_LIBRARY_PATH).
"""

from ._bag import Bag, bag
from ._library import IronError, library_path, version
from .digest import Digest, DigestResult, seal
from .files import Check, Difference, FileCheck, Stat, check, diff, stat, sum_file
from .manifest import Manifest, StreamFile
from .parts import merge_indexed, positions, sum_part
from .recorder import Recorder

__version__ = "0.1.0"

__all__ = ["Bag", "Check", "Difference", "Digest", "DigestResult", "FileCheck", "IronError",
           "Manifest", "Recorder", "Stat", "StreamFile", "bag", "check", "diff", "library_path",
           "merge_indexed", "positions", "seal", "stat", "sum_file", "sum_part", "version"]
