"""Instructions of the Vector engine (DVE); several can also run on the GPSIMD or the Scalar engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.neuron.isa.alu import ALU, AluKind
from triptych.neuron.isa.arithmetic import apply_alu, operations_work
from triptych.neuron.isa.casts import widen
from triptych.neuron.isa.hardware import Engine
from triptych.neuron.isa.row import (
    Attributes,
    Check,
    Cost,
    FloatingWork,
    Flow,
    Meaning,
    Subject,
    Values,
    no_work,
    number,
    optional,
    output,
    row,
    tile,
    tile_or_number,
    updated,
)
from triptych.neuron.isa.rules import (
    alu,
    alu_operation,
    arithmetic,
    not_both_in_psum,
    one_a_partition,
    packed_alike,
    same_dtype,
    same_shape,
)

_DVE = (Engine.VECTOR,)
_ANY = (Engine.VECTOR, Engine.GPSIMD, Engine.SCALAR)
_PREDICATES = ("u8", "u16", "u32", "b1")
_INTEGERS_32 = frozenset({"s32", "u32"})


def _native_integers(subject: Subject) -> bool:
    """Whether GPSIMD computes in 32-bit integers: all operands are of one 32-bit integer dtype."""
    names = {subject.tensor(name).dtype.name for name in ("dst", "data1", "data2")}
    return len(names) == 1 and names <= _INTEGERS_32


def _integer_engine(subject: Subject) -> None:
    """32-bit integers are computed as such on GPSIMD, and as float32 on the Vector engine."""
    if subject.instruction.attributes["integer"] and not (
        subject.instruction.engine is Engine.GPSIMD and _native_integers(subject)
    ):
        raise subject.refuse("integer arithmetic needs the gpsimd engine and operands of one 32-bit integer dtype")


def _tensor_tensor_work(subject: Subject) -> int:
    return 0 if subject.instruction.attributes["integer"] else operations_work("op")(subject)


@row(
    "tensor_tensor",
    engines=(Engine.VECTOR, Engine.GPSIMD),
    operands=(output("dst"), tile("data1"), tile("data2")),
    attributes={"op": None, "integer": False},
    cost=Cost.TWO_INPUTS,
    checks=(
        same_shape("dst", "data1", "data2"),
        not_both_in_psum("data1", "data2"),
        alu("op", "dst", "data1", "data2"),
        _integer_engine,
    ),
    flops=_tensor_tensor_work,
    in_place=True,
)
def tensor_tensor(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = data1 op data2."""
    left, right = operands.flat("data1"), operands.flat("data2")
    if attributes["integer"]:
        return {"dst": ALU[str(attributes["op"])].meaning(left, right)}
    return {"dst": apply_alu(attributes["op"], left, right, out=operands.dst)}


def _one_kind(subject: Subject) -> None:
    """Both operations are bit operations, or both are arithmetic."""
    if subject.instruction.attributes["op1"] is not None:
        first, second = alu_operation(subject, "op0"), alu_operation(subject, "op1")
        if first.kind is not second.kind:
            raise subject.refuse(
                f"op0 '{first.name}' is {first.kind.value}, op1 '{second.name}' is {second.kind.value}: "
                "both must be bit operations or both arithmetic"
            )
        if "operand1" not in subject.instruction.operands:
            raise subject.refuse("op1 needs operand1")


def _scalar_operand(name: str, attribute: str) -> Check:
    """A float32 number or [P, 1] tile; a bit operation takes an integer tile."""
    shape, float32 = one_a_partition(name, "data", float32=False), one_a_partition(name, "data")

    def check(subject: Subject) -> None:
        if subject.instruction.attributes.get(attribute) is None:
            return
        bits = alu_operation(subject, attribute).kind is AluKind.BITVEC
        (shape if bits else float32)(subject)

    return check


