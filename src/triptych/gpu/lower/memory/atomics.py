"""One lane's atomic operation on one element of host memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from llvmlite import ir

from triptych.gpu.isa.asynchronous.mbarrier_object import OPERATIONS
from triptych.gpu.lower.asynchronous.mbarrier import CHANGED, change_name
from triptych.gpu.lower.primitives.emitter import DOUBLE, FLOAT, HALF, I16, I32, I64, Emitter
from triptych.gpu.lower.primitives.values import CANONICAL

if TYPE_CHECKING:
    from triptych.gpu.lower.memory.access import HelperAccess

_UNSIGNED: Mapping[str, str] = {
    "add": "add", "min": "umin", "max": "umax", "and": "and", "or": "or", "xor": "xor", "exch": "xchg",
    "inc": "uinc_wrap", "dec": "udec_wrap",
}  # fmt: skip
_SIGNED: Mapping[str, str] = _UNSIGNED | {"min": "min", "max": "max"}
_INFINITIES: Mapping[str, int] = {"f16": 0x7C00, "bf16": 0x7F80}
_NAN = 0x7FFF


Refusal = Callable[[ir.Value, ir.Value], None]
"""What is done with the fault of an operation, 0 for none, and the element that it found."""


def update_element(
    e: Emitter,
    access: HelperAccess,
    place: ir.Value,
    operands: Sequence[ir.Value],
    refuse: Refusal,
    *,
    flushes: bool,
) -> ir.Value:
    """Reads, changes and writes one element; gives the old bits.

    `flushes`: floats are added as in global memory, singles without subnormals, NaN of doubles as it came.
    """
    if access.kind in OPERATIONS:
        given = e.intrinsic(change_name(access.kind), CHANGED, [place, *operands])
        old = e.b.extract_value(given, 0)
        refuse(e.b.extract_value(given, 1), old)
        return old
    if access.kind == "cas":
        pair = e.b.cmpxchg(place, operands[0], operands[1], "monotonic", "monotonic")
        return e.b.extract_value(pair, 0)
    b = operands[0]
    if access.number in _INFINITIES:
        change = _add_narrow if access.kind == "add" else _extreme_narrow
        return replace_element(e, access, place, lambda old: change(e, access, old, b))
    if access.number == "f32":
        return replace_element(e, access, place, lambda old: _add_singles(e, old, b, flushes=flushes))
    if access.number == "f64" and flushes:
        return replace_element(e, access, place, lambda old: _add_doubles(e, old, b))
    if access.number == "f64":
        return e.b.bitcast(e.b.atomic_rmw("fadd", place, e.b.bitcast(b, DOUBLE), "monotonic"), access.element)
    names = _SIGNED if access.number == "s" else _UNSIGNED
    return e.b.atomic_rmw(names[access.kind], place, b, "monotonic")


def swap_pair(
    e: Emitter, access: HelperAccess, places: Sequence[ir.Value], operands: Sequence[ir.Value]
) -> list[ir.Value]:
    """Writes the last two of four operands at two places where they hold the first two; gives the old bits.

    One worker runs a launch whose blocks may compare and swap (`run/kernel.py`), so that nothing comes between.
    """
    old = [e.b.load(place, typ=access.element) for place in places]
    same = e.b.and_(*(e.b.icmp_unsigned("==", bits, wanted) for bits, wanted in zip(old, operands[:2], strict=True)))
    for place, bits, new in zip(places, old, operands[2:], strict=True):
        e.b.store(e.b.select(same, new, bits), place)
    return old


def replace_element(
    e: Emitter, access: HelperAccess, place: ir.Value, change: Callable[[ir.Value], ir.Value]
) -> ir.Value:
    """Replaces an element by what is made of it, again until nobody else wrote it meanwhile; gives the old bits."""
    seen = e.variable(access.element, e.b.load(place, typ=access.element))
    attempt, done = e.block("attempt"), e.block("replaced")
    e.b.branch(attempt)
    e.b.position_at_end(attempt)
    old = e.get(seen, access.element)
    pair = e.b.cmpxchg(place, old, change(old), "monotonic", "monotonic")
    e.b.store(e.b.extract_value(pair, 0), seen)
    e.b.cbranch(e.b.extract_value(pair, 1), done, attempt)
    e.b.position_at_end(done)
    return e.get(seen, access.element)


def _add_singles(e: Emitter, old: ir.Value, b: ir.Value, *, flushes: bool) -> ir.Value:
    """The sum of singles: in global memory subnormals become zeros of their sign (PTX manual, 9.7.13.5)."""
    given = [flush_single(e, bits) if flushes else bits for bits in (old, b)]
    total = e.b.fadd(*(e.b.bitcast(bits, FLOAT) for bits in given))
    bits = e.b.bitcast(total, I32)
    new = flush_single(e, bits) if flushes else bits
    return e.b.select(e.b.fcmp_unordered("uno", total, total), ir.Constant(I32, CANONICAL), new)


def _add_doubles(e: Emitter, old: ir.Value, b: ir.Value) -> ir.Value:
    """The sum of doubles in global memory: the second operand if that is NaN, else the first, signalling or not."""
    left, right = (e.b.bitcast(bits, DOUBLE) for bits in (old, b))
    total = e.b.bitcast(e.b.fadd(left, right), I64)
    kept = e.b.select(e.b.fcmp_unordered("uno", left, left), old, total)
    return e.b.select(e.b.fcmp_unordered("uno", right, right), b, kept)


def flush_single(e: Emitter, bits: ir.Value) -> ir.Value:
    """A single's bits, of a subnormal one those of the zero of its sign."""
    exponent = e.b.and_(bits, ir.Constant(I32, 0x7F80_0000))
    small = e.b.icmp_unsigned("==", exponent, ir.Constant(I32, 0))
    return e.b.select(small, e.b.and_(bits, ir.Constant(I32, 0x8000_0000)), bits)


