"""Places: where the elements of an operand lie in their tensor once its indices are known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import gcd, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.core.values import value
from triptych.neuron.isa.trace import Pattern, Region


@value
class Layout:
    """What is the same of all regions of one pattern whose elements are of one type; steps are bytes."""

    pattern: Pattern
    stored: np.dtype[Any]
    """The type of an element in memory."""
    item: int
    """The bytes of an element."""
    shape: tuple[int, ...]
    """The counts of all axes."""
    strides: tuple[int, ...]
    """From element to element along each axis."""
    run: int
    """The bytes from an element on that are neighbours and all of them visited."""
    gaps: tuple[tuple[int, int], ...]
    """(step, count) of each axis along which runs follow each other."""
    grain: int
    """The greatest number that divides the run and all steps between runs."""
    dense: int
    """How many bytes are visited where all are neighbours, each once; else 0."""
    packed: bool
    """Whether each element lies behind the one before it, the last axis fastest."""


@lru_cache(4096)
def layout_of(pattern: Pattern, stored: np.dtype[Any]) -> Layout:
    """Of the regions of a pattern."""
    item = stored.itemsize
    strides = tuple(step * item for step, _ in pattern)
    shape = tuple(count for _, count in pattern)
    run, gaps = item, list[tuple[int, int]]()
    for step, count in sorted((step, count) for step, count in zip(strides, shape, strict=True) if count != 1):
        if step == run:
            run *= count
        else:
            gaps.append((step, count))
    grain = gcd(run, *(step for step, _ in gaps))
    inner = [item * prod(shape[axis + 1 :]) for axis in range(len(shape))]
    packed = all(count == 1 or step == one for count, step, one in zip(shape, strides, inner, strict=True))
    return Layout(pattern, stored, item, shape, strides, run, tuple(gaps), grain, 0 if gaps else run, packed)


@value
class Strided:
    """A region of a tensor, without indices: `offset` counts elements."""

    offset: int
    layout: Layout

    @property
    def shape(self) -> tuple[int, ...]:
        """The counts of all axes."""
        return self.layout.shape


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


Place = Strided | Scattered
"""Where the elements of an operand lie once its indices are known."""


def strided(region: Region, stored: np.dtype[Any]) -> Strided:
    """The place of a region that no index moves, of a tensor whose elements are of that type."""
    return Strided(region.offset, layout_of(region.pattern, stored))


def offsets_of(place: Place) -> NDArray[np.int64]:
    """The offsets of a place's elements, in its shape."""
    if isinstance(place, Scattered):
        return place.offsets
    pattern = place.layout.pattern
    offsets = np.full((1,) * len(pattern), place.offset, np.int64)
    for axis, (step, count) in enumerate(pattern):
        shape = [1] * len(pattern)
        shape[axis] = count
        offsets = offsets + (step * np.arange(count, dtype=np.int64)).reshape(shape)
    return offsets
