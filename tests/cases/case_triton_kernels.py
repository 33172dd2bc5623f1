"""Triton kernels of the cases, as their users write them."""

# pyright: basic, reportArgumentType=false, reportGeneralTypeIssues=false
# ruff: noqa: ANN001, ANN201
# Triton's language exists inside kernels only: its operators have no types that Python knows.

import triton
import triton.language as tl


@triton.jit
def chain(x_ptr, out_ptr, n, FIRST: tl.constexpr, LAST: tl.constexpr, BLOCK: tl.constexpr):
    """Steps FIRST to LAST - 1 of the chain, with one load and one store."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x_ptr + i, mask=i < n)
    for index in tl.static_range(FIRST, LAST):
        if index == 0:
            v = v * 1.5
        elif index == 1:
            v = v + 0.25
        elif index == 2:
            v = tl.maximum(v, 0.0)
        elif index == 3:
            v = v * v
        else:
            v = v - 1.0
    tl.store(out_ptr + i, v, mask=i < n)
