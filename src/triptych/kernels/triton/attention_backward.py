"""Attention's gradients, from the output and each row's sum: scores are made again, a tile at a time, never kept.

With p = softmax(q kᵀ · scale), the rows' dots δ = Σ grad_out · out, and ds = p · (grad_out vᵀ − δ):
grad_v = pᵀ grad_out, grad_k = dsᵀ q · scale, grad_q = ds k · scale.

- Tiling: one kernel has a block of keys and walks through queries, another a block of queries and walks through keys.
  Scores are made twice so that every sum has one owner: no atomics, and the same bits in every run.
- Memory hierarchy: what a program owns, and its two or one sums, stay in registers; what it walks through goes through
  shared memory.
- Mapping: (block of keys, head of k) to a program, which walks through all heads of q that share it; (block of
  queries, head of q) to one of the other.
- Overlap: the walks' copies are pipelined.
"""

# pyright: basic, reportArgumentType=false, reportGeneralTypeIssues=false
# ruff: noqa: ANN001, ANN201
# Triton's language exists inside kernels only: its operators have no types that Python knows.

from __future__ import annotations

import math

import triton
import triton.language as tl

from triptych.kernels.arrays import AnyArray, output
from triptych.kernels.problems import HALVES, Attention, arguments
from triptych.kernels.triton.attention import LENGTHS, keys_seen
from triptych.kernels.triton.machine import machine
from triptych.kernels.triton.matmul import matrix_tile, store_tile

TILE = {"BLOCK_M": 64, "BLOCK_N": 64}
OPTIONS = {"num_warps": 4, "num_stages": 2}
ROWS = 64
"""Rows that a program of `dots_kernel` has."""


@triton.jit(do_not_specialize=["rows"])
def dots_kernel(out, grad_out, dots, rows, ROWS: tl.constexpr, D: tl.constexpr):
    """δ of ROWS rows of all heads."""
    places, features = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, D)
    products = matrix_tile(out, places, features, rows, D).to(tl.float32) * matrix_tile(
        grad_out, places, features, rows, D
    )
    tl.store(dots + places, tl.sum(products, 1), mask=places < rows)


@triton.jit
def tile_gradient(q, k, v, grad_out, log_sums, dots, seen, places, scale):
    """P and ds of a tile of scores (BLOCK_M queries × BLOCK_N keys)."""
    scores = tl.dot(q, tl.trans(k)) * scale
    p = tl.exp2(tl.where(places[None, :] < seen[:, None], scores - log_sums[:, None], float("-inf")))
    return p, p * (tl.dot(grad_out, tl.trans(v)) - dots[:, None])


