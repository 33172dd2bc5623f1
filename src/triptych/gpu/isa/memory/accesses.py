"""Loads and stores (PTX manual, 9.7.9.8 to 9.7.9.11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from triptych.gpu.isa.effects import Effect, Observation
from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.restrictions import Restriction
from triptych.gpu.isa.table import Form, Pipe, row

_TYPES = "b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64"
_SPACES = {
    "ld": "global shared local param const shared::cta shared::cluster param::entry param::func",
    "st": "global shared local param shared::cta shared::cluster param::func",
}
_ORDERED_SPACES = "global shared shared::cta shared::cluster"
_CACHES = {"ld": "ca cg cs lu cv", "st": "wb cg cs wt"}
_HINTS = {
    "eviction": "L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate",
    "eviction2": "L2::evict_normal L2::evict_first L2::evict_last",
    "prefetch": "L2::64B L2::128B L2::256B",
    "scope": "cta cluster gpu sys",
    "vec": "v2 v4 v8",
}
"""Modifiers that change where data is cached, or what other blocks see when: nothing that changes a value here, where
every access takes effect at once."""
_HINTED = "{.eviction}{.eviction2}"
_POLICY = ", policy:b64"


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DEVICE = frozenset(("", "global"))
_WORDS, _DOUBLES = _names("b32 u32 s32 f32"), _names("b64 u64 s64 f64")
_RULES = (
    Restriction(_names(f"{_HINTS['eviction']} {_HINTS['prefetch']} L2::cache_hint"), spaces=_DEVICE),
    Restriction(_names(_HINTS["eviction"]), apart=_names("ca cg cs lu cv wb wt")),
    Restriction(_names(_HINTS["eviction2"]), lane_bytes=frozenset((32,))),
    Restriction(_DOUBLES, apart=_names("v8")),
    Restriction(_names("b128"), apart=_names("v2 v4 v8")),
)
_LDU_RULES = (*_RULES, Restriction(_DOUBLES, apart=_names("v4")))
_NEEDS = {
    "cluster": "sm_90", "shared::cluster": "sm_90", "L2::256B": "sm_80", "L2::cache_hint": "sm_80",
    **{f"v8.{kind}": "sm_100" for kind in sorted(_WORDS)}, **{f"v4.{kind}": "sm_100" for kind in sorted(_DOUBLES)},
}  # fmt: skip


def load(m: Machine[V], f: Form, address: V, *policy: V) -> Sequence[V]:
    """d = the element, or the neighbouring elements, at the address."""
    kind, count = f.words
    return m.load(f.space, kind, address, count)


def store(m: Machine[V], f: Form, address: V, *values: V) -> None:
    """The element, or the neighbouring elements, at the address = b."""
    kind, count = f.words
    m.store(f.space, kind, address, values[:count])


def _load(
    opcode: str, operands: str, groups: Mapping[str, str], section: str = "9.7.9.8",
    observes: Observation = Observation.WEAK, rules: tuple[Restriction, ...] = _RULES,
) -> None:  # fmt: skip
    row(
        f"{opcode}.type d*, [a]:u64{operands}", types=_TYPES, groups=groups, section=section,
        pipe=Pipe.LOAD_STORE, effect=Effect.LOAD, wider_registers=True, observes=observes,
        needs=_NEEDS, restrictions=rules,
    )(load)  # fmt: skip


def _store(opcode: str, operands: str, groups: Mapping[str, str]) -> None:
    row(
        f"{opcode}.type [a]:u64, b*{operands}", types=_TYPES, groups=groups, section="9.7.9.11",
        pipe=Pipe.LOAD_STORE, effect=Effect.STORE, wider_registers=True, needs=_NEEDS, restrictions=_RULES,
    )(store)  # fmt: skip


def _groups(mnemonic: str, spaces: str = "", order: str = "") -> Mapping[str, str]:
    return _HINTS | {"space": spaces or _SPACES[mnemonic], "cache": _CACHES[mnemonic], "order": order}


_VOLATILE_SPACES = f"{_ORDERED_SPACES} local"
for _hint, _operands in (("", ""), (".L2::cache_hint", _POLICY)):
    _tail = f"{_hint}{{.prefetch}}{{.vec}}"
    _load(f"ld{{.weak}}{{.space}}{{.cache}}{_HINTED}{_tail}", _operands, _groups("ld"))
    _ordered = _groups("ld", _ORDERED_SPACES, "relaxed acquire")
    _load(f"ld.order.scope{{.space}}{_HINTED}{_tail}", _operands, _ordered, observes=Observation.STRONG)
    _only = _HINTS | {"space": "global", "cache": "ca cg cs"}
    _load(f"ld.space{{.cache}}.nc{_HINTED}{_tail}", _operands, _only, "9.7.9.9", Observation.NOTHING)
    _store(f"st{{.weak}}{{.space}}{{.cache}}{_HINTED}{_hint}{{.vec}}", _operands, _groups("st"))
    _ordered = _groups("st", _ORDERED_SPACES, "relaxed release")
    _store(f"st.order.scope{{.space}}{_HINTED}{_hint}{{.vec}}", _operands, _ordered)
_load(
    "ld.volatile{.space}{.eviction2}{.prefetch}{.vec}", "", _groups("ld", _VOLATILE_SPACES), observes=Observation.STRONG
)
_store("st.volatile{.space}{.eviction2}{.vec}", "", _groups("st", _VOLATILE_SPACES))
for _mnemonic, _add, _order in (
    ("ld", partial(_load, observes=Observation.STRONG), "acquire"),
    ("st", _store, "release"),
):
    _add(f"{_mnemonic}.mmio.order.sys{{.space}}", "", {"space": "global", "order": f"relaxed {_order}"})
_load("ldu{.space}{.vec}", "", {"space": "global", "vec": "v2 v4"}, "9.7.9.10", rules=_LDU_RULES)
