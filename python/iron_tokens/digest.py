# SPDX-License-Identifier: MIT
"""Digest: computes a stream's seal and statistics from pieces."""

from __future__ import annotations

import base64
import contextlib
import ctypes
import operator
import threading
from collections.abc import Iterator, KeysView
from ctypes import byref
from dataclasses import asdict, dataclass, field
from typing import Any, Optional, SupportsIndex

from ._arrays import Tokens, tokens_of, unsigned_errors
from ._library import NO_POSITION, Handle, IronError, Options, Result, call, library, sized

STATE_FORMAT, STATE_VERSION = "iron.digest", 1


@dataclass(frozen=True)
class DigestResult:
    """What a digest or a scan found; str() is the seal.  Also works like a dict: result["seal"].

    Results are equal if they are of the same tokens in the same order, and of the same vocab.

    >>> result = Digest().result()
    >>> result.tokens, result["tokens"], result.min
    (0, 0, None)
    >>> result == Digest(vocab=100).result()
    False
    """

    seal: str  #: 32 hex digits
    seal_version: int
    words: tuple[int, int, int, int]  #: count, T, A, B: the words that the seal is computed from
    tokens: int
    vocab: int
    min: Optional[int]  #: None if there are no tokens
    max: Optional[int]
    out_of_vocab: int  #: number of tokens that are not below vocab
    first_out_position: Optional[int]  #: position of the first of them
    first_out_value: Optional[int]  #: its value
    #: These three only of files, with bag, sample or eos.
    bag: Optional[str] = field(default=None, compare=False)
    samples: Optional[int] = field(default=None, compare=False)
    bag_cut: Optional[str] = field(default=None, compare=False)  #: "rows", "sample=L", ...

    def _fields(self) -> dict[str, Any]:
        fields = asdict(self)
        if self.bag is None:
            del fields["bag"], fields["samples"], fields["bag_cut"]
        return fields

    def keys(self) -> KeysView[str]:
        """The names of the fields, so that dict(result) works."""
        return self._fields().keys()

    def __getitem__(self, key: str) -> Any:
        try:
            return self._fields()[key]
        except KeyError:
            raise KeyError(key) from None

    def __str__(self) -> str:
        return self.seal


def _result_of(raw: Result, **more: Any) -> DigestResult:
    words, has_out = raw.words, raw.first_out_position != NO_POSITION
    return DigestResult(
        raw.seal.decode(), raw.seal_version, (words[0], words[1], words[2], words[3]),
        raw.tokens, raw.vocab,
        raw.min if raw.tokens else None, raw.max if raw.tokens else None, raw.out_of_vocab,
        raw.first_out_position if has_out else None, raw.first_out_value if has_out else None,
        **more)


@contextlib.contextmanager
def _gpu_errors(tokens: Tokens) -> Iterator[None]:
    """Without CUDA, says what to do in Python instead of what to do in the command."""
    try:
        yield
    except IronError as error:
        if not tokens.on_device or error.status != "IRON_E_UNSUPPORTED":
            raise
        why = str(error).rpartition("; ")[0] or str(error)
        raise IronError(f"cannot read tokens on a GPU: {why}; copy them to the CPU (.cpu())",
                        error.status) from None


