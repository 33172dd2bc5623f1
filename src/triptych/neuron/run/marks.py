"""Marks for the bytes of a memory: what was written, loaded and stored, by whom. They cost little where few differ."""

from __future__ import annotations

from math import gcd
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from triptych.neuron.run.strided import Place, Scattered, Strided

Flags = NDArray[np.bool_]


class Marks:
    """A number for each byte of `size`: one for all while they are the same, an array once they differ.

    The array has one for each unit of bytes. A unit is as large as the places that were looked at since allow: each of
    them is made of whole units. Offsets of `base` are bytes, those of places elements of `item` bytes.
    """

    __slots__ = ("_kind", "_unit", "each", "same", "size")

    def __init__(self, size: int, same: int, kind: DTypeLike = np.bool_) -> None:
        """All are the same; `kind` is the type of the numbers."""
        self.size = size
        self.same = same
        """What all are, where there is no array."""
        self._kind = kind
        self._unit = 0
        self.each: NDArray[Any] | None = None
        """What those of each unit are; None while all are the same."""

    def set_all(self, now: int) -> None:
        """They are the same from now on."""
        self.same, self.each = now, None

    def set(self, base: int, place: Place, item: int, now: int) -> None:
        """All bytes of a place are marked so."""
        if self.each is None and now == self.same:
            return
        if isinstance(place, Strided):
            self._runs(base, place)[...] = now
        else:
            each, where = self._scattered(base, place, item)
            each[where if place.valid is None else where[place.valid]] = now

    def set_each(self, base: int, place: Place, item: int, now: NDArray[Any]) -> None:
        """The bytes of each element of a place are marked as an array of its shape, or of as many elements, says."""
        given = now.reshape(*place.shape, 1)
        if isinstance(place, Strided):
            self._elements(base, place)[...] = given
            return
        each, where = self._scattered(base, place, item)
        if place.valid is not None:
            where, given = where[place.valid], given[place.valid]
        each[where] = given

    def within(self, base: int, place: Place, item: int) -> NDArray[Any]:
        """Those of a place, in no order, each at least once."""
        if self.each is None:
            return np.array([self.same], self._kind)
        if isinstance(place, Strided):
            return self._runs(base, place)
        each, where = self._scattered(base, place, item)
        return each[where]

    def all_of(self, base: int, place: Place, item: int) -> Flags | bool:
        """Whether all bytes of each element of a place are marked: one for all where they are the same."""
        if self.each is None:
            return bool(self.same)
        within = self.within(base, place, item)
        if within.all():
            return True
        if not within.any():
            return False
        if isinstance(place, Strided):
            within = self._elements(base, place)
        return np.asarray(within.all(axis=-1))

    def marked_bytes(self) -> int:
        """How many bytes are marked."""
        if self.each is None:
            return self.size if self.same else 0
        beyond = self._unit * self.each.size - self.size if self.each[-1] else 0
        return self._unit * int(np.count_nonzero(self.each)) - beyond

    def marked_items(self, item: int) -> int:
        """How many elements of so many bytes, one behind the other, are marked wholly."""
        if self.each is None:
            return self.size // item if self.same else 0
        if self.each.all():
            return self.size // item
        each = self._refined(item)
        return int(np.count_nonzero(each.reshape(-1, item // self._unit).all(axis=1)))

    def marked(self) -> Flags:
        """Which bytes are marked."""
        if self.each is None:
            return np.full(self.size, self.same != 0)
        return np.repeat(self.each != 0, self._unit)[: self.size]

    def replace_marked(self, now: int) -> None:
        """What is marked is marked so from now on."""
        if self.each is None:
            self.same = now if self.same else self.same
        else:
            self.each[self.each != 0] = now

    def _refined(self, grain: int) -> NDArray[Any]:
        """The array, with a unit that divides the grain."""
        if self.each is None:
            self._unit = grain
            self.each = np.full(-(-self.size // grain), self.same, self._kind)
        elif grain % self._unit:
            unit = gcd(self._unit, grain)
            self.each = np.repeat(self.each, self._unit // unit)[: -(-self.size // unit)]
            self._unit = unit
        return self.each

    def _runs(self, base: int, place: Strided) -> NDArray[Any]:
        """Those of the units of a region, in no order; numpy checks the bounds."""
        layout = place.layout
        begin = base + place.offset * layout.item
        each, unit = self._refined(gcd(begin, layout.grain)), self._unit
        first, count = begin // unit, layout.run // unit
        if not layout.gaps:
            return each[first : first + count]
        width = each.itemsize
        shape = (*(count for _, count in layout.gaps), count)
        strides = (*(step // unit * width for step, _ in layout.gaps), width)
        return np.ndarray(shape, each.dtype, each, first * width, strides)

    def _elements(self, base: int, place: Strided) -> NDArray[Any]:
        """Those of the units of each element of a region, along a last axis; numpy checks the bounds."""
        layout = place.layout
        each, unit = self._refined(gcd(base, layout.item)), self._unit
        width = each.itemsize
        shape = (*layout.shape, layout.item // unit)
        strides = (*(step // unit * width for step in layout.strides), width)
        return np.ndarray(shape, each.dtype, each, (base + place.offset * layout.item) // unit * width, strides)

    def _scattered(self, base: int, place: Scattered, item: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The array, and where in it the units of each element of a place are, along a last axis."""
        each = self._refined(gcd(base, item))
        first = (base + place.offsets * item) // self._unit
        return each, first[..., np.newaxis] + np.arange(item // self._unit)
