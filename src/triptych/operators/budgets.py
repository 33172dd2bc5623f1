"""What budgets are made of: roundings to a type, sums in f32, and what f32 functions of a GPU may be off by."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import ml_dtypes
import numpy as np

from triptych.core.dtypes import DType
from triptych.operators.operator import Array

UNIT = 2.0**-24
"""Half the distance from 1 to the next f32: one rounding's relative error."""
SMALLEST = 2.0**-126
"""f32's smallest normal number: what is below may be flushed to zero."""
_STRAYING = 8.0
"""Standard deviations of a sum's rounding errors that are allowed."""
_STEP = 8
"""Terms that a tensor core adds without rounding between them, at least."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Of a floating-point type."""

    unit: float
    """The relative error of a rounding: 2⁻²⁴ for f32, 2⁻¹¹ for f16, 2⁻⁸ for bf16, 2⁻⁴ for f8e4m3fn."""
    largest: float
    smallest_normal: float
    smallest: float


@cache
def limits(dtype: DType) -> Limits:
    """A floating-point type's."""
    info = cast("Any", ml_dtypes.finfo(dtype.numpy))
    return Limits(float(info.eps) / 2, float(info.max), float(info.tiny), float(info.smallest_subnormal))


def rounding(values: Array, dtype: DType) -> Array:
    """The error of storing values in a type: relative, and what numbers below the type's normal ones lose."""
    if not dtype.is_float:
        return np.zeros(values.shape)
    of = limits(dtype)
    return of.unit * np.abs(values) + max(of.smallest / 2, SMALLEST)


def chain(terms: int) -> float:
    """How many f32 roundings the error of a sum of so many terms is worth, relative to the sum of absolute terms.

    No order of adding makes more than `terms` roundings errors of full size. Rounding errors of long sums have either
    sign, unless all terms are equal: they add up as a random walk does, and 8 √terms is beyond it but for one sum in
    10¹³ (Higham and Mary, "A new approach to probabilistic rounding error analysis", SIAM J. Sci. Comput. 41, 2019).
    Tensor cores cut off, which is one-sided, but once for 8 products at least: terms / 8.
    """
    return min(float(terms), max(_STRAYING * math.sqrt(terms), terms / _STEP))


def sums(absolute_terms: Array, terms: int) -> Array:
    """The error of sums in f32, in any order.

    Args:
        absolute_terms: the sums of the terms' absolute values.
        terms: how many each has.
    """
    return UNIT * chain(terms) * absolute_terms + terms * SMALLEST


def exponential(argument: Array) -> Array:
    """The relative error of exp in f32, by `ex2.approx` of an argument scaled by log2 e: 2 |x| + 8 roundings."""
    return UNIT * (2 * np.abs(argument) + 8)


FUNCTION = 16 * UNIT
"""The relative error of f32 functions other than exp (erf, tanh, logarithm, sine, reciprocal root), generously."""
