"""Logic and shift (PTX manual, 9.7.8), comparison and selection (9.7.6)."""

from __future__ import annotations

from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.modifiers import flush, flush_narrow, to_single
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.types import F32, PRED, U32, U64, ScalarType

_BITS = "pred b16 b32 b64"
_COMBINE = {"combine": "and or xor"}
_SIGNED_RELATIONS = "eq ne lt le gt ge"
_FLOAT_RELATIONS = "eq ne lt le gt ge equ neu ltu leu gtu geu num nan"
_COMPARISONS = (
    ("b16 b32 b64", "eq ne", ""),
    ("s16 s32 s64", _SIGNED_RELATIONS, ""),
    ("u16 u32 u64", f"{_SIGNED_RELATIONS} lo ls hi hs", ""),
    ("f32 f16", _FLOAT_RELATIONS, "{.ftz}"),
    ("f64 bf16", _FLOAT_RELATIONS, ""),
)
"""Types, the relations that they have, and whether subnormals may be flushed (PTX manual, 9.3.1)."""
_UNSIGNED_NAMES = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


@row("and.type d, a, b", types=_BITS, section="9.7.8.1", pipe=Pipe.INTEGER)
def bit_and(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a & b."""
    return m.bit_and(f.type, a, b)


@row("or.type d, a, b", types=_BITS, section="9.7.8.2", pipe=Pipe.INTEGER)
def bit_or(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a | b."""
    return m.bit_or(f.type, a, b)


@row("xor.type d, a, b", types=_BITS, section="9.7.8.3", pipe=Pipe.INTEGER)
def bit_xor(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a ^ b."""
    return m.bit_xor(f.type, a, b)


@row("not.type d, a", types=_BITS, section="9.7.8.4", pipe=Pipe.INTEGER)
def bit_not(m: Machine[V], f: Form, a: V) -> V:
    """d = ~a."""
    return m.bit_xor(f.type, a, m.constant(f.type, -1))


@row("cnot.type d, a", types="b16 b32 b64", section="9.7.8.5", pipe=Pipe.INTEGER)
def cnot(m: Machine[V], f: Form, a: V) -> V:
    """d = 1 where a is 0, else 0."""
    zero = m.constant(f.type, 0)
    return m.select(f.type, m.compare(f.type, "eq", a, zero), m.constant(f.type, 1), zero)


@row("lop3.b32 d, a, b, c, table:u32", section="9.7.8.6", pipe=Pipe.INTEGER)
def lop3(m: Machine[V], f: Form, a: V, b: V, c: V, table: V) -> V:
    """d = the three-input function whose truth table is the last operand, bit by bit."""
    t, ones = f.type, m.constant(f.type, -1)
    result = m.constant(t, 0)
    for entry in range(8):
        term = ones
        for bit, operand in ((4, a), (2, b), (1, c)):
            term = m.bit_and(t, term, operand if entry & bit else m.bit_xor(t, operand, ones))
        chosen = m.bit_and(t, m.shift_right(t, table, m.constant(t, entry)), m.constant(t, 1))
        result = m.bit_or(t, result, m.bit_and(t, term, m.sub(t, m.constant(t, 0), chosen)))
    return result


@row("shl.type d, a, b:u32", types="b16 b32 b64", section="9.7.8.8", pipe=Pipe.INTEGER)
def shl(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a << b; 0 for amounts of the width or more."""
    t = f.type
    fits = m.compare(U32, "lt", b, m.constant(U32, t.bits))
    amount = m.resize(U32, t, m.select(U32, fits, b, m.constant(U32, 0)))
    return m.select(t, fits, m.shift_left(t, a, amount), m.constant(t, 0))


@row("shr.type d, a, b:u32", types="b16 b32 b64 u16 u32 u64 s16 s32 s64", section="9.7.8.9", pipe=Pipe.INTEGER)
def shr(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = a >> b, filled with the sign if signed; amounts are clamped to the width."""
    t = f.type
    fits = m.compare(U32, "lt", b, m.constant(U32, t.bits))
    if t.is_signed:
        return m.shift_right(t, a, m.resize(U32, t, m.select(U32, fits, b, m.constant(U32, t.bits - 1))))
    amount = m.resize(U32, t, m.select(U32, fits, b, m.constant(U32, 0)))
    return m.select(t, fits, m.shift_right(t, a, amount), m.constant(t, 0))


@row(
    "shf.side.mode.b32 d, a, b, c:u32",
    section="9.7.8.7",
    pipe=Pipe.INTEGER,
    groups={"side": "l r", "mode": "clamp wrap"},
)
def shf(m: Machine[V], f: Form, a: V, b: V, c: V) -> V:
    """d = 32 bits of the 64-bit value {b, a} shifted by c: the high ones of `.l`, the low ones of `.r`."""
    limit = m.constant(U32, 32)
    if f.has("wrap"):
        amount = m.bit_and(U32, c, m.constant(U32, 31))
    else:
        amount = m.select(U32, m.compare(U32, "lt", c, limit), c, limit)
    whole = m.bit_or(U64, m.resize(U32, U64, a), m.shift_left(U64, m.resize(U32, U64, b), m.constant(U64, 32)))
    wide = m.resize(U32, U64, amount)
    if f.has("r"):
        return m.resize(U64, U32, m.shift_right(U64, whole, wide))
    return m.resize(U64, U32, m.shift_right(U64, m.shift_left(U64, whole, wide), m.constant(U64, 32)))


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


def setp(m: Machine[V], f: Form, a: V, b: V) -> tuple[V, V]:
    """p = a compared with b; q = the opposite."""
    truth = relate(m, f, f.type, a, b)
    return truth, m.bit_xor(PRED, truth, m.constant(PRED, 1))


def setp_combined(m: Machine[V], f: Form, a: V, b: V, c: V) -> tuple[V, V]:
    """p = (a compared with b) combined with c; q = the opposite comparison combined with c."""
    combine = {"and": m.bit_and, "or": m.bit_or, "xor": m.bit_xor}[f.get("combine")]
    truth = relate(m, f, f.type, a, b)
    return combine(PRED, truth, c), combine(PRED, m.bit_xor(PRED, truth, m.constant(PRED, 1)), c)


def set_(m: Machine[V], f: Form, a: V, b: V) -> V:
    """d = all ones (1.0 for f32) where the comparison holds, else 0."""
    target = f.types["dtype"]
    truth = relate(m, f, f.types["type"], a, b)
    return m.select(target, truth, m.constant(target, 1.0 if target.is_float else -1), m.constant(target, 0))


for _kinds, _names, _flushes in _COMPARISONS:
    _groups = {"relation": _names}
    _set_types = {"dtype": "u32 s32 f32", "type": _kinds}
    row(
        f"setp.relation{_flushes}.type p:pred|q:pred, a, b",
        types=_kinds, groups=_groups, section="9.7.6.2", pipe=Pipe.INTEGER,
    )(setp)  # fmt: skip
    row(
        f"setp.relation.combine{_flushes}.type p:pred|q:pred, a, b, c:pred",
        types=_kinds, groups=_groups | _COMBINE, section="9.7.6.2", pipe=Pipe.INTEGER,
    )(setp_combined)  # fmt: skip
    row(
        f"set.relation{_flushes}.dtype.type d:dtype, a, b",
        types=_set_types, groups=_groups, section="9.7.6.1", pipe=Pipe.INTEGER,
    )(set_)  # fmt: skip


@row(
    "selp.type d, a, b, c:pred",
    types="b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64",
    section="9.7.6.3",
    pipe=Pipe.INTEGER,
)
def selp(m: Machine[V], f: Form, a: V, b: V, c: V) -> V:
    """d = a where c holds, else b."""
    return m.select(f.type, c, a, b)


@row("prmt.b32 d, a, b, c:u32", section="9.7.9.7", pipe=Pipe.INTEGER)
def prmt(m: Machine[V], f: Form, a: V, b: V, c: V) -> V:
    """d = four bytes picked from {b, a} by the nibbles of c; a nibble's high bit spreads the byte's sign."""
    whole = m.bit_or(U64, m.resize(U32, U64, a), m.shift_left(U64, m.resize(U32, U64, b), m.constant(U64, 32)))
    result = m.constant(U32, 0)
    for position in range(4):
        nibble = m.shift_right(U32, c, m.constant(U32, 4 * position))
        index = m.shift_left(U32, m.bit_and(U32, nibble, m.constant(U32, 7)), m.constant(U32, 3))
        byte = m.resize(U64, U32, m.shift_right(U64, whole, m.resize(U32, U64, index)))
        byte = m.bit_and(U32, byte, m.constant(U32, 255))
        sign = m.sub(U32, m.constant(U32, 0), m.shift_right(U32, byte, m.constant(U32, 7)))
        sign = m.bit_and(U32, sign, m.constant(U32, 255))
        spread = m.compare(U32, "ne", m.bit_and(U32, nibble, m.constant(U32, 8)), m.constant(U32, 0))
        byte = m.select(U32, spread, sign, byte)
        result = m.bit_or(U32, result, m.shift_left(U32, byte, m.constant(U32, 8 * position)))
    return result
