"""The demo's cases: each a problem and a function in one language. Import it while Triton and NKI are active."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from triptych.demo.kernels import cuda_host, nki_kernels, triton_kernels
from triptych.demo.kernels.arrays import F32
from triptych.demo.problems import Problem, add_problem, gelu_problem


@dataclass(frozen=True, slots=True)
class Case:
    """A problem solved in one language."""

    language: str
    problem: Problem
    solve: Callable[..., F32]


def cases() -> Sequence[Case]:
    """Every case, in the order in which they are shown: of one problem and language, the fused form comes last."""
    add, gelu = add_problem(), gelu_problem()
    return (
        Case("cuda", add, cuda_host.add),
        Case("triton", add, triton_kernels.add),
        Case("nki", add, nki_kernels.add),
        Case("cuda", gelu, cuda_host.gelu_linear_unfused),
        Case("cuda", gelu, cuda_host.gelu_linear_fused),
        Case("triton", gelu, triton_kernels.gelu_linear_unfused),
        Case("triton", gelu, triton_kernels.gelu_linear_fused),
        Case("nki", gelu, nki_kernels.gelu_linear_unfused),
        Case("nki", gelu, nki_kernels.gelu_linear_fused),
    )
