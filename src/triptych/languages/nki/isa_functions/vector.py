"""`nki.isa`: the instructions of the Vector engine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from triptych.languages.nki.isa_functions.enums import chosen_engine, engine, reduce_cmd
from triptych.languages.nki.isa_functions.function import Operation, declaration, instruction
from triptych.languages.nki.isa_functions.operands import columns, like, reduced, unsupported
from triptych.languages.nki.language_functions.elementwise import is_number, number, on_chip
from triptych.languages.nki.language_functions.reductions import trailing_axes
from triptych.languages.nki.tracing import buffers
from triptych.languages.nki.tracing.dtypes import int32, nki_dtype, uint32
from triptych.languages.nki.tracing.forms import shared_attributes
from triptych.languages.nki.tracing.indexing import refuse
from triptych.languages.nki.tracing.operations import alu_name
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.languages.nki.tracing.tracer import current
from triptych.neuron.isa import Engine
from triptych.neuron.isa.alu import ALU, AluKind
from triptych.neuron.isa.rows.vector_reduction import FLOAT32_MINIMUM


def _integer_tiles(*tiles: NkiTensor) -> bool:
    dtype = tiles[0].dtype
    return dtype in (int32, uint32) and all(tile.dtype == dtype for tile in tiles)


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
        able = ALU[name].engines[0] if name in ALU else Engine.VECTOR  # verification refuses what no engine has
        chosen = Engine.GPSIMD if integer else able
    operands = {"dst": dst, "data1": data1, "data2": data2}
    attributes = shared_attributes("tensor_tensor", op=name, integer=integer)
    return current().emit("tensor_tensor", operands, attributes, engine=chosen, mask=mask)


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
    attributes = shared_attributes("tensor_reduce", op=alu_name(op), axes=axes, negate=bool(negate))
    return current().emit("tensor_reduce", {"dst": dst, "data": data}, attributes, mask=mask)


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


@declaration(like("data"))
def tensor_scalar(
    dst: NkiTensor,
    data: NkiTensor,
    op0: Operation,
    operand0: float | NkiTensor,
    reverse0: bool = False,
    op1: Operation | None = None,
    operand1: float | NkiTensor | None = None,
    reverse1: bool = False,
    engine: engine = engine.unknown,
) -> None:
    """dst = (data op0 operand0) op1 operand1; operands are numbers or float32 tiles of one element a partition."""


@declaration(like("data", "operand1"))
def scalar_tensor_tensor(
    dst: NkiTensor,
    data: NkiTensor,
    op0: Operation,
    operand0: float | NkiTensor,
    op1: Operation,
    operand1: NkiTensor,
    reverse0: bool = False,
    reverse1: bool = False,
) -> None:
    """dst = (data op0 operand0) op1 operand1, operand1 a tile."""


@declaration(like("src"))
def tensor_copy(dst: NkiTensor, src: NkiTensor, engine: engine = engine.unknown) -> None:
    """dst = src, on chip."""


@declaration(like("src"))
def tensor_copy_predicated(
    dst: NkiTensor, src: float | NkiTensor, predicate: NkiTensor, reverse_pred: bool = False
) -> None:
    """dst = src where the predicate (unsigned integers) is not 0; elsewhere dst keeps its value."""


@declaration(like("data"))
def reciprocal(dst: NkiTensor, data: NkiTensor) -> None:
    """dst = 1 / data."""


@declaration(like("data0", "data1"))
def tensor_tensor_scan(
    dst: NkiTensor,
    data0: NkiTensor,
    data1: NkiTensor,
    initial: float | NkiTensor,
    op0: Operation,
    op1: Operation,
    reverse0: bool = False,
    reverse1: bool = False,
) -> None:
    """dst[i] = (data0[i] op0 dst[i-1]) op1 data1[i] along each partition, from `initial` on."""


@declaration(columns("data", 6, "float32"))
def bn_stats(dst: NkiTensor, data: NkiTensor) -> None:
    """dst[P, 6] = count, mean and variance * count of the elements of even index, then of odd, of up to 512."""


@declaration(columns("data", 2))
def bn_aggr(dst: NkiTensor, data: NkiTensor) -> None:
    """dst[P, 2] = mean and variance of what the triples of nisa.bn_stats describe together."""


@declaration(columns("src", 8))
def max8(dst: NkiTensor, src: NkiTensor) -> None:
    """dst[P, 8] = the 8 largest of 8 to 16384 elements of each partition, descending."""


@declaration(columns("data", 8, "uint32"))
def nc_find_index8(dst: NkiTensor, data: NkiTensor, vals: NkiTensor) -> None:
    """dst[P, 8] = where each of 8 values first stands in its partition; all ones where it does not."""


@declaration(like("data"))
def nc_match_replace8(
    dst: NkiTensor, data: NkiTensor, vals: NkiTensor, imm: float, dst_idx: NkiTensor | None = None
) -> None:
    """dst = data with the first match of each of 8 values (the last value first) replaced; dst_idx = where it was."""


def _shuffle_beta1(
    src: NkiTensor, dst: NkiTensor, shuffle_mask: Sequence[int], *, dtype: object = None, mask: object = None
) -> NkiTensor:
    unsupported("nc_stream_shuffle", dtype=dtype)
    nc_stream_shuffle(dst=dst, src=src, shuffle_mask=shuffle_mask, mask=mask)
    return dst


@declaration(legacy=_shuffle_beta1)
def nc_stream_shuffle(dst: NkiTensor, src: NkiTensor, shuffle_mask: Sequence[int]) -> None:
    """dst[i] = src[shuffle_mask[i]] of the partitions of each quadrant of 32; 255 leaves dst as it is."""


@declaration(like("data"))
def tensor_scalar_reduce(
    dst: NkiTensor,
    data: NkiTensor,
    op0: Operation,
    operand0: float | NkiTensor,
    reduce_op: Operation,
    reduce_res: NkiTensor | None = None,
    reverse0: bool = False,
    reduce_cmd: reduce_cmd = reduce_cmd.reset_reduce,
    reduce_init: float | NkiTensor | None = None,
    reduce_res_negate: bool = False,
) -> None:
    """dst = data op0 operand0, and reduce_res[P, 1] = its rows reduced by add, multiply, maximum or minimum."""


@declaration(like("on_true"))
def select_reduce(
    dst: NkiTensor,
    predicate: NkiTensor,
    on_true: NkiTensor,
    on_false: float | NkiTensor,
    reduce_res: NkiTensor | None = None,
    reduce_cmd: reduce_cmd = reduce_cmd.idle,
    reduce_op: Operation = np.maximum,
    reverse_pred: bool = False,
) -> None:
    """dst = on_true where the predicate (8- or 16-bit) is not 0, else on_false; reduce_res = the rows' maxima."""


