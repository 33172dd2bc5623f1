"""Attention without a matrix of scores in HBM (FlashAttention's forward pass).

- Tiling: 128 queries of a head to the partitions, all d columns wide; KEYS keys at a time, their values 128 at a time.
- Memory hierarchy: a tile of scores lives in PSUM, its exponentials in SBUF, and neither reaches HBM; the output so
  far, each row's largest score and sum stay in SBUF; keys and values of a head come once and stay for all its queries.
- Mapping: the Tensor engine multiplies, and mirrors what it must sum over: queries and keys along d, exponentials along
  keys. The Scalar engine scales, subtracts the maximum, takes exponentials and sums them up in one instruction; the
  Vector engine finds maxima and carries the output along; GPSIMD hides the keys behind the diagonal.
- Overlap: tiles of queries do not depend on each other: one's exponentials are taken while another is multiplied.
"""

# pyright: basic
# ruff: noqa: ANN001, ANN201, ANN204
# NKI's tensors exist while a kernel is traced only.

from __future__ import annotations

import math

from triptych.kernels.arrays import AnyArray
from triptych.kernels.nki.tiles import PARTITIONS, cuts, length, loaded, mirror_into, mirrored, psum, sbuf
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki

KEYS = 512
"""Scores of a row that a bank of PSUM holds."""
LOWEST = -1e30
"""Hides a score: its exponential is 0, below whatever maximum."""


def transposed_rows(rows, size):
    """[d, n] in SBUF of n rows of d elements in HBM."""
    made = sbuf((rows.shape[1], size), rows.dtype)
    for cut in cuts(size, PARTITIONS):
        mirror_into(made[:, cut], loaded(rows[cut, :]))
    return made


def scores_of(queries, keys, rows, cut, ahead, scale):
    """Scores, scaled, of the queries [d, rows] of these rows and of keys [d, …]; those `ahead` of a row are hidden."""
    products, scores = psum((length(rows), length(cut))), sbuf((length(rows), length(cut)))
    nisa.nc_matmul(dst=products, stationary=queries, moving=keys[:, cut])
    nisa.activation(dst=scores, op=nl.copy, data=products, scale=scale)
    if cut.stop - 1 > rows.start + ahead:  # row + ahead - column ≥ 0 is seen
        hidden = sbuf(scores.shape)
        nisa.affine_select(
            dst=hidden, pattern=[[-1, length(cut)]], channel_multiplier=1, offset=rows.start + ahead - cut.start,
            on_true_tile=scores, on_false_value=LOWEST, cmp_op=nl.greater_equal,
        )  # fmt: skip
        return hidden
    return scores


class RowState:
    """What an online softmax carries along for each row: the output so far, largest score and sum of exponentials."""

    def __init__(self, count, d):
        """Of no keys."""
        self.total, self.most, self.weight = sbuf((count, d)), sbuf((count, 1)), sbuf((count, 1))
        nisa.memset(dst=self.total, value=0.0)
        nisa.memset(dst=self.most, value=LOWEST)
        nisa.memset(dst=self.weight, value=0.0)

    def take(self, scores, values):
        """Takes a tile of scores, and the values [128, d] of each 128 of its keys."""
        count = (scores.shape[0], 1)
        largest, negated, kept, sums = (sbuf(count) for _ in range(4))
        nisa.tensor_reduce(dst=largest, op=nl.maximum, data=scores, axis=1)
        nisa.tensor_tensor(dst=largest, data1=largest, data2=self.most, op=nl.maximum)
        nisa.tensor_scalar(dst=negated, data=largest, op0=nl.multiply, operand0=-1.0)
        nisa.activation(dst=kept, op=nl.exp, data=self.most, bias=negated)
        powers = sbuf(scores.shape, values[0].dtype)
        nisa.activation_reduce(dst=powers, op=nl.exp, data=scores, bias=negated, reduce_op=nl.add, reduce_res=sums)
        nisa.scalar_tensor_tensor(
            dst=self.weight, data=self.weight, op0=nl.multiply, operand0=kept, op1=nl.add, operand1=sums
        )  # fmt: skip
        products = psum(self.total.shape)
        for cut, value in zip(cuts(scores.shape[1], PARTITIONS), values, strict=True):
            nisa.nc_matmul(dst=products, stationary=mirrored(powers[:, cut]), moving=value)
        nisa.scalar_tensor_tensor(
            dst=self.total, data=self.total, op0=nl.multiply, operand0=kept, op1=nl.add, operand1=products
        )  # fmt: skip
        self.most = largest


