"""Conversions (PTX manual, 9.7.9.21)."""

from __future__ import annotations

import exact
import witness_formats as formats
from exact import FORMATS, Kind, Real, decode, encode
from expected import Expected, Halves
from opcodes import Opcode
from witness_float import clamped, finish, flushed
from witness_integer import clamp, number, width, wrap

_INTEGRAL = ("rni", "rzi", "rmi", "rpi")


def cvt(op: Opcode, *operands: int) -> tuple[Expected]:
    special = formats.convert(op, *operands)
    if special is not None:
        return special
    target, source = op.types
    if target.endswith("x2"):
        high, low = (_narrow(op, target.removesuffix("x2"), source, x) for x in operands)
        return (Halves(low, high, target.removesuffix("x2")),)
    (a,) = operands
    if target not in FORMATS:
        return (_in_register(target, _to_integer(op, target, source, a)),)
    if source not in FORMATS:
        value = number(source, a)
        return (finish(op, target, Real(Kind.NUMBER, value < 0, abs(value), 0)),)
    return (_narrow(op, target, source, a),)


def _in_register(name: str, value: int) -> int:
    """A result narrower than its register is extended by its own sign."""
    return wrap(number(name, value), max(width(name), 32 if width(name) == 8 else 16))


def _to_integer(op: Opcode, target: str, source: str, a: int) -> int:
    if source not in FORMATS:
        value = number(source, a)
        return clamp(value, target) if op.has("sat") else value
    real = decode(FORMATS[source], _flushed_single(op, source, a))
    if real.is_nan:
        return 1 << (width(target) - 1) if "64" in target + source else 0
    if real.is_infinite:
        return clamp(-(1 << 99) if real.negative else 1 << 99, target)
    mode = next(mode for mode in _INTEGRAL if op.has(mode))
    return clamp(exact.to_integer(exact.round_integral(real, mode)), target)


def _flushed_single(op: Opcode, name: str, bits: int) -> int:
    """`.ftz` of a conversion acts on its singles alone, and not on those that become f16, which are far smaller."""
    return flushed(op, name, bits) if name == "f32" and op.types[0] != "f16" else bits


def _narrow(op: Opcode, target: str, source: str, a: int) -> Expected:
    """From float to float: exact, rounded to the target, or rounded to a whole number."""
    value = decode(FORMATS[source], _flushed_single(op, source, a))
    mode = next((mode for mode in _INTEGRAL if op.has(mode)), None)
    if mode is not None:
        value = exact.round_integral(value, mode)
    bits = encode(FORMATS[target], value, op.mode)
    return clamped(op, FORMATS[target], None if bits is None else _flushed_single(op, target, bits))
