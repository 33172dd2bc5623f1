"""The Triton kernels and their host side, as a Triton user writes them."""

# pyright: basic, reportArgumentType=false, reportGeneralTypeIssues=false
# ruff: noqa: ANN001, ANN201
# Triton's language exists inside kernels only: its operators have no types that Python knows.

import numpy as np
import triton
import triton.language as tl

from triptych.demo.kernels.arrays import F32

BLOCK = 1024
"""Elements of a program that works elementwise."""
TILE = {"BLOCK_M": 16, "BLOCK_K": 64}
"""Rows of W that a program takes, and the columns that it takes at a time."""


@triton.jit
def vec_add(a_ptr, b_ptr, c_ptr, n, BLOCK: tl.constexpr):
    """C = a + b, BLOCK elements a program."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    a = tl.load(a_ptr + offsets, mask=inside)
    b = tl.load(b_ptr + offsets, mask=inside)
    tl.store(c_ptr + offsets, a + b, mask=inside)


@triton.jit
def gelu_of(v):
    """The exact GELU."""
    return 0.5 * v * (1.0 + tl.erf(v * 0.70710678))


@triton.jit
def rows_times(w_ptr, x_ptr, rows, m, k, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr):
    """Rows of W times x: products and a reduction, no tensor core."""
    total = tl.zeros((BLOCK_M, BLOCK_K), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        inside = (rows[:, None] < m) & (inner[None, :] < k)
        w = tl.load(w_ptr + rows[:, None] * k + inner[None, :], mask=inside, other=0.0)
        x = tl.load(x_ptr + inner, mask=inner < k, other=0.0)
        total += w * x[None, :]
    return tl.sum(total, axis=1)


@triton.jit
def matvec(w_ptr, x_ptr, z_ptr, m, k, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr):
    """Unfused: z = W x goes to memory."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    tl.store(z_ptr + rows, rows_times(w_ptr, x_ptr, rows, m, k, BLOCK_M, BLOCK_K), mask=rows < m)


@triton.jit
def add_bias(z_ptr, b_ptr, v_ptr, m, BLOCK: tl.constexpr):
    """Unfused: z comes back, and v = z + b goes to memory."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(z_ptr + rows, mask=rows < m) + tl.load(b_ptr + rows, mask=rows < m)
    tl.store(v_ptr + rows, v, mask=rows < m)


@triton.jit
def gelu(v_ptr, y_ptr, m, BLOCK: tl.constexpr):
    """Unfused: v comes back for the rest."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + rows, gelu_of(tl.load(v_ptr + rows, mask=rows < m)), mask=rows < m)


@triton.jit
def gelu_linear(w_ptr, x_ptr, b_ptr, y_ptr, m, k, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr):
    """Fused: neither z nor v leaves the registers."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    z = rows_times(w_ptr, x_ptr, rows, m, k, BLOCK_M, BLOCK_K)
    tl.store(y_ptr + rows, gelu_of(z + tl.load(b_ptr + rows, mask=rows < m)), mask=rows < m)


def add(a: F32, b: F32) -> F32:
    """A + b, in one launch."""
    c = np.empty_like(a)
    vec_add[(triton.cdiv(a.size, BLOCK),)](a, b, c, a.size, BLOCK=BLOCK)
    return c


def gelu_linear_unfused(w: F32, x: F32, b: F32) -> F32:
    """GELU(W x + b) in three launches, with two vectors in memory between them."""
    m, k = w.shape
    z, v, y = (np.empty(m, np.float32) for _ in range(3))
    matvec[(triton.cdiv(m, TILE["BLOCK_M"]),)](w, x, z, m, k, **TILE)
    add_bias[(triton.cdiv(m, BLOCK),)](z, b, v, m, BLOCK=BLOCK)
    gelu[(triton.cdiv(m, BLOCK),)](v, y, m, BLOCK=BLOCK)
    return y


def gelu_linear_fused(w: F32, x: F32, b: F32) -> F32:
    """GELU(W x + b) in one launch."""
    m, k = w.shape
    y = np.empty(m, np.float32)
    gelu_linear[(triton.cdiv(m, TILE["BLOCK_M"]),)](w, x, b, y, m, k, **TILE)
    return y
