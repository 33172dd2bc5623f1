"""The NKI kernels and their host side, as an NKI user writes them."""

# pyright: basic, reportMissingImports=false
# ruff: noqa: ANN001, ANN201
# NKI's tensors exist while a kernel is traced only; `nki` is found once triptych (or AWS's package) provides it.

import nki.isa as nisa
import nki.language as nl
import numpy as np

import nki
from triptych.cli.demo_kernels.arrays import F32

PARTITIONS = 128
MOVING = 512
"""Columns of a matrix product's moving operand: one PSUM bank of f32."""


@nki.jit
def vec_add(a, b):
    """C = a + b, a tile of 128 partitions at a time."""
    rows, columns = a.shape
    c = nl.ndarray((rows, columns), dtype=a.dtype, buffer=nl.shared_hbm)
    for start in range(0, rows, PARTITIONS):
        a_tile = nl.ndarray((PARTITIONS, columns), dtype=a.dtype, buffer=nl.sbuf)
        b_tile = nl.ndarray((PARTITIONS, columns), dtype=a.dtype, buffer=nl.sbuf)
        c_tile = nl.ndarray((PARTITIONS, columns), dtype=a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=a_tile, src=a[start : start + PARTITIONS, :])
        nisa.dma_copy(dst=b_tile, src=b[start : start + PARTITIONS, :])
        nisa.tensor_tensor(dst=c_tile, data1=a_tile, data2=b_tile, op=nl.add)
        nisa.dma_copy(dst=c[start : start + PARTITIONS, :], src=c_tile)
    return c


def product_tile(w_t, x, row, column, width):
    """A tile of W x in PSUM; W comes transposed, as the Tensor engine takes its stationary operand."""
    inner = w_t.shape[0]
    total = nl.ndarray((PARTITIONS, width), dtype=nl.float32, buffer=nl.psum)
    for start in range(0, inner, PARTITIONS):
        w_tile = nl.ndarray((PARTITIONS, PARTITIONS), dtype=w_t.dtype, buffer=nl.sbuf)
        x_tile = nl.ndarray((PARTITIONS, width), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=w_tile, src=w_t[start : start + PARTITIONS, row : row + PARTITIONS])
        nisa.dma_copy(dst=x_tile, src=x[start : start + PARTITIONS, column : column + width])
        nisa.nc_matmul(dst=total, stationary=w_tile, moving=x_tile)
    return total


@nki.jit
def gelu_linear(w_t, x, b):
    """Fused: the Scalar engine adds the bias and applies GELU on the way out of PSUM."""
    m, n = w_t.shape[1], x.shape[1]
    width = min(n, MOVING)
    y = nl.ndarray((m, n), dtype=x.dtype, buffer=nl.shared_hbm)
    for row in range(0, m, PARTITIONS):
        bias = nl.ndarray((PARTITIONS, 1), dtype=b.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=bias, src=b[row : row + PARTITIONS, :])
        for column in range(0, n, width):
            total = product_tile(w_t, x, row, column, width)
            y_tile = nl.ndarray((PARTITIONS, width), dtype=x.dtype, buffer=nl.sbuf)
            nisa.activation(dst=y_tile, op=nl.gelu, data=total, bias=bias)
            nisa.dma_copy(dst=y[row : row + PARTITIONS, column : column + width], src=y_tile)
    return y


@nki.jit
def linear(w_t, x):
    """Unfused: the product goes to HBM."""
    m, n = w_t.shape[1], x.shape[1]
    width = min(n, MOVING)
    product = nl.ndarray((m, n), dtype=x.dtype, buffer=nl.shared_hbm)
    for row in range(0, m, PARTITIONS):
        for column in range(0, n, width):
            total = product_tile(w_t, x, row, column, width)
            out_tile = nl.ndarray((PARTITIONS, width), dtype=x.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=out_tile, src=total)
            nisa.dma_copy(dst=product[row : row + PARTITIONS, column : column + width], src=out_tile)
    return product


@nki.jit
def bias_gelu(product, b):
    """Unfused: the product comes back for the rest."""
    m, n = product.shape
    y = nl.ndarray((m, n), dtype=product.dtype, buffer=nl.shared_hbm)
    for row in range(0, m, PARTITIONS):
        bias = nl.ndarray((PARTITIONS, 1), dtype=b.dtype, buffer=nl.sbuf)
        tile = nl.ndarray((PARTITIONS, n), dtype=product.dtype, buffer=nl.sbuf)
        y_tile = nl.ndarray((PARTITIONS, n), dtype=product.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=bias, src=b[row : row + PARTITIONS, :])
        nisa.dma_copy(dst=tile, src=product[row : row + PARTITIONS, :])
        nisa.activation(dst=y_tile, op=nl.gelu, data=tile, bias=bias)
        nisa.dma_copy(dst=y[row : row + PARTITIONS, :], src=y_tile)
    return y


def add(a: F32, b: F32) -> F32:
    """A + b, laid out over 128 partitions."""
    shape = PARTITIONS * (a.size // PARTITIONS // 1024 or 1), -1
    return np.asarray(vec_add(a.reshape(shape), b.reshape(shape))).reshape(a.shape)


def gelu_linear_fused(w: F32, x: F32, b: F32) -> F32:
    """GELU(W x + b) in one launch."""
    return np.asarray(gelu_linear(np.ascontiguousarray(w.T), x, b.reshape(-1, 1)))


def gelu_linear_unfused(w: F32, x: F32, b: F32) -> F32:
    """GELU(W x + b) in two launches, with the product in HBM between them."""
    product = np.asarray(linear(np.ascontiguousarray(w.T), x))
    return np.asarray(bias_gelu(product, b.reshape(-1, 1)))
