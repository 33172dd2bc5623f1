"""Conversions at the edge of an engine: float32 inside, results rounded to the destination's dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.core.dtypes import DType


def widen(values: NDArray[Any]) -> NDArray[np.float32]:
    """The float32 that an engine computes with; 32-bit integers are rounded to nearest even."""
    return values.astype(np.float32, copy=False)


def convert(values: NDArray[Any], dtype: DType, *, as_bits: bool = False) -> NDArray[Any]:
    """`values` in `dtype`, rounded to nearest even; integers saturate, and NaN becomes 0 in them.

    `as_bits`: integers are what a bit operation gave, and integers of `dtype` get their low bits as they are.
    """
    if values.dtype == dtype.numpy:
        return values
    if dtype.is_float:
        return values.astype(dtype.numpy)
    if dtype.name == "b1":
        return values != 0
    if as_bits and values.dtype.kind in "iu":
        return values.astype(dtype.numpy)
    limits = np.iinfo(dtype.numpy)
    if values.dtype.kind in "iub":
        return np.clip(values.astype(np.int64), limits.min, limits.max).astype(dtype.numpy)
    rounded = np.nan_to_num(np.rint(values.astype(np.float64)), nan=0.0, posinf=limits.max, neginf=limits.min)
    return np.clip(rounded, limits.min, limits.max).astype(dtype.numpy)
