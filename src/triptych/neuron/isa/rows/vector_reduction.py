"""Instructions of the Vector engine (DVE) that combine the elements of a partition: reductions, scans, statistics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.neuron.isa.accumulators import IDENTITIES, REDUCES, command, reduction
from triptych.neuron.isa.alu import ALU
from triptych.neuron.isa.arithmetic import apply_alu, operations_work, reduce_in_order, reduction_work
from triptych.neuron.isa.casts import widen
from triptych.neuron.isa.functions import FUNCTIONS
from triptych.neuron.isa.hardware import Engine
from triptych.neuron.isa.row import (
    Attributes,
    Cost,
    Flow,
    Subject,
    Values,
    number,
    output,
    row,
    state,
    tile,
    tile_or_number,
)
from triptych.neuron.isa.rules import (
    alu,
    arithmetic,
    comparison,
    not_both_in_psum,
    one_a_partition,
    one_of,
    same_partitions,
    same_shape,
)

_DVE = (Engine.VECTOR,)
_ROW_RESULT = output("reduce_res", optional=True, free=1)
_INITIAL = tile_or_number("reduce_init", optional=True)
_ROW_REDUCTIONS = ("add", "multiply", "maximum", "minimum")
FLOAT32_MINIMUM = float(np.finfo(np.float32).min)


def _reduced_shape(subject: Subject) -> None:
    data, dst = subject.instruction.region("data"), subject.instruction.region("dst")
    axes = subject.instruction.attributes["axes"]
    if not isinstance(axes, int) or not 1 <= axes < len(data.shape):
        raise subject.refuse(f"cannot reduce {axes} trailing free axes of {list(data.shape)}; axis 0 is never reduced")
    kept = int(np.prod(data.shape[1 : len(data.shape) - axes], dtype=np.int64))
    if dst.free != kept:
        raise subject.refuse(f"{subject.describe('dst')} has {dst.free} elements a partition; expected {kept}")


@row(
    "tensor_reduce",
    engines=_DVE,
    operands=(output("dst"), tile("data")),
    attributes={"op": None, "axes": 1, "negate": False},
    cost=Cost.REDUCTION,
    checks=(same_partitions("dst", "data"), alu("op", "dst", "data", reduction=True), _reduced_shape),
    flops=lambda subject: reduction_work(subject, "op", "data", "dst"),
)
def tensor_reduce(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = op over the last `axes` free axes of data, in order, in float32; negated where asked for."""
    axes = attributes["axes"]
    assert isinstance(axes, int)
    data = operands["data"]
    rows = data.reshape(*data.shape[: data.ndim - axes], -1)
    result = reduce_in_order(str(attributes["op"]), rows)
    return {"dst": -widen(result) if attributes["negate"] else result}


def _row_work(subject: Subject) -> int:
    """The FLOPs of the reduction, where one is asked for: one less than its elements, where it starts from none."""
    dst, name = subject.instruction.region("dst"), subject.instruction.attributes["reduce_cmd"]
    if name not in REDUCES:
        return 0
    return dst.size - (dst.partitions if name == "reset_reduce" else 0)


def _needs_start(subject: Subject) -> None:
    """load_reduce starts from imm1; others do not look at it."""
    if subject.instruction.attributes["reduce_cmd"] == "load_reduce" and "imm1" not in subject.instruction.operands:
        raise subject.refuse("imm1 is what reduce_cmd 'load_reduce' starts from: it is missing")


