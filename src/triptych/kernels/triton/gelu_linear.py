"""GELU(W x + b) for a vector x: a product that memory limits, so that products and sums need no tensor core.

- Tiling: a program makes BLOCK_M elements of the result, from BLOCK_K columns of W at a time.
- Memory hierarchy: W is read once; x comes from L1 or L2 for all programs but the first. The product and the sum with b
  never leave the registers: that is what fusing spares.
- Mapping: a row's columns to neighbouring lanes; their partial sums meet once, behind the loop.
- Overlap: loads do not depend on the sums, so that the next step's can be under way during this one's.
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

TILE = {"BLOCK_M": 16, "BLOCK_K": 64}


@triton.jit
def gelu(v):
    """The exact GELU."""
    return 0.5 * v * (1.0 + tl.erf(v * 0.70710678))


@triton.jit
def gelu_linear_kernel(w, x, b, y, m, k, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr):
    """BLOCK_M elements of y a program."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    total = tl.zeros((BLOCK_M, BLOCK_K), tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        inside = (rows[:, None] < m) & (inner[None, :] < k)
        weights = tl.load(w + rows[:, None] * k + inner[None, :], mask=inside, other=0.0).to(tl.float32)
        total += weights * tl.load(x + inner, mask=inner < k, other=0.0)[None, :]
    z = tl.sum(total, 1) + tl.load(b + rows, mask=rows < m)
    tl.store(y + rows, gelu(z), mask=rows < m)


def gelu_linear(w: AnyArray, x: AnyArray, b: AnyArray) -> AnyArray:
    """GELU(W x + b) of `(m)`, with W of `(m, k)`, x of `(k)` and b of `(m)`: f32, f16 or bf16, dense.

    Raises:
        ArgumentError: where the arrays do not fit.
    """
    axes, dtype = arguments("gelu_linear", w=w, x=x, b=b)
    m, k = axes["m"], axes["k"]
    y = output(w, (m,), dtype)
    with machine():
        gelu_linear_kernel[(triton.cdiv(m, TILE["BLOCK_M"]),)](w, x, b, y, m, k, **TILE)
    return y
