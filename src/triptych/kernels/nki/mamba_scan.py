"""The selective scan of Mamba: h[t] = exp(delta[t] a) h[t - 1] + delta[t] b[t] u[t]; y[t] = Σ_state c[t] h[t] + d u[t].

- Tiling: 128 channels to the partitions, whole sequences, a state at a time.
- Memory hierarchy: u and delta come once for all states; the state itself, n elements a channel, never leaves SBUF.
- Mapping: the Scalar engine makes the decays, exp(delta · a) with a channel's own a, in one instruction; the Vector
  engine has the recurrence as one, along each partition; GPSIMD weighs states and sums them up.
- Overlap: states do not depend on each other: three engines work on three of them.
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
def mamba_scan(u, delta, a, b, c, d):
    """u and delta are (batch, channels, n), a is (channels, state), b and c are (batch, state, n), d is (channels,)."""
    (batch, channels, n), states = u.shape, a.shape[1]
    y = nl.ndarray(u.shape, dtype=u.dtype, buffer=nl.shared_hbm)
    for rows in cuts(channels, PARTITIONS):
        decays, passing, shape = loaded(a[rows, :]), loaded(d[rows].expand_dim(1)), (length(rows), n)
        for sequence in range(batch):
            inputs, steps = loaded(u[sequence, rows, :]), loaded(delta[sequence, rows, :])
            weighted, total, made = sbuf(shape), sbuf(shape), sbuf(shape, y.dtype)
            nisa.tensor_tensor(dst=weighted, data1=steps, data2=inputs, op=nl.multiply)
            nisa.tensor_scalar(dst=total, data=inputs, op0=nl.multiply, operand0=passing)
            for state in range(states):
                come = loaded(b[sequence, state : state + 1, :].broadcast_to(shape))
                seen = loaded(c[sequence, state : state + 1, :].broadcast_to(shape))
                factors, terms, history, part = (sbuf(shape) for _ in range(4))
                nisa.activation(dst=factors, op=nl.exp, data=steps, scale=decays[:, state : state + 1])
                nisa.tensor_tensor(dst=terms, data1=weighted, data2=come, op=nl.multiply)
                nisa.tensor_tensor_scan(
                    dst=history, data0=factors, data1=terms, initial=0.0, op0=nl.multiply, op1=nl.add
                )  # fmt: skip
                nisa.tensor_tensor(dst=part, data1=history, data2=seen, op=nl.multiply, engine=nisa.gpsimd_engine)
                nisa.tensor_tensor(dst=total, data1=total, data2=part, op=nl.add, engine=nisa.gpsimd_engine)
            nisa.tensor_copy(dst=made, src=total)
            nisa.dma_copy(dst=y[sequence, rows, :], src=made)
    return y
