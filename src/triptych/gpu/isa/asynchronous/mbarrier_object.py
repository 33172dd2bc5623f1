"""The mbarrier object (PTX manual, 9.7.13.15): its 8 bytes in shared memory, and what each operation makes of them.

The manual leaves the layout open; it is ours. From the lowest bit on:

    0 … 20    the tx-count, + 2^20
    21 … 40   the pending arrivals of this phase
    41 … 60   the expected arrivals of the next one
    61        the phase's parity
    62 … 63   1: an object; 3: one that was invalidated; else no object (0 of cleared memory, 2 of `POISON_BYTE`)

Memory that the setting `undefined_byte` fills with a byte from 0x40 to 0x7F looks like objects.

An operation is an atomic one on the object (`Machine.atomic`), and both executors run what is written here for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from triptych.gpu.isa.machine import PAIRED_CAS, Machine, V
from triptych.gpu.isa.types import PRED, U64

OBJECT_BYTES = 8
MOST_ARRIVALS = (1 << 20) - 1
"""The range of arrival counts is 1 … this, that of a tx-count − this … this (PTX manual, 9.7.13.15.2)."""
_TX_BIAS, _TX_BITS, _COUNT_BITS = 1 << 20, 21, 20
_PENDING, _EXPECTED, PHASE, _TAG = 21, 41, 61, 62
"""Where fields begin, the lowest bit being 0."""
_OBJECT, _INVALIDATED = 1, 3


class MbarrierFault(IntEnum):
    """What an operation must not meet or do; 0 is none."""

    NO_OBJECT = 1
    INVALIDATED = 2
    COUNT = 3
    """A count of arrivals beyond its range."""
    ARRIVALS = 4
    """More arrivals than the phase still expects."""
    TRANSACTIONS = 5
    """A tx-count beyond its range."""
    COMPLETES = 6
    """A phase that `.noComplete` may not complete."""


@dataclass(frozen=True, slots=True)
class MbarrierState:
    """An object taken apart, for messages."""

    parity: int
    expected: int
    pending: int
    transactions: int
    """Bytes that are still awaited."""

    @classmethod
    def of(cls, bits: int) -> MbarrierState:
        """From its 8 bytes."""
        pending, expected = (bits >> shift & MOST_ARRIVALS for shift in (_PENDING, _EXPECTED))
        return cls(bits >> PHASE & 1, expected, pending, (bits & (1 << _TX_BITS) - 1) - _TX_BIAS)


@dataclass(frozen=True, slots=True)
class Operation:
    """What an operation makes of an object."""

    operands: int
    """How many it takes, u64 each."""
    change: Callable[..., tuple[Any, Any]]
    """(machine, object, *operands) -> the new object, and its `MbarrierFault`; of a fault the object is not written."""
    only_reads: bool = False


def _number(m: Machine[V], value: int) -> V:
    return m.constant(U64, value)


def _field(m: Machine[V], bits: V, shift: int, width: int) -> V:
    return m.bit_and(U64, m.shift_right(U64, bits, _number(m, shift)), _number(m, (1 << width) - 1))


def _pack(m: Machine[V], tx: V, pending: V, expected: V, phase: V) -> V:
    """An object; `tx` with its bias."""
    bits = m.bit_or(U64, tx, _number(m, _OBJECT << _TAG))
    for value, shift in ((pending, _PENDING), (expected, _EXPECTED), (phase, PHASE)):
        bits = m.bit_or(U64, bits, m.shift_left(U64, value, _number(m, shift)))
    return bits


def _first_of(m: Machine[V], *wrong: tuple[V, MbarrierFault]) -> V:
    """The fault of the first condition that holds."""
    fault = _number(m, 0)
    for condition, kind in reversed(wrong):
        fault = m.select(U64, condition, _number(m, kind), fault)
    return fault


def _not_live(m: Machine[V], bits: V) -> tuple[tuple[V, MbarrierFault], tuple[V, MbarrierFault]]:
    """No operation but `init` may meet anything but an object."""
    tag = _field(m, bits, _TAG, 2)
    return (
        (m.compare(U64, "eq", tag, _number(m, _INVALIDATED)), MbarrierFault.INVALIDATED),
        (m.compare(U64, "ne", tag, _number(m, _OBJECT)), MbarrierFault.NO_OBJECT),
    )


def _is_no_count(m: Machine[V], count: V) -> V:
    one = _number(m, 1)
    return m.compare(U64, "ge", m.sub(U64, count, one), _number(m, MOST_ARRIVALS))


def _init(m: Machine[V], bits: V, count: V) -> tuple[V, V]:
    """Phase 0, which expects `count` arrivals."""
    new = _pack(m, _number(m, _TX_BIAS), count, count, _number(m, 0))
    return new, _first_of(m, (_is_no_count(m, count), MbarrierFault.COUNT))


def _invalidate(m: Machine[V], bits: V) -> tuple[V, V]:
    """No object any more."""
    return _number(m, _INVALIDATED << _TAG), _first_of(m, *_not_live(m, bits))


def _test(m: Machine[V], bits: V) -> tuple[V, V]:
    """The same."""
    return bits, _first_of(m, *_not_live(m, bits))


def _step(m: Machine[V], bits: V, arrivals: V, transactions: V, drops: V) -> tuple[V, V, V]:
    """An object after arrivals, whether the phase ended, and whether the tx-count is within its range.

    `transactions` are added to the tx-count, `drops` taken from the expected arrivals. A phase ends when neither
    arrivals nor transactions are pending.
    """
    tx = m.add(U64, _field(m, bits, 0, _TX_BITS), transactions)
    pending = m.sub(U64, _field(m, bits, _PENDING, _COUNT_BITS), arrivals)
    expected = m.sub(U64, _field(m, bits, _EXPECTED, _COUNT_BITS), drops)
    nobody, nothing = m.compare(U64, "eq", pending, _number(m, 0)), m.compare(U64, "eq", tx, _number(m, _TX_BIAS))
    ends = m.bit_and(PRED, nobody, nothing)
    flip = m.select(U64, ends, _number(m, 1), _number(m, 0))
    phase = m.bit_xor(U64, _field(m, bits, PHASE, 1), flip)
    new = _pack(m, tx, m.select(U64, ends, expected, pending), expected, phase)
    beyond = m.compare(U64, "ge", m.sub(U64, tx, _number(m, 1)), _number(m, 2 * MOST_ARRIVALS + 1))
    return new, ends, beyond


def _arrive(m: Machine[V], bits: V, count: V, transactions: V, drops: V) -> tuple[V, V]:
    """`count` arrivals, after `transactions` more are expected; `drops` of them are not expected any more."""
    new, _, beyond = _step(m, bits, count, transactions, drops)
    return new, _first_of(m, *_wrong_arrivals(m, bits, count), (beyond, MbarrierFault.TRANSACTIONS))


def _arrive_before_end(m: Machine[V], bits: V, count: V, drops: V) -> tuple[V, V]:
    """As before, where the phase may not end."""
    new, ends, _ = _step(m, bits, count, _number(m, 0), drops)
    return new, _first_of(m, *_wrong_arrivals(m, bits, count), (ends, MbarrierFault.COMPLETES))


def _wrong_arrivals(m: Machine[V], bits: V, count: V) -> tuple[tuple[V, MbarrierFault], ...]:
    more = m.compare(U64, "gt", count, _field(m, bits, _PENDING, _COUNT_BITS))
    return *_not_live(m, bits), (_is_no_count(m, count), MbarrierFault.COUNT), (more, MbarrierFault.ARRIVALS)


def _transact(m: Machine[V], bits: V, transactions: V) -> tuple[V, V]:
    """More transactions are expected, or, below 0, fewer: those are complete."""
    zero = _number(m, 0)
    new, _, beyond = _step(m, bits, zero, transactions, zero)
    return new, _first_of(m, *_not_live(m, bits), (beyond, MbarrierFault.TRANSACTIONS))


INIT, INVALIDATE, TEST, TRANSACT = "mbarrier.init", "mbarrier.inval", "mbarrier.test", "mbarrier.transact"
ARRIVE, ARRIVE_BEFORE_END = "mbarrier.arrive", "mbarrier.arrive_before_end"
OPERATIONS: Mapping[str, Operation] = {
    INIT: Operation(1, _init),
    INVALIDATE: Operation(0, _invalidate),
    TEST: Operation(0, _test, only_reads=True),
    TRANSACT: Operation(1, _transact),
    ARRIVE: Operation(3, _arrive),
    ARRIVE_BEFORE_END: Operation(2, _arrive_before_end),
}
"""By the names that `Machine.atomic` takes."""


def operands_of(operation: str, count: int) -> int:
    """How many operands an atomic operation takes, all for one element where it is `cas` or one of `OPERATIONS`."""
    if operation in OPERATIONS:
        return OPERATIONS[operation].operands
    return 2 * count if operation in ("cas", PAIRED_CAS) else count


def elements_of(operation: str, operands: int) -> int:
    """How many neighbouring elements an atomic operation with so many operands changes."""
    if operation == PAIRED_CAS:
        return 2
    return 1 if operation == "cas" or operation in OPERATIONS else operands


def is_one_answer(operation: str, agree: Iterable[bool]) -> bool:
    """Whether all lanes get the same of an atomic operation: it changes nothing, and they `agree` on all operands."""
    return operation in OPERATIONS and OPERATIONS[operation].only_reads and all(agree)


def changes_mbarrier(operation: str) -> bool:
    """Whether an atomic operation changes an mbarrier."""
    return operation in OPERATIONS and not OPERATIONS[operation].only_reads


def parity_of(m: Machine[V], bits: V) -> V:
    """The parity of the phase of an object, or of the state that an arrival gave; u64."""
    return _field(m, bits, PHASE, 1)


def pending_of(m: Machine[V], bits: V) -> V:
    """The arrivals that were pending in a state; u64."""
    return _field(m, bits, _PENDING, _COUNT_BITS)
