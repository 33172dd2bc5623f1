"""The data of a trace's tensors while they live, and numpy views of their regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.neuron.isa.hardware import Space
from triptych.neuron.isa.trace import Region, Tensor

Bytes = NDArray[np.uint8]

# What memory that nobody wrote holds: NaN where there is one, else a number that is seldom right.
_UNDEFINED_INTEGER = 4


@dataclass(slots=True)
class Shadow:
    """Which bytes of an HBM storage were loaded (0 or 1) and stored (0, or 1 + the program that did it last)."""

    loads: Bytes
    stores: NDArray[np.unsignedinteger]

    @classmethod
    def of(cls, size: int, programs: int) -> Shadow:
        """The shadow of `size` bytes that none of so many programs has touched."""
        return cls(np.zeros(size, np.uint8), np.zeros(size, np.min_scalar_type(programs + 1)))

    def synchronise(self) -> None:
        """The programs met: what was stored before is no race with what comes."""
        self.stores[self.stores != 0] = np.iinfo(self.stores.dtype).max


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


def _strided(data: NDArray[Any], base: int, place: Region, width: int) -> NDArray[Any]:
    """The `width` items of each element of a region of one-dimensional data, along a last axis."""
    item = data.itemsize
    strides = (*(step * width * item for step, _ in place.pattern), item)
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
    """What is known of the bytes of a storage, a mark for every `unit` bytes; views in other dtypes share it."""

    unit: int
    count: int
    defined: NDArray[np.bool_] | None = None
    """Which were written; None once all of them are."""
    accumulating: NDArray[np.bool_] | None = None
    """PSUM: which a matmul wrote last, so that the next one adds."""


@dataclass(slots=True)
class Buffer:
    """A tensor's bytes from `base` on, and what is known of its elements."""

    tensor: Tensor
    data: Bytes
    marks: Marks
    base: int = 0
    shadow: Shadow | None = None
    writable: bool = True

    @property
    def _units(self) -> int:
        return self.tensor.dtype.bytes // self.marks.unit

    def _elements(self) -> NDArray[Any]:
        return np.ndarray((self.tensor.size,), self.tensor.dtype.stored, buffer=self.data, offset=self.base)

    def read(self, place: Place) -> NDArray[Any]:
        """The elements of a place: a view of them where they lie at equal steps."""
        return taken(self._elements(), 0, place, 1)[..., 0]

    def write(self, place: Place, values: NDArray[Any]) -> None:
        """Elements of the tensor's dtype."""
        put(self._elements(), 0, place, 1, np.broadcast_to(values, place.shape)[..., np.newaxis])

    def defined_view(self, place: Place) -> NDArray[np.bool_] | None:
        """Which elements of a place were written; None where all were."""
        if self.marks.defined is None:
            return None
        flags = np.asarray(taken(self.marks.defined, 0, place, self._units).all(axis=-1))
        return None if flags.all() else flags

    def mark_defined(self, place: Place, flags: NDArray[np.bool_] | None) -> None:
        """The place was written; `flags` says which of its elements got a defined value (None: all)."""
        marks = self.marks
        if marks.defined is None:
            if flags is None:
                return
            marks.defined = np.ones(marks.count, np.bool_)
        put(marks.defined, 0, place, self._units, True if flags is None else flags.reshape(*place.shape, 1))
        if flags is None and place.size >= self.tensor.size and marks.defined.all():  # a step of 0 repeats elements
            marks.defined = None

    def undefined_elements(self) -> int:
        """How many of its elements have no defined value."""
        defined = self.marks.defined
        if defined is None:
            return 0
        return int(np.count_nonzero(~defined.reshape(-1, self._units).all(axis=1)))

    def accumulating_view(self, place: Place) -> NDArray[np.bool_]:
        """Which elements of a place in PSUM a matmul wrote last."""
        if self.marks.accumulating is None:
            self.marks.accumulating = np.zeros(self.marks.count, np.bool_)
        return np.asarray(taken(self.marks.accumulating, 0, place, self._units).all(axis=-1))

    def mark_accumulating(self, place: Place, now: bool) -> None:
        """A matmul wrote the place, or something else did."""
        if self.marks.accumulating is None:
            if not now:
                return
            self.marks.accumulating = np.zeros(self.marks.count, np.bool_)
        put(self.marks.accumulating, 0, place, self._units, now)

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
        return Buffer(tensor, self.data, self.marks, self.base, self.shadow, self.writable)


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
    values = np.empty(tensor.size, tensor.dtype.stored)
    if tensor.zeroed:
        values[...] = 0
    else:
        values[...] = np.nan if tensor.dtype.is_float else _UNDEFINED_INTEGER
    marks = Marks(unit or tensor.dtype.bytes, values.nbytes // (unit or tensor.dtype.bytes))
    if not tensor.zeroed:
        marks.defined = np.zeros(marks.count, np.bool_)
    shadow = Shadow.of(values.nbytes, programs) if tensor.space is Space.HBM else None
    return Buffer(tensor, values.view(np.uint8), marks, shadow=shadow)
