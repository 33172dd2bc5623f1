"""MX formats (OCP Microscaling): numbers of 8 or 4 bits, of which 8 partitions x 4 share a power of two.

Four of them are packed into one element. The scale of the partitions 8 i to 8 i + 7 of a quadrant lies in its
partition i, counted from the first of the tile of scales, which may begin anywhere in its quadrant.
Source: nki.isa.quantize_mx, nc_matmul_mx.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from triptych.neuron.isa.hardware import Engine
from triptych.neuron.isa.row import (
    PSUM,
    SBUF,
    Attributes,
    Cost,
    Flow,
    Subject,
    Values,
    optional,
    output,
    row,
    tile,
    updated,
)
from triptych.neuron.isa.rows.tensor import check_free_sizes

PACK = 4
_ROWS = 8
_QUADRANT = 32
_BIAS = 127
_SCALES = ("f8e8m0fnu", "u8")
_EIGHTS = ("x4f8e5m2", "x4f8e4m3fn")
_PACKED = (*_EIGHTS, "x4f4e2m1fn")
_ELEMENTS: Mapping[str, np.dtype[Any]] = {
    "x4f8e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "x4f8e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "x4f4e2m1fn": np.dtype(ml_dtypes.float4_e2m1fn),
}
_LARGEST_EXPONENT: Mapping[str, int] = {"x4f8e5m2": 15, "x4f8e4m3fn": 8}


def unpack(packed: NDArray[Any], dtype: str) -> NDArray[np.float64]:
    """[P, N] elements of four numbers each as [P, N, 4] numbers; the first is in the lowest bits."""
    width = 8 * packed.dtype.itemsize // PACK
    parts = packed[..., np.newaxis] >> (np.arange(PACK) * width).astype(packed.dtype)
    bits = (parts & packed.dtype.type((1 << width) - 1)).astype(np.uint8)
    return bits.view(_ELEMENTS[dtype]).astype(np.float64)


def pack(numbers: NDArray[Any]) -> NDArray[np.uint32]:
    """[P, N, 4] numbers of 8 bits as [P, N] elements."""
    return np.ascontiguousarray(numbers).view(np.uint8).view("<u4")[..., 0]


def scale_partitions(partitions: int) -> NDArray[np.int64]:
    """The partition of the scales of each group of 8 of `partitions`."""
    groups = np.arange(partitions // _ROWS)
    per_quadrant = _QUADRANT // _ROWS
    return groups // per_quadrant * _QUADRANT + groups % per_quadrant


def _scale_shape(subject: Subject, scale: str, data: str, columns: int) -> None:
    region, partitions = subject.instruction.region(scale), subject.instruction.region(data).partitions
    least = (partitions // _QUADRANT - 1) * _QUADRANT + _QUADRANT // _ROWS
    if region.partitions < least or region.free != columns:
        expected = f"[{least} or more, {columns}]"
        raise subject.refuse(
            f"{subject.describe(scale)} has the shape {list(region.shape)}; expected {expected}: a scale for "
            "8 partitions, in the quadrant that they are in"
        )


def _whole_quadrants(subject: Subject, name: str) -> None:
    partitions = subject.instruction.region(name).partitions
    if partitions % _QUADRANT:
        raise subject.refuse(f"{subject.describe(name)} has {partitions} partitions; expected a multiple of 32")


def _quantised(subject: Subject) -> None:
    source, dst = subject.instruction.region("src"), subject.instruction.region("dst")
    _whole_quadrants(subject, "src")
    if source.free % PACK or (dst.partitions, dst.free) != (source.partitions, source.free // PACK):
        raise subject.refuse(
            f"{subject.describe('dst')} has the shape {list(dst.shape)}; expected [{source.partitions}, "
            f"{source.free // PACK}], a quarter of {subject.describe('src')}, whose free size is a multiple of 4"
        )
    _scale_shape(subject, "dst_scale", "src", source.free // PACK)


@row(
    "quantize_mx",
    engines=(Engine.VECTOR,),
    operands=(
        output("dst", SBUF, dtypes=_EIGHTS),
        tile("src", SBUF, dtypes=("f16", "bf16")),
        updated("dst_scale", SBUF, dtypes=_SCALES, any_start=True),
    ),
    flow=Flow.MOVEMENT,
    cost=Cost.UNPUBLISHED,
    core_generation=4,
    checks=(_quantised,),
)
def quantize_mx(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst, dst_scale = src as numbers of 8 bits over a power of two for 8 partitions x 4 elements.

    The power is 2^(floor(log2 of the largest magnitude) - (the format's largest exponent - 1)), 2^-127 where all are 0.
    """
    del attributes
    given, name = operands.flat("src"), operands.dtype("dst").name
    partitions, columns = given.shape[0], given.shape[1] // PACK
    scales = operands.flat("dst_scale").copy()
    places = scale_partitions(partitions)
    groups = given.reshape(partitions // _ROWS, _ROWS, columns, PACK)
    if given.dtype == np.bool_:  # which elements are defined: those of groups that are
        scales[places] = whole = groups.all(axis=(1, 3))
        return {"dst": np.repeat(whole, _ROWS, axis=0), "dst_scale": scales}
    groups = groups.astype(np.float64)
    largest = np.abs(groups).max(axis=(1, 3))
    exponents = np.where(largest > 0, np.frexp(largest)[1] - 1 - (_LARGEST_EXPONENT[name] - 1), -_BIAS)
    exponents = np.clip(exponents, -_BIAS, _BIAS).astype(np.int64)
    scaled = groups / np.ldexp(1.0, exponents)[:, np.newaxis, :, np.newaxis]
    numbers = scaled.astype(np.float32).astype(_ELEMENTS[name]).reshape(partitions, columns, PACK)
    scales[places] = (exponents + _BIAS).astype(np.uint8).view(scales.dtype)
    return {"dst": pack(numbers), "dst_scale": scales}


def _mx_shapes(subject: Subject) -> None:
    stationary, moving = subject.instruction.region("stationary"), subject.instruction.region("moving")
    _whole_quadrants(subject, "stationary")
    if stationary.partitions != moving.partitions:
        raise subject.refuse(
            f"Matmul contraction dimension mismatch: stationary[0]={stationary.partitions} != "
            f"moving[0]={moving.partitions}"
        )
    if stationary.free % 2:
        raise subject.refuse(f"{subject.describe('stationary')} has {stationary.free} columns; expected an even number")
    check_free_sizes(subject)
    dst = subject.instruction.region("dst")
    if [dst.partitions, dst.free] != [stationary.free, moving.free]:
        expected = [stationary.free, moving.free]
        raise subject.refuse(f"{subject.describe('dst')} has the shape {list(dst.shape)}; expected {expected} (M, N)")
    _scale_shape(subject, "stationary_scale", "stationary", stationary.free)
    _scale_shape(subject, "moving_scale", "moving", moving.free)


def _row_tile(subject: Subject) -> None:
    """A part of the rows of the array: (first row, 0) and (rows, 128)."""
    position, size = (subject.instruction.attributes[name] for name in ("tile_position", "tile_size"))
    if position == () and size == ():
        return
    rows = size[0] if isinstance(size, tuple) and len(size) == 2 else 0
    start = position[0] if isinstance(position, tuple) and len(position) == 2 else -1
    good = rows in (32, 64, 128) and size == (rows, 128) and position == (start, 0)
    if not good or not isinstance(start, int) or start < 0 or start % int(str(rows)) or start >= 128:
        raise subject.refuse(
            f"tile_position {position} of tile_size {size}; expected (a multiple of the rows, 0) and "
            "(32, 64 or 128, 128)"
        )
    if subject.instruction.region("stationary").partitions > int(str(rows)):
        raise subject.refuse(f"{subject.describe('stationary')} has more partitions than the tile's {rows} rows")


def _mx_flops(subject: Subject) -> int:
    stationary, moving = subject.instruction.region("stationary"), subject.instruction.region("moving")
    return 2 * stationary.partitions * PACK * stationary.free * moving.free


def _scaled(operands: Values, name: str) -> NDArray[np.float64]:
    """The numbers of an operand [P, N, 4], each times its scale."""
    packed = operands.flat(name)
    numbers = unpack(packed, operands.dtype(name).name)
    scales = operands.flat(f"{name}_scale")
    codes = scales.view(np.uint8)[scale_partitions(packed.shape[0])].astype(np.int64)
    factors = np.where(codes == 255, np.nan, np.ldexp(1.0, codes - _BIAS))
    return numbers * np.repeat(factors, _ROWS, axis=0)[:, :, np.newaxis]


@row(
    "nc_matmul_mx",
    engines=(Engine.TENSOR,),
    operands=(
        output("dst", PSUM, dtypes=("f32", "bf16")),
        tile("stationary", SBUF, dtypes=_PACKED),
        tile("moving", SBUF, dtypes=_PACKED),
        tile("stationary_scale", SBUF, dtypes=_SCALES, any_start=True),
        tile("moving_scale", SBUF, dtypes=_SCALES, any_start=True),
    ),
    attributes={"accumulate": optional(bool), "tile_position": (), "tile_size": ()},
    flow=Flow.CONTRACTION,
    cost=Cost.MATMUL,
    core_generation=4,
    checks=(_mx_shapes, _row_tile),
    flops=_mx_flops,
    accumulates=True,
)
def nc_matmul_mx(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst[M, N] (+)= the product over the partitions and the four numbers of an element, each times its scale.

    The sum of one instruction is formed in float64 and rounded once to float32.
    """
    del attributes
    stationary, moving = _scaled(operands, "stationary"), _scaled(operands, "moving")
    return {"dst": (_contracted_first(stationary).T @ _contracted_first(moving)).astype(np.float32)}


def _contracted_first(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """[P, N, 4] numbers as [4 P, N]: what a product sums over comes first."""
    partitions, columns, _ = numbers.shape
    return numbers.transpose(0, 2, 1).reshape(PACK * partitions, columns)
