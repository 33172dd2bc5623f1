"""The mirror of a matrix.

- Tiling: blocks of SIDE × SIDE; of them 128 × 128, what the Tensor engine mirrors at once.
- Memory hierarchy: a block comes by rows, is mirrored tile by tile into PSUM, leaves it for SBUF and goes to HBM by
  rows again: of 2 KiB in bf16, where DMA of single elements would be many times as slow, and of 128 elements still is.
- Mapping: the Tensor engine mirrors (a product with the identity); the Vector engine empties PSUM.
- Overlap: blocks do not depend on each other: one goes out while the next one is mirrored.
"""

# pyright: basic
# ruff: noqa: ANN001, ANN201
# NKI's tensors exist while a kernel is traced only.

from __future__ import annotations

from triptych.kernels.nki.tiles import PARTITIONS, cuts, length, loaded, mirror_into, sbuf, within
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki

SIDE = 8 * PARTITIONS


@nki.jit
def transpose(x):
    """The mirror (columns, rows) of x, (rows, columns)."""
    y = nl.ndarray((x.shape[1], x.shape[0]), dtype=x.dtype, buffer=nl.shared_hbm)
    for block in cuts(x.shape[1], SIDE):
        for rows in cuts(x.shape[0], SIDE):
            strips = cuts(length(rows), PARTITIONS)
            tiles = [loaded(x[within(rows, strip), block]) for strip in strips]
            for columns in cuts(length(block), PARTITIONS):
                made = sbuf((length(columns), length(rows)), x.dtype)
                for tile, strip in zip(tiles, strips, strict=True):
                    mirror_into(made[:, strip], tile[:, columns])
                nisa.dma_copy(dst=y[within(block, columns), rows], src=made)
    return y
