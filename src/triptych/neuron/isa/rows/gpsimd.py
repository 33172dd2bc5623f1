"""Instructions of the GPSIMD engine (POOL): affine index patterns, and reductions over partitions."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from triptych.neuron.isa.alu import ALU, AluKind
from triptych.neuron.isa.arithmetic import reduce_in_order, reduction_work
from triptych.neuron.isa.casts import widen
from triptych.neuron.isa.hardware import Engine
from triptych.neuron.isa.row import SBUF, Attributes, Cost, Flow, Subject, Values, number, output, row, tile
from triptych.neuron.isa.rules import comparison, one_of, same_elements, same_shape
from triptych.neuron.isa.trace import Pattern

_POOL = (Engine.GPSIMD,)
_PATTERN_AXES = 4


def _pattern(attributes: Attributes) -> Pattern:
    return cast("Pattern", attributes["pattern"])


def _affine_pattern(subject: Subject) -> None:
    """At most four axes (step, count), as many elements as a partition of dst has."""
    attributes = subject.instruction.attributes
    pattern = _pattern(attributes)
    for axis in pattern:
        if len(axis) != 2 or axis[1] < 1:
            raise subject.refuse(f"the pattern has the axis {list(axis)}; expected [step, count], a count of 1 or more")
    for term in (attributes["offset"], attributes["channel_multiplier"], *(step for step, _ in pattern)):
        if not -(1 << 31) <= cast("int", term) < 1 << 31:
            raise subject.exceed(f"the index is made of {term}; the engine counts in 32-bit integers")
    count = prod(elements for _, elements in pattern)
    expected = subject.instruction.region("dst").free
    if len(pattern) > _PATTERN_AXES:
        raise subject.exceed(f"the pattern has {len(pattern)} axes; the limit is {_PATTERN_AXES}")
    if count != expected:
        raise subject.refuse(
            f"the pattern has {count} elements, {subject.describe('dst')} has {expected} in each partition"
        )


def affine_values(partitions: int, attributes: Attributes) -> NDArray[np.int64]:
    """offset + partition * channel_multiplier + sum of index * step over the axes: [partitions, elements]."""
    offset, multiplier = attributes["offset"], attributes["channel_multiplier"]
    assert isinstance(offset, int)
    assert isinstance(multiplier, int)
    row_values = np.zeros((1,), np.int64)
    for step, count in _pattern(attributes):
        row_values = (row_values[:, np.newaxis] + step * np.arange(count)).reshape(-1)
    return offset + multiplier * np.arange(partitions)[:, np.newaxis] + row_values


@row(
    "iota",
    engines=_POOL,
    operands=(output("dst", SBUF),),
    attributes={"pattern": (), "offset": 0, "channel_multiplier": 0},
    flow=Flow.CONSTANT,
    cost=Cost.GPSIMD,
    checks=(_affine_pattern,),
)
def iota(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = the affine index of each element, computed in 32-bit integers."""
    partitions = operands.shape("dst")[0]
    return {"dst": affine_values(partitions, attributes).astype(np.int32)}


@row(
    "affine_select",
    engines=_POOL,
    operands=(output("dst", SBUF), tile("on_true_tile", SBUF), number("on_false_value")),
    attributes={"pattern": (), "offset": 0, "channel_multiplier": 0, "cmp_op": "equal"},
    flow=Flow.SELECTION,
    cost=Cost.GPSIMD,
    checks=(same_shape("dst", "on_true_tile"), _affine_pattern, comparison("cmp_op")),
)
def affine_select(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = on_true_tile where the affine index compares with 0 as `cmp_op` says, else the number on_false_value."""
    tile_values = operands.flat("on_true_tile")
    chosen = ALU[str(attributes["cmp_op"])].meaning(
        affine_values(tile_values.shape[0], attributes), np.zeros((), np.int64)
    )
    return {"dst": np.where(chosen != 0, widen(tile_values), widen(operands["on_false_value"]))}


def _one_partition(subject: Subject) -> None:
    dst = subject.instruction.region("dst")
    if dst.partitions != 1:
        raise subject.refuse(f"{subject.describe('dst')} has {dst.partitions} partitions; expected 1")


def _bits_of_integers(subject: Subject) -> None:
    operation = ALU[str(subject.instruction.attributes["op"])]
    dtype = subject.tensor("data").dtype.numpy
    if operation.kind is AluKind.BITVEC and dtype.kind not in "iu":
        raise subject.refuse(f"'{operation.name}' works on integers; {subject.describe('data')} is {dtype}")


@row(
    "tensor_partition_reduce",
    engines=_POOL,
    operands=(output("dst", SBUF), tile("data", SBUF)),
    attributes={"op": None},
    flow=Flow.COLUMN,
    cost=Cost.UNPUBLISHED,
    checks=(
        _one_partition,
        same_elements("dst", "data"),
        one_of("op", ("add", "maximum", "bitwise_or", "bitwise_and")),
        _bits_of_integers,
    ),
    flops=lambda subject: reduction_work(subject, "op", "data", "dst"),
)
def tensor_partition_reduce(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst[1, N] = op over the partitions of data, in order, in float32 (bit operations on raw bits)."""
    return {"dst": reduce_in_order(str(attributes["op"]), operands.flat("data").T)}
