# SPDX-License-Identifier: MIT
"""Recorder: writes down what a training run really consumed.

    from iron_tokens import Recorder

    with Recorder(f"run/rank-{rank}.ledger", rank=rank, world=world) as recorder:
        for step, batch in enumerate(recorder.watch(loader)):
            train(batch)

Each rank writes a ledger of its own: a record for every step with the seal of its tokens, their bag
and the seal of each sample.  `iron ledger check run/` says what repeats, conflicts or is missing, and
`iron ledger diff run-a/ run-b/` where two runs part.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import warnings
from collections.abc import Iterable, Iterator
from ctypes import byref, c_void_p
from typing import Any, NoReturn, Optional, TypeVar, Union

from ._arrays import in_host_memory, shape_of, tokens_of, unsigned_errors
from ._library import RecorderOptions, call, library

Path = Union[str, "os.PathLike[str]"]


T = TypeVar("T")


class Recorder:
    """Appends a record to a ledger for each step of one rank.

    Opening never hides an error of the caller: a wrong rank or a path that cannot be written raises.
    Recording never stops training: after an error it warns once and goes on without.

    >>> with Recorder("rank-0.ledger") as recorder:
    ...     for batch in recorder.watch([[[5, 6], [7, 8]], [[9, 10], [11, 12]]]):
    ...         pass
    >>> recorder.state_dict()
    {'step': 2, 'epoch': 0}
    """

    __module__ = "iron_tokens"

    def __init__(self, path: Path, rank: int = 0, world: int = 1, append: bool = False, *,
                 samples: bool = True, flush_records: int = 64,
                 flush_seconds: float = 1.0) -> None:
        """Creates the ledger; with append=True it goes on with one and marks the resume.

        samples=False leaves out the seal of each sample: files are smaller, and `check` finds only
        whole steps that repeat.
        """
        self.path, self.rank, self.world = os.fspath(path), int(rank), int(world)
        self._own: Optional[c_void_p] = None
        self._failed = False
        self._next, self._epoch, self._watched = 0, 0, -1
        options = RecorderOptions()
        library().iron_recorder_options_init_sized(byref(options), ctypes.sizeof(options))
        if self.rank < 0 or self.world < 1:
            raise ValueError(f"rank {rank} of {world}; ranks are 0 to world - 1")
        options.rank, options.world, options.is_append = self.rank, self.world, bool(append)
        options.is_without_samples = not samples
        options.flush_records, options.flush_seconds = flush_records, flush_seconds
        own = c_void_p()
        call("iron_recorder_open", os.fsencode(self.path), byref(options), byref(own))
        self._own = own

    def step(self, step: int, tokens: Any, micro: int = 0, epoch: int = 0) -> None:
        """Records the tokens of a step, or of one of its micro steps.

        `tokens` is a 2-D array or tensor whose rows are the samples, or a list of 1-D ones.
        """
        self._next, self._epoch = step + 1, epoch
        if self._own is None or self._failed:
            return
        try:
            call("iron_recorder_begin", self._own, step, micro, epoch)
            self._add(tokens)
            call("iron_recorder_end", self._own)
        except Exception as why:  # whatever a batch is, training goes on
            self._fail(why)

    def _add(self, batch: Any) -> None:
        if isinstance(batch, (list, tuple)) and (not batch or not isinstance(batch[0], int)):
            for row in batch:
                self._add_rows(in_host_memory(row), None)
            return
        self._add_rows(in_host_memory(batch), shape_of(batch))

    def _add_rows(self, batch: Any, shape: Optional[tuple[int, ...]]) -> None:
        if shape is not None and len(shape) > 2:
            raise TypeError(f"an array of shape {shape} is not a batch of samples; it must have two "
                            "dimensions")
        with tokens_of(batch) as tokens:
            if tokens.on_device:
                raise TypeError("the tokens are on a GPU and cannot be copied; pass a torch tensor "
                                "or an array in host memory")
            rows, length = shape if shape is not None and len(shape) == 2 else (1, tokens.count)
            tokens.check_signed()
            with unsigned_errors(tokens):
                call("iron_recorder_rows", self._own, tokens.dtype, tokens.address, rows, length)

    def _fail(self, why: Exception) -> None:
        self._failed = True
        warnings.warn(f"{self.path}: recording has stopped, training goes on: {why}",
                      RuntimeWarning, stacklevel=3)

    def watch(self, loader: Iterable[T], key: str = "input_ids", *, accumulate: int = 1,
              epoch: Optional[int] = None) -> Iterator[T]:
        """Yields the batches of a loader unchanged, and records each before it is yielded.

        A batch is an array or tensor, or a dict (or an object with attributes) with one under
        `key`.  `accumulate` batches are micro steps of one step.  Each call counts as an epoch of
        its own unless `epoch` is given; steps go on from the last one recorded, or from
        load_state_dict.
        """
        if epoch is None:
            epoch = self._watched = self._watched + 1
        self._epoch = epoch
        step, micro = self._next, 0
        for batch in loader:
            try:
                tokens = _tokens_in(batch, key)
            except Exception as why:  # the batch is still the caller's
                tokens = None
                if self._own is not None and not self._failed:
                    self._fail(why)
            if tokens is not None:
                self.step(step, tokens, micro, epoch)
            micro += 1
            if micro == accumulate:
                step, micro = step + 1, 0
            self._next = step
            yield batch
        self._next = step + (micro > 0)

    def flush(self) -> None:
        """Hands all records to the system: they survive the end of this process."""
        if self._own is None or self._failed:
            return
        try:
            call("iron_recorder_flush", self._own)
        except Exception as why:
            self._fail(why)

    def state_dict(self) -> dict[str, int]:
        """The next step and the epoch, to be saved with the model's checkpoint."""
        self.flush()
        return {"step": self._next, "epoch": self._epoch}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Goes on at the step of a checkpoint: watch() numbers its steps from there."""
        self._next, self._epoch = int(state["step"]), int(state["epoch"])
        self._watched = self._epoch - 1

    def close(self) -> None:
        """Writes what is waiting and marks the ledger as complete."""
        own, self._own = self._own, None
        if own is None:
            return
        try:
            call("iron_recorder_close", own)
        except Exception as why:
            if not self._failed:
                self._fail(why)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_own", None) is not None:
            with contextlib.suppress(Exception):
                self.close()

    def __repr__(self) -> str:
        return f"Recorder({self.path!r}, rank={self.rank}, world={self.world})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Recorder belongs to one process; create it where the batches arrive, not "
                        "in a worker of the loader")


def _tokens_in(batch: Any, key: str) -> Any:
    """The tokens of a batch: under `key`, or the batch itself."""
    if hasattr(batch, "keys"):
        if key in batch:
            return batch[key]
        raise KeyError(f"the batch has no '{key}' but {', '.join(map(str, batch.keys()))}; use "
                       "watch(loader, key=...)")
    if not isinstance(batch, (list, tuple)) and hasattr(batch, key):
        return getattr(batch, key)
    if isinstance(batch, (list, tuple)) and batch and hasattr(batch[0], "keys"):
        return [row[key] for row in batch]
    # torch's TensorDataset: a list of one tensor for each member
    if isinstance(batch, (list, tuple)) and batch and len(shape_of(batch[0]) or ()) == 2:
        return batch[0]
    return batch
