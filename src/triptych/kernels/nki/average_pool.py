"""Means of windows of pictures.

- Tiling: 128 channels to the partitions, a whole picture of each.
- Memory hierarchy: each element comes once; windows are a view of the tile, not a copy.
- Mapping: the Vector engine sums up the last two axes of the view; the Scalar engine divides by the window's size.
- Overlap: channels do not depend on each other: one tile is summed up while the next one comes.
"""

# pyright: basic
# ruff: noqa: ANN001, ANN201
# NKI's tensors exist while a kernel is traced only.

from __future__ import annotations

from triptych.kernels.nki.tiles import PARTITIONS, cuts, length, loaded, sbuf
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki


@nki.jit
def average_pool(x, window=2):
    """Means (channels, height / window, width / window) of square windows of x, (channels, height, width)."""
    channels, height, width = x.shape
    assert height % window == width % window == 0, f"pictures of {height} × {width} have no whole windows of {window}"
    down, along = height // window, width // window
    y = nl.ndarray((channels, down, along), dtype=x.dtype, buffer=nl.shared_hbm)
    for rows in cuts(channels, PARTITIONS):
        tile = loaded(x[rows, :, :])
        windows = tile.reshape((length(rows), down, window, along, window)).permute((0, 1, 3, 2, 4))
        sums, made = sbuf((length(rows), down, along)), sbuf((length(rows), down, along), y.dtype)
        nisa.tensor_reduce(dst=sums, op=nl.add, data=windows, axis=(3, 4))
        nisa.activation(dst=made, op=nl.copy, data=sums, scale=1 / window**2)
        nisa.dma_copy(dst=y[rows, :, :], src=made)
    return y
