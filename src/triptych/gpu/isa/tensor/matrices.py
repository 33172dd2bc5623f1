"""8×8 matrices of 16-bit elements between lanes and shared memory, and turned (PTX manual, 9.7.14.5.15 to .17)."""

from __future__ import annotations

from collections.abc import Sequence

from triptych.gpu.isa.effects import Effect
from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.spaces import SHARED
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.types import U32, U64

_GROUPS = {"number": "x1 x2 x4", "space": "shared shared::cta"}


def _shared(m: Machine[V], f: Form, address: V) -> V:
    """An address of shared memory; without a space they are generic ones, which must lie in its window."""
    return address if f.get("space") else m.sub(U64, address, m.constant(U64, SHARED.window))


@row(
    "ldmatrix.sync.aligned.m8n8.number{.trans}{.space}.b16 d*:b32, [a]:u64",
    groups=_GROUPS, needs="sm_75", section="9.7.14.5.15", pipe=Pipe.LOAD_STORE, effect=Effect.LOAD_MATRIX,
)  # fmt: skip
def ldmatrix(m: Machine[V], f: Form, address: V) -> Sequence[V]:
    """d = a register for each 8×8 matrix of 16-bit elements; lanes 8i … 8i+7 give the addresses of its rows."""
    return m.load_matrix(_shared(m, f, address), f.elements, f.has("trans"))


@row(
    "stmatrix.sync.aligned.m8n8.number{.trans}{.space}.b16 [a]:u64, b*:b32",
    groups=_GROUPS, needs="sm_90", section="9.7.14.5.16", pipe=Pipe.LOAD_STORE, effect=Effect.STORE_MATRIX,
)  # fmt: skip
def stmatrix(m: Machine[V], f: Form, address: V, *matrices: V) -> None:
    """The 8×8 matrices of 16-bit elements, a register each, at the addresses of rows that lanes 8i … 8i+7 give."""
    m.store_matrix(_shared(m, f, address), matrices, f.has("trans"))


@row(
    "movmatrix.sync.aligned.m8n8.trans.b16 d:b32, a:b32",
    needs="sm_75", section="9.7.14.5.17", pipe=Pipe.WARP, effect=Effect.WARP, shuffles=True,
)  # fmt: skip
def movmatrix(m: Machine[V], f: Form, a: V) -> V:
    """d = the transpose of a, an 8×8 matrix of 16-bit elements: a lane holds two neighbours of a row."""
    lane = m.lane_index()
    row_number = m.shift_right(U32, lane, m.constant(U32, 2))
    pair = m.bit_and(U32, lane, m.constant(U32, 3))
    # Elements (2 pair, row) and (2 pair + 1, row): two rows that lie four lanes apart, at half of their word.
    source = m.add(U32, m.mul(U32, pair, m.constant(U32, 8)), m.shift_right(U32, row_number, m.constant(U32, 1)))
    upper = m.bit_and(U32, row_number, m.constant(U32, 1))
    shift = m.shift_left(U32, upper, m.constant(U32, 4))
    first, second = (
        m.shift_right(U32, m.shuffle(U32, a, m.add(U32, source, m.constant(U32, step))), shift) for step in (0, 4)
    )
    low = m.bit_and(U32, first, m.constant(U32, 0xFFFF))
    return m.bit_or(U32, low, m.shift_left(U32, second, m.constant(U32, 16)))
