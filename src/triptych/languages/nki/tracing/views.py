"""Which elements of a declared tensor a view has, and the indices that are still to be checked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

from triptych.core.errors import NkiLimitError
from triptych.core.values import value
from triptych.languages.calling import author_location
from triptych.languages.nki.tracing.indexing import Box, Cut, Ds, IndexTile, refuse, sequence, whole
from triptych.neuron.isa.trace import Dynamic, Indexing, Pattern, Region


@dataclass(frozen=True, slots=True)
class AxisRange:
    """An index that must stay inside an axis of the tensor: checked when it is used, since a mask may cut it."""

    axis: int
    extent: int
    index: IndexTile


@lru_cache(4096)
def reshaped_steps(shape: tuple[int, ...], steps: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...] | None:
    """The steps of the same elements, in the same order, in the shape `new`; None where no steps give them."""
    if 0 in new:
        return None
    runs: list[tuple[int, int]] = []
    """(elements, step) of axes that are one when they are merged, the last first."""
    for count, step in reversed(list(zip(shape, steps, strict=True))):
        if runs and step == runs[-1][0] * runs[-1][1]:
            runs[-1] = (runs[-1][0] * count, runs[-1][1])
        elif count > 1:
            runs.append((count, step))
    at, left, step = 0, *(runs[0] if runs else (1, 1))
    fresh: list[int] = []
    for count in reversed(new):
        if count > 1 and left == 1:
            at += 1
            left, step = runs[at]
        if left % count:
            return None
        fresh.append(step)
        left, step = left // count, step * count
    return tuple(reversed(fresh))


@value
class View:
    """Elements of a declared tensor: `offset` and `steps` in elements of it, as its region has them."""

    tensor: int
    offset: int
    shape: tuple[int, ...]
    steps: tuple[int, ...]
    partition_axis: int | None
    """The axis that walks the partitions of an on-chip tensor; None in HBM."""
    ranges: tuple[AxisRange, ...] = ()
    dynamic: Dynamic | None = None
    """Where it is moved by indices that are known only when the trace runs."""

    def names(self, other: View) -> bool:
        """Whether both are the same elements in the same order, at places that are known."""
        return (
            self.tensor == other.tensor
            and self.offset == other.offset
            and self.dynamic is None
            and other.dynamic is None
            and (self.shape, self.steps) == (other.shape, other.steps)
        )

    def cut(self, cut: Cut) -> View:
        """The part that a mask leaves of the leading axes; axes of one element stand for the whole axis."""
        offset, shape = self.offset, list(self.shape)
        own: list[tuple[int, int]] = []
        for axis, count in enumerate(self.shape):
            part = cut[axis] if axis < len(cut) and count > 1 else None
            first, end = part or (0, count)
            if end > count:
                raise refuse(f"a mask over {end} elements of axis {axis} on a tensor of shape {list(self.shape)}")
            own.append((first, end))
            offset += self.steps[axis] * first
            shape[axis] = end - first
        ranges = tuple(replace(one, index=_cut_index(one.index, tuple(own))) for one in self.ranges)
        dynamic = self.dynamic
        if dynamic is not None and dynamic.kind is Indexing.ROWS:
            dynamic = replace(dynamic, index=_cut_rows(dynamic.index, *own[0]))
        return replace(self, offset=offset, shape=tuple(shape), ranges=ranges, dynamic=dynamic)


@lru_cache(4096)
def pattern_of(steps: tuple[int, ...], shape: tuple[int, ...]) -> Pattern:
    """The access pattern of a view."""
    return tuple(zip(steps, shape, strict=True))


def _cut_rows(index: Region, first: int, end: int) -> Region:
    """The indices of the rows that a mask leaves."""
    (step, _), *others = index.pattern
    return replace(index, offset=index.offset + step * first, pattern=((step, end - first), *others))


def _cut_index(index: IndexTile, box: Box) -> IndexTile:
    offset = index.offset + sum(step * first for step, (first, _) in zip(index.steps, box, strict=True))
    return IndexTile(tuple(end - first for first, end in box), offset, index.steps)


def out_of_bounds(name: str, axis: int, low: int, high: int, extent: int) -> NkiLimitError:
    """The error of an index outside an axis."""
    return NkiLimitError(
        f"Out-of-bound access for tensor `{name}` on dimension {axis}: index range [{low}, {high}] exceed dimension "
        f"size of {extent}",
        where=author_location(),
        hint="mask= cuts an access where a tile is not full (Beta 1); else make the last tile smaller",
    )


def expand_index(key: object, rank: int, name: str) -> list[object]:
    """One index an axis: `...` and absent trailing axes become full slices."""
    keys: list[object] = [key] if isinstance(key, list | Ds) else sequence(key)
    if any(one is None for one in keys):
        raise refuse(f"tensor `{name}`: None makes no new axis in NKI", "use nl.expand_dims")
    dots = [at for at, one in enumerate(keys) if one is Ellipsis]
    if len(dots) > 1:
        raise refuse(f"tensor `{name}`: more than one '...' in an index")
    given = len(keys) - len(dots)
    if given > rank:
        raise refuse(f"tensor `{name}` has {rank} axes; the index has {given}")
    at = dots[0] if dots else len(keys)
    filling: list[object] = [slice(None)] * (rank - given)
    return keys[:at] + filling + keys[at + len(dots) :]


def slice_of(one: object, axis: int, count: int, name: str) -> tuple[int, int, int]:
    """(first, step, number) of a whole number, a slice or `nl.ds` on an axis of `count` elements.

    Raises:
        NkiLimitError: for elements outside the axis.
        NkiError: for anything that is no index.
    """
    place = whole(one)
    if place is not None:
        first = place + (count if place < 0 else 0)
        if not 0 <= first < count:
            raise out_of_bounds(name, axis, place, place, count)
        return first, 1, 1
    if isinstance(one, Ds):
        if not isinstance(one.start, int):
            raise refuse(f"tensor `{name}`: the start of nl.ds({one.start!r}, {one.size}) is no whole number")
        return _range_of(one.start, one.start + one.size, 1, axis, count, name)
    if isinstance(one, slice):
        bounds = cast("slice[object, object, object]", one)
        parts = (bounds.start, bounds.stop, bounds.step)
        start, stop, step = (_bound(part, default, name) for part, default in zip(parts, (0, count, 1), strict=True))
        first, end = start + (count if start < 0 else 0), stop + (count if stop < 0 else 0)
        return _range_of(first, end, step, axis, count, name)
    raise refuse(
        f"tensor `{name}`: a {type(one).__name__} is no index of NKI",
        "indices are whole numbers, slices, nl.ds(start, size) and '...'",
    )


def _bound(part: object, default: int, name: str) -> int:
    number = default if part is None else whole(part)
    if number is None:
        raise refuse(f"tensor `{name}`: the slice bound {part!r} is no whole number")
    return number


def _range_of(first: int, end: int, step: int, axis: int, count: int, name: str) -> tuple[int, int, int]:
    if step < 1:
        raise refuse(f"tensor `{name}`: the slice step {step} must be 1 or more")
    if first < 0 or end > count:
        raise out_of_bounds(name, axis, first, end - 1, count)
    if end < first:
        raise refuse(f"tensor `{name}`: the slice {first}:{end} of dimension {axis} is empty")
    return first, step, len(range(first, end, step))
