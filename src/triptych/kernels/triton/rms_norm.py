"""x / √(mean of the row's x² + epsilon) · weight.

- Tiling: a program takes a row, BLOCK columns at a time; a row that fits is one step.
- Memory hierarchy: x is read twice, the second time from L1 or L2; weight from there for all rows but the first.
- Mapping: a lane sums up its own columns; lanes meet once, behind the loop.
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
def rms_norm_kernel(x, weight, y, columns, epsilon, BLOCK: tl.constexpr):
    """A row a program."""
    x, y = x + tl.program_id(0).to(tl.int64) * columns, y + tl.program_id(0).to(tl.int64) * columns
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        places = start + tl.arange(0, BLOCK)
        values = tl.load(x + places, mask=places < columns, other=0.0).to(tl.float32)
        squares += values * values
    factor = tl.rsqrt(tl.sum(squares, 0) / columns + epsilon)
    for start in range(0, columns, BLOCK):
        places = start + tl.arange(0, BLOCK)
        values = tl.load(x + places, mask=places < columns).to(tl.float32)
        weights = tl.load(weight + places, mask=places < columns).to(tl.float32)
        tl.store(y + places, values * factor * weights, mask=places < columns)


def rms_norm(x: AnyArray, weight: AnyArray, *, epsilon: float = 1e-5) -> AnyArray:
    """x / √(mean of the row's x² + epsilon) · weight, x of `(rows, columns)`, weight of `(columns)`: f32, f16 or bf16.

    Raises:
        ArgumentError: where the arrays do not fit.
    """
    axes, dtype = arguments("rms_norm", x=x, weight=weight)
    y = output(x, tuple(x.shape), dtype)
    with machine():
        rms_norm_kernel[(axes["rows"],)](x, weight, y, axes["columns"], epsilon, BLOCK=block_of(axes["columns"]))
    return y
