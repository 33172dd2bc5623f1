"""Kernels in NKI, each a function of arrays as it stands: it returns numpy arrays, whatever it is given.

They need no `activate()`: they import triptych's modules. What an engine takes at once they cut out of any sizes; a row
that is normalised or scanned must fit into its partition of SBUF, else the error of that memory says so.
"""

from triptych.kernels.nki.attention import attention, attention_forward
from triptych.kernels.nki.attention_backward import attention_backward
from triptych.kernels.nki.attention_streamed import attention_streamed
from triptych.kernels.nki.average_pool import average_pool
from triptych.kernels.nki.conv1d_depthwise import conv1d_depthwise
from triptych.kernels.nki.cross_entropy import cross_entropy
from triptych.kernels.nki.cumsum import cumsum
from triptych.kernels.nki.elementwise_chain import elementwise_chain
from triptych.kernels.nki.gelu_linear import gelu_linear
from triptych.kernels.nki.layer_norm import layer_norm
from triptych.kernels.nki.mamba_scan import mamba_scan
from triptych.kernels.nki.matmul import matmul, matmul_blocked, matmul_fully_blocked, matmul_hoisted, matmul_tiled
from triptych.kernels.nki.moe_matmul import moe_matmul
from triptych.kernels.nki.quantised_matmul import quantised_matmul
from triptych.kernels.nki.reduce_sum import reduce_sum
from triptych.kernels.nki.rms_norm import rms_norm
from triptych.kernels.nki.rope import rope
from triptych.kernels.nki.softmax import softmax
from triptych.kernels.nki.swiglu import swiglu
from triptych.kernels.nki.tensor_copy import tensor_copy
from triptych.kernels.nki.transpose import transpose
from triptych.kernels.nki.vec_add import vec_add

__all__ = [
    "attention",
    "attention_backward",
    "attention_forward",
    "attention_streamed",
    "average_pool",
    "conv1d_depthwise",
    "cross_entropy",
    "cumsum",
    "elementwise_chain",
    "gelu_linear",
    "layer_norm",
    "mamba_scan",
    "matmul",
    "matmul_blocked",
    "matmul_fully_blocked",
    "matmul_hoisted",
    "matmul_tiled",
    "moe_matmul",
    "quantised_matmul",
    "reduce_sum",
    "rms_norm",
    "rope",
    "softmax",
    "swiglu",
    "tensor_copy",
    "transpose",
    "vec_add",
]
