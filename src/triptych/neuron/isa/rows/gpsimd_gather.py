"""Instructions of the GPSIMD engine (POOL) that gather, search and sort; its eight cores have 16 partitions each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from triptych.neuron.isa.casts import widen
from triptych.neuron.isa.hardware import Engine
from triptych.neuron.isa.row import SBUF, Attributes, Cost, Flow, Subject, Values, optional, output, row, tile, updated
from triptych.neuron.isa.rules import same_dtype, same_partitions, same_shape

_POOL = (Engine.GPSIMD,)
_CORE = 16
"""Partitions of a core."""
_INDICES = 4096
"""The most indices of a core. Source: nki.isa.local_gather."""


def _taken(operands: Values, rows: NDArray[Any], indices: NDArray[np.int64]) -> NDArray[Any]:
    """rows[p, indices[p, i]]; what lies outside is undefined on the hardware: the largest bits here, and a remark."""
    outside = (indices < 0) | (indices >= rows.shape[1])
    if outside.any():
        count = int(np.count_nonzero(outside))
        operands.notes.append(f"{count} indices are outside of 0 to {rows.shape[1] - 1}: what they give is undefined")
    found = np.take_along_axis(rows, np.where(outside, 0, indices), axis=1)
    if outside.any():
        found = found.copy()
        found.view(f"u{found.itemsize}")[outside] = np.iinfo(f"u{found.itemsize}").max
    return found


@row(
    "nc_n_gather",
    engines=_POOL,
    operands=(output("dst", SBUF), tile("data", SBUF), tile("indices", SBUF, dtypes=("u32",), selects=True)),
    flow=Flow.SELECTION,
    cost=Cost.GPSIMD,
    checks=(same_shape("dst", "indices"), same_partitions("dst", "data"), same_dtype("dst", "data")),
    moves_bits=True,
)
def nc_n_gather(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst[p, i] = data[p, indices[p, i]], over the free elements of each partition as one row."""
    del attributes
    return {"dst": _taken(operands, operands.flat("data"), operands.flat("indices").astype(np.int64))}


def _cores(subject: Subject) -> None:
    data, index, dst = (subject.instruction.region(name) for name in ("src_buffer", "index", "dst"))
    attributes = subject.instruction.attributes
    if data.partitions % _CORE:
        raise subject.refuse(f"{subject.describe('src_buffer')} has {data.partitions} partitions, no multiple of 16")
    each, most = cast("int", attributes["num_elem_per_idx"]), index.free * _CORE
    if each not in (1, 2, 4, 8, 16, 32):
        raise subject.refuse(f"num_elem_per_idx is {each}; expected 1, 2, 4, 8, 16 or 32")
    valid = cast("int | None", attributes["num_valid_indices"]) or most
    if valid > most:
        raise subject.refuse(f"num_valid_indices is {valid}; {subject.describe('index')} has {most} for each core")
    if valid > _INDICES:
        raise subject.exceed(f"{valid} indices for each core; the limit is {_INDICES}")
    if dst.free != valid * each:
        raise subject.refuse(
            f"{subject.describe('dst')} has {dst.free} elements in each partition; expected {valid * each}, "
            f"{each} for each of {valid} indices"
        )


