"""σ(a · b + c) · a - c: a chain of five operations in one kernel.

- Tiling: a program takes BLOCK neighbouring elements.
- Memory hierarchy: what is between the operations stays in registers: an operation a kernel would move 12 arrays, this
  moves 4.
- Mapping: neighbours to a thread, as many as 16 bytes hold.
- Overlap: all three loads are under way before the first product; a multiprocessor's other programs hide the rest.
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
def elementwise_chain_kernel(a, b, c, out, n, BLOCK: tl.constexpr):
    """BLOCK elements a program, in f32."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < n
    first = tl.load(a + places, mask=inside).to(tl.float32)
    second = tl.load(b + places, mask=inside).to(tl.float32)
    third = tl.load(c + places, mask=inside).to(tl.float32)
    tl.store(out + places, tl.sigmoid(first * second + third) * first - third, mask=inside)


def elementwise_chain(a: AnyArray, b: AnyArray, c: AnyArray) -> AnyArray:
    """σ(a · b + c) · a - c, of one shape and element type: f32, f16 or bf16, dense.

    Raises:
        ArgumentError: where the arrays do not fit.
    """
    count, dtype = alike("elementwise_chain", a=a, b=b, c=c)
    out = output(a, tuple(a.shape), dtype)
    with machine():
        elementwise_chain_kernel[(triton.cdiv(count, BLOCK),)](a, b, c, out, count, BLOCK=BLOCK)
    return out
