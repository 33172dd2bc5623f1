"""Whole programs that are recorded on a GPU: triptych's kernels for tensor cores, each with inputs from a seed.

`benchmarks/hardware/record_programs.py` records them. Numbers are made from the raw output of PCG64 by integer
arithmetic, so that every version of numpy makes the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.uint16]
"""Raw bits of f16 or bf16."""


@dataclass(frozen=True, slots=True)
class Case:
    """One launch of one kernel."""

    kernel: str
    """A function of `triptych.kernels`: its language's module and its name."""
    dtype: str
    sizes: tuple[int, ...]
    """M, n and k of a product; batch, heads of q, those of k and v, n, n_kv and d of attention."""
    style: str = "usual"
    causal: bool = False
    target: str = ""
    """What Triton compiles for; of CUDA a kernel has its own."""
    plain: bool = False
    """Whether functions that are approximated are replaced in the PTX (`plain_functions.py`)."""

    @property
    def name(self) -> str:
        """Names all of it."""
        marks = [mark for mark, there in (("causal", self.causal), ("plain", self.plain)) if there]
        return " ".join([self.kernel, *([self.target] if self.target else []), self.dtype,
                         "x".join(map(str, self.sizes)), self.style, *marks])  # fmt: skip

    @property
    def is_attention(self) -> bool:
        """Whether it is attention, else a product of matrices."""
        return "attention" in self.kernel

    @property
    def is_shown(self) -> bool:
        """Whether the record has its outputs, else their digests alone: those that need not have the same bits."""
        return self.is_attention and not self.plain

    def inputs(self) -> tuple[Bits, ...]:
        """A and B, or q, k and v."""
        seed = crc32(replace(self, plain=False).name.encode())
        source = np.random.PCG64(seed)
        if self.is_attention:
            batch, heads, heads_kv, n, n_kv, d = self.sizes
            of_keys = batch, heads_kv, n_kv, d
            return tuple(_numbers(source, self, shape) for shape in ((batch, heads, n, d), of_keys, of_keys))
        m, n, k = self.sizes
        a, b = _numbers(source, self, (m, k)), _numbers(source, self, (k, n))
        if self.style == "cancel":  # the second half takes away what the first half gave, but for one part in 32
            half = k // 2
            kept = source.random_raw(m * half).reshape(m, half) >> np.uint64(59) == 0
            a[:, half : 2 * half] = np.where(kept, a[:, half : 2 * half], a[:, :half] ^ np.uint16(0x8000))
            b[half : 2 * half] = b[:half]
        return a, b


# --- Numbers ------------------------------------------------------------------------------------------------------

_MANTISSA: Mapping[str, int] = {"f16": 10, "bf16": 7}
"""Bits of the mantissa."""
_BIAS: Mapping[str, int] = {"f16": 15, "bf16": 127}
_FIELDS: Mapping[str, Mapping[str, Sequence[int]]] = {
    "f16": {"usual": range(12, 17), "wide": range(31), "ends": (0, 1, 30), "sharp": range(15, 18)},
    "bf16": {"usual": range(124, 129), "wide": range(107, 147), "ends": (0, 1, 189, 254), "sharp": range(127, 130)},
}
"""By style, the exponents' fields: 0 is that of zeros and subnormal numbers; the last of bf16 overflows in products."""


def _numbers(source: np.random.PCG64, case: Case, shape: tuple[int, ...]) -> Bits:
    raw = source.random_raw(int(np.prod(shape))).reshape(shape)
    mantissa = _MANTISSA[case.dtype]
    fields = np.array(_FIELDS[case.dtype].get(case.style, _FIELDS[case.dtype]["usual"]), np.uint64)
    field = fields[((raw >> np.uint64(32)) & np.uint64(0xFFFF)) % np.uint64(len(fields))]
    value = (raw & np.uint64(0x8000)) | field << np.uint64(mantissa) | (raw & np.uint64((1 << mantissa) - 1))
    if case.style == "special":
        top = 0x7FFF ^ ((1 << mantissa) - 1)
        special = np.array([top, 0x8000 | top, top | 1, 0x8000 | top | 1 << (mantissa - 1), 0, 0x8000], np.uint64)
        chosen = special[((raw >> np.uint64(48)) & np.uint64(0xFF)) % np.uint64(len(special))]
        value = np.where(raw >> np.uint64(56) < 4, chosen, value)
    return value.astype(np.uint16)


# --- The cases ----------------------------------------------------------------------------------------------------

_PRODUCTS = ("usual", "wide", "ends", "special", "cancel")
_TRITON = tuple(product(("sm_80", "sm_90"), ("f16", "bf16")))


def cases() -> Sequence[Case]:
    """All of them, in the order of the record."""
    return [*_products(), *_attention()]


def _products() -> Iterator[Case]:
    sizes = {"cuda.matmul_wmma": (48, 80, 96), "cuda.matmul_mma": (77, 72, 104), "cuda.matmul_wgmma": (77, 72, 104)}
    for kernel, extents in sizes.items():
        for style in _PRODUCTS:
            yield Case(kernel, "f16", extents, style)
        yield Case(kernel, "f16", (256, 384, 512))
    for target, dtype in _TRITON:
        for style in _PRODUCTS:
            yield Case("triton.matmul", dtype, (96, 80, 112), style, target=target)
        yield Case("triton.matmul", dtype, (77, 72, 104), target=target)
        yield Case("triton.matmul", dtype, (256, 384, 512), target=target)


def _attention() -> Iterator[Case]:
    for plain in (False, True):
        for kernel, dtype, d in product(("cuda.attention_mma", "cuda.attention_wgmma"), ("f16", "bf16"), (64, 128)):
            yield Case(kernel, dtype, (1, 2, 1, 33, 140, d), plain=plain)
            yield Case(kernel, dtype, (1, 2, 1, 66, 133, d), causal=True, plain=plain)
        for kernel, dtype in product(("cuda.attention_mma", "cuda.attention_wgmma"), ("f16", "bf16")):
            yield Case(kernel, dtype, (2, 1, 1, 17, 300, 64), "sharp", plain=plain)
        for (target, dtype), d in zip(_TRITON, (64, 128, 128, 64), strict=True):
            yield Case("triton.attention", dtype, (1, 2, 1, 33, 140, d), target=target, plain=plain)
            yield Case("triton.attention", dtype, (1, 2, 1, 66, 133, d), causal=True, target=target, plain=plain)
    for kernel in ("cuda.attention_mma", "cuda.attention_wgmma"):
        yield Case(kernel, "f16", (1, 4, 2, 300, 500, 64), causal=True, plain=True)
