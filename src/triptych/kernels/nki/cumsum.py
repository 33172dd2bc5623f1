"""The sums of each row's elements up to each of them.

- Tiling: 128 rows to the partitions, COLUMNS of them at a time; a tile begins with what the one before came to.
- Memory hierarchy: each element comes and goes once.
- Mapping: the Vector engine has the recurrence r = 1 · r + x as one instruction, along each partition.
- Overlap: a row's tiles wait for each other on the Vector engine, not their DMA, nor other rows.
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
def cumsum(x):
    """The sums of each row's elements up to each of them; x is (rows, columns)."""
    count, columns = x.shape
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    ones = sbuf((min(count, PARTITIONS), min(columns, COLUMNS)))
    nisa.memset(dst=ones, value=1.0)
    for rows in cuts(count, PARTITIONS):
        carry = 0.0
        for part in cuts(columns, COLUMNS):
            sums, factors = sbuf((length(rows), length(part))), ones[0 : length(rows), 0 : length(part)]
            tile = loaded(x[rows, part])
            nisa.tensor_tensor_scan(dst=sums, data0=factors, data1=tile, initial=carry, op0=nl.multiply, op1=nl.add)
            carry = sums[:, length(part) - 1 : length(part)]
            made = sums
            if y.dtype != nl.float32:
                made = sbuf(sums.shape, y.dtype)
                nisa.tensor_copy(dst=made, src=sums)
            nisa.dma_copy(dst=y[rows, part], src=made)
    return y