@row(
    "tensor_scalar",
    engines=_ANY,
    operands=(output("dst"), tile("data"), tile_or_number("operand0"), tile_or_number("operand1", optional=True)),
    attributes={"op0": None, "reverse0": False, "op1": optional(str), "reverse1": False},
    checks=(
        same_shape("dst", "data"),
        alu("op0", "dst", "data", "operand0", reverse="reverse0"),
        alu("op1", "dst", "data", "operand1", reverse="reverse1"),
        _one_kind,
        _scalar_operand("operand0", "op0"),
        _scalar_operand("operand1", "op1"),
    ),
    flops=operations_work("op0", "op1"),
    in_place=True,
)
def tensor_scalar(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = (data op0 operand0) op1 operand1, operands in reverse where asked for."""
    data, operand = operands.flat("data"), operands.flat("operand0")
    if attributes["op1"] is None:
        return {"dst": apply_alu(attributes["op0"], data, operand, attributes["reverse0"], operands.dst)}
    value = apply_alu(attributes["op0"], data, operand, attributes["reverse0"])
    return {"dst": apply_alu(attributes["op1"], value, operands.flat("operand1"), attributes["reverse1"], operands.dst)}


@row(
    "scalar_tensor_tensor",
    engines=_DVE,
    operands=(output("dst"), tile("data"), tile_or_number("operand0"), tile("operand1")),
    attributes={"op0": None, "op1": None, "reverse0": False, "reverse1": False},
    cost=Cost.TWO_INPUTS,
    checks=(
        same_shape("dst", "data", "operand1"),
        not_both_in_psum("data", "operand1"),
        alu("op0"),
        alu("op1"),
        arithmetic("op0", "op1"),
        one_a_partition("operand0", "data", float32=False),
    ),
    flops=operations_work("op0", "op1"),
)
def scalar_tensor_tensor(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = (data op0 operand0) op1 operand1, operand1 a tile."""
    value = apply_alu(attributes["op0"], operands.flat("data"), operands.flat("operand0"), attributes["reverse0"])
    return {"dst": apply_alu(attributes["op1"], value, operands.flat("operand1"), attributes["reverse1"])}


def _fill_value(subject: Subject) -> None:
    value, dtype = subject.instruction.operands["value"], subject.tensor("dst").dtype
    if dtype.packed and value != 0:
        raise subject.refuse(f"the value {value} for {subject.describe('dst')} of {dtype.label}, which only 0 fills")
    if not dtype.is_float and isinstance(value, float) and not value.is_integer():
        raise subject.refuse(f"the value {value} is no {dtype.numpy}, the dtype of {subject.describe('dst')}")


@row(
    "memset",
    engines=(Engine.VECTOR, Engine.GPSIMD),
    operands=(output("dst"), number("value")),
    flow=Flow.CONSTANT,
    checks=(_fill_value,),
    moves_bits=True,
)
def memset(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """Every element of dst becomes the number `value`."""
    del attributes
    return {"dst": operands["value"]}


def unary_row(
    name: str,
    data: str = "data",
    *,
    engines: tuple[Engine, ...] = _DVE,
    cost: Cost = Cost.ELEMENTWISE,
    flops: FloatingWork = no_work,
    moves_bits: bool = False,
) -> Callable[[Meaning], Meaning]:
    """The row of an instruction that makes each element of dst from the same element of one tile."""
    return row(
        name,
        engines=engines,
        operands=(output("dst"), tile(data)),
        cost=cost,
        checks=(same_shape("dst", data), packed_alike),
        flops=flops,
        moves_bits=moves_bits,
    )


@unary_row("tensor_copy", "src", engines=_ANY, moves_bits=True)
def tensor_copy(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = src: bit for bit where the dtypes are the same, through float32 otherwise."""
    del attributes
    return {"dst": operands.flat("src")}


@unary_row("reciprocal", cost=Cost.RECIPROCAL, flops=lambda subject: subject.instruction.region("dst").size)
def reciprocal(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = 1 / data."""
    del attributes
    return {"dst": np.float32(1.0) / widen(operands.flat("data"))}


@row(
    "tensor_copy_predicated",
    engines=_DVE,
    operands=(
        updated("dst"),
        tile_or_number("src"),
        tile("predicate", dtypes=_PREDICATES, selects=True),
    ),
    attributes={"reverse_pred": False},
    flow=Flow.SELECTION,
    cost=Cost.TWO_INPUTS,
    checks=(
        same_shape("dst", "src", "predicate"),
        not_both_in_psum("src", "predicate"),
        same_dtype("dst", "src"),
    ),
)
def tensor_copy_predicated(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = src where the predicate is not zero (is zero, reversed); elsewhere dst keeps its value."""
    chosen = (operands.flat("predicate") != 0) ^ bool(attributes["reverse_pred"])
    old = operands.flat("dst")
    return {"dst": np.where(chosen, operands.flat("src").astype(old.dtype), old)}
