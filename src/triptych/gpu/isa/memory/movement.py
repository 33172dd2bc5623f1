"""Data movement (PTX manual, 9.7.9): `mov`, `cvta`, `isspacep`, and `cp.async` (9.7.9.25)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from triptych.gpu.hardware import NO_RANK, RANK_SHIFT, WINDOW_SIZE
from triptych.gpu.isa.effects import Effect
from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.restrictions import Restriction
from triptych.gpu.isa.spaces import CLUSTER, CONST, SHARED, SPACES
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.types import PRED, U32, U64, ScalarType


def mov(m: Machine[V], f: Form, a: V) -> V:
    """d = a: a register, a constant or an address; of bits also parts, packed or unpacked as `{…}`."""
    return a


_mov = partial(row, section="9.7.9.3", pipe=Pipe.MOVE, takes_symbols=True)
_mov("mov.type d#, a#", types="b16 b32 b64")(mov)
_mov("mov.type d, a", types="pred u16 u32 u64 s16 s32 s64 f32 f64")(mov)


@row("mov.b128 d#, a#", section="9.7.9.3", pipe=Pipe.MOVE)
def mov_quad(m: Machine[V], f: Form, *halves: V) -> Sequence[V]:
    """d = a: a register, or two or four parts packed or unpacked as `{…}`."""
    return halves


_cvta = partial(
    row, section="9.7.9.20", pipe=Pipe.INTEGER, takes_symbols=True, converts_addresses=True,
    groups={"space": "global shared local const param shared::cta shared::cluster param::entry"},
    needs={"shared::cluster": "sm_90"},
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
    "isspacep.space p:pred, a:u64/u32",
    groups={"space": "global const shared local param shared::cta shared::cluster param::entry"},
    section="9.7.9.19", pipe=Pipe.INTEGER, needs={"shared::cluster": "sm_90"}, takes_constants=True,
)  # fmt: skip
def isspacep(m: Machine[V], f: Form, a: V, *constants: V) -> V:
    """p = whether a generic address lies in the space; constants, though a part of global memory, are not global."""
    a = m.resize(U32, U64, a) if "a" in f.alternatives else a
    if f.space is SHARED and f.in_clusters:
        return m.bit_and(PRED, _is_in_window(m, a, f.space.window), _is_own(m, a))
    if f.space.window:
        return _is_in_window(m, a, f.space.window)
    elsewhere = m.constant(PRED, 0)
    for start, size in zip(constants[::2], constants[1::2], strict=True):
        elsewhere = m.bit_or(PRED, elsewhere, m.compare(U64, "lt", m.sub(U64, a, start), size))
    if f.space is CONST:
        return elsewhere
    for window in dict.fromkeys(space.window for space in SPACES if space.window):
        elsewhere = m.bit_or(PRED, elsewhere, _is_in_window(m, a, window))
    return m.bit_xor(PRED, elsewhere, m.constant(PRED, 1))


def _is_in_window(m: Machine[V], a: V, window: int) -> V:
    return m.compare(U64, "lt", m.sub(U64, a, m.constant(U64, window)), m.constant(U64, WINDOW_SIZE))


# --- Other blocks' shared memory ------------------------------------------------------------------------------------


def _is_own(m: Machine[V], a: V) -> V:
    """Whether an address of shared memory is of the block itself."""
    return m.compare(U32, "eq", _rank_of(m, m.resize(U64, U32, a)), m.block_rank())


def _rank_of(m: Machine[V], place: V) -> V:
    """The rank of the block that an address of shared memory (u32) names, the block's own where it names none."""
    named = m.shift_right(U32, place, m.constant(U32, RANK_SHIFT))
    own = m.compare(U32, "eq", named, m.constant(U32, 0))
    return m.select(U32, own, m.block_rank(), m.sub(U32, named, m.constant(U32, 1)))


def _map(m: Machine[V], t: ScalarType, place: V, rank: V) -> V:
    """An address of shared memory of type `t` that names the block of a rank."""
    known = m.compare(U32, "lt", rank, m.constant(U32, NO_RANK))
    named = m.add(U32, m.select(U32, known, rank, m.constant(U32, NO_RANK)), m.constant(U32, 1))
    upper = m.shift_left(t, m.resize(U32, t, named), m.constant(t, RANK_SHIFT))
    return m.bit_or(t, m.bit_and(t, place, m.constant(t, (1 << RANK_SHIFT) - 1)), upper)


