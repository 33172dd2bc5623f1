"""(x - mean of the row) / √(variance of the row + epsilon) · weight + bias.

- Tiling: 128 rows to the partitions; a row lies whole in its partition; its moments are taken 512 columns at a time.
- Memory hierarchy: x comes once and stays in SBUF; weight and bias come once, repeated over the partitions.
- Mapping: the Vector engine has means and variances as instructions, which lose no digits to a large mean, and scales;
  the Scalar engine takes the mean off, GPSIMD the root of the variances, as a power, and adds the bias.
- Overlap: rows do not depend on each other: three engines work on three tiles.
"""

# pyright: basic
# ruff: noqa: ANN001, ANN201
# NKI's tensors exist while a kernel is traced only.

from __future__ import annotations

from triptych.kernels.nki.tiles import PARTITIONS, cuts, length, loaded, sbuf
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki

MOMENTS = 512
"""Columns of one `bn_stats`, at most."""


@nki.jit
def layer_norm(x, weight, bias, epsilon=1e-5):
    """(x - mean) / √(variance + epsilon) · weight + bias by rows; weight and bias of (columns,)."""
    count, columns = x.shape
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    lanes = min(count, PARTITIONS)
    weights, biases = (loaded(one.reshape((1, columns)).broadcast_to((lanes, columns))) for one in (weight, bias))
    for rows in cuts(count, PARTITIONS):
        here = slice(0, length(rows))
        tile = loaded(x[rows, :])
        parts = cuts(columns, MOMENTS)
        moments, both = sbuf((length(rows), 6 * len(parts))), sbuf((length(rows), 2))
        factors, negated = sbuf((length(rows), 1)), sbuf((length(rows), 1))
        centred, scaled, made = sbuf(tile.shape), sbuf(tile.shape), sbuf(tile.shape, y.dtype)
        for place, part in enumerate(parts):
            nisa.bn_stats(dst=moments[:, nl.ds(6 * place, 6)], data=tile[:, part])
        nisa.bn_aggr(dst=both, data=moments)
        mean, variance = both[:, 0:1], both[:, 1:2]
        nisa.tensor_scalar(
            dst=factors, data=variance, op0=nl.add, operand0=epsilon, op1=nl.power, operand1=-0.5,
            engine=nisa.gpsimd_engine,
        )  # fmt: skip
        nisa.tensor_scalar(dst=negated, data=mean, op0=nl.multiply, operand0=-1.0)
        nisa.activation(dst=centred, op=nl.copy, data=tile, bias=negated)
        nisa.scalar_tensor_tensor(
            dst=scaled, data=centred, op0=nl.multiply, operand0=factors, op1=nl.multiply, operand1=weights[here, :]
        )  # fmt: skip
        nisa.tensor_tensor(dst=made, data1=scaled, data2=biases[here, :], op=nl.add, engine=nisa.gpsimd_engine)
        nisa.dma_copy(dst=y[rows, :], src=made)
    return y
