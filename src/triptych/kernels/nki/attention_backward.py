"""Attention's gradients, from the output and each row's sum: scores are made again, a tile at a time, never kept.

With p = softmax(q kᵀ · scale), the rows' dots δ = Σ grad_out · out, and ds = p · (grad_out vᵀ - δ):
grad_v = pᵀ grad_out, grad_k = dsᵀ q · scale, grad_q = ds k · scale.

- Tiling: 128 queries to the partitions, and 128 keys at a time.
- Memory hierarchy: a head's keys and values come once, as rows and mirrored, and their two sums stay in SBUF, in f32,
  for all queries of all heads that share them; a tile of queries has its sum in PSUM.
- Mapping: queries along the partitions are what sums over queries want: p and ds go into the products for grad_v and
  grad_k as they are; only grad_q, a sum over keys, has ds mirrored.
- Overlap: of five products for a tile the Tensor engine makes the first two while the Vector and the Scalar engine make
  p and ds of the tile before.
"""

# pyright: basic
# ruff: noqa: ANN001, ANN201, ANN204
# NKI's tensors exist while a kernel is traced only.

from __future__ import annotations

import math

from triptych.kernels.nki.attention import scores_of, transposed_rows
from triptych.kernels.nki.tiles import PARTITIONS, cuts, length, loaded, mirrored, psum, sbuf
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki


class SharedHead:
    """Keys and values of a head, as rows and mirrored, and the sums of their gradients."""

    def __init__(self, k, v):
        """Of k and v in HBM, (n_kv, d)."""
        n_kv, d = k.shape
        self.places = cuts(n_kv, PARTITIONS)
        self.keys, self.values = transposed_rows(k, n_kv), transposed_rows(v, n_kv)
        self.rows = [loaded(k[cut, :]) for cut in self.places]
        self.sums_k, self.sums_v = ([sbuf((length(cut), d)) for cut in self.places] for _ in range(2))
        for tile in (*self.sums_k, *self.sums_v):
            nisa.memset(dst=tile, value=0.0)


class QueryTile:
    """A tile of queries: rows and mirrored rows of q and of grad_out, δ, and logarithms of sums, negated."""

    def __init__(self, q, grad_out, out, log_sums):
        """Of rows in HBM, (rows, d), and log_sums, (rows,)."""
        column = (q.shape[0], 1)
        self.q, self.grads = loaded(q), loaded(grad_out)
        self.queries, self.turned = mirrored(self.q), mirrored(self.grads)
        self.dots, self.logs, products = sbuf(column), sbuf(column), sbuf(q.shape)
        nisa.tensor_tensor(dst=products, data1=self.grads, data2=loaded(out), op=nl.multiply)
        nisa.tensor_reduce(dst=self.dots, op=nl.add, data=products, axis=1)
        nisa.tensor_scalar(
            dst=self.logs, data=loaded(log_sums.expand_dim(1)), op0=nl.multiply, operand0=-math.log(2)
        )  # fmt: skip


def add_product(total, stationary, moving):
    """Total += stationaryᵀ × moving, in SBUF."""
    product = psum(total.shape)
    nisa.nc_matmul(dst=product, stationary=stationary, moving=moving)
    nisa.tensor_tensor(dst=total, data1=total, data2=product, op=nl.add)


def take(head, tile, rows, ahead, scale):
    """Adds a tile of queries to the sums of the head's keys and values; its own sum, in PSUM."""
    total, dtype = psum(tile.q.shape), tile.q.dtype
    for at, cut in enumerate(cuts(min(head.keys.shape[1], rows.stop + ahead), PARTITIONS)):
        here, shape = slice(0, length(cut)), (length(rows), length(cut))
        p, rounded, ds, products = sbuf(shape), sbuf(shape, dtype), sbuf(shape, dtype), psum(shape)
        scores = scores_of(tile.queries, head.keys, rows, cut, ahead, scale)
        nisa.activation(dst=p, op=nl.exp, data=scores, bias=tile.logs)
        nisa.tensor_copy(dst=rounded, src=p)
        nisa.nc_matmul(dst=products, stationary=tile.turned, moving=head.values[:, cut])
        nisa.scalar_tensor_tensor(
            dst=ds, data=products, op0=nl.subtract, operand0=tile.dots, op1=nl.multiply, operand1=p
        )  # fmt: skip
        add_product(head.sums_v[at][here, :], rounded, tile.grads)
        add_product(head.sums_k[at][here, :], ds, tile.q)
        nisa.nc_matmul(dst=total, stationary=mirrored(ds), moving=head.rows[at][here, :])
    return total


def stored(target, sums, scale=1.0):
    """Sums go to HBM, scaled, in its dtype."""
    made = sbuf(sums.shape, target.dtype)
    nisa.activation(dst=made, op=nl.copy, data=sums, scale=scale)
    nisa.dma_copy(dst=target, src=made)


@nki.jit
def attention_backward(grad_out, q, k, v, out, log_sums, causal=False, scale=None):
    """The gradients of q, k and v; q, k, v, causal and scale as `attention_forward` got them, which made the rest."""
    (batch, heads, n, d), (heads_kv, n_kv) = q.shape, k.shape[1:3]
    grads = [nl.ndarray(one.shape, dtype=q.dtype, buffer=nl.shared_hbm) for one in (q, k, v)]
    scale, ahead = 1 / math.sqrt(d) if scale is None else scale, n_kv - n if causal else n_kv
    for b in range(batch):
        for shared in range(heads_kv):
            head = SharedHead(k[b, shared], v[b, shared])
            for own in range(shared * heads // heads_kv, (shared + 1) * heads // heads_kv):
                for rows in cuts(n, PARTITIONS):
                    rows_of = [one[b, own, rows, :] for one in (q, grad_out, out)]
                    tile = QueryTile(rows_of[0], rows_of[1], rows_of[2], log_sums[b, own, rows])
                    total = take(head, tile, rows, ahead, scale)
                    stored(grads[0][b, own, rows, :], total, scale)
            for cut, sums_k, sums_v in zip(head.places, head.sums_k, head.sums_v, strict=True):
                stored(grads[1][b, shared, cut, :], sums_k, scale)
                stored(grads[2][b, shared, cut, :], sums_v)
    return tuple(grads)
