"""a + b: the least kernel.

- Tiling: a program takes BLOCK neighbouring elements.
- Memory hierarchy: nothing is used twice, so that nothing is kept: from global memory to registers and back.
- Mapping: neighbours to a thread as many as 16 bytes hold, which Triton chooses where it knows addresses and counts to
  be multiples of 16; the mask shares this.
- Overlap: both loads are under way before the sum; a multiprocessor's other programs hide the rest of their time.
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
def vec_add_kernel(a, b, c, n, BLOCK: tl.constexpr):
    """BLOCK elements a program."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < n
    total = tl.load(a + places, mask=inside) + tl.load(b + places, mask=inside)
    tl.store(c + places, total, mask=inside)


def vec_add(a: AnyArray, b: AnyArray) -> AnyArray:
    """A + b, of one shape and element type: f32, f16 or bf16, dense.

    Raises:
        ArgumentError: where the arrays do not fit.
    """
    count, dtype = alike("vec_add", a=a, b=b)
    c = output(a, tuple(a.shape), dtype)
    with machine():
        vec_add_kernel[(triton.cdiv(count, BLOCK),)](a, b, c, count, BLOCK=BLOCK)
    return c
