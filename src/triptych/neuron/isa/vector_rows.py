"""Instructions of the Vector engine (DVE); several can also run on the GPSIMD or the Scalar engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.neuron.isa.alu import ALU, AluKind
from triptych.neuron.isa.casts import widen
from triptych.neuron.isa.checks import (
    alu,
    alu_operation,
    not_both_in_psum,
    one_a_partition,
    same_dtype,
    same_elements,
    same_partitions,
)
from triptych.neuron.isa.hardware import Engine
from triptych.neuron.isa.row import (
    Attributes,
    Check,
    Cost,
    FloatingWork,
    Flow,
    Subject,
    Values,
    output,
    row,
    tile,
    tile_or_number,
    updated,
)
from triptych.neuron.isa.trace import Region

_DVE = (Engine.VECTOR,)
_ANY = (Engine.VECTOR, Engine.GPSIMD, Engine.SCALAR)
_INTEGERS_32 = frozenset({"s32", "u32"})


def _work(*attributes: str) -> FloatingWork:
    """One FLOP for each element of `dst` and each named arithmetic operation that is there."""

    def flops(subject: Subject) -> int:
        named = [subject.instruction.attributes.get(attribute) for attribute in attributes]
        arithmetic = [name for name in named if name is not None and ALU[str(name)].kind is AluKind.ARITHMETIC]
        return subject.instruction.region("dst").size * len(arithmetic)

    return flops


def apply_alu(name: object, left: NDArray[Any], right: NDArray[Any], reverse: object = False) -> NDArray[Any]:
    """One operation, on float32 or, for a bit operation, on raw bits; an immediate takes the tile's dtype there."""
    operation = ALU[str(name)]
    if operation.kind is AluKind.ARITHMETIC:
        left, right = widen(left), widen(right)
    elif right.ndim == 0:
        right = right.astype(left.dtype)
    return operation.meaning(right, left) if reverse else operation.meaning(left, right)


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
    return 0 if subject.instruction.attributes["integer"] else _work("op")(subject)


