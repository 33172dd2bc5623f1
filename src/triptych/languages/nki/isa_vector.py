"""`nki.isa`: the instructions of the Vector engine."""

from __future__ import annotations

from collections.abc import Sequence

from triptych.languages.nki import buffers
from triptych.languages.nki.dtypes import nki_dtype
from triptych.languages.nki.elementwise import is_number, number, on_chip
from triptych.languages.nki.indexing import refuse
from triptych.languages.nki.isa_enums import (
    chosen_engine,
    engine,
)
from triptych.languages.nki.isa_function import instruction
from triptych.languages.nki.isa_operands import like, operand, reduced
from triptych.languages.nki.operations import alu_name
from triptych.languages.nki.reductions import trailing_axes
from triptych.languages.nki.tensors import NkiTensor
from triptych.languages.nki.tracer import current
from triptych.neuron.isa import Engine
from triptych.neuron.isa.alu import ALU, AluKind
from triptych.neuron.isa.trace import AttributeValue


def _integer_tiles(*tiles: NkiTensor) -> bool:
    names = {tile.dtype.name for tile in tiles}
    return len(names) == 1 and names <= {"int32", "uint32"}


@instruction(like("data1", "data2"))
def tensor_tensor(
    dst: NkiTensor, data1: NkiTensor, data2: NkiTensor, op: object, engine: engine = engine.unknown, mask: object = None
) -> int | None:
    """dst = data1 op data2, element by element; 32-bit integers are computed as such, by GPSIMD."""
    name = alu_name(op)
    chosen = chosen_engine(engine)
    arithmetic = name in ALU and ALU[name].kind is AluKind.ARITHMETIC
    integer = arithmetic and _integer_tiles(dst, data1, data2) and chosen in (None, Engine.GPSIMD)
    if chosen is None:
        chosen = Engine.GPSIMD if integer or name == "power" else Engine.VECTOR
    operands = {"dst": dst, "data1": data1, "data2": data2}
    return current().emit("tensor_tensor", operands, {"op": name, "integer": integer}, engine=chosen, mask=mask)


@instruction(like("data"))
def tensor_scalar(
    dst: NkiTensor,
    data: NkiTensor,
    op0: object,
    operand0: object,
    reverse0: bool = False,
    op1: object = None,
    operand1: object = None,
    reverse1: bool = False,
    engine: engine = engine.unknown,
    mask: object = None,
) -> int | None:
    """dst = (data op0 operand0) op1 operand1; operands are numbers or float32 tiles of one element a partition."""
    first, second = alu_name(op0), None if op1 is None else alu_name(op1)
    attributes: dict[str, AttributeValue] = {
        "op0": first, "reverse0": bool(reverse0), "op1": second, "reverse1": bool(reverse1),
    }  # fmt: skip
    chosen = chosen_engine(engine)
    if chosen is None:
        named = [ALU[name] for name in (first, second) if name is not None and name in ALU]
        chosen = next((one.engines[0] for one in named if Engine.VECTOR not in one.engines), Engine.VECTOR)
    operands = {
        "dst": dst, "data": data,
        "operand0": operand(operand0, "operand0"), "operand1": operand(operand1, "operand1"),
    }  # fmt: skip
    return current().emit("tensor_scalar", operands, attributes, engine=chosen, mask=mask)


@instruction(like("data", "operand1"))
def scalar_tensor_tensor(
    dst: NkiTensor,
    data: NkiTensor,
    op0: object,
    operand0: object,
    op1: object,
    operand1: NkiTensor,
    reverse0: bool = False,
    reverse1: bool = False,
    mask: object = None,
) -> int | None:
    """dst = (data op0 operand0) op1 operand1, operand1 a tile."""
    attributes: dict[str, AttributeValue] = {
        "op0": alu_name(op0), "reverse0": bool(reverse0), "op1": alu_name(op1), "reverse1": bool(reverse1),
    }  # fmt: skip
    operands = {"dst": dst, "data": data, "operand0": operand(operand0, "operand0"), "operand1": operand1}
    return current().emit("scalar_tensor_tensor", operands, attributes, mask=mask)


@instruction(reduced)
def tensor_reduce(
    dst: NkiTensor,
    op: object,
    data: NkiTensor,
    axis: int | Sequence[int],
    negate: bool = False,
    keepdims: bool = False,
    mask: object = None,
) -> int | None:
    """dst = data reduced over its last axes."""
    del keepdims  # the shape of dst says it
    axes = trailing_axes(axis, on_chip(data, "nisa.tensor_reduce").shape, "nisa.tensor_reduce")
    attributes: dict[str, AttributeValue] = {"op": alu_name(op), "axes": axes, "negate": bool(negate)}
    return current().emit("tensor_reduce", {"dst": dst, "data": data}, attributes, mask=mask)


@instruction(like("src"))
def tensor_copy(dst: NkiTensor, src: NkiTensor, engine: engine = engine.unknown, mask: object = None) -> int | None:
    """dst = src, on chip."""
    return current().emit("tensor_copy", {"dst": dst, "src": src}, engine=chosen_engine(engine), mask=mask)


@instruction(legacy=None, result=like("src"))
def tensor_copy_predicated(
    dst: NkiTensor, src: object, predicate: NkiTensor, reverse_pred: bool = False, mask: object = None
) -> int | None:
    """dst = src where the predicate (unsigned integers) is not 0; elsewhere dst keeps its value."""
    operands = {"dst": dst, "src": operand(src, "src"), "predicate": predicate}
    attributes: dict[str, AttributeValue] = {"reverse_pred": bool(reverse_pred)}
    return current().emit("tensor_copy_predicated", operands, attributes, mask=mask)


def _memset_beta1(
    shape: Sequence[int], value: float, dtype: object, *, mask: object = None, engine: engine = engine.unknown
) -> NkiTensor:
    tracer = current("nisa.memset")
    target = tracer.allocate(tuple(shape), nki_dtype(dtype), buffers.sbuf)
    tracer.emit("memset", {"dst": target, "value": number(value)}, engine=chosen_engine(engine), mask=mask)
    return target


@instruction(legacy=_memset_beta1)
def memset(dst: NkiTensor, value: float, engine: engine = engine.unknown) -> int | None:
    """Every element of dst becomes the number; Beta 1: `memset(shape, value, dtype)` returns a tile."""
    if not is_number(value):
        raise refuse(f"nisa.memset: the value {value!r} is no number")
    return current().emit("memset", {"dst": dst, "value": number(value)}, engine=chosen_engine(engine))


@instruction(like("data"))
def reciprocal(dst: NkiTensor, data: NkiTensor, mask: object = None) -> int | None:
    """dst = 1 / data."""
    return current().emit("reciprocal", {"dst": dst, "data": data}, mask=mask)
