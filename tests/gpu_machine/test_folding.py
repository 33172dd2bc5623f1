"""What the builder of generated code reckons with itself: lane by lane, and nothing that LLVM leaves open."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from llvmlite import ir

from triptych.gpu.lower.primitives.emitter import I1, I32, I64, Emitter, lanes, number, start_function, vector

EDGES = (0, 1, 2, 31, 32, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFE, 0xFFFF_FFFF)
SHIFTS = ("shl", "lshr", "ashr")


def _emitter() -> Emitter:
    return start_function(ir.Module(), "f", I32, [I32, vector(I32)])


def _number(value: ir.Value) -> int:
    """Of a scalar that is known."""
    assert isinstance(value, ir.Constant)
    return int(value.constant)


def _each(value: ir.Value) -> list[int]:
    """Of each lane of a vector that is known."""
    assert isinstance(value, ir.Constant)
    return [_number(lane) for lane in value.constant]


def _signed(value: int) -> int:
    return int(np.uint32(value).view(np.int32))


EXPECTED: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "and_": lambda a, b: a & b,
    "or_": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "shl": lambda a, b: a << b, "lshr": lambda a, b: a >> b,
    "ashr": lambda a, b: _signed(a) >> b,
}  # fmt: skip


@pytest.mark.parametrize("name", EXPECTED)
def test_known_integers_are_reckoned_with(name: str) -> None:
    e = _emitter()
    for a, b in product(EDGES, EDGES):
        if name in SHIFTS and b >= 32:
            continue
        found = getattr(e.b, name)(ir.Constant(I32, a), ir.Constant(I32, b))
        assert _number(found) == EXPECTED[name](a, b) & 0xFFFF_FFFF
    assert not e.entry.instructions


@pytest.mark.parametrize("name", SHIFTS)
def test_a_shift_by_the_width_is_left_to_llvm(name: str) -> None:
    e = _emitter()
    assert not isinstance(getattr(e.b, name)(ir.Constant(I32, 1), ir.Constant(I32, 32)), ir.Constant)
    each = getattr(e.b, name)(number(vector(I32), 1), lanes(I32, 2))  # by 32 and more in half of the lanes
    assert not isinstance(each, ir.Constant)


def test_lanes_are_reckoned_with_one_by_one() -> None:
    e = _emitter()
    flipped = e.b.xor(lanes(I32), number(vector(I32), 5))
    assert _each(flipped) == [lane ^ 5 for lane in range(32)]
    below = e.b.icmp_signed("<", e.b.sub(lanes(I32), number(vector(I32), 4)), number(vector(I32), -1))
    assert _each(below) == [int(lane - 4 < -1) for lane in range(32)]
    picked = e.b.select(below, lanes(I32), number(vector(I32), 7))
    assert _each(picked) == [lane if lane < 3 else 7 for lane in range(32)]
    wide = e.b.sext(e.b.sub(lanes(I32), number(vector(I32), 1)), vector(I64))
    assert _each(wide) == [(lane - 1) & 0xFFFF_FFFF_FFFF_FFFF for lane in range(32)]
    assert str(e.b.mul(lanes(I32), number(vector(I32), 0))) == str(number(vector(I32), 0))
    assert not e.entry.instructions


TESTS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@pytest.mark.parametrize("relation", TESTS)
def test_comparisons_read_signs_where_they_are_to(relation: str) -> None:
    e = _emitter()
    for a, b in product(EDGES, EDGES):
        constants = ir.Constant(I32, a), ir.Constant(I32, b)
        assert _number(e.b.icmp_unsigned(relation, *constants)) == int(TESTS[relation](a, b))
        assert _number(e.b.icmp_signed(relation, *constants)) == int(TESTS[relation](_signed(a), _signed(b)))


def test_operands_that_do_nothing_leave_the_other() -> None:
    e = _emitter()
    for value in e.function.args:
        zero, one, ones = (number(value.type, n) for n in (0, 1, -1))
        for found in (
            e.b.add(value, zero), e.b.add(zero, value), e.b.sub(value, zero), e.b.mul(one, value),
            e.b.and_(value, ones), e.b.or_(zero, value), e.b.xor(value, zero), e.b.shl(value, zero),
            e.b.ashr(value, zero),
            e.b.select(ir.Constant(I1, 1), value, one), e.b.select(ir.Constant(I1, 0), one, value),
        ):  # fmt: skip
            assert found is value
        assert e.b.and_(value, zero) is zero
        assert str(e.b.icmp_signed("<=", value, value)) == str(e.b.icmp_unsigned("==", zero, zero))
    assert not e.entry.instructions
    assert e.b.sub(number(I32, 0), e.function.args[0]) is not e.function.args[0]


def test_what_is_not_known_takes_an_instruction() -> None:
    e = _emitter()
    scalar, row = e.function.args
    e.b.add(scalar, ir.Constant(I32, 3))
    e.b.and_(row, lanes(I32))
    e.b.not_(row)
    e.b.zext(scalar, I64)
    e.b.select(e.b.icmp_signed("<", scalar, number(I32, 0)), scalar, number(I32, 0))
    assert len(e.entry.instructions) == 6
