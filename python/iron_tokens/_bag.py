# SPDX-License-Identifier: MIT
"""Bag: the order-free seal of samples."""

import ctypes
from ctypes import byref

from ._arrays import readable, shape_of, tokens_of
from ._library import BAG_TEXT, IronError, RawBag, call, library


class Bag:
    """A set of samples, in which the order does not matter but repetitions count.

    Each sample is sealed as a stream of its own, and the seals are added up.  str(bag) is
    `<32 hex digits>-<number of samples>`, the same text as that of `iron sum --bag`.  Bags of parts
    add up to the bag of the whole: a + b, or a.merge(b).  Like the seal, it detects accidents, not
    an adversary.
    """

    def __init__(self, text=None):
        """An empty bag, or the one that a text shows."""
        self._raw = RawBag()
        if text is not None:
            call("iron_bag_parse", text.encode(), byref(self._raw))

    @property
    def samples(self):
        return self._raw.samples

    def add(self, sample):
        """Adds one sample: an array, tensor, buffer or list of token ids; it may be empty."""
        with tokens_of(readable(sample)) as tokens:
            self._add(tokens, 1, tokens.count)

    def add_rows(self, rows):
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
        with tokens_of(rows) as tokens:
            self._add(tokens, *shape)

    def _add(self, tokens, rows, length):
        if tokens.on_device:
            raise TypeError("the tokens are on a GPU; copy them to the CPU first (.cpu())")
        call("iron_bag_add_rows", byref(self._raw), tokens.dtype, tokens.address, rows, length)

    def merge(self, other):
        """Adds all samples of another bag."""
        library().iron_bag_merge(byref(self._raw), byref(other._raw))

    def __add__(self, other):
        if not isinstance(other, Bag):
            return NotImplemented
        made = Bag()
        made.merge(self)
        made.merge(other)
        return made

    def _words(self):
        return self._raw.hi, self._raw.lo, self._raw.samples

    def __eq__(self, other):
        return self._words() == other._words() if isinstance(other, Bag) else NotImplemented

    __hash__ = None  # it can change

    def __str__(self):
        text = ctypes.create_string_buffer(BAG_TEXT)
        library().iron_bag_format(byref(self._raw), text)
        return text.value.decode()

    def __repr__(self):
        return f"Bag({str(self)!r})"

    def __reduce__(self):
        return Bag, (str(self),)


def bag(samples):
    """The bag of samples as a text: of the rows of a 2-D array, or of any iterable of samples."""
    made = Bag()
    made.add_rows(samples)
    return str(made)
