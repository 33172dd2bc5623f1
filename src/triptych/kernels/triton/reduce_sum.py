"""The sums of a matrix's rows.

- Tiling: a program takes PART columns of a row, BLOCK at a time; the parts of long rows are summed up by a second
  launch of the same kernel, so that one long row has many programs, and its sum no order but one.
- Memory hierarchy: each element is read once, into sums in registers.
- Mapping: a lane sums up its own columns; lanes meet once, behind the loop.
- Overlap: loads do not wait for the sums; a multiprocessor's other programs have other parts.
"""

# pyright: basic, reportArgumentType=false, reportGeneralTypeIssues=false
# ruff: noqa: ANN001, ANN201
# Triton's language exists inside kernels only: its operators have no types that Python knows.

from __future__ import annotations

import triton
import triton.language as tl

from triptych.kernels.arrays import AnyArray, blocks, output
from triptych.kernels.problems import arguments
from triptych.kernels.triton.machine import machine
from triptych.kernels.triton.rows import block_of

PART = 16384
"""Columns that a program sums up."""


@triton.jit
def reduce_sum_kernel(x, y, columns, PART: tl.constexpr, BLOCK: tl.constexpr):
    """A part of a row a program."""
    part, row = tl.program_id(0), tl.program_id(1)
    x += row.to(tl.int64) * columns
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(part * PART, tl.minimum(columns, (part + 1) * PART), BLOCK):
        places = start + tl.arange(0, BLOCK)
        total += tl.load(x + places, mask=places < columns, other=0.0).to(tl.float32)
    tl.store(y + row * tl.num_programs(0) + part, tl.sum(total, 0))


def reduce_sum(x: AnyArray) -> AnyArray:
    """The sums `(rows)` of the rows of x, `(rows, columns)`, f32, f16 or bf16, dense.

    Raises:
        ArgumentError: where x is no matrix.
    """
    axes, dtype = arguments("reduce_sum", x=x)
    rows, columns = axes["rows"], axes["columns"]
    parts = blocks(columns, PART)
    out = output(x, (rows,), dtype)
    with machine():
        if parts > 1:
            sums = output(x, (rows, parts), "f32")
            reduce_sum_kernel[(parts, rows)](x, sums, columns, PART=PART, BLOCK=block_of(PART))
            x, columns = sums, parts
        reduce_sum_kernel[(1, rows)](x, out, columns, PART=PART, BLOCK=block_of(columns))
    return out
