"""Logic, shift and permutation of bits and bytes (PTX manual, 9.7.8 and 9.7.9.7)."""

from __future__ import annotations

from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.types import PRED, U32, U64

_BITS = "pred b16 b32 b64"


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


@row(
    "lop3.combine.b32 d|p:pred, a, b, c, table:u32, q:pred",
    groups={"combine": "and or"}, section="9.7.8.6", pipe=Pipe.INTEGER,
)  # fmt: skip
def lop3_combined(m: Machine[V], f: Form, a: V, b: V, c: V, table: V, q: V) -> tuple[V, V]:
    """d = the three-input function of the table; p = (d is not 0) combined with q."""
    d = lop3(m, f, a, b, c, table)
    some = m.compare(U32, "ne", d, m.constant(U32, 0))
    return d, (m.bit_and if f.has("and") else m.bit_or)(PRED, some, q)


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
    whole = _joined(m, a, b)
    wide = m.resize(U32, U64, amount)
    if f.has("r"):
        return m.resize(U64, U32, m.shift_right(U64, whole, wide))
    return m.resize(U64, U32, m.shift_right(U64, m.shift_left(U64, whole, wide), m.constant(U64, 32)))


def _byte(m: Machine[V], whole: V, index: V) -> V:
    """A byte of a u64, as u32."""
    place = m.resize(U32, U64, m.shift_left(U32, index, m.constant(U32, 3)))
    return m.bit_and(U32, m.resize(U64, U32, m.shift_right(U64, whole, place)), m.constant(U32, 255))


def _joined(m: Machine[V], a: V, b: V) -> V:
    """The u64 {b, a}."""
    return m.bit_or(U64, m.resize(U32, U64, a), m.shift_left(U64, m.resize(U32, U64, b), m.constant(U64, 32)))


@row("prmt.b32 d, a, b, c:u32", section="9.7.9.7", pipe=Pipe.INTEGER)
def prmt(m: Machine[V], f: Form, a: V, b: V, c: V) -> V:
    """d = four bytes picked from {b, a} by the nibbles of c; a nibble's high bit spreads the byte's sign."""
    whole = _joined(m, a, b)
    result = m.constant(U32, 0)
    for position in range(4):
        nibble = m.shift_right(U32, c, m.constant(U32, 4 * position))
        byte = _byte(m, whole, m.bit_and(U32, nibble, m.constant(U32, 7)))
        sign = m.sub(U32, m.constant(U32, 0), m.shift_right(U32, byte, m.constant(U32, 7)))
        sign = m.bit_and(U32, sign, m.constant(U32, 255))
        spread = m.compare(U32, "ne", m.bit_and(U32, nibble, m.constant(U32, 8)), m.constant(U32, 0))
        byte = m.select(U32, spread, sign, byte)
        result = m.bit_or(U32, result, m.shift_left(U32, byte, m.constant(U32, 8 * position)))
    return result


_PERMUTATIONS = {
    "f4e": ("3210", "4321", "5432", "6543"),
    "b4e": ("5670", "6701", "7012", "0123"),
    "rc8": ("0000", "1111", "2222", "3333"),
    "ecl": ("3210", "3211", "3222", "3333"),
    "ecr": ("0000", "1110", "2210", "3210"),
    "rc16": ("1010", "3232", "1010", "3232"),
}
"""By mode and the two low bits of c: the bytes picked, the highest first."""


@row("prmt.mode.b32 d, a, b, c:u32", groups={"mode": " ".join(_PERMUTATIONS)}, section="9.7.9.7", pipe=Pipe.INTEGER)
def prmt_mode(m: Machine[V], f: Form, a: V, b: V, c: V) -> V:
    """d = four bytes of {b, a} from the one that c names on, forwards or backwards, clamped, or repeated."""
    whole, result = _joined(m, a, b), m.constant(U32, 0)
    choice = m.shift_left(U32, m.bit_and(U32, c, m.constant(U32, 3)), m.constant(U32, 2))
    for position in range(4):
        table = sum(int(picks[3 - position]) << 4 * entry for entry, picks in enumerate(_PERMUTATIONS[f.get("mode")]))
        index = m.bit_and(U32, m.shift_right(U32, m.constant(U32, table), choice), m.constant(U32, 7))
        result = m.bit_or(U32, result, m.shift_left(U32, _byte(m, whole, index), m.constant(U32, 8 * position)))
    return result
