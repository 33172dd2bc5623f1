"""mbarriers in shared memory (PTX manual, 9.7.13.15): rows of `mbarrier`, and of `cp.async.mbarrier.arrive`.

The object itself, and what each operation makes of it, stand in `mbarrier_object.py`. Accesses take effect in program
order here, so that orders and scopes change nothing; copies are done when they are issued.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from triptych.gpu.hardware import RANK_SHIFT, WINDOW_SIZE
from triptych.gpu.isa.asynchronous.mbarrier_object import (
    ARRIVE,
    ARRIVE_BEFORE_END,
    INIT,
    INVALIDATE,
    OBJECT_BYTES,
    TEST,
    TRANSACT,
    parity_of,
    pending_of,
)
from triptych.gpu.isa.effects import Effect
from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.spaces import SHARED
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.types import B64, U32, U64

_OWN = {"space": "shared shared::cta"}
_ANY = {"space": "shared shared::cta shared::cluster"}
_OTHERS = {"space": "shared::cluster"}
_SINCE_CLUSTERS = dict.fromkeys(("cluster", "shared::cluster", "relaxed", "count", "expect_tx", "try_wait"), "sm_90")
_NEEDS = {"": "sm_80"} | _SINCE_CLUSTERS


_NOWHERE = WINDOW_SIZE - OBJECT_BYTES
"""No block has memory there."""


def _place(m: Machine[V], f: Form, address: V) -> V:
    """The place of an object; without a space the address is a generic one, which must lie in shared memory."""
    if f.get("space"):
        return address
    place = m.sub(U64, address, m.constant(U64, SHARED.window))
    inside = m.compare(U64, "lt", place, m.constant(U64, WINDOW_SIZE))
    place = m.select(U64, inside, place, m.constant(U64, _NOWHERE))
    if not f.in_clusters or f.space is not SHARED:
        return place
    named = m.shift_right(U64, place, m.constant(U64, RANK_SHIFT))
    own = m.add(U64, m.resize(U32, U64, m.block_rank()), m.constant(U64, 1))
    bare = m.bit_and(U64, place, m.constant(U64, (1 << RANK_SHIFT) - 1))
    return m.select(U64, m.compare(U64, "eq", named, own), bare, place)


def _operate(m: Machine[V], f: Form, address: V, *operands: V) -> V:
    """The object before the operation."""
    return m.atomic(f.space, f.operation, B64, _place(m, f, address), operands)[0]


def _wide(m: Machine[V], a: V) -> V:
    return m.resize(U32, U64, a)


def _one(m: Machine[V]) -> V:
    return m.constant(U64, 1)


# --- The object -----------------------------------------------------------------------------------------------------

_barrier = partial(row, pipe=Pipe.LOAD_STORE, effect=Effect.MBARRIER, needs="sm_80")


@_barrier("mbarrier.init{.space}.b64 [a]:u64, count:u32", section="9.7.13.15.9", operation=INIT, groups=_OWN)
def mbarrier_init(m: Machine[V], f: Form, address: V, count: V) -> None:
    """Makes an object whose phases each expect `count` arrivals."""
    _operate(m, f, address, _wide(m, count))


@_barrier("mbarrier.inval{.space}.b64 [a]:u64", section="9.7.13.15.10", operation=INVALIDATE, groups=_OWN)
def mbarrier_inval(m: Machine[V], f: Form, address: V) -> None:
    """Makes an object none, so that its memory can be used otherwise."""
    _operate(m, f, address)


# --- Transactions ---------------------------------------------------------------------------------------------------

_transactions = partial(row, pipe=Pipe.LOAD_STORE, effect=Effect.MBARRIER_REMOTE, operation=TRANSACT, needs="sm_90")
_SCOPES = {"scope": "cta cluster"}
for _order in ("", ".relaxed.scope"):
    _groups = (_SCOPES if _order else {}) | _ANY

    @_transactions(
        f"mbarrier.expect_tx{_order}{{.space}}.b64 [a]:u64, count:u32", section="9.7.13.15.11", groups=_groups
    )
    def mbarrier_expect_tx(m: Machine[V], f: Form, address: V, count: V) -> None:
        """The phase ends only after `count` more transactions, which are bytes of asynchronous copies."""
        _operate(m, f, address, _wide(m, count))

    @_transactions(
        f"mbarrier.complete_tx{_order}{{.space}}.b64 [a]:u64, count:u32", section="9.7.13.15.12", groups=_groups
    )
    def mbarrier_complete_tx(m: Machine[V], f: Form, address: V, count: V) -> None:
        """`count` transactions are done."""
        _operate(m, f, address, m.sub(U64, m.constant(U64, 0), _wide(m, count)))


# --- Arrivals -------------------------------------------------------------------------------------------------------


def mbarrier_arrive(m: Machine[V], f: Form, address: V, count: V | None = None) -> V:
    """`count` arrivals, or one; d = the state, which names the phase that they are of."""
    count = _one(m) if count is None else _wide(m, count)
    drops = count if f.has("arrive_drop") else m.constant(U64, 0)
    return _operate(m, f, address, count, m.constant(U64, 0), drops)


def mbarrier_arrive_remotely(m: Machine[V], f: Form, address: V, count: V | None = None) -> V:
    """`count` arrivals, or one, at an object that may be of another block of the cluster."""
    return mbarrier_arrive(m, f, address, count)


def mbarrier_arrive_expect_tx(m: Machine[V], f: Form, address: V, transactions: V) -> V:
    """As `expect_tx`, then one arrival; d = the state."""
    drops = _one(m) if f.has("arrive_drop") else m.constant(U64, 0)
    return _operate(m, f, address, _one(m), _wide(m, transactions), drops)


def mbarrier_arrive_expect_tx_remotely(m: Machine[V], f: Form, address: V, transactions: V) -> V:
    """As `expect_tx`, then one arrival, at an object that may be of another block of the cluster."""
    return mbarrier_arrive_expect_tx(m, f, address, transactions)


def mbarrier_arrive_before_end(m: Machine[V], f: Form, address: V, count: V) -> V:
    """`count` arrivals that must not complete the phase; d = the state."""
    count = _wide(m, count)
    return _operate(m, f, address, count, count if f.has("arrive_drop") else m.constant(U64, 0))


for _name, _section in (("arrive", "9.7.13.15.13"), ("arrive_drop", "9.7.13.15.14")):
    for _order in ("", ".order.scope"):
        _orders: Mapping[str, str] = {"order": "release relaxed", "scope": "cta cluster"} if _order else {}
        _arrival = partial(row, pipe=Pipe.LOAD_STORE, section=_section, operation=ARRIVE, needs=_NEEDS)
        for _target, _space, _effect, _spaces in (
            ("_", ".space", Effect.MBARRIER_REMOTE, _OTHERS),
            ("d", "{.space}", Effect.MBARRIER_REMOTE, _OWN),
        ):
            _here = partial(_arrival, effect=_effect, groups=_orders | _spaces)
            _plain, _expecting = (
                (mbarrier_arrive_remotely, mbarrier_arrive_expect_tx_remotely)
                if _target == "_"
                else (mbarrier_arrive, mbarrier_arrive_expect_tx)
            )
            _here(f"mbarrier.{_name}{_order}{_space}.b64 {_target}, [a]:u64, count:u32?")(_plain)
            _here(f"mbarrier.{_name}.expect_tx{_order}{_space}.b64 {_target}, [a]:u64, transactions:u32")(_expecting)
    for _order in ("", ".release.cta"):
        row(
            f"mbarrier.{_name}.noComplete{_order}{{.space}}.b64 d, [a]:u64, count:u32", section=_section,
            pipe=Pipe.LOAD_STORE, effect=Effect.MBARRIER, operation=ARRIVE_BEFORE_END, groups=_OWN, needs="sm_80",
        )(mbarrier_arrive_before_end)  # fmt: skip


_tells = partial(row, pipe=Pipe.LOAD_STORE, effect=Effect.MBARRIER_COPIES, needs="sm_80")


@_tells("cp.async.mbarrier.arrive.noinc{.space}.b64 [a]:u64", section="9.7.13.15.15", operation=ARRIVE, groups=_OWN)
def cp_async_arrive(m: Machine[V], f: Form, address: V) -> None:
    """One arrival when the thread's copies so far are done, as they are."""
    zero = m.constant(U64, 0)
    _operate(m, f, address, _one(m), zero, zero)


