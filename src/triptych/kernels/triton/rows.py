"""How many columns of a row the kernels that have a row a program take at a time."""

from __future__ import annotations

import triton

LARGEST_BLOCK = 1024
"""8 columns a lane of 4 warps: two accesses of 16 bytes in f32."""


def block_of(columns: int) -> int:
    """A power of two that holds the whole row, if that is not too much."""
    return min(LARGEST_BLOCK, max(32, triton.next_power_of_2(columns)))
