"""Instructions of the Tensor engine (PE)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


def _free_sizes(subject: Subject) -> None:
    stationary, moving = subject.instruction.region("stationary"), subject.instruction.region("moving")
    limit = subject.hardware.matmul_stationary_elements
    if stationary.free > limit:
        raise subject.exceed(
            f"Matmul stationary free dimension {stationary.free} of {subject.describe('stationary')} exceeds "
            f"gemm_stationary_fmax={limit}",
            f"split M into tiles of {limit}",
        )
    moving_limits = subject.hardware.matmul_moving_elements
    longest = moving_limits.get(subject.tensor("dst").dtype.name, moving_limits["f32"])
    if moving.free > longest:
        raise subject.exceed(
            f"Matmul moving free dimension {moving.free} of {subject.describe('moving')} exceeds "
            f"gemm_moving_fmax={longest} of {subject.hardware.target}",
            f"split N into tiles of {longest}",
        )


def _destination(subject: Subject) -> None:
    dst = subject.instruction.region("dst")
    expected = [subject.instruction.region("stationary").free, subject.instruction.region("moving").free]
    if [dst.partitions, dst.free] != expected:
        raise subject.refuse(f"{subject.describe('dst')} has the shape {list(dst.shape)}; expected {expected} (M, N)")
    allowed = subject.hardware.matmul_destinations
    if subject.tensor("dst").dtype.name not in allowed:
        raise subject.refuse(
            f"{subject.describe('dst')} is {subject.tensor('dst').dtype.numpy}; "
            f"a matmul's dst must be {' or '.join(allowed)} on {subject.hardware.target}"
        )
    if subject.hardware.core_generation < 4:
        _one_bank(subject)


def _one_bank(subject: Subject) -> None:
    """A matmul writes into one bank of PSUM (NeuronCore-v2 and -v3)."""
    dst, tensor = subject.instruction.region("dst"), subject.tensor("dst")
    low, high = dst.bounds
    last_of_first_partition = high - (dst.partitions - 1) * dst.pattern[0][0]
    bank = subject.hardware.psum_bank_bytes
    first, last = (low % tensor.free) * tensor.dtype.bytes, (last_of_first_partition % tensor.free) * tensor.dtype.bytes
    if first // bank != last // bank:
        raise subject.exceed(
            f"{subject.describe('dst')} spans bytes {first} to {last + tensor.dtype.bytes - 1} of a partition and "
            f"crosses a PSUM bank of {bank} bytes",
            "let each matmul write a tile of at most 512 float32 that starts at a multiple of 512",
        )


def _input_dtypes(subject: Subject) -> None:
    stationary, moving = subject.tensor("stationary").dtype, subject.tensor("moving").dtype
    for name in ("stationary", "moving"):
        if not subject.tensor(name).dtype.is_float:
            raise subject.refuse(f"{subject.describe(name)} is {subject.tensor(name).dtype.numpy}; expected a float")
    if (stationary.name == "f32") != (moving.name == "f32"):
        raise subject.refuse(
            f"stationary is {stationary.numpy}, moving is {moving.numpy}: float32 must be paired with float32"
        )
    if {stationary.name, moving.name} == {"f8e4m3", "f8e4m3fn"}:
        raise subject.refuse("float8_e4m3 and float8_e4m3fn cannot be mixed in one matmul")


def _matmul_flops(subject: Subject) -> int:
    stationary, moving = subject.instruction.region("stationary"), subject.instruction.region("moving")
    return 2 * stationary.partitions * stationary.free * moving.free


@row(
    "nc_matmul",
    engines=(Engine.TENSOR,),
    operands=(output("dst", PSUM), tile("stationary", SBUF), tile("moving", SBUF)),
    attributes={"accumulate": optional(bool)},
    flow=Flow.CONTRACTION,
    cost=Cost.MATMUL,
    checks=(_contraction, _free_sizes, _input_dtypes, _destination),
    flops=_matmul_flops,
    accumulates=True,
)
def nc_matmul(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst[M, N] (+)= stationary[K, M].T @ moving[K, N], over at most 128 products an element.

    The sum of one instruction is formed in float64 and rounded once to float32, so that it does not depend on an
    order of addition; products of 16-bit and 8-bit floats are exact, as they are in the hardware.
    """
    del attributes
    stationary = operands.flat("stationary").astype(np.float64)
    moving = operands.flat("moving").astype(np.float64)
    return {"dst": (stationary.T @ moving).astype(np.float32)}


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
    return {"dst": operands.flat("data").T}


_transpose_row("nc_transpose", Engine.TENSOR, output("dst", PSUM), tile("data", SBUF), 128, Cost.TRANSPOSE)
_transpose_row("nc_transpose_vector", Engine.VECTOR, output("dst"), tile("data"), 32, Cost.ELEMENTWISE)
