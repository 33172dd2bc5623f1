"""Instructions of the Scalar engine (ACT)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.neuron.isa.accumulators import REDUCES, reduction
from triptych.neuron.isa.arithmetic import apply_alu
from triptych.neuron.isa.casts import widen
from triptych.neuron.isa.functions import FUNCTIONS
from triptych.neuron.isa.hardware import Engine
from triptych.neuron.isa.row import Attributes, Cost, Subject, Values, output, row, state, tile, tile_or_number
from triptych.neuron.isa.rules import activation_function, one_a_partition, one_of, same_partitions, same_shape
from triptych.neuron.isa.trace import Region

_ACT = (Engine.SCALAR,)


def _bias(subject: Subject) -> None:
    bias = subject.instruction.operands.get("bias")
    if isinstance(bias, Region):
        if not subject.tensor("bias").dtype.is_float:
            raise subject.refuse(
                f"{subject.describe('bias')} is {subject.tensor('bias').dtype.numpy}; expected a float"
            )
    elif bias is not None and subject.hardware.core_generation < 3:
        raise subject.refuse(
            f"the bias {bias} is a number; {subject.hardware.target} takes a [P, 1] tile", "fill one with nisa.memset"
        )


def argument(operands: Values) -> NDArray[np.float32]:
    """data * scale + bias in float32; a scale of 1 and a bias that is absent cost no rounding."""
    value = widen(operands.flat("data"))
    if "scale" in operands:
        value = value * widen(operands.flat("scale"))
    if "bias" in operands:
        value = value + widen(operands.flat("bias"))
    return value


def activate(operands: Values, attributes: Attributes) -> NDArray[np.float32]:
    """function(data * scale + bias) in float32."""
    function, data = FUNCTIONS[str(attributes["function"])], operands.flat("data")
    if function.native is not None and function.works_natively(data):
        scale, bias = (widen(operands.flat(name)) if name in operands else None for name in ("scale", "bias"))
        return function.native(widen(data), scale, bias, operands.dst)
    return function(argument(operands))


def _activation_work(subject: Subject) -> int:
    """For each element: one FLOP of the function (none for a copy), one of the scale, one of the bias."""
    operands = subject.instruction.operands
    each = int(subject.instruction.attributes["function"] != "copy") + ("scale" in operands) + ("bias" in operands)
    return subject.instruction.region("dst").size * each


def activation2_function(subject: Subject) -> None:
    """The attribute `function` names an activation function, or prelu, which this instruction alone has."""
    if subject.instruction.attributes["function"] != "prelu":
        activation_function(subject)


def _activate2_work(subject: Subject) -> int:
    attributes = subject.instruction.attributes
    stages = sum(attributes[name] != "bypass" for name in ("op0", "op1"))
    reduced = int(attributes["reduce_cmd"] in REDUCES)
    return subject.instruction.region("dst").size * (int(attributes["function"] != "copy") + stages + reduced)


_COMMANDS = ("idle", "reset", "reduce", "reset_reduce")
_OPERANDS = (
    output("dst"),
    tile("data"),
    tile_or_number("bias", optional=True),
    tile_or_number("scale", optional=True),
)
_CHECKS = (
    same_shape("dst", "data"),
    activation_function,
    _bias,
    one_a_partition("bias", "data", float32=False),
    one_a_partition("scale", "data"),
)


@row(
    "activation",
    engines=_ACT,
    operands=_OPERANDS,
    attributes={"function": None},
    cost=Cost.ACTIVATION,
    checks=_CHECKS,
    flops=_activation_work,
    in_place=True,
)
def activation(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = function(data * scale + bias)."""
    return {"dst": activate(operands, attributes)}


@row(
    "activation_reduce",
    engines=_ACT,
    operands=(*_OPERANDS, output("reduce_res", free=1, optional=True), state("registers")),
    attributes={"function": None, "reduce_op": "add", "reduce_cmd": "reset_reduce"},
    cost=Cost.ACTIVATION_REDUCTION,
    checks=(
        *_CHECKS,
        same_partitions("data", "reduce_res"),
        one_of("reduce_op", ("add",)),
        one_of("reduce_cmd", _COMMANDS),
    ),
    flops=lambda subject: _activation_work(subject) + subject.instruction.region("dst").size,
)
def activation_reduce(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = function(data * scale + bias); reduce_res = the sum of each partition, in order, in float32."""
    value = activate(operands, attributes)
    return {"dst": value, **reduction(operands, attributes, value)}


_PAIRS = (
    ("multiply", "add"), ("multiply", "subtract"), ("multiply", "bypass"), ("add", "bypass"), ("subtract", "bypass"),
    ("bypass", "bypass"),
)  # fmt: skip
_REDUCTIONS = ("add", "maximum", "minimum", "abs_max", "abs_min")


def _stages(subject: Subject) -> None:
    """Six pairs of operations before the function; what is reversed must be there, and immediates of one dtype."""
    attributes = subject.instruction.attributes
    pair = (attributes["op0"], attributes["op1"])
    if pair not in _PAIRS:
        known = ", ".join(f"({first}, {second})" for first, second in _PAIRS)
        raise subject.refuse(f"(op0, op1) is ({pair[0]}, {pair[1]}); the engine has {known}")
    for which in "01":
        if attributes[f"reverse{which}"] and attributes[f"op{which}"] == "bypass":
            raise subject.refuse(f"reverse{which} is set, and op{which} is bypass: there is nothing to reverse")
    if subject.region("imm0") and subject.region("imm1"):
        first, second = subject.tensor("imm0").dtype, subject.tensor("imm1").dtype
        if first != second:
            raise subject.refuse(f"imm0 is {first.label}, imm1 is {second.label}: they must have one dtype")


def _stage(operands: Values, attributes: Attributes, which: str, value: NDArray[np.float32]) -> NDArray[np.float32]:
    if attributes[f"op{which}"] == "bypass":
        return value
    operand = operands.flat(f"imm{which}")
    return widen(apply_alu(attributes[f"op{which}"], value, operand, attributes[f"reverse{which}"]))


@row(
    "activate2",
    engines=_ACT,
    operands=(
        output("dst"),
        tile("data"),
        tile_or_number("imm0"),
        tile_or_number("imm1"),
        tile_or_number("relu_param"),
        output("reduce_res", optional=True, free=1),
        state("registers"),
    ),
    attributes={
        "function": None,
        "op0": None,
        "op1": None,
        "reverse0": False,
        "reverse1": False,
        "reduce_op": "add",
        "reduce_cmd": "idle",
    },
    cost=Cost.UNPUBLISHED,
    core_generation=4,
    checks=(
        same_shape("dst", "data"),
        same_partitions("data", "reduce_res"),
        activation2_function,
        _stages,
        one_a_partition("imm0", "data", float32=False),
        one_a_partition("imm1", "data", float32=False),
        one_a_partition("relu_param", "data", float32=False),
        one_of("reduce_op", _REDUCTIONS),
        one_of("reduce_cmd", _COMMANDS),
    ),
    flops=_activate2_work,
)
def activate2(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = function((data op0 imm0) op1 imm1), its rows reduced as reduce_cmd says; relu_param is prelu's slope."""
    value = widen(operands.flat("data"))
    for which in "01":
        value = _stage(operands, attributes, which, value)
    if attributes["function"] == "prelu":
        value = np.where(value >= 0, value, value * widen(operands.flat("relu_param")))
    else:
        value = FUNCTIONS[str(attributes["function"])](value)
    return {"dst": value, **reduction(operands, attributes, value)}
