"""Products of matrices, from a thread an element to a ring of tiles that a warp of its own fills.

Each takes A of `(m, k)` and B of `(k, n)`, dense by rows and of one element type: arrays of numpy, torch (in the host's
memory) or triptych. It returns A × B of `(m, n)`, summed up in f32, as an array of the kind that A is: of A's element
type, or of f32 where `out_dtype` says so.
"""

from __future__ import annotations

from collections.abc import Collection

from triptych.core.errors import ArgumentError
from triptych.execution.tensor_maps import tensor_map
from triptych.kernels.arrays import AnyArray, blocks, multiple, output
from triptych.kernels.cuda.loading import AMPERE, CPP, HOPPER, kernel
from triptych.kernels.problems import FLOATS, HALVES, arguments

_PIPELINE_BYTES = 3 * 2 * 128 * 32 * 2
"""Shared memory of `matmul_mma.cu`: stages of A and B in 16 bits."""
_RING_BYTES = 4 * 2 * 128 * 64 * 2 + 1024
"""Shared memory of `matmul_wgmma.cu`: stages of A and B in 16 bits, barriers behind them."""


def matmul_naive(a: AnyArray, b: AnyArray, *, out_dtype: str | None = None) -> AnyArray:
    """A × B of f32, f16 or bf16 of any sizes, a thread for each element, operands from global memory.

    Raises:
        ArgumentError: where the arrays are no such matrices.
    """
    m, n, k, c, types = _product("matmul_naive", FLOATS, a, b, out_dtype)
    kernel("matmul_simple.cu", f"matmul_naive{types}")[(blocks(n, 32), blocks(m, 8)), (32, 8)](a, b, c, m, n, k)
    return c


def matmul_tiled(a: AnyArray, b: AnyArray, *, out_dtype: str | None = None) -> AnyArray:
    """A × B of f32, f16 or bf16 of any sizes, by tiles in shared memory and in registers.

    Raises:
        ArgumentError: where the arrays are no such matrices.
    """
    m, n, k, c, types = _product("matmul_tiled", FLOATS, a, b, out_dtype)
    kernel("matmul_simple.cu", f"matmul_tiled{types}")[(blocks(n, 128), blocks(m, 64)), (32, 8)](a, b, c, m, n, k)
    return c


def matmul_wmma(a: AnyArray, b: AnyArray, *, out_dtype: str | None = None) -> AnyArray:
    """A × B of f16 or bf16 by tensor cores (`nvcuda::wmma`, from sm_80 on); m, n and k are multiples of 16.

    Raises:
        ArgumentError: where the arrays are no such matrices.
    """
    m, n, k, c, types = _product("matmul_wmma", HALVES, a, b, out_dtype)
    multiple("matmul_wmma", {"m": m, "n": n, "k": k}, 16, "a fragment's side")
    kernel("matmul_wmma.cu", f"matmul_wmma{types}", AMPERE)[(blocks(n, 64), blocks(m, 64)), 128](a, b, c, m, n, k)
    return c


def matmul_mma(a: AnyArray, b: AnyArray, *, out_dtype: str | None = None) -> AnyArray:
    """A × B of f16 or bf16 by `mma.sync` behind a pipeline of `cp.async` (from sm_80 on); n and k are multiples of 8.

    Raises:
        ArgumentError: where the arrays are no such matrices.
    """
    m, n, k, c, types = _product("matmul_mma", HALVES, a, b, out_dtype)
    multiple("matmul_mma", {"n": n, "k": k}, 8, "a copy has 16 bytes")
    grid = blocks(n, 128), blocks(m, 128)
    kernel("matmul_mma.cu", f"matmul_mma{types}", AMPERE)[grid, 128, _PIPELINE_BYTES](a, b, c, m, n, k)
    return c


def matmul_wgmma(a: AnyArray, b: AnyArray, *, out_dtype: str | None = None) -> AnyArray:
    """A × B of f16 or bf16 by `wgmma` behind a ring that TMA fills (sm_90a); n and k are multiples of 8.

    Raises:
        ArgumentError: where the arrays are no such matrices.
    """
    m, n, k, c, types = _product("matmul_wgmma", HALVES, a, b, out_dtype)
    multiple("matmul_wgmma", {"n": n, "k": k}, 8, "rows of a tensor map are 16 bytes apart")
    maps = (tensor_map(a, (128, 64), swizzle="128B"), tensor_map(b, (64, 64), swizzle="128B"))
    grid = blocks(n, 128), blocks(m, 128)
    kernel("matmul_wgmma.cu", f"matmul_wgmma{types}", HOPPER)[grid, 288, _RING_BYTES](*maps, c, m, n, k)
    return c


def _product(
    name: str, dtypes: Collection[str], a: AnyArray, b: AnyArray, out_dtype: str | None
) -> tuple[int, int, int, AnyArray, str]:
    """M, n, k, a new C, and the template's arguments: the types of A and B, and of C."""
    sizes, dtype = arguments(name, dtypes, "matmul", a=a, b=b)
    if out_dtype not in (None, "f32", dtype):
        raise ArgumentError(f"{name}: out_dtype is {out_dtype!r}; expected {dtype} or f32")
    kind = out_dtype or dtype
    c = output(a, (sizes["m"], sizes["n"]), kind)
    return sizes["m"], sizes["n"], sizes["k"], c, f"<{CPP[dtype]}, {CPP[kind]}>"
