"""Half-precision arithmetic: f16, bf16 and pairs of them (PTX manual, 9.7.4)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from triptych.gpu.isa.arithmetic.floating import EXTREMES, pick_extreme
from triptych.gpu.isa.arithmetic.modifiers import (
    clamp_negative,
    flush_before_half,
    flush_narrow,
    from_single,
    narrow_infinity,
    saturate,
    to_double,
    to_single,
)
from triptych.gpu.isa.arithmetic.rounding import double_to_single_odd, to_odd, two_sum
from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.types import F32, F64, U16, U32, ScalarType, packed_element


def _narrow_op(m: Machine[V], f: Form, operation: Callable[..., V], t: ScalarType, *operands: V) -> V:
    """An operation in single precision, rounded once more: exact for add, sub and mul, since 24 ≥ 2 · 11 + 2."""
    singles = [to_single(m, t, flush_narrow(m, f, t, a)) for a in operands]
    return from_single(m, t, saturate(m, f, flush_before_half(m, f, t, operation(F32, *singles))))


def fma_narrow(m: Machine[V], f: Form, t: ScalarType, a: V, b: V, c: V) -> V:
    """a × b + c in f16 or bf16, rounded once (through a double rounded to odd)."""
    wide = [m.canonical(F64, to_double(m, t, flush_narrow(m, f, t, x))) for x in (a, b, c)]
    total, rest = two_sum(m, m.float_mul(F64, wide[0], wide[1]), wide[2])
    single = saturate(m, f, flush_before_half(m, f, t, double_to_single_odd(m, to_odd(m, total, rest))))
    return from_single(m, t, clamp_negative(m, f, single))


def halves_of(m: Machine[V], a: V) -> tuple[V, V]:
    """The low and the high 16 bits of a word."""
    return m.resize(U32, U16, a), m.resize(U32, U16, m.shift_right(U32, a, m.constant(U32, 16)))


def join_halves(m: Machine[V], low: V, high: V) -> V:
    """The word of two halves."""
    return m.bit_or(U32, m.resize(U16, U32, low), m.shift_left(U32, m.resize(U16, U32, high), m.constant(U32, 16)))


def _map_pair(m: Machine[V], operation: Callable[..., V], *operands: V) -> V:
    """A 16-bit operation on both halves of packed 32-bit values."""
    pairs = [halves_of(m, a) for a in operands]
    return join_halves(m, operation(*(low for low, _ in pairs)), operation(*(high for _, high in pairs)))


def either(m: Machine[V], f: Form, operation: Callable[..., V], *operands: V) -> V:
    """A 16-bit operation `(type, *operands)` on values, or on both halves where the instruction's type is a pair."""
    t = packed_element(f.type)
    if t is f.type:
        return operation(t, *operands)
    return _map_pair(m, partial(operation, t), *operands)


def _signed_narrow(m: Machine[V], f: Form, a: V, *, negate: bool) -> V:
    def of_one(t: ScalarType, x: V) -> V:
        size = m.bit_and(U16, x, m.constant(U16, 0x7FFF))
        changed = m.bit_xor(U16, x, m.constant(U16, 0x8000)) if negate else size
        nan = m.compare(U16, "gt", size, m.constant(U16, narrow_infinity(t)))
        return m.select(U16, nan, m.constant(U16, 0x7FFF), flush_narrow(m, f, t, changed))

    return either(m, f, of_one, a)


def abs_narrow(m: Machine[V], f: Form, a: V) -> V:
    """d = |a|."""
    return _signed_narrow(m, f, a, negate=False)


def neg_narrow(m: Machine[V], f: Form, a: V) -> V:
    """d = -a."""
    return _signed_narrow(m, f, a, negate=True)


def add_narrow(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a + b."""
    return either(m, f, partial(_narrow_op, m, f, m.float_add), a, b)


def sub_narrow(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a - b."""
    return either(m, f, partial(_narrow_op, m, f, m.float_sub), a, b)


def mul_narrow(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a × b."""
    return either(m, f, partial(_narrow_op, m, f, m.float_mul), a, b)


def fma_half(m: Machine[V], f: Form, a: V, b: V, c: V) -> V:
    """d = a × b + c, rounded once."""
    return either(m, f, partial(fma_narrow, m, f), a, b, c)


def _extreme_narrow(m: Machine[V], f: Form, a: V, b: V, *, larger: bool) -> V:
    def of_one(t: ScalarType, x: V, y: V) -> V:
        x, y = flush_narrow(m, f, t, x), flush_narrow(m, f, t, y)
        if not f.has("xorsign"):
            return of_sizes(t, x, y)
        size, sign = m.constant(U16, 0x7FFF), m.constant(U16, 0x8000)
        picked = of_sizes(t, m.bit_and(U16, x, size), m.bit_and(U16, y, size))
        signed = m.bit_or(U16, picked, m.bit_and(U16, m.bit_xor(U16, x, y), sign))
        return m.select(U16, m.compare(U16, "eq", picked, size), picked, signed)  # NaN is the canonical one

    def of_sizes(t: ScalarType, x: V, y: V) -> V:
        singles = (to_single(m, t, x), to_single(m, t, y))
        return from_single(m, t, pick_extreme(m, F32, *singles, larger=larger, keep_nan=f.has("NaN")))

    return either(m, f, of_one, a, b)


def min_narrow(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = the smaller number; under `.xorsign.abs` of the magnitudes, with the sign of the product."""
    return _extreme_narrow(m, f, a, b, larger=False)


def max_narrow(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = the larger number; under `.xorsign.abs` of the magnitudes, with the sign of the product."""
    return _extreme_narrow(m, f, a, b, larger=True)


for _kinds, _flushes, _clamps, _early, _late in (
    ("f16 f16x2", "{.ftz}", "{.sat}", "", ""), ("bf16 bf16x2", "", "", "sm_80", "sm_90"),
):  # fmt: skip
    _row = partial(row, types=_kinds, pipe=Pipe.FP16)
    _row(f"abs{_flushes}.type d, a", section="9.7.4.6", needs=_early)(abs_narrow)
    _row(f"neg{_flushes}.type d, a", section="9.7.4.5", needs=_early)(neg_narrow)
    _row(f"add{{.rn}}{_flushes}{_clamps}.type d, a, b", section="9.7.4.1", flops=1, needs=_late)(add_narrow)
    _row(f"sub{{.rn}}{_flushes}{_clamps}.type d, a, b", section="9.7.4.2", flops=1, needs=_late)(sub_narrow)
    _row(f"mul{{.rn}}{_flushes}{_clamps}.type d, a, b", section="9.7.4.3", flops=1, needs=_late)(mul_narrow)
    _row(f"fma.rn{_flushes}{_clamps}.type d, a, b, c", section="9.7.4.4", flops=2, needs=_early)(fma_half)
    _row(f"fma.rn{_flushes}.relu.type d, a, b, c", section="9.7.4.4", flops=2, needs="sm_80")(fma_half)
    for _signs, _need in (("", "sm_80"), (".xorsign.abs", "sm_86")):
        _extreme = partial(_row, groups=EXTREMES, needs=_need)
        _extreme(f"min{_flushes}{{.nan}}{_signs}.type d, a, b", section="9.7.4.7")(min_narrow)
        _extreme(f"max{_flushes}{{.nan}}{_signs}.type d, a, b", section="9.7.4.8")(max_narrow)
