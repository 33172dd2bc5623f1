"""How far the outputs of the recorded programs may be from a device's, element by element.

Products: each of k additions in f32 is off by half a unit, 2^-24 of all that is added up. A step of an H200's tensor
cores, of 8 or 16 products, cuts these and C by less than 2^-25 of the largest each, and the sum by 2^-23 of it: below
2^-24 for each product. Together that is k · 2^-23 of Σ|a·b|; one step of the output's type comes on top.

Attention: the weights of the values, which add up to 1, are rounded to the inputs' type, and where an exponential
differs, one step further. With one step of the output that is twice 2^-digits of the largest value.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from program_cases import Case
from program_run import Output

_DIGITS: Mapping[str, int] = {"f16": 10, "bf16": 7, "f32": 23}
_LEAST = 2.0**-126
"""The smallest normal number of f32: what is below it counts as if it were that."""


def _numbers(bits: NDArray[np.uint16], dtype: str) -> NDArray[np.float64]:
    """Sizes of the inputs; what is not finite is left out."""
    size = np.abs(Output(bits.reshape(-1).view(np.uint8), dtype).numbers.reshape(bits.shape))
    return np.where(np.isfinite(size), size, 0)


def bound_of(case: Case, place: int, expected: Output) -> NDArray[np.float64]:
    """The largest difference that each element of an output, the `place`-th, may have."""
    inputs = [_numbers(bits, case.dtype) for bits in case.inputs()]
    size = np.abs(np.where(np.isfinite(expected.numbers), expected.numbers, 0))
    if not case.is_attention:
        total = (inputs[0] @ inputs[1]).reshape(-1)
        step = 0 if expected.dtype == "f32" else 2.0 ** -_DIGITS[expected.dtype] * np.maximum(size, 2.0**-14)
        return case.sizes[2] * 2.0**-23 * np.maximum(total, _LEAST) + step
    if expected.dtype == "f32":  # logarithms of sums
        return 2.0**-20 * np.maximum(size, 1)
    return np.full(size.shape, 2.0 ** (1 - _DIGITS[case.dtype]) * inputs[2].max())


def part_of_bound(case: Case, place: int, found: Output, expected: Output) -> float:
    """The largest difference, as a part of what it may be; infinite where one is finite and the other is not."""
    ours, theirs = found.numbers, expected.numbers
    if (np.isnan(ours) != np.isnan(theirs)).any() or (np.isinf(ours) != np.isinf(theirs)).any():
        return float("inf")
    both = np.isfinite(ours)
    apart = np.abs(ours[both] - theirs[both]) / bound_of(case, place, expected)[both]
    return float(apart.max(initial=0))
