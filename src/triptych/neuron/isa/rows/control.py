"""What the engines' sequencers do: registers, loops over them, and printing. No element of a tile is computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.neuron.isa.hardware import Engine, Space
from triptych.neuron.isa.row import (
    ENGINE,
    Attributes,
    Cost,
    Effect,
    Flow,
    OperandRule,
    Subject,
    Values,
    output,
    row,
    tile,
    tile_or_number,
)

_SEQUENCER = (Engine.SYNC,)
_MEMORY = frozenset({Space.HBM, Space.SBUF})
_ANYWHERE = frozenset({Space.HBM, Space.SBUF, Space.PSUM})
_INTEGERS = ("s8", "s16", "s32", "u8", "u16", "u32")
_INDEX = ("s32",)


def _register(name: str) -> OperandRule:
    return tile_or_number(name, spaces=ENGINE)


def _one_element(name: str) -> Any:  # noqa: ANN401  # a check
    def check(subject: Subject) -> None:
        region = subject.instruction.region(name)
        if region.size != 1:
            raise subject.refuse(f"{subject.describe(name)} has {region.size} elements; a register holds one")

    return check


def _as_register(values: NDArray[Any]) -> NDArray[np.int32]:
    """32 bits of an integer, which a register keeps as they are."""
    return values.astype(np.int64).astype(np.uint32).view(np.int32)


@row(
    "register_move",
    engines=_SEQUENCER,
    operands=(output("dst", ENGINE, dtypes=_INDEX), _register("src")),
    cost=Cost.CONTROL,
)
def register_move(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = a constant, or what another register holds."""
    del attributes
    return {"dst": _as_register(np.atleast_2d(operands.flat("src")))}


@row(
    "register_load",
    engines=_SEQUENCER,
    operands=(output("dst", ENGINE, dtypes=_INDEX), tile("src", _MEMORY, dtypes=_INTEGERS)),
    cost=Cost.CONTROL,
    checks=(_one_element("src"),),
)
def register_load(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = the one integer of a tensor."""
    del attributes
    return {"dst": _as_register(operands["src"].reshape(1, 1))}


@row(
    "register_store",
    engines=_SEQUENCER,
    operands=(output("dst", _MEMORY, dtypes=(*_INTEGERS, "f32")), _register("src")),
    cost=Cost.CONTROL,
    checks=(_one_element("dst"),),
)
def register_store(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """The one element of a tensor = what a register holds."""
    del attributes
    return {"dst": np.atleast_2d(operands.flat("src"))}


def _positive_step(subject: Subject) -> None:
    step = subject.instruction.attributes["step"]
    if not isinstance(step, int) or step < 1:
        raise subject.refuse(f"the step of a loop is {step}; expected 1 or more")


def _nothing(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """The machine itself keeps the loop."""
    del operands, attributes
    return {}


row(
    "fori_loop",
    engines=_SEQUENCER,
    operands=(output("index", ENGINE, dtypes=_INDEX), _register("lower"), _register("upper")),
    attributes={"step": 1, "first_local": 0},
    cost=Cost.CONTROL,
    source="nki.language.fori_loop",
    checks=(_positive_step,),
    effect=Effect.BEGIN_COUNTED,
)(_nothing)
row(
    "while_loop",
    engines=_SEQUENCER,
    operands=(tile("condition", ENGINE, dtypes=_INDEX),),
    attributes={"first_local": 0},
    cost=Cost.CONTROL,
    source="nki.language.while_loop",
    effect=Effect.BEGIN_WHILE,
)(_nothing)
row(
    "end_loop",
    engines=_SEQUENCER,
    operands=(),
    cost=Cost.CONTROL,
    source="nki.language.fori_loop, while_loop: the end of the body",
    effect=Effect.END,
)(_nothing)
row(
    "device_print",
    engines=_SEQUENCER,
    operands=(tile("tensor", _ANYWHERE),),
    attributes={"prefix": ""},
    flow=Flow.CONSTANT,
    cost=Cost.CONTROL,
    source="nki.language.device_print",
    effect=Effect.PRINT,
)(_nothing)
