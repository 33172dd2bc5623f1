"""A product of 8-bit floats with a scale for each row of A and each column of the product; NeuronCore-v4.

- Tiling: 128 × 512 of the product, 256 of k at a time: of 8-bit floats the Tensor engine takes two rows a partition.
- Memory hierarchy: half the bytes of bf16 come from HBM; sums stay in PSUM, in f32, and leave it scaled.
- Mapping: the Tensor engine mirrors tiles, so that k lies along the partitions, and multiplies at twice bf16's rate;
  the Vector engine applies both scales on the way out of PSUM, a row's a partition, a column's an element.
- Overlap: as in `matmul_tiled`.
"""

# pyright: basic
# ruff: noqa: ANN001, ANN201
# NKI's tensors exist while a kernel is traced only.

from __future__ import annotations

from triptych.kernels.nki.matmul import MOVING
from triptych.kernels.nki.tiles import PARTITIONS, cuts, length, loaded, mirror_into, psum, sbuf, within
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki

DEPTH = 2 * PARTITIONS


def double_rows(source, rows, inner):
    """[128, 2, rows] of a matrix by rows: elements of k in pairs of partitions, zeros behind the last."""
    tile = sbuf((PARTITIONS, 2, length(rows)), source.dtype)
    if length(inner) < DEPTH:
        nisa.memset(dst=tile, value=0.0)
    for half, cut in enumerate(cuts(length(inner), PARTITIONS)):
        for strip in cuts(length(rows), PARTITIONS):
            mirror_into(tile[0 : length(cut), half, strip], loaded(source[within(rows, strip), within(inner, cut)]))
    return tile


@nki.jit
def quantised_matmul(a, b, scale_a, scale_b):
    """c[i, j] = scale_a[i] scale_b[j] Σ_k a[i, k] b[j, k] in bf16, of a, (m, k), and b, (n, k), of 8-bit floats."""
    (m, k), n = a.shape, b.shape[0]
    c = nl.ndarray((m, n), dtype=nl.bfloat16, buffer=nl.shared_hbm)
    scales = loaded(scale_b.reshape((1, n)).broadcast_to((min(m, PARTITIONS), n)))
    for columns in cuts(n, MOVING):
        moving = [double_rows(b, columns, inner) for inner in cuts(k, DEPTH)]
        for rows in cuts(m, PARTITIONS):
            count = length(rows)
            sums, made = psum((count, length(columns))), sbuf((count, length(columns)), c.dtype)
            for right, inner in zip(moving, cuts(k, DEPTH), strict=True):
                left = double_rows(a, rows, inner)
                nisa.nc_matmul(
                    dst=sums, stationary=left, moving=right, perf_mode=nisa.matmul_perf_mode.double_row
                )  # fmt: skip
            nisa.scalar_tensor_tensor(
                dst=made, data=sums, op0=nl.multiply, operand0=loaded(scale_a[rows].expand_dim(1)),
                op1=nl.multiply, operand1=scales[0:count, columns],
            )  # fmt: skip
            nisa.dma_copy(dst=c[rows, columns], src=made)
    return c
