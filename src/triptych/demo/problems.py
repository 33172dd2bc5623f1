"""What the demo's kernels must compute: inputs, the float64 result, and how far from it f32 arithmetic may end."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from triptych.demo.kernels.arrays import F32

F64 = NDArray[np.float64]
EPSILON = 2.0**-24
"""Half the distance from 1 to the next f32: one rounding's relative error."""
ELEMENTS = 1 << 20
ROWS, INNER = 4096, 256
"""W is ROWS by INNER."""


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


def add_problem(seed: int = 0) -> Problem:
    """C = a + b: one rounding an element, of which twice as much is allowed."""
    random = np.random.default_rng(seed)
    a, b = (random.standard_normal(ELEMENTS).astype(np.float32) for _ in range(2))
    expected = a.astype(np.float64) + b.astype(np.float64)
    return Problem("a + b", (a, b), expected, 2 * EPSILON * np.abs(expected) + 1e-30)


def gelu_problem(rows: int = ROWS, inner: int = INNER, seed: int = 0) -> Problem:
    """y = GELU(W x + b), with W of `rows` by `inner`, x of `inner` elements, and b and y of `rows`.

    The error is the usual bound of a dot product in any order, (terms + 2) roundings of its absolute terms, through
    GELU. GELU's slope is below 1.13, so the product's error grows by no more; evaluating erf, and the products around
    it, adds the relative error of 16 roundings, which is generous for the CUDA, libdevice and NKI versions alike.
    """
    random = np.random.default_rng(seed)
    w = (random.standard_normal((rows, inner)) / math.sqrt(inner)).astype(np.float32)
    x, b = (random.standard_normal(elements).astype(np.float32) for elements in (inner, rows))
    wide_w, wide_x, wide_b = (array.astype(np.float64) for array in (w, x, b))
    argument = wide_w @ wide_x + wide_b
    expected = 0.5 * argument * (1.0 + np.vectorize(math.erf)(argument / math.sqrt(2.0)))
    terms = np.abs(wide_w) @ np.abs(wide_x) + np.abs(wide_b)
    bound = EPSILON * (1.13 * (inner + 2) * terms + 16.0 * np.abs(argument))
    return Problem("GELU(W x + b)", (w, x, b), expected, bound)
