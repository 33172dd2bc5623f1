"""Kernels whose times are measured on a GPU and modelled here: triptych's own, at sizes from one launch to a few GB."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from time_inputs import Array

import triptych.kernels.cuda as cuda_kernels
import triptych.kernels.triton as triton_kernels
from triptych.core.dtypes import dtype_of
from triptych.operators import operator

_MODULES: Mapping[str, Any] = {"cuda": cuda_kernels, "triton": triton_kernels}


@dataclass(frozen=True, slots=True)
class Case:
    """A function of `triptych.kernels` at one size."""

    kernel: str
    """Its language's module and its name."""
    dtype: str
    size: str
    values: Mapping[str, int]
    """The size's integers."""
    inputs: tuple[Array, ...]
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def name(self) -> str:
        """Names all of it."""
        marks = [key for key, value in self.options.items() if value]
        return " ".join([self.kernel, self.dtype, self.size, *marks])

    @property
    def function(self) -> Callable[..., Any]:
        """The function."""
        language, name = self.kernel.split(".")
        return getattr(_MODULES[language], name)


# --- The cases ----------------------------------------------------------------------------------------------------

_ELEMENTWISE: Mapping[str, Sequence[str]] = {
    "vec_add": ("tiny", "llama_3_8b_residual", "stream"),
    "elementwise_chain": ("tiny", "llama_3_8b_mlp"),
    "swiglu": ("tiny", "llama_3_8b", "llama_3_70b"),
    "rope": ("tiny", "llama_3_8b_keys", "llama_3_8b"),
    "transpose": ("tiny", "llama_3_8b_gate", "square_8192"),
    "reduce_sum": ("tiny", "one_row", "llama_3_8b_tokens", "gradient_norm"),
    "softmax": ("tiny", "gpt2_vocabulary"),
    "cross_entropy": ("tiny", "gpt2"),
    "rms_norm": ("tiny", "llama_3_8b", "llama_3_70b", "qwen_3_head"),
    "layer_norm": ("tiny", "gpt2", "gpt2_xl"),
    "gelu_linear": ("tiny", "demo", "gpt2_xl"),
    "cumsum": ("tiny", "one_row", "llama_3_vocabulary", "long"),
}
"""Operators whose functions take the operator's inputs, and the sizes."""
_HALVES = ("vec_add", "swiglu", "transpose", "softmax", "rms_norm", "layer_norm")
"""Those that are measured in f16 too, at the sizes beyond the first."""
_PLAIN_SIDES, _MATRIX_SIDES = (128, 512, 1024, 2048), (256, 1024, 2048, 4096)
_PRODUCTS: Mapping[str, Mapping[str, Any]] = {
    "cuda.matmul_wmma": {},
    "cuda.matmul_mma": {},
    "triton.matmul": {},
    "cuda.matmul_wgmma": {},
    "triton.persistent_matmul": {},
    "triton.persistent_matmul ": {"warp_specialize": True},
}
_OTHER_PRODUCTS = ("llama_3_8b_decode", "llama_3_8b_gate")
_HEADS: Mapping[str, int] = {"batch": 1, "heads": 4, "heads_kv": 4, "n": 256, "n_kv": 256, "d": 64, "causal": 0}
"""Attention as small as the ladders of kernels have it."""
_ATTENTION = ("cuda.attention_mma", "triton.attention", "cuda.attention_wgmma")
_ATTENTION_SIZES = ("gpt2", "llama_3_8b", "vit_b_16")


def cases() -> Sequence[Case]:
    """All of them; those that wait for copies of tiles, which a mistake lets wait for ever, come last."""
    found = [*_elementwise(), *_products(), *_attention()]
    return sorted(found, key=lambda one: "wgmma" in one.kernel or "persistent" in one.kernel)


def _elementwise() -> Iterator[Case]:
    for name, sizes in _ELEMENTWISE.items():
        for language in _MODULES:
            for size in sizes:
                for dtype in ("f32", "f16") if name in _HALVES and size != "tiny" else ("f32",):
                    yield _case(f"{language}.{name}", name, dtype, size, operator(name).size(size).values)


def _products() -> Iterator[Case]:
    for kernel in ("cuda.matmul_naive", "cuda.matmul_tiled"):
        for side in _PLAIN_SIDES:
            yield _product(kernel, "f32", side)
        yield _product(kernel, "f16", 1024)
    for kernel, options in _PRODUCTS.items():
        for side in _MATRIX_SIDES:
            yield _product(kernel.strip(), "f16", side, options)
        yield _product(kernel.strip(), "bf16", 4096, options)
        for size in _OTHER_PRODUCTS:
            values = operator("matmul").size(size).values
            if "wmma" not in kernel or values["m"] % 16 == 0:
                yield _case(kernel.strip(), "matmul", "f16", size, values, options)


def _product(kernel: str, dtype: str, side: int, options: Mapping[str, Any] | None = None) -> Case:
    return _case(kernel, "matmul", dtype, f"{side}³", {"m": side, "n": side, "k": side}, options)


def _attention() -> Iterator[Case]:
    sizes = {name: operator("attention").size(name).values for name in _ATTENTION_SIZES}
    for kernel in ("cuda.attention_naive", "cuda.attention_tiled"):
        for dtype in ("f32", "f16"):
            yield _case(kernel, "attention", dtype, "4 heads", _HEADS)
        yield _case(kernel, "attention", "f16", "gpt2", sizes["gpt2"])
    for kernel in _ATTENTION:
        for size, values in {"4 heads": _HEADS, **sizes}.items():
            yield _case(kernel, "attention", "f16", size, values)
        yield _case(kernel, "attention", "bf16", "llama_3_8b", sizes["llama_3_8b"])
    for size, values in {"4 heads": _HEADS, "gpt2": sizes["gpt2"]}.items():
        yield _backward("f16", size, values)


def _case(
    kernel: str, name: str, dtype: str, size: str, values: Mapping[str, int], options: Mapping[str, Any] | None = None
) -> Case:
    """A case whose function takes the operator's inputs, and whether attention is causal."""
    targets = values.get("columns", 0)  # what integers stand for: places of columns
    inputs = tuple(
        Array(one.name, one.element(dtype_of(dtype)).name, one.shape(values), targets * (one.dtype == "s64"))
        for one in operator(name).inputs
    )
    options = {"causal": True} if values.get("causal") else options or {}
    return Case(kernel, dtype, size, values, inputs, options)


def _backward(dtype: str, size: str, values: Mapping[str, int]) -> Case:
    of_queries = tuple(values[axis] for axis in ("batch", "heads", "n", "d"))
    of_keys = tuple(values[axis] for axis in ("batch", "heads_kv", "n_kv", "d"))
    shapes = {"grad_out": of_queries, "q": of_queries, "k": of_keys, "v": of_keys, "out": of_queries}
    inputs = [Array(name, dtype, shape) for name, shape in shapes.items()]
    inputs.append(Array("log_sums", "f32", of_queries[:3]))
    return Case("triton.attention_backward", dtype, size, values, tuple(inputs), {"causal": bool(values["causal"])})
