"""Instructions of the Tensor engine (PE)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.neuron.isa import compiled
from triptych.neuron.isa.hardware import Engine
from triptych.neuron.isa.row import (
    PSUM,
    SBUF,
    Attributes,
    Check,
    Cost,
    Flow,
    OperandRule,
    Subject,
    Values,
    optional,
    output,
    row,
    tile,
)
from triptych.neuron.isa.rules import same_dtype


def _contraction(subject: Subject) -> None:
    stationary, moving = subject.instruction.region("stationary"), subject.instruction.region("moving")
    limit = subject.hardware.partitions
    for name, region in (("stationary", stationary), ("moving", moving)):
        if region.partitions > limit:
            raise subject.exceed(
                f"Matmul contraction dimension {region.partitions} of {subject.describe(name)} exceeds pmax={limit}",
                "split K into tiles of 128 and accumulate them in PSUM",
            )
    if stationary.partitions != moving.partitions:
        raise subject.refuse(
            f"Matmul contraction dimension mismatch: stationary[0]={stationary.partitions} != "
            f"moving[0]={moving.partitions}"
        )


def check_free_sizes(subject: Subject) -> None:
    """The columns of both operands fit the array.

    Raises:
        NkiLimitError: naming the operand and the limit.
    """
    limit = subject.hardware.matmul_stationary_elements
    columns = _columns(subject, "stationary")
    if columns > limit:
        raise subject.exceed(
            f"Matmul stationary free dimension {columns} of {subject.describe('stationary')} exceeds "
            f"gemm_stationary_fmax={limit}",
            f"split M into tiles of {limit}",
        )
    moving_limits = subject.hardware.matmul_moving_elements
    longest = moving_limits.get(subject.tensor("dst").dtype.name, moving_limits["f32"])
    if _columns(subject, "moving") > longest:
        raise subject.exceed(
            f"Matmul moving free dimension {_columns(subject, 'moving')} of {subject.describe('moving')} exceeds "
            f"gemm_moving_fmax={longest} of {subject.hardware.target}",
            f"split N into tiles of {longest}",
        )


def _destination(subject: Subject) -> None:
    dst = subject.instruction.region("dst")
    expected = [_columns(subject, "stationary"), _columns(subject, "moving")]
    if [dst.partitions, dst.free] != expected:
        raise subject.refuse(f"{subject.describe('dst')} has the shape {list(dst.shape)}; expected {expected} (M, N)")
    allowed = subject.hardware.matmul_destinations
    if subject.instruction.attributes["is_transpose"] and subject.hardware.core_generation >= 3:
        allowed = (*allowed, subject.tensor("stationary").dtype.name)
    if subject.tensor("dst").dtype.name not in allowed:
        raise subject.refuse(
            f"{subject.describe('dst')} is {subject.tensor('dst').dtype.numpy}; "
            f"a matmul's dst must be {' or '.join(allowed)} on {subject.hardware.target}"
        )
    if subject.hardware.core_generation < 4:
        _one_bank(subject)


def _columns(subject: Subject, name: str) -> int:
    """The columns of an operand; in double_row mode half of its free elements belong to the contraction."""
    return subject.instruction.region(name).free // (2 if subject.instruction.attributes.get("double_row") else 1)


def _double_row(subject: Subject) -> None:
    """8-bit floats [K, 2, …], of NeuronCore-v3 and later, in all columns of the array."""
    if not subject.instruction.attributes["double_row"]:
        return
    if subject.hardware.core_generation < 3:
        raise subject.refuse(f"perf_mode double_row needs NeuronCore-v3 (gen3); {subject.hardware.target} has none")
    for name in ("stationary", "moving"):
        region, dtype = subject.instruction.region(name), subject.tensor(name).dtype
        if dtype.name not in _EIGHT_BITS:
            raise subject.refuse(f"perf_mode double_row: {subject.describe(name)} is {dtype.label}; expected float8")
        if len(region.shape) < 3 or region.shape[1] != 2:
            raise subject.refuse(
                f"perf_mode double_row: {subject.describe(name)} has the shape {list(region.shape)}; expected "
                f"[{region.partitions}, 2, …], whose second axis belongs to the contraction"
            )
    if subject.instruction.attributes["is_transpose"]:
        raise subject.refuse("perf_mode double_row and is_transpose exclude each other")


def _array_tile(subject: Subject) -> None:
    """The part of the 128 x 128 array that tile_position and tile_size choose holds the stationary operand."""
    attributes = subject.instruction.attributes
    position, size = attributes["tile_position"], attributes["tile_size"]
    if position == () and size == ():
        return
    if not isinstance(position, tuple) or not isinstance(size, tuple) or len(position) != 2 or len(size) != 2:
        raise subject.refuse(f"tile_position {position}, tile_size {size}: give both, as (rows, columns)")
    stationary = subject.instruction.region("stationary")
    edges = (64, 128) if subject.hardware.core_generation < 3 else (32, 64, 128)
    taken = (stationary.partitions, _columns(subject, "stationary"))
    for axis, (start, edge, wanted) in enumerate(zip(position, size, taken, strict=True)):
        if not isinstance(start, int) or not isinstance(edge, int) or edge not in edges or start % edge or start >= 128:
            raise subject.refuse(
                f"tile_position {position} of tile_size {size}: sizes are {', '.join(map(str, edges))} on "
                f"{subject.hardware.target}, positions multiples of them below 128"
            )
        if wanted > edge:
            what = ("rows", "columns")[axis]
            raise subject.exceed(f"{subject.describe('stationary')} takes {wanted} {what}; tile_size has {edge}")
    if attributes["double_row"] and size[1] != 128:
        raise subject.refuse("perf_mode double_row and a tile of columns exclude each other")


def _one_bank(subject: Subject) -> None:
    """A matmul writes into one bank of PSUM (NeuronCore-v2 and -v3)."""
    dst, tensor = subject.instruction.region("dst"), subject.tensor("dst")
    low, high = dst.bounds
    last_of_first_partition = high - (dst.partitions - 1) * dst.pattern[0][0]
    bank = subject.hardware.psum_bank_bytes
    first, last = (low % tensor.free) * tensor.dtype.bytes, (last_of_first_partition % tensor.free) * tensor.dtype.bytes
    if first // bank != last // bank:
        subject.breach(
            subject.exceed(
                f"{subject.describe('dst')} spans bytes {first} to {last + tensor.dtype.bytes - 1} of a partition and "
                f"crosses a PSUM bank of {bank} bytes",
                "let each matmul write a tile of at most 512 float32 that starts at a multiple of 512",
            )
        )


_EIGHT_BITS = ("f8e4m3", "f8e4m3fn", "f8e5m2")
_WIDE = ("f32", "tf32")


def _input_dtypes(subject: Subject) -> None:
    stationary, moving = subject.tensor("stationary").dtype, subject.tensor("moving").dtype
    for name in ("stationary", "moving"):
        if not subject.tensor(name).dtype.is_float:
            raise subject.refuse(f"{subject.describe(name)} is {subject.tensor(name).dtype.numpy}; expected a float")
    if (stationary.name in _WIDE) != (moving.name in _WIDE):
        raise subject.refuse(
            f"stationary is {stationary.label}, moving is {moving.label}: float32 must be paired with float32 "
            "(or tfloat32)"
        )
    if {stationary.name, moving.name} == {"f8e4m3", "f8e4m3fn"}:
        raise subject.refuse("float8_e4m3 and float8_e4m3fn cannot be mixed in one matmul")
    if "f8e4m3fn" in (stationary.name, moving.name) and subject.hardware.core_generation < 4:
        raise subject.refuse(
            f"float8_e4m3fn needs NeuronCore-v4 (gen4); {subject.hardware.target} has float8_e4m3 and float8_e5m2"
        )


def _matmul_flops(subject: Subject) -> int:
    """None for a transposition: nothing is added."""
    stationary = subject.instruction.region("stationary")
    if subject.instruction.attributes["is_transpose"]:
        return 0
    return 2 * stationary.partitions * stationary.free * _columns(subject, "moving")


def _permuted(operands: Values) -> NDArray[Any]:
    """Column n = the row of stationary that column n of moving, a permutation, names; NaN is moved like any other."""
    moving = operands.flat("moving").astype(np.float64)
    ones = moving == 1
    if not np.all(ones.sum(axis=0) == 1) or np.any(moving[~ones] != 0):
        operands.notes.append("is_transpose is set, and moving is no permutation: what it gives is undefined")
    return operands.flat("stationary").T[:, ones.argmax(axis=0)]


@row(
    "nc_matmul",
    engines=(Engine.TENSOR,),
    operands=(output("dst", PSUM), tile("stationary", SBUF), tile("moving", SBUF)),
    attributes={
        "accumulate": optional(bool),
        "is_transpose": False,
        "tile_position": (),
        "tile_size": (),
        "double_row": False,
    },
    flow=Flow.CONTRACTION,
    cost=Cost.MATMUL,
    checks=(_contraction, check_free_sizes, _input_dtypes, _double_row, _array_tile, _destination),
    flops=_matmul_flops,
    accumulates=True,
    in_place=True,
)
def nc_matmul(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst[M, N] (+)= stationary[K, M].T @ moving[K, N], over at most 128 products an element.

    Products are exact and sums float32, as in the hardware; an element's sum begins with the first partition and adds
    one after the other, as a column of a systolic array does (AWS does not publish the order).
    """
    if attributes["is_transpose"]:
        return {"dst": _permuted(operands)}
    stationary, moving = operands.flat("stationary"), operands.flat("moving")
    if attributes["double_row"]:
        rows = stationary.shape[0] * 2
        stationary, moving = stationary.reshape(rows, -1), moving.reshape(rows, -1)
    return {"dst": compiled.multiply(stationary, moving, operands.dst, adds=operands.adds)}


