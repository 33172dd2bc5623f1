"""Approximate functions: Python's own in double precision, and the error that the PTX manual allows (9.7.3, 9.7.4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import exact
from exact import FORMATS, Format, decode, encode, to_float
from expected import Expected, OneOf, Within
from opcodes import Opcode
from witness_float import flushed, in_halves

F32 = FORMATS["f32"]
ANYTHING = Within(F32, -1.0, 1.0)
"""The sine of something: the manual bounds no error."""


def _near(op: Opcode, fmt: Format, value: float, relative: float, absolute: float = 0.0) -> Expected:
    """Results within an error of a value; a result that is subnormal may be flushed where `.ftz` says so."""
    if math.isnan(value):
        return None
    largest = to_float(fmt, fmt.infinity - 1)
    step = math.ldexp(1.0, fmt.least)
    error = abs(value) * relative + absolute + step / 2 if math.isfinite(value) else 0.0
    low, high = value - error, value + error
    if op.has("ftz") and abs(value) - error < math.ldexp(1.0, fmt.least + fmt.digits - 1):
        low, high = min(low, 0.0), max(high, 0.0)
    return Within(fmt, -math.inf if low < -largest else low, math.inf if high > largest else high)


def _exp2(x: float) -> float:
    return math.inf if x >= 1024 else 0.0 if x < -1080 else 2.0**x


def _log2(x: float) -> float:
    if x == 0:
        return -math.inf
    return math.nan if x < 0 else math.log2(x)


def _sin(x: float) -> float:
    return math.nan if math.isinf(x) else math.sin(x)


def _cos(x: float) -> float:
    return math.nan if math.isinf(x) else math.cos(x)


def _log2_error(x: float, value: float) -> tuple[float, float]:
    return (0.0, 2.0**-22) if 0.5 < x < 2 else (2.0**-22, 0.0)


def _circular_error(x: float, value: float) -> tuple[float, float]:
    if abs(x) <= 2 * math.pi:
        return 0.0, 2.0**-20.5
    return 0.0, 2.0**-14.7


_FUNCTIONS: Mapping[str, tuple[Callable[[float], float], Callable[[float, float], tuple[float, float]]]] = {
    "ex2": (_exp2, lambda x, value: (2.0**-22, 0.0)),
    "lg2": (_log2, _log2_error),
    "sin": (_sin, _circular_error),
    "cos": (_cos, _circular_error),
    "tanh": (math.tanh, lambda x, value: (2.0**-11, 0.0)),
}


def function(op: Opcode, a: int) -> tuple[Expected]:
    a = flushed(op, "f32", a)
    x = to_float(F32, a)
    if math.isnan(x):
        return (None,)
    # The manual bounds the error up to 100 π; beyond, a result is the sine of something.
    if 100 * math.pi < abs(x) < math.inf and op.mnemonic in ("sin", "cos"):
        return (ANYTHING,)
    if x == 0 and op.mnemonic in ("sin", "tanh"):
        return (a,)
    calculate, errors = _FUNCTIONS[op.mnemonic]
    value = calculate(x)
    relative, absolute = (0.0, 0.0) if math.isnan(value) else errors(x, value)
    return (_near(op, F32, value, relative, absolute),)


@in_halves
def ex2_narrow(op: Opcode, name: str, a: int) -> Expected:
    """The manual's relative error; a subnormal may be cut instead of rounded, as the device does it."""
    fmt = FORMATS[name]
    cut = math.ldexp(1.0, fmt.least) / 2
    return _near(op, fmt, _exp2(to_float(fmt, a)), 2.0**-9.9 if name == "f16" else 2.0**-7, cut)


@in_halves
def tanh_narrow(op: Opcode, name: str, a: int) -> Expected:
    """The manual's largest absolute error: 2^-10.987 for halves, 2^-8 for bfloat16 (9.7.4.9)."""
    fmt = FORMATS[name]
    return _near(op, fmt, math.tanh(to_float(fmt, a)), 0.0, 2.0**-10.987 if name == "f16" else 2.0**-8)


_UPPER = exact.Format(32, 21, -1042)
"""The upper half of a double."""


def upper_half(op: Opcode, a: int) -> tuple[Expected]:
    """`rcp` and `rsqrt` of doubles: of the upper half, cut to the upper half, subnormals as zeros; up to a unit off."""
    upper = a >> 32
    if upper & (_UPPER.sign - 1) < _UPPER.smallest_normal:
        upper &= _UPPER.sign
    value = decode(_UPPER, upper)
    bits = encode(
        _UPPER, exact.divide(exact.number(1, 0), exact.square_root(value) if op.mnemonic == "rsqrt" else value), "rz"
    )
    if bits is None:
        return (0x7FFF_FFFF << 32,)
    size = bits & (_UPPER.sign - 1)
    if size == 0 or value.is_zero or value.is_infinite:
        return ((_UPPER.sign & bits | (_UPPER.infinity if value.is_zero else 0)) << 32,)
    if size < _UPPER.smallest_normal:
        return ((bits & _UPPER.sign) << 32,)
    return (OneOf(tuple(bits + step << 32 for step in (-1, 0, 1))),)


def rsqrt_double(op: Opcode, a: int) -> tuple[Expected]:
    """The manual bounds nothing for `.f64` without `.ftz`: as exact as `rsqrt.approx.f32`."""
    value = exact.divide(exact.number(1, 0), exact.square_root(decode(FORMATS["f64"], a)))
    bits = encode(FORMATS["f64"], value)
    if bits is None or value.is_infinite or value.is_zero:
        return (bits,)
    return (_near(op, FORMATS["f64"], to_float(FORMATS["f64"], bits), 2.0**-22.9),)


def reciprocal(op: Opcode, a: int) -> tuple[Expected]:
    """`rcp`, `sqrt` and `rsqrt`, exactly; then one unit in the last place, or the manual's relative error."""
    value = decode(F32, flushed(op, "f32", a))
    root = value if op.mnemonic == "rcp" else exact.square_root(value)
    result = root if op.mnemonic == "sqrt" else exact.divide(exact.number(1, 0), root)
    bits = encode(F32, result)
    if bits is None:
        return (None,)
    rounded = to_float(F32, bits)
    if rounded == 0 or math.isinf(rounded):
        return (bits,)
    return (_near(op, F32, rounded, 2.0**-22.9 if op.mnemonic == "rsqrt" else 2.0**-23),)


def divide(op: Opcode, a: int, b: int) -> tuple[Expected]:
    """Two units in the last place; `.approx` gives 0, or NaN for ∞, where |b| is above 2^126."""
    left, right = (decode(F32, flushed(op, "f32", x)) for x in (a, b))
    size = abs(to_float(F32, b))
    if op.has("approx") and 2.0**126 < size < math.inf:
        return (None,) if left.is_nan or left.is_infinite else (Within(F32, 0.0, 0.0),)
    bits = encode(F32, exact.divide(left, right))
    if bits is None:
        return (None,)
    rounded = to_float(F32, bits)
    if rounded == 0 or math.isinf(rounded):
        return (bits,)
    return (_near(op, F32, rounded, 2.0**-22),)
