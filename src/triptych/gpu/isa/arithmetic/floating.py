"""Floating-point arithmetic: f32 and f64 (PTX manual, 9.7.3)."""

from __future__ import annotations

from triptych.gpu.isa.arithmetic.modifiers import flush, flush_below, saturate
from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.types import F32, F64, PRED, U16, U32, U64, ScalarType

ROUNDINGS = {"rnd": "rn rz rm rp"}


def compute(m: Machine[V], f: Form, t: ScalarType, operation: str, *operands: V) -> V:
    """An operation of a type, rounded as the instruction's text says, with `.ftz` and `.sat`."""
    operands = tuple(flush(m, f, a) for a in operands)
    value = _round(m, f, t, operation, *operands)
    return saturate(m, f, _flush_result(m, f, operation, value, operands), t)


def _round(m: Machine[V], f: Form, t: ScalarType, operation: str, *operands: V) -> V:
    mode = f.get("rnd", "rn")
    if mode != "rn":
        return m.float_directed(t, operation, mode, *operands)
    nearest = {
        "add": m.float_add, "sub": m.float_sub, "mul": m.float_mul, "div": m.float_div, "fma": m.fma,
        "sqrt": m.square_root,
    }  # fmt: skip
    return nearest[operation](t, *operands)


_SCALED = {"mul": (0,), "div": (0,), "fma": (0, 2)}
"""The operands with which a result grows in proportion."""
_SCALE = 2.0**24


def _flush_result(m: Machine[V], f: Form, operation: str, value: V, operands: tuple[V, ...]) -> V:
    """`.ftz` of a result: the hardware looks for underflow before it rounds to a subnormal.

    So does the same operation on numbers so much larger that its result is normal. (Where these overflow, the result
    itself is not small.) Sums are exact where they are small.
    """
    if not f.has("ftz") or operation not in _SCALED:
        return flush(m, f, value)
    scale = m.constant(F32, _SCALE)
    scaled = [m.float_mul(F32, a, scale) if i in _SCALED[operation] else a for i, a in enumerate(operands)]
    return flush_below(m, value, 2.0**-126 * _SCALE, _round(m, f, F32, operation, *scaled))


