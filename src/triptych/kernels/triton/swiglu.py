"""SiLU(gate) · up, where SiLU(v) = v / (1 + exp(-v)): two kernels' work in one.

- Tiling: a program takes BLOCK neighbouring elements.
- Memory hierarchy: SiLU(gate) stays in registers: fusing spares its way out and back.
- Mapping: neighbours to a thread, as many as 16 bytes hold.
- Overlap: both loads are under way before the first exponential; a multiprocessor's other programs hide the rest.
"""

# pyright: basic, reportArgumentType=false, reportGeneralTypeIssues=false
# ruff: noqa: ANN001, ANN201
# Triton's language exists inside kernels only: its operators have no types that Python knows.

from __future__ import annotations

import triton
import triton.language as tl

from triptych.kernels.arrays import AnyArray, output
from triptych.kernels.problems import alike
from triptych.kernels.triton.machine import machine

BLOCK = 1024


@triton.jit
def swiglu_kernel(gate, up, out, n, BLOCK: tl.constexpr):
    """BLOCK elements a program, in f32."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < n
    gates = tl.load(gate + places, mask=inside).to(tl.float32)
    ups = tl.load(up + places, mask=inside).to(tl.float32)
    tl.store(out + places, gates * tl.sigmoid(gates) * ups, mask=inside)


def swiglu(gate: AnyArray, up: AnyArray) -> AnyArray:
    """SiLU(gate) · up, of one shape and element type: f32, f16 or bf16, dense.

    Raises:
        ArgumentError: where the arrays do not fit.
    """
    count, dtype = alike("swiglu", gate=gate, up=up)
    out = output(gate, tuple(gate.shape), dtype)
    with machine():
        swiglu_kernel[(triton.cdiv(count, BLOCK),)](gate, up, out, count, BLOCK=BLOCK)
    return out