def _add_narrow(e: Emitter, access: HelperAccess, old: ir.Value, b: ir.Value) -> ir.Value:
    """The sum of two f16 or bf16: in single precision and rounded again, which is exact since 24 ≥ 2 · 11 + 2."""
    if access.number == "f16":
        total = e.b.fadd(*(e.b.fpext(e.b.bitcast(bits, HALF), FLOAT) for bits in (old, b)))
        rounded = e.b.bitcast(e.b.fptrunc(total, HALF), I16)
    else:
        sixteen = ir.Constant(I32, 16)
        total = e.b.fadd(*(e.b.bitcast(e.b.shl(e.b.zext(bits, I32), sixteen), FLOAT) for bits in (old, b)))
        bits = e.b.bitcast(total, I32)
        even = e.b.and_(e.b.lshr(bits, sixteen), ir.Constant(I32, 1))
        bits = e.b.add(bits, e.b.add(even, ir.Constant(I32, 0x7FFF)))
        rounded = e.b.trunc(e.b.lshr(bits, sixteen), I16)
    return e.b.select(e.b.fcmp_unordered("uno", total, total), ir.Constant(I16, _NAN), rounded)


def _extreme_narrow(e: Emitter, access: HelperAccess, old: ir.Value, b: ir.Value) -> ir.Value:
    """The smaller or larger of two f16 or bf16; -0 is below +0, NaN gives way to a number."""
    magnitude = ir.Constant(I16, 0x7FFF)

    def order(bits: ir.Value) -> ir.Value:
        negative = e.b.ashr(bits, ir.Constant(I16, 15))
        return e.b.xor(bits, e.b.and_(negative, magnitude))

    def is_nan(bits: ir.Value) -> ir.Value:
        return e.b.icmp_unsigned(">", e.b.and_(bits, magnitude), ir.Constant(I16, _INFINITIES[access.number]))

    better = e.b.icmp_signed("<" if access.kind == "min" else ">", order(b), order(old))
    old_nan, b_nan = is_nan(old), is_nan(b)
    picked = e.b.select(better, b, old)
    picked = e.b.select(b_nan, old, e.b.select(old_nan, b, picked))
    return e.b.select(e.b.and_(old_nan, b_nan), ir.Constant(I16, _NAN), picked)
