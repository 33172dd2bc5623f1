"""The CUDA kernels' host side: compile, allocate the output, launch."""

from __future__ import annotations

from importlib.resources import files

import numpy as np

import triptych as tt
from triptych.demo.kernels.arrays import F32

THREADS = 256
"""Threads of a block that takes an element a thread."""
WARPS = 4
"""Warps of a block that takes a row of W a warp."""


def _compile(name: str) -> tt.cuda.CudaModule:
    return tt.cuda.compile(files("triptych.demo.kernels").joinpath(name).read_text(encoding="utf-8"))


def add(a: F32, b: F32) -> F32:
    """A + b, in one launch."""
    c = np.empty_like(a)
    _compile("add.cu")["vec_add"][-(-a.size // THREADS), THREADS](a, b, c, a.size)
    return c


def gelu_linear_unfused(w: F32, x: F32, b: F32) -> F32:
    """GELU(W x + b) in three launches, with two vectors in memory between them."""
    m, k = w.shape
    module = _compile("gelu_linear.cu")
    z, v, y = (np.empty(m, np.float32) for _ in range(3))
    module["matvec"][-(-m // WARPS), (32, WARPS)](w, x, z, m, k)
    module["add_bias"][-(-m // THREADS), THREADS](z, b, v, m)
    module["gelu"][-(-m // THREADS), THREADS](v, y, m)
    return y


def gelu_linear_fused(w: F32, x: F32, b: F32) -> F32:
    """GELU(W x + b) in one launch."""
    m, k = w.shape
    y = np.empty(m, np.float32)
    _compile("gelu_linear.cu")["gelu_linear"][-(-m // WARPS), (32, WARPS)](w, x, b, y, m, k)
    return y
