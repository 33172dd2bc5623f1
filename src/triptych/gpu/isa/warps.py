"""Operations among the lanes of a warp (PTX manual, 9.7.9.6 `shfl`, 9.7.13.8 `vote` and its kin)."""

from __future__ import annotations

from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.isa.effects import Effect
from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.types import F32, PRED, S32, U32


@row(
    "shfl.sync.mode.b32 d|p:pred, a, b:u32, c:u32, membermask:u32",
    groups={"mode": "up down bfly idx"},
    section="9.7.9.6",
    pipe=Pipe.WARP,
    effect=Effect.WARP,
    shuffles=True,
)
def shfl(m: Machine[V], f: Form, a: V, b: V, c: V, mask: V) -> tuple[V, V]:
    """d = a of another lane of the segment, p = whether that lane is inside it; else d = a.

    Of a lane that does not execute it together with the mask's the manual says nothing: an H200 gives 0.
    """
    low = m.constant(U32, WARP_SIZE - 1)
    lane = m.lane_index()
    segment = m.bit_and(U32, m.shift_right(U32, c, m.constant(U32, 8)), low)
    clamp, step = m.bit_and(U32, c, low), m.bit_and(U32, b, low)
    first = m.bit_and(U32, lane, segment)
    outside = m.bit_xor(U32, segment, m.constant(U32, -1))
    last = m.bit_or(U32, first, m.bit_and(U32, clamp, outside))
    mode = f.get("mode")
    if mode == "up":
        source = m.sub(U32, lane, step)
        inside = m.compare(S32, "ge", source, last)
    elif mode == "down":
        source = m.add(U32, lane, step)
        inside = m.compare(S32, "le", source, last)
    else:
        source = m.bit_xor(U32, lane, step) if mode == "bfly" else m.bit_or(U32, first, m.bit_and(U32, step, outside))
        inside = m.compare(S32, "le", source, last)
    source = m.bit_and(U32, m.select(U32, inside, source, lane), low)
    return m.exchange(f.type, a, source, mask), inside


@row("vote.sync.ballot.b32 d, a:pred, membermask:u32", section="9.7.13.9", pipe=Pipe.WARP, effect=Effect.WARP)
def vote_ballot(m: Machine[V], f: Form, a: V, mask: V) -> V:
    """d = the lanes of the mask in which a holds, as bits."""
    return m.bit_and(U32, m.ballot(a), mask)


@row(
    "vote.sync.mode.pred d, a:pred, membermask:u32",
    groups={"mode": "all any uni"},
    section="9.7.13.9",
    pipe=Pipe.WARP,
    effect=Effect.WARP,
)
def vote(m: Machine[V], f: Form, a: V, mask: V) -> V:
    """d = whether a holds in all or any lanes of the mask, or is the same in all."""
    true = m.bit_and(U32, m.ballot(a), mask)
    members = _members(m, mask)
    none = m.compare(U32, "eq", true, m.constant(U32, 0))
    every = m.compare(U32, "eq", true, members)
    if f.has("all"):
        return every
    return m.bit_xor(PRED, none, m.constant(PRED, 1)) if f.has("any") else m.bit_or(PRED, none, every)


@row(
    "redux.sync.operation.type d, a, membermask:u32",
    types="u32 s32", groups={"operation": "add min max"}, section="9.7.13.12", pipe=Pipe.WARP, effect=Effect.WARP,
    needs="sm_80",
)  # fmt: skip
def redux(m: Machine[V], f: Form, a: V, mask: V) -> V:
    """d = the sum, the smallest or the largest of a over the lanes of the mask."""
    return m.reduce(f.type, f.get("operation"), a, mask)


@row(
    "redux.sync.operation.b32 d, a, membermask:u32",
    groups={"operation": "and or xor"}, section="9.7.13.12", pipe=Pipe.WARP, effect=Effect.WARP, needs="sm_80",
)  # fmt: skip
def redux_bits(m: Machine[V], f: Form, a: V, mask: V) -> V:
    """d = a combined bit by bit over the lanes of the mask."""
    return m.reduce(f.type, f.get("operation"), a, mask)


