"""llvmlite's builder, but what is known of integers it reckons with itself: LLVM reads less, and selects less."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import cast

from llvmlite import ir

from triptych.gpu.lower.primitives.constants import Splat, number, vector

Known = int | tuple[int, ...]
"""Integers without sign: one, which all lanes of a vector have, or one for each lane."""
I1 = ir.IntType(1)
_Binary = Callable[[int, int], int | None]


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


_COMPUTE: Mapping[str, Callable[[int, int, int], int | None]] = {
    "add": lambda a, b, bits: a + b, "sub": lambda a, b, bits: a - b, "mul": lambda a, b, bits: a * b,
    "and_": lambda a, b, bits: a & b, "or_": lambda a, b, bits: a | b, "xor": lambda a, b, bits: a ^ b,
    "shl": lambda a, b, bits: a << b if b < bits else None, "lshr": lambda a, b, bits: a >> b if b < bits else None,
    "ashr": lambda a, b, bits: _signed(a, bits) >> b if b < bits else None,
}  # fmt: skip
"""Of two integers and their width; None where LLVM says nothing of the result."""
_NEUTRAL: Mapping[str, int] = {
    "add": 0, "sub": 0, "mul": 1, "and_": -1, "or_": 0, "xor": 0, "shl": 0, "lshr": 0, "ashr": 0,
}  # fmt: skip
"""What on the right leaves the left operand as it is."""
_COMMUTATIVE = frozenset({"add", "mul", "and_", "or_", "xor"})
_TESTS: Mapping[str, Callable[[int, int], bool]] = {
    "==": int.__eq__, "!=": int.__ne__, "<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__
}  # fmt: skip


def _width(kind: ir.Type) -> int:
    """The bits of an integer, or of a vector's lanes; 0 of any other type."""
    lane = kind.element if isinstance(kind, ir.VectorType) else kind
    return lane.width if isinstance(lane, ir.IntType) else 0


def _known(value: ir.Value) -> Known | None:
    """What is known of an integer or of a vector of them."""
    if not isinstance(value, ir.Constant):
        return None
    bits = _width(value.type)
    if not bits:
        return None
    content: object = value.lane.constant if isinstance(value, Splat) else value.constant
    if isinstance(content, (list, tuple)):
        lanes = [_integer(lane, bits) for lane in cast(Sequence[ir.Constant], content)]
        return None if None in lanes else tuple(lane for lane in lanes if lane is not None)
    return content & ((1 << bits) - 1) if isinstance(content, int) else None


def _integer(lane: ir.Constant, bits: int) -> int | None:
    content: object = lane.constant
    return content & ((1 << bits) - 1) if isinstance(content, int) else None


@lru_cache(maxsize=1 << 10)
def _constant(kind: ir.Type, known: Known) -> ir.Constant:
    if isinstance(known, int):
        return number(kind, known)
    if len(set(known)) == 1:
        return number(kind, known[0])
    assert isinstance(kind, ir.VectorType)
    return ir.Constant(kind, [number(kind.element, value) for value in known])


def _each(compute: _Binary, a: Known, b: Known) -> Known | None:
    """A function of both, lane by lane; None where it has no outcome in one."""
    if isinstance(a, int) and isinstance(b, int):
        return compute(a, b)
    count = len(a if isinstance(a, tuple) else b if isinstance(b, tuple) else ())
    sides = [side if isinstance(side, tuple) else (side,) * count for side in (a, b)]
    outcome = [compute(x, y) for x, y in zip(*sides, strict=True)]
    return None if None in outcome else tuple(lane for lane in outcome if lane is not None)


@lru_cache(maxsize=1 << 12)
def _outcome(name: str, bits: int, left: Known, right: Known) -> Known | None:
    compute, mask = _COMPUTE[name], (1 << bits) - 1
    return _each(lambda a, b: None if (c := compute(a, b, bits)) is None else c & mask, left, right)


