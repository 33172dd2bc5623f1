"""Kernels in CUDA C++: the `.cu` files, and functions of arrays that choose the grid and launch them."""

from triptych.kernels.cuda.attention import attention_mma, attention_wgmma
from triptych.kernels.cuda.matmul import matmul_mma, matmul_naive, matmul_tiled, matmul_wgmma, matmul_wmma

__all__ = [
    "attention_mma",
    "attention_wgmma",
    "matmul_mma",
    "matmul_naive",
    "matmul_tiled",
    "matmul_wgmma",
    "matmul_wmma",
]
