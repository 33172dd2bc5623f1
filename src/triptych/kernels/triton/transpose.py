"""The mirror of a matrix.

- Tiling: a program takes a tile of SIDE × SIDE.
- Memory hierarchy: loads go along x's rows and stores along y's, so that each sector is touched once; between, Triton
  turns the tile in shared memory.
- Mapping: a layout of threads for the loads and another for the stores, which Triton chooses by the addresses.
- Overlap: a thread's loads are under way together; a multiprocessor's other programs hide the rest.
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

SIDE = 32


@triton.jit
def transpose_kernel(x, y, rows, columns, SIDE: tl.constexpr):
    """A tile a program."""
    down, along = tl.program_id(1) * SIDE + tl.arange(0, SIDE), tl.program_id(0) * SIDE + tl.arange(0, SIDE)
    inside = (down[:, None] < rows) & (along[None, :] < columns)
    tile = tl.load(x + down[:, None].to(tl.int64) * columns + along[None, :], mask=inside)
    tl.store(y + along[:, None].to(tl.int64) * rows + down[None, :], tl.trans(tile), mask=tl.trans(inside))


def transpose(x: AnyArray) -> AnyArray:
    """The mirror `(columns, rows)` of x, `(rows, columns)`, f32, f16 or bf16, dense.

    Raises:
        ArgumentError: where x is no matrix.
    """
    axes, dtype = arguments("transpose", x=x)
    rows, columns = axes["rows"], axes["columns"]
    y = output(x, (columns, rows), dtype)
    with machine():
        transpose_kernel[(triton.cdiv(columns, SIDE), triton.cdiv(rows, SIDE))](x, y, rows, columns, SIDE=SIDE)
    return y
