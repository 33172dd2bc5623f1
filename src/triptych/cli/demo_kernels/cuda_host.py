"""The CUDA kernels' host side: compile, allocate the output, launch."""

from __future__ import annotations

from importlib.resources import files

import numpy as np

import triptych as tt
from triptych.cli.demo_kernels.arrays import F32

_TILE = 16


def _compile(name: str) -> tt.cuda.CudaModule:
    return tt.cuda.compile(files("triptych.cli.demo_kernels").joinpath(name).read_text(encoding="utf-8"))


def add(a: F32, b: F32) -> F32:
    """A + b, in blocks of 256 threads."""
    c = np.empty_like(a)
    vec_add = _compile("add.cu")["vec_add"]
    vec_add[(-(-a.size // 256),), (256,)](a, b, c, a.size)
    return c


def gelu_linear(w: F32, x: F32, b: F32) -> F32:
    """GELU(W x + b) in one launch."""
    m, k, n = *w.shape, x.shape[1]
    y = np.empty((m, n), np.float32)
    _compile("gelu_linear.cu")["gelu_linear"][_grid(m, n), (_TILE, _TILE)](w, x, b, y, m, n, k)
    return y


def gelu_linear_unfused(w: F32, x: F32, b: F32) -> F32:
    """GELU(W x + b) in two launches, with the product in memory between them."""
    m, k, n = *w.shape, x.shape[1]
    module = _compile("gelu_linear.cu")
    product, y = np.empty((m, n), np.float32), np.empty((m, n), np.float32)
    module["linear"][_grid(m, n), (_TILE, _TILE)](w, x, product, m, n, k)
    module["bias_gelu"][_grid(m, n), (_TILE, _TILE)](product, b, y, m, n)
    return y


def _grid(m: int, n: int) -> tuple[int, int]:
    return -(-n // _TILE), -(-m // _TILE)
