"""The sums of each row's elements up to each of them.

- Tiling: a program takes a row, BLOCK columns at a time, and carries along what all before them come to.
- Memory hierarchy: each element is read and written once; `tl.associative_scan`, which `tl.cumsum` is, goes through
  shuffles within warps and shared memory between them.
- Mapping: neighbouring elements to a thread and to neighbouring lanes.
- Overlap: the next step's loads need no carry; a multiprocessor's other programs have other rows.
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


@triton.jit
def cumsum_kernel(x, y, columns, BLOCK: tl.constexpr):
    """A row a program."""
    x, y = x + tl.program_id(0).to(tl.int64) * columns, y + tl.program_id(0).to(tl.int64) * columns
    carry = 0.0
    for start in range(0, columns, BLOCK):
        places = start + tl.arange(0, BLOCK)
        values = tl.load(x + places, mask=places < columns, other=0.0).to(tl.float32)
        tl.store(y + places, carry + tl.cumsum(values, 0), mask=places < columns)
        carry += tl.sum(values, 0)


def cumsum(x: AnyArray) -> AnyArray:
    """The sums of each row's elements up to each of them; x is `(rows, columns)`, f32, f16 or bf16, dense.

    Raises:
        ArgumentError: where x is no matrix.
    """
    axes, dtype = arguments("cumsum", x=x)
    y = output(x, tuple(x.shape), dtype)
    with machine():
        cumsum_kernel[(axes["rows"],)](x, y, axes["columns"], BLOCK=block_of(axes["columns"]))
    return y