def attend(queries, keys, values, rows, n_kv, ahead, scale):
    """The state of rows of queries [d, n] after all keys [d, n_kv] that one of them sees."""
    state = RowState(length(rows), queries.shape[0])
    seen = min(n_kv, rows.stop + ahead)
    for cut in cuts(seen, KEYS):
        scores = scores_of(queries[:, rows], keys, rows, cut, ahead, scale)
        first = cut.start // PARTITIONS
        needed = values[first : first + len(cuts(length(cut), PARTITIONS))]
        ends = [seen - PARTITIONS * at for at in range(first, first + len(needed))]
        state.take(scores, [value[0 : min(PARTITIONS, end), :] for value, end in zip(needed, ends, strict=True)])
    return state


@nki.jit
def attention_forward(q, k, v, causal=False, scale=None):
    """Attention, and the logarithm to the base 2 of each row's sum of exponentials, which the backward pass needs.

    q is (batch, heads, n, d), k and v are (batch, heads_kv, n_kv, d), d up to 128; neighbouring heads of q share one of
    k and v. With `causal` a query sees no keys behind its own, the last query's being the last key. Returns the output,
    like q, and (batch, heads, n) of f32.
    """
    (batch, heads, n, d), (heads_kv, n_kv) = q.shape, k.shape[1:3]
    out = nl.ndarray(q.shape, dtype=q.dtype, buffer=nl.shared_hbm)
    log_sums = nl.ndarray((batch, heads, n), dtype=nl.float32, buffer=nl.shared_hbm)
    scale = 1 / math.sqrt(d) if scale is None else scale
    for b in range(batch):
        for shared in range(heads_kv):
            keys = transposed_rows(k[b, shared], n_kv)
            values = [loaded(v[b, shared, cut, :]) for cut in cuts(n_kv, PARTITIONS)]
            for head in range(shared * heads // heads_kv, (shared + 1) * heads // heads_kv):
                queries = transposed_rows(q[b, head], n)
                for rows in cuts(n, PARTITIONS):
                    state = attend(queries, keys, values, rows, n_kv, n_kv - n if causal else n_kv, scale)
                    factors, made, logs = (
                        sbuf((length(rows), 1)),
                        sbuf((length(rows), d), q.dtype),
                        sbuf((length(rows), 1)),
                    )
                    nisa.reciprocal(dst=factors, data=state.weight)
                    nisa.tensor_scalar(dst=made, data=state.total, op0=nl.multiply, operand0=factors)
                    nisa.dma_copy(dst=out[b, head, rows, :], src=made)
                    nisa.activation(dst=logs, op=nl.log, data=state.weight)
                    nisa.tensor_scalar(
                        dst=logs, data=logs, op0=nl.add, operand0=state.most,
                        op1=nl.multiply, operand1=math.log2(math.e),
                    )  # fmt: skip
                    nisa.dma_copy(dst=log_sums[b, head, rows].expand_dim(1), src=logs)
    return out, log_sums


def attention(
    q: AnyArray, k: AnyArray, v: AnyArray, causal: bool = False, scale: float | None = None
) -> AnyArray:  # fmt: skip
    """The output alone of `attention_forward`."""
    return attention_forward(q, k, v, causal=causal, scale=scale)[0]