_mapa = partial(row, section="9.7.9.24", pipe=Pipe.INTEGER, takes_symbols=True, names_blocks=True, needs="sm_90")


@_mapa("mapa{.space}.u32 d, a, rank:u32", groups={"space": "shared::cluster"})
def mapa_short(m: Machine[V], f: Form, a: V, rank: V) -> V:
    """d = the place in the shared memory of the cluster's block of that rank, of one in the block's own.

    Without a space too: what a generic address of shared memory has in its lower half.
    """
    return _map(m, f.type, a, rank)


@_mapa("mapa{.space}.u64 d, a, rank:u32", groups={"space": "shared::cluster"})
def mapa(m: Machine[V], f: Form, a: V, rank: V) -> V:
    """As before; without a space both are generic addresses."""
    window = m.constant(U64, f.space.window or CLUSTER.window)
    place = a if f.space.window else m.sub(U64, a, window)
    is_shared = m.compare(U64, "lt", place, m.constant(U64, WINDOW_SIZE))
    mapped = _map(m, U64, place, m.select(U32, is_shared, rank, m.constant(U32, NO_RANK)))
    return mapped if f.space.window else m.add(U64, mapped, window)


_getctarank = partial(row, section="9.7.9.23", pipe=Pipe.INTEGER, takes_symbols=True, needs="sm_90")


@_getctarank("getctarank{.space}.u32 d:u32, a", groups={"space": "shared::cluster"})
def getctarank_short(m: Machine[V], f: Form, a: V) -> V:
    """d = the rank in the cluster of the block whose shared memory the address is of."""
    return _rank_of(m, a)


@_getctarank("getctarank{.space}.u64 d:u32, a", groups={"space": "shared::cluster"})
def getctarank(m: Machine[V], f: Form, a: V) -> V:
    """As before; without a space the address is a generic one."""
    return _rank_of(m, m.resize(U64, U32, a))


def cp_async(m: Machine[V], f: Form, target: V, source: V, size: V, *rest: V) -> None:
    """`size` bytes of shared memory = those at b, zeros from `source_size` on; done at once, which its wait permits."""
    given = rest[0] if "source_size" in f.given else size
    if "source_size" in f.alternatives:
        given = m.select(U32, given, m.constant(U32, 0), size)
    m.copy_to_shared(f.immediates[0], target, source, given)


for _hint, _policy in (("", ""), (".L2::cache_hint", ", policy:b64")):
    row(
        f"cp.async.cache.target.global{_hint}{{.prefetch}} [a]:u64, [b]:u64, size:u32, source_size:u32/pred?{_policy}",
        groups={"cache": "ca cg", "target": "shared shared::cta", "prefetch": "L2::64B L2::128B L2::256B"},
        section="9.7.9.25.3.1", pipe=Pipe.LOAD_STORE, effect=Effect.COPY, needs="sm_80",
        restrictions=(Restriction(frozenset(("cg",)), lane_bytes=frozenset((16,))),),
    )(cp_async)  # fmt: skip


@row("cp.async.commit_group", section="9.7.9.25.3.2", pipe=Pipe.CONTROL, effect=Effect.COMMIT_COPIES, needs="sm_80")
def cp_async_commit(m: Machine[V], f: Form) -> None:
    """Closes a group of copies; they are done already."""


@row("cp.async.wait_group n:u32", section="9.7.9.25.3.3", pipe=Pipe.CONTROL, effect=Effect.AWAIT_COPIES, needs="sm_80")
def cp_async_wait(m: Machine[V], f: Form, n: V) -> None:
    """Waits for all but the newest n groups; they are done already."""


@row("cp.async.wait_all", section="9.7.9.25.3.3", pipe=Pipe.CONTROL, effect=Effect.AWAIT_ALL_COPIES, needs="sm_80")
def cp_async_wait_all(m: Machine[V], f: Form) -> None:
    """Waits for all copies; they are done already."""
