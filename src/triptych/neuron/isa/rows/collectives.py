"""Collectives: what the ranks of a group, each on a device of its own, do together. Each sees the data of all.

The members of `group` take part in its order. Source: nki.collectives of NKI 0.6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from triptych.neuron.isa.alu import ALU
from triptych.neuron.isa.casts import widen
from triptych.neuron.isa.hardware import Engine, Space
from triptych.neuron.isa.row import (
    Attributes,
    Check,
    Cost,
    Effect,
    Flow,
    Meaning,
    Subject,
    Values,
    optional,
    output,
    row,
    tile,
    updated,
)
from triptych.neuron.isa.rules import one_of, same_dtype

_MEMORIES = frozenset({Space.HBM, Space.SBUF})
_OPERATIONS = ("add", "maximum", "minimum")

Array = NDArray[Any]


def group_of(attributes: Attributes) -> Sequence[int]:
    """The members."""
    return cast("tuple[int, ...]", attributes["group"])


def place_in_group(operands: Values, attributes: Attributes) -> int:
    """The place of this program among the members."""
    return list(group_of(attributes)).index(operands.program)


def _reduced(operands: Values, attributes: Attributes, name: str = "src") -> Array:
    """What all have, reduced in the members' order in float32."""
    operation = ALU[str(attributes["op"])].meaning
    total = widen(operands.others[0][name])
    for other in operands.others[1:]:
        total = operation(total, widen(other[name]))
    return total


def _one_memory(subject: Subject) -> None:
    spaces = {subject.tensor(name).space for name in ("src", "dst")}
    if len(spaces) > 1:
        raise subject.refuse("src and dst lie in different memories: all tensors in HBM, or all in SBUF")


def _sizes(factor: Callable[[int], tuple[int, int]]) -> Check:
    """dst has `factor(members)` times as many elements as src, as (numerator, denominator)."""

    def check(subject: Subject) -> None:
        times, over = factor(len(group_of(subject.instruction.attributes)))
        source, dst = subject.instruction.region("src").size, subject.instruction.region("dst").size
        if dst * over != source * times:
            raise subject.refuse(
                f"{subject.describe('dst')} has {dst} elements; expected {source * times / over:g}, "
                f"{subject.describe('src')} having {source}"
            )

    return check


def _first_dimension(subject: Subject) -> None:
    """Tensors are split along their first axis."""
    axis = subject.instruction.attributes["dim"]
    if axis != 0:
        raise subject.refuse(f"collective_dim is {axis}; expected 0")


def _dimension(subject: Subject) -> None:
    """Tensors are joined along their first axis; in SBUF along the second too."""
    axis, on_chip = subject.instruction.attributes["dim"], subject.tensor("src").space.on_chip
    if axis not in ((0, 1) if on_chip else (0,)):
        raise subject.refuse(f"collective_dim is {axis}; expected 0" + (" or 1" if on_chip else " for tensors in HBM"))


def _collective(
    name: str,
    meaning: Meaning,
    *checks: Check,
    attributes: Mapping[str, Any],
    flow: Flow = Flow.MOVEMENT,
    keeps: bool = False,
    memories: frozenset[Space] = _MEMORIES,
) -> None:
    dst = updated("dst", memories) if keeps else output("dst", memories)
    row(
        name,
        engines=(Engine.DMA,),
        operands=(dst, tile("src", memories)),
        attributes={"group": (), **attributes},
        flow=flow,
        cost=Cost.UNPUBLISHED,
        source=f"nki.collectives.{name}",
        checks=(_one_memory, same_dtype("dst", "src"), *checks),
        effect=Effect.MEET,
        moves_bits=flow is Flow.MOVEMENT,
    )(meaning)


def _all_reduce(operands: Values, attributes: Attributes) -> Mapping[str, Array]:
    """dst = the src of all ranks, reduced in float32."""
    return {"dst": _reduced(operands, attributes)}


def _all_gather(operands: Values, attributes: Attributes) -> Mapping[str, Array]:
    """dst = the src of all ranks, one behind the other along an axis."""
    return {"dst": np.concatenate([one["src"] for one in operands.others], axis=cast("int", attributes["dim"]))}


def _reduce_scatter(operands: Values, attributes: Attributes) -> Mapping[str, Array]:
    """dst = this rank's part, along an axis, of the src of all ranks reduced in float32."""
    parts = np.split(_reduced(operands, attributes), len(operands.others), axis=cast("int", attributes["dim"]))
    return {"dst": parts[place_in_group(operands, attributes)]}


def _all_to_all(operands: Values, attributes: Attributes) -> Mapping[str, Array]:
    """dst = this rank's part of each rank's src, one behind the other."""
    place, count = place_in_group(operands, attributes), len(operands.others)
    return {"dst": np.concatenate([np.split(one["src"], count, axis=0)[place] for one in operands.others], axis=0)}


def _permute(operands: Values, attributes: Attributes) -> Mapping[str, Array]:
    """dst = the src of the rank `source`; where there is none, dst stays."""
    source = attributes["source"]
    if source is None:
        return {"dst": operands["dst"]}
    return {"dst": operands.others[list(group_of(attributes)).index(cast("int", source))]["src"]}


def _splits(subject: Subject) -> None:
    axis = cast("int", subject.instruction.attributes.get("dim", 0))
    count, ranks = subject.instruction.region("src").shape[axis], len(group_of(subject.instruction.attributes))
    if count % ranks:
        raise subject.refuse(
            f"{subject.describe('src')} has {count} elements along axis {axis}; {ranks} ranks share them"
        )


_collective(
    "all_reduce", _all_reduce, _sizes(lambda ranks: (1, 1)), one_of("op", _OPERATIONS),
    attributes={"op": None}, flow=Flow.ELEMENTWISE,
)  # fmt: skip
_collective("all_gather", _all_gather, _dimension, _sizes(lambda ranks: (ranks, 1)), attributes={"dim": 0})
_collective(
    "reduce_scatter", _reduce_scatter, _first_dimension, _splits, _sizes(lambda ranks: (1, ranks)),
    one_of("op", _OPERATIONS), attributes={"op": None, "dim": 0}, flow=Flow.ELEMENTWISE,
)  # fmt: skip
_collective(
    "all_to_all", _all_to_all, _first_dimension, _splits, _sizes(lambda ranks: (1, 1)),
    attributes={"dim": 0}, memories=frozenset({Space.HBM}),
)  # fmt: skip
_collective(
    "collective_permute", _permute, _sizes(lambda ranks: (1, 1)), attributes={"source": optional(int)}, keeps=True,
)  # fmt: skip
