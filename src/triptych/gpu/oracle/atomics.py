"""One lane's atomic operation: the new value of an element from its old value and the operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from triptych.gpu.isa.types import ScalarType
from triptych.gpu.oracle.values import lane_dtype

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


def updated(t: ScalarType, operation: str, old: int, operands: Sequence[int]) -> int:
    """The new bits of an element (PTX manual, 9.7.13.5); `old` and `operands` are bits too."""
    if operation == "cas":
        return operands[1] if old == operands[0] else old
    if t.is_float and operation == "add":
        kind, whole = lane_dtype(t), np.dtype(f"u{t.bytes}")
        a, b = (np.array([bits], whole).view(kind) for bits in (old, operands[0]))
        return int((a + b).view(whole)[0])
    left, right = (_number(t, bits) for bits in (old, operands[0]))
    return _INTEGER[operation](left, right) & ((1 << t.bits) - 1)


def _number(t: ScalarType, bits: int) -> int:
    return bits - (1 << t.bits) if t.is_signed and bits >> (t.bits - 1) else bits
