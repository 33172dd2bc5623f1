"""Softmax of each row of a matrix.

- Tiling: 128 rows to the partitions; a row lies whole in its partition.
- Memory hierarchy: x comes once and stays in SBUF, so that the row's maximum is known before its exponentials.
- Mapping: the Vector engine finds maxima; the Scalar engine subtracts, takes exponentials and sums them up in one
  instruction; GPSIMD scales.
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


@nki.jit
def softmax(x):
    """Softmax along the rows of x, (rows, columns)."""
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for rows in cuts(x.shape[0], PARTITIONS):
        tile = loaded(x[rows, :])
        negated, sums, factors = (sbuf((length(rows), 1)) for _ in range(3))
        powers, made = sbuf(tile.shape), sbuf(tile.shape, y.dtype)
        nisa.tensor_reduce(dst=negated, op=nl.maximum, data=tile, axis=1, negate=True)
        nisa.activation_reduce(dst=powers, op=nl.exp, data=tile, bias=negated, reduce_op=nl.add, reduce_res=sums)
        nisa.reciprocal(dst=factors, data=sums)
        nisa.tensor_scalar(dst=made, data=powers, op0=nl.multiply, operand0=factors, engine=nisa.gpsimd_engine)
        nisa.dma_copy(dst=y[rows, :], src=made)
    return y
