"""Which runs a candidate must stand: its cases, and under what contents of undefined memory and order of blocks."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triptych.core.dtypes import DType
from triptych.core.plan import Choose, Launch, Node, Plan
from triptych.execution.arrays import UNDEFINED_BYTE
from triptych.judge.execution.request import MOST_LEFT_OUT, Run
from triptych.operators.case import Case, case
from triptych.operators.operator import Operator, Size

ORDINARY_SEEDS = 3
"""Cases of an operator's ordinary distribution; of each other one there is one."""
ARRAYS_BYTE = UNDEFINED_BYTE
"""What arrays hold where nobody has written, where no byte is said."""
_NAN_BYTE = 0xFF
"""NaN in every floating-point format, -1 in integers."""
_LARGE_BYTES = range(0xC1, 0xDF)
"""Negative numbers far from 0 in every format, so that whatever they are added to is wrong; no live mbarrier either."""
ORDERS = ("ascending", "descending")


def number(seed: int, *what: object) -> int:
    """A number of 48 bits that follows from a seed and what it is for."""
    text = "/".join(map(str, (seed, *what)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "little")


@dataclass(frozen=True, slots=True)
class Trial:
    """A case, and the seed that it was drawn with."""

    case: Case
    seed: int

    @property
    def inputs(self) -> Mapping[str, bytes]:
        """The inputs' bytes by name, in C order."""
        return {name: array.tobytes() for name, array in self.case.inputs.items()}


def draw(operator: Operator, size: Size, dtype: DType, seed: int) -> tuple[Trial, ...]:
    """The cases of a size: the ordinary distribution's first.

    Raises:
        UnknownName: for a type that the operator has not.
    """
    first, *others = operator.distributions
    names = [*[first.name] * ORDINARY_SEEDS, *(one.name for one in others)]
    seeds = [number(seed, operator.name, dtype.name, place) for place in range(len(names))]
    pairs = zip(names, seeds, strict=True)
    return tuple(Trial(case(operator, size.values, dtype.name, name, own), own) for name, own in pairs)


def runs_of(trials: Sequence[Trial], seed: int) -> tuple[Run, ...]:
    """The runs: each case once, and the first twice.

    Neighbouring cases differ in the order of blocks and in what undefined memory holds; so do both runs of the first.
    """
    orders = [ORDERS[place % 2] for place in range(len(trials))]
    poisons = [_NAN_BYTE if place % 2 == 0 else _large(seed, place) for place in range(len(trials))]
    first = Run(0, poisons[0], orders[0], is_watched=True)
    again = Run(0, _large(seed, "again"), ORDERS[1])
    rows = enumerate(zip(poisons, orders, strict=True))
    others = [Run(place, poison, order, is_watched=True) for place, (poison, order) in rows if place]
    return (first, again, *others)


def droppable(plan: Plan) -> tuple[tuple[int, ...], ...]:
    """The places of the nodes that are left out in turn, by groups of those left out together: launches, of several.

    Each is a group where there are no more than can be tried; else those of one kernel on the same arrays are.
    """
    found = tuple(place for place, node in enumerate(plan.nodes) if isinstance(node, Launch | Choose))
    if len(found) <= MOST_LEFT_OUT:
        return tuple((place,) for place in found) if len(found) > 1 else ()
    alike: dict[tuple[str, ...], list[int]] = {}
    for place in found:
        alike.setdefault(_kernel_and_arrays(plan.nodes[place]), []).append(place)
    return tuple(sorted(map(tuple, alike.values()), key=len, reverse=True))


def _kernel_and_arrays(node: Node) -> tuple[str, ...]:
    if not isinstance(node, Launch):
        return ()
    return (node.program, node.entry, *sorted({one.storage.name for one in node.handles}))


def probes(failing: Run, case_place: int, seed: int) -> tuple[Run, ...]:
    """The case of a run that failed, with one thing changed at a time.

    The other order of blocks, two other undefined bytes, and one in arrays that memory on the chip does not hold.
    """
    other = ORDERS[1 - ORDERS.index(failing.block_order)]
    byte = _large(seed, "probe") if failing.undefined_byte == _NAN_BYTE else _NAN_BYTE
    return (
        Run(case_place, failing.undefined_byte, other, may_fail=True),
        Run(case_place, byte, failing.block_order, may_fail=True),
        Run(case_place, 0, failing.block_order, may_fail=True),
        Run(case_place, None, failing.block_order, may_fail=True),
    )


def _large(seed: int, *what: object) -> int:
    return _LARGE_BYTES[number(seed, "byte", *what) % len(_LARGE_BYTES)]
