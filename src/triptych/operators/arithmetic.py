"""Functions that references share: each computes in the type of what it is given."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from triptych.core.dtypes import DTYPES, DType
from triptych.operators.operator import Array, Arrays

_erf = np.vectorize(math.erf, otypes=[np.float64])

NARROW: Mapping[str, np.dtype[Any]] = {
    name: DTYPES[kind].numpy for name, kind in {"f32": "f16", "f16": "f16", "bf16": "bf16"}.items()
}
"""What a careless kernel sums up in, by T."""


def pick(given: Arrays, names: str) -> list[Array]:
    """The arrays of those names, which stand with blanks between."""
    return [given[name] for name in names.split()]


def erf(x: Array) -> Array:
    """The error function of each element."""
    return _erf(x).astype(x.dtype)


def gelu(x: Array) -> Array:
    """x Φ(x), with Φ the normal distribution's function."""
    return x * (1 + erf(x / x.dtype.type(math.sqrt(2)))) / 2


def sigmoid(x: Array) -> Array:
    """1 / (1 + e⁻ˣ)."""
    return 1 / (1 + np.exp(-x))


def exponentials(x: Array) -> tuple[Array, Array, Array]:
    """Along the last axis, which stays: e^(x − the largest), their sum, and the largest."""
    largest: Array = x.max(-1, keepdims=True)
    powers = np.exp(x - np.where(np.isneginf(largest), 0, largest))
    return powers, powers.sum(-1, keepdims=True), largest


def softmax(x: Array) -> Array:
    """Along the last axis."""
    powers, total, _ = exponentials(x)
    return powers / total


def narrow_sum(terms: Array, dtype: DType) -> Array:
    """A careless sum along the last axis: one term after the other, in half precision or in T."""
    kind = NARROW[dtype.name]
    total: Array = np.zeros(terms.shape[:-1], kind)
    for place in range(terms.shape[-1]):
        total = (total + terms[..., place].astype(kind)).astype(kind)
    return total.astype(np.float64)


def narrow_product(a: Array, b: Array, dtype: DType) -> Array:
    """A careless product of matrices `(…, m, k)` and `(…, k, n)`: sums in half precision or in T."""
    kind = NARROW[dtype.name]
    total: Array = np.zeros((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1]), kind)
    for place in range(a.shape[-1]):
        total = (total + (a[..., :, place, None] * b[..., None, place, :]).astype(kind)).astype(kind)
    return total.astype(np.float64)


def coarse(values: Array, digits: int) -> Array:
    """Floating-point numbers, rounded to so many binary digits."""
    with np.errstate(all="ignore"):
        mantissa, exponent = np.frexp(values)
        return np.where(np.isfinite(values), np.ldexp(np.round(np.ldexp(mantissa, digits)), exponent - digits), values)
