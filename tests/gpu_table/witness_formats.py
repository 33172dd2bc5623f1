"""Conversions to and from tf32 and floats of 8 bits, finite results, and packing (PTX manual, 9.7.9.21, 9.7.9.22)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from exact import FORMATS, Format, Kind, Real, decode, encode
from expected import Expected, Halves
from opcodes import Opcode
from witness_float import clamped
from witness_integer import clamp, number, wrap

_TF32 = Format(19, 11, -136)
_BYTES: Mapping[str, tuple[Format, int, int]] = {
    "e4m3": (Format(16, 4, -9), 0x7E, 0x7F),
    "e5m2": (Format(16, 3, -16), 0x7B, 0x7D),
}
"""The formats with room for exponents that they do not have, the largest number's bits, the least NaN's."""


def _tf32_size(op: Opcode, a: Real) -> int:
    """The magnitude's bits, rounded to 11 digits."""
    size = replace(a, negative=False)
    if not op.has("rna"):
        bits = encode(_TF32, size, "rz" if op.has("rz") else "rn")
        assert bits is not None
        return bits
    lower = encode(_TF32, size, "rz")
    assert lower is not None
    if size.is_infinite or size.is_zero:
        return lower
    below = decode(_TF32, lower)
    # Half a unit in the last place, as a size at the exponent of the digits that were cut off.
    shift = min(size.exponent, below.exponent - 1)
    rest = (size.size << (size.exponent - shift)) - (below.size << (below.exponent - shift))
    return lower + (2 * rest >= 1 << (below.exponent - shift))


def to_tf32(op: Opcode, a: int) -> tuple[Expected]:
    value = decode(FORMATS["f32"], a)
    if op.has("rna") and (value.is_nan or value.is_infinite):  # by its bits
        cut = a & ~0x1FFF
        return (cut - 0x2000 if op.has("satfinite") else cut,)
    if value.is_nan:
        return (0x7FFFE000,)
    size = _tf32_size(op, value)
    if op.has("satfinite"):
        size = min(size, _TF32.infinity - 1)
    if value.negative and op.has("relu"):
        return (0,)
    return (size << 13 | (value.negative << 31),)


def _byte(op: Opcode, name: str, value: Real) -> int:
    fmt, largest, _ = _BYTES[name]
    if value.is_nan:
        return 0x7F
    if value.negative and op.has("relu"):
        return 0
    size = encode(fmt, replace(value, negative=False))
    assert size is not None
    return min(size, largest) | value.negative << 7


def to_bytes(op: Opcode, *operands: int) -> tuple[Expected]:
    target, source = op.types
    if source == "f16x2":
        (a,) = operands
        high, low = (decode(FORMATS["f16"], x) for x in (a >> 16, a & 0xFFFF))
    else:
        high, low = (decode(FORMATS["f32"], x) for x in operands)
    name = target.removesuffix("x2")
    return (_byte(op, name, high) << 8 | _byte(op, name, low),)


def _half(op: Opcode, name: str, byte: int) -> Expected:
    fmt, largest, nan = _BYTES[name]
    size, negative = byte & 0x7F, bool(byte >> 7)
    if size >= nan:
        return None
    value = replace(decode(fmt, size), negative=negative)
    if size > largest:
        value = Real(Kind.INFINITE, negative)
    return clamped(op, FORMATS["f16"], encode(FORMATS["f16"], value))


def from_bytes(op: Opcode, a: int) -> tuple[Expected]:
    name = op.types[1].removesuffix("x2")
    return (Halves(_half(op, name, a & 0xFF), _half(op, name, a >> 8), "f16"),)


def _finite(op: Opcode, name: str, a: int) -> Expected:
    fmt = FORMATS[name]
    bits = encode(fmt, decode(FORMATS["f32"], a), op.mode)
    if bits is not None and bits & ~fmt.sign == fmt.infinity:
        bits -= 1
    return clamped(op, fmt, bits)


def finite(op: Opcode, *operands: int) -> tuple[Expected]:
    if len(operands) == 1:
        return (_finite(op, op.type, operands[0]),)
    name = op.type.removesuffix("x2")
    high, low = (_finite(op, name, a) for a in operands)
    return (Halves(low, high, name),)


def pack(op: Opcode, a: int, b: int, c: int = 0) -> tuple[Expected]:
    """`c` above a above b, the latter two clamped to the field's type."""
    field = next((name for name in ("u2", "s2", "u4", "s4") if op.has(name)), op.type)
    bits = int(field[1:])
    high, low = (wrap(clamp(number("s32", x), field), bits) for x in (a, b))
    return (wrap(c << 2 * bits | high << bits | low, 32),)


def convert(op: Opcode, *operands: int) -> tuple[Expected] | None:
    """The witness's word on a conversion of these; None if it is another's."""
    if op.has("pack"):
        return pack(op, *operands)
    if op.types[0] == "tf32":
        return to_tf32(op, *operands)
    if op.types[0].removesuffix("x2") in _BYTES:
        return to_bytes(op, *operands)
    if op.types[1].removesuffix("x2") in _BYTES:
        return from_bytes(op, *operands)
    return finite(op, *operands) if op.has("satfinite") else None
