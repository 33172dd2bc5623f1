"""σ(a · b + c) · a - c: a chain of five operations in one kernel.

- Tiling: 128 partitions of neighbouring elements, COLUMNS at a time.
- Memory hierarchy: what is between the operations stays in SBUF: an operation a kernel would move 12 arrays, this 4.
- Mapping: the Vector engine multiplies and adds, the Scalar engine has σ as one instruction.
- Overlap: the Vector engine works on two tiles by turns, on either side of σ, while the DMA queues bring the next.
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
def elementwise_chain(a, b, c):
    """σ(a · b + c) · a - c, of one shape and dtype."""
    expect_alike(a=a, b=b, c=c)
    y = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for first, second, third, out in zip(parts(a), parts(b), parts(c), parts(y), strict=True):
        factors, terms = loaded(first), loaded(third)
        argument, gate, made = sbuf(out.shape), sbuf(out.shape), sbuf(out.shape, y.dtype)
        nisa.tensor_tensor(dst=argument, data1=factors, data2=loaded(second), op=nl.multiply)
        nisa.tensor_tensor(dst=argument, data1=argument, data2=terms, op=nl.add)
        nisa.activation(dst=gate, op=nl.sigmoid, data=argument)
        nisa.tensor_tensor(dst=gate, data1=gate, data2=factors, op=nl.multiply)
        nisa.tensor_tensor(dst=made, data1=gate, data2=terms, op=nl.subtract)
        nisa.dma_copy(dst=out, src=made)
    return y
