"""`nki.isa`: the instructions of the Scalar engine."""

from __future__ import annotations

from triptych.languages.nki.elementwise import is_number
from triptych.languages.nki.isa_enums import (
    reduce_cmd,
)
from triptych.languages.nki.isa_function import instruction
from triptych.languages.nki.isa_operands import check_reduction, like, operand
from triptych.languages.nki.operations import alu_name, function_name
from triptych.languages.nki.tensors import NkiTensor
from triptych.languages.nki.tracer import TileOrNumber, current
from triptych.neuron.isa.trace import AttributeValue


def _activation_operands(
    dst: NkiTensor, data: NkiTensor, bias: object, scale: object
) -> dict[str, TileOrNumber | None]:
    factor = operand(scale, "scale")
    return {
        "dst": dst, "data": data,
        "bias": operand(bias, "bias"), "scale": None if factor == 1.0 and is_number(factor) else factor,
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
    if reduce_op is None and reduce_res is None:
        return current().emit("activation", operands, {"function": name}, mask=mask)
    check_reduction("activation", reduce_res, reduce_cmd)
    attributes: dict[str, AttributeValue] = {"function": name, "reduce_op": alu_name(reduce_op)}
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
    attributes: dict[str, AttributeValue] = {"function": function_name(op), "reduce_op": alu_name(reduce_op)}
    return current().emit("activation_reduce", operands, attributes, mask=mask)
