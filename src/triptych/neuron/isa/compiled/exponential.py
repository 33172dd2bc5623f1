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
    in_all_lanes,
    loop,
    splat,
    vector_of,
    whole,
    whole_steps,
)

NAME = "triptych.neuron.exp"

_LANES = 16
"""Of four vectors of float64: the steps of one wait for each other."""
_LEAST, _MOST = -110.0, 90.0
"""Beyond them all results are 0 and infinity in float32."""
_ROUNDING = 1.5 * 2.0**52
"""A float64 to which a number is added to be rounded: its lowest bits are that whole number then."""
_LN2_HIGH, _LN2_LOW = float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")
"""ln 2 in two parts, the first of so few bits that its products with n are exact."""
_POWERS = 12
_MANTISSA_BITS, _ONE = 52, 0x3FF0000000000000


def build() -> ir.Module:
    """`exp(from, to, scales, biases, rows, columns, step of from, of to)`: of each element * its row's scale + bias.

    Rows begin a step of elements apart.
    """
    module = ir.Module(NAME)
    builder, arguments = function(module, NAME, (*[POINTER] * 4, *[I64] * 4))
    source, target, scales, biases, rows, columns, source_step, target_step = arguments
    in_steps = whole_steps(builder, columns, _LANES)

    def one_row(row: ir.Value, carried: object) -> tuple[()]:
        del carried
        scale, bias = (builder.load(element(builder, one, row, FLOAT), typ=FLOAT, align=4) for one in (scales, biases))
        begin = element(builder, source, builder.mul(row, source_step), FLOAT)
        to = element(builder, target, builder.mul(row, target_step), FLOAT)
        for lanes, first, end in ((_LANES, whole(0), in_steps), (1, in_steps, columns)):
            kind = vector_of(FLOAT, lanes)
            scale_each, bias_each = (in_all_lanes(builder, one, kind) for one in (scale, bias))

            def step(
                index: ir.Value,
                carried: object,
                lanes: int = lanes,
                scale_each: ir.Value = scale_each,
                bias_each: ir.Value = bias_each,
            ) -> tuple[()]:
                del carried
                x = builder.load(element(builder, begin, index, FLOAT), typ=vector_of(FLOAT, lanes), align=4)
                x = builder.fadd(builder.fmul(x, scale_each), bias_each)
                builder.store(_exponential(builder, x, lanes), element(builder, to, index, FLOAT), align=4)
                return ()

            loop(builder, first, end, lanes, (), step)
        return ()

    loop(builder, whole(0), rows, 1, (), one_row)
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
    total: ir.Value = splat(double, 1 / math.factorial(_POWERS))
    for power in reversed(range(_POWERS)):
        total = fused(builder, "fmuladd", total, rest, splat(double, 1 / math.factorial(power)))
    exponent = builder.shl(builder.bitcast(shifted, integer), splat(integer, _MANTISSA_BITS))
    scale = builder.bitcast(builder.add(exponent, splat(integer, _ONE)), double)
    return builder.fptrunc(builder.fmul(total, scale), vector_of(FLOAT, lanes))
