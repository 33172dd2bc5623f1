"""Kernels whose threads have elements of their own: sums, activations, rotations, a transposition.

Arrays are dense, of numpy, torch (in the host's memory) or triptych, of f32, f16 or bf16, all alike; arithmetic is f32.
Each function returns a new array of the kind and element type that its first argument is.
"""

from __future__ import annotations

from triptych.kernels.arrays import AnyArray, blocks, output, pack_width
from triptych.kernels.cuda.loading import CPP, kernel
from triptych.kernels.problems import alike, arguments

_THREADS = 256


def vec_add(a: AnyArray, b: AnyArray) -> AnyArray:
    """A + b, of one shape.

    Raises:
        ArgumentError: where the arrays do not fit.
    """
    return _packed("vec_add", a=a, b=b)


def elementwise_chain(a: AnyArray, b: AnyArray, c: AnyArray) -> AnyArray:
    """σ(a · b + c) · a - c, of one shape.

    Raises:
        ArgumentError: where the arrays do not fit.
    """
    return _packed("elementwise_chain", a=a, b=b, c=c)


def swiglu(gate: AnyArray, up: AnyArray) -> AnyArray:
    """SiLU(gate) · up, of one shape.

    Raises:
        ArgumentError: where the arrays do not fit.
    """
    return _packed("swiglu", gate=gate, up=up)


def rope(x: AnyArray, cos: AnyArray, sin: AnyArray) -> AnyArray:
    """X, `(tokens, heads, d)`, with pairs half a head apart turned; cos and sin are `(tokens, d / 2)` of f32.

    Raises:
        ArgumentError: where the arrays do not fit.
    """
    axes, dtype = arguments("rope", x=x, cos=cos, sin=sin)
    tokens, heads, d = axes["tokens"], axes["heads"], axes["d"]
    out = output(x, tuple(x.shape), dtype)
    threads = min(_THREADS, 32 * blocks(heads * d // 2, 32))
    kernel("rope.cu", f"rope<{CPP[dtype]}>")[tokens, threads](x, cos, sin, out, heads, d)
    return out


def transpose(x: AnyArray) -> AnyArray:
    """The mirror `(columns, rows)` of x, `(rows, columns)`.

    Raises:
        ArgumentError: where x is no matrix.
    """
    axes, dtype = arguments("transpose", x=x)
    rows, columns = axes["rows"], axes["columns"]
    out = output(x, (columns, rows), dtype)
    bound = kernel("transpose.cu", f"transpose<{CPP[dtype]}>")[(blocks(columns, 32), blocks(rows, 32)), (32, 8)]
    bound(x, out, rows, columns)
    return out


def _packed(name: str, **arrays: AnyArray) -> AnyArray:
    """The result of a kernel that takes packs of as many elements as its arrays' addresses allow."""
    count, dtype = alike(name, **arrays)
    first = next(iter(arrays.values()))
    out = output(first, tuple(first.shape), dtype)
    width = pack_width(*arrays.values(), out)
    bound = kernel(f"{name}.cu", f"{name}<{CPP[dtype]}, {width}>")[blocks(count, _THREADS * width), _THREADS]
    bound(*arrays.values(), out, count)
    return out
