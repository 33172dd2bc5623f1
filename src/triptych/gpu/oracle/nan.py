"""What results that are no number are: the hardware's NaN, whatever the processor's would be."""

from __future__ import annotations

import numpy as np

from triptych.gpu.isa.types import F32, ScalarType
from triptych.gpu.oracle.values import Lanes

_CANONICAL = np.uint32(0x7FFF_FFFF)
_INVALID = np.uint64(0xFFF8_0000_0000_0000)
_QUIET = np.uint64(1 << 51)


def hardware_nan(t: ScalarType, result: Lanes, *operands: Lanes) -> Lanes:
    """A result of f32 or f64 arithmetic with the NaN that an H200 gives.

    Of f32 it is the canonical one; of f64 the first of the operands that is NaN, made quiet, or the one of an invalid
    operation where none is.
    """
    nan = np.isnan(result)
    if t is F32:
        return np.where(nan, _CANONICAL, result.view(np.uint32)).view(np.float32)
    bits = np.full(result.shape, _INVALID)
    for operand in reversed(operands):
        bits = np.where(np.isnan(operand), operand.view(np.uint64) | _QUIET, bits)
    return np.where(nan, bits, result.view(np.uint64)).view(np.float64)