def add_float(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a + b."""
    return compute(m, f, f.type, "add", a, b)


def sub_float(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a - b."""
    return compute(m, f, f.type, "sub", a, b)


def mul_float(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a × b."""
    return compute(m, f, f.type, "mul", a, b)


def fma_float(m: Machine[V], f: Form, a: V, b: V, c: V) -> V:
    """d = a × b + c, rounded once."""
    return compute(m, f, f.type, "fma", a, b, c)


def mad_float(m: Machine[V], f: Form, a: V, b: V, c: V) -> V:
    """d = a × b + c, as fma."""
    return compute(m, f, f.type, "fma", a, b, c)


def div_float(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a / b."""
    return compute(m, f, f.type, "div", a, b)


def rcp_float(m: Machine[V], f: Form, a: V) -> V:
    """d = 1 / a."""
    return compute(m, f, f.type, "div", m.constant(f.type, 1.0), a)


def sqrt_float(m: Machine[V], f: Form, a: V) -> V:
    """d = √a."""
    return compute(m, f, f.type, "sqrt", a)


for _singles, _doubles, _meaning, _rounds, _section, _flops in (
    ("add{.rnd}{.ftz}{.sat}.f32 d, a, b", "add{.rnd}.f64 d, a, b", add_float, "add", "9.7.3.3", 1),
    ("sub{.rnd}{.ftz}{.sat}.f32 d, a, b", "sub{.rnd}.f64 d, a, b", sub_float, "sub", "9.7.3.4", 1),
    ("mul{.rnd}{.ftz}{.sat}.f32 d, a, b", "mul{.rnd}.f64 d, a, b", mul_float, "mul", "9.7.3.5", 1),
    ("fma.rnd{.ftz}{.sat}.f32 d, a, b, c", "fma.rnd.f64 d, a, b, c", fma_float, "fma", "9.7.3.6", 2),
    ("mad.rnd{.ftz}{.sat}.f32 d, a, b, c", "mad.rnd.f64 d, a, b, c", mad_float, "fma", "9.7.3.7", 2),
    ("div.rnd{.ftz}.f32 d, a, b", "div.rnd.f64 d, a, b", div_float, "div", "9.7.3.8", 1),
    ("rcp.rnd{.ftz}.f32 d, a", "rcp.rnd.f64 d, a", rcp_float, "div", "9.7.3.13", 1),
    ("sqrt.rnd{.ftz}.f32 d, a", "sqrt.rnd.f64 d, a", sqrt_float, "sqrt", "9.7.3.15", 1),
):
    _pipe = Pipe.SPECIAL if _rounds in ("div", "sqrt") else Pipe.FP32
    for _syntax, _kind in ((_singles, _pipe), (_doubles, Pipe.FP64)):
        row(_syntax, groups=ROUNDINGS, section=_section, pipe=_kind, flops=_flops, rounds=_rounds)(_meaning)


_CLASSES = {"property": "finite infinite number notanumber normal subnormal"}


@row("testp.property.type p:pred, a", types="f32 f64", groups=_CLASSES, section="9.7.3.1", pipe=Pipe.FP32)
def testp(m: Machine[V], f: Form, a: V) -> V:
    """p = whether a is of a kind; zeros are normal."""
    t, bits = f.type, bits_of(f.type)
    size = m.bit_and(bits, m.bitcast(t, bits, a), m.constant(bits, (1 << (t.bits - 1)) - 1))
    infinite = m.constant(bits, 0x7F80_0000 if t is F32 else 0x7FF0_0000_0000_0000)
    match f.get("property"):
        case "finite":
            return m.compare(bits, "lt", size, infinite)
        case "infinite":
            return m.compare(bits, "eq", size, infinite)
        case "number":
            return m.compare(bits, "le", size, infinite)
        case "notanumber":
            return m.compare(bits, "gt", size, infinite)
        case _:
            smallest = m.constant(bits, 0x0080_0000 if t is F32 else 0x0010_0000_0000_0000)
            zero = m.compare(bits, "eq", size, m.constant(bits, 0))
            small = m.bit_and(PRED, m.compare(bits, "lt", size, smallest), m.bit_xor(PRED, zero, m.constant(PRED, 1)))
            if f.has("subnormal"):
                return small
            return m.bit_and(PRED, m.compare(bits, "lt", size, infinite), m.bit_xor(PRED, small, m.constant(PRED, 1)))


def bits_of(t: ScalarType) -> ScalarType:
    """The unsigned integer of a float's width."""
    return U64 if t is F64 else U32 if t is F32 else U16


@row("abs{.ftz}.f32 d, a", section="9.7.3.9", pipe=Pipe.FP32)
def abs_single(m: Machine[V], f: Form, a: V) -> V:
    """d = |a|."""
    return m.float_magnitude(F32, flush(m, f, a))


@row("neg{.ftz}.f32 d, a", section="9.7.3.10", pipe=Pipe.FP32)
def neg_single(m: Machine[V], f: Form, a: V) -> V:
    """d = -a."""
    return m.float_negate(F32, flush(m, f, a))


@row("abs.f64 d, a", section="9.7.3.9", pipe=Pipe.FP64)
def abs_double(m: Machine[V], f: Form, a: V) -> V:
    """d = |a|; NaN keeps its sign."""
    return m.float_magnitude(F64, a)


@row("neg.f64 d, a", section="9.7.3.10", pipe=Pipe.FP64)
def neg_double(m: Machine[V], f: Form, a: V) -> V:
    """d = -a; NaN keeps its sign."""
    return m.float_negate(F64, a)


@row("copysign.type d, a, b", types="f32 f64", section="9.7.3.2", pipe=Pipe.FP32)
def copysign(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = the magnitude of b with the sign of a."""
    t, bits = f.type, bits_of(f.type)
    sign, size = m.constant(bits, 1 << (t.bits - 1)), m.constant(bits, (1 << (t.bits - 1)) - 1)
    a, b = m.bitcast(t, bits, a), m.bitcast(t, bits, b)
    return m.bitcast(bits, t, m.bit_or(bits, m.bit_and(bits, a, sign), m.bit_and(bits, b, size)))


def pick_extreme(m: Machine[V], t: ScalarType, a: V, b: V, *, larger: bool, keep_nan: bool) -> V:
    """The larger or smaller: +0 above -0; NaN gives way to a number, unless it is to be kept (PTX manual, 9.7.3.11).

    Of two that are NaN: f32's canonical one, f64's b.
    """
    bits = bits_of(t)
    size = 1 << (t.bits - 1)
    a_bits, b_bits = m.bitcast(t, bits, a), m.bitcast(t, bits, b)
    zeros = m.bit_and(bits, m.bit_or(bits, a_bits, b_bits), m.constant(bits, size - 1))
    both_zero = m.compare(bits, "eq", zeros, m.constant(bits, 0))
    merged = m.bit_and(bits, a_bits, b_bits) if larger else m.bit_or(bits, a_bits, b_bits)
    picked = m.select(bits, m.compare(t, "gt" if larger else "lt", a, b), a_bits, b_bits)
    picked = m.select(bits, both_zero, merged, picked)
    if keep_nan:
        either = m.compare(t, "nan", a, b)
        return m.bitcast(bits, t, m.select(bits, either, m.constant(bits, 0x7FFF_FFFF), picked))
    a_nan, b_nan = m.compare(t, "nan", a, a), m.compare(t, "nan", b, b)
    neither = m.constant(bits, 0x7FFF_FFFF) if t is F32 else m.bit_or(bits, b_bits, m.constant(bits, 1 << 51))
    other = m.select(bits, a_nan, neither, a_bits)
    return m.bitcast(bits, t, m.select(bits, b_nan, other, m.select(bits, a_nan, b_bits, picked)))


EXTREMES = {"nan": "NaN"}
"""The modifier under which a NaN operand gives NaN."""


def pick(m: Machine[V], f: Form, t: ScalarType, a: V, b: V, *, larger: bool) -> V:
    """As `pick_extreme`, under the text's `.NaN`; of the magnitudes, with the product's sign, under `.xorsign.abs`."""
    if not f.has("xorsign"):
        return pick_extreme(m, t, a, b, larger=larger, keep_nan=f.has("NaN"))
    bits, sign = bits_of(t), 1 << (t.bits - 1)
    signs = m.bit_and(bits, m.bit_xor(bits, m.bitcast(t, bits, a), m.bitcast(t, bits, b)), m.constant(bits, sign))
    sizes = (m.float_magnitude(t, x) for x in (a, b))
    picked = pick_extreme(m, t, *sizes, larger=larger, keep_nan=f.has("NaN"))
    signed = m.bitcast(bits, t, m.bit_or(bits, m.bitcast(t, bits, picked), signs))
    return m.select(t, m.compare(t, "nan", picked, picked), picked, signed)


def _pick_of_all(m: Machine[V], f: Form, operands: tuple[V, ...], *, larger: bool) -> V:
    """The smallest or largest of two or three; of their magnitudes under `.abs` alone."""
    t = f.type
    first, *rest = (flush(m, f, a) for a in operands)
    if f.has("abs") and not f.has("xorsign"):
        first, *rest = (m.float_magnitude(t, a) for a in (first, *rest))
    for other in rest:
        first = pick(m, f, t, first, other, larger=larger)
    return first


def min_float(m: Machine[V], f: Form, *operands: V) -> V:
    """d = the smallest number; of the magnitudes under `.abs`, with the sign of their product under `.xorsign`."""
    return _pick_of_all(m, f, operands, larger=False)


def max_float(m: Machine[V], f: Form, *operands: V) -> V:
    """d = the largest number; of the magnitudes under `.abs`, with the sign of their product under `.xorsign`."""
    return _pick_of_all(m, f, operands, larger=True)


for _syntax, _pipe, _need in (
    ("{.ftz}{.nan}.f32 d, a, b, c?", Pipe.FP32, {"NaN": "sm_80", "c": "sm_100"}),
    ("{.ftz}{.nan}.abs.f32 d, a, b, c", Pipe.FP32, "sm_100"),
    ("{.ftz}{.nan}.xorsign.abs.f32 d, a, b", Pipe.FP32, "sm_86"),
    (".f64 d, a, b", Pipe.FP64, ""),
):
    row(f"min{_syntax}", groups=EXTREMES, section="9.7.3.11", pipe=_pipe, needs=_need)(min_float)
    row(f"max{_syntax}", groups=EXTREMES, section="9.7.3.12", pipe=_pipe, needs=_need)(max_float)
