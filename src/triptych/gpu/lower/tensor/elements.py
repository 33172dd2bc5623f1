"""Elements of matrices as numbers to reckon with, and back: what tensor cores take and give, by type.

Multiplicands of 16 bits and less, and tf32, are singles, which hold all of them exactly; f64 are doubles; of single
bits, words of 32 stay as they are. Accumulators of f16 and f32 are singles, those of s32 stay integers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from llvmlite import ir

from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.isa.types import ScalarType
from triptych.gpu.lower.primitives.arranging import pick
from triptych.gpu.lower.primitives.emitter import DOUBLE, FLOAT, HALF, I8, I16, I32, Emitter, number, vector
from triptych.gpu.lower.primitives.values import CANONICAL

Widen = Callable[[Emitter, ir.Value], ir.Value]

LEAST_ALIGNMENT = 4
"""What a block in memory is sure to have: LLVM takes a vector's own size for granted where nothing is said."""

_NUMBERS: Mapping[str, ir.Type] = {"b1": I32, "s32": I32, "f64": DOUBLE}
_TF32 = 0xFFFF_E000
"""The bits of a single that tf32 has."""
_NAN: Mapping[str, int] = {"f16": 0x7FFF, "f32": CANONICAL}
"""The bits of a result that is no number."""


def number_of(element: ScalarType) -> ir.Type:
    """The type of the numbers that elements become."""
    return _NUMBERS.get(element.name, FLOAT)


def widen(e: Emitter, element: ScalarType, words: ir.Value) -> ir.Value:
    """The elements of a vector of registers as numbers, lane after lane."""
    found = _WIDEN.get(element.name)
    return words if found is None else found(e, words)


def narrow(e: Emitter, element: ScalarType, numbers: ir.Value) -> ir.Value:
    """Sums as elements of D, lane after lane: of f16 words of two, of others as they are; NaN is the canonical one.

    Doubles keep theirs.
    """
    if element.name in ("s32", "f64"):
        return numbers
    count = numbers.type.count
    nan = e.b.fcmp_unordered("uno", numbers, numbers)
    if element.name != "f16":
        canonical = number(vector(I32, count), _NAN[element.name])
        return e.b.select(nan, e.b.bitcast(canonical, numbers.type), numbers)
    halves = e.b.bitcast(e.b.fptrunc(numbers, vector(HALF, count)), vector(I16, count))
    return e.b.bitcast(e.b.select(nan, number(halves.type, _NAN["f16"]), halves), vector(I32))


def pair_up(b: ir.IRBuilder, first: ir.Value, second: ir.Value) -> ir.Value:
    """a0 b0 a1 b1 …"""
    count = first.type.count
    return pick(b, first, second, [place for lane in range(count) for place in (lane, count + lane)])


def part(b: ir.IRBuilder, whole: ir.Value, first: int, step: int) -> ir.Value:
    """Every `step`-th element from `first` on: one register's of each lane."""
    return pick(b, whole, whole, [first + step * lane for lane in range(WARP_SIZE)])


def _widen_f16(e: Emitter, words: ir.Value) -> ir.Value:
    return e.b.fpext(e.b.bitcast(words, vector(HALF, 64)), vector(FLOAT, 64))


def _widen_bf16(e: Emitter, words: ir.Value) -> ir.Value:
    wide = e.b.zext(e.b.bitcast(words, vector(I16, 64)), vector(I32, 64))
    return e.b.bitcast(e.b.shl(wide, number(wide.type, 16)), vector(FLOAT, 64))


def _widen_tf32(e: Emitter, words: ir.Value) -> ir.Value:
    return e.b.bitcast(e.b.and_(words, number(words.type, _TF32)), vector(FLOAT))


def _bytes_as_halves(e: Emitter, words: ir.Value) -> ir.Value:
    return e.b.zext(e.b.bitcast(words, vector(I8, 128)), vector(I16, 128))


def _widen_e5m2(e: Emitter, words: ir.Value) -> ir.Value:
    """The upper half of an f16."""
    bits = _bytes_as_halves(e, words)
    return e.b.fpext(e.b.bitcast(e.b.shl(bits, number(bits.type, 8)), vector(HALF, 128)), vector(FLOAT, 128))


def _widen_e4m3(e: Emitter, words: ir.Value) -> ir.Value:
    """An f16 with another bias and its last seven digits 0; there is no infinity, and one NaN of either sign."""
    bits = _bytes_as_halves(e, words)
    kind = bits.type
    sign = e.b.shl(e.b.and_(bits, number(kind, 0x80)), number(kind, 8))
    size = e.b.and_(bits, number(kind, 0x7F))
    half = e.b.or_(sign, e.b.shl(size, number(kind, 7)))
    wide = e.b.fpext(e.b.bitcast(half, vector(HALF, 128)), vector(FLOAT, 128))
    value = e.b.fmul(wide, number(wide.type, 256.0))
    nan = e.b.bitcast(number(vector(I32, 128), CANONICAL), wide.type)
    return e.b.select(e.b.icmp_unsigned("==", size, number(kind, 0x7F)), nan, value)


def _widen_bytes(*, signed: bool) -> Widen:
    def widen_bytes(e: Emitter, words: ir.Value) -> ir.Value:
        kind = vector(I32, 128)
        extend = e.b.sext if signed else e.b.zext
        return e.b.sitofp(extend(e.b.bitcast(words, vector(I8, 128)), kind), vector(FLOAT, 128))

    return widen_bytes


def _widen_nibbles(*, signed: bool) -> Widen:
    """The lower half of a byte comes first."""

    def widen_nibbles(e: Emitter, words: ir.Value) -> ir.Value:
        whole = e.b.bitcast(words, vector(I8, 128))
        four = number(whole.type, 4)
        shift = e.b.ashr if signed else e.b.lshr
        low, high = shift(e.b.shl(whole, four), four), shift(whole, four)
        extend = e.b.sext if signed else e.b.zext
        return e.b.sitofp(extend(pair_up(e.b, low, high), vector(I32, 256)), vector(FLOAT, 256))

    return widen_nibbles


_WIDEN: Mapping[str, Widen] = {
    "f16": _widen_f16,
    "bf16": _widen_bf16,
    "tf32": _widen_tf32,
    "e5m2": _widen_e5m2,
    "e4m3": _widen_e4m3,
    "u8": _widen_bytes(signed=False),
    "s8": _widen_bytes(signed=True),
    "u4": _widen_nibbles(signed=False),
    "s4": _widen_nibbles(signed=True),
}
"""By type; the others are numbers as they are."""
