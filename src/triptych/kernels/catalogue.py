"""The table of our kernels: the functions of `triptych.kernels.<language>`, and which operator each carries out.

Names alone, so that reading it imports no language. From a row follow the reference that the judge tells speedups
against, the record at named sizes, the page of kernels, and the tests and honest candidates that run the function.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from triptych.kernels.problems import FLOATS, HALVES

_CHIPS: Mapping[str, str] = {"cuda": "h100", "triton": "h100", "nki": "trn2"}
"""What kernels of a language run on, unless they need a later chip."""


@dataclass(frozen=True, slots=True)
class OwnKernel:
    """A function of arrays."""

    operator: str | None
    """The operator that it carries out; None where there is none for it."""
    function: str = ""
    """Its name; the operator's where it is left away."""
    language: str = ""
    dtypes: tuple[str, ...] = FLOATS
    """The element types that it takes."""
    needs_chip: str = ""
    """The first chip that can run it, where that is not the language's."""
    whole_tiles: bool = False
    """Whether it takes sizes that are multiples of its tiles alone."""
    as_operator: bool = True
    """Whether it takes the operator's inputs and returns its outputs, nothing else."""
    reads_values: bool = False
    """Whether its host looks at values of the inputs, which no capture has: the judge cannot take it."""
    reference: bool = False
    """Whether speedups of other kernels of the language are told against it."""

    @property
    def chip(self) -> str:
        """What it runs on where nobody asks for another chip."""
        return self.needs_chip or _CHIPS[self.language]

    @property
    def place(self) -> str:
        """`cuda.matmul_naive`: the language and the function."""
        return f"{self.language}.{self.function}"


_EVERYWHERE = (
    "vec_add", "elementwise_chain", "swiglu", "rope", "transpose", "reduce_sum", "softmax", "cross_entropy", "rms_norm",
    "layer_norm", "cumsum", "gelu_linear",
)  # fmt: skip
"""Functions that every language has by the operator's name."""
_ROWS: Mapping[str, tuple[OwnKernel, ...]] = {
    "cuda": (
        OwnKernel("matmul", "matmul_naive", dtypes=("f32", "f16")),
        OwnKernel("matmul", "matmul_tiled", dtypes=("f32", "f16"), reference=True),
        OwnKernel("matmul", "matmul_wmma", dtypes=("f16",), whole_tiles=True),
        OwnKernel("matmul", "matmul_mma", dtypes=("f16",), whole_tiles=True),
        OwnKernel("matmul", "matmul_wgmma", dtypes=HALVES, whole_tiles=True),
        OwnKernel("attention", "attention_naive"),
        OwnKernel("attention", "attention_tiled", reference=True),
        OwnKernel("attention", "attention_mma", dtypes=HALVES),
        OwnKernel("attention", "attention_wgmma", dtypes=HALVES),
    ),
    "triton": (
        OwnKernel("matmul", dtypes=HALVES, reference=True),
        OwnKernel("matmul", "persistent_matmul", dtypes=HALVES, whole_tiles=True),
        OwnKernel("grouped_matmul", dtypes=HALVES, as_operator=False),
        OwnKernel("attention", dtypes=HALVES, reference=True),
        OwnKernel("attention", "attention_forward", dtypes=HALVES, as_operator=False),
        OwnKernel("attention_backward", dtypes=HALVES, reference=True),
    ),
    "nki": (
        OwnKernel("matmul", reference=True),
        OwnKernel("matmul", "matmul_tiled", as_operator=False),
        OwnKernel("matmul", "matmul_hoisted", as_operator=False),
        OwnKernel("matmul", "matmul_blocked", as_operator=False),
        OwnKernel("matmul", "matmul_fully_blocked", as_operator=False),
        OwnKernel("attention", reference=True),
        OwnKernel("attention", "attention_forward", as_operator=False),
        OwnKernel("attention", "attention_streamed"),
        OwnKernel("attention_backward", reference=True),
        OwnKernel("mamba_scan", reference=True),
        OwnKernel("conv1d_depthwise", reference=True),
        OwnKernel("moe_matmul", reads_values=True),
        OwnKernel("quantised_matmul", dtypes=("f8e4m3fn",), needs_chip="trn3", reference=True),
        OwnKernel(None, "average_pool"),
        OwnKernel(None, "tensor_copy"),
    ),
}


def _all() -> Iterator[OwnKernel]:
    for name in _EVERYWHERE:
        yield from (OwnKernel(name, name, language, reference=True) for language in _ROWS)
    for language, rows in _ROWS.items():
        yield from (replace(row, function=row.function or row.operator or "", language=language) for row in rows)


KERNELS: Mapping[str, OwnKernel] = {one.place: one for one in _all()}
"""All, by place."""


def kernels_of(operator: str, language: str) -> Iterator[OwnKernel]:
    """Those of a language that carry out an operator."""
    return (one for one in KERNELS.values() if (one.operator, one.language) == (operator, language))
