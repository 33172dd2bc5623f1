"""Kernels in Triton, and functions of arrays that choose the grid and launch them on triptych's machine.

They need no `activate()`; where it was called, its chip and target are those in force.
"""

from triptych.kernels.triton.attention import attention, attention_forward
from triptych.kernels.triton.attention_backward import attention_backward
from triptych.kernels.triton.grouped_matmul import grouped_matmul
from triptych.kernels.triton.matmul import matmul
from triptych.kernels.triton.persistent_matmul import persistent_matmul

__all__ = [
    "attention",
    "attention_backward",
    "attention_forward",
    "grouped_matmul",
    "matmul",
    "persistent_matmul",
]
