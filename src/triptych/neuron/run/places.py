"""Where the elements of a region lie once its indices are known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from triptych.core.errors import MemoryFault
from triptych.core.memory_access import MemoryAccess
from triptych.neuron.isa.dynamic import group_size
from triptych.neuron.isa.trace import Dynamic, Indexing, Instruction, Region, Tensor
from triptych.neuron.run.strided import Place, Scattered, Strided, layout_of

Indices = NDArray[np.int64]


def place_of(
    region: Region, indices: Indices, instruction: Instruction, tensor: Tensor, kernel: str, *, stores: bool
) -> Place:
    """The elements of a region whose dynamic indices have the values `indices`.

    Raises:
        MemoryFault: for an index that leads outside of the tensor, or on chip of a partition, unless such are left out.
    """
    dynamic = region.dynamic
    assert dynamic is not None
    inside = (indices >= 0) & (indices < dynamic.extent)
    offsets = _OFFSETS[dynamic.kind](region, dynamic, indices, instruction)
    reach = np.broadcast_to(_spread(inside, dynamic, region, instruction), region.shape)
    reach = reach & (offsets >= 0) & (offsets < tensor.size)
    if tensor.space.on_chip:
        reach &= offsets // tensor.free == _column(_starts(region) // tensor.free, region)
    if reach.all():
        if dynamic.kind is Indexing.SCALAR:
            moved = region.offset + dynamic.step * int(indices.reshape(-1)[0])
            return Strided(moved, layout_of(region.pattern, tensor.dtype.stored))
        return Scattered(offsets)
    if not dynamic.skip:
        access = "store" if stores else "load"
        raise MemoryFault(
            f"Out-of-bound access for tensor `{tensor.name}`: {_wrong(inside, reach, dynamic, indices, tensor)}",
            where=instruction.where,
            hint="check the indices, or let oob_mode=nisa.oob_mode.skip leave out what they name",
            kernel=kernel,
            memory=MemoryAccess(access, tensor.space.value, allocation=tensor.name),
        )
    return Scattered(np.where(reach, offsets, 0), reach)


def _wrong(
    inside: NDArray[np.bool_], reach: NDArray[np.bool_], dynamic: Dynamic, indices: Indices, tensor: Tensor
) -> str:
    """Which index is wrong, and why: it is outside of its axis, or leads where the access pattern then leaves."""
    if not inside.all():
        return (
            f"the index {int(indices[~inside][0])}, known only when the kernel runs, is outside of 0 to "
            f"{dynamic.extent - 1}"
        )
    lines = reach.reshape(len(reach), -1).all(axis=1)
    at = int(np.argmin(lines)) if dynamic.kind is Indexing.ROWS else 0
    left = f"the {tensor.free} elements of a partition" if tensor.space.on_chip else f"its {tensor.size} elements"
    named = "an index" if dynamic.kind is Indexing.COLUMNS else f"the index {int(indices.reshape(-1)[at])}"
    return f"{named}, known only when the kernel runs, moves the access beyond {left}"


def _starts(region: Region) -> NDArray[np.int64]:
    """The offsets along the first axis of a region that no index has moved."""
    return region.offset + region.pattern[0][0] * np.arange(region.pattern[0][1], dtype=np.int64)


def _axes(region: Region, first: int) -> Indices:
    """The offsets of the axes of a region from `first` on, without its own offset."""
    offsets = np.zeros((1,) * len(region.pattern), np.int64)
    for axis, (step, count) in enumerate(region.pattern):
        if axis >= first:
            shape = [1] * len(region.pattern)
            shape[axis] = count
            offsets = offsets + (step * np.arange(count, dtype=np.int64)).reshape(shape)
    return offsets


def _column(values: NDArray[np.int64], region: Region) -> NDArray[np.int64]:
    """A value for each place along the first axis."""
    return values.reshape(-1, *(1,) * (len(region.pattern) - 1))


def _scalar(region: Region, dynamic: Dynamic, indices: Indices, instruction: Instruction) -> Indices:
    del instruction
    return np.broadcast_to(region.offset + dynamic.step * int(indices.reshape(-1)[0]) + _axes(region, 0), region.shape)


def _rows(region: Region, dynamic: Dynamic, indices: Indices, instruction: Instruction) -> Indices:
    del instruction
    offsets = region.offset + dynamic.step * _column(indices, region) + _axes(region, 1)
    return np.broadcast_to(offsets, region.shape)


def _snake(indices: NDArray[np.int64], region: Region, instruction: Instruction) -> NDArray[np.int64]:
    """For each partition and column the index that its group has for the column."""
    group, (partitions, columns) = group_size(instruction.engine), (region.partitions, region.free)
    partition, column = np.arange(partitions)[:, np.newaxis], np.arange(columns)[np.newaxis, :]
    first = partition // group * group
    size = np.minimum(group, partitions - first)
    return indices.reshape(partitions, -1)[first + column % size, column // size]


def _columns(region: Region, dynamic: Dynamic, indices: Indices, instruction: Instruction) -> Indices:
    rows = region.offset + region.pattern[0][0] * np.arange(region.partitions)[:, np.newaxis]
    return (rows + dynamic.step * _snake(indices, region, instruction)).reshape(region.shape)


def _spread(inside: NDArray[np.bool_], dynamic: Dynamic, region: Region, instruction: Instruction) -> NDArray[np.bool_]:
    """Whether the index of each element is inside."""
    if dynamic.kind is Indexing.SCALAR:
        return inside.reshape((1,) * len(region.pattern))
    if dynamic.kind is Indexing.ROWS:
        return _column(inside.astype(np.int64), region) != 0
    return (_snake(inside.astype(np.int64), region, instruction) != 0).reshape(region.shape)


_OFFSETS: dict[Indexing, Callable[[Region, Dynamic, Indices, Instruction], Indices]] = {
    Indexing.SCALAR: _scalar,
    Indexing.ROWS: _rows,
    Indexing.COLUMNS: _columns,
}
