"""Loops of a program: instructions that begin and end them stand in the list, and each end belongs to one begin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from triptych.core.errors import PlanError
from triptych.neuron.isa.row import ROWS, Effect
from triptych.neuron.isa.trace import Instruction

BEGINS = frozenset({Effect.BEGIN_COUNTED, Effect.BEGIN_WHILE})
_BOUNDS = BEGINS | {Effect.END}


def effect_of(instruction: Instruction) -> Effect:
    """What executors do for it."""
    return ROWS[instruction.operation].effect


def loop_ends(program: Sequence[Instruction]) -> Mapping[int, int]:
    """The index of the end of each loop, by the index of its begin, inner loops first.

    Raises:
        PlanError: for a loop without an end, or an end without a loop.
    """
    if all(ROWS[operation].effect not in _BOUNDS for operation in {one.operation for one in program}):
        return {}
    ends: dict[int, int] = {}
    begun: list[int] = []
    for index, instruction in enumerate(program):
        effect = effect_of(instruction)
        if effect in BEGINS:
            begun.append(index)
        elif effect is Effect.END:
            if not begun:
                raise PlanError(f"instruction {index} ends a loop that has not begun")
            ends[begun.pop()] = index
    if begun:
        raise PlanError(f"the loop that instruction {begun[-1]} begins has no end")
    return ends


def first_local(begin: Instruction) -> int:
    """The first tensor that the body of a loop declares: those before it keep their values from round to round."""
    first = begin.attributes["first_local"]
    assert isinstance(first, int)
    return first
