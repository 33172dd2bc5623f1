"""SIMD video instructions: two half words or four bytes at a time (PTX manual, 9.7.18.2).

The forms without selectors and masks, which compilers write: all parts of a with the same of b.
"""

from __future__ import annotations

from collections.abc import Callable

from triptych.gpu.isa.arithmetic.fields import extract
from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.types import S32, U32

_TYPES = {"dtype": "u32 s32", "atype": "u32 s32", "btype": "u32 s32"}
_OPERANDS = "d:u32, a:atype, b:btype, c:u32"


def _clamp(m: Machine[V], a: V, low: int, high: int) -> V:
    bottom, top = m.constant(S32, low), m.constant(S32, high)
    a = m.select(S32, m.compare(S32, "lt", a, bottom), bottom, a)
    return m.select(S32, m.compare(S32, "gt", a, top), top, a)


def _part(m: Machine[V], operation: str, a: V, b: V) -> V:
    """The result for one part, as an s32."""
    if operation in ("vmin", "vmax"):
        return m.select(S32, m.compare(S32, "lt" if operation == "vmin" else "gt", a, b), a, b)
    if operation == "vadd":
        return m.add(S32, a, b)
    if operation == "vsub":
        return m.sub(S32, a, b)
    zero, one = m.constant(S32, 0), m.constant(S32, 1)
    if operation == "vabsdiff":
        difference = m.sub(S32, a, b)
        return m.select(S32, m.compare(S32, "lt", difference, zero), m.sub(S32, zero, difference), difference)
    total = m.add(S32, a, b)
    rounded = m.select(S32, m.compare(S32, "ge", total, zero), m.add(S32, total, one), total)
    return m.shift_right(S32, rounded, one)


def _meaning(operation: str, bits: int, *, accumulate: bool) -> Callable[..., object]:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def parts(m: Machine[V], f: Form, a: V, b: V, c: V) -> V:
        result = c if accumulate else m.constant(U32, 0)
        for index in range(32 // bits):
            left, right = (extract(m, f.types[t], x, index, bits) for t, x in (("atype", a), ("btype", b)))
            part = _part(m, operation, left, right)
            if f.has("sat"):
                part = _clamp(m, part, *((low, high) if f.types["dtype"].is_signed else (0, (1 << bits) - 1)))
            if accumulate:
                result = m.add(U32, result, part)
            else:
                part = m.bit_and(U32, part, m.constant(U32, (1 << bits) - 1))
                result = m.bit_or(U32, result, m.shift_left(U32, part, m.constant(U32, bits * index)))
        return result

    what = {
        "vadd": "sum", "vsub": "difference", "vavrg": "average, rounded up", "vabsdiff": "absolute difference",
        "vmin": "smaller", "vmax": "larger",
    }[operation]  # fmt: skip
    place = {8: "byte", 16: "half word"}[bits]
    parts.__doc__ = f"d = c plus the {what} of each {place}." if accumulate else f"d = the {what}, {place} by {place}."
    return parts


def _comparison(bits: int, *, accumulate: bool) -> Callable[..., object]:
    def parts(m: Machine[V], f: Form, a: V, b: V, c: V) -> V:
        result = c if accumulate else m.constant(U32, 0)
        for index in range(32 // bits):
            left, right = (extract(m, f.types[t], x, index, bits) for t, x in (("atype", a), ("btype", b)))
            truth = m.compare(S32, f.get("relation"), left, right)
            one = m.constant(U32, 1 if accumulate else 1 << bits * index)
            result = m.add(U32, result, m.select(U32, truth, one, m.constant(U32, 0)))
        return result

    place = {8: "bytes", 16: "half words"}[bits]
    parts.__doc__ = (
        f"d = {'c plus the number of' if accumulate else '1 in each of the'} {place} where a and b compare so."
    )
    return parts


_RELATIONS = {"relation": "eq ne lt le gt ge"}
for _bits, _section in ((16, "9.7.18.2.2"), (8, "9.7.18.2.4")):
    for _modifiers in ("", ".add"):
        row(
            f"vset{32 // _bits}.atype.btype.relation{_modifiers} {_OPERANDS}",
            types={"atype": "u32 s32", "btype": "u32 s32"}, groups=_RELATIONS, section=_section, pipe=Pipe.INTEGER,
        )(_comparison(_bits, accumulate=_modifiers == ".add"))  # fmt: skip
for _bits, _section in ((16, "9.7.18.2.1"), (8, "9.7.18.2.3")):
    for _operation in ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"):
        for _modifiers in ("{.sat}", ".add"):
            row(
                f"{_operation}{32 // _bits}.dtype.atype.btype{_modifiers} {_OPERANDS}",
                types=_TYPES, section=_section, pipe=Pipe.INTEGER,
            )(_meaning(_operation, _bits, accumulate=_modifiers == ".add"))  # fmt: skip
