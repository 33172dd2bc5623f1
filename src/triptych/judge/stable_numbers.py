"""Numbers without the digits that a processor decides: the same candidate gets the same score on any machine.

A reference is computed in float64 by numpy and its BLAS, which sum up in another order, and take other functions, where
a processor has other instructions: the last digits of what is compared with it differ. Inputs, kernels' results and
counters do not.
"""

from __future__ import annotations

COMPARED_DIGITS = 6
"""Of an error, as a multiple of what is allowed or absolute: float64 leaves ten more."""
EXPECTED_DIGITS = 9
"""Of what was expected: as many as tell numbers of float32 apart."""


def to_digits(value: float, digits: int) -> float:
    """The nearest number of so many significant decimal digits; infinities and NaN stay."""
    return float(f"{value:.{digits}g}")
