# SPDX-License-Identifier: MIT
"""Digest: computes a stream's seal and statistics from pieces."""

import base64
import ctypes
import operator
import re
import threading
from ctypes import byref
from dataclasses import asdict, dataclass
from typing import Optional

from ._arrays import tokens_of
from ._library import NO_POSITION, Handle, IronError, Options, Result, call, library

STATE_FORMAT, STATE_VERSION = "iron.digest", 1


@dataclass(frozen=True)
class DigestResult:
    """Result of a digest; also works like a dict: result["seal"], dict(result)."""

    seal: str  # 32 hex digits
    seal_version: int
    words: tuple  # count, T, A, B: the words that the seal is computed from
    tokens: int
    vocab: int
    min: Optional[int]  # None if there are no tokens
    max: Optional[int]
    out_of_vocab: int  # number of tokens that are not below vocab
    first_out_position: Optional[int]  # position of the first of them
    first_out_value: Optional[int]  # its value
    bag: Optional[str] = None  # these three only from sum_file with bag, sample or eos
    samples: Optional[int] = None
    bag_cut: Optional[str] = None  # "rows", "documents", "sample=L" or "eos=E"

    def _fields(self):
        fields = asdict(self)
        if self.bag is None:
            del fields["bag"], fields["samples"], fields["bag_cut"]
        return fields

    def keys(self):
        return self._fields().keys()

    def __getitem__(self, key):
        try:
            return self._fields()[key]
        except KeyError:
            raise KeyError(key) from None


def _result_of(raw):
    has_out = raw.first_out_position != NO_POSITION
    return DigestResult(
        raw.seal.decode(), raw.seal_version, tuple(raw.words), raw.tokens, raw.vocab,
        raw.min if raw.tokens else None, raw.max if raw.tokens else None, raw.out_of_vocab,
        raw.first_out_position if has_out else None, raw.first_out_value if has_out else None)


class Digest:
    """Takes pieces of a token stream, in any order; see the package's docstring.

    vocab    tokens at or above it are counted, not refused
    threads  0: every CPU this process may use
    device   number of the CUDA or OpenCL device for tokens on a GPU; None: the first
    backend  None, "auto", "cuda" or "opencl", for tokens on a GPU

    A call that fails raises IronError and leaves the digest unchanged.  A digest may be used from
    several threads.  It is closed by close(), at the end of a with block, or when garbage-collected.
    """

    def __init__(self, vocab=50257, threads=0, device=None, backend=None):
        self._lock = threading.Lock()
        self._handle = Handle()
        self._end = 0
        self._setup = (vocab, threads, device, backend)
        if operator.index(vocab) < 1 or vocab > 2**32:
            raise IronError(f"vocab is {vocab}; it must be 1 to 4294967296")
        if operator.index(threads) not in range(1025):
            raise IronError(f"threads is {threads}; it must be 0 to 1024")
        if device is not None and operator.index(device) not in range(2**32):
            raise IronError(f"device is {device}; it must be 0 or more")
        call("iron_digest_init", byref(self._handle), byref(self._options()))

    def _options(self):
        vocab, threads, device, backend = self._setup
        return Options(ctypes.sizeof(Options), threads, vocab, device or 0,
                       backend.encode() if backend is not None else None, None)

    def _open(self):
        if not self._handle.own:
            raise IronError("the digest is closed; create a new one", "IRON_E_STATE")
        return byref(self._handle)

    @property
    def vocab(self):
        return self._setup[0]

    @property
    def end(self):
        """The position after the last one seen, where update appends."""
        return self._end

    def update(self, array, position=None):
        """Adds the array's tokens, starting at `position`; None: append after the last one seen."""
        with tokens_of(array) as tokens, self._lock:
            at = self._end if position is None else operator.index(position)
            if at not in range(2**64):
                raise IronError(f"position is {at}; it must be 0 to {2**64 - 2}")
            self._take(at, tokens)
            if tokens.count:
                self._end = max(self._end, at + tokens.count)

    def _take(self, at, tokens):
        place = (at, tokens.dtype, tokens.address, tokens.count)
        try:
            if not tokens.on_device:
                call("iron_digest_update", self._open(), *place)
                return
            own = self._setup[2] or 0
            if tokens.device not in (None, own):
                raise IronError(f"the tokens are on CUDA device {tokens.device}, but the digest "
                                f"uses device {own}; create it with device={tokens.device}")
            call("iron_digest_update_device", self._open(), *place, tokens.stream)
        except IronError as error:
            if not tokens.is_uint64:
                raise
            # The library reads the bits as int64, so it reports values from 2^63 on as negative.
            text = re.sub(r" is (-\d+);", lambda m: f" is {int(m[1]) + 2**64};", str(error))
            raise IronError(text, error.status) from None

    def merge(self, other):
        """Adds everything the other digest has seen; no position may be in both."""
        with other.copy() as theirs, self._lock:  # a copy: holding both locks could deadlock
            call("iron_digest_merge", self._open(), theirs._open())
            self._end = max(self._end, theirs._end)

    def result(self):
        """The DigestResult so far; more updates may follow.  A gap before the end is an error."""
        raw = Result(struct_size=ctypes.sizeof(Result))
        with self._lock:
            call("iron_digest_final", self._open(), byref(raw))
        return _result_of(raw)

    final = result

    def hexdigest(self):
        """The seal; named as in hashlib."""
        return self.result().seal

    def gap(self):
        """(first, end) of the first missing range before the last position seen; None if there is
        no gap."""
        first, end = ctypes.c_uint64(), ctypes.c_uint64()
        with self._lock:
            library().iron_digest_gap(self._open(), byref(first), byref(end))
        return None if end.value == NO_POSITION else (first.value, end.value)

    def _state(self):
        size = ctypes.c_size_t()
        with self._lock:
            call("iron_digest_save", self._open(), None, 0, byref(size))
            buffer = ctypes.create_string_buffer(size.value)
            call("iron_digest_save", self._open(), buffer, size.value, byref(size))
            return buffer.raw, self._end

    def state_dict(self):
        """The complete state, as a plain dict that json and torch.save can store."""
        state, end = self._state()
        return {"format": STATE_FORMAT, "version": STATE_VERSION, "vocab": self.vocab, "end": end,
                "state": base64.b64encode(state).decode()}

    def load_state_dict(self, state_dict):
        """Restores a saved state; the vocab must be the same."""
        state, end = _checked(state_dict)
        self._load(state, end)

    def _load(self, state, end):
        fresh = Handle()
        with self._lock:
            self._open()
            call("iron_digest_load", byref(fresh), byref(self._options()), state, len(state))
            self._handle, fresh = fresh, self._handle
            self._end = end
        library().iron_digest_deinit(byref(fresh))

    @classmethod
    def from_state_dict(cls, state_dict, threads=0, device=None, backend=None):
        """Creates a digest from a saved state, with the vocab of that state."""
        state, end = _checked(state_dict)
        made = cls(state_dict["vocab"], threads, device, backend)
        made._load(state, end)
        return made

    def copy(self):
        made = type(self)(*self._setup)
        made._load(*self._state())
        return made

    def __reduce__(self):
        return (type(self).from_state_dict, (self.state_dict(), *self._setup[1:]))

    def close(self):
        with self._lock:
            if self._handle.own:
                library().iron_digest_deinit(byref(self._handle))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None) is not None:
            self.close()


def _checked(state_dict):
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


def seal(array):
    """The seal of one array, 32 hex digits."""
    with Digest() as digest:
        digest.update(array, 0)
        return digest.hexdigest()
