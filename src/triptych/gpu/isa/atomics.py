"""Atomic operations (PTX manual, 9.7.13.5 `atom`, 9.7.13.7 `red`)."""

from __future__ import annotations

from functools import partial

from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.table import Effect, Form, Pipe, row

_ORDER = {
    "order": "relaxed acquire release acq_rel",
    "scope": "cta cluster gpu sys",
    "space": "global shared shared::cta",
}
_OPERATIONS = (
    ("add", "u32 s32 u64 f32 f64"),
    ("min max", "u32 s32 u64 s64"),
    ("inc dec", "u32"),
    ("and or xor", "b32 b64"),
)
_PREFIX = "{.order}{.scope}{.space}"


def atom(m: Machine[V], f: Form, address: V, b: V) -> V:
    """d = the element at the address, which becomes (element operation b)."""
    return m.atomic(f.space, f.get("operation"), f.type, address, (b,))


def red(m: Machine[V], f: Form, address: V, b: V) -> None:
    """The element at the address becomes (element operation b)."""
    m.atomic(f.space, f.get("operation"), f.type, address, (b,))


_row = partial(row, pipe=Pipe.LOAD_STORE, effect=Effect.ATOMIC)
for _names, _types in (*_OPERATIONS, ("exch", "b32 b64")):
    _groups = _ORDER | {"operation": _names}
    _row(f"atom{_PREFIX}.operation.type d, [a]:u64, b", types=_types, groups=_groups, section="9.7.13.5")(atom)
for _names, _types in _OPERATIONS:
    _groups = _ORDER | {"operation": _names}
    _row(f"red{_PREFIX}.operation.type [a]:u64, b", types=_types, groups=_groups, section="9.7.13.7")(red)


@_row(f"atom{_PREFIX}.cas.type d, [a]:u64, b, c", types="b16 b32 b64", groups=_ORDER, section="9.7.13.5")
def atom_cas(m: Machine[V], f: Form, address: V, b: V, c: V) -> V:
    """d = the element at the address, which becomes c where it was b."""
    return m.atomic(f.space, "cas", f.type, address, (b, c))
