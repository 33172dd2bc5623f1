"""One lane's atomic operation: the new value of an element from its old value and the operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from triptych.gpu.isa.spaces import GLOBAL, Space
from triptych.gpu.isa.types import F32, F64, ScalarType
from triptych.gpu.oracle.values import Lanes

_FLOATS: Mapping[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}

_INTEGER: Mapping[str, Callable[[int, int], int]] = {
    "add": lambda old, b: old + b,
    "min": min,
    "max": max,
    "and": lambda old, b: old & b,
    "or": lambda old, b: old | b,
    "xor": lambda old, b: old ^ b,
    "exch": lambda old, b: b,
    "inc": lambda old, b: 0 if old >= b else old + 1,
    "dec": lambda old, b: b if old == 0 or old > b else old - 1,
}


_NAN = {16: 0x7FFF, 32: 0x7FFF_FFFF}
"""By width; doubles keep theirs, in global memory without making it quiet."""


def updated(t: ScalarType, operation: str, old: int, operands: Sequence[int], space: Space) -> int:
    """The new bits of an element of a space (PTX manual, 9.7.13.5); `old` and `operands` are bits too."""
    if operation == "cas":
        return operands[1] if old == operands[0] else old
    if t.is_float:
        floats = [np.array([bits], f"u{t.bytes}").view(_FLOATS[t.name]) for bits in (old, operands[0])]
        return _update_float(t, operation, *floats, in_global=space is GLOBAL)
    left, right = (_number(t, bits) for bits in (old, operands[0]))
    return _INTEGER[operation](left, right) & ((1 << t.bits) - 1)


def _update_float(t: ScalarType, operation: str, old: Lanes, b: Lanes, *, in_global: bool) -> int:
    """Sums of halves are made in single precision; minima and maxima prefer numbers, and -0 to +0."""
    if operation == "add":
        flush = t is F32 and in_global
        wide = np.promote_types(old.dtype, np.float32)
        left, right = (_flushed(a, flush).astype(wide) for a in (old, b))
        new = _flushed((left + right).astype(old.dtype), flush)
    else:
        numbers = [a for a in (old, b) if not np.isnan(a)[0]] or [old]
        new = sorted(numbers, key=lambda a: (float(a[0]), not np.signbit(a)[0]))[0 if operation == "min" else -1]
    if np.isnan(new)[0] and t is not F64:
        return _NAN[t.bits]
    if t is F64 and in_global:
        new = next((a for a in (b, old) if np.isnan(a)[0]), new)
    return int(new.view(f"u{t.bytes}")[0])


def _flushed(a: Lanes, flush: bool) -> Lanes:
    """Subnormal singles as zeros of their sign, which sums in global memory take for them."""
    small = np.abs(a) < np.finfo(np.float32).tiny if flush else np.zeros(a.shape, np.bool_)
    return np.where(small, np.copysign(np.zeros_like(a), a), a)


def _number(t: ScalarType, bits: int) -> int:
    return bits - (1 << t.bits) if t.is_signed and bits >> (t.bits - 1) else bits
