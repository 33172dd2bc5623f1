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


def setp(op: Opcode, a: int, b: int, c: int | None = None) -> tuple[Expected, Expected]:
    holds = truth(op, op.type, a, b)
    if c is None:
        return int(holds), int(not holds)
    return _combined(op, int(holds), c), _combined(op, int(not holds), c)


def _combined(op: Opcode, truth: int, c: int) -> int:
    return truth & c if op.has("and") else truth | c if op.has("or") else truth ^ c


def set_(op: Opcode, a: int, b: int) -> tuple[Expected]:
    holds = truth(op, op.types[1], a, b)
    return (0 if not holds else 0x3F800000 if op.type == "f32" else 0xFFFFFFFF,)
