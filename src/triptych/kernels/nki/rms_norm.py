"""x / √(mean of the row's x² + epsilon) · weight.

- Tiling: 128 rows to the partitions; a row lies whole in its partition.
- Memory hierarchy: x comes once and stays in SBUF for both of its uses; weight comes once, repeated by the DMA.
- Mapping: the Scalar engine squares and sums up in one instruction; GPSIMD takes the root of the means, as a power, so
  that the Scalar engine need not load another function's table; the Vector engine multiplies by both factors in one.
- Overlap: rows do not depend on each other: the Scalar engine squares the next tile while the Vector engine scales.
"""

# pyright: basic
# ruff: noqa: ANN001, ANN201
# NKI's tensors exist while a kernel is traced only.

from __future__ import annotations

import math

from triptych.kernels.nki.tiles import PARTITIONS, cuts, length, loaded, sbuf
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki


@nki.jit
def rms_norm(x, weight, epsilon=1e-5):
    """x / √(mean of the row's x² + epsilon) · weight, with x of (rows, columns), weight of (columns,)."""
    count, columns = x.shape
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    lanes = min(count, PARTITIONS)
    weights = loaded(weight.reshape((1, columns)).broadcast_to((lanes, columns)))
    for rows in cuts(count, PARTITIONS):
        here = slice(0, length(rows))
        tile = loaded(x[rows, :])
        squares, means, factors = sbuf(tile.shape), sbuf((length(rows), 1)), sbuf((length(rows), 1))
        made = sbuf(tile.shape, y.dtype)
        nisa.activation_reduce(
            dst=squares, op=nl.square, data=tile, scale=1 / math.sqrt(columns), reduce_op=nl.add, reduce_res=means
        )
        nisa.tensor_scalar(
            dst=factors, data=means, op0=nl.add, operand0=epsilon, op1=nl.power, operand1=-0.5,
            engine=nisa.gpsimd_engine,
        )  # fmt: skip
        nisa.scalar_tensor_tensor(
            dst=made, data=tile, op0=nl.multiply, operand0=factors, op1=nl.multiply, operand1=weights[here, :]
        )
        nisa.dma_copy(dst=y[rows, :], src=made)
    return y
