"""Pairs of elements half a head apart, turned by their token's angles: y₁ = x₁ cos - x₂ sin, y₂ = x₂ cos + x₁ sin.

- Tiling: a program takes a token, BLOCK_H heads of it, whole heads.
- Memory hierarchy: x is read and written once; the angles' cosines and sines once for BLOCK_H heads, in registers.
- Mapping: neighbouring lanes take neighbouring pairs, so that both halves of a head are read as rows.
- Overlap: all loads are under way before the first product; a multiprocessor's other programs hide the rest.
"""

# pyright: basic, reportArgumentType=false, reportGeneralTypeIssues=false
# ruff: noqa: ANN001, ANN201
# Triton's language exists inside kernels only: its operators have no types that Python knows.

from __future__ import annotations

import triton
import triton.language as tl

from triptych.kernels.arrays import AnyArray, output
from triptych.kernels.problems import arguments
from triptych.kernels.triton.machine import machine

BLOCK_H = 16


@triton.jit
def rope_kernel(x, cos, sin, y, heads, d, BLOCK_H: tl.constexpr, BLOCK_D: tl.constexpr):
    """BLOCK_H heads of a token a program; BLOCK_D pairs hold those of a head."""
    token, half = tl.program_id(0).to(tl.int64), d // 2
    head, column = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H), tl.arange(0, BLOCK_D)
    places = token * heads * d + head[:, None] * d + column[None, :]
    inside = (head[:, None] < heads) & (column[None, :] < half)
    first = tl.load(x + places, mask=inside).to(tl.float32)
    second = tl.load(x + places + half, mask=inside).to(tl.float32)
    cosine = tl.load(cos + token * half + column, mask=column < half)[None, :]
    sine = tl.load(sin + token * half + column, mask=column < half)[None, :]
    tl.store(y + places, first * cosine - second * sine, mask=inside)
    tl.store(y + places + half, second * cosine + first * sine, mask=inside)


def rope(x: AnyArray, cos: AnyArray, sin: AnyArray) -> AnyArray:
    """X, turned: `(tokens, heads, d)` of f32, f16 or bf16; cos and sin are `(tokens, d / 2)` of f32; all dense.

    Raises:
        ArgumentError: where the arrays do not fit.
    """
    axes, dtype = arguments("rope", x=x, cos=cos, sin=sin)
    tokens, heads, d = axes["tokens"], axes["heads"], axes["d"]
    y = output(x, tuple(x.shape), dtype)
    tile = {"BLOCK_H": min(BLOCK_H, triton.next_power_of_2(heads)), "BLOCK_D": triton.next_power_of_2(d // 2)}
    with machine():
        rope_kernel[(tokens, triton.cdiv(heads, tile["BLOCK_H"]))](x, cos, sin, y, heads, d, **tile)
    return y
