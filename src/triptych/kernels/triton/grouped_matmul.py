"""Many products Aᵢ × Bᵢ of any sizes in one launch: as one product would leave most multiprocessors idle.

- Tiling: as in `matmul`. The tiles of all products are numbered through.
- Memory hierarchy: as in `matmul`; a table in global memory says where each product's matrices lie.
- Mapping: a program takes every PROGRAMS-th tile, and finds its product by comparing with all products' first tiles
  at once. So small and large products share the chip without a launch each.
- Overlap: within a tile as in `matmul`; between tiles the multiprocessor's other program goes on.
"""

# pyright: basic, reportArgumentType=false, reportGeneralTypeIssues=false, reportOperatorIssue=false
# ruff: noqa: ANN001, ANN201
# Triton's language exists inside kernels only: its operators have no types that Python knows.

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import triton
import triton.language as tl

from triptych.core.errors import ArgumentError
from triptych.execution.memory import memory
from triptych.kernels.arrays import AnyArray, output
from triptych.kernels.problems import HALVES, arguments
from triptych.kernels.triton.machine import machine, multiprocessors
from triptych.kernels.triton.matmul import OPTIONS, TILE, TYPES, store_tile, tile_of, tile_product, tiles_of

ALIGNMENT = 8
"""Elements of 16 bytes, which is as much as `cp.async` copies at once."""
PROGRAMS_PER_MULTIPROCESSOR = 2
"""So that one works while another stores its tile."""


@triton.jit
def grouped_matmul_kernel(
    table, first_tiles, products, tiles, TYPE: tl.constexpr, ALIGNED: tl.constexpr, PLACES: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Tiles one after the other; a row of the table has the addresses of A, B and C, then m, n and k."""
    places = tl.arange(0, PLACES)
    firsts = tl.load(first_tiles + places, mask=places < products, other=tiles)
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        begun = firsts <= tile
        entry = table + (tl.sum(begun.to(tl.int32), 0) - 1) * 6
        a = tl.load(entry).to(tl.pointer_type(TYPE))
        b = tl.load(entry + 1).to(tl.pointer_type(TYPE))
        c = tl.load(entry + 2).to(tl.pointer_type(TYPE))
        m, n, k = tl.load(entry + 3).to(tl.int32), tl.load(entry + 4).to(tl.int32), tl.load(entry + 5).to(tl.int32)
        if ALIGNED:  # what Triton sees of an argument, it must be told of what comes from memory
            a, b, c = tl.multiple_of(a, 16), tl.multiple_of(b, 16), tl.multiple_of(c, 16)
            n, k = tl.multiple_of(n, 8), tl.multiple_of(k, 8)
        within = tile - tl.max(tl.where(begun, firsts, 0), 0)
        row, column = tile_of(within, m, n, BLOCK_M, BLOCK_N, GROUP)
        total, rows, columns = tile_product(a, b, row, column, m, n, k, BLOCK_M, BLOCK_N, BLOCK_K)
        store_tile(c, total, rows, columns, m, n)


def grouped_matmul(a: Sequence[AnyArray], b: Sequence[AnyArray]) -> list[AnyArray]:
    """Aᵢ × Bᵢ of any sizes, summed up in f32.

    Args:
        a: arrays of `(mᵢ, kᵢ)`, all f16 or all bf16, dense by rows; at least one.
        b: as many of `(kᵢ, nᵢ)`, likewise.

    Returns:
        Arrays of `(mᵢ, nᵢ)`, of the element type and kind that those of `a` are.

    Raises:
        ArgumentError: where the arrays are no such matrices.
    """
    if not a or len(a) != len(b):
        raise ArgumentError(f"grouped_matmul: got {len(a)} arrays a and {len(b)} arrays b; expected pairs")
    pairs = [
        arguments(f"grouped_matmul, product {place}", HALVES, "matmul", a=left, b=right)
        for place, (left, right) in enumerate(zip(a, b, strict=True))
    ]
    sizes = [(axes["m"], axes["n"], axes["k"]) for axes, _ in pairs]
    dtype = pairs[0][1]
    if any(other != dtype for _, other in pairs):
        raise ArgumentError("grouped_matmul: expected products of one element type")
    c = [output(left, (m, n), dtype) for left, (m, n, _) in zip(a, sizes, strict=True)]
    counts = [tiles_of(m, n) for m, n, _ in sizes]
    addresses = [[memory().bind(array).data_ptr() for array in arrays] for arrays in zip(a, b, c, strict=True)]
    table = np.array([[*places, m, n, k] for places, (m, n, k) in zip(addresses, sizes, strict=True)], np.int64)
    with machine():
        grouped_matmul_kernel[(min(sum(counts), PROGRAMS_PER_MULTIPROCESSOR * multiprocessors()),)](
            table, np.cumsum([0, *counts[:-1]], dtype=np.int32), len(counts), sum(counts), TYPE=TYPES[dtype],
            ALIGNED=not (table[:, :3] % 16).any() and not (table[:, 4:] % ALIGNMENT).any(),
            PLACES=triton.next_power_of_2(len(counts)), GROUP=8, **TILE, **OPTIONS,
        )  # fmt: skip
    return c
