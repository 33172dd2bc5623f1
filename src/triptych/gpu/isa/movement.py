"""Data movement (PTX manual, 9.7.9): `mov`, `cvta`, loads and stores; `cp.async` (9.7.9.25)."""

from __future__ import annotations

from collections.abc import Sequence

from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.spaces import WINDOWS
from triptych.gpu.isa.table import Effect, Form, Pipe, row
from triptych.gpu.isa.types import U64

_MOVABLE = "pred b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64 f16 bf16"
_MEMORY = "b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64"
_HINTS = {
    "cache": "ca cg cs lu cv wb wt",
    "eviction": "L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate evict_last"
    " evict_first",
    "prefetch": "L2::64B L2::128B L2::256B",
    "order": "weak relaxed acquire release volatile",
    "scope": "cta cluster gpu sys",
    "vec": "v2 v4",
}
"""Modifiers without an effect on the values of a single kernel run in a sequentially consistent order."""
_SUFFIX = "{.order}{.scope}.space{.cache}{.nc}{.eviction}{.prefetch}{.vec}"


@row("mov.type d*, a*", types=_MOVABLE, section="9.7.9.1", pipe=Pipe.MOVE)
def mov(m: Machine[V], f: Form, a: V) -> V:
    """d = a: a register, a constant, an address, or parts packed or unpacked as `{…}`."""
    return a


def _to_generic(m: Machine[V], f: Form, a: V) -> V:
    return m.add(U64, a, m.constant(U64, WINDOWS[_space(f)]))


_CVTA = {"space": "global shared local const param shared::cta"}


@row("cvta.space.u64 d, a", groups=_CVTA, section="9.7.9.20", pipe=Pipe.INTEGER)
def cvta(m: Machine[V], f: Form, a: V) -> V:
    """d = the generic address of a place in the space."""
    return _to_generic(m, f, a)


@row("cvta.to.space.u64 d, a", groups=_CVTA, section="9.7.9.20", pipe=Pipe.INTEGER)
def cvta_to(m: Machine[V], f: Form, a: V) -> V:
    """d = a generic address as a place in the space."""
    return m.sub(U64, a, m.constant(U64, WINDOWS[_space(f)]))


_SPACES = {"space": "global shared local param const shared::cta param::entry param::func"}


def _space(f: Form) -> str:
    return f.get("space", "generic").partition("::")[0]


def _count(f: Form) -> int:
    return int(f.get("vec", "v1")[1:])


@row(
    f"ld{_SUFFIX}.type d*, [a]:u64",
    types=_MEMORY,
    groups=_SPACES | _HINTS,
    section="9.7.9.8",
    pipe=Pipe.LOAD_STORE,
    effect=Effect.LOAD,
)
def ld(m: Machine[V], f: Form, address: V) -> Sequence[V]:
    """d = the element, or the two or four elements, at the address."""
    return m.load(_space(f), f.type, address, _count(f))


@row(
    f"ld{_SUFFIX.replace('.space', '')}.type d*, [a]:u64",
    types=_MEMORY, groups=_HINTS, section="9.7.9.8", pipe=Pipe.LOAD_STORE, effect=Effect.LOAD,
)  # fmt: skip
def ld_generic(m: Machine[V], f: Form, address: V) -> Sequence[V]:
    """d = the elements at a generic address."""
    return m.load("generic", f.type, address, _count(f))


@row(
    f"st{_SUFFIX}.type [a]:u64, b*",
    types=_MEMORY,
    groups=_SPACES | _HINTS,
    section="9.7.9.12",
    pipe=Pipe.LOAD_STORE,
    effect=Effect.STORE,
)
def st(m: Machine[V], f: Form, address: V, *values: V) -> None:
    """The element, or the two or four elements, at the address = b."""
    m.store(_space(f), f.type, address, values)


@row(
    f"st{_SUFFIX.replace('.space', '')}.type [a]:u64, b*",
    types=_MEMORY, groups=_HINTS, section="9.7.9.12", pipe=Pipe.LOAD_STORE, effect=Effect.STORE,
)  # fmt: skip
def st_generic(m: Machine[V], f: Form, address: V, *values: V) -> None:
    """The elements at a generic address = b."""
    m.store("generic", f.type, address, values)


@row(
    "cp.async.cache.shared.global{.prefetch} [a]:u64, [b]:u64, size:u32, source_size:u32?",
    groups={"cache": "ca cg", "prefetch": "L2::64B L2::128B L2::256B"},
    section="9.7.9.25.3.1", pipe=Pipe.LOAD_STORE, effect=Effect.COPY,
)  # fmt: skip
def cp_async(m: Machine[V], f: Form, target: V, source: V, size: V, source_size: V | None = None) -> None:
    """`size` bytes of shared memory = those at b, zeros from `source_size` on; done at once, which its wait permits."""
    m.copy_to_shared(f.immediates[0], target, source, size if source_size is None else source_size)


@row("cp.async.commit_group", section="9.7.9.25.3.2", pipe=Pipe.CONTROL, effect=Effect.COPY)
def cp_async_commit(m: Machine[V], f: Form) -> None:
    """Closes a group of copies; they are done already."""


@row("cp.async.wait_group n:u32", section="9.7.9.25.3.3", pipe=Pipe.CONTROL, effect=Effect.COPY)
def cp_async_wait(m: Machine[V], f: Form, n: V) -> None:
    """Waits for all but the newest n groups; they are done already."""


@row("cp.async.wait_all", section="9.7.9.25.3.3", pipe=Pipe.CONTROL, effect=Effect.COPY)
def cp_async_wait_all(m: Machine[V], f: Form) -> None:
    """Waits for all copies; they are done already."""


@row(
    "prefetch.space.level [a]:u64",
    groups={"space": "global local", "level": "L1 L2"},
    section="9.7.9.15",
    pipe=Pipe.LOAD_STORE,
    effect=Effect.COPY,
)
def prefetch(m: Machine[V], f: Form, address: V) -> None:
    """Brings a line near; without an effect on values."""
