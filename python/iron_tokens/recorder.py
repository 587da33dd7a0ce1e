# SPDX-License-Identifier: MIT
"""Recorder: writes down what a training run really consumed.

    from iron_tokens import Recorder

    with Recorder(f"run/rank-{rank}.ledger", rank=rank, world=world) as recorder:
        for step, batch in enumerate(recorder.watch(loader)):
            train(batch)

Each rank writes a ledger of its own: a record for every step with the seal of its tokens, their bag
and the seal of each sample.  `iron ledger check run/` says what repeats, conflicts or is missing, and
`iron ledger diff run-a/ run-b/` where two runs part.  With url="http://HOST/v1/runs/NAME" the records also
go to a server, which checks them while the job runs.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import http.client
import json
import os
import struct
import threading
import time
import urllib.parse
import warnings
import zlib
from collections.abc import Iterable, Iterator
from ctypes import byref, c_void_p
from typing import Any, BinaryIO, NoReturn, Optional, TypeVar, Union

from ._arrays import in_host_memory, shape_of, tokens_of, unsigned_errors
from ._library import RecorderOptions, call, library

Path = Union[str, "os.PathLike[str]"]


T = TypeVar("T")


class _Refused(Exception):
    """The server will not take the records, however often they are sent."""


class _Sender(threading.Thread):
    """Sends a ledger to a run of a server, in the background.

    It reads the file behind what the server has acknowledged, so nothing is kept in memory while the
    server is away.  Each piece begins with the last frame of the one before: the server then keeps the
    order of the ledger, and does not store that frame again.
    """

    HEADER, PIECE = 64, (1 << 20) - 64

    def __init__(self, path: str, rank: int, url: str, token: Optional[str]) -> None:
        super().__init__(name="iron-recorder", daemon=True)
        parts = urllib.parse.urlsplit(url)
        folder, _, name = parts.path.rstrip("/").rpartition("/")
        if parts.scheme not in ("http", "https") or not parts.hostname or folder != "/v1/runs" or \
                not name or parts.query or parts.fragment or parts.username:
            raise ValueError(f"'{url}' is not the address of a run; it looks like "
                             "http://127.0.0.1:8080/v1/runs/NAME")
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(parts.hostname, parts.port, timeout=30)
        self._target, self._path, self._rank = parts.path.rstrip("/"), path, rank
        self._headers = {"Content-Type": "application/octet-stream"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._pid, self._wake = os.getpid(), threading.Event()
        self._is_closing = self._has_asked = False
        self._last = self._end = self.HEADER  # the last acknowledged frame begins and ends there
        self.why: Optional[str] = "it was not reached"  # what is not sent yet was not sent because of that

    def finish(self, seconds: float) -> bool:
        """Waits so long until everything was sent; False: it was not."""
        if self._pid != os.getpid():
            return True
        self._is_closing = True
        self._wake.set()
        self.join(seconds)
        return not self.is_alive() and self.why is None

    def run(self) -> None:
        try:
            self._send_all()
        finally:
            self._connection.close()

    def _send_all(self) -> None:
        pause = 0.2
        while True:
            is_closing = self._is_closing  # before it looks: what is there then must be sent
            try:
                while self._send_piece():
                    pause = 0.2
                self.why = None
                if is_closing:
                    return
                self._wake.wait(1)
            except _Refused as why:
                self.why = str(why)
                warnings.warn(f"{self._path}: sending has stopped, recording and training go on: "
                              f"{why}", RuntimeWarning, stacklevel=1)
                return
            except Exception as why:  # away, restarting, or full: later
                self.why = str(why) or repr(why)
                self._connection.close()
                if self._is_closing:
                    time.sleep(min(pause, 1))
                else:
                    self._wake.wait(pause)
                pause = min(2 * pause, 30)

    def _ask(self, method: str, target: str,
             body: Optional[bytes] = None) -> tuple[int, dict[str, Any]]:
        """(status, reply); raises for what may be over later."""
        self._connection.request(method, target, body, self._headers)
        response = self._connection.getresponse()
        data = response.read(1 << 20)
        try:
            reply = json.loads(data)
        except ValueError:
            reply = {}
        said = f"{response.status} {reply.get('detail', response.reason)}"
        if response.status in (408, 429) or response.status >= 500:
            raise OSError(said)
        if response.status not in (200, 404) or (method == "POST" and response.status != 200):
            raise _Refused(said)
        return response.status, reply

    def _frames(self, file: BinaryIO, start: int) -> tuple[list[int], bytes]:
        """The lengths of the whole frames of a piece that begins there, and its bytes."""
        file.seek(start)
        data, at, lengths = file.read(self.PIECE), 0, []
        while len(data) - at >= 16:
            size, check = struct.unpack_from("<II", data, at + 4)
            if at + 16 + size > self.PIECE and at == 0 and size < 1 << 28:
                raise _Refused(f"the record at byte {start} is longer than a server takes; record micro "
                               "steps, or without samples")
            payload = data[at + 16:at + 16 + size]
            if len(payload) < size or zlib.crc32(data[at:at + 8]) ^ zlib.crc32(payload) != check:
                break
            lengths.append(16 + size)
            at += 16 + size
        return lengths, data[:at]

    def _find_resume(self, file: BinaryIO) -> None:
        """Goes on behind the server's newest frame of this rank, if it has everything before."""
        status, reply = self._ask("GET", f"{self._target}?rank={self._rank}")
        self._has_asked = True
        rows = reply.get("by_rank") if status == 200 else None
        if not rows:
            return
        at, left = self.HEADER, rows[0]["records"] - 1
        while left > 0:
            lengths, data = self._frames(file, at)
            if not lengths:
                return
            if left > len(lengths):
                at, left = at + len(data), left - len(lengths)
                continue
            begin = sum(lengths[:left - 1])
            frame = data[begin:begin + lengths[left - 1]]
            if hashlib.sha256(frame).hexdigest()[:32] == rows[0]["last"]:
                self._last, self._end = at + begin, at + begin + len(frame)
            return

    def _send_piece(self) -> bool:
        """False: there is nothing more to send."""
        with open(self._path, "rb") as file:
            header = file.read(self.HEADER)
            if not self._has_asked:
                self._find_resume(file)
            start = self._last
            lengths, data = self._frames(file, start)
            if start + len(data) <= self._end:  # nothing new fits behind the last frame
                start = self._end
                lengths, data = self._frames(file, start)
        if not lengths:
            return False
        self._ask("POST", f"{self._target}/steps", header + data)
        self._end = start + len(data)
        self._last = self._end - lengths[-1]
        return True


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
                 flush_seconds: float = 1.0, url: Optional[str] = None, token: Optional[str] = None,
                 close_seconds: float = 5.0) -> None:
        """Creates the ledger; with append=True it goes on with one and marks the resume.

        samples=False leaves out the seal of each sample: files are smaller, and `check` finds only
        whole steps that repeat.

        url sends the records to a run of a server, too, in the background: http://HOST:8080/v1/runs/NAME,
        with the server's token if it needs one.  While the server is away they wait in the file; close()
        waits up to close_seconds for the rest.
        """
        self.path, self.rank, self.world = os.fspath(path), int(rank), int(world)
        self._own: Optional[c_void_p] = None
        self._failed = False
        self._sender: Optional[_Sender] = None
        sender = _Sender(self.path, self.rank, url, token) if url else None
        self._url, self._close_seconds = url, close_seconds
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
        if sender:
            self._sender = sender
            sender.start()

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
        sender, self._sender = self._sender, None
        if sender and not sender.finish(self._close_seconds):
            warnings.warn(f"{self.path}: the server does not have all records: {sender.why}; send the "
                          f"rest with iron push {self.path} {self._url}", RuntimeWarning, stacklevel=2)

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
