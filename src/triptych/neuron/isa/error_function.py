"""erf and erfc on arrays, to about 1e-13: numpy has neither, and calling math.erf for each element is slow."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

Doubles = NDArray[np.float64]

# erf(x) = x P(x²) below 1; erfc(x) = exp(-x²) Q((x - 3) / (x + 3)) from 1 up to 27, where it underflows.
# P and Q are smooth, and are interpolated at the Chebyshev points of their interval from the values of the math module.
_EDGE, _TOP = 1.0, 26.5
_LOW_DEGREE, _HIGH_DEGREE = 14, 24


def _interpolate(degree: int, values: list[float]) -> Doubles:
    points = chebyshev.chebpts1(degree + 1)
    return chebyshev.chebfit(points, np.array(values), degree).astype(np.float64)


def _nodes(low: float, high: float, degree: int) -> list[float]:
    return [low + (high - low) * (float(point) + 1) / 2 for point in chebyshev.chebpts1(degree + 1)]


def _fold(x: float) -> float:
    return (x - 3) / (x + 3)


@cache
def _coefficients() -> tuple[Doubles, Doubles]:
    squares = _nodes(0.0, _EDGE, _LOW_DEGREE)
    low = [math.erf(math.sqrt(t)) / math.sqrt(t) for t in squares]
    folded = _nodes(_fold(_EDGE), _fold(_TOP), _HIGH_DEGREE)
    arguments = [3 * (1 + s) / (1 - s) for s in folded]
    high = [math.erfc(x) * math.exp(x * x) for x in arguments]
    return _interpolate(_LOW_DEGREE, low), _interpolate(_HIGH_DEGREE, high)


def _centre(values: Doubles, low: float, high: float) -> Doubles:
    """`values` of [low, high], mapped to [-1, 1]."""
    return (2 * values - (low + high)) / (high - low)


def _erf_near_zero(x: Doubles) -> Doubles:
    return x * chebyshev.chebval(_centre(x * x, 0.0, _EDGE), _coefficients()[0])


def _erfc_of_large(x: Doubles) -> Doubles:
    within = np.clip(x, _EDGE, _TOP)
    folded = (within - 3) / (within + 3)
    scaled = chebyshev.chebval(_centre(folded, _fold(_EDGE), _fold(_TOP)), _coefficients()[1])
    return np.asarray(np.exp(-x * x) * scaled, np.float64)


def erf(x: Doubles) -> Doubles:
    """The error function; NaN stays NaN."""
    size = np.abs(x)
    near = _erf_near_zero(np.clip(x, -_EDGE, _EDGE))
    far = np.copysign(1 - _erfc_of_large(size), x)
    return np.where(np.isnan(x), x, np.where(size < _EDGE, near, far))


def erfc(x: Doubles) -> Doubles:
    """1 - erf(x), with its relative precision kept where it is small."""
    tail = _erfc_of_large(np.abs(x))
    near = 1 - _erf_near_zero(np.clip(x, -_EDGE, _EDGE))
    far = np.where(x > 0, tail, 2 - tail)
    return np.where(np.isnan(x), x, np.where(np.abs(x) < _EDGE, near, far))
