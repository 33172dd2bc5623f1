"""A causal convolution of each channel with a window of its own.

- Tiling: 128 channels to the partitions, whole sequences.
- Memory hierarchy: a sequence comes once, behind as many zeros as the window reaches back; shifted, it is a view.
- Mapping: the Vector engine multiplies by a channel's weight and adds, a place of the window an instruction.
- Overlap: channels and sequences do not depend on each other: one tile is summed up while the next one comes.
"""

# pyright: basic
# ruff: noqa: ANN001, ANN201
# NKI's tensors exist while a kernel is traced only.

from __future__ import annotations

from triptych.kernels.nki.tiles import PARTITIONS, cuts, length, loaded, sbuf
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki


def in_f32(source):
    """A tile of numbers that instructions take a partition."""
    tile = sbuf(source.shape)
    nisa.tensor_copy(dst=tile, src=loaded(source))
    return tile


@nki.jit
def conv1d_depthwise(x, weight, bias):
    """y[b, c, t] = bias[c] + Σ_j weight[c, j] x[b, c, t - width + 1 + j], 0 before the first element."""
    (batch, channels, n), width = x.shape, weight.shape[1]
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for rows in cuts(channels, PARTITIONS):
        weights, biases = in_f32(weight[rows, :]), in_f32(bias[rows].expand_dim(1))
        for b in range(batch):
            tile, total = sbuf((length(rows), width - 1 + n), x.dtype), sbuf((length(rows), n))
            if width > 1:
                nisa.memset(dst=tile[:, 0 : width - 1], value=0.0)
            nisa.dma_copy(dst=tile[:, width - 1 : width - 1 + n], src=x[b, rows, :])
            nisa.tensor_scalar(
                dst=total, data=tile[:, 0:n], op0=nl.multiply, operand0=weights[:, 0:1], op1=nl.add, operand1=biases
            )
            for j in range(1, width):
                nisa.scalar_tensor_tensor(
                    dst=total, data=tile[:, j : j + n], op0=nl.multiply, operand0=weights[:, j : j + 1],
                    op1=nl.add, operand1=total,
                )  # fmt: skip
            made = sbuf(total.shape, y.dtype)
            nisa.tensor_copy(dst=made, src=total)
            nisa.dma_copy(dst=y[b, rows, :], src=made)
    return y
