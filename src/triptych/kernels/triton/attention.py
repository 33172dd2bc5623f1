"""Attention without a matrix of scores: softmax(q kᵀ · scale) v in one pass over the keys (FlashAttention's forward).

- Tiling: a program has BLOCK_M queries of one head, all d columns wide, and takes BLOCK_N keys and values at a time.
- Memory hierarchy: queries, sums and the softmax's state (largest score and sum of each row) stay in registers; keys
  and values go through shared memory; scores exist a tile at a time. Global memory sees q, k, v and the output once
  for each program that needs them.
- Mapping: (block of queries, head) to a program; heads that share keys and values are neighbours and find them in L2.
- Overlap: the loop's copies are pipelined; the tiles that need no mask are a loop of their own, without its cost.
"""

# pyright: basic, reportArgumentType=false, reportGeneralTypeIssues=false
# ruff: noqa: ANN001, ANN201
# Triton's language exists inside kernels only: its operators have no types that Python knows.

from __future__ import annotations

import math

import triton
import triton.language as tl

from triptych.kernels.arrays import AnyArray, output
from triptych.kernels.problems import Attention
from triptych.kernels.triton.machine import machine
from triptych.kernels.triton.matmul import matrix_tile, store_tile

TILE = {"BLOCK_M": 64, "BLOCK_N": 64}
OPTIONS = {"num_warps": 4, "num_stages": 2}
LENGTHS = ["n", "n_kv", "group", "ahead"]
"""Triton would compile once more for each that is 1 or a multiple of 16, and gain nothing: rows have D elements."""


@triton.jit
def keys_seen(rows, n_kv, ahead):
    """How many keys each query sees: all, or with a causal mask those up to its own."""
    return tl.minimum(n_kv, rows + ahead + 1)


@triton.jit
def attend(
    state, q, k, v, seen, first, last, n_kv, scale, MASKED: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr
):  # fmt: skip
    """Takes the keys first … last - 1 into the state of each row: the output so far, largest score, sum of powers."""
    total, most, weight = state
    features = tl.arange(0, D)
    for start in range(first, last, BLOCK_N):
        places = start + tl.arange(0, BLOCK_N)
        scores = tl.dot(q, tl.trans(matrix_tile(k, places, features, n_kv, D))) * scale
        if MASKED:
            scores = tl.where(places[None, :] < seen[:, None], scores, float("-inf"))
        largest = tl.maximum(most, tl.max(scores, 1))
        powers = tl.exp2(scores - largest[:, None])
        kept = tl.exp2(most - largest)
        weight = weight * kept + tl.sum(powers, 1)
        values = matrix_tile(v, places, features, n_kv, D)
        total = tl.dot(powers.to(values.dtype), values, total * kept[:, None])
        most = largest
    return total, most, weight


@triton.jit(do_not_specialize=LENGTHS)
def attention_kernel(
    q, k, v, out, log_sums, n, n_kv, group, ahead, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """A block of queries of a head; `scale` is for powers of two."""
    head = tl.program_id(1).to(tl.int64)
    q, out, log_sums = q + head * n * D, out + head * n * D, log_sums + head * n
    k, v = k + head // group * n_kv * D, v + head // group * n_kv * D
    first = tl.program_id(0) * BLOCK_M
    rows, features = first + tl.arange(0, BLOCK_M), tl.arange(0, D)
    queries = matrix_tile(q, rows, features, n, D)
    state = (
        tl.zeros((BLOCK_M, D), tl.float32),
        tl.full((BLOCK_M,), float("-inf"), tl.float32),
        tl.zeros((BLOCK_M,), tl.float32),
    )
    seen = keys_seen(rows, n_kv, ahead)
    seen_by_all, seen_by_any = keys_seen(first, n_kv, ahead), keys_seen(first + BLOCK_M - 1, n_kv, ahead)
    whole = seen_by_all // BLOCK_N * BLOCK_N
    state = attend(state, queries, k, v, seen, 0, whole, n_kv, scale, False, BLOCK_N, D)
    total, most, weight = attend(state, queries, k, v, seen, whole, seen_by_any, n_kv, scale, True, BLOCK_N, D)
    store_tile(out, total / weight[:, None], rows, features, n, D)
    tl.store(log_sums + rows, most + tl.log2(weight), mask=rows < n)


def attention_forward(
    q: AnyArray,
    k: AnyArray,
    v: AnyArray,
    *,
    causal: bool = False,
    scale: float | None = None,
    queries: int | None = None,
) -> tuple[AnyArray, AnyArray]:
    """Attention, and what `attention_backward` needs of it.

    Args:
        q: queries, `(batch, heads, n, d)`, f16 or bf16, dense; d is 64 or 128.
        k: keys, `(batch, heads_kv, n_kv, d)`; neighbouring heads of q share one of k and v. With `causal`, n_kv is at
            least n.
        v: values, like k.
        causal: whether a query sees no keys behind its own, the last query's being the last key.
        scale: of the scores, above 0; 1 / √d where None.
        queries: how many a program takes, a power of two from 16 on; TILE's where None. Keys and values come once
            for each program.

    Returns:
        The output, of the shape, element type and kind that `q` is, and of each row of scores the logarithm to the
        base 2 of the sum of its exponentials, `(batch, heads, n)`, f32.

    Raises:
        ArgumentError: where the arrays do not fit.
    """
    problem = Attention.of("attention", q, k, v, causal, scale)
    out, log_sums = output(q, problem.shape, problem.dtype), output(q, problem.shape[:3], "f32")
    tile = {**TILE, "BLOCK_M": queries or TILE["BLOCK_M"]}
    grid = triton.cdiv(problem.n, tile["BLOCK_M"]), problem.batch * problem.heads
    with machine():
        attention_kernel[grid](
            q, k, v, out, log_sums, problem.n, problem.n_kv, problem.group, problem.ahead,
            problem.scale * math.log2(math.e), D=problem.d, **tile, **OPTIONS,
        )  # fmt: skip
    return out, log_sums


def attention(
    q: AnyArray, k: AnyArray, v: AnyArray, *, causal: bool = False, scale: float | None = None
) -> AnyArray:  # fmt: skip
    """The output alone of `attention_forward`.

    Raises:
        ArgumentError: where the arrays do not fit.
    """
    return attention_forward(q, k, v, causal=causal, scale=scale)[0]
