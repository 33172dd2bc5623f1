"""SiLU(gate) · up, where SiLU(v) = v / (1 + exp(-v)).

- Tiling: 128 partitions of neighbouring elements, COLUMNS at a time.
- Memory hierarchy: SiLU(gate) stays in SBUF: fusing spares its way to HBM and back.
- Mapping: the Scalar engine has SiLU as one instruction; the Vector engine multiplies.
- Overlap: the Scalar engine is a tile ahead of the Vector engine, and the DMA queues ahead of both.
"""

# pyright: basic
# ruff: noqa: ANN001, ANN201
# NKI's tensors exist while a kernel is traced only.

from __future__ import annotations

from triptych.kernels.nki.tiles import expect_alike, loaded, parts, sbuf
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki


@nki.jit
def swiglu(gate, up):
    """SiLU(gate) · up, of one shape and dtype."""
    expect_alike(gate=gate, up=up)
    y = nl.ndarray(gate.shape, dtype=gate.dtype, buffer=nl.shared_hbm)
    for gates, ups, out in zip(parts(gate), parts(up), parts(y), strict=True):
        opened, made = sbuf(out.shape), sbuf(out.shape, y.dtype)
        nisa.activation(dst=opened, op=nl.silu, data=loaded(gates))
        nisa.tensor_tensor(dst=made, data1=opened, data2=loaded(ups), op=nl.multiply)
        nisa.dma_copy(dst=out, src=made)
    return y
