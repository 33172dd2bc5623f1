"""Instructions of the Vector engine (DVE) that search partitions and move data between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from triptych.neuron.isa.casts import widen
from triptych.neuron.isa.hardware import Engine
from triptych.neuron.isa.row import Attributes, Cost, Flow, Subject, Values, number, output, row, tile, updated
from triptych.neuron.isa.rules import same_dtype, same_elements, same_partitions, same_shape

_DVE = (Engine.VECTOR,)
_SEARCHED = (8, 16384)
_INDICES = ("u16", "u32")
_MISSING = 0xFFFFFFFF  # rounding to uint16 leaves all its bits set too


@row(
    "max8",
    engines=_DVE,
    operands=(output("dst", free=8), tile("src", free=_SEARCHED)),
    flow=Flow.PARTITION,
    cost=Cost.REDUCTION,
    checks=(same_partitions("dst", "src"),),
)
def max8(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = the 8 largest elements of each partition, descending, compared as float32; a NaN counts as the largest."""
    del attributes
    return {"dst": np.sort(widen(operands.flat("src")), axis=1)[:, :-9:-1]}


@row(
    "nc_find_index8",
    engines=_DVE,
    operands=(output("dst", dtypes=_INDICES, free=8), tile("data", free=_SEARCHED), tile("vals", free=8)),
    flow=Flow.PARTITION,
    cost=Cost.REDUCTION,
    checks=(same_partitions("dst", "data", "vals"),),
)
def nc_find_index8(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = where each of the 8 values first stands in its partition; one that is given twice is found further on.

    A value that is not there, as a NaN never is, gives all ones.
    """
    del attributes
    data, vals = widen(operands.flat("data")), widen(operands.flat("vals"))
    found = np.empty(vals.shape, np.int64)
    for place in range(vals.shape[1]):
        value = vals[:, place, np.newaxis]
        equal = data == value
        earlier = np.count_nonzero(vals[:, :place] == value, axis=1)
        wanted = equal & (np.cumsum(equal, axis=1) == earlier[:, np.newaxis] + 1)
        found[:, place] = _first(wanted)
    return {"dst": found}


def _first(wanted: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The first true element of each row, or the mark of none."""
    return np.where(wanted.any(axis=1), wanted.argmax(axis=1), _MISSING)


@row(
    "nc_match_replace8",
    engines=_DVE,
    operands=(
        output("dst"),
        tile("data", free=_SEARCHED),
        tile("vals", free=8),
        number("imm"),
        output("dst_idx", optional=True, dtypes=_INDICES, free=8),
    ),
    flow=Flow.PARTITION,
    cost=Cost.REDUCTION,
    checks=(same_shape("dst", "data"), same_partitions("data", "vals", "dst_idx")),
)
def nc_match_replace8(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = data with the first element that equals vals[7], then vals[6] …, replaced by imm; dst_idx = where it was.

    Each value is looked for in what the ones before it left; one that is not there gives the index of all ones.
    """
    del attributes
    data, vals = widen(operands.flat("data")).copy(), widen(operands.flat("vals"))
    found = np.empty(vals.shape, np.int64)
    for place in reversed(range(vals.shape[1])):
        first = found[:, place] = _first(data == vals[:, place, np.newaxis])
        rows = np.flatnonzero(first != _MISSING)
        data[rows, first[rows]] = np.float32(operands["imm"])
    return {"dst": data, "dst_idx": found}


_QUADRANT = 32
KEEP = 255
"""The entry of a shuffle mask that leaves a partition of dst as it is."""


def _mask(attributes: Attributes) -> tuple[int, ...]:
    return cast("tuple[int, ...]", attributes["shuffle_mask"])


def _sources(partitions: int, mask: tuple[int, ...]) -> NDArray[np.int64]:
    """The partition of src that each of dst takes, -1 for none."""
    place = np.arange(partitions)
    chosen = np.array(mask, np.int64)[place % _QUADRANT]
    return np.where(chosen == KEEP, -1, place // _QUADRANT * _QUADRANT + chosen)


def _shuffle_mask(subject: Subject) -> None:
    mask = _mask(subject.instruction.attributes)
    if len(mask) != _QUADRANT:
        raise subject.refuse(f"shuffle_mask has {len(mask)} entries; expected {_QUADRANT}")
    for entry in mask:
        if not 0 <= entry < _QUADRANT and entry != KEEP:
            raise subject.refuse(f"shuffle_mask has the entry {entry}; expected 0 to {_QUADRANT - 1}, or {KEEP}")
    partitions = subject.instruction.region("src").partitions
    highest = int(_sources(subject.instruction.region("dst").partitions, mask).max())
    if highest >= partitions:
        raise subject.refuse(f"shuffle_mask takes partition {highest}; {subject.describe('src')} has {partitions}")


@row(
    "nc_stream_shuffle",
    engines=_DVE,
    operands=(updated("dst"), tile("src")),
    attributes={"shuffle_mask": ()},
    flow=Flow.MOVEMENT,
    checks=(same_elements("dst", "src"), same_dtype("dst", "src"), _shuffle_mask),
)
def nc_stream_shuffle(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst[i] = src[shuffle_mask[i]] of the partitions of each quadrant of 32; an entry of 255 leaves dst as it is."""
    source, old = operands.flat("src"), operands.flat("dst")
    sources = _sources(old.shape[0], _mask(attributes))
    return {"dst": np.where((sources >= 0)[:, np.newaxis], source[sources], old)}
