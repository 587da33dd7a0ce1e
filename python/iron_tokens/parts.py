# SPDX-License-Identifier: MIT
"""Parts of one stream, computed anywhere and merged in any order.

Job arrays, Dask, Ray, Spark and MPI all give results as pairs of a part's number, from 0, and what
a worker computed.  merge_indexed joins them, and refuses a part that is missing or there twice.  A
part is one of

  - what sum_part returns for files, the text that `iron sum --part` writes;
  - a Digest, or its state_dict(), of tokens at their positions in the stream;
  - a Bag, or its text, of samples, which need no positions.

Where workers have partitions of unknown length, positions() says where each begins in the stream.
docs/scale.md has recipes.
"""

from __future__ import annotations

import operator
import os
import tempfile
from collections.abc import Iterable
from typing import Any, Optional

from ._bag import Bag
from ._library import IronError
from ._source import Path, Paths
from .digest import Digest, DigestResult
from .manifest import Manifest


def sum_part(index: int, parts: int, *paths: Paths, **options: Any) -> tuple[int, str]:
    """(index, text): part `index` of `parts`, from 0, of the stream that sum_file would read.

    All parts need the same options, those of Manifest.scan, and see the same files.  The text is
    what `iron sum --part` writes, with index + 1, so that `iron merge` can join parts of both.
    """
    index = _index(index, parts)
    made = Manifest.scan(*paths, part=(index + 1, parts), **options)
    with tempfile.TemporaryDirectory() as folder:
        made.write(os.path.join(folder, "part"))
        with open(os.path.join(folder, "part"), encoding="utf-8", errors="surrogateescape") as text:
            return index, text.read()


def positions(counts: Iterable[tuple[int, int]], parts: int) -> list[int]:
    """Where each part begins in the stream, from (index, number of tokens) in any order."""
    starts, total = [], 0
    for count in _in_order(counts, parts):
        starts.append(total)
        total += operator.index(count)
    return starts


def merge_indexed(results: Iterable[tuple[int, Any]], parts: int,
                  manifest: Optional[Path] = None) -> Any:
    """The whole of all parts, from (index, part) in any order: a DigestResult, or a Bag.

    A part that is missing, there twice or unlike the others raises IronError, and so do digests
    whose positions overlap or leave a gap.  `manifest` is a path for the manifest of the whole
    stream, if the parts are those of sum_part.
    """
    found = _in_order(results, parts)
    kinds = {_kind(part) for part in found}
    if len(kinds) > 1:
        raise IronError(f"the parts are of different kinds: {', '.join(sorted(kinds))}")
    kind = kinds.pop()
    if manifest is not None and kind != "part of sum_part":
        raise IronError(f"a {kind} has no manifest; use sum_part")
    if kind == "part of sum_part":
        return _merge_texts(found, manifest)
    if kind == "bag":
        bags = Bag()
        for part in found:
            bags.merge(part if isinstance(part, Bag) else Bag(part))
        return bags
    with _digest(found[0]).copy() as whole:
        for part in found[1:]:
            whole.merge(_digest(part))
        return whole.result()


def _index(index: int, parts: int) -> int:
    if operator.index(parts) < 1:
        raise IronError(f"{parts} parts; there must be at least one")
    if operator.index(index) not in range(parts):
        raise IronError(f"part {index} of {parts}; parts are 0 to {parts - 1}")
    return operator.index(index)


def _in_order(results: Iterable[tuple[int, Any]], parts: int) -> list[Any]:
    found: dict[int, Any] = {}
    for index, part in results:
        if _index(index, parts) in found:
            raise IronError(f"part {index} is there twice; pass each part once")
        found[operator.index(index)] = part
    missing = [k for k in range(_index(0, parts), parts) if k not in found]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise IronError(f"part {missing[0]}{more} of 0 to {parts - 1} missing; compute it again")
    return [found[k] for k in range(parts)]


def _kind(part: Any) -> str:
    if isinstance(part, (Digest, dict)):
        return "digest"
    if isinstance(part, str) and part.lstrip().startswith("{"):
        return "part of sum_part"
    if isinstance(part, (Bag, str)):
        return "bag"
    raise TypeError(f"{type(part).__name__} is not a part: not a Digest, a state_dict, a Bag, or a "
                    "text of sum_part")


def _digest(part: Any) -> Digest:
    return part if isinstance(part, Digest) else Digest.from_state_dict(part)


def _merge_texts(texts: list[str], path: Optional[Path]) -> DigestResult:
    made = []
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "part")
        for text in texts:
            with open(name, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text)
            made.append(Manifest.read(name))
    whole = Manifest.merge(made)
    if path is not None:
        whole.write(path)
    return whole.result
