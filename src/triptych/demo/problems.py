"""What the demo's kernels must compute: operators at sizes of their own, in f32."""

from __future__ import annotations

import math
from dataclasses import dataclass

from triptych.demo.kernels.arrays import F32
from triptych.operators import Case, case, operator

ELEMENTS = 1 << 20
ROWS, INNER = 4096, 256
"""W is ROWS by INNER."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A case of an operator, by the name that the demo gives it."""

    title: str
    case: Case

    @property
    def inputs(self) -> tuple[F32, ...]:
        """Its inputs, in order."""
        return tuple(self.case.inputs.values())

    def largest_error(self, result: F32) -> float:
        """The largest error, as a multiple of what is allowed; infinite where an element is NaN or the shape is off."""
        return self.case.error((result,)) if result.shape == self.case.truth.shape else math.inf


def add_problem(seed: int = 0) -> Problem:
    """C = a + b."""
    return Problem("a + b", case(operator("vec_add"), {"n": ELEMENTS}, "f32", "normal", seed))


def gelu_problem(rows: int = ROWS, inner: int = INNER, seed: int = 0) -> Problem:
    """y = GELU(W x + b), with W of `rows` by `inner`, x of `inner` elements, and b and y of `rows`."""
    return Problem("GELU(W x + b)", case(operator("gelu_linear"), {"m": rows, "k": inner}, "f32", "normal", seed))
