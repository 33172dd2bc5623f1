"""A × B by programs that stay: as many as there are multiprocessors, fed by the Tensor Memory Accelerator.

- Tiling: as in `matmul`, BLOCK_M × BLOCK_N of C from BLOCK_K deep tiles.
- Memory hierarchy: tiles are boxes of tensor descriptors, which the programs make; for sm_90 a single thread has each
  copied to shared memory, already swizzled for `wgmma`, and what lies outside the matrix comes as zeros: no address or
  mask for each element, and no registers between. Below sm_90 Triton makes pointers and masks of them.
- Mapping: a program for each multiprocessor, which takes every so many-th tile. It starts once, not once a tile.
- Overlap: both loops are one to the pipeline, so that the next tile's boxes are on their way while this one's sums
  leave. Or, warp-specialised, a warp of its own has boxes copied for groups of warps that only multiply and store.
"""

# pyright: basic, reportArgumentType=false, reportGeneralTypeIssues=false
# ruff: noqa: ANN001, ANN201
# Triton's language exists inside kernels only: its operators have no types that Python knows.

from __future__ import annotations

import triton
import triton.language as tl

from triptych.kernels.arrays import AnyArray, multiple, output
from triptych.kernels.problems import HALVES, arguments
from triptych.kernels.triton.machine import machine, multiprocessors
from triptych.kernels.triton.matmul import tile_of

TILE = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}
OPTIONS = {False: {"num_warps": 8, "num_stages": 3}, True: {"num_warps": 4, "num_stages": 3}}
"""Without and with warp specialisation: that splits the rows of a tile among two groups of four warps more."""


@triton.jit
def persistent_matmul_kernel(
    a, b, c, m, n, k, SPECIALIZE: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Tiles of C one after the other, from this program's first one on."""
    a_tiles = tl.make_tensor_descriptor(a, [m, k], [k, 1], [BLOCK_M, BLOCK_K])
    b_tiles = tl.make_tensor_descriptor(b, [k, n], [n, 1], [BLOCK_K, BLOCK_N])
    c_tiles = tl.make_tensor_descriptor(c, [m, n], [n, 1], [BLOCK_M, BLOCK_N])
    tiles = tl.cdiv(m, BLOCK_M) * tl.cdiv(n, BLOCK_N)
    for tile in tl.range(
        tl.program_id(0), tiles, tl.num_programs(0), flatten=not SPECIALIZE, warp_specialize=SPECIALIZE
    ):  # fmt: skip
        row, column = tile_of(tile, m, n, BLOCK_M, BLOCK_N, GROUP)
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for start in range(0, k, BLOCK_K):
            left = a_tiles.load([row * BLOCK_M, start])
            right = b_tiles.load([start, column * BLOCK_N])
            total = tl.dot(left, right, total)
        c_tiles.store([row * BLOCK_M, column * BLOCK_N], total.to(c.dtype.element_ty))


def persistent_matmul(a: AnyArray, b: AnyArray, *, warp_specialize: bool = False) -> AnyArray:
    """A × B, summed up in f32; n and k are multiples of 8.

    Args:
        a: `(m, k)`, f16 or bf16, dense by rows.
        b: `(k, n)`, likewise.
        warp_specialize: whether copies get a warp of their own; only for sm_90, others take no notice.

    Returns:
        `(m, n)`, of the element type and kind that `a` is.

    Raises:
        ArgumentError: where the arrays are no such matrices.
    """
    axes, dtype = arguments("persistent_matmul", HALVES, "matmul", a=a, b=b)
    m, n, k = axes["m"], axes["n"], axes["k"]
    multiple("persistent_matmul", {"n": n, "k": k}, 8, "rows of a tensor map are 16 bytes apart")
    c = output(a, (m, n), dtype)
    tiles = triton.cdiv(m, TILE["BLOCK_M"]) * triton.cdiv(n, TILE["BLOCK_N"])
    with machine():
        persistent_matmul_kernel[(min(tiles, multiprocessors()),)](
            a, b, c, m, n, k, SPECIALIZE=warp_specialize, GROUP=8, **TILE, **OPTIONS[warp_specialize]
        )  # fmt: skip
    return c
