"""The views that most indices mean, found quickly: slices and whole numbers, and index tiles inside of their tensor.

Each is what `NkiTensor` makes of the same index; None is for indices that are another case, or wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from triptych.languages.nki.tracing.indexing import Ds, IndexTile, LoopIndex
from triptych.languages.nki.tracing.views import View


def sliced(view: View, keys: Sequence[Any]) -> View | None:
    """By slices, `nl.ds` and whole numbers inside each axis, or `...` alone; axes without a key stay whole."""
    if len(keys) == 1 and keys[0] is Ellipsis:
        return view
    counts = view.shape
    if len(keys) > len(counts):
        return None
    offset = view.offset
    shape: list[int] = []
    chosen: list[int] = []
    for one, count, step in zip(keys, counts, view.steps, strict=False):
        if type(one) is slice:
            start, stop = one.start, one.stop
            if one.step is not None:
                return None
            if start is None and stop is None:
                shape.append(count)
                continue
            start, stop = 0 if start is None else start, count if stop is None else stop
        elif type(one) is Ds:
            start, stop = one.start, one.start + one.size if type(one.start) is int else None
        elif type(one) is int or type(one) is LoopIndex:
            start = int(one)
            stop = start + 1
            chosen.append(len(shape))
        else:
            return None
        if type(start) is not int or type(stop) is not int or not 0 <= start < stop <= count:
            return None
        offset += start * step
        shape.append(stop - start)
    shape += counts[len(keys) :]
    made = View(view.tensor, offset, tuple(shape), view.steps, view.partition_axis)
    return _without(made, chosen) if chosen else made


def _without(view: View, axes: Sequence[int]) -> View | None:
    """Without axes of one element, but for that of the partitions; None where a tile would be left with too few."""
    walked = view.partition_axis
    kept = [axis for axis in range(len(view.shape)) if axis not in axes or axis == walked]
    if walked is not None and len(kept) < 2:
        return None
    shape, steps = tuple([view.shape[axis] for axis in kept]), tuple([view.steps[axis] for axis in kept])
    return View(view.tensor, view.offset, shape, steps, None if walked is None else kept.index(walked))


@dataclass(frozen=True, slots=True)
class _Tiling:
    """What index tiles of certain shapes and steps make of a view, wherever they begin."""

    shape: tuple[int, ...]
    steps: tuple[int, ...]
    partition_axis: int | None
    reaches: tuple[tuple[int, int, int], ...]
    """Of each tile: its axis of the view, and the least and the greatest offset that stay inside of that."""


def tiled(view: View, keys: Sequence[object]) -> View | None:
    """By an index tile of two axes or more, or a whole number, inside each axis; at least one tile."""
    if len(keys) != len(view.shape):
        return None
    offset = view.offset
    kinds: list[object] = [view.shape, view.steps, view.partition_axis]
    for one, extent, step in zip(keys, view.shape, view.steps, strict=True):
        if isinstance(one, IndexTile):
            offset += one.offset * step
            kinds += (one.shape, one.steps)
        elif isinstance(one, int) and type(one) is not bool and 0 <= one < extent:
            offset += int(one) * step
            kinds.append(None)
        else:
            return None
    key = tuple(kinds)
    tiling = _TILINGS.get(key)
    if tiling is None:
        if len(_TILINGS) >= _MOST_TILINGS:
            _TILINGS.clear()
        tiling = _TILINGS[key] = _tiling(view, keys)
    if not isinstance(tiling, _Tiling):
        return None
    for at, least, most in tiling.reaches:
        if not least <= cast("IndexTile", keys[at]).offset <= most:
            return None
    return View(view.tensor, offset, tiling.shape, tiling.steps, tiling.partition_axis)


_TILINGS: dict[object, _Tiling | str] = {}
_MOST_TILINGS = 1 << 14
_ANOTHER = "another case"


def _tiling(view: View, keys: Sequence[object]) -> _Tiling | str:
    """How the tiles of an index walk a view together; `_ANOTHER` where they are another case."""
    rank = max([len(one.shape) for one in keys if isinstance(one, IndexTile)], default=0)
    if rank < 2:
        return _ANOTHER
    shape, steps = [1] * rank, [0] * rank
    walked: list[int] = []
    reaches: list[tuple[int, int, int]] = []
    for at, (one, extent, step) in enumerate(zip(keys, view.shape, view.steps, strict=True)):
        if not isinstance(one, IndexTile):
            continue
        if len(one.shape) != rank or not _joined(one, step, shape, steps):
            return _ANOTHER
        low, high = one.bounds()
        reaches.append((at, one.offset - low, extent - 1 - (high - one.offset)))
        if at == view.partition_axis:
            walked = [axis for axis, moved in enumerate(one.steps) if moved]
    if len(walked) > 1:
        return _ANOTHER
    partition_axis = None if view.partition_axis is None else walked[0] if walked else 0
    return _Tiling(tuple(shape), tuple(steps), partition_axis, tuple(reaches))


def _joined(one: IndexTile, step: int, shape: list[int], steps: list[int]) -> bool:
    """Whether a tile has the others' shape; shape and steps are then with it."""
    for axis, (count, moved) in enumerate(zip(one.shape, one.steps, strict=True)):
        if count != 1:
            if shape[axis] not in (1, count):
                return False
            shape[axis] = count
            steps[axis] += moved * step
    return True
