"""GELU(W x + b) for a vector x: HBM limits it, so that the Tensor engine, which wants W transposed, is not missed.

- Tiling: 128 rows of W to the partitions, COLUMNS of them at a time.
- Memory hierarchy: W comes once; x once, repeated over the partitions by the DMA; sums stay in SBUF.
- Mapping: the Vector engine and GPSIMD multiply by turns; the Scalar engine sums up (it can while it copies), adds b
  and applies GELU.
- Overlap: three engines work on neighbouring tiles while the DMA queues bring the next.
"""

# pyright: basic
# ruff: noqa: ANN001, ANN201
# NKI's tensors exist while a kernel is traced only.

from __future__ import annotations

from triptych.kernels.nki.tiles import COLUMNS, PARTITIONS, cuts, length, loaded, sbuf
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki


@nki.jit
def gelu_linear(w, x, b):
    """GELU(W x + b) of (m,), with W of (m, k), x of (k,) and b of (m,)."""
    (m, k), columns = w.shape, cuts(w.shape[1], COLUMNS)
    y = nl.ndarray((m,), dtype=w.dtype, buffer=nl.shared_hbm)
    spread = loaded(x.reshape((1, k)).broadcast_to((min(m, PARTITIONS), k)))
    for number, rows in enumerate(cuts(m, PARTITIONS)):
        bias = loaded(b[rows].expand_dim(1))
        count = length(rows)
        sums, total, made = sbuf((count, len(columns))), sbuf((count, 1)), sbuf((count, 1), y.dtype)
        for place, column in enumerate(columns):
            products = sbuf((count, length(column)))
            tile = loaded(w[rows, column])
            engine = (nisa.vector_engine, nisa.gpsimd_engine)[(number + place) % 2]
            nisa.tensor_tensor(dst=products, data1=tile, data2=spread[0:count, column], op=nl.multiply, engine=engine)
            part = sums[:, place : place + 1]
            nisa.activation_reduce(dst=products, op=nl.copy, data=products, reduce_op=nl.add, reduce_res=part)
        nisa.tensor_reduce(dst=total, op=nl.add, data=sums, axis=1)
        nisa.activation(dst=made, op=nl.gelu, data=total, bias=bias)
        nisa.dma_copy(dst=y[rows].expand_dim(1), src=made)
    return y
