"""Atomic operations (PTX manual, 9.7.13.5 `atom`, 9.7.13.6 `red`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from triptych.gpu.isa.arithmetic.narrow import halves_of, join_halves
from triptych.gpu.isa.effects import Effect
from triptych.gpu.isa.machine import PAIRED_CAS, Machine, V
from triptych.gpu.isa.restrictions import Restriction
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.types import packed_element

_ORDERS = {"atom": "relaxed acquire release acq_rel", "red": "relaxed release"}
_COMMON = {"scope": "cta cluster gpu sys", "space": "global shared shared::cta shared::cluster"}
_NEEDS = {
    "L2::cache_hint": "sm_80",
    **dict.fromkeys(("cluster", "shared::cluster", "b128", "bf16", "bf16x2", "v2", "v4", "v8"), "sm_90"),
}
_HINT_RULES = (Restriction(frozenset(("L2::cache_hint",)), spaces=frozenset(("", "global"))),)
_PREFIX = "{.order}{.scope}{.space}"
_OPERATIONS = (
    ("add", "u32 s32 u64 f32 f64"),
    ("min max", "u32 s32 u64 s64"),
    ("inc dec", "u32"),
    ("and or xor", "b32 b64"),
)
_VECTORS = (
    (".operation.vec", "f32", "v2 v4", "add"),
    (".operation.noftz.vec", "f16 bf16", "v2 v4 v8", "add min max"),
    (".operation.noftz.vec", "f16x2 bf16x2", "v2 v4", "add min max"),
)
"""Only in global memory."""


def _update(m: Machine[V], f: Form, address: V, b: Sequence[V]) -> Sequence[V]:
    """The old elements at the address, each of which becomes (element operation b); pairs are two elements."""
    kind, operation = f.words[0], f.operation
    t = packed_element(kind)
    if t is kind:
        return m.atomic(f.space, operation, t, address, b)
    halves = [half for pair in b for half in halves_of(m, pair)]
    old = m.atomic(f.space, operation, t, address, halves)
    return [join_halves(m, old[i], old[i + 1]) for i in range(0, len(old), 2)]


def atom(m: Machine[V], f: Form, address: V, *b: V) -> Sequence[V]:
    """d = the element (or elements) at the address, which becomes (element operation b)."""
    return _update(m, f, address, b[: f.words[1]])


def red(m: Machine[V], f: Form, address: V, *b: V) -> None:
    """The element (or elements) at the address becomes (element operation b)."""
    _update(m, f, address, b[: f.elements])


def atom_cas(m: Machine[V], f: Form, address: V, *operands: V) -> Sequence[V]:
    """d = the element at the address, which becomes c where it was b."""
    kind, count = f.words
    return m.atomic(f.space, f.operation, kind, address, operands[: 2 * count])


_row = partial(row, pipe=Pipe.LOAD_STORE, effect=Effect.ATOMIC, needs=_NEEDS, restrictions=_HINT_RULES)
for _name, _target, _section, _meaning in (("atom", "d{}, ", "9.7.13.5", atom), ("red", "", "9.7.13.6", red)):
    _groups = _COMMON | {"order": _ORDERS[_name]}
    for _hint, _policy in (("", ""), (".L2::cache_hint", ", policy:b64")):
        _exchanges = (("exch", "b32 b64 b128"),) if _name == "atom" else ()
        for _names, _types in (*_OPERATIONS, *_exchanges):
            _row(
                f"{_name}{_PREFIX}.operation{_hint}.type {_target.format('')}[a]:u64, b{_policy}",
                types=_types, groups=_groups | {"operation": _names}, section=_section,
            )(_meaning)  # fmt: skip
        _row(
            f"{_name}{_PREFIX}.operation.noftz{_hint}.type {_target.format('')}[a]:u64, b{_policy}",
            types="f16 bf16 f16x2 bf16x2", groups=_groups | {"operation": "add"}, section=_section,
        )(_meaning)  # fmt: skip
        for _opcode, _types, _counts, _names in _VECTORS:
            _row(
                f"{_name}{_PREFIX}{_opcode}{_hint}.type {_target.format('*')}[a]:u64, b*{_policy}",
                types=_types, section=_section,
                groups=_groups | {"space": "global", "vec": _counts, "operation": _names},
            )(_meaning)  # fmt: skip
for _types, _operation in (("b16 b32 b64", "cas"), ("b128", PAIRED_CAS)):
    _row(
        f"atom{_PREFIX}.cas.type d, [a]:u64, b, c",
        types=_types, groups=_COMMON | {"order": _ORDERS["atom"]}, section="9.7.13.5", operation=_operation,
    )(atom_cas)  # fmt: skip
