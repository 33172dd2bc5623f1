"""The views that most indices mean, found quickly: slices of whole numbers, and index tiles inside of their tensor.

Each is what `NkiTensor` makes of the same index; None is for indices that are another case, or wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from triptych.languages.nki.tracing.indexing import IndexTile
from triptych.languages.nki.tracing.views import View


def sliced(view: View, keys: Sequence[object]) -> View | None:
    """By a slice of whole numbers inside each axis."""
    if len(keys) != len(view.shape):
        return None
    offset, shape = view.offset, list[int]()
    for one, count, step in zip(keys, view.shape, view.steps, strict=True):
        if not isinstance(one, slice):
            return None
        bounds = cast("slice[object, object, object]", one)
        start, stop = 0 if bounds.start is None else bounds.start, count if bounds.stop is None else bounds.stop
        if type(start) is not int or type(stop) is not int or bounds.step is not None:
            return None
        if not 0 <= start < stop <= count:
            return None
        offset += start * step
        shape.append(stop - start)
    return View(view.tensor, offset, tuple(shape), view.steps, view.partition_axis)


def tiled(view: View, keys: Sequence[object]) -> View | None:
    """By an index tile of two axes or more, or a whole number, inside each axis; at least one tile."""
    if len(keys) != len(view.shape):
        return None
    rank = max([len(one.shape) for one in keys if isinstance(one, IndexTile)], default=0)
    if rank < 2:
        return None
    offset, shape, steps = view.offset, [1] * rank, [0] * rank
    walked: list[int] = []
    for at, (one, extent, step) in enumerate(zip(keys, view.shape, view.steps, strict=True)):
        if isinstance(one, IndexTile):
            if len(one.shape) != rank or not _joined(one, extent, step, shape, steps):
                return None
            offset += one.offset * step
            if at == view.partition_axis:
                walked = [axis for axis, moved in enumerate(one.steps) if moved]
        elif isinstance(one, int) and type(one) is not bool and 0 <= one < extent:
            offset += int(one) * step
        else:
            return None
    if len(walked) > 1:
        return None
    partition_axis = None if view.partition_axis is None else walked[0] if walked else 0
    return View(view.tensor, offset, tuple(shape), tuple(steps), partition_axis)


def _joined(one: IndexTile, extent: int, step: int, shape: list[int], steps: list[int]) -> bool:
    """Whether a tile stays inside of its axis and has the others' shape; shape and steps are then with it."""
    low = high = one.offset
    for axis, (count, moved) in enumerate(zip(one.shape, one.steps, strict=True)):
        if count != 1:
            if shape[axis] not in (1, count):
                return False
            shape[axis] = count
            if moved:
                steps[axis] += moved * step
                reach = moved * (count - 1)
                low, high = (low + reach, high) if reach < 0 else (low, high + reach)
    return low >= 0 and high < extent
