"""Kernels that make something of each row of a matrix: a block (or a warp) takes a row, and its threads meet.

Arrays are dense, of numpy, torch (in the host's memory) or triptych, of f32, f16 or bf16, all alike; arithmetic is f32.
Each function returns a new array of the kind and element type that its first argument is.
"""

from __future__ import annotations

from triptych.kernels.arrays import AnyArray, blocks, output
from triptych.kernels.cuda.loading import CPP, kernel
from triptych.kernels.problems import arguments
from triptych.languages.cuda import BoundKernel, Kernel

_WARPS = 4
"""Rows of a block whose warps have a row each."""
_THREADS = 256
PART = 16384
"""Columns that a block sums up: 64 a thread."""


def gelu_linear(w: AnyArray, x: AnyArray, b: AnyArray) -> AnyArray:
    """GELU(W x + b) of `(m)`, with W of `(m, k)`, x of `(k)` and b of `(m)`.

    Raises:
        ArgumentError: where the arrays do not fit.
    """
    axes, dtype = arguments("gelu_linear", w=w, x=x, b=b)
    m, k = axes["m"], axes["k"]
    out = output(w, (m,), dtype)
    kernel("gelu_linear.cu", f"gelu_linear<{CPP[dtype]}>")[blocks(m, _WARPS), (32, _WARPS)](w, x, b, out, m, k)
    return out


def reduce_sum(x: AnyArray) -> AnyArray:
    """The sums `(rows)` of the rows of x, `(rows, columns)`; those of long rows in two launches.

    Raises:
        ArgumentError: where x is no matrix.
    """
    axes, dtype = arguments("reduce_sum", x=x)
    rows, columns = axes["rows"], axes["columns"]
    out, parts = output(x, (rows,), dtype), blocks(columns, PART)
    if parts == 1:
        _sum_of(dtype, dtype)[(1, rows), _THREADS](x, out, columns, PART)
        return out
    sums = output(x, (rows, parts), "f32")
    _sum_of(dtype, "f32")[(parts, rows), _THREADS](x, sums, columns, PART)
    _sum_of("f32", dtype)[(1, rows), _THREADS](sums, out, parts, parts)
    return out


def _sum_of(dtype: str, result: str) -> Kernel:
    return kernel("reduce_sum.cu", f"reduce_sum<{CPP[dtype]}, {CPP[result]}>")


def softmax(x: AnyArray) -> AnyArray:
    """Softmax along the rows of x, `(rows, columns)`.

    Raises:
        ArgumentError: where x is no matrix.
    """
    axes, dtype = arguments("softmax", x=x)
    out = output(x, tuple(x.shape), dtype)
    _by_rows("softmax", dtype, axes)(x, out, axes["columns"])
    return out


def rms_norm(x: AnyArray, weight: AnyArray, *, epsilon: float = 1e-5) -> AnyArray:
    """x / √(mean of the row's x² + epsilon) · weight, with x of `(rows, columns)` and weight of `(columns)`.

    Raises:
        ArgumentError: where the arrays do not fit.
    """
    axes, dtype = arguments("rms_norm", x=x, weight=weight)
    out = output(x, tuple(x.shape), dtype)
    _by_rows("rms_norm", dtype, axes)(x, weight, out, axes["columns"], epsilon)
    return out


def layer_norm(x: AnyArray, weight: AnyArray, bias: AnyArray, *, epsilon: float = 1e-5) -> AnyArray:
    """(x - mean) / √(variance + epsilon) · weight + bias by rows; weight and bias of `(columns)`.

    Raises:
        ArgumentError: where the arrays do not fit.
    """
    axes, dtype = arguments("layer_norm", x=x, weight=weight, bias=bias)
    out = output(x, tuple(x.shape), dtype)
    _by_rows("layer_norm", dtype, axes)(x, weight, bias, out, axes["columns"], epsilon)
    return out


def cross_entropy(logits: AnyArray, targets: AnyArray) -> AnyArray:
    """The losses `(rows)` in f32 of logits, `(rows, columns)`, and each row's target, a column or IGNORED, of s64.

    Raises:
        ArgumentError: where the arrays do not fit.
    """
    axes, dtype = arguments("cross_entropy", logits=logits, targets=targets)
    rows, columns = axes["rows"], axes["columns"]
    loss = output(logits, (rows,), "f32")
    _by_rows("cross_entropy", dtype, {"rows": rows, "columns": columns})(logits, targets, loss, columns)
    return loss


def cumsum(x: AnyArray) -> AnyArray:
    """The sums of each row's elements up to each of them; x is `(rows, columns)`.

    Raises:
        ArgumentError: where x is no matrix.
    """
    axes, dtype = arguments("cumsum", x=x)
    out = output(x, tuple(x.shape), dtype)
    _by_rows("cumsum", dtype, axes)(x, out, axes["columns"])
    return out


def _by_rows(name: str, dtype: str, axes: dict[str, int]) -> BoundKernel:
    """The kernel of that name with a block for each row, of whole warps and no more than the row has work for."""
    threads = min(_THREADS, 32 * blocks(axes["columns"], 32))
    return kernel(f"{name}.cu", f"{name}<{CPP[dtype]}>")[axes["rows"], threads]
