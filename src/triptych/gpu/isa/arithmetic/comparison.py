"""Comparison and selection (PTX manual, 9.7.6), of 16-bit floats too (9.7.7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from triptych.gpu.isa.arithmetic.modifiers import flush, flush_narrow, to_single
from triptych.gpu.isa.arithmetic.narrow import halves_of, join_halves
from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.types import F32, PRED, U16, ScalarType, packed_element

_NEEDS: Mapping[str, str] = dict.fromkeys(("bf16", "bf16x2"), "sm_90")
_COMBINE = {"combine": "and or xor"}
_SIGNED_RELATIONS = "eq ne lt le gt ge"
_FLOAT_RELATIONS = "eq ne lt le gt ge equ neu ltu leu gtu geu num nan"
_NUMBERS = (
    ("b16 b32 b64", "eq ne", ""),
    ("s16 s32 s64", _SIGNED_RELATIONS, ""),
    ("u16 u32 u64", f"{_SIGNED_RELATIONS} lo ls hi hs", ""),
    ("f32", _FLOAT_RELATIONS, "{.ftz}"),
    ("f64", _FLOAT_RELATIONS, ""),
)
"""Types, the relations that they have, and whether subnormals may be flushed (PTX manual, 9.3.1)."""
_HALVES, _BRAINS = ("f16", _FLOAT_RELATIONS, "{.ftz}"), ("bf16", _FLOAT_RELATIONS, "")
_PAIRS = (("f16x2", _FLOAT_RELATIONS, "{.ftz}"), ("bf16x2", _FLOAT_RELATIONS, ""))
_UNSIGNED_NAMES = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_ONES = {"f32": 1.0, "f16": 0x3C00, "bf16": 0x3F80}
"""What `set` writes into floats where the comparison holds; into others, all ones."""


def relate(m: Machine[V], f: Form, t: ScalarType, a: V, b: V) -> V:
    """A comparison by the manual's name for it (PTX manual, 9.3.1): `ltu` holds for NaN too, `lo` is unsigned."""
    relation = f.get("relation")
    if t.is_float and t.bits == 16:
        a, b = (to_single(m, t, flush_narrow(m, f, t, x)) for x in (a, b))
        t = F32
    elif t is F32:
        a, b = flush(m, f, a), flush(m, f, b)
    relation = _UNSIGNED_NAMES.get(relation, relation)
    if relation.endswith("u"):
        return m.bit_or(PRED, m.compare(t, relation[:-1], a, b), m.compare(t, "nan", a, b))
    return m.compare(t, relation, a, b)


def _combine(m: Machine[V], f: Form, truth: V, *c: V) -> V:
    """The truth, combined with the predicate where there is one."""
    operations = {"and": m.bit_and, "or": m.bit_or, "xor": m.bit_xor}
    return operations[f.get("combine")](PRED, truth, *c) if c else truth


def _relate_halves(m: Machine[V], f: Form, t: ScalarType, a: V, b: V, *c: V) -> tuple[V, V]:
    (a_low, a_high), (b_low, b_high) = halves_of(m, a), halves_of(m, b)
    low, high = relate(m, f, t, a_low, b_low), relate(m, f, t, a_high, b_high)
    return _combine(m, f, low, *c), _combine(m, f, high, *c)


def setp(m: Machine[V], f: Form, a: V, b: V, *c: V) -> tuple[V, V]:
    """p = a compared with b, q = the opposite; each combined with c where there is one."""
    truth = relate(m, f, f.type, a, b)
    return _combine(m, f, truth, *c), _combine(m, f, m.bit_xor(PRED, truth, m.constant(PRED, 1)), *c)


def setp_one(m: Machine[V], f: Form, a: V, b: V, *c: V) -> V:
    """p = a compared with b, combined with c where there is one."""
    return _combine(m, f, relate(m, f, f.type, a, b), *c)


def setp_pair(m: Machine[V], f: Form, a: V, b: V, *c: V) -> tuple[V, V]:
    """p = the low halves compared, q = the high halves; each combined with c where there is one."""
    return _relate_halves(m, f, packed_element(f.type), a, b, *c)


