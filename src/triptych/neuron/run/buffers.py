"""The data of a trace's tensors while they live, and numpy views of their regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.core.dtypes import DType
from triptych.neuron.isa.hardware import Space
from triptych.neuron.isa.trace import Pattern, Region, Tensor

Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]

# What memory that nobody wrote holds: NaN where there is one, else a number that is seldom right.
_UNDEFINED_INTEGER = 4


class Shadow:
    """Which bytes of an HBM storage were loaded (0 or 1) and stored (0, or 1 + the program that did it last)."""

    __slots__ = ("_loads", "_size", "_stamp", "_stores")

    def __init__(self, size: int, programs: int) -> None:
        """The shadow of `size` bytes that none of so many programs has touched."""
        self._size = size
        self._stamp = np.min_scalar_type(programs + 1)
        self._loads: Bytes | None = None
        self._stores: NDArray[np.unsignedinteger] | None = None

    @property
    def loads(self) -> Bytes:
        """By byte."""
        if self._loads is None:
            self._loads = np.zeros(self._size, np.uint8)
        return self._loads

    @property
    def stores(self) -> NDArray[np.unsignedinteger]:
        """By byte."""
        if self._stores is None:
            self._stores = np.zeros(self._size, self._stamp)
        return self._stores

    @property
    def loaded_bytes(self) -> int:
        """How many were loaded."""
        return 0 if self._loads is None else int(np.count_nonzero(self._loads))

    @property
    def stored_bytes(self) -> int:
        """How many were stored."""
        return 0 if self._stores is None else int(np.count_nonzero(self._stores))

    def touched(self) -> tuple[Flags, Flags]:
        """Which bytes were loaded, and which stored."""
        return self.loads != 0, self.stores != 0

    def synchronise(self) -> None:
        """The programs met: what was stored before is no race with what comes."""
        if self._stores is not None:
            self._stores[self._stores != 0] = np.iinfo(self._stores.dtype).max


@dataclass(frozen=True, slots=True)
class Scattered:
    """Elements of a tensor that indices chose: their offsets, in the shape of the region, and which are inside of it.

    What is outside has an offset of 0 and is neither read nor written.
    """

    offsets: NDArray[np.int64]
    valid: NDArray[np.bool_] | None = None
    """None: all."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The counts of all axes."""
        return self.offsets.shape

    @property
    def size(self) -> int:
        """Elements visited."""
        return self.offsets.size


Place = Region | Scattered
"""Where the elements of an operand lie once its indices are known."""


@lru_cache(4096)
def _strides(pattern: Pattern, item: int) -> tuple[int, ...]:
    """The bytes from element to element along each axis."""
    return tuple(step * item for step, _ in pattern)


@lru_cache(4096)
def _dense_elements(pattern: Pattern) -> int:
    """How many elements a pattern visits, where it visits each once and they are neighbours from its offset on; else 0.

    Their order does not matter.
    """
    elements = 1
    for step, count in sorted(axis for axis in pattern if axis[1] != 1):
        if step != elements:
            return 0
        elements *= count
    return elements


def _strided(data: NDArray[Any], base: int, place: Region, width: int) -> NDArray[Any]:
    """The `width` items of each element of a region of one-dimensional data, along a last axis."""
    item = data.itemsize
    strides = (*_strides(place.pattern, width * item), item)
    offset = (base + place.offset * width) * item
    return np.ndarray((*place.shape, width), data.dtype, buffer=data, offset=offset, strides=strides)


def taken(data: NDArray[Any], base: int, place: Place, width: int) -> NDArray[Any]:
    """The `width` items of each element of a place, along a last axis; numpy checks the bounds."""
    if isinstance(place, Region):
        return _strided(data, base, place, width)
    return data[base + place.offsets[..., np.newaxis] * width + np.arange(width)]


def put(data: NDArray[Any], base: int, place: Place, width: int, items: object) -> None:
    """Write what `taken` gives; what lies outside is left out."""
    if isinstance(place, Region):
        _strided(data, base, place, width)[...] = items
        return
    where = base + place.offsets[..., np.newaxis] * width + np.arange(width)
    given = np.broadcast_to(np.asarray(items), where.shape)
    if place.valid is not None:
        where, given = where[place.valid], given[place.valid]
    data[where] = given


@dataclass(slots=True)
class Marks:
    """A mark for each of `count` units of bytes: one for all while they are the same, an array once they differ."""

    count: int
    same: bool
    """What all are, where there is no array."""
    each: Flags | None = None

    def of(self, place: Place, width: int) -> Flags | bool:
        """Whether all `width` marks of each element of a place are set: an array of its own, or one for all."""
        if self.each is None:
            return self.same
        flags = np.asarray(taken(self.each, 0, place, width).all(axis=-1))
        return True if flags.all() else flags

    def set_all(self, now: bool) -> None:
        """They are the same from now on."""
        self.same, self.each = now, None

    def set(self, place: Place, width: int, now: Flags | bool) -> None:
        """The `width` marks of each element of a place are set, or not, or as an array of its shape says."""
        if self.each is None:
            if now is self.same:
                return
            self.each = np.full(self.count, self.same)
        put(self.each, 0, place, width, now if isinstance(now, bool) else now.reshape(*place.shape, 1))


@dataclass(slots=True)
class Known:
    """What is known of the bytes of a storage, a mark for every `unit` bytes; views in other dtypes share it."""

    unit: int
    defined: Marks
    """Which were written."""
    accumulating: Marks
    """PSUM: which a matmul wrote last, so that the next one adds."""
    blank: DType | None = None
    """The dtype of what is still to be put where nobody has written: nobody has looked at any of the bytes."""

    @classmethod
    def of(cls, size: int, unit: int, *, defined: bool, blank: DType | None = None) -> Known:
        """Of `size` bytes, all of them written or none."""
        count = size // unit
        return cls(unit, Marks(count, defined), Marks(count, same=False), blank)


