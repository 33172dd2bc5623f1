"""Kernels in Triton, and functions of arrays that choose the grid and launch them on triptych's machine.

They need no `activate()`; where it was called, its chip and target are those in force.
"""

from triptych.kernels.triton.attention import attention, attention_forward
from triptych.kernels.triton.attention_backward import attention_backward
from triptych.kernels.triton.cross_entropy import cross_entropy
from triptych.kernels.triton.cumsum import cumsum
from triptych.kernels.triton.elementwise_chain import elementwise_chain
from triptych.kernels.triton.gelu_linear import gelu_linear
from triptych.kernels.triton.grouped_matmul import grouped_matmul
from triptych.kernels.triton.layer_norm import layer_norm
from triptych.kernels.triton.matmul import matmul
from triptych.kernels.triton.persistent_matmul import persistent_matmul
from triptych.kernels.triton.reduce_sum import reduce_sum
from triptych.kernels.triton.rms_norm import rms_norm
from triptych.kernels.triton.rope import rope
from triptych.kernels.triton.softmax import softmax
from triptych.kernels.triton.swiglu import swiglu
from triptych.kernels.triton.transpose import transpose
from triptych.kernels.triton.vec_add import vec_add

__all__ = [
    "attention",
    "attention_backward",
    "attention_forward",
    "cross_entropy",
    "cumsum",
    "elementwise_chain",
    "gelu_linear",
    "grouped_matmul",
    "layer_norm",
    "matmul",
    "persistent_matmul",
    "reduce_sum",
    "rms_norm",
    "rope",
    "softmax",
    "swiglu",
    "transpose",
    "vec_add",
]