def set_(m: Machine[V], f: Form, a: V, b: V, *c: V) -> V:
    """d = all ones (1.0 for floats) where the comparison, combined with c if there is one, holds; else 0."""
    target = f.types["dtype"]
    truth = _combine(m, f, relate(m, f, f.types["type"], a, b), *c)
    return m.select(target, truth, m.constant(target, _ONES.get(target.name, -1)), m.constant(target, 0))


def set_pair(m: Machine[V], f: Form, a: V, b: V, *c: V) -> V:
    """As set for each half: all ones (1.0 for floats) in the halves of d where it holds, else 0."""
    t = packed_element(f.types["type"])
    true = m.constant(U16, _ONES[t.name] if f.types["dtype"].is_float else -1)
    low, high = _relate_halves(m, f, t, a, b, *c)
    zero = m.constant(U16, 0)
    return join_halves(m, m.select(U16, low, true, zero), m.select(U16, high, true, zero))


def _results_of_set() -> Iterator[tuple[tuple[str, str, str], str]]:
    """What `set` compares, and the types of its result (PTX manual, 9.7.6.1 and 9.7.7.1)."""
    yield from ((numbers, "u32 s32 f32 f16") for numbers in _NUMBERS)
    yield from (((kinds, names, ""), "bf16") for kinds, names, _ in (*_NUMBERS, _HALVES))
    yield (_HALVES, "u16 s16 u32 s32 f16")
    yield (_BRAINS, "u16 s16 u32 s32 bf16")
    yield from ((numbers, f"{numbers[0]} u32 s32") for numbers in _PAIRS)


def _section(kinds: str, place: int) -> str:
    return f"9.7.{7 if 'f16' in kinds else 6}.{place}"


for _c, _combined in (("", ""), (", c:pred", ".combine")):
    for _sources, _targets, _meaning in (
        (_NUMBERS, "p:pred|q:pred", setp),
        ((_HALVES, _BRAINS), "p:pred", setp_one),
        (_PAIRS, "p:pred|q:pred", setp_pair),
    ):  # fmt: skip
        for _kinds, _names, _flushes in _sources:
            row(
                f"setp.relation{_combined}{_flushes}.type {_targets}, a, b{_c}",
                types=_kinds, groups=_COMBINE | {"relation": _names}, section=_section(_kinds, 2), pipe=Pipe.INTEGER,
                needs=_NEEDS,
            )(_meaning)  # fmt: skip
    for (_kinds, _names, _flushes), _targets in _results_of_set():
        row(
            f"set.relation{_combined}{_flushes}.dtype.type d:dtype, a, b{_c}",
            types={"dtype": _targets, "type": _kinds}, groups=_COMBINE | {"relation": _names},
            section=_section(_kinds, 1), pipe=Pipe.INTEGER, needs=_NEEDS,
        )(set_pair if _kinds.endswith("x2") else set_)  # fmt: skip


@row(
    "selp.type d, a, b, c:pred",
    types="b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64",
    section="9.7.6.3",
    pipe=Pipe.INTEGER,
)
def selp(m: Machine[V], f: Form, a: V, b: V, c: V) -> V:
    """d = a where c holds, else b."""
    return m.select(f.type, c, a, b)


def slct(m: Machine[V], f: Form, a: V, b: V, c: V) -> V:
    """d = a where c ≥ 0, else b (for NaN too)."""
    target, source = f.types["dtype"], f.types["type1"]
    c = flush(m, f, c)
    return m.select(target, m.compare(source, "ge", c, m.constant(source, 0)), a, b)


for _modifiers in (".dtype.s32", "{.ftz}.dtype.f32"):
    row(
        f"slct{_modifiers} d:dtype, a:dtype, b:dtype, c:{_modifiers[-3:]}",
        types={"dtype": "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64"}, section="9.7.6.4", pipe=Pipe.INTEGER,
    )(slct)  # fmt: skip
