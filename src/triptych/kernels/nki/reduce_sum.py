"""The sums of a matrix's rows.

- Tiling: 128 rows to the partitions, COLUMNS of them at a time; of few long rows, each over all partitions.
- Memory hierarchy: each element comes once; of a tile one sum a partition stays.
- Mapping: the Vector engine sums up along partitions; across them the Tensor engine does, as a product with ones.
- Overlap: a tile's DMA runs while the one before is summed up.
"""

# pyright: basic
# ruff: noqa: ANN001, ANN201
# NKI's tensors exist while a kernel is traced only.

from __future__ import annotations

from triptych.kernels.nki.tiles import COLUMNS, PARTITIONS, cuts, loaded, parts, psum, sbuf
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki


def summed(tiles):
    """[partitions, 1]: the sums of tiles in HBM along each partition, as many as the first one has."""
    count = tiles[0].shape[0]
    sums, total = sbuf((count, len(tiles))), sbuf((count, 1))
    nisa.memset(dst=sums, value=0.0)  # the last tile may have fewer partitions
    for place, tile in enumerate(tiles):
        part = sums[0 : tile.shape[0], place : place + 1]
        nisa.tensor_reduce(dst=part, op=nl.add, data=loaded(tile), axis=1)
    nisa.tensor_reduce(dst=total, op=nl.add, data=sums, axis=1)
    return total


def across(column):
    """[1, 1] in PSUM: the sum over the partitions of a column."""
    ones, total = sbuf(column.shape), psum((1, 1))
    nisa.memset(dst=ones, value=1.0)
    nisa.nc_matmul(dst=total, stationary=column, moving=ones)
    return total


def keep(y, sums):
    """Sums go to HBM, in its dtype."""
    made = sbuf(sums.shape, y.dtype)
    nisa.tensor_copy(dst=made, src=sums)
    nisa.dma_copy(dst=y, src=made)


@nki.jit
def reduce_sum(x):
    """The sums (rows,) of the rows of x, (rows, columns)."""
    count, columns = x.shape
    y = nl.ndarray((count,), dtype=x.dtype, buffer=nl.shared_hbm)
    if count >= PARTITIONS or columns <= COLUMNS:
        for rows in cuts(count, PARTITIONS):
            keep(y[rows].expand_dim(1), summed([x[rows, part] for part in cuts(columns, COLUMNS)]))
    else:
        for row in range(count):
            keep(y[row : row + 1].expand_dim(1), across(summed(parts(x[row]))))
    return y