def _transposed_shape(subject: Subject) -> None:
    data, dst = subject.instruction.region("data"), subject.instruction.region("dst")
    if (dst.partitions, dst.free) != (data.free, data.partitions):
        raise subject.refuse(
            f"{subject.describe('dst')} has the shape {list(dst.shape)}; expected {[data.free, data.partitions]}, "
            f"the mirror of {subject.describe('data')}"
        )


def _within(edge: int) -> Check:
    def check(subject: Subject) -> None:
        data = subject.instruction.region("data")
        if data.partitions > edge or data.free > edge:
            raise subject.exceed(
                f"{subject.describe('data')} of shape {[data.partitions, data.free]} exceeds {edge} x {edge}, the most "
                f"that the {subject.instruction.engine.value} engine transposes at once"
            )

    return check


def _transpose_row(name: str, engine: Engine, dst: OperandRule, data: OperandRule, edge: int, cost: Cost) -> None:
    """nc_transpose is an instruction of two engines, with other limits on each."""
    checks = (_within(edge), _transposed_shape, same_dtype("dst", "data"))
    source = f"nki.isa.nc_transpose ({engine.value.capitalize()} engine)"
    columns = row(
        name, engines=(engine,), operands=(dst, data), flow=Flow.MOVEMENT, cost=cost, checks=checks, source=source
    )
    columns(_mirror)


def _mirror(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst[F, P] = data[P, F].T, bit for bit."""
    del attributes
    # Of neighbours: columns of rows that lie 4096 bytes apart all meet in one place of a processor's cache.
    return {"dst": np.ascontiguousarray(operands.flat("data")).T}


_transpose_row("nc_transpose", Engine.TENSOR, output("dst", PSUM), tile("data", SBUF), 128, Cost.TRANSPOSE)
_transpose_row("nc_transpose_vector", Engine.VECTOR, output("dst"), tile("data"), 32, Cost.ELEMENTWISE)
