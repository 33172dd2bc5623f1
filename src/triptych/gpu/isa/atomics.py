"""Atomic operations (PTX manual, 9.7.13.5 `atom`, 9.7.13.7 `red`)."""

from __future__ import annotations

from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.table import Effect, Form, Pipe, row

_ORDER = {
    "order": "relaxed acquire release acq_rel",
    "scope": "cta cluster gpu sys",
    "space": "global shared shared::cta",
}
_OPERATIONS = {"operation": "add min max and or xor exch inc dec"}
_TYPES = "u32 s32 u64 s64 b32 b64 f32 f64"
_PREFIX = "{.order}{.scope}{.space}"


def _space(f: Form) -> str:
    return f.get("space", "generic").partition("::")[0]


@row(
    f"atom{_PREFIX}.operation.type d, [a]:u64, b",
    types=_TYPES,
    groups=_ORDER | _OPERATIONS,
    section="9.7.13.5",
    pipe=Pipe.LOAD_STORE,
    effect=Effect.ATOMIC,
)
def atom(m: Machine[V], f: Form, address: V, b: V) -> V:
    """d = the element at the address, which becomes (element operation b)."""
    return m.atomic(_space(f), f.get("operation"), f.type, address, (b,))


@row(
    f"atom{_PREFIX}.cas.type d, [a]:u64, b, c",
    types="b16 b32 b64",
    groups=_ORDER,
    section="9.7.13.5",
    pipe=Pipe.LOAD_STORE,
    effect=Effect.ATOMIC,
)
def atom_cas(m: Machine[V], f: Form, address: V, b: V, c: V) -> V:
    """d = the element at the address, which becomes c where it was b."""
    return m.atomic(_space(f), "cas", f.type, address, (b, c))


@row(
    f"red{_PREFIX}.operation.type [a]:u64, b",
    types=_TYPES,
    groups=_ORDER | _OPERATIONS,
    section="9.7.13.7",
    pipe=Pipe.LOAD_STORE,
    effect=Effect.ATOMIC,
)
def red(m: Machine[V], f: Form, address: V, b: V) -> None:
    """The element at the address becomes (element operation b)."""
    m.atomic(_space(f), f.get("operation"), f.type, address, (b,))


@row(
    "fence{.order}.scope",
    groups={"order": "sc acq_rel", "scope": "cta cluster gpu sys"},
    section="9.7.13.4",
    pipe=Pipe.CONTROL,
    effect=Effect.COPY,
)
def fence(m: Machine[V], f: Form) -> None:
    """Orders memory accesses; here they already take effect in program order."""


@row("membar.level", groups={"level": "cta gl sys"}, section="9.7.13.4", pipe=Pipe.CONTROL, effect=Effect.COPY)
def membar(m: Machine[V], f: Form) -> None:
    """Orders memory accesses; here they already take effect in program order."""
