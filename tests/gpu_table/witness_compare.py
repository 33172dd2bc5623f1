"""Comparisons of integers and of floats (PTX manual, 9.7.6, 9.3.1)."""

from __future__ import annotations

from exact import FORMATS, Real, decode, less
from expected import Expected
from opcodes import Opcode
from witness_float import flushed
from witness_integer import number

_NAMES = (
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "lo",
    "ls",
    "hi",
    "hs",
    "equ",
    "neu",
    "ltu",
    "leu",
    "gtu",
    "geu",
    "num",
    "nan",
)
_SAME = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def _ordered(relation: str, below: bool, above: bool) -> bool:
    return {
        "eq": not below and not above, "ne": below or above, "lt": below, "le": not above, "gt": above, "ge": not below,
    }[relation]  # fmt: skip


def _compare_floats(relation: str, a: Real, b: Real) -> bool:
    unordered = a.is_nan or b.is_nan
    if relation in ("num", "nan"):
        return unordered == (relation == "nan")
    if unordered:
        return relation.endswith("u")
    return _ordered(relation.removesuffix("u"), less(a, b), less(b, a))


def truth(op: Opcode, name: str, a: int, b: int) -> bool:
    """Whether the relation of the opcode holds."""
    relation = next(relation for relation in _NAMES if op.has(relation))
    if name in FORMATS:
        return _compare_floats(relation, *(decode(FORMATS[name], flushed(op, name, x)) for x in (a, b)))
    left, right = number(name, a), number(name, b)
    return _ordered(_SAME.get(relation, relation), left < right, left > right)


def _truths_of_pair(op: Opcode, a: int, b: int) -> tuple[bool, bool]:
    name = op.types[-1].removesuffix("x2")
    low, high = (truth(op, name, a >> shift & 0xFFFF, b >> shift & 0xFFFF) for shift in (0, 16))
    return low, high


def setp(op: Opcode, a: int, b: int, c: int | None = None) -> tuple[Expected, ...]:
    if op.type.endswith("x2"):
        p, q = _truths_of_pair(op, a, b)
    else:
        p = truth(op, op.type, a, b)
        q = not p
        if op.type in ("f16", "bf16"):  # has one destination
            return (_combined(op, p, c),)
    return _combined(op, p, c), _combined(op, q, c)


def _combined(op: Opcode, truth: bool, c: int | None) -> int:
    if c is None:
        return int(truth)
    return truth & c if op.has("and") else truth | c if op.has("or") else truth ^ c


_TRUE = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80, "u16": 0xFFFF, "s16": 0xFFFF}


def set_(op: Opcode, a: int, b: int, c: int | None = None) -> tuple[Expected]:
    target, source = op.types
    if not source.endswith("x2"):
        return (_combined(op, truth(op, source, a, b), c) * _TRUE.get(target, 0xFFFFFFFF),)
    low, high = (_combined(op, holds, c) for holds in _truths_of_pair(op, a, b))
    one = _TRUE[target.removesuffix("x2")] if target.endswith("x2") else 0xFFFF
    return (low * one | high * one << 16,)
