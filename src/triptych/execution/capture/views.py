"""Views of a handle, as numpy makes them of an array: no data is looked at, and none is copied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from operator import index
from typing import SupportsIndex, cast

from triptych.core.dtypes import DType
from triptych.core.errors import UsageError
from triptych.core.handles import Handle, contiguous_strides


def indexed(handle: Handle, key: object) -> Handle:
    """`array[key]` for whole numbers, slices, `...` and None.

    Raises:
        IndexError: where a number lies outside of its axis, or there are more of them than axes.
        UsageError: for anything else: picking elements by lists or masks makes no view.
    """
    parts = list(cast("tuple[object, ...]", key)) if isinstance(key, tuple) else [key]
    if parts.count(...) == 0:
        parts.append(...)
    place = parts.index(...)
    taken = sum(part is not None and part is not ... for part in parts)
    if taken > handle.ndim or parts.count(...) > 1:
        raise IndexError(f"too many indices: the array has {handle.ndim} axes, {taken} are indexed")
    parts[place : place + 1] = [slice(None)] * (handle.ndim - taken)
    axes = iter(zip(handle.shape, handle.strides, strict=True))
    offset, shape, strides = handle.offset, list[int](), list[int]()
    for part in parts:
        if part is None:
            shape.append(1)
            strides.append(0)
            continue
        extent, stride = next(axes)
        if isinstance(part, slice):
            start, stop, step = cast("slice[int, int, int]", part).indices(extent)
            count = len(range(start, stop, step))
            offset += start * stride if count else 0
            shape.append(count)
            strides.append(step * stride)
        else:
            offset += _position(part, extent) * stride
    return replace(handle, shape=tuple(shape), strides=tuple(strides), offset=offset)


def _position(part: object, extent: int) -> int:
    if isinstance(part, bool):
        raise UsageError("indexing by a mask copies the elements", hint="index with numbers and slices")
    try:
        number = index(cast("SupportsIndex", part))
    except TypeError:
        raise UsageError(
            f"indexing by a {type(part).__name__} copies the elements", hint="index with numbers and slices"
        ) from None
    if not -extent <= number < extent:
        raise IndexError(f"index {number} is out of bounds for an axis of {extent}")
    return number % extent


def reshaped(handle: Handle, shape: Sequence[int]) -> Handle:
    """The same elements in another shape; one extent may be -1.

    Raises:
        UsageError: where the elements are not as many, or strides stand in the way of a view.
    """
    wanted = list(shape)
    if wanted.count(-1) == 1:
        others = prod(extent for extent in wanted if extent != -1)
        wanted[wanted.index(-1)] = handle.size // others if others else 0
    if min(wanted, default=0) < 0 or prod(wanted) != handle.size:
        raise UsageError(f"an array of shape {handle.shape} has no view of shape {tuple(shape)}")
    if handle.size == 0:
        return replace(handle, shape=tuple(wanted), strides=contiguous_strides(wanted, handle.dtype))
    strides = list[int]()
    blocks = _blocks(handle)
    length, step = next(blocks, (1, handle.dtype.bytes))
    for extent in reversed(wanted):
        while extent > 1 and length == 1:
            length, step = next(blocks)
        if length % extent:
            raise UsageError(f"an array of strides {handle.strides} has no view of shape {tuple(shape)}")
        strides.append(step)
        step, length = step * extent, length // extent
    return replace(handle, shape=tuple(wanted), strides=tuple(reversed(strides)))


def _blocks(handle: Handle) -> Iterator[tuple[int, int]]:
    """Innermost first: how many elements lie at equal distances, over as many axes as they do, and the distance."""
    length, step = 1, 0
    for extent, stride in zip(reversed(handle.shape), reversed(handle.strides), strict=True):
        if extent == 1:
            continue
        if length > 1 and stride != step * length:
            yield length, step
            length = 1
        length, step = (extent, stride) if length == 1 else (length * extent, step)
    if length > 1:
        yield length, step


def reinterpreted(handle: Handle, dtype: DType) -> Handle:
    """The same bytes as elements of another type; the last axis has more or fewer of them.

    Raises:
        UsageError: where the last axis has gaps, or not the bytes of a whole number of elements.
    """
    if dtype.bytes == handle.dtype.bytes:
        return replace(handle, dtype=dtype)
    *_, extent = handle.shape or (0,)
    if not handle.shape or handle.strides[-1] != handle.dtype.bytes or extent * handle.dtype.bytes % dtype.bytes:
        raise UsageError(f"an array of {handle.dtype}{list(handle.shape)} has no view as {dtype}")
    shape = (*handle.shape[:-1], extent * handle.dtype.bytes // dtype.bytes)
    return replace(handle, dtype=dtype, shape=shape, strides=(*handle.strides[:-1], dtype.bytes))


def transposed(handle: Handle, axes: Sequence[int]) -> Handle:
    """The axes in another order; reversed where none is named.

    Raises:
        UsageError: where they are not the array's, each once.
    """
    order = [axis % handle.ndim if -handle.ndim <= axis < handle.ndim else axis for axis in axes]
    order = order or list(reversed(range(handle.ndim)))
    if sorted(order) != list(range(handle.ndim)):
        raise UsageError(f"axes {tuple(axes)} are no order of {handle.ndim} axes")
    shape = tuple(handle.shape[axis] for axis in order)
    return replace(handle, shape=shape, strides=tuple(handle.strides[axis] for axis in order))


def broadcast(handle: Handle, shape: Sequence[int]) -> Handle:
    """The elements repeated to a shape, by strides of 0.

    Raises:
        UsageError: where the shape does not take them.
    """
    missing = len(shape) - handle.ndim
    extents = (1,) * missing + handle.shape
    if missing < 0 or any(one not in (1, wanted) for one, wanted in zip(extents, shape, strict=True)):
        raise UsageError(f"an array of shape {handle.shape} does not go into one of shape {tuple(shape)}")
    steps = (0,) * missing + handle.strides
    strides = tuple(
        0 if one == 1 and wanted != 1 else step for one, wanted, step in zip(extents, shape, steps, strict=True)
    )
    return replace(handle, shape=tuple(shape), strides=strides)
