"""Loads and stores (PTX manual, 9.7.9.8 to 9.7.9.11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from triptych.gpu.isa.effects import Effect, Observation
from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.table import Form, Pipe, row

_TYPES = "b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64"
_SPACES = {
    "ld": "global shared local param const shared::cta shared::cluster param::entry param::func",
    "st": "global shared local param shared::cta shared::cluster param::func",
}
_CACHES = {"ld": "ca cg cs lu cv", "st": "wb cg cs wt"}
_HINTS = {
    "eviction": "L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate",
    "eviction2": "L2::evict_normal L2::evict_first L2::evict_last",
    "prefetch": "L2::64B L2::128B L2::256B",
    "scope": "cta cluster gpu sys",
    "vec": "v2 v4",
}
"""Modifiers that change where data is cached, or what other blocks see when: nothing that changes a value here, where
every access takes effect at once."""
_HINTED = "{.eviction}{.eviction2}"
_POLICY = ", policy:b64"


def load(m: Machine[V], f: Form, address: V, *policy: V) -> Sequence[V]:
    """d = the element, or the two or four elements, at the address."""
    return m.load(f.space, f.type, address, f.elements)


def store(m: Machine[V], f: Form, address: V, *values: V) -> None:
    """The element, or the two or four elements, at the address = b."""
    m.store(f.space, f.type, address, values[: f.elements])


def _load(
    opcode: str, operands: str, groups: Mapping[str, str], section: str = "9.7.9.8",
    observes: Observation = Observation.WEAK,
) -> None:  # fmt: skip
    row(
        f"{opcode}.type d*, [a]:u64{operands}", types=_TYPES, groups=groups, section=section,
        pipe=Pipe.LOAD_STORE, effect=Effect.LOAD, wider_registers=True, observes=observes,
    )(load)  # fmt: skip


def _store(opcode: str, operands: str, groups: Mapping[str, str]) -> None:
    row(
        f"{opcode}.type [a]:u64, b*{operands}", types=_TYPES, groups=groups, section="9.7.9.11",
        pipe=Pipe.LOAD_STORE, effect=Effect.STORE, wider_registers=True,
    )(store)  # fmt: skip


def _groups(mnemonic: str, order: str) -> Mapping[str, str]:
    return _HINTS | {"space": _SPACES[mnemonic], "cache": _CACHES[mnemonic], "order": order}


for _hint, _operands in (("", ""), (".L2::cache_hint", _POLICY)):
    _tail = f"{_hint}{{.prefetch}}{{.vec}}"
    _load(f"ld{{.weak}}{{.space}}{{.cache}}{_HINTED}{_tail}", _operands, _groups("ld", ""))
    _ordered = _groups("ld", "relaxed acquire")
    _load(f"ld.order.scope{{.space}}{_HINTED}{_tail}", _operands, _ordered, observes=Observation.STRONG)
    _only = _HINTS | {"space": "global", "cache": "ca cg cs"}
    _load(f"ld.space{{.cache}}.nc{_HINTED}{_tail}", _operands, _only, "9.7.9.9", Observation.NOTHING)
    _store(f"st{{.weak}}{{.space}}{{.cache}}{_HINTED}{_hint}{{.vec}}", _operands, _groups("st", ""))
    _store(f"st.order.scope{{.space}}{_HINTED}{_hint}{{.vec}}", _operands, _groups("st", "relaxed release"))
_load("ld.volatile{.space}{.prefetch}{.vec}", "", _groups("ld", ""), observes=Observation.STRONG)
_load("ld.mmio.relaxed.sys{.space}", "", {"space": "global"}, observes=Observation.STRONG)
_load("ldu{.space}{.vec}", "", _HINTS | {"space": "global"}, "9.7.9.10")
_store("st.volatile{.space}{.vec}", "", _groups("st", ""))
_store("st.mmio.relaxed.sys{.space}", "", {"space": "global"})