@declaration(like("on_true_tile"))
def range_select(
    dst: NkiTensor,
    on_true_tile: NkiTensor,
    comp_op0: Operation,
    comp_op1: Operation,
    bound0: NkiTensor,
    bound1: NkiTensor,
    reduce_cmd: reduce_cmd = reduce_cmd.reset_reduce,
    reduce_res: NkiTensor | None = None,
    reduce_op: Operation = np.maximum,
    range_start: int = 0,
    on_false_value: float = FLOAT32_MINIMUM,
) -> None:
    """dst = on_true_tile where its index compares with both bounds [P, 1], else nl.fp32.min; reduce_res = maxima."""


@declaration(like("src"))
def exponential(
    dst: NkiTensor,
    src: NkiTensor,
    max_value: float | NkiTensor = 0.0,
    reduce_res: NkiTensor | None = None,
    reduce_cmd: reduce_cmd = reduce_cmd.idle,
    reduce_init: float | NkiTensor = 0.0,
) -> None:
    """dst = e to the power of (src - max_value), and reduce_res[P, 1] = the sums of its rows; NeuronCore-v4."""


@declaration(like("src"))
def tensor_scalar_cumulative(
    dst: NkiTensor,
    src: NkiTensor,
    op0: Operation,
    op1: Operation,
    imm0: float | NkiTensor,
    imm1: float | NkiTensor | None = None,
    reduce_cmd: reduce_cmd = reduce_cmd.reset_reduce,
) -> None:
    """dst[i] = (src[i] op0 imm0) op1 dst[i-1] along each partition, from what reduce_cmd says on."""


@declaration()
def quantize_mx(dst: NkiTensor, src: NkiTensor, dst_scale: NkiTensor) -> None:
    """dst, dst_scale = src as packed numbers of 8 bits and a power of two for 8 partitions x 4; NeuronCore-v4."""


def _dynamic(tile: object, what: str) -> NkiTensor:
    found = on_chip(tile, what)
    if not found.is_indirect():
        raise refuse(f"{what} `{found.name}` is not indexed by the element of a tile", "copy with nisa.tensor_copy")
    return found


def tensor_copy_dynamic_src(
    src: NkiTensor, *, mask: object = None, dtype: object = None, engine: engine = engine.unknown
) -> NkiTensor:
    """Beta 1: a new tile = src, which the element of another tile indexes."""
    tracer = current("nisa.tensor_copy_dynamic_src")
    source = _dynamic(src, "nisa.tensor_copy_dynamic_src: src")
    target = tracer.allocate(source.shape, source.dtype if dtype is None else nki_dtype(dtype), buffers.sbuf)
    tracer.emit("tensor_copy", {"dst": target, "src": source}, engine=chosen_engine(engine), mask=mask)
    return target


def tensor_copy_dynamic_dst(
    *, dst: NkiTensor, src: NkiTensor, mask: object = None, dtype: object = None, engine: engine = engine.unknown
) -> None:
    """Beta 1: dst, which the element of another tile indexes, = src."""
    del dtype
    tracer = current("nisa.tensor_copy_dynamic_dst")
    operands = {"dst": _dynamic(dst, "nisa.tensor_copy_dynamic_dst: dst"), "src": on_chip(src, "src")}
    tracer.emit("tensor_copy", operands, engine=chosen_engine(engine), mask=mask)
