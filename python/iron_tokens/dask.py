# SPDX-License-Identifier: MIT
"""Seals on a Dask cluster: of token files that all workers see, and of Dask arrays.

    from dask.distributed import Client
    from iron_tokens.dask import sum_files

    print(sum_files(Client("scheduler:8786"), "/data/shards", dtype="u16", parts=256).seal)

Results do not depend on the number of parts, workers or chunks.  Needs dask and distributed; the
workers need iron_tokens.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Optional

from ._library import IronError
from .digest import Digest, DigestResult
from .parts import merge_indexed, sum_part


def sum_files(client: Any, *paths: Any, parts: Optional[int] = None, threads: int = 1,
              manifest: Optional[str] = None, **options: Any) -> DigestResult:
    """The DigestResult of one stream, read in parts by the workers: what sum_file returns.

    `parts` is four for each worker thread unless it is given, and each part is read by `threads`
    threads.  `manifest` is a path for the stream's manifest; `options` are those of sum_part.  A
    part whose worker is lost is computed again by Dask.
    """
    as_completed = import_module("dask.distributed").as_completed  # here: not all have Dask
    parts = parts or 4 * max(1, sum(client.nthreads().values()))
    futures = client.map(_sum_part, range(parts), pure=False, retries=2, parts=parts, paths=paths,
                         options={"threads": threads, **options})
    try:
        whole: DigestResult = merge_indexed(
            (future.result() for future in as_completed(futures)), parts, manifest)
        return whole
    finally:
        client.cancel(futures)


def _sum_part(index: int, parts: int, paths: Any, options: Any) -> tuple[int, str]:
    return sum_part(index, parts, *paths, **options)


def digest_array(array: Any, vocab: int = 50257) -> DigestResult:
    """The DigestResult of a Dask array of tokens in C order: what Digest gives for the whole.

    It may be chunked along its first axis only; its blocks never leave their workers.
    """
    dask = import_module("dask")
    if any(len(chunks) > 1 for chunks in array.chunks[1:]):
        raise IronError(f"the array has chunks of {array.chunksize}; rechunk it to whole rows")
    width = 1
    for length in array.shape[1:]:
        width *= length
    states, position = [], 0
    for block, rows in zip(array.to_delayed().ravel(), array.chunks[0]):
        states.append(dask.delayed(_digest_block)(block, position, vocab))
        position += rows * width
    whole: DigestResult = merge_indexed(enumerate(dask.compute(*states)), len(states))
    return whole


def _digest_block(block: Any, position: int, vocab: int) -> dict[str, Any]:
    with Digest(vocab, threads=1) as digest:
        digest.update(block, position)
        return digest.state_dict()
