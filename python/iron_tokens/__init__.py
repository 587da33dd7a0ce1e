# SPDX-License-Identifier: MIT
"""iron_tokens: are these the same tokens, in the same order?

A Digest takes pieces of a token stream, in any order and from any number of processes, and gives
the stream's seal: 32 hex digits that depend on the tokens and their order alone, not on how they
were stored, cut, sharded or read.  It knows which positions it has seen: a piece that comes twice
is refused, one that is missing is named.  A checksum against accidents, not against an adversary.

    from iron_tokens import Digest

    digest = Digest(vocab=50257)
    for batch in loader:                    # NumPy, PyTorch, array.array, bytes, CUDA tensors, ...
        digest.update(batch.tokens, position=batch.first_token)
    print(digest.hexdigest())

Everything is done by iron's C library, libiron.so.0, without a build step.  It is looked for

 1. at the path in the environment variable IRON_LIBRARY, and nowhere else if that is set;
 2. next to this package's files;
 3. in build/ of the checkout that this package lies in;
 4. by the system's loader (an installed libiron; ldconfig, LD_LIBRARY_PATH).
"""

from ._library import IronError, library_path, version
from .digest import Digest, DigestResult, seal
from .files import sum_file

__all__ = ["Digest", "DigestResult", "IronError", "library_path", "seal", "sum_file", "version"]
