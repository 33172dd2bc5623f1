"""`nki.isa`: the instructions of the Scalar engine."""

from __future__ import annotations

from triptych.languages.nki.isa_functions.enums import (
    reduce_cmd,
)
from triptych.languages.nki.isa_functions.function import Activation, Operation, Stage, declaration, instruction
from triptych.languages.nki.isa_functions.operands import command_name, like, operand
from triptych.languages.nki.language_functions.elementwise import is_number
from triptych.languages.nki.tracing.forms import shared_attributes
from triptych.languages.nki.tracing.indexing import refuse
from triptych.languages.nki.tracing.operations import alu_name, function_name
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.languages.nki.tracing.tracer import TileOrNumber, current


def _activation_operands(
    dst: NkiTensor, data: NkiTensor, bias: object, scale: object
) -> dict[str, TileOrNumber | None]:
    factor = operand(scale, "scale")
    return {
        "dst": dst, "data": data,
        "bias": operand(bias, "bias"), "scale": None if is_number(factor) and factor == 1.0 else factor,
    }  # fmt: skip


@instruction(like("data"))
def activation(
    dst: NkiTensor,
    op: object,
    data: NkiTensor,
    bias: object = None,
    scale: object = 1.0,
    reduce_op: object = None,
    reduce_res: NkiTensor | None = None,
    reduce_cmd: reduce_cmd = reduce_cmd.idle,
    mask: object = None,
) -> int | None:
    """dst = op(data * scale + bias); with `reduce_op=nl.add` and `reset_reduce`, reduce_res = the sums of the rows."""
    operands = _activation_operands(dst, data, bias, scale)
    name = function_name(op)
    command = command_name(reduce_cmd, "nisa.activation: reduce_cmd")
    if reduce_op is not None and command == "idle":
        raise refuse(
            "nisa.activation: reduce_op is given, and reduce_cmd is idle: nothing is reduced",
            "reduce_cmd=nisa.reduce_cmd.reset_reduce begins a reduction",
        )
    if command == "idle" and reduce_res is None:
        return current().emit("activation", operands, shared_attributes("activation", function=name), mask=mask)
    reduction = "add" if reduce_op is None else alu_name(reduce_op)
    attributes = shared_attributes("activation_reduce", function=name, reduce_op=reduction, reduce_cmd=command)
    return current().emit("activation_reduce", {**operands, "reduce_res": reduce_res}, attributes, mask=mask)


@instruction(like("data"))
def activation_reduce(
    dst: NkiTensor,
    op: object,
    data: NkiTensor,
    reduce_op: object,
    reduce_res: NkiTensor,
    bias: object = None,
    scale: object = 1.0,
    mask: object = None,
) -> int | None:
    """dst = op(data * scale + bias), and reduce_res[P, 1] = the sums of its rows."""
    operands = {**_activation_operands(dst, data, bias, scale), "reduce_res": reduce_res}
    attributes = shared_attributes("activation_reduce", function=function_name(op), reduce_op=alu_name(reduce_op))
    return current().emit("activation_reduce", operands, attributes, mask=mask)


@declaration(like("data"))
def activate2(
    dst: NkiTensor,
    op: Activation,
    data: NkiTensor,
    imm0: float | NkiTensor,
    imm1: float | NkiTensor,
    op0: Stage,
    op1: Stage,
    relu_param: float | NkiTensor = 0.0,
    reverse0: bool = False,
    reverse1: bool = False,
    reduce_op: Operation | None = None,
    reduce_res: NkiTensor | None = None,
    reduce_cmd: reduce_cmd = reduce_cmd.idle,
) -> None:
    """dst = op((data op0 imm0) op1 imm1), where nl.bypass does nothing, and its rows reduced; NeuronCore-v4."""
