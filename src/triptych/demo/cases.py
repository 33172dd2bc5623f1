"""The demo's cases: each a problem and a function in one language. Import it while Triton and NKI are active."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from triptych.core.languages import CUDA, NKI, TRITON, Language
from triptych.demo.kernels import cuda_host, nki_kernels, triton_kernels
from triptych.demo.kernels.arrays import F32
from triptych.demo.problems import Problem, add_problem, gelu_problem


@dataclass(frozen=True, slots=True)
class Case:
    """A problem solved in one language."""

    language: Language
    problem: Problem
    solve: Callable[..., F32]


def cases() -> Sequence[Case]:
    """Every case, in the order in which they are shown: of one problem and language, the fused form comes last."""
    add, gelu = add_problem(), gelu_problem()
    return (
        Case(CUDA, add, cuda_host.add),
        Case(TRITON, add, triton_kernels.add),
        Case(NKI, add, nki_kernels.add),
        Case(CUDA, gelu, cuda_host.gelu_linear_unfused),
        Case(CUDA, gelu, cuda_host.gelu_linear_fused),
        Case(TRITON, gelu, triton_kernels.gelu_linear_unfused),
        Case(TRITON, gelu, triton_kernels.gelu_linear_fused),
        Case(NKI, gelu, nki_kernels.gelu_linear_unfused),
        Case(NKI, gelu, nki_kernels.gelu_linear_fused),
    )
