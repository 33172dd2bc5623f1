"""`nki.language`: the place of a program in the grid, and what the programs of a grid do together (Beta 1)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, overload

import numpy as np

from triptych.languages.nki.language_functions.elementwise import on_chip, result_tile
from triptych.languages.nki.tracing.indexing import refuse, sequence, whole
from triptych.languages.nki.tracing.operations import alu_name
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.languages.nki.tracing.tracer import Tracer, current
from triptych.neuron.isa.trace import BETA1, CURRENT


def program_id(axis: int = 0) -> int:
    """The place of this program along an axis of the grid."""
    tracer = current("nl.program_id")
    _check_axis(tracer, axis)
    return tracer.program_ids()[axis]


@overload
def num_programs(axes: int) -> int: ...
@overload
def num_programs(axes: Sequence[int] | None = None) -> Any: ...  # noqa: ANN401  # an int or a tuple, by the generation
def num_programs(axes: int | Sequence[int] | None = None) -> int | tuple[int, ...]:
    """Programs along an axis of the grid, along several, or (by default under Beta 1) along all as a tuple."""
    tracer = current("nl.num_programs")
    if axes is None:
        return tracer.grid[0] if tracer.generation == CURRENT else tracer.grid
    if isinstance(axes, int):
        _check_axis(tracer, axes)
        return tracer.grid[axes]
    for axis in axes:
        _check_axis(tracer, axis)
    return tuple(tracer.grid[axis] for axis in axes)


def _check_axis(tracer: Tracer, axis: int) -> None:
    if whole(axis) is None or not 0 <= axis < len(tracer.grid):
        raise refuse(f"axis {axis!r} of a grid of {len(tracer.grid)} axes", "launch with kernel[grid](…)")


def program_ndim() -> int:
    """Axes of the grid."""
    return len(current("nl.program_ndim").grid)


def nc(count: int) -> int:
    """Beta 1's mark of a grid axis that is spread over NeuronCores; the programs are the same."""
    return count


def spmd_dim(outer: int, inner: int) -> int:
    """Beta 1's product of two grid extents."""
    return outer * inner


def _beta1(function: str) -> Tracer:
    tracer = current(f"nl.{function}")
    if tracer.generation != BETA1:
        tracer.note_legacy(f"nl.{function}")
    return tracer


def all_reduce(
    x: object,
    op: object,
    program_axes: int | Sequence[int],
    *,
    dtype: object = None,
    mask: object = None,
    parallel_reduce: bool = True,
    asynchronous: bool = False,
) -> NkiTensor:
    """The tile of each program along the axes of the grid, reduced by `op`: all programs get the result."""
    del parallel_reduce, asynchronous
    tracer = _beta1("all_reduce")
    if mask is not None:
        raise refuse("nl.all_reduce takes no mask here: give it the part of the tile that is filled")
    data = on_chip(x, "nl.all_reduce")
    axes = {whole(one) for one in sequence(program_axes)}
    for axis in axes:
        _check_axis(tracer, -1 if axis is None else axis)
    here = tracer.program_ids()
    ranges = [range(count) if axis in axes else (here[axis],) for axis, count in enumerate(tracer.grid)]
    group = tuple(int(np.ravel_multi_index(place, tracer.grid)) for place in product(*ranges))
    target = result_tile(tracer, data.shape, dtype, data.dtype)
    tracer.emit("reduce_programs", {"dst": target, "src": data}, {"op": alu_name(op), "group": group})
    return target


def atomic_rmw(dst: object, value: object, op: object, *, mask: object = None) -> None:
    """Adds a tile to the rows of an HBM tensor that indices choose, `dst[index_tile, i_f]`; repeated rows add up."""
    tracer = _beta1("atomic_rmw")
    if not isinstance(dst, NkiTensor) or dst.on_chip:
        raise refuse("nl.atomic_rmw: dst must be a tensor in HBM, indexed by a tile of rows")
    if alu_name(op) != "add":
        raise refuse(f"nl.atomic_rmw: op is {alu_name(op)}; only np.add is supported")
    source = on_chip(value, "nl.atomic_rmw")
    tracer.emit("dma_accumulate", {"dst": dst, "src": source}, {"atomic": True}, mask=mask)
