"""a + b.

- Tiling: 128 partitions of neighbouring elements, COLUMNS at a time.
- Memory hierarchy: HBM to SBUF and back, each element once.
- Mapping: the Vector engine adds, a lane a partition.
- Overlap: tiles do not depend on each other, so that the next one's DMA runs while this one is added.
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
def vec_add(a, b):
    """A + b, of one shape and dtype."""
    expect_alike(a=a, b=b)
    c = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for left, right, out in zip(parts(a), parts(b), parts(c), strict=True):
        total = sbuf(out.shape, c.dtype)
        nisa.tensor_tensor(dst=total, data1=loaded(left), data2=loaded(right), op=nl.add)
        nisa.dma_copy(dst=out, src=total)
    return c