@triton.jit(do_not_specialize=LENGTHS)
def keys_gradient_kernel(
    q, k, v, grad_out, log_sums, dots, grad_k, grad_v, n, n_kv, group, ahead, scale, factor,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """grad_k and grad_v of a block of keys."""
    head = tl.program_id(1).to(tl.int64)
    first = tl.program_id(0) * BLOCK_N
    places, features = first + tl.arange(0, BLOCK_N), tl.arange(0, D)
    keys = matrix_tile(k + head * n_kv * D, places, features, n_kv, D)
    values = matrix_tile(v + head * n_kv * D, places, features, n_kv, D)
    sum_k, sum_v = tl.zeros((BLOCK_N, D), tl.float32), tl.zeros((BLOCK_N, D), tl.float32)
    for member in range(group):
        mine = head * group + member
        for start in range(tl.maximum(first - ahead, 0) // BLOCK_M * BLOCK_M, n, BLOCK_M):  # the first to see a key on
            rows = start + tl.arange(0, BLOCK_M)
            queries = matrix_tile(q + mine * n * D, rows, features, n, D)
            grads = matrix_tile(grad_out + mine * n * D, rows, features, n, D)
            sums = tl.load(log_sums + mine * n + rows, mask=rows < n, other=float("inf"))  # so that p is 0 there
            deltas = tl.load(dots + mine * n + rows, mask=rows < n, other=0.0)
            seen = keys_seen(rows, n_kv, ahead)
            p, ds = tile_gradient(queries, keys, values, grads, sums, deltas, seen, places, scale)
            sum_v = tl.dot(tl.trans(p.to(grads.dtype)), grads, sum_v)
            sum_k = tl.dot(tl.trans(ds.to(queries.dtype)), queries, sum_k)
    store_tile(grad_k + head * n_kv * D, sum_k * factor, places, features, n_kv, D)
    store_tile(grad_v + head * n_kv * D, sum_v, places, features, n_kv, D)


@triton.jit(do_not_specialize=LENGTHS)
def queries_gradient_kernel(
    q, k, v, grad_out, log_sums, dots, grad_q, n, n_kv, group, ahead, scale, factor,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """grad_q of a block of queries."""
    head = tl.program_id(1).to(tl.int64)
    k, v = k + head // group * n_kv * D, v + head // group * n_kv * D
    first = tl.program_id(0) * BLOCK_M
    rows, features = first + tl.arange(0, BLOCK_M), tl.arange(0, D)
    queries = matrix_tile(q + head * n * D, rows, features, n, D)
    grads = matrix_tile(grad_out + head * n * D, rows, features, n, D)
    sums = tl.load(log_sums + head * n + rows, mask=rows < n, other=float("inf"))
    deltas = tl.load(dots + head * n + rows, mask=rows < n, other=0.0)
    seen = keys_seen(rows, n_kv, ahead)
    total = tl.zeros((BLOCK_M, D), tl.float32)
    for start in range(0, keys_seen(first + BLOCK_M - 1, n_kv, ahead), BLOCK_N):
        places = start + tl.arange(0, BLOCK_N)
        keys = matrix_tile(k, places, features, n_kv, D)
        values = matrix_tile(v, places, features, n_kv, D)
        _, ds = tile_gradient(queries, keys, values, grads, sums, deltas, seen, places, scale)
        total = tl.dot(ds.to(keys.dtype), keys, total)
    store_tile(grad_q + head * n * D, total * factor, rows, features, n, D)


def attention_backward(
    grad_out: AnyArray, q: AnyArray, k: AnyArray, v: AnyArray, out: AnyArray, log_sums: AnyArray, *,
    causal: bool = False, scale: float | None = None,
) -> tuple[AnyArray, AnyArray, AnyArray]:  # fmt: skip
    """The gradients of q, k and v.

    Args:
        grad_out: the output's gradient, of the shape and element type that `q` has, dense.
        q: as `attention_forward` got it; k, v, causal and scale too.
        k: keys.
        v: values.
        out: what `attention_forward` returned, and `log_sums` too.
        log_sums: each row's.
        causal: whether a query sees no keys behind its own.
        scale: of the scores; 1 / √d where None.

    Returns:
        The three gradients, each of its array's shape, of the element type and kind that `q` is.

    Raises:
        ArgumentError: where the arrays do not fit.
    """
    problem = Attention.of("attention_backward", q, k, v, causal, scale)
    arguments("attention_backward", HALVES, grad_out=grad_out, q=q, k=k, v=v, out=out, log_sums=log_sums)
    dots = output(q, problem.shape[:3], "f32")
    grad_q, grad_k, grad_v = (output(q, array.shape, problem.dtype) for array in (q, k, v))
    rows = problem.batch * problem.heads * problem.n
    numbers = (
        problem.n, problem.n_kv, problem.group, problem.ahead, problem.scale * math.log2(math.e), problem.scale
    )  # fmt: skip
    by_keys = triton.cdiv(problem.n_kv, TILE["BLOCK_N"]), problem.batch * problem.heads_kv
    by_queries = triton.cdiv(problem.n, TILE["BLOCK_M"]), problem.batch * problem.heads
    given = q, k, v, grad_out, log_sums, dots
    with machine():
        dots_kernel[(triton.cdiv(rows, ROWS),)](out, grad_out, dots, rows, ROWS=ROWS, D=problem.d)
        keys_gradient_kernel[by_keys](*given, grad_k, grad_v, *numbers, D=problem.d, **TILE, **OPTIONS)
        queries_gradient_kernel[by_queries](*given, grad_q, *numbers, D=problem.d, **TILE, **OPTIONS)
    return grad_q, grad_k, grad_v
