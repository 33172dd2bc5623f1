"""Conversions at the edge of an engine: float32 inside, results rounded to the destination's dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.core.dtypes import DType


def widen(values: NDArray[Any]) -> NDArray[np.float32]:
    """The float32 that an engine computes with; 32-bit integers are rounded to nearest even."""
    return values.astype(np.float32, copy=False)


_TF32_DROPPED = 13
"""Bits of a float32's mantissa that tf32 lacks."""


def round_to_tf32(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """To 10 bits of mantissa, to nearest even (AWS does not publish the rounding); NaN and infinities stay."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    half = np.uint32((1 << (_TF32_DROPPED - 1)) - 1)
    odd = (bits >> np.uint32(_TF32_DROPPED)) & np.uint32(1)
    rounded = (bits + half + odd) & np.uint32(0xFFFFFFFF << _TF32_DROPPED & 0xFFFFFFFF)
    return np.where(np.isfinite(values), rounded.view(np.float32), values)


def convert(values: NDArray[Any], dtype: DType, *, as_bits: bool = False) -> NDArray[Any]:
    """`values` in `dtype`, rounded to nearest even; integers saturate, and NaN becomes 0 in them.

    `as_bits`: integers are what a bit operation gave, and integers of `dtype` get their low bits as they are.
    """
    if dtype.name == "tf32":
        return round_to_tf32(widen(values))
    if values.dtype == dtype.stored or dtype.packed:
        return values.astype(dtype.stored, copy=False)
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