@_tells("cp.async.mbarrier.arrive{.space}.b64 [a]:u64", section="9.7.13.15.15", operation=TEST, groups=_OWN)
def cp_async_arrive_once_more(m: Machine[V], f: Form, address: V) -> None:
    """As before, but one arrival more is expected first: nothing changes."""
    _operate(m, f, address)


# --- Waits ----------------------------------------------------------------------------------------------------------


def _has_ended(m: Machine[V], f: Form, address: V, parity: V) -> V:
    return m.compare(U64, "ne", parity_of(m, _operate(m, f, address)), parity)


def mbarrier_test(m: Machine[V], f: Form, address: V, state: V, *suspend_time: V) -> V:
    """d = whether the phase of a state has ended; `try_wait` may let the thread sleep before it says so."""
    return _has_ended(m, f, address, parity_of(m, state))


def mbarrier_test_parity(m: Machine[V], f: Form, address: V, parity: V, *suspend_time: V) -> V:
    """d = whether the phase of the parity that is the lowest bit of a register, this or the one before, has ended."""
    # ptxas shifts the other bits out (for sm_80 and for sm_90), and Triton passes 0 and -1.
    return _has_ended(m, f, address, _wide(m, m.bit_and(U32, parity, m.constant(U32, 1))))


for _name, _time in (("test_wait", ""), ("try_wait", ", suspend_time:u32?")):
    for _order in ("", ".order.scope"):
        _orders = {"order": "acquire relaxed", "scope": "cta cluster"} if _order else {}
        _wait = partial(
            row, section="9.7.13.15.16", pipe=Pipe.LOAD_STORE, effect=Effect.MBARRIER_TEST, operation=TEST,
            groups=_orders | _OWN, needs=_NEEDS,
        )  # fmt: skip
        _wait(f"mbarrier.{_name}{_order}{{.space}}.b64 d:pred, [a]:u64, state{_time}")(mbarrier_test)
        _wait(f"mbarrier.{_name}.parity{_order}{{.space}}.b64 d:pred, [a]:u64, parity:u32{_time}")(mbarrier_test_parity)


@row("mbarrier.pending_count.b64 d:u32, state", section="9.7.13.15.17", pipe=Pipe.INTEGER, needs="sm_80")
def mbarrier_pending_count(m: Machine[V], f: Form, state: V) -> V:
    """d = the arrivals that were still pending before the arrival that gave the state."""
    return m.resize(U64, U32, pending_of(m, state))
