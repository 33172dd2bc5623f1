"""Pairs of elements half a head apart, turned by their token's angles: y₁ = x₁ cos - x₂ sin, y₂ = x₂ cos + x₁ sin.

- Tiling: 128 tokens to the partitions, whole heads.
- Memory hierarchy: x comes and goes once; a token's cosines and sines come once for all its heads.
- Mapping: the Vector engine multiplies by cosines and adds up, GPSIMD multiplies by sines; angles meet all heads by a
  view that repeats them. No element changes its partition.
- Overlap: both engines are busy, with different products, while the DMA queues bring the next tokens.
"""

# pyright: basic
# ruff: noqa: ANN001, ANN201
# NKI's tensors exist while a kernel is traced only.

from __future__ import annotations

from triptych.kernels.nki.tiles import PARTITIONS, cuts, length, loaded, sbuf
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki


def turned(dst, kept, other, cosines, sines, op):
    """dst = kept · cos op other · sin."""
    left, right = sbuf(dst.shape), sbuf(dst.shape)
    nisa.tensor_tensor(dst=left, data1=kept, data2=cosines, op=nl.multiply)
    nisa.tensor_tensor(dst=right, data1=other, data2=sines, op=nl.multiply, engine=nisa.gpsimd_engine)
    nisa.tensor_tensor(dst=dst, data1=left, data2=right, op=op)


@nki.jit
def rope(x, cos, sin):
    """X, (tokens, heads, d), turned; cos and sin are (tokens, d / 2) of f32."""
    tokens, heads, d = x.shape
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    first, second = slice(0, d // 2), slice(d // 2, d)
    for rows in cuts(tokens, PARTITIONS):
        tile, made = loaded(x[rows, :, :]), sbuf((length(rows), heads, d), y.dtype)
        cosines, sines = (
            loaded(one[rows, :]).reshape((length(rows), 1, d // 2)).broadcast_to((length(rows), heads, d // 2))
            for one in (cos, sin)
        )
        lower, upper = tile[:, :, first], tile[:, :, second]
        turned(made[:, :, first], lower, upper, cosines, sines, nl.subtract)
        turned(made[:, :, second], upper, lower, cosines, sines, nl.add)
        nisa.dma_copy(dst=y[rows, :, :], src=made)
    return y