@dataclass(slots=True)
class Buffer:
    """A tensor's bytes from `base` on, and what is known of its elements."""

    tensor: Tensor
    data: Bytes
    known: Known
    base: int = 0
    shadow: Shadow | None = None
    writable: bool = True

    @property
    def _units(self) -> int:
        return self.tensor.dtype.bytes // self.known.unit

    def _elements(self) -> NDArray[Any]:
        return np.ndarray((self.tensor.size,), self.tensor.dtype.stored, buffer=self.data, offset=self.base)

    def _view(self, place: Region) -> NDArray[Any]:
        """The elements of a region; numpy checks the bounds."""
        dtype = self.tensor.dtype.stored
        item = dtype.itemsize
        offset = self.base + place.offset * item
        return np.ndarray(place.shape, dtype, buffer=self.data, offset=offset, strides=_strides(place.pattern, item))

    def covered(self, place: Place) -> bool:
        """Whether a place is all of the tensor, each element once."""
        return isinstance(place, Region) and not place.offset and _dense_elements(place.pattern) == self.tensor.size

    def read(self, place: Place) -> NDArray[Any]:
        """The elements of a place: a view of them where they lie at equal steps."""
        if self.known.blank is not None:
            self._fill(self.known.blank)
        return self._view(place) if isinstance(place, Region) else taken(self._elements(), 0, place, 1)[..., 0]

    def write(self, place: Place, values: NDArray[Any]) -> None:
        """Elements of the tensor's dtype."""
        if self.known.blank is not None:
            if self.covered(place):
                self.known.blank = None
            else:
                self._fill(self.known.blank)
        if isinstance(place, Region):
            self._view(place)[...] = values
        else:
            put(self._elements(), 0, place, 1, np.broadcast_to(values, place.shape)[..., np.newaxis])

    def _fill(self, dtype: DType) -> None:
        """What memory holds that nobody has written."""
        self.data.view(dtype.stored)[...] = np.nan if dtype.is_float else _UNDEFINED_INTEGER
        self.known.blank = None

    def defined_flags(self, place: Place) -> Flags | bool:
        """Which elements of a place were written; one for all where they are the same."""
        marks = self.known.defined
        flags = marks.of(place, self._units)
        if flags is True and marks.each is not None and self.covered(place):
            marks.set_all(True)
        return flags

    def defined_view(self, place: Place) -> Flags | None:
        """Which elements of a place were written; None where all were."""
        flags = self.defined_flags(place)
        if flags is True:
            return None
        return flags if isinstance(flags, np.ndarray) else np.zeros(place.shape, np.bool_)

    def mark_defined(self, place: Place, flags: Flags | None) -> None:
        """The place was written; `flags` says which of its elements got a defined value (None: all)."""
        if flags is None and self.covered(place):
            self.known.defined.set_all(True)
        else:
            self.known.defined.set(place, self._units, True if flags is None else flags)

    def undefined_elements(self) -> int:
        """How many of its elements have no defined value."""
        defined = self.known.defined
        if defined.each is None:
            return 0 if defined.same else self.tensor.size
        return int(np.count_nonzero(~defined.each.reshape(-1, self._units).all(axis=1)))

    def accumulating_view(self, place: Place) -> Flags | bool:
        """Which elements of a place in PSUM a matmul wrote last; one for all where they are the same."""
        return self.known.accumulating.of(place, self._units)

    def mark_accumulating(self, place: Place, now: bool) -> None:
        """A matmul wrote the place, or something else did."""
        if self.covered(place):
            self.known.accumulating.set_all(now)
        else:
            self.known.accumulating.set(place, self._units, now)

    def stamp_load(self, place: Place) -> None:
        """HBM: the bytes of a place were loaded."""
        assert self.shadow is not None
        put(self.shadow.loads, self.base, place, self.tensor.dtype.bytes, 1)

    def store_stamps(self, place: Place) -> NDArray[Any]:
        """HBM: who stored the bytes of a place last, those of an element along a last axis."""
        assert self.shadow is not None
        return taken(self.shadow.stores, self.base, place, self.tensor.dtype.bytes)

    def stamp_store(self, place: Place, stamp: int) -> None:
        """HBM: the bytes of a place were stored."""
        assert self.shadow is not None
        put(self.shadow.stores, self.base, place, self.tensor.dtype.bytes, stamp)

    def alias(self, tensor: Tensor) -> Buffer:
        """The same bytes as another tensor, in another dtype."""
        return Buffer(tensor, self.data, self.known, self.base, self.shadow, self.writable)


def units(tensors: Sequence[Tensor]) -> Mapping[int, int]:
    """For each tensor that has views in other dtypes the bytes of the smallest of their elements."""
    found: dict[int, int] = {}
    for one in tensors:
        if one.alias is not None:
            least = found.get(one.alias, tensors[one.alias].dtype.bytes)
            found[one.alias] = min(least, one.dtype.bytes)
    return found


def new_buffer(tensor: Tensor, programs: int, unit: int | None = None) -> Buffer:
    """Memory for a tensor that no argument provides, in a grid of `programs`: undefined, or zero where it says so."""
    item, size = tensor.dtype.bytes, tensor.size * tensor.dtype.bytes
    data = np.zeros(size, np.uint8) if tensor.zeroed else np.empty(size, np.uint8)
    blank = None if tensor.zeroed else tensor.dtype
    known = Known.of(size, unit or item, defined=tensor.zeroed, blank=blank)
    shadow = Shadow(size, programs) if tensor.space is Space.HBM else None
    return Buffer(tensor, data, known, shadow=shadow)
