"""A × B by a program a tile, from tiles of pointers: the shape of most Triton kernels.

- Tiling: a program makes one tile of C, BLOCK_M × BLOCK_N, from BLOCK_K columns of A and rows of B at a time.
- Memory hierarchy: each element of A and B goes to shared memory once for each tile that needs it, and sums stay in
  registers. GROUP rows of tiles are walked through column by column, so that programs which run at the same time share
  their tiles of A and B in L2.
- Mapping: a tile of C to a program, `tl.dot` of a tile to its warps' tensor cores (`mma.sync` for sm_80, `wgmma` for
  sm_90, where each group of four warps takes 64 rows).
- Overlap: the loop is pipelined by Triton: num_stages - 1 tiles are on their way (`cp.async`) while one is multiplied.
"""

# pyright: basic, reportArgumentType=false, reportGeneralTypeIssues=false
# ruff: noqa: ANN001, ANN201
# Triton's language exists inside kernels only: its operators have no types that Python knows.

from __future__ import annotations

import triton
import triton.language as tl

from triptych.kernels.arrays import AnyArray, output
from triptych.kernels.problems import HALVES, arguments
from triptych.kernels.triton.machine import machine

TILE = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 32}
"""What a program makes, and how deep at a time."""
OPTIONS = {"num_warps": 8, "num_stages": 4}
TYPES = {"f16": tl.float16, "bf16": tl.bfloat16}


@triton.jit
def tile_of(place, m, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP: tl.constexpr):
    """Row and column, in tiles, of the tile of C at a place in the order that keeps neighbours in L2."""
    rows, columns = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    first = place // (GROUP * columns) * GROUP
    height = tl.minimum(rows - first, GROUP)
    within = place % (GROUP * columns)
    return first + within % height, within // height


@triton.jit
def matrix_tile(base, rows, columns, row_limit, column_limit):
    """A tile of a matrix with rows one behind the other; zeros outside of it."""
    inside = (rows[:, None] < row_limit) & (columns[None, :] < column_limit)
    return tl.load(base + rows[:, None] * column_limit + columns[None, :], mask=inside, other=0.0)


@triton.jit
def tile_product(
    a, b, row, column, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):  # fmt: skip
    """A tile of C in f32, and the rows and columns that it has."""
    rows = row * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = column * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        total = tl.dot(matrix_tile(a, rows, inner, m, k), matrix_tile(b, inner, columns, k, n), total)
    return total, rows, columns


@triton.jit
def store_tile(c, total, rows, columns, m, n):
    """A tile of C, in its element type."""
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(c.dtype.element_ty), mask=inside)


@triton.jit
def matmul_kernel(
    a, b, c, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr
):  # fmt: skip
    """One tile of C a program."""
    row, column = tile_of(tl.program_id(0), m, n, BLOCK_M, BLOCK_N, GROUP)
    total, rows, columns = tile_product(a, b, row, column, m, n, k, BLOCK_M, BLOCK_N, BLOCK_K)
    store_tile(c, total, rows, columns, m, n)


def tiles_of(m: int, n: int) -> int:
    """Tiles of C."""
    return triton.cdiv(m, TILE["BLOCK_M"]) * triton.cdiv(n, TILE["BLOCK_N"])


def matmul(a: AnyArray, b: AnyArray) -> AnyArray:
    """A × B of any sizes, summed up in f32.

    Args:
        a: `(m, k)`, f16 or bf16, dense by rows.
        b: `(k, n)`, likewise.

    Returns:
        `(m, n)`, of the element type and kind that `a` is.

    Raises:
        ArgumentError: where the arrays are no such matrices.
    """
    axes, dtype = arguments("matmul", HALVES, a=a, b=b)
    m, n, k = axes["m"], axes["n"], axes["k"]
    c = output(a, (m, n), dtype)
    with machine():
        matmul_kernel[(tiles_of(m, n),)](a, b, c, m, n, k, GROUP=8, **TILE, **OPTIONS)
    return c
