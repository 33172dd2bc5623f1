"""The exponential of float32: computed in float64, rounded once.

e^x = 2^n · e^r with n = x / ln 2 rounded to a whole number, and the Taylor series of e^r, |r| <= ln 2 / 2, to the power
of 12: what is left away is less than 2^-52 of the result.
"""

from __future__ import annotations

import math

from llvmlite import ir

from triptych.neuron.isa.compiled.loops import (
    DOUBLE,
    FLOAT,
    I64,
    POINTER,
    element,
    function,
    fused,
    loop,
    splat,
    vector_of,
    whole,
    whole_steps,
)

NAME = "triptych.neuron.exp"

_LANES = 8
_LEAST, _MOST = -110.0, 90.0
"""Beyond them all results are 0 and infinity in float32."""
_ROUNDING = 1.5 * 2.0**52
"""A float64 to which a number is added to be rounded: its lowest bits are that whole number then."""
_LN2_HIGH, _LN2_LOW = float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")
"""ln 2 in two parts, the first of so few bits that its products with n are exact."""
_POWERS = 12
_MANTISSA_BITS, _ONE = 52, 0x3FF0000000000000


def build() -> ir.Module:
    """`exp(from, to, count)`: the exponential of each of so many neighbours."""
    module = ir.Module(NAME)
    builder, (source, target, count) = function(module, NAME, (POINTER, POINTER, I64))

    def body(lanes: int, begin: ir.Value, end: ir.Value) -> None:
        kind = vector_of(FLOAT, lanes)

        def step(index: ir.Value, carried: object) -> tuple[()]:
            del carried
            x = builder.load(element(builder, source, index, FLOAT), typ=kind, align=4)
            builder.store(_exponential(builder, x, lanes), element(builder, target, index, FLOAT), align=4)
            return ()

        loop(builder, begin, end, lanes, (), step)

    in_steps = whole_steps(builder, count, _LANES)
    body(_LANES, whole(0), in_steps)
    body(1, in_steps, count)
    builder.ret_void()
    return module


def _exponential(builder: ir.IRBuilder, x: ir.Value, lanes: int) -> ir.Value:
    double, integer = vector_of(DOUBLE, lanes), vector_of(I64, lanes)
    x = builder.fpext(x, double)
    for sign, bound in (("<", _LEAST), (">", _MOST)):  # NaN is neither
        x = builder.select(builder.fcmp_ordered(sign, x, splat(double, bound)), splat(double, bound), x)
    shifted = fused(builder, "fmuladd", x, splat(double, 1 / math.log(2)), splat(double, _ROUNDING))
    n = builder.fsub(shifted, splat(double, _ROUNDING))
    rest = fused(builder, "fmuladd", n, splat(double, -_LN2_HIGH), x)
    rest = fused(builder, "fmuladd", n, splat(double, -_LN2_LOW), rest)
    total = splat(double, 1 / math.factorial(_POWERS))
    for power in reversed(range(_POWERS)):
        total = fused(builder, "fmuladd", total, rest, splat(double, 1 / math.factorial(power)))
    exponent = builder.shl(builder.bitcast(shifted, integer), splat(integer, _MANTISSA_BITS))
    scale = builder.bitcast(builder.add(exponent, splat(integer, _ONE)), double)
    return builder.fptrunc(builder.fmul(total, scale), vector_of(FLOAT, lanes))
