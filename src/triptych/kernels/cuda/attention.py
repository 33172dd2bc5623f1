"""Attention, from a matrix of scores in memory to a warp of its own that has tiles copied.

Each takes q of `(batch, heads, n, d)`, k and v of `(batch, heads_kv, n_kv, d)`, dense, all f16 or all bf16 (without
tensor cores also all f32), d = 64 or 128, of numpy, torch (in the host's memory) or triptych. `heads` is a multiple of
`heads_kv`: neighbouring heads of q share one of k and v. It returns softmax(q kᵀ · scale) v, of the shape, element type
and kind that q is; sums are f32.
"""

from __future__ import annotations

import math

from triptych.execution.tensor_maps import TensorMap, tensor_map
from triptych.kernels.arrays import AnyArray, blocks, output
from triptych.kernels.cuda.loading import AMPERE, CPP, HOPPER, kernel
from triptych.kernels.problems import FLOATS, Attention

_BARRIERS_BYTES = 1024


def attention_naive(
    q: AnyArray, k: AnyArray, v: AnyArray, *, causal: bool = False, scale: float | None = None
) -> AnyArray:
    """Attention in three launches: scores to memory, in f32, their softmax, and the product with the values.

    Args:
        q: queries; n is any.
        k: keys; n_kv is any, with `causal` at least n.
        v: values.
        causal: whether a query sees no keys behind its own, the last query's being the last key.
        scale: of the scores, above 0; 1 / √d where None.

    Raises:
        ArgumentError: where the arrays do not fit.
    """
    problem = Attention.of("attention_naive", q, k, v, causal, scale, FLOATS)
    heads, n, n_kv = problem.batch * problem.heads, problem.n, problem.n_kv
    out = output(q, problem.shape, problem.dtype)
    scores, weights = (output(q, (heads * n, n_kv), "f32") for _ in range(2))
    multiply = kernel("attention_simple.cu", f"attention_scores{_template(problem)}")
    multiply[(blocks(n_kv, 32), blocks(n, 8), heads), (32, 8)](
        q, k, scores, n, n_kv, problem.group, problem.ahead, problem.scale
    )  # fmt: skip
    kernel("softmax.cu", "softmax<float>")[heads * n, 128](scores, weights, n_kv)
    average = kernel("attention_simple.cu", f"attention_values{_template(problem)}")
    average[(blocks(problem.d, 32), blocks(n, 8), heads), (32, 8)](weights, v, out, n, n_kv, problem.group)
    return out


def attention_tiled(
    q: AnyArray, k: AnyArray, v: AnyArray, *, causal: bool = False, scale: float | None = None
) -> AnyArray:
    """Attention without a matrix of scores (FlashAttention's forward pass), by tiles in shared memory.

    Args:
        q: queries; n is any.
        k: keys; n_kv is any, with `causal` at least n.
        v: values.
        causal: whether a query sees no keys behind its own, the last query's being the last key.
        scale: of the scores, above 0; 1 / √d where None.

    Raises:
        ArgumentError: where the arrays do not fit.
    """
    problem = Attention.of("attention_tiled", q, k, v, causal, scale, FLOATS)
    out = output(q, problem.shape, problem.dtype)
    grid = blocks(problem.n, 16), problem.batch * problem.heads
    bound = kernel("attention_simple.cu", f"attention_tiled{_template(problem)}")[grid, 128]
    bound(q, k, v, out, problem.n, problem.n_kv, problem.group, problem.ahead, problem.scale)
    return out


def attention_mma(
    q: AnyArray, k: AnyArray, v: AnyArray, *, causal: bool = False, scale: float | None = None
) -> AnyArray:
    """Attention by `mma.sync`, fed by `cp.async` and `ldmatrix` (from sm_80 on).

    Args:
        q: queries; n is any.
        k: keys; n_kv is any, with `causal` at least n.
        v: values.
        causal: whether a query sees no keys behind its own, the last query's being the last key.
        scale: of the scores, above 0; 1 / √d where None.

    Raises:
        ArgumentError: where the arrays do not fit.
    """
    problem = Attention.of("attention_mma", q, k, v, causal, scale)
    out = output(q, problem.shape, problem.dtype)
    grid = blocks(problem.n, 64), problem.batch * problem.heads
    shared_bytes = 3 * 64 * problem.d * 2  # a tile each of q, k and v
    bound = kernel("attention_mma.cu", f"attention_mma{_template(problem)}", AMPERE)[grid, 128, shared_bytes]
    bound(q, k, v, out, *_numbers(problem))
    return out


def attention_wgmma(
    q: AnyArray, k: AnyArray, v: AnyArray, *, causal: bool = False, scale: float | None = None
) -> AnyArray:
    """Attention by `wgmma`, fed by a warp that has tiles copied by TMA (sm_90a).

    Args:
        q: queries; n is any.
        k: keys; n_kv is any, with `causal` at least n.
        v: values.
        causal: whether a query sees no keys behind its own, the last query's being the last key.
        scale: of the scores, above 0; 1 / √d where None.

    Raises:
        ArgumentError: where the arrays do not fit.
    """
    problem = Attention.of("attention_wgmma", q, k, v, causal, scale)
    out = output(q, problem.shape, problem.dtype)
    grid = blocks(problem.n, 128), problem.batch * problem.heads
    shared_bytes = 5 * 128 * problem.d * 2 + _BARRIERS_BYTES  # a tile of q, four of k and v
    bound = kernel("attention_wgmma.cu", f"attention_wgmma{_template(problem)}", HOPPER)[grid, 384, shared_bytes]
    bound(*map(_map_of_heads, (q, k, v)), out, *_numbers(problem))
    return out


def _template(problem: Attention) -> str:
    """The template's arguments."""
    return f"<{CPP[problem.dtype]}, {problem.d}>"


def _numbers(problem: Attention) -> tuple[int, int, int, int, float]:
    """The kernels' last parameters; their scale is that of powers of two."""
    return problem.n, problem.n_kv, problem.group, problem.ahead, problem.scale * math.log2(math.e)


def _map_of_heads(array: AnyArray) -> TensorMap:
    """Boxes of 128 rows of one head, 128 bytes wide; rows behind a head's last are zeros, not the next head's."""
    batch, heads, n, d = array.shape
    return tensor_map(array.reshape(batch * heads, n, d), (1, 128, 64), swizzle="128B")
