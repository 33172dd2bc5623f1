"""Triton kernels of the cases, as their users write them."""

# pyright: basic, reportArgumentType=false, reportGeneralTypeIssues=false
# ruff: noqa: ANN001, ANN201
# Triton's language exists inside kernels only: its operators have no types that Python knows.

import triton
import triton.language as tl


@triton.jit
def gelu_of(v):
    return 0.5 * v * (1.0 + tl.erf(v * 0.70710678))


@triton.jit
def rows_times(w_ptr, x_ptr, rows, m, k, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr):
    """Rows of W times x: products and a reduction, no tensor core."""
    total = tl.zeros((BLOCK_M, BLOCK_K), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        inside = (rows[:, None] < m) & (inner[None, :] < k)
        w = tl.load(w_ptr + rows[:, None] * k + inner[None, :], mask=inside, other=0.0)
        total += w * tl.load(x_ptr + inner, mask=inner < k, other=0.0)[None, :]
    return tl.sum(total, axis=1)


@triton.jit
def matvec(w_ptr, x_ptr, z_ptr, m, k, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    tl.store(z_ptr + rows, rows_times(w_ptr, x_ptr, rows, m, k, BLOCK_M, BLOCK_K), mask=rows < m)


@triton.jit
def add_bias(z_ptr, b_ptr, v_ptr, m, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(v_ptr + i, tl.load(z_ptr + i, mask=i < m) + tl.load(b_ptr + i, mask=i < m), mask=i < m)


@triton.jit
def gelu(v_ptr, y_ptr, m, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, gelu_of(tl.load(v_ptr + i, mask=i < m)), mask=i < m)


@triton.jit
def gelu_linear(w_ptr, x_ptr, b_ptr, y_ptr, m, k, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    total = rows_times(w_ptr, x_ptr, rows, m, k, BLOCK_M, BLOCK_K) + tl.load(b_ptr + rows, mask=rows < m)
    tl.store(y_ptr + rows, gelu_of(total), mask=rows < m)


@triton.jit
def chain(x_ptr, out_ptr, n, FIRST: tl.constexpr, LAST: tl.constexpr, BLOCK: tl.constexpr):
    """Steps FIRST to LAST - 1 of the chain, with one load and one store."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x_ptr + i, mask=i < n)
    for index in tl.static_range(FIRST, LAST):
        if index == 0:
            v = v * 1.5
        elif index == 1:
            v = v + 0.25
        elif index == 2:
            v = tl.maximum(v, 0.0)
        elif index == 3:
            v = v * v
        else:
            v = v - 1.0
    tl.store(out_ptr + i, v, mask=i < n)
