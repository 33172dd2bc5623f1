"""A copy: what a trip through SBUF takes.

- Tiling: 128 partitions of neighbouring elements, COLUMNS at a time.
- Memory hierarchy: HBM to SBUF and back.
- Mapping: DMA alone; engines have nothing to do.
- Overlap: loads and stores of different tiles run in different queues.
"""

# pyright: basic
# ruff: noqa: ANN001, ANN201
# NKI's tensors exist while a kernel is traced only.

from __future__ import annotations

from triptych.kernels.nki.tiles import loaded, parts
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki


@nki.jit
def tensor_copy(x):
    """The same elements in a new array."""
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for source, out in zip(parts(x), parts(y), strict=True):
        nisa.dma_copy(dst=out, src=loaded(source))
    return y
