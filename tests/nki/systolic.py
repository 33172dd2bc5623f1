"""Products as a column of the PE array sums them, in numpy's float64: no code of the machine's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def systolic(stationary: NDArray[Any], moving: NDArray[Any]) -> NDArray[np.float32]:
    """stationary [K, M].T @ moving [K, N]: exact products, added row after row, each sum rounded to float32."""
    left, right = stationary.astype(np.float64), moving.astype(np.float64)
    total = np.zeros((left.shape[1], right.shape[1]), np.float64)
    with np.errstate(all="ignore"):
        for one, other in zip(left, right, strict=True):
            total = _sum_in_float32(one[:, np.newaxis] * other[np.newaxis, :], total)
    return total.astype(np.float32)


def _sum_in_float32(product: NDArray[np.float64], total: NDArray[np.float64]) -> NDArray[np.float64]:
    """The exact sum rounded once to float32.

    A sum in float64 that is not exact is first made odd, towards what it lacks: to round an odd one again is to round
    the exact one (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
    """
    summed = product + total
    rest = summed - product
    error = (product - (summed - rest)) + (total - rest)
    bits = summed.view(np.int64)
    odd = np.where((error > 0) == (summed > 0), bits + 1, bits - 1).view(np.float64)
    exact = (error == 0) | ~np.isfinite(error) | (bits & 1 != 0)
    return np.where(exact, summed, odd).astype(np.float32).astype(np.float64)