class Digest:
    """Takes pieces of a token stream, in any order; see the package's docstring.

    vocab    tokens at or above it are counted, not refused
    threads  0: every CPU this process may use
    device   number of the CUDA device for tokens on a GPU; None: the device that has them
    backend  None, "auto" or "cuda", for tokens on a GPU

    Values that are not tokens raise IronError, a ValueError, with the position; anything but
    integers raises TypeError.  A call that fails leaves the digest unchanged.  A digest may be used
    from several threads.  It is closed by close(), at the end of a with block, or when
    garbage-collected.  Digests are equal if they have seen the same tokens at the same positions
    and have the same vocab.

    >>> digest = Digest(vocab=100)
    >>> digest.update([3, 1, 4])
    >>> digest.update([5, 9], position=4)
    >>> digest
    <iron_tokens.Digest up to position 6, vocab 100; 3 to 3 are missing>
    >>> digest.update([1], position=3)
    >>> digest.hexdigest() == seal([3, 1, 4, 1, 5, 9])
    True
    """

    __module__ = "iron_tokens"

    def __init__(self, vocab: int = 50257, threads: int = 0, device: Optional[int] = None,
                 backend: Optional[str] = None) -> None:
        self._lock = threading.Lock()
        self._handle = Handle()
        self._end = 0
        self._setup = (vocab, threads, device, backend)
        self._device = device or 0  # the one in use
        if operator.index(vocab) < 1 or vocab > 2**32:
            raise IronError(f"vocab is {vocab}; it must be 1 to 4294967296")
        if operator.index(threads) not in range(1025):
            raise IronError(f"threads is {threads}; it must be 0 to 1024")
        if device is not None and operator.index(device) not in range(2**32):
            raise IronError(f"device is {device}; it must be 0 or more")
        if backend == "opencl":
            raise IronError("backend is opencl, but arrays on GPUs give CUDA addresses; use cuda or "
                            "None")
        call("iron_digest_init", byref(self._handle), byref(self._options()))

    def _options(self) -> Options:
        vocab, threads, _, backend = self._setup
        if backend is None or backend == "auto":
            backend = "cuda"  # the only kind of device memory that arrays give the address of
        return sized(Options, threads=threads, vocab=vocab, device=self._device,
                     backend=backend.encode())

    def _open(self) -> Any:
        if not self._handle.own:
            raise IronError("the digest is closed; create a new one", "IRON_E_STATE")
        return byref(self._handle)

    @property
    def vocab(self) -> int:
        """The size of the vocabulary: tokens at or above it are counted."""
        return self._setup[0]

    @property
    def end(self) -> int:
        """The position after the last one seen, where update appends."""
        return self._end

    def update(self, array: Any, position: Optional[SupportsIndex] = None) -> None:
        """Adds the array's tokens, starting at `position`; None: append after the last one seen."""
        with tokens_of(array) as tokens, self._lock:
            at = self._end if position is None else operator.index(position)
            if at not in range(2**64):
                raise IronError(f"position is {at}; it must be 0 to {2**64 - 2}")
            self._take(at, tokens)
            if tokens.count:
                self._end = max(self._end, at + tokens.count)

    def _take(self, at: int, tokens: Tokens) -> None:
        self._open()
        if tokens.on_device and tokens.device not in (None, self._device):
            self._change_device(tokens.device or 0)
        place = (at, tokens.dtype, tokens.address, tokens.count)
        with unsigned_errors(tokens), _gpu_errors(tokens):
            tokens.check_signed(at, self._device)
            if tokens.on_device:
                call("iron_digest_update_device", self._open(), *place, tokens.stream)
            else:
                call("iron_digest_update", self._open(), *place)

    def _change_device(self, device: int) -> None:
        if self._setup[2] is not None:
            raise IronError(f"the tokens are on CUDA device {device}, but the digest uses device "
                            f"{self._device}; create it without device, or with device={device}")
        state, self._device = self._save(), device
        self._replace(state)

    def merge(self, other: Digest) -> None:
        """Adds everything the other digest has seen; no position may be in both."""
        if not isinstance(other, Digest):
            raise TypeError(f"cannot merge {type(other).__name__} into a Digest; use "
                            "Digest.from_state_dict for a saved state")
        with other.copy() as theirs, self._lock:  # a copy: holding both locks could deadlock
            call("iron_digest_merge", self._open(), theirs._open())
            self._end = max(self._end, theirs._end)

    def result(self) -> DigestResult:
        """The DigestResult so far; more updates may follow.  A gap before the end is an error."""
        raw = sized(Result)
        with self._lock:
            call("iron_digest_final", self._open(), byref(raw))
        return _result_of(raw)

    final = result

    def hexdigest(self) -> str:
        """The seal; named as in hashlib."""
        return self.result().seal

    def gap(self) -> Optional[tuple[int, int]]:
        """(first, end) of the first missing range before the last position seen; None if there is
        no gap."""
        first, end = ctypes.c_uint64(), ctypes.c_uint64()
        with self._lock:
            library().iron_digest_gap(self._open(), byref(first), byref(end))
        return None if end.value == NO_POSITION else (first.value, end.value)

    def _save(self) -> bytes:
        size = ctypes.c_size_t()
        call("iron_digest_save", self._open(), None, 0, byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        call("iron_digest_save", self._open(), buffer, size.value, byref(size))
        return buffer.raw

    def _replace(self, state: bytes) -> None:
        fresh = Handle()
        self._open()
        call("iron_digest_load", byref(fresh), byref(self._options()), state, len(state))
        self._handle, fresh = fresh, self._handle
        library().iron_digest_deinit(byref(fresh))

    def _state(self) -> tuple[bytes, int]:
        with self._lock:
            return self._save(), self._end

    def state_dict(self) -> dict[str, Any]:
        """The complete state, as a plain dict that json and torch.save can store."""
        state, end = self._state()
        return {"format": STATE_FORMAT, "version": STATE_VERSION, "vocab": self.vocab, "end": end,
                "state": base64.b64encode(state).decode()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores a saved state; the vocab must be the same."""
        self._load(*_checked(state_dict))

    def _load(self, state: bytes, end: int) -> None:
        with self._lock:
            self._replace(state)
            self._end = end

    @classmethod
    def from_state_dict(cls, state_dict: dict[str, Any], threads: int = 0,
                        device: Optional[int] = None, backend: Optional[str] = None) -> Digest:
        """Creates a digest from a saved state, with the vocab of that state."""
        state, end = _checked(state_dict)
        made = cls(state_dict["vocab"], threads, device, backend)
        made._load(state, end)
        return made

    def copy(self) -> Digest:
        """Another digest that has seen the same."""
        made = type(self)(*self._setup)
        made._load(*self._state())
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self).from_state_dict, (self.state_dict(), *self._setup[1:]))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Digest):
            return NotImplemented
        return self is other or (self.vocab, *self._state()) == (other.vocab, *other._state())

    __hash__ = None  # type: ignore[assignment]  # it can change

    def __repr__(self) -> str:
        if not self._handle.own:
            return "<iron_tokens.Digest, closed>"
        gap = self.gap()
        if gap is None:
            return (f"<iron_tokens.Digest {self.hexdigest()} of {self.end} tokens, vocab "
                    f"{self.vocab}>")
        return (f"<iron_tokens.Digest up to position {self.end}, vocab {self.vocab}; {gap[0]} to "
                f"{gap[1] - 1} are missing>")

    def close(self) -> None:
        """Frees the digest's memory; it cannot be used any more."""
        with self._lock:
            if self._handle.own:
                library().iron_digest_deinit(byref(self._handle))

    def __enter__(self) -> Digest:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self.close()


def _checked(state_dict: Any) -> tuple[bytes, int]:
    """Returns the bytes and the end of a state_dict, or raises if this version cannot read it."""
    if not isinstance(state_dict, dict) or state_dict.get("format") != STATE_FORMAT:
        raise IronError(f"not a state_dict of a digest: its format is not '{STATE_FORMAT}'",
                        "IRON_E_FORMAT")
    if state_dict.get("version") != STATE_VERSION:
        raise IronError(f"the state_dict has version {state_dict.get('version')}, but this "
                        f"iron_tokens reads {STATE_VERSION}; use a newer iron_tokens",
                        "IRON_E_FORMAT")
    try:
        state = base64.b64decode(state_dict["state"], validate=True)
        end, vocab = operator.index(state_dict["end"]), operator.index(state_dict["vocab"])
    except (KeyError, TypeError, ValueError) as why:
        raise IronError(f"the state_dict is damaged: {why!r}", "IRON_E_FORMAT") from None
    if end not in range(2**64) or vocab not in range(1, 2**32 + 1):
        raise IronError(f"the state_dict is damaged: end {end}, vocab {vocab}", "IRON_E_FORMAT")
    return state, end


def seal(array: Any) -> str:
    """The seal of one array, 32 hex digits.

    >>> seal([1, 2, 3]) == seal(bytes([1, 2, 3])) == seal(range(1, 4))
    True
    """
    with Digest() as digest:
        digest.update(array, 0)
        return digest.hexdigest()
