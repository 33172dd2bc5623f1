"""The Triton kernels and their host side, as a Triton user writes them."""

# pyright: basic, reportArgumentType=false
# ruff: noqa: ANN001, ANN201
# Triton's language exists inside kernels only: its operators have no types that Python knows.

import numpy as np
import triton
import triton.language as tl

from triptych.cli.demo_kernels.arrays import F32


@triton.jit
def vec_add(a_ptr, b_ptr, c_ptr, n, BLOCK: tl.constexpr):
    """C = a + b, BLOCK elements a program."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    a = tl.load(a_ptr + offsets, mask=inside)
    b = tl.load(b_ptr + offsets, mask=inside)
    tl.store(c_ptr + offsets, a + b, mask=inside)


@triton.jit
def gelu(v):
    """The exact GELU."""
    return 0.5 * v * (1.0 + tl.erf(v * 0.70710678))


@triton.jit
def product_tile(
    w_ptr, x_ptr, rows, columns, m, n, k,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """A tile of W x, in f32 throughout."""
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        w_inside = (rows[:, None] < m) & (inner[None, :] < k)
        x_inside = (inner[:, None] < k) & (columns[None, :] < n)
        w = tl.load(w_ptr + rows[:, None] * k + inner[None, :], mask=w_inside, other=0.0)
        x = tl.load(x_ptr + inner[:, None] * n + columns[None, :], mask=x_inside, other=0.0)
        total = tl.dot(w, x, total, input_precision="ieee")
    return total


@triton.jit
def gelu_linear(
    w_ptr, x_ptr, b_ptr, y_ptr, m, n, k,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Fused: the product never leaves the registers."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = product_tile(w_ptr, x_ptr, rows, columns, m, n, k, BLOCK_M, BLOCK_N, BLOCK_K)
    bias = tl.load(b_ptr + rows, mask=rows < m, other=0.0)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(y_ptr + rows[:, None] * n + columns[None, :], gelu(total + bias[:, None]), mask=inside)


@triton.jit
def linear(
    w_ptr, x_ptr, product_ptr, m, n, k,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Unfused: the product goes to memory."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = product_tile(w_ptr, x_ptr, rows, columns, m, n, k, BLOCK_M, BLOCK_N, BLOCK_K)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(product_ptr + rows[:, None] * n + columns[None, :], total, mask=inside)


@triton.jit
def bias_gelu(product_ptr, b_ptr, y_ptr, m, n, BLOCK: tl.constexpr):
    """Unfused: the product comes back for the rest."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < m * n
    product = tl.load(product_ptr + offsets, mask=inside, other=0.0)
    bias = tl.load(b_ptr + offsets // n, mask=inside, other=0.0)
    tl.store(y_ptr + offsets, gelu(product + bias), mask=inside)


_TILES = {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32}


def add(a: F32, b: F32) -> F32:
    """A + b, in programs of 1024 elements."""
    c = np.empty_like(a)
    vec_add[(triton.cdiv(a.size, 1024),)](a, b, c, a.size, BLOCK=1024)
    return c


def gelu_linear_fused(w: F32, x: F32, b: F32) -> F32:
    """GELU(W x + b) in one launch."""
    m, k, n = *w.shape, x.shape[1]
    y = np.empty((m, n), np.float32)
    gelu_linear[_grid(m, n)](w, x, b, y, m, n, k, **_TILES)
    return y


def gelu_linear_unfused(w: F32, x: F32, b: F32) -> F32:
    """GELU(W x + b) in two launches, with the product in memory between them."""
    m, k, n = *w.shape, x.shape[1]
    product, y = np.empty((m, n), np.float32), np.empty((m, n), np.float32)
    linear[_grid(m, n)](w, x, product, m, n, k, **_TILES)
    bias_gelu[(triton.cdiv(m * n, 1024),)](product, b, y, m, n, BLOCK=1024)
    return y


def _grid(m: int, n: int) -> tuple[int, int]:
    return triton.cdiv(m, _TILES["BLOCK_M"]), triton.cdiv(n, _TILES["BLOCK_N"])
