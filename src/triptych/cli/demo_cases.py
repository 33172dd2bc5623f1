"""What `triptych demo` runs: each case a function in one language, its inputs, and how wrong its result may be."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from triptych.cli.demo_kernels.arrays import F32

F64 = NDArray[np.float64]
EPSILON = 2.0**-24
"""Half the distance from 1 to the next f32: one rounding's relative error."""
ELEMENTS = 1 << 20
ROWS, INNER, COLUMNS = 128, 256, 256
"""W is ROWS by INNER, x INNER by COLUMNS."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Inputs, the float64 result, and the error that f32 arithmetic may make in each element."""

    title: str
    inputs: tuple[F32, ...]
    expected: F64
    bound: F64

    def largest_error(self, result: F32) -> float:
        """The largest error, as a multiple of what is allowed; infinite where an element is NaN or the shape is off."""
        if result.shape != self.expected.shape:
            return math.inf
        share = np.abs(result.astype(np.float64) - self.expected) / self.bound
        return math.inf if bool(np.isnan(share).any()) else float(share.max())


@dataclass(frozen=True, slots=True)
class Case:
    """A problem solved in one language."""

    language: str
    problem: Problem
    solve: Callable[..., F32]


def add_problem(seed: int = 0) -> Problem:
    """C = a + b: one rounding an element, of which twice as much is allowed."""
    random = np.random.default_rng(seed)
    a, b = (random.standard_normal(ELEMENTS).astype(np.float32) for _ in range(2))
    expected = a.astype(np.float64) + b.astype(np.float64)
    return Problem("a + b", (a, b), expected, 2 * EPSILON * np.abs(expected) + 1e-30)


def gelu_problem(seed: int = 0) -> Problem:
    """GELU(W x + b): the usual bound of a dot product, (terms + 2) roundings of its absolute terms, through GELU.

    GELU's slope is below 1.13, so the product's error grows by no more; evaluating erf, and the products around it,
    adds the relative error of 16 roundings, which is generous for the CUDA, libdevice and NKI versions alike.
    """
    random = np.random.default_rng(seed)
    w = (random.standard_normal((ROWS, INNER)) / math.sqrt(INNER)).astype(np.float32)
    x, b = (random.standard_normal(shape).astype(np.float32) for shape in ((INNER, COLUMNS), (ROWS,)))
    wide_w, wide_x, wide_b = (array.astype(np.float64) for array in (w, x, b))
    inner = wide_w @ wide_x + wide_b[:, None]
    expected = 0.5 * inner * (1.0 + np.vectorize(math.erf)(inner / math.sqrt(2.0)))
    terms = np.abs(wide_w) @ np.abs(wide_x) + np.abs(wide_b)[:, None]
    bound = EPSILON * (1.13 * (INNER + 2) * terms + 16.0 * np.abs(inner))
    return Problem("GELU(W x + b)", (w, x, b), expected, bound)


def cases() -> Sequence[Case]:
    """Every case, in the order in which they are shown. Triton and NKI must be active."""
    from triptych.cli.demo_kernels import cuda_host, nki_kernels, triton_kernels

    add, gelu = add_problem(), gelu_problem()
    return (
        Case("cuda", add, cuda_host.add),
        Case("triton", add, triton_kernels.add),
        Case("nki", add, nki_kernels.add),
        Case("cuda", gelu, cuda_host.gelu_linear_unfused),
        Case("cuda", gelu, cuda_host.gelu_linear),
        Case("triton", gelu, triton_kernels.gelu_linear_unfused),
        Case("triton", gelu, triton_kernels.gelu_linear_fused),
        Case("nki", gelu, nki_kernels.gelu_linear_unfused),
        Case("nki", gelu, nki_kernels.gelu_linear_fused),
    )
