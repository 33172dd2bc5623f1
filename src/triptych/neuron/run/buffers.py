"""The data of a trace's tensors while they live, and numpy views of their regions."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.core.dtypes import DType
from triptych.neuron.isa.hardware import Space
from triptych.neuron.isa.trace import Tensor
from triptych.neuron.run.marks import Flags, Marks
from triptych.neuron.run.shadow import Shadow
from triptych.neuron.run.strided import Place, Strided

Bytes = NDArray[np.uint8]

# What memory that nobody wrote holds: NaN where there is one, else a number that is seldom right.
_UNDEFINED_INTEGER = 4


class Pool:
    """The memory of tiles that a launch has dropped, for those that it makes: the host has mapped it already."""

    __slots__ = ("_free",)

    def __init__(self) -> None:
        """Without any."""
        self._free: defaultdict[int, list[Bytes]] = defaultdict(list)

    def take(self, size: int) -> Bytes:
        """So many bytes, which hold anything."""
        free = self._free[size]
        return free.pop() if free else np.empty(size, np.uint8)

    def give(self, data: Bytes) -> None:
        """Nobody looks at these bytes any longer."""
        self._free[data.size].append(data)


@dataclass(slots=True)
class Known:
    """What is known of the bytes of a tensor; its views in other dtypes share it."""

    defined: Marks
    """Which were written."""
    accumulating: Marks
    """PSUM: which a matmul wrote last, so that the next one adds."""
    blank: DType | None = None
    """The dtype of what is still to be put where nobody has written: nobody has looked at any of the bytes."""

    @classmethod
    def of(cls, size: int, *, defined: bool, blank: DType | None = None) -> Known:
        """Of `size` bytes, all of them written or none."""
        return cls(Marks(size, defined), Marks(size, same=False), blank)


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
    def _item(self) -> int:
        return self.tensor.dtype.bytes

    def _elements(self) -> NDArray[Any]:
        return np.ndarray((self.tensor.size,), self.tensor.dtype.stored, buffer=self.data, offset=self.base)

    def _view(self, place: Strided) -> NDArray[Any]:
        """The elements of a region; numpy checks the bounds."""
        layout = place.layout
        offset = self.base + place.offset * layout.item
        return np.ndarray(layout.shape, layout.stored, self.data, offset, layout.strides)

    def covered(self, place: Place) -> bool:
        """Whether a place is all of the tensor, each element once."""
        return type(place) is Strided and place.layout.dense == self.known.defined.size and not place.offset

    def read(self, place: Place) -> NDArray[Any]:
        """The elements of a place: a view of them where they lie at equal steps."""
        if self.known.blank is not None:
            self._fill(self.known.blank)
        return self._view(place) if isinstance(place, Strided) else self._elements()[place.offsets]

    def target(self, place: Strided) -> NDArray[Any]:
        """The elements of a place, all of which are about to be written."""
        if self.known.blank is not None:
            if self.covered(place):
                self.known.blank = None
            else:
                self._fill(self.known.blank)
        return self._view(place)

    def write(self, place: Place, values: NDArray[Any]) -> None:
        """Elements of the tensor's dtype; what lies outside is left out."""
        if isinstance(place, Strided):
            self.target(place)[...] = values
            return
        if self.known.blank is not None:
            self._fill(self.known.blank)
        if place.valid is None:
            self._elements()[place.offsets] = values
        else:
            self._elements()[place.offsets[place.valid]] = np.broadcast_to(values, place.shape)[place.valid]

    def _fill(self, dtype: DType) -> None:
        """What memory holds that nobody has written."""
        self.data.view(dtype.stored)[...] = np.nan if dtype.is_float else _UNDEFINED_INTEGER
        self.known.blank = None

    def defined_flags(self, place: Place) -> Flags | bool:
        """Which elements of a place were written; one for all where they are the same."""
        marks = self.known.defined
        flags = marks.all_of(0, place, self._item)
        if flags is True and marks.each is not None and self.covered(place):
            marks.set_all(True)
        return flags

    def defined_view(self, place: Place) -> Flags | None:
        """Which elements of a place were written; None where all were."""
        marks = self.known.defined
        if marks.same and marks.each is None:
            return None
        flags = self.defined_flags(place)
        if flags is True:
            return None
        return flags if isinstance(flags, np.ndarray) else np.zeros(place.shape, np.bool_)

    def mark_defined(self, place: Place, flags: Flags | None) -> None:
        """The place was written; `flags` says which of its elements got a defined value (None: all)."""
        if flags is not None:
            self.known.defined.set_each(0, place, self._item, flags)
        elif self.covered(place):
            self.known.defined.set_all(True)
        else:
            self.known.defined.set(0, place, self._item, True)

    def undefined_elements(self) -> int:
        """How many of its elements have no defined value."""
        return self.tensor.size - self.known.defined.marked_items(self._item)

    def accumulating_view(self, place: Place) -> Flags | bool:
        """Which elements of a place in PSUM a matmul wrote last; one for all where they are the same."""
        return self.known.accumulating.all_of(0, place, self._item)

    def mark_accumulating(self, place: Place, now: bool) -> None:
        """A matmul wrote the place, or something else did."""
        if self.covered(place):
            self.known.accumulating.set_all(now)
        else:
            self.known.accumulating.set(0, place, self._item, now)

    def stamp_load(self, place: Place) -> None:
        """HBM: the bytes of a place were loaded."""
        assert self.shadow is not None
        self.shadow.loads.set(self.base, place, self._item, 1)

    def store_stamps(self, place: Place) -> NDArray[Any]:
        """HBM: who stored the bytes of a place last, in no order."""
        assert self.shadow is not None
        return self.shadow.stores.within(self.base, place, self._item)

    def stamp_store(self, place: Place, stamp: int) -> None:
        """HBM: the bytes of a place were stored."""
        assert self.shadow is not None
        self.shadow.stores.set(self.base, place, self._item, stamp)

    def alias(self, tensor: Tensor) -> Buffer:
        """The same bytes as another tensor, in another dtype."""
        return Buffer(tensor, self.data, self.known, self.base, self.shadow, self.writable)


def new_buffer(tensor: Tensor, programs: int, pool: Pool) -> Buffer:
    """Memory for a tensor that no argument provides, in a grid of `programs`: undefined, or zero where it says so."""
    size = tensor.size * tensor.dtype.bytes
    data = pool.take(size)
    if tensor.zeroed:
        data.fill(0)
    known = Known.of(size, defined=tensor.zeroed, blank=None if tensor.zeroed else tensor.dtype)
    shadow = Shadow(size, programs) if tensor.space is Space.HBM else None
    return Buffer(tensor, data, known, shadow=shadow)
