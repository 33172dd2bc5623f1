"""Lane values as numpy arrays: one element for each of a warp's 32 lanes, and what PTX does to bits between types."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.core.errors import UnsupportedFeature
from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.isa.types import ScalarType

LANES = WARP_SIZE
Lanes = NDArray[Any]
"""An array of 32: unsigned integers of the type's width, float32, float64 or bool; f16 and bf16 by their bits."""
Mask = NDArray[np.bool_]


def lane_dtype(t: ScalarType) -> np.dtype[Any]:
    """The numpy type of one lane."""
    if t.kind == "predicate":
        return np.dtype(np.bool_)
    if t.name in ("f32", "f64"):
        return np.dtype(f"f{t.bits // 8}")
    return np.dtype(f"u{t.bits // 8}")


def unsigned(bits: int) -> np.dtype[Any]:
    """The unsigned integer of a width."""
    return np.dtype(f"u{bits // 8}")


def signed(bits: int) -> np.dtype[Any]:
    """The signed integer of a width."""
    return np.dtype(f"i{bits // 8}")


def filled(t: ScalarType, bits: int) -> Lanes:
    """The value with these bits in every lane."""
    if t.kind == "predicate":
        return np.full(LANES, bool(bits & 1))
    return np.full(LANES, bits & ((1 << t.bits) - 1), unsigned(t.bits)).view(lane_dtype(t))


def to_bits(t: ScalarType, a: Lanes) -> Lanes:
    """A value's bits as unsigned integers of its width."""
    return a.view(unsigned(t.bits))


def numbers(t: ScalarType, a: Lanes) -> list[int]:
    """An integer value's lanes as Python integers, signed or not as the type says."""
    return a.view(signed(t.bits) if t.is_signed else unsigned(t.bits)).tolist()


def from_numbers(t: ScalarType, values: list[int]) -> Lanes:
    """Python integers as lanes, modulo the width."""
    return np.array([value & ((1 << t.bits) - 1) for value in values], unsigned(t.bits))


def resize(a: Lanes, source: ScalarType, target_bits: int) -> Lanes:
    """An integer of another width: cut, or extended by the sign where `source` is signed."""
    if source.is_signed:
        a = a.view(signed(source.bits)).astype(signed(target_bits))
    return a.astype(unsigned(target_bits), copy=False).view(unsigned(target_bits))


def convert(a: Lanes, source: ScalarType, target: ScalarType) -> Lanes:
    """The same bits under another type: cut, or extended as `source` says (PTX manual, 9.4.1)."""
    if lane_dtype(source) == lane_dtype(target):
        return a
    if "predicate" in (source.kind, target.kind):
        raise UnsupportedFeature(f"a .{source} value is used as .{target}")
    return resize(to_bits(source, a), source, target.bits).view(lane_dtype(target))


def float_literal(bits: int, width: int, t: ScalarType) -> Lanes:
    """A floating-point literal of `width` bits as a value of `t`; a double literal is rounded to a single."""
    if width == 64 and t.bits == 32:
        number = struct.unpack("<d", bits.to_bytes(8, "little"))[0]
        return np.full(LANES, number, np.float64).astype(np.float32).view(lane_dtype(t))
    return filled(t, bits)
