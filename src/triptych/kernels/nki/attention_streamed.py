"""Attention with keys and values that stream through SBUF: for heads that are longer than SBUF has room for.

- Tiling: `queries` queries of a head at a time, 128 to the partitions, all d columns wide; KEYS keys at a time.
- Memory hierarchy: the output so far, each row's largest score and sum of a block's queries stay in SBUF; keys and
  values come once for each block, and are forgotten: HBM moves 2 n_kv d elements a block, 4 n n_kv d / queries bytes a
  head in 16 bits. SBUF holds no more for a longer head.
- Mapping: as in `attention`, whose steps these are.
- Overlap: the next keys come while those that are there are multiplied by all tiles of the block.
"""

# pyright: basic
# ruff: noqa: ANN001, ANN201
# NKI's tensors exist while a kernel is traced only.

from __future__ import annotations

import math

from triptych.kernels.nki.attention import KEYS, RowState, scores_of, transposed_rows
from triptych.kernels.nki.tiles import PARTITIONS, cuts, length, loaded, sbuf, within
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki


@nki.jit
def attention_streamed(q, k, v, queries=512, scale=None, causal=False):
    """Attention of q, (batch, heads, n, d), on k and v, (batch, heads_kv, n_kv, d), d up to 128.

    Neighbouring heads of q share one of k and v; `queries` of them share what comes of keys and values. With `causal` a
    query sees no keys behind its own, the last query's being the last key.
    """
    (batch, heads, n, d), (heads_kv, n_kv) = q.shape, k.shape[1:3]
    out = nl.ndarray(q.shape, dtype=q.dtype, buffer=nl.shared_hbm)
    scale = 1 / math.sqrt(d) if scale is None else scale
    for b in range(batch):
        for head in range(heads):
            shared = head * heads_kv // heads
            for block in cuts(n, queries):
                ahead = block.start + n_kv - n if causal else n_kv
                attend_block(q[b, head, block, :], k[b, shared], v[b, shared], out[b, head, block, :], ahead, scale)
    return out


def attend_block(q, k, v, out, ahead, scale):
    """The output's rows for a block of queries, which see `ahead` keys behind their own number; all tensors in HBM."""
    rows, turned = cuts(q.shape[0], PARTITIONS), transposed_rows(q, q.shape[0])
    states = [RowState(length(cut), q.shape[1]) for cut in rows]
    for keys in cuts(min(k.shape[0], q.shape[0] + ahead), KEYS):
        keys_turned = transposed_rows(k[keys, :], length(keys))
        values = [loaded(v[within(keys, cut), :]) for cut in cuts(length(keys), PARTITIONS)]
        here, seen_of_these = slice(0, length(keys)), ahead - keys.start
        for cut, state in zip(rows, states, strict=True):
            if cut.stop + seen_of_these > 0:
                state.take(scores_of(turned[:, cut], keys_turned, cut, here, seen_of_these, scale), values)
    for cut, state in zip(rows, states, strict=True):
        factors, made = sbuf((length(cut), 1)), sbuf((length(cut), q.shape[1]), q.dtype)
        nisa.reciprocal(dst=factors, data=state.weight)
        nisa.tensor_scalar(dst=made, data=state.total, op0=nl.multiply, operand0=factors)
        nisa.dma_copy(dst=out[cut, :], src=made)
