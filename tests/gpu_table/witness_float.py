"""Floating-point arithmetic, exact and then rounded once (PTX manual, 9.7.3, 9.7.4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import exact
from exact import FORMATS, Format, Kind, Real, decode, encode
from expected import Expected, Halves
from opcodes import Opcode

ONE = Real(Kind.NUMBER, False, 1, 0)


def flushed(op: Opcode, name: str, bits: int) -> int:
    """Subnormals become zeros of the same sign under `.ftz`, which singles and halves have."""
    fmt = FORMATS[name]
    small = bits & (fmt.sign - 1) < fmt.smallest_normal
    return bits & fmt.sign if op.has("ftz") and name in ("f32", "f16") and small else bits


def clamped(op: Opcode, fmt: Format, bits: int | None) -> Expected:
    """`.sat` and `.relu` on a rounded result."""
    if op.has("sat"):
        one = encode(fmt, ONE)
        assert one is not None
        return 0 if bits is None or bits & fmt.sign else min(bits, one)
    return 0 if op.has("relu") and bits is not None and bits & fmt.sign else bits


_FAR_BELOW = 200


def finish(op: Opcode, name: str, value: Real) -> Expected:
    """A value as the result of an instruction; `.ftz` looks at it as rounded if exponents had no end."""
    fmt = FORMATS[name]
    endless = Format(64, fmt.digits, fmt.least - _FAR_BELOW)
    bits = encode(endless, value, op.mode)
    flushes = op.has("ftz") and name in ("f32", "f16")
    if flushes and bits is not None and bits & (endless.sign - 1) < (_FAR_BELOW + 1) * fmt.smallest_normal:
        return clamped(op, fmt, fmt.sign if bits & endless.sign else 0)
    return clamped(op, fmt, encode(fmt, value, op.mode))


def _calculate(op: Opcode, a: Real, b: Real, c: Real) -> Real:
    match op.mnemonic:
        case "add":
            return exact.add(a, b, op.mode)
        case "sub":
            return exact.add(a, b if b.is_nan else replace(b, negative=not b.negative), op.mode)
        case "mul":
            return exact.multiply(a, b)
        case "div":
            return exact.divide(a, b)
        case "rcp":
            return exact.divide(ONE, a)
        case "sqrt":
            return exact.square_root(a)
        case _:
            return exact.add(exact.multiply(a, b), c, op.mode)


def in_halves(single: Callable[..., Expected]) -> Callable[..., tuple[Expected]]:
    """An operation `(op, type, *operands)` for single values and for pairs of them."""

    def both(op: Opcode, *operands: int) -> tuple[Expected]:
        if not op.type.endswith("x2"):
            return (single(op, op.type, *operands),)
        name = op.type.removesuffix("x2")
        bits = FORMATS[name].bits
        low, high = ([x >> shift & ((1 << bits) - 1) for x in operands] for shift in (0, bits))
        return (Halves(single(op, name, *low), single(op, name, *high), name),)

    return both


@in_halves
def arithmetic(op: Opcode, name: str, *operands: int) -> Expected:
    values = [decode(FORMATS[name], flushed(op, name, x)) for x in operands]
    return finish(op, name, _calculate(op, *(*values, ONE, ONE)[:3]))


def mixed(op: Opcode, *operands: int) -> tuple[Expected]:
    """Operands of the second type are 16-bit floats, the last one is a single."""
    *narrow, single = operands
    values = [decode(FORMATS[op.types[1]], x) for x in narrow] + [decode(FORMATS["f32"], single)]
    return (finish(op, "f32", _calculate(op, *(*values, ONE)[:3])),)


@in_halves
def sign(op: Opcode, name: str, a: int) -> Expected:
    fmt = FORMATS[name]
    if decode(fmt, a).is_nan:
        return None
    return flushed(op, name, a & ~fmt.sign if op.mnemonic == "abs" else a ^ fmt.sign)


@in_halves
def copysign(op: Opcode, name: str, a: int, b: int) -> Expected:
    fmt = FORMATS[name]
    return None if decode(fmt, b).is_nan else a & fmt.sign | b & ~fmt.sign


@in_halves
def extreme(op: Opcode, name: str, *operands: int) -> Expected:
    fmt = FORMATS[name]
    bits = [flushed(op, name, x) for x in operands]
    negative = fmt.sign if op.has("xorsign") and (bits[0] ^ bits[1]) & fmt.sign else 0
    if op.has("abs"):
        bits = [x & ~fmt.sign for x in bits]
    numbers = [x for x in bits if not decode(fmt, x).is_nan]
    if not numbers or (op.has("NaN") and len(numbers) < len(bits)):
        return None
    # As integers with the sign's own order, -0 comes before +0.
    ordered = sorted(numbers, key=lambda x: -(x & ~fmt.sign) - 1 if x & fmt.sign else x)
    return (ordered[0] if op.mnemonic == "min" else ordered[-1]) | negative


def testp(op: Opcode, a: int) -> tuple[Expected]:
    value = decode(FORMATS[op.type], a)
    small = not value.is_zero and a & (FORMATS[op.type].sign - 1) < FORMATS[op.type].smallest_normal
    kinds = {
        "finite": value.kind is Kind.NUMBER, "infinite": value.is_infinite, "number": not value.is_nan,
        "notanumber": value.is_nan, "normal": value.kind is Kind.NUMBER and not small, "subnormal": small,
    }  # fmt: skip
    return (int(kinds[next(iter(op.modifiers))]),)
