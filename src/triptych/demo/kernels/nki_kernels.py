"""The NKI kernels and their host side, as an NKI user writes them; all extents are multiples of 128."""

# pyright: basic, reportMissingImports=false
# ruff: noqa: ANN001, ANN201
# NKI's tensors exist while a kernel is traced only; `nki` is found once triptych (or AWS's package) provides it.

import nki.isa as nisa
import nki.language as nl
import numpy as np

import nki
from triptych.demo.kernels.arrays import F32

PARTITIONS = 128


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


def columns_of(x):
    """The vector x in SBUF, 128 elements a column."""
    tile = nl.ndarray((PARTITIONS, x.shape[0] // PARTITIONS), dtype=x.dtype, buffer=nl.sbuf)
    for column in range(x.shape[0] // PARTITIONS):
        start = column * PARTITIONS
        nisa.dma_copy(dst=tile[:, column : column + 1], src=x[start : start + PARTITIONS, :])
    return tile


def rows_times(w_t, x_tile, row):
    """128 rows of W times x, in PSUM; W comes transposed, as the Tensor engine takes its stationary operand."""
    total = nl.ndarray((PARTITIONS, 1), dtype=nl.float32, buffer=nl.psum)
    for column in range(w_t.shape[0] // PARTITIONS):
        start = column * PARTITIONS
        w_tile = nl.ndarray((PARTITIONS, PARTITIONS), dtype=w_t.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=w_tile, src=w_t[start : start + PARTITIONS, row : row + PARTITIONS])
        nisa.nc_matmul(dst=total, stationary=w_tile, moving=x_tile[:, column : column + 1])
    return total


def transposed(tile):
    """A tile of SBUF, transposed by the Tensor engine: DMA would move its elements one by one."""
    partitions, elements = tile.shape
    total = nl.ndarray((elements, partitions), dtype=tile.dtype, buffer=nl.psum)
    result = nl.ndarray((elements, partitions), dtype=tile.dtype, buffer=nl.sbuf)
    nisa.nc_transpose(dst=total, data=tile)
    nisa.tensor_copy(dst=result, src=total)
    return result


@nki.jit
def matvec(w_t, x):
    """Unfused: z = W x goes to HBM."""
    m = w_t.shape[1]
    z = nl.ndarray((m, 1), dtype=x.dtype, buffer=nl.shared_hbm)
    x_tile = columns_of(x)
    for row in range(0, m, PARTITIONS):
        z_tile = nl.ndarray((PARTITIONS, 1), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(dst=z_tile, src=rows_times(w_t, x_tile, row))
        nisa.dma_copy(dst=z[row : row + PARTITIONS, :], src=z_tile)
    return z


@nki.jit
def add_bias(z, b):
    """Unfused: z comes back, and v = z + b goes to HBM; both are laid out over 128 partitions."""
    v = nl.ndarray(z.shape, dtype=z.dtype, buffer=nl.shared_hbm)
    z_tile = nl.ndarray(z.shape, dtype=z.dtype, buffer=nl.sbuf)
    b_tile = nl.ndarray(z.shape, dtype=z.dtype, buffer=nl.sbuf)
    v_tile = nl.ndarray(z.shape, dtype=z.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=z_tile, src=z)
    nisa.dma_copy(dst=b_tile, src=b)
    nisa.tensor_tensor(dst=v_tile, data1=z_tile, data2=b_tile, op=nl.add)
    nisa.dma_copy(dst=v, src=v_tile)
    return v


@nki.jit
def gelu(v):
    """Unfused: v comes back for the rest."""
    y = nl.ndarray(v.shape, dtype=v.dtype, buffer=nl.shared_hbm)
    v_tile = nl.ndarray(v.shape, dtype=v.dtype, buffer=nl.sbuf)
    y_tile = nl.ndarray(v.shape, dtype=v.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=v_tile, src=v)
    nisa.activation(dst=y_tile, op=nl.gelu, data=v_tile)
    nisa.dma_copy(dst=y, src=y_tile)
    return y


@nki.jit
def gelu_linear(w_t, x, b):
    """Fused: the Scalar engine adds the bias and applies GELU on the way out of PSUM."""
    rows, x_tile = w_t.shape[1] // PARTITIONS, columns_of(x)
    y = nl.ndarray((rows, PARTITIONS), dtype=x.dtype, buffer=nl.shared_hbm)
    b_rows = nl.ndarray((rows, PARTITIONS), dtype=b.dtype, buffer=nl.sbuf)
    y_tile = nl.ndarray((PARTITIONS, rows), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=b_rows, src=b)
    b_tile = transposed(b_rows)
    for row in range(rows):
        total, bias = rows_times(w_t, x_tile, row * PARTITIONS), b_tile[:, row : row + 1]
        nisa.activation(dst=y_tile[:, row : row + 1], op=nl.gelu, data=total, bias=bias)
    nisa.dma_copy(dst=y, src=transposed(y_tile))
    return y


def add(a: F32, b: F32) -> F32:
    """A + b in one launch, laid out over 128 partitions."""
    shape = PARTITIONS * (a.size // PARTITIONS // 1024 or 1), -1
    return np.asarray(vec_add(a.reshape(shape), b.reshape(shape))).reshape(a.shape)


def gelu_linear_unfused(w: F32, x: F32, b: F32) -> F32:
    """GELU(W x + b) in three launches, with two vectors in HBM between them."""
    z = np.asarray(matvec(np.ascontiguousarray(w.T), x.reshape(-1, 1)))
    v = np.asarray(add_bias(z.reshape(PARTITIONS, -1), b.reshape(PARTITIONS, -1)))
    return np.asarray(gelu(v)).reshape(b.shape)


def gelu_linear_fused(w: F32, x: F32, b: F32) -> F32:
    """GELU(W x + b) in one launch."""
    y = gelu_linear(np.ascontiguousarray(w.T), x.reshape(-1, 1), b.reshape(-1, PARTITIONS))
    return np.asarray(y).reshape(b.shape)
