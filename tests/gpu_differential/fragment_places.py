"""Where elements of matrices lie in a warp's registers, by the closed forms of the PTX manual (9.7.14.5.1 to .13).

Written down from the manual and not from the table of fragments, which they are to be compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Place = Callable[[int, int], tuple[int, int]]
"""(%laneid, i) -> row and column of element i."""


@dataclass(frozen=True, slots=True)
class Element:
    """A type of elements: its bits, and the bits of a number."""

    bits: int
    encode: Callable[[Array], Array]
    register: str = "b32"

    @property
    def packed(self) -> int:
        return {"b32": 32, "f32": 32, "f64": 64}[self.register] // self.bits


def _float(kind: type, raw: str) -> Callable[[Array], Array]:
    return lambda numbers: numbers.astype(kind).view(raw).astype(np.uint64)


def _integer(bits: int) -> Callable[[Array], Array]:
    return lambda numbers: numbers.astype(np.int64).view(np.uint64) & np.uint64((1 << bits) - 1)


ELEMENTS: Mapping[str, Element] = {
    "f16": Element(16, _float(np.float16, "u2")),
    "bf16": Element(16, _float(ml_dtypes.bfloat16, "u2")),
    "tf32": Element(32, _float(np.float32, "u4")),
    "e4m3": Element(8, _float(ml_dtypes.float8_e4m3fn, "u1")),
    "e5m2": Element(8, _float(ml_dtypes.float8_e5m2, "u1")),
    "f32": Element(32, _float(np.float32, "u4"), "f32"),
    "f64": Element(64, _float(np.float64, "u8"), "f64"),
    "s32": Element(32, _integer(32)),
    **{f"{sign}{bits}": Element(bits, _integer(bits)) for sign in "us" for bits in (8, 4)},
    "b1": Element(1, _integer(1)),
}


def place_a(m: int, element: Element) -> Place:
    """Of A, row by row."""
    if element.bits == 64:
        return _place_f64_a
    p = element.packed

    def place(lane: int, i: int) -> tuple[int, int]:
        group, thread = lane >> 2, lane % 4
        if m == 8:
            return group, thread * p + i
        row = group if 0 <= i < p or 2 * p <= i < 3 * p else group + 8
        return row, thread * p + (i & (p - 1)) + (0 if i < 2 * p else 4 * p)

    return place


def _place_f64_a(lane: int, i: int) -> tuple[int, int]:
    group, thread = lane >> 2, lane % 4
    return (group, i * 2 + thread) if i % 2 == 0 else (group + 8, i * 2 - 2 + thread)


def place_b(element: Element) -> Place:
    """Of B: the row runs along k."""
    p = element.packed

    def place(lane: int, i: int) -> tuple[int, int]:
        group, thread = lane >> 2, lane % 4
        return thread * p + i % p + 4 * p * (i // p), group

    return place


def place_c(lane: int, i: int) -> tuple[int, int]:
    """Of accumulators."""
    group, thread = lane >> 2, lane % 4
    return (group if i < 2 else group + 8), thread * 2 + (i & 1)


def registers_of(numbers: Array, element: Element, place: Place) -> Array:
    """A matrix as registers: (register, lane), unsigned integers of the register's width."""
    bits = element.encode(numbers)
    count = numbers.size // 32 // element.packed
    words = np.zeros((count, 32), np.uint64)
    for lane in range(32):
        for i in range(count * element.packed):
            register, position = divmod(i, element.packed)
            words[register, lane] |= bits[place(lane, i)] << np.uint64(position * element.bits)
    return words.astype("u8" if element.register == "f64" else "u4")


def matrix_of(words: Array, element: Element, place: Place, shape: tuple[int, int]) -> Array:
    """The bits of a matrix from its registers."""
    bits = np.zeros(shape, np.uint64)
    mask = np.uint64((1 << element.bits) - 1) if element.bits < 64 else np.uint64(2**64 - 1)
    for lane in range(32):
        for i in range(len(words) * element.packed):
            register, position = divmod(i, element.packed)
            bits[place(lane, i)] = words[register, lane].astype(np.uint64) >> np.uint64(position * element.bits) & mask
    return bits