@row(
    "redux.sync.operation{.abs}{.nan}.f32 d, a, membermask:u32",
    groups={"operation": "min max", "nan": "NaN"}, section="9.7.13.12", pipe=Pipe.WARP, effect=Effect.WARP,
    needs="sm_100f",
)  # fmt: skip
def redux_singles(m: Machine[V], f: Form, a: V, mask: V) -> V:
    """d = the smallest or the largest of a, or of its magnitudes, over the lanes of the mask; -0 is below +0.

    Singles are compared as integers: those below 0 with the bits of their magnitudes flipped. NaN stands at the end
    that never wins, or under `.NaN` at the one that always does.
    """
    value = m.float_magnitude(F32, a) if f.has("abs") else a
    bits, low = m.bitcast(F32, U32, value), m.constant(U32, 0x7FFF_FFFF)
    wins = f.has("max") == f.has("NaN")
    nan = m.constant(U32, 0x7FFF_FFFF if wins else 0x8000_0000)
    place = m.select(U32, m.compare(F32, "nan", a, a), nan, _flip_below_zero(m, bits, low))
    found = _flip_below_zero(m, m.reduce(S32, f.get("operation"), place, mask), low)
    size = m.bit_and(U32, found, low)
    canonical = m.select(U32, m.compare(U32, "gt", size, m.constant(U32, 0x7F80_0000)), low, found)
    return m.bitcast(U32, F32, canonical)


def _flip_below_zero(m: Machine[V], bits: V, mask: V) -> V:
    negative = m.compare(S32, "lt", bits, m.constant(S32, 0))
    return m.select(U32, negative, m.bit_xor(U32, bits, mask), bits)


@row("activemask.b32 d", section="9.7.13.11", pipe=Pipe.WARP, effect=Effect.WARP)
def activemask(m: Machine[V], f: Form) -> V:
    """d = the active lanes as bits."""
    return m.active_mask()


def _members(m: Machine[V], mask: V) -> V:
    """The active lanes of a mask."""
    return m.bit_and(U32, m.active_mask(), mask)


def _first(m: Machine[V], members: V) -> V:
    """The lowest lane of a set."""
    return m.bit_and(U32, m.count_leading_zeros(U32, m.reverse_bits(U32, members)), m.constant(U32, 31))


@row(
    "match.any.sync.type d:u32, a, membermask:u32",
    types="b32 b64", section="9.7.13.10", pipe=Pipe.WARP, effect=Effect.WARP, shuffles=True,
)  # fmt: skip
def match_any(m: Machine[V], f: Form, a: V, mask: V) -> V:
    """d = the lanes of the mask that hold the same a, as bits."""
    same, lane = m.constant(U32, 0), m.lane_index()
    for other in range(WARP_SIZE):
        held = m.ballot(m.compare(f.type, "eq", a, m.shuffle(f.type, a, m.constant(U32, other))))
        same = m.select(U32, m.compare(U32, "eq", lane, m.constant(U32, other)), held, same)
    return m.bit_and(U32, same, mask)


@row(
    "match.all.sync.type d:u32|p:pred, a, membermask:u32",
    types="b32 b64", section="9.7.13.10", pipe=Pipe.WARP, effect=Effect.WARP, shuffles=True,
)  # fmt: skip
def match_all(m: Machine[V], f: Form, a: V, mask: V) -> tuple[V, V]:
    """d = the lanes of the mask and p = true if all of them hold the same a; else 0 and false."""
    members = _members(m, mask)
    leader = m.shuffle(f.type, a, _first(m, members))
    same = m.bit_and(U32, m.ballot(m.compare(f.type, "eq", a, leader)), mask)
    agreed = m.compare(U32, "eq", same, members)
    return m.select(U32, agreed, members, m.constant(U32, 0)), agreed


@row("elect.sync d:u32|p:pred, membermask:u32", section="9.7.13.14", pipe=Pipe.WARP, effect=Effect.WARP, needs="sm_90")
def elect(m: Machine[V], f: Form, mask: V) -> tuple[V, V]:
    """d = the lowest lane of the mask, p = whether this is it."""
    leader = _first(m, _members(m, mask))
    return leader, m.compare(U32, "eq", m.lane_index(), leader)
