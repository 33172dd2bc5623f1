"""Kernels in CUDA C++: the `.cu` files, and functions of arrays that choose the grid and launch them."""

from triptych.kernels.cuda.attention import attention_mma, attention_naive, attention_tiled, attention_wgmma
from triptych.kernels.cuda.elementwise import elementwise_chain, rope, swiglu, transpose, vec_add
from triptych.kernels.cuda.matmul import matmul_mma, matmul_naive, matmul_tiled, matmul_wgmma, matmul_wmma
from triptych.kernels.cuda.rows import cross_entropy, cumsum, gelu_linear, layer_norm, reduce_sum, rms_norm, softmax

__all__ = [
    "attention_mma",
    "attention_naive",
    "attention_tiled",
    "attention_wgmma",
    "cross_entropy",
    "cumsum",
    "elementwise_chain",
    "gelu_linear",
    "layer_norm",
    "matmul_mma",
    "matmul_naive",
    "matmul_tiled",
    "matmul_wgmma",
    "matmul_wmma",
    "reduce_sum",
    "rms_norm",
    "rope",
    "softmax",
    "swiglu",
    "transpose",
    "vec_add",
]
