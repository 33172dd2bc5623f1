"""Conversions of tf32 and floats of 4 to 8 bits, finite results, and packing (PTX manual, 9.7.9.21, 9.7.9.22)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from exact import FORMATS, Format, Kind, Real, decode, encode
from expected import Expected, Halves
from opcodes import Opcode
from witness_float import clamped
from witness_integer import clamp, number, wrap

_TF32 = Format(19, 11, -136)


@dataclass(frozen=True, slots=True)
class Small:
    """A format of a few bits: with room for exponents that it does not have, and its largest number's bits."""

    fmt: Format
    bits: int
    largest: int
    nan: int | None = 0x7F
    least_nan: int = 0x7F
    place: int = 8


_SMALL: Mapping[str, Small] = {
    "e4m3": Small(Format(16, 4, -9), 8, 0x7E),
    "e5m2": Small(Format(16, 3, -16), 8, 0x7B, least_nan=0x7D),
    "e2m3": Small(Format(16, 4, -3), 6, 0x1F, nan=None),
    "e3m2": Small(Format(16, 3, -4), 6, 0x1F, nan=None),
    "e2m1": Small(Format(16, 2, -1), 4, 0x7, nan=None, place=4),
}


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


def _code(op: Opcode, small: Small, value: Real) -> int:
    if value.is_nan:
        return small.largest if small.nan is None else small.nan
    if value.negative and op.has("relu"):
        return 0
    size = encode(small.fmt, replace(value, negative=False))
    assert size is not None
    return min(size, small.largest) | value.negative << (small.bits - 1)


def to_small(op: Opcode, *operands: int) -> tuple[Expected]:
    target, source = op.types
    name = source.removesuffix("x2")
    if name != source:
        (a,) = operands
        operands = (a >> 16, a & 0xFFFF)
    high, low = (decode(FORMATS[name], x) for x in operands)
    small = _SMALL[target.removesuffix("x2")]
    return (_code(op, small, high) << small.place | _code(op, small, low),)


def _half(op: Opcode, small: Small, code: int) -> Expected:
    size, negative = code & ((1 << (small.bits - 1)) - 1), bool(code >> (small.bits - 1) & 1)
    if small.nan is not None and size >= small.least_nan:
        return None
    value = replace(decode(small.fmt, size), negative=negative)
    name = op.types[0].removesuffix("x2")
    if size > small.largest:
        value = Real(Kind.INFINITE, negative)
    bits = encode(FORMATS[name], value)
    if op.has("satfinite") and bits is not None and value.is_infinite:
        bits -= 1
    return clamped(op, FORMATS[name], bits)


def from_small(op: Opcode, a: int) -> tuple[Expected]:
    small = _SMALL[op.types[1].removesuffix("x2")]
    return (Halves(_half(op, small, a), _half(op, small, a >> small.place), op.types[0].removesuffix("x2")),)


def _power(op: Opcode, value: Real) -> int:
    """The exponent of the power of two next to a magnitude, + 127; 0 stands for all that are too small."""
    if value.is_nan:
        return 0xFF
    if value.is_zero:
        return 0
    exponent = 999
    if not value.is_infinite:
        exponent = value.exponent + value.size.bit_length() - 1
        exponent += op.has("rp") and value.size & (value.size - 1) != 0
    return min(max(exponent + 127, 0), 0xFE if op.has("satfinite") else 0xFF)


def to_powers(op: Opcode, *operands: int) -> tuple[Expected]:
    if len(operands) == 1:
        high, low = (decode(FORMATS["bf16"], x) for x in (operands[0] >> 16, operands[0] & 0xFFFF))
    else:
        high, low = (decode(FORMATS["f32"], x) for x in operands)
    return (_power(op, high) << 8 | _power(op, low),)


def from_powers(op: Opcode, a: int) -> tuple[Expected]:
    low, high = (
        None if code == 0xFF else encode(FORMATS["bf16"], Real(Kind.NUMBER, False, 1, code - 127))
        for code in (a & 0xFF, a >> 8)
    )
    return (Halves(low, high, "bf16"),)


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
    field = op.type
    bits = int(field[1:])
    high, low = (wrap(clamp(number("s32", x), field), bits) for x in (a, b))
    return (wrap(c << 2 * bits | high << bits | low, 32),)


def convert(op: Opcode, *operands: int) -> tuple[Expected] | None:
    """The witness's word on a conversion of these; None if it is another's."""
    if op.has("pack"):
        return pack(op, *operands)
    if op.types[0] == "tf32":
        return to_tf32(op, *operands)
    if "ue8m0x2" in op.types:
        return to_powers(op, *operands) if op.types[0] == "ue8m0x2" else from_powers(op, *operands)
    if op.types[0].removesuffix("x2") in _SMALL:
        return to_small(op, *operands)
    if op.types[1].removesuffix("x2") in _SMALL:
        return from_small(op, *operands)
    return finite(op, *operands) if op.has("satfinite") else None
