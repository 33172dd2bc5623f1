"""Instructions of the Scalar engine (ACT)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.neuron.isa.arithmetic import reduce_in_order
from triptych.neuron.isa.casts import widen
from triptych.neuron.isa.functions import FUNCTIONS
from triptych.neuron.isa.hardware import Engine
from triptych.neuron.isa.row import Attributes, Cost, Subject, Values, output, row, tile, tile_or_number
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


def activate(operands: Values, attributes: Attributes) -> NDArray[np.float32]:
    """function(data * scale + bias) in float32; a scale of 1 and a bias that is absent cost no rounding."""
    value = widen(operands.flat("data"))
    if "scale" in operands:
        value = value * widen(operands.flat("scale"))
    if "bias" in operands:
        value = value + widen(operands.flat("bias"))
    return FUNCTIONS[str(attributes["function"])](value)


def _activation_work(subject: Subject) -> int:
    """For each element: one FLOP of the function (none for a copy), one of the scale, one of the bias."""
    operands = subject.instruction.operands
    each = int(subject.instruction.attributes["function"] != "copy") + ("scale" in operands) + ("bias" in operands)
    return subject.instruction.region("dst").size * each


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
)
def activation(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = function(data * scale + bias)."""
    return {"dst": activate(operands, attributes)}


@row(
    "activation_reduce",
    engines=_ACT,
    operands=(*_OPERANDS, output("reduce_res", free=1)),
    attributes={"function": None, "reduce_op": "add"},
    cost=Cost.ACTIVATION_REDUCTION,
    checks=(*_CHECKS, same_partitions("reduce_res", "data"), one_of("reduce_op", ("add",))),
    flops=lambda subject: _activation_work(subject) + subject.instruction.region("dst").size,
)
def activation_reduce(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = function(data * scale + bias); reduce_res = the sum of each partition, in order, in float32."""
    value = activate(operands, attributes)
    return {"dst": value, "reduce_res": reduce_in_order("add", value)[..., np.newaxis]}
