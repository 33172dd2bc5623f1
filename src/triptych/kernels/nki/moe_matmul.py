"""A layer of experts: each token times the matrices of its experts, weighted and summed up.

- Tiling: 128 tokens of one expert to the partitions, MOVING columns of its matrix at a time.
- Memory hierarchy: tokens are gathered from HBM by DMA with an index for each partition, and so are the rows of the
  expert's matrix, whose number is known only when the kernel runs; products go to HBM by slots, in order.
- Mapping: the host sorts pairs of token and expert into slots, blocks of 128 for one expert each; the Tensor engine
  mirrors tokens and multiplies; a second pass gathers each token's products again and the Vector engine weighs them, so
  that no sum has two writers and an order.
- Overlap: blocks do not depend on each other: one is multiplied while the next one is gathered.
"""

# pyright: basic
# ruff: noqa: ANN001, ANN201
# NKI's tensors exist while a kernel is traced only.

from __future__ import annotations

import numpy as np

from triptych.kernels.arrays import AnyArray
from triptych.kernels.nki.matmul import MOVING
from triptych.kernels.nki.tiles import COLUMNS, PARTITIONS, cuts, length, loaded, mirrored, psum, sbuf
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki


def gathered(source, indices, columns):
    """[rows, …] in SBUF: these columns of the rows of a matrix in HBM that a tile [rows, 1] of indices names."""
    tile = sbuf((indices.shape[0], length(columns)), source.dtype)
    pattern = [[source.shape[1], indices.shape[0]], [1, length(columns)]]
    rows = source.ap(pattern=pattern, offset=columns.start, vector_offset=indices, indirect_dim=0)
    nisa.dma_copy(dst=tile, src=rows)
    return tile


@nki.jit
def moe_matmul_kernel(x, w, tokens, rows, places, weights):
    """The layer's output (tokens, n), of x, (tokens, d), and w, (experts * d, n).

    `tokens`, (blocks, 128), has each slot's token; `rows`, (blocks, d), the rows of w that are the block's expert's;
    `places`, (tokens, top_k), each pair's slot; `weights`, (tokens, top_k), its share.
    """
    (count, d), n, (blocks, _) = x.shape, w.shape[1], tokens.shape
    y = nl.ndarray((count, n), dtype=x.dtype, buffer=nl.shared_hbm)
    products = nl.ndarray((blocks * PARTITIONS, n), dtype=nl.float32, buffer=nl.hbm)
    for block in range(blocks):
        own = loaded(tokens[block].expand_dim(1))
        left = [mirrored(gathered(x, own, inner)) for inner in cuts(d, PARTITIONS)]
        places_of_rows = [loaded(rows[block, inner].expand_dim(1)) for inner in cuts(d, PARTITIONS)]
        for columns in cuts(n, MOVING):
            sums, made = psum((PARTITIONS, length(columns))), sbuf((PARTITIONS, length(columns)))
            for stationary, indices in zip(left, places_of_rows, strict=True):
                nisa.nc_matmul(dst=sums, stationary=stationary, moving=gathered(w, indices, columns))
            nisa.tensor_copy(dst=made, src=sums)
            nisa.dma_copy(dst=products[block * PARTITIONS : (block + 1) * PARTITIONS, columns], src=made)
    for cut in cuts(count, PARTITIONS):
        shares, slots = loaded(weights[cut, :]), loaded(places[cut, :])
        for columns in cuts(n, COLUMNS):
            total, made = sbuf((length(cut), length(columns))), sbuf((length(cut), length(columns)), y.dtype)
            nisa.memset(dst=total, value=0.0)
            for pair in range(places.shape[1]):
                product = gathered(products, slots[:, pair : pair + 1], columns)
                nisa.scalar_tensor_tensor(
                    dst=total, data=product, op0=nl.multiply, operand0=shares[:, pair : pair + 1],
                    op1=nl.add, operand1=total,
                )  # fmt: skip
            nisa.tensor_copy(dst=made, src=total)
            nisa.dma_copy(dst=y[cut, columns], src=made)
    return y


def moe_matmul(x: AnyArray, w: AnyArray, chosen: AnyArray, weights: AnyArray) -> AnyArray:
    """y[t] = Σ_j weights[t, j] (x[t] × w[chosen[t, j]]).

    Args:
        x: tokens, `(tokens, d)`.
        w: the experts' matrices, `(experts, d, n)`, of x's element type.
        chosen: each token's experts, `(tokens, top_k)`, integers.
        weights: each expert's share, `(tokens, top_k)`, f32.
    """
    w, chosen = np.asarray(w), np.asarray(chosen)
    experts, d, n = w.shape
    order = np.argsort(chosen, axis=None, kind="stable")
    tokens, of_blocks, slots = [], [], np.empty(chosen.size, np.uint32)
    for expert in range(experts):
        mine = order[chosen.reshape(-1)[order] == expert]
        for cut in cuts(len(mine), PARTITIONS):
            pairs = mine[cut]
            slots[pairs] = PARTITIONS * len(tokens) + np.arange(len(pairs), dtype=np.uint32)
            tokens.append(np.pad(pairs // chosen.shape[1], (0, PARTITIONS - len(pairs))))  # by token 0: nobody reads it
            of_blocks.append(expert)
    rows = d * np.array(of_blocks)[:, None] + np.arange(d)
    return moe_matmul_kernel(
        x, w.reshape(experts * d, n), np.array(tokens, np.uint32), rows.astype(np.uint32),
        slots.reshape(chosen.shape), weights,
    )  # fmt: skip