@row(
    "tensor_scalar_reduce",
    engines=_DVE,
    operands=(
        output("dst"),
        tile("data"),
        tile_or_number("operand0"),
        _ROW_RESULT,
        state("registers"),
        _INITIAL,
    ),
    attributes={"op0": None, "reduce_op": None, "reduce_res_negate": False, "reduce_cmd": "reset_reduce"},
    cost=Cost.ACTIVATION_REDUCTION,
    checks=(
        same_shape("dst", "data"),
        same_partitions("dst", "reduce_res"),
        arithmetic("op0"),
        alu("op0"),
        one_of("reduce_op", _ROW_REDUCTIONS),
        one_a_partition("operand0", "data"),
        one_a_partition("reduce_init", "data"),
        command("reset_reduce", "reduce", "load_reduce"),
    ),
    flops=lambda subject: operations_work("op0")(subject) + _row_work(subject),
)
def tensor_scalar_reduce(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = data op0 operand0; reduce_res = its rows reduced in order, in float32, negated where asked for."""
    value = widen(apply_alu(attributes["op0"], operands.flat("data"), operands.flat("operand0")))
    reduced = reduction(operands, attributes, value)
    if attributes["reduce_res_negate"]:
        reduced["reduce_res"] = -reduced["reduce_res"]
    return {"dst": value, **reduced}


@row(
    "tensor_tensor_scan",
    engines=_DVE,
    operands=(output("dst"), tile("data0"), tile("data1"), tile_or_number("initial")),
    attributes={"op0": None, "op1": None, "reverse0": False, "reverse1": False},
    flow=Flow.PREFIX,
    cost=Cost.SCAN,
    checks=(
        same_shape("dst", "data0", "data1"),
        not_both_in_psum("data0", "data1"),
        arithmetic("op0", "op1"),
        alu("op0"),
        alu("op1"),
        one_a_partition("initial", "data0"),
    ),
    flops=operations_work("op0", "op1"),
)
def tensor_tensor_scan(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst[i] = (data0[i] op0 dst[i-1]) op1 data1[i] along each partition, from `initial` on, kept in float32."""
    left, right = widen(operands.flat("data0")), widen(operands.flat("data1"))
    state = np.broadcast_to(widen(operands.flat("initial")), (left.shape[0], 1))[:, 0]
    result = np.empty(left.shape, np.float32)
    for index in range(left.shape[1]):
        inner = apply_alu(attributes["op0"], left[:, index], state, attributes["reverse0"])
        state = apply_alu(attributes["op1"], inner, right[:, index], attributes["reverse1"])
        result[:, index] = state
    return {"dst": result}


def _batch_size(subject: Subject) -> None:
    size, limit = subject.instruction.region("data").free, subject.hardware.batch_statistics_elements
    if size > limit:
        raise subject.exceed(
            f"{subject.describe('data')} has {size} elements in each partition; the limit is {limit} (bn_stats_fmax)",
            "take the statistics of several tiles, and combine them with nisa.bn_aggr",
        )


@row(
    "bn_stats",
    engines=_DVE,
    operands=(output("dst", free=6), tile("data")),
    flow=Flow.PARTITION,
    checks=(same_partitions("dst", "data"), _batch_size),
)
def bn_stats(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = count, mean and variance * count of each partition's elements of even index, then of those of odd index.

    Each is formed in float64 and rounded once to float32; of no elements they are 0.
    """
    del attributes
    data = widen(operands.flat("data")).astype(np.float64)
    columns: list[NDArray[np.float64]] = []
    for half in (data[:, 0::2], data[:, 1::2]):
        count = half.shape[1]
        mean = half.sum(axis=1) / max(count, 1)
        columns += [np.full(data.shape[0], float(count)), mean, ((half - mean[:, np.newaxis]) ** 2).sum(axis=1)]
    return {"dst": np.stack(columns, axis=1).astype(np.float32)}


def _triples(subject: Subject) -> None:
    size = subject.instruction.region("data").free
    if size % 3:
        raise subject.refuse(f"{subject.describe('data')} has {size} elements in each partition, no multiple of 3")


@row(
    "bn_aggr",
    engines=_DVE,
    operands=(output("dst", free=2), tile("data")),
    flow=Flow.PARTITION,
    cost=Cost.AGGREGATION,
    checks=(same_partitions("dst", "data"), _triples),
)
def bn_aggr(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = mean and variance (of the population) of what (count, mean, variance * count) triples describe.

    Formed in float64 and rounded once to float32.
    """
    del attributes
    data = widen(operands.flat("data")).astype(np.float64)
    count, mean, spread = data[:, 0::3], data[:, 1::3], data[:, 2::3]
    total = count.sum(axis=1)
    centre = (count * mean).sum(axis=1) / total
    within_and_between = spread + count * (mean - centre[:, np.newaxis]) ** 2
    return {"dst": np.stack([centre, within_and_between.sum(axis=1) / total], axis=1).astype(np.float32)}


def _selected_dtypes(subject: Subject) -> None:
    """on_true is no 32-bit integer, and reduce_res a float."""
    chosen = subject.tensor("on_true").dtype
    if chosen.name in ("s32", "u32"):
        raise subject.refuse(f"{subject.describe('on_true')} is {chosen.numpy}, which the instruction does not take")
    if subject.region("reduce_res") is not None and not subject.tensor("reduce_res").dtype.is_float:
        raise subject.refuse(
            f"{subject.describe('reduce_res')} is {subject.tensor('reduce_res').dtype.numpy}; expected a float"
        )


@row(
    "select_reduce",
    engines=_DVE,
    operands=(
        output("dst"),
        tile("predicate", dtypes=("s8", "u8", "s16", "u16", "b1"), selects=True),
        tile("on_true"),
        tile_or_number("on_false"),
        _ROW_RESULT,
        state("registers"),
    ),
    attributes={"reduce_op": "maximum", "reverse_pred": False, "reduce_cmd": "idle"},
    flow=Flow.SELECTION,
    cost=Cost.UNPUBLISHED,
    checks=(
        same_shape("dst", "predicate", "on_true"),
        same_partitions("dst", "reduce_res"),
        not_both_in_psum("predicate", "on_true"),
        one_a_partition("on_false", "on_true"),
        one_of("reduce_op", ("maximum",)),
        command("idle", "reset_reduce", "reduce"),
        _selected_dtypes,
    ),
    flops=_row_work,
)
def select_reduce(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = on_true where the predicate is not 0 (is 0, reversed), else on_false; reduce_res = the rows' largest."""
    chosen = (operands.flat("predicate") != 0) ^ bool(attributes["reverse_pred"])
    value = np.where(chosen, widen(operands.flat("on_true")), widen(operands.flat("on_false")))
    return {"dst": value, **reduction(operands, attributes, value)}


def _least_float32(subject: Subject) -> None:
    value = subject.instruction.operands["on_false_value"]
    with np.errstate(over="ignore"):
        is_least = isinstance(value, int | float) and np.float32(value) == FLOAT32_MINIMUM
    if not is_least:
        raise subject.refuse(f"on_false_value is {value}; the engine has only nl.fp32.min ({FLOAT32_MINIMUM})")


def _exact_indices(subject: Subject) -> None:
    start = subject.instruction.attributes["range_start"]
    first = int(str(start))
    last = first + subject.instruction.region("dst").free - 1
    for reached in (first, last):
        if abs(reached) >= 1 << 24:
            raise subject.exceed(f"the index reaches {reached}; float32 counts exactly below 2^24")


@row(
    "range_select",
    engines=_DVE,
    operands=(
        output("dst"),
        tile("on_true_tile"),
        tile("bound0", dtypes=("f32",), free=1, selects=True),
        tile("bound1", dtypes=("f32",), free=1, selects=True),
        number("on_false_value"),
        _ROW_RESULT,
        state("registers"),
    ),
    attributes={
        "comp_op0": None,
        "comp_op1": None,
        "reduce_op": "maximum",
        "range_start": 0,
        "reduce_cmd": "reset_reduce",
    },
    flow=Flow.SELECTION,
    core_generation=3,
    checks=(
        same_shape("dst", "on_true_tile"),
        same_partitions("dst", "bound0", "bound1", "reduce_res"),
        comparison("comp_op0"),
        comparison("comp_op1"),
        one_of("reduce_op", ("maximum",)),
        command("idle", "reset_reduce", "reduce"),
        _least_float32,
        _exact_indices,
    ),
    flops=_row_work,
)
def range_select(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = on_true_tile where (index comp_op0 bound0) and (index comp_op1 bound1), else on_false_value.

    The index counts a partition's elements from range_start; reduce_res = the largest of each row.
    """
    data = widen(operands.flat("on_true_tile"))
    start = int(str(attributes["range_start"]))
    columns: int = data.shape[1]
    index = np.arange(start, start + columns, dtype=np.int64).astype(np.float32)
    inside = np.ones(data.shape, np.bool_)
    for which in "01":
        compare = ALU[str(attributes[f"comp_op{which}"])].meaning
        inside &= compare(np.broadcast_to(index, data.shape), operands.flat(f"bound{which}")) != 0
    value = np.where(inside, data, widen(operands["on_false_value"]))
    return {"dst": value, **reduction(operands, attributes, value)}


@row(
    "exponential",
    engines=_DVE,
    operands=(
        output("dst"),
        tile("src"),
        tile_or_number("max_value"),
        _ROW_RESULT,
        state("registers"),
        _INITIAL,
    ),
    attributes={"reduce_op": "add", "reduce_cmd": "idle"},
    core_generation=4,
    cost=Cost.UNPUBLISHED,
    checks=(
        same_shape("dst", "src"),
        same_partitions("dst", "reduce_res"),
        one_a_partition("max_value", "src"),
        one_a_partition("reduce_init", "src"),
        one_of("reduce_op", ("add",)),
        command("idle", "reset_reduce", "reduce", "load_reduce"),
    ),
    flops=lambda subject: 2 * subject.instruction.region("dst").size + _row_work(subject),
)
def exponential(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = e to the power of (src - max_value); reduce_res = the sums of the rows, in order, in float32."""
    value = FUNCTIONS["exp"](widen(operands.flat("src")) - widen(operands.flat("max_value")))
    return {"dst": value, **reduction(operands, attributes, value)}


_CUMULATIVE = ("add", "subtract", "multiply", "maximum", "minimum")
_NARROW = ("bf16", "f16", "f32", "f8e4m3", "f8e4m3fn", "f8e5m2", "u8", "u16", "s8", "s16")


@row(
    "tensor_scalar_cumulative",
    engines=_DVE,
    operands=(
        output("dst", dtypes=_NARROW),
        tile("src", dtypes=_NARROW),
        tile_or_number("imm0"),
        tile_or_number("imm1", optional=True),
        state("registers"),
    ),
    attributes={"op0": None, "op1": None, "reduce_cmd": "reset_reduce"},
    flow=Flow.PREFIX,
    cost=Cost.UNPUBLISHED,
    checks=(
        same_shape("dst", "src"),
        arithmetic("op0", "op1"),
        alu("op0"),
        one_of("op1", _CUMULATIVE),
        one_of("reduce_cmd", ("reset_reduce", "reduce", "load_reduce")),
        one_a_partition("imm0", "src"),
        one_a_partition("imm1", "src"),
        _needs_start,
    ),
    flops=operations_work("op0", "op1"),
)
def tensor_scalar_cumulative(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst[i] = (src[i] op0 imm0) op1 dst[i-1] along each partition, kept in float32, from what reduce_cmd says on."""
    values = widen(apply_alu(attributes["op0"], operands.flat("src"), operands.flat("imm0")))
    name, command_name = str(attributes["op1"]), str(attributes["reduce_cmd"])
    if command_name == "reset_reduce":
        start = np.asarray(IDENTITIES[name], np.float32)
    else:
        start = widen(operands.flat("registers" if command_name == "reduce" else "imm1"))
    held = np.broadcast_to(start.reshape(-1, 1), (values.shape[0], 1))[:, 0]
    result = np.empty(values.shape, np.float32)
    for index in range(values.shape[1]):
        held = ALU[name].meaning(values[:, index], held)
        result[:, index] = held
    return {"dst": result, "registers": held[:, np.newaxis]}
