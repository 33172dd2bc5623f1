"""Kernels around `tl.dot`."""

# Triton's language and host side have no types: kernels are `Any` here.
# ruff: noqa: ANN001, ANN201
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false, reportUnknownArgumentType=false, reportUntypedFunctionDecorator=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportInvalidTypeForm=false

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

jit: Any = triton.jit


@jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SUMS: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=SUMS)
    for start in range(0, K, BK):
        inner = start + tl.arange(0, BK)
        left = tl.load(
            a + rows[:, None] * K + inner[None, :], mask=(rows[:, None] < M) & (inner[None, :] < K), other=0.0
        )
        right = tl.load(
            b + inner[:, None] * N + columns[None, :], mask=(inner[:, None] < K) & (columns[None, :] < N), other=0.0
        )
        total = tl.dot(left, right, total, out_dtype=SUMS)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * N + columns[None, :], total, mask=mask)


@jit
def attention(q, k, v, out, LENGTH, scale, BLOCK: tl.constexpr, DEPTH: tl.constexpr):
    """A block of queries against all keys, with a running maximum and sum: softmax(q kᵀ · scale) v."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    features = tl.arange(0, DEPTH)
    queries = tl.load(q + rows[:, None] * DEPTH + features[None, :], mask=rows[:, None] < LENGTH, other=0.0)
    largest = tl.full([BLOCK], -float("inf"), tl.float32)
    weight = tl.zeros([BLOCK], dtype=tl.float32)
    total = tl.zeros([BLOCK, DEPTH], dtype=tl.float32)
    for start in range(0, LENGTH, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        place = columns[:, None] * DEPTH + features[None, :]
        keys = tl.load(k + place, mask=columns[:, None] < LENGTH, other=0.0)
        scores = tl.where(columns[None, :] < LENGTH, tl.dot(queries, tl.trans(keys)) * scale, -float("inf"))
        following = tl.maximum(largest, tl.max(scores, 1))
        powers = tl.exp(scores - following[:, None])
        kept = tl.exp(largest - following)
        weight = weight * kept + tl.sum(powers, 1)
        values = tl.load(v + place, mask=columns[:, None] < LENGTH, other=0.0)
        total = tl.dot(powers.to(values.dtype), values, total * kept[:, None])
        largest = following
    total = total / weight[:, None]
    tl.store(out + rows[:, None] * DEPTH + features[None, :], total.to(tl.float16), mask=rows[:, None] < LENGTH)
