"""Products of matrices, from a thread an element to a ring of tiles that a warp of its own fills.

Each takes A of `(m, k)` and B of `(k, n)`, dense by rows: arrays of numpy, torch (in the host's memory) or triptych. It
returns A × B of `(m, n)` in f32, summed up in f32, as an array of the kind that A is.
"""

from __future__ import annotations

from triptych.execution.tensor_maps import tensor_map
from triptych.kernels.arrays import AnyArray, blocks, multiple, output
from triptych.kernels.cuda.loading import AMPERE, CPP, HOPPER, kernel
from triptych.kernels.problems import arguments

_SIMPLE = ("f16", "f32")
"""Element types of the kernels without tensor cores."""
_PIPELINE_BYTES = 3 * 2 * 128 * 32 * 2
"""Shared memory of `matmul_mma.cu`: stages of A and B in f16."""
_RING_BYTES = 4 * 2 * 128 * 64 * 2 + 1024
"""Shared memory of `matmul_wgmma.cu`: stages of A and B in f16, barriers behind them."""


def matmul_naive(a: AnyArray, b: AnyArray) -> AnyArray:
    """A × B of f16 or f32 of any sizes, a thread for each element, operands from global memory.

    Raises:
        ArgumentError: where the arrays are no such matrices.
    """
    axes, dtype = arguments("matmul_naive", _SIMPLE, "matmul", a=a, b=b)
    m, n, k = axes["m"], axes["n"], axes["k"]
    c = output(a, (m, n), "f32")
    bound = kernel("matmul_simple.cu", f"matmul_naive<{CPP[dtype]}>")[(blocks(n, 32), blocks(m, 8)), (32, 8)]
    bound(a, b, c, m, n, k)
    return c


def matmul_tiled(a: AnyArray, b: AnyArray) -> AnyArray:
    """A × B of f16 or f32 of any sizes, by tiles in shared memory and in registers.

    Raises:
        ArgumentError: where the arrays are no such matrices.
    """
    axes, dtype = arguments("matmul_tiled", _SIMPLE, "matmul", a=a, b=b)
    m, n, k = axes["m"], axes["n"], axes["k"]
    c = output(a, (m, n), "f32")
    bound = kernel("matmul_simple.cu", f"matmul_tiled<{CPP[dtype]}>")[(blocks(n, 128), blocks(m, 64)), (32, 8)]
    bound(a, b, c, m, n, k)
    return c


def matmul_wmma(a: AnyArray, b: AnyArray) -> AnyArray:
    """A × B of f16 by tensor cores (`nvcuda::wmma`, from sm_80 on); m, n and k are multiples of 16.

    Raises:
        ArgumentError: where the arrays are no such matrices.
    """
    axes, _ = arguments("matmul_wmma", ("f16",), "matmul", a=a, b=b)
    m, n, k = axes["m"], axes["n"], axes["k"]
    multiple("matmul_wmma", {"m": m, "n": n, "k": k}, 16, "a fragment's side")
    c = output(a, (m, n), "f32")
    kernel("matmul_wmma.cu", "matmul_wmma", AMPERE)[(blocks(n, 64), blocks(m, 64)), 128](a, b, c, m, n, k)
    return c


def matmul_mma(a: AnyArray, b: AnyArray) -> AnyArray:
    """A × B of f16 by `mma.sync` behind a pipeline of `cp.async` (from sm_80 on); n and k are multiples of 8.

    Raises:
        ArgumentError: where the arrays are no such matrices.
    """
    axes, _ = arguments("matmul_mma", ("f16",), "matmul", a=a, b=b)
    m, n, k = axes["m"], axes["n"], axes["k"]
    multiple("matmul_mma", {"n": n, "k": k}, 8, "a copy has 16 bytes")
    c = output(a, (m, n), "f32")
    bound = kernel("matmul_mma.cu", "matmul_mma", AMPERE)[(blocks(n, 128), blocks(m, 128)), 128, _PIPELINE_BYTES]
    bound(a, b, c, m, n, k)
    return c


def matmul_wgmma(a: AnyArray, b: AnyArray) -> AnyArray:
    """A × B of f16 by `wgmma` behind a ring that TMA fills (sm_90a); n and k are multiples of 8.

    Raises:
        ArgumentError: where the arrays are no such matrices.
    """
    axes, _ = arguments("matmul_wgmma", ("f16",), "matmul", a=a, b=b)
    m, n, k = axes["m"], axes["n"], axes["k"]
    multiple("matmul_wgmma", {"n": n, "k": k}, 8, "rows of a tensor map are 16 bytes apart")
    c = output(a, (m, n), "f32")
    maps = (tensor_map(a, (128, 64), swizzle="128B"), tensor_map(b, (64, 64), swizzle="128B"))
    bound = kernel("matmul_wgmma.cu", "matmul_wgmma", HOPPER)[(blocks(n, 128), blocks(m, 128)), 288, _RING_BYTES]
    bound(*maps, c, m, n, k)
    return c