@row(
    "local_gather",
    engines=_POOL,
    operands=(output("dst", SBUF), tile("src_buffer", SBUF), tile("index", SBUF, dtypes=("u16",), selects=True)),
    attributes={"num_elem_per_idx": 1, "num_valid_indices": optional(int)},
    flow=Flow.MOVEMENT,
    cost=Cost.GPSIMD,
    checks=(same_partitions("dst", "src_buffer", "index"), same_dtype("dst", "src_buffer"), _cores),
)
def local_gather(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = the elements of each partition that its core's indices name, num_elem_per_idx from each on.

    A core's indices are those of its 16 partitions, column by column.
    """
    data, index = operands.flat("src_buffer"), operands.flat("index").astype(np.int64)
    each = cast("int", attributes["num_elem_per_idx"])
    valid = cast("int | None", attributes["num_valid_indices"]) or index.shape[1] * _CORE
    cores = index.reshape(-1, _CORE, index.shape[1]).transpose(0, 2, 1).reshape(-1, index.shape[1] * _CORE)[:, :valid]
    columns = (cores[:, :, np.newaxis] + np.arange(each)).reshape(cores.shape[0], -1)
    return {"dst": _taken(operands, data, np.repeat(columns, _CORE, axis=0))}


def _one_more(subject: Subject) -> None:
    source, dst = subject.instruction.region("src"), subject.instruction.region("dst")
    if dst.free != source.free + 1:
        raise subject.refuse(
            f"{subject.describe('dst')} has {dst.free} elements in each partition; expected {source.free + 1}, "
            f"those of {subject.describe('src')} and the count"
        )


@row(
    "nonzero_with_count",
    engines=_POOL,
    operands=(updated("dst", SBUF, dtypes=("s32",)), tile("src", SBUF, dtypes=("f32", "s32"))),
    attributes={"index_offset": 0, "padding_val": -1},
    flow=Flow.MOVEMENT,
    cost=Cost.UNPUBLISHED,
    core_generation=3,
    checks=(same_partitions("dst", "src"), _one_more),
)
def nonzero_with_count(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = where src is not 0, then padding, then how often, of partitions 0, 16, 32 … alone; others stay."""
    source, result = operands.flat("src"), operands.flat("dst").copy()
    if source.dtype == np.bool_:  # which elements are defined: a result is where all of src is
        result[::_CORE] = source[::_CORE].all(axis=1, keepdims=True)
        return {"dst": result}
    offset, padding = cast("int", attributes["index_offset"]), cast("int", attributes["padding_val"])
    for partition in range(0, source.shape[0], _CORE):
        found = np.flatnonzero(source[partition])
        result[partition, :-1] = padding
        result[partition, : len(found)] = found + offset
        result[partition, -1] = len(found)
    return {"dst": result}


def _snake(subject: Subject) -> None:
    source, values = subject.instruction.region("src"), subject.instruction.region("val_dst")
    count = cast("int", subject.instruction.attributes["n"])
    if source.partitions % _CORE:
        raise subject.refuse(f"{subject.describe('src')} has {source.partitions} partitions, no multiple of 16")
    if not 8 <= count < 65536:
        raise subject.exceed(f"n is {count}; expected 8 to 65535")
    if source.free * _CORE < count:
        raise subject.refuse(f"n is {count}; 16 partitions of {subject.describe('src')} have {source.free * _CORE}")
    if not 1 <= values.free < 32768 or values.free > count:
        raise subject.exceed(f"{subject.describe('val_dst')} asks for the {values.free} largest of {count}")


@row(
    "topk",
    engines=_POOL,
    operands=(
        output("val_dst", SBUF, dtypes=("bf16",)),
        output("idx_dst", SBUF, dtypes=("u32",)),
        tile("src", SBUF, dtypes=("bf16",)),
    ),
    attributes={"n": 0},
    flow=Flow.PARTITION,
    cost=Cost.SEARCH,
    checks=(same_shape("val_dst", "idx_dst"), same_partitions("val_dst", "src"), _snake),
)
def topk(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """val_dst, idx_dst = the K largest of the n elements of 16 partitions, ascending, and where they stand.

    The elements of a group of 16 partitions run over its partitions, column by column; each partition of a group gets
    the same. Of equal values the one that stands first is the larger; a NaN counts as the largest.
    """
    source = widen(operands.flat("src"))
    count, wanted = cast("int", attributes["n"]), operands.shape("val_dst")[1]
    groups = source.reshape(-1, _CORE, source.shape[1]).transpose(0, 2, 1).reshape(source.shape[0] // _CORE, -1)
    row_values = groups[:, :count]
    order = np.argsort(row_values[:, ::-1], axis=1, kind="stable")[:, -wanted:]
    places = count - 1 - order
    best = np.take_along_axis(row_values, places, axis=1)
    return {"val_dst": np.repeat(best, _CORE, axis=0), "idx_dst": np.repeat(places, _CORE, axis=0)}


def _bounds_shape(subject: Subject) -> None:
    segments, dst = subject.instruction.region("segment_ids"), subject.instruction.region("dst")
    if segments.partitions != 1 or dst.partitions != 1 or dst.free != 2 * segments.free:
        raise subject.refuse(
            f"{subject.describe('dst')} has the shape {list(dst.shape)}; expected [1, 2, {segments.free}] for "
            f"{subject.describe('segment_ids')} of shape [1, {segments.free}]"
        )


@row(
    "sequence_bounds",
    engines=_POOL,
    operands=(output("dst", SBUF, dtypes=("f32", "s32")), tile("segment_ids", SBUF, dtypes=("f32", "s32"))),
    flow=Flow.PARTITION,
    cost=Cost.UNPUBLISHED,
    checks=(_bounds_shape,),
)
def sequence_bounds(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst[0, 0], dst[0, 1] = where the segment of each element begins and, one behind, ends; n and -1 for the id 0."""
    del attributes
    ids = widen(operands.flat("segment_ids"))[0]
    count = len(ids)
    begins = np.concatenate([[0], np.flatnonzero(ids[1:] != ids[:-1]) + 1])
    ends = np.append(begins[1:], count)
    first, behind = np.repeat(begins, ends - begins), np.repeat(ends, ends - begins)
    padding = ids == 0
    return {"dst": np.stack([np.where(padding, count, first), np.where(padding, -1, behind)])[np.newaxis]}
