"""Softmax of each row of a matrix, whatever its length.

- Tiling: a program takes a row, BLOCK columns at a time; a row that fits is one step.
- Memory hierarchy: one pass finds the largest element and the sum of exponentials below it together (the sum shrinks
  whenever the maximum grows), a second one writes: x is read twice instead of thrice, the second time from L1 or L2.
- Mapping: a lane keeps a maximum and a sum of its own columns; lanes meet once, behind the loop.
- Overlap: a step's loads do not wait for the sums before; a multiprocessor's other programs have other rows.
"""

# pyright: basic, reportArgumentType=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# ruff: noqa: ANN001, ANN201
# Triton's language exists inside kernels only: its operators have no types that Python knows.

from __future__ import annotations

import triton
import triton.language as tl

from triptych.kernels.arrays import AnyArray, output
from triptych.kernels.problems import arguments
from triptych.kernels.triton.machine import machine
from triptych.kernels.triton.rows import block_of

LOWEST = tl.constexpr(-3.4028235e38)
"""No infinity: below it, exp(-∞ - LOWEST) is 0."""


@triton.jit
def softmax_kernel(x, y, columns, BLOCK: tl.constexpr):
    """A row a program."""
    x, y = x + tl.program_id(0).to(tl.int64) * columns, y + tl.program_id(0).to(tl.int64) * columns
    largest, total = tl.full((BLOCK,), LOWEST, tl.float32), tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        places = start + tl.arange(0, BLOCK)
        values = tl.load(x + places, mask=places < columns, other=float("-inf")).to(tl.float32)
        higher = tl.maximum(largest, values)
        total = total * tl.exp(largest - higher) + tl.exp(values - higher)
        largest = higher
    most = tl.max(largest, 0)
    factor = 1.0 / tl.sum(total * tl.exp(largest - most), 0)
    for start in range(0, columns, BLOCK):
        places = start + tl.arange(0, BLOCK)
        values = tl.load(x + places, mask=places < columns).to(tl.float32)
        tl.store(y + places, tl.exp(values - most) * factor, mask=places < columns)


def softmax(x: AnyArray) -> AnyArray:
    """Softmax along the rows of x, `(rows, columns)`, f32, f16 or bf16, dense.

    Raises:
        ArgumentError: where x is no matrix.
    """
    axes, dtype = arguments("softmax", x=x)
    y = output(x, tuple(x.shape), dtype)
    with machine():
        softmax_kernel[(axes["rows"],)](x, y, axes["columns"], BLOCK=block_of(axes["columns"]))
    return y