@row(
    "tensor_tensor",
    engines=(Engine.VECTOR, Engine.GPSIMD),
    operands=(output("dst"), tile("data1"), tile("data2")),
    attributes={"op": None, "integer": False},
    flow=Flow.ELEMENTWISE,
    cost=Cost.TWO_INPUTS,
    checks=(
        same_partitions("dst", "data1", "data2"),
        same_elements("dst", "data1", "data2"),
        not_both_in_psum("data1", "data2"),
        alu("op", "dst", "data1", "data2"),
        _integer_engine,
    ),
    flops=_tensor_tensor_work,
    source="nki.isa.tensor_tensor",
)
def tensor_tensor(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = data1 op data2."""
    left, right = operands.flat("data1"), operands.flat("data2")
    if attributes["integer"]:
        return {"dst": ALU[str(attributes["op"])].meaning(left, right)}
    return {"dst": apply_alu(attributes["op"], left, right)}


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
    attributes={"op0": None, "reverse0": False, "op1": None, "reverse1": False},
    flow=Flow.ELEMENTWISE,
    cost=Cost.ELEMENTWISE,
    checks=(
        same_partitions("dst", "data"),
        same_elements("dst", "data"),
        alu("op0", "dst", "data", "operand0"),
        alu("op1", "dst", "data", "operand1"),
        _one_kind,
        _scalar_operand("operand0", "op0"),
        _scalar_operand("operand1", "op1"),
    ),
    flops=_work("op0", "op1"),
    source="nki.isa.tensor_scalar",
)
def tensor_scalar(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = (data op0 operand0) op1 operand1, operands in reverse where asked for."""
    value = apply_alu(attributes["op0"], operands.flat("data"), operands.flat("operand0"), attributes["reverse0"])
    if attributes["op1"] is not None:
        value = apply_alu(attributes["op1"], value, operands.flat("operand1"), attributes["reverse1"])
    return {"dst": value}


def _arithmetic_only(subject: Subject) -> None:
    for attribute in ("op0", "op1"):
        operation = alu_operation(subject, attribute)
        if operation.kind is AluKind.BITVEC:
            raise subject.refuse(f"{attribute} '{operation.name}' is a bit operation, which this instruction has not")


@row(
    "scalar_tensor_tensor",
    engines=_DVE,
    operands=(output("dst"), tile("data"), tile_or_number("operand0"), tile("operand1")),
    attributes={"op0": None, "op1": None, "reverse0": False, "reverse1": False},
    flow=Flow.ELEMENTWISE,
    cost=Cost.TWO_INPUTS,
    checks=(
        same_partitions("dst", "data", "operand1"),
        same_elements("dst", "data", "operand1"),
        not_both_in_psum("data", "operand1"),
        alu("op0"),
        alu("op1"),
        _arithmetic_only,
        one_a_partition("operand0", "data"),
    ),
    flops=_work("op0", "op1"),
    source="nki.isa.scalar_tensor_tensor",
)
def scalar_tensor_tensor(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = (data op0 operand0) op1 operand1, operand1 a tile."""
    value = apply_alu(attributes["op0"], operands.flat("data"), operands.flat("operand0"), attributes["reverse0"])
    return {"dst": apply_alu(attributes["op1"], value, operands.flat("operand1"), attributes["reverse1"])}


def _reduced_shape(subject: Subject) -> None:
    data, dst = subject.instruction.region("data"), subject.instruction.region("dst")
    axes = subject.instruction.attributes["axes"]
    if not isinstance(axes, int) or not 1 <= axes < len(data.shape):
        raise subject.refuse(f"cannot reduce {axes} trailing free axes of {list(data.shape)}; axis 0 is never reduced")
    kept = int(np.prod(data.shape[1 : len(data.shape) - axes], dtype=np.int64))
    if dst.free != kept:
        raise subject.refuse(f"{subject.describe('dst')} has {dst.free} elements a partition; expected {kept}")


def _reduction_work(subject: Subject) -> int:
    if ALU[str(subject.instruction.attributes["op"])].kind is AluKind.BITVEC:
        return 0
    return subject.instruction.region("data").size - subject.instruction.region("dst").size


@row(
    "tensor_reduce",
    engines=_DVE,
    operands=(output("dst"), tile("data")),
    attributes={"op": None, "axes": 1, "negate": False},
    flow=Flow.REDUCTION,
    cost=Cost.REDUCTION,
    checks=(same_partitions("dst", "data"), alu("op", "dst", "data", reduction=True), _reduced_shape),
    flops=_reduction_work,
    source="nki.isa.tensor_reduce",
)
def tensor_reduce(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = op over the last `axes` free axes of data, in order, in float32; negated where asked for."""
    axes = attributes["axes"]
    assert isinstance(axes, int)
    data = operands["data"]
    rows = data.reshape(*data.shape[: data.ndim - axes], -1)
    result = reduce_in_order(str(attributes["op"]), rows)
    return {"dst": -widen(result) if attributes["negate"] else result}


# Reductions whose order matters are accumulated element by element; no order changes the others' result.
_UFUNCS = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum}


def reduce_in_order(name: str, rows: NDArray[Any]) -> NDArray[Any]:
    """The last axis reduced from its first element to its last."""
    if ALU[name].kind is AluKind.ARITHMETIC:
        rows = widen(rows)
    if name in ("maximum", "minimum"):
        return _UFUNCS[name].reduce(rows, axis=-1)
    if name in _UFUNCS:
        return _UFUNCS[name].accumulate(rows, axis=-1)[..., -1]
    result = rows[..., 0]
    for index in range(1, rows.shape[-1]):
        result = ALU[name].meaning(result, rows[..., index])
    return result


@row(
    "tensor_copy",
    engines=_ANY,
    operands=(output("dst"), tile("src")),
    flow=Flow.ELEMENTWISE,
    cost=Cost.ELEMENTWISE,
    checks=(same_partitions("dst", "src"), same_elements("dst", "src")),
    source="nki.isa.tensor_copy",
)
def tensor_copy(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = src: bit for bit where the dtypes are the same, through float32 otherwise."""
    del attributes
    return {"dst": operands.flat("src")}


def _fill_value(subject: Subject) -> None:
    value = subject.instruction.operands["value"]
    dtype = subject.tensor("dst").dtype
    if isinstance(value, Region):
        raise subject.refuse(f"the value is {subject.describe('value')}; expected a number")
    if not dtype.is_float and not float(value).is_integer():
        raise subject.refuse(f"the value {value} is no {dtype.numpy}, the dtype of {subject.describe('dst')}")


@row(
    "memset",
    engines=(Engine.VECTOR, Engine.GPSIMD),
    operands=(output("dst"), tile_or_number("value")),
    flow=Flow.CONSTANT,
    cost=Cost.ELEMENTWISE,
    checks=(_fill_value,),
    source="nki.isa.memset",
)
def memset(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """Every element of dst becomes the number `value`."""
    del attributes
    return {"dst": operands["value"]}


@row(
    "reciprocal",
    engines=_DVE,
    operands=(output("dst"), tile("data")),
    flow=Flow.ELEMENTWISE,
    cost=Cost.RECIPROCAL,
    checks=(same_partitions("dst", "data"), same_elements("dst", "data")),
    flops=lambda subject: subject.instruction.region("dst").size,
    source="nki.isa.reciprocal",
)
def reciprocal(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = 1 / data."""
    del attributes
    return {"dst": np.float32(1.0) / widen(operands.flat("data"))}


def _predicate_dtype(subject: Subject) -> None:
    dtype = subject.tensor("predicate").dtype
    if dtype.name not in ("u8", "u16", "u32"):
        raise subject.refuse(f"{subject.describe('predicate')} is {dtype.numpy}; expected uint8, uint16 or uint32")


@row(
    "tensor_copy_predicated",
    engines=_DVE,
    operands=(updated("dst"), tile_or_number("src"), tile("predicate")),
    attributes={"reverse_pred": False},
    flow=Flow.ELEMENTWISE,
    cost=Cost.TWO_INPUTS,
    checks=(
        same_partitions("dst", "src", "predicate"),
        same_elements("dst", "src", "predicate"),
        not_both_in_psum("src", "predicate"),
        same_dtype("dst", "src"),
        _predicate_dtype,
    ),
    source="nki.isa.tensor_copy_predicated",
)
def tensor_copy_predicated(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = src where the predicate is not zero (is zero, reversed); elsewhere dst keeps its value."""
    chosen = (operands.flat("predicate") != 0) ^ bool(attributes["reverse_pred"])
    old = operands.flat("dst")
    return {"dst": np.where(chosen, operands.flat("src").astype(old.dtype), old)}
