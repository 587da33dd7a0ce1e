# SPDX-License-Identifier: MIT
"""Bag: the order-free seal of samples."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from ctypes import byref
from typing import Any, Optional

from ._arrays import Tokens, in_host_memory, shape_of, tokens_of, unsigned_errors
from ._library import BAG_TEXT, IronError, RawBag, call, library


class Bag:
    """A set of samples, in which the order does not matter but repetitions count.

    Each sample is sealed as a stream of its own, and the seals are added up.  str(bag) is
    `<32 hex digits>-<number of samples>`, the same text as that of `iron sum --bag`.  Bags of parts
    add up to the bag of the whole: a + b, or a.merge(b).  Like the seal, it detects accidents, not
    an adversary.

    >>> first, second = Bag(), Bag()
    >>> first.add([5, 6, 7])
    >>> second.add_rows([[8, 9], [5, 6, 7]])
    >>> (first + second).samples
    3
    >>> first == Bag(str(first))
    True
    """

    __module__ = "iron_tokens"

    def __init__(self, text: Optional[str] = None) -> None:
        """An empty bag, or the one that a text shows."""
        self._raw = RawBag()
        if text is not None:
            call("iron_bag_parse", text.encode(), byref(self._raw))

    @property
    def samples(self) -> int:
        """How many samples were added."""
        return int(self._raw.samples)

    def add(self, sample: Any) -> None:
        """Adds one sample: an array, tensor, buffer or list of token ids; it may be empty."""
        with tokens_of(in_host_memory(sample)) as tokens:
            self._add(tokens, 1, tokens.count)

    def add_rows(self, rows: Any) -> None:
        """Adds the rows of a 2-D array or tensor, or any iterable of samples."""
        shape = None if isinstance(rows, (list, tuple)) else shape_of(rows)
        if shape is None:
            added = Bag()
            for sample in rows:
                added.add(sample)
            self.merge(added)
            return
        if len(shape) != 2:
            raise IronError(f"an array of shape {shape} is not a list of samples; it must have two "
                            "dimensions")
        with tokens_of(in_host_memory(rows)) as tokens:
            self._add(tokens, *shape)

    def _add(self, tokens: Tokens, rows: int, length: int) -> None:
        if tokens.on_device:
            raise TypeError("the tokens are on a GPU and cannot be copied; pass a torch tensor or "
                            "an array in host memory")
        tokens.check_signed()
        with unsigned_errors(tokens):
            call("iron_bag_add_rows", byref(self._raw), tokens.dtype, tokens.address, rows, length)

    def merge(self, other: Bag) -> None:
        """Adds all samples of another bag."""
        if not isinstance(other, Bag):
            raise TypeError(f"cannot merge {type(other).__name__} into a Bag; make a Bag of it")
        library().iron_bag_merge(byref(self._raw), byref(other._raw))

    def __add__(self, other: Bag) -> Bag:
        if not isinstance(other, Bag):
            return NotImplemented
        made = Bag()
        made.merge(self)
        made.merge(other)
        return made

    def _words(self) -> tuple[int, int, int]:
        return self._raw.hi, self._raw.lo, self._raw.samples

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Bag):
            return NotImplemented
        return self._words() == other._words()

    __hash__ = None  # type: ignore[assignment]  # it can change

    def __str__(self) -> str:
        text = ctypes.create_string_buffer(BAG_TEXT)
        library().iron_bag_format(byref(self._raw), text)
        return text.value.decode()

    def __repr__(self) -> str:
        return f"Bag({str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Bag, (str(self),)


def bag(samples: Iterable[Any]) -> str:
    """The bag of samples as a text: of the rows of a 2-D array, or of any iterable of samples.

    >>> bag([[5, 6, 7], [8, 9]]) == bag([[8, 9], [5, 6, 7]])
    True
    >>> bag([])
    '00000000000000000000000000000000-0'
    """
    made = Bag()
    made.add_rows(samples)
    return str(made)
