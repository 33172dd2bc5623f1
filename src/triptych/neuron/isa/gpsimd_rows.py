"""Instructions of the GPSIMD engine (POOL): affine index patterns."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from triptych.core.errors import UnknownName
from triptych.neuron.isa.alu import ALU
from triptych.neuron.isa.casts import widen
from triptych.neuron.isa.checks import same_elements, same_partitions
from triptych.neuron.isa.hardware import Engine
from triptych.neuron.isa.row import SBUF, Attributes, Cost, Flow, Subject, Values, output, row, tile, tile_or_number
from triptych.neuron.isa.trace import Pattern

_POOL = (Engine.GPSIMD,)
_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
_PATTERN_AXES = 4


def _pattern(attributes: Attributes) -> Pattern:
    return cast("Pattern", attributes["pattern"])


def _affine_pattern(subject: Subject) -> None:
    """At most four axes (step, count), as many elements as a partition of dst has."""
    pattern = _pattern(subject.instruction.attributes)
    count = prod(number for _, number in pattern)
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
    source="nki.isa.iota",
)
def iota(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = the affine index of each element, computed in 32-bit integers."""
    partitions = operands.shape("dst")[0]
    return {"dst": affine_values(partitions, attributes).astype(np.int32)}


def _comparison(subject: Subject) -> None:
    name = str(subject.instruction.attributes["cmp_op"])
    if name not in _COMPARISONS:
        raise UnknownName.of("comparison", name, _COMPARISONS, subject.instruction.where)


@row(
    "affine_select",
    engines=_POOL,
    operands=(output("dst", SBUF), tile("on_true_tile", SBUF), tile_or_number("on_false_value")),
    attributes={"pattern": (), "offset": 0, "channel_multiplier": 0, "cmp_op": "equal"},
    flow=Flow.ELEMENTWISE,
    cost=Cost.GPSIMD,
    checks=(same_partitions("dst", "on_true_tile"), same_elements("dst", "on_true_tile"), _affine_pattern, _comparison),
    source="nki.isa.affine_select",
)
def affine_select(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = on_true_tile where the affine index compares with 0 as `cmp_op` says, else the number on_false_value."""
    tile_values = operands.flat("on_true_tile")
    chosen = ALU[str(attributes["cmp_op"])].meaning(
        affine_values(tile_values.shape[0], attributes), np.zeros((), np.int64)
    )
    return {"dst": np.where(chosen != 0, widen(tile_values), widen(operands["on_false_value"]))}
