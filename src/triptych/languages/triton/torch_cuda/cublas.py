"""In place of Triton's own handle on cuBLAS, which needs NVIDIA's library and a GPU: the same products by torch."""

# torch's own values are `Any` here.
# ruff: noqa: ANN401

from __future__ import annotations

from importlib import import_module
from typing import Any, NoReturn

from triptych.core.errors import UnsupportedFeature

torch: Any = import_module("torch")


class CublasLt:
    """What `triton._C.libtriton.nvidia.cublas.CublasLt` is to scripts (3.6 to 3.9)."""

    def __init__(self, workspace: object) -> None:
        """A handle; the workspace is not used."""

    def matmul(self, a: Any, b: Any, c: Any) -> None:
        """`c = a @ b.T`, of shapes (m, k), (n, k) and (m, n)."""
        if a.dtype == b.dtype == c.dtype:
            torch.mm(a, b.T, out=c)
        else:
            c.copy_(_product(a, b, c.dtype))

    def gemm(self, a: Any, b: Any, c: Any, d: Any, alpha: float, beta: float) -> None:
        """`d = alpha * a @ b.T + beta * c`, summed in f32 and then rounded."""
        d.copy_(alpha * _product(a, b, torch.float32) + beta * c.to(torch.float32))

    def block_scaled_matmul_mxfp8(self, *_arguments: object) -> NoReturn:
        """Raises `UnsupportedFeature`: needs a chip of compute capability 10.0."""
        raise UnsupportedFeature("cuBLAS's block-scaled products need sm_100 or higher, which is not supported")

    block_scaled_matmul_nvfp4 = block_scaled_matmul_mxfp8


def _product(a: Any, b: Any, dtype: object) -> Any:
    """`a @ b.T`, which cuBLAS sums in f32 whatever the elements are."""
    if a.dtype == b.dtype == dtype:
        return a @ b.T
    return (a.to(torch.float32) @ b.to(torch.float32).T).to(dtype)
