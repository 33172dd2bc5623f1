"""Data movement (PTX manual, 9.7.9): `mov`, `cvta`, `isspacep`, and `cp.async` (9.7.9.25)."""

from __future__ import annotations

from functools import partial

from triptych.gpu.hardware import WINDOW_SIZE
from triptych.gpu.isa.effects import Effect
from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.spaces import SPACES
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.types import PRED, U64

_MOVABLE = "pred b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64"


@row("mov.type d#, a#", types=_MOVABLE, section="9.7.9.3", pipe=Pipe.MOVE, takes_symbols=True)
def mov(m: Machine[V], f: Form, a: V) -> V:
    """d = a: a register, a constant, an address, or parts packed or unpacked as `{…}`."""
    return a


_cvta = partial(
    row, section="9.7.9.20", pipe=Pipe.INTEGER, takes_symbols=True, converts_addresses=True,
    groups={"space": "global shared local const param shared::cta param::entry"},
)  # fmt: skip


@_cvta("cvta.space.u64 d, a")
def cvta(m: Machine[V], f: Form, a: V) -> V:
    """d = the generic address of a place in the space."""
    return m.add(U64, a, m.constant(U64, f.space.window))


@_cvta("cvta.to.space.u64 d, a")
def cvta_to(m: Machine[V], f: Form, a: V) -> V:
    """d = a generic address as a place in the space."""
    return m.sub(U64, a, m.constant(U64, f.space.window))


@row(
    "isspacep.space p:pred, a:u64",
    groups={"space": "global shared local param shared::cta shared::cluster param::entry"},
    section="9.7.9.19", pipe=Pipe.INTEGER,
)  # fmt: skip
def isspacep(m: Machine[V], f: Form, a: V) -> V:
    """p = whether a generic address lies in the space."""
    if f.space.window:
        return _is_in_window(m, a, f.space.window)
    elsewhere = m.constant(PRED, 0)
    for window in dict.fromkeys(space.window for space in SPACES if space.window):
        elsewhere = m.bit_or(PRED, elsewhere, _is_in_window(m, a, window))
    return m.bit_xor(PRED, elsewhere, m.constant(PRED, 1))


def _is_in_window(m: Machine[V], a: V, window: int) -> V:
    return m.compare(U64, "lt", m.sub(U64, a, m.constant(U64, window)), m.constant(U64, WINDOW_SIZE))


@row(
    "cp.async.cache.shared.global{.prefetch} [a]:u64, [b]:u64, size:u32, source_size:u32?",
    groups={"cache": "ca cg", "prefetch": "L2::64B L2::128B L2::256B"},
    section="9.7.9.25.3.1", pipe=Pipe.LOAD_STORE, effect=Effect.COPY,
)  # fmt: skip
def cp_async(m: Machine[V], f: Form, target: V, source: V, size: V, source_size: V | None = None) -> None:
    """`size` bytes of shared memory = those at b, zeros from `source_size` on; done at once, which its wait permits."""
    m.copy_to_shared(f.immediates[0], target, source, size if source_size is None else source_size)


@row("cp.async.commit_group", section="9.7.9.25.3.2", pipe=Pipe.CONTROL, effect=Effect.ORDER)
def cp_async_commit(m: Machine[V], f: Form) -> None:
    """Closes a group of copies; they are done already."""


@row("cp.async.wait_group n:u32", section="9.7.9.25.3.3", pipe=Pipe.CONTROL, effect=Effect.ORDER)
def cp_async_wait(m: Machine[V], f: Form, n: V) -> None:
    """Waits for all but the newest n groups; they are done already."""


@row("cp.async.wait_all", section="9.7.9.25.3.3", pipe=Pipe.CONTROL, effect=Effect.ORDER)
def cp_async_wait_all(m: Machine[V], f: Form) -> None:
    """Waits for all copies; they are done already."""