def _fold(name: str, lhs: ir.Value, rhs: ir.Value) -> ir.Value | None:
    """What a binary operation comes to without an instruction; None where it takes one."""
    if not (isinstance(lhs, ir.Constant) or isinstance(rhs, ir.Constant)):
        return None
    left, right, bits = _known(lhs), _known(rhs), _width(lhs.type)
    neutral, mask = _NEUTRAL[name], (1 << bits) - 1
    if left is not None and right is not None:
        outcome = _outcome(name, bits, left, right)
        return None if outcome is None else _constant(lhs.type, outcome)
    if right == neutral & mask:
        return lhs
    if name in _COMMUTATIVE and left == neutral & mask:
        return rhs
    return number(lhs.type, 0) if name in ("mul", "and_") and 0 in (left, right) else None


def _extend(value: ir.Value, kind: ir.Type, *, is_signed: bool) -> ir.Value | None:
    """What an integer is in another width; None where it takes an instruction."""
    known, bits, mask = _known(value), _width(value.type), (1 << _width(kind)) - 1
    if known is None:
        return None
    lanes = known if isinstance(known, tuple) else (known,)
    resized = tuple((_signed(lane, bits) if is_signed else lane) & mask for lane in lanes)
    return _constant(kind, resized if isinstance(known, tuple) else resized[0])


def _test(relation: str, lhs: ir.Value, rhs: ir.Value, *, is_signed: bool) -> ir.Value | None:
    """What a comparison comes to; None where it takes an instruction."""
    if lhs is rhs:
        left = right = 0
    else:
        left, right = _known(lhs), _known(rhs)
    if left is None or right is None:
        return None
    test, kind = _TESTS[relation], lhs.type
    first = 1 << (_width(kind) - 1) if is_signed else 0  # flipped, signed numbers are in the order of unsigned ones
    outcome = _each(lambda a, b: int(test(a ^ first, b ^ first)), left, right)
    assert outcome is not None
    return _constant(vector(I1, kind.count) if isinstance(kind, ir.VectorType) else I1, outcome)


class FoldingBuilder(ir.IRBuilder):
    """Gives a constant, or one of the operands, where that is what an integer operation comes to.

    Each of `_COMPUTE` too, below; types and meanings are llvmlite's.
    """

    def not_(self, value: ir.Value) -> ir.Value:
        """See llvmlite."""
        return self.xor(value, number(value.type, -1))

    def zext(self, value: ir.Value, typ: ir.Type) -> ir.Value:
        """See llvmlite."""
        folded = _extend(value, typ, is_signed=False)
        return super().zext(value, typ) if folded is None else folded

    def sext(self, value: ir.Value, typ: ir.Type) -> ir.Value:
        """See llvmlite."""
        folded = _extend(value, typ, is_signed=True)
        return super().sext(value, typ) if folded is None else folded

    def trunc(self, value: ir.Value, typ: ir.Type) -> ir.Value:
        """See llvmlite."""
        folded = _extend(value, typ, is_signed=False)
        return super().trunc(value, typ) if folded is None else folded

    def icmp_signed(self, cmpop: str, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
        """See llvmlite."""
        folded = _test(cmpop, lhs, rhs, is_signed=True)
        return super().icmp_signed(cmpop, lhs, rhs) if folded is None else folded

    def icmp_unsigned(self, cmpop: str, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
        """See llvmlite."""
        folded = _test(cmpop, lhs, rhs, is_signed=False)
        return super().icmp_unsigned(cmpop, lhs, rhs) if folded is None else folded

    def select(self, cond: ir.Value, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
        """See llvmlite."""
        known = _known(cond)
        if isinstance(known, int):
            return lhs if known else rhs
        left, right = _known(lhs), _known(rhs)
        if known is None or left is None or right is None:
            return super().select(cond, lhs, rhs)
        sides = [side if isinstance(side, tuple) else (side,) * len(known) for side in (left, right)]
        return _constant(lhs.type, tuple(a if chosen else b for chosen, a, b in zip(known, *sides, strict=True)))


def _folding(name: str) -> Callable[[FoldingBuilder, ir.Value, ir.Value], ir.Value]:
    """A binary operation of the builder's that is folded first."""
    plain: Callable[[ir.IRBuilder, ir.Value, ir.Value], ir.Value] = getattr(ir.IRBuilder, name)

    def operate(self: FoldingBuilder, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
        folded = _fold(name, lhs, rhs)
        return plain(self, lhs, rhs) if folded is None else folded

    return operate


for _operation in _COMPUTE:
    setattr(FoldingBuilder, _operation, _folding(_operation))
