"""(x - mean of the row) / √(variance of the row + epsilon) · weight + bias.

- Tiling: a program takes a row, BLOCK columns at a time; a row that fits is one step.
- Memory hierarchy: x is read thrice, but from global memory once: a row stays in L1. The variance comes from distances
  from the mean, so that a large mean costs no digits; hence a pass more than rms_norm has.
- Mapping: a lane sums up its own columns; lanes meet behind each of the loops.
- Overlap: a step's loads do not wait for the sums before; a multiprocessor's other programs have other rows.
"""

# pyright: basic, reportArgumentType=false, reportGeneralTypeIssues=false
# ruff: noqa: ANN001, ANN201
# Triton's language exists inside kernels only: its operators have no types that Python knows.

from __future__ import annotations

import triton
import triton.language as tl

from triptych.kernels.arrays import AnyArray, output
from triptych.kernels.problems import arguments
from triptych.kernels.triton.machine import machine
from triptych.kernels.triton.rows import block_of


@triton.jit
def layer_norm_kernel(x, weight, bias, y, columns, epsilon, BLOCK: tl.constexpr):
    """A row a program."""
    x, y = x + tl.program_id(0).to(tl.int64) * columns, y + tl.program_id(0).to(tl.int64) * columns
    total, squares = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        places = start + tl.arange(0, BLOCK)
        total += tl.load(x + places, mask=places < columns, other=0.0).to(tl.float32)
    mean = tl.sum(total, 0) / columns
    for start in range(0, columns, BLOCK):
        places = start + tl.arange(0, BLOCK)
        values = tl.load(x + places, mask=places < columns).to(tl.float32)
        distances = tl.where(places < columns, values - mean, 0.0)
        squares += distances * distances
    factor = tl.rsqrt(tl.sum(squares, 0) / columns + epsilon)
    for start in range(0, columns, BLOCK):
        places = start + tl.arange(0, BLOCK)
        inside = places < columns
        values = (tl.load(x + places, mask=inside).to(tl.float32) - mean) * factor
        scaled = values * tl.load(weight + places, mask=inside).to(tl.float32)
        tl.store(y + places, scaled + tl.load(bias + places, mask=inside).to(tl.float32), mask=inside)


def layer_norm(x: AnyArray, weight: AnyArray, bias: AnyArray, *, epsilon: float = 1e-5) -> AnyArray:
    """(x - mean) / √(variance + epsilon) · weight + bias by rows; weight and bias of `(columns)`; f32, f16 or bf16.

    Raises:
        ArgumentError: where the arrays do not fit.
    """
    axes, dtype = arguments("layer_norm", x=x, weight=weight, bias=bias)
    y, columns = output(x, tuple(x.shape), dtype), axes["columns"]
    with machine():
        layer_norm_kernel[(axes["rows"],)](x, weight, bias, y, columns, epsilon, BLOCK=block_of(columns))
    return y
