"""Waiting loops whose end only mbarriers decide: while no other thread changes one, they go on for ever."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from triptych.gpu.flow.find_liveness import Liveness, Registers, find_liveness
from triptych.gpu.flow.find_loops import Edge
from triptych.gpu.flow.find_waits import Cycle
from triptych.gpu.flow.graph import FlowGraph, instruction_effect
from triptych.gpu.isa.effects import Carrier, Effect
from triptych.gpu.isa.special_registers import SPECIALS, Clock
from triptych.gpu.isa.table import find_form
from triptych.gpu.syntax.ast import Instruction

_CLOCKS = frozenset(name for name, special in SPECIALS.items() if isinstance(special.source, Clock))


def find_standing_waits(
    graph: FlowGraph, waits: Collection[Edge], uses: Registers, defines: Registers
) -> frozenset[Edge]:
    """Those of the back edges `waits` whose loops stand still.

    Such a loop changes nothing that other threads see. What decides whether it is left is, by data and by control, the
    same in each iteration, but for tests of mbarriers, which only threads of the cluster change.
    """
    tests = {b.index for b in graph.blocks if any(map(_tests, b.instructions))}
    if not tests:
        return frozenset()
    liveness = find_liveness(graph, uses, defines)
    cycles = ((edge, Cycle(graph, edge, uses, defines)) for edge in waits)
    return frozenset(edge for edge, cycle in cycles if tests & cycle.body and _stands(cycle, liveness))


def _tests(instruction: Instruction) -> bool:
    return instruction_effect(instruction) is Effect.MBARRIER_TEST


def _stands(cycle: Cycle, liveness: Liveness) -> bool:
    instructions = [i for block in cycle.body for i in cycle.graph.blocks[block].instructions]
    if any(_is_seen(i) for i in instructions):
        return False
    deciding = _find_deciding(cycle)
    written = {name for i in instructions for name in cycle.defines(i)}
    if deciding & written & liveness.live_in(cycle.header) or not _CLOCKS.isdisjoint(deciding):
        return False  # what decides goes on from iteration to iteration, or time does
    makers = [i for i in instructions if not deciding.isdisjoint(cycle.defines(i))]
    return any(map(_tests, makers)) and all(map(_is_steady, makers))


def _is_seen(instruction: Instruction) -> bool:
    """Whether it does something that others may see, or that nobody knows."""
    effect = instruction_effect(instruction)
    carried = effect.carrier not in (Carrier.MEANING, Carrier.BLOCK_END)
    return effect.writes or effect.calls or effect.waits or carried


def _is_steady(instruction: Instruction) -> bool:
    """Whether it gives the same each time, unless another thread changes an mbarrier."""
    match instruction_effect(instruction):
        case Effect.NONE | Effect.MBARRIER_TEST:
            return True
        case Effect.LOAD:
            form = find_form(instruction.mnemonic, instruction.modifiers)
            return form is not None and form.space.read_only
        case _:
            return False


def _find_deciding(cycle: Cycle) -> set[str]:
    """The registers, clocks among them, that decide where the loop is left."""
    blocks = cycle.graph.blocks
    meetings = cycle.find_meetings()
    branches = [b for b in cycle.body if len(cycle.graph.successors[b]) > 1]
    controlled = {branch: cycle.controlled_by(branch, meetings[branch]) for branch in branches}
    deciding: set[str] = set()
    places = set(cycle.exits)
    size = -1
    while size != len(deciding) + len(places):
        size = len(deciding) + len(places)
        for branch in branches:
            if branch in cycle.exits or places & controlled[branch]:
                deciding.update(_read_at_end(blocks[branch].instructions, cycle))
        for block in cycle.body:
            for i in blocks[block].instructions:
                if not deciding.isdisjoint(cycle.defines(i)):
                    deciding.update(cycle.uses(i))
                    places.add(block)
    return deciding


def _read_at_end(instructions: Sequence[Instruction], cycle: Cycle) -> set[str]:
    last = instructions[-1]
    return {*cycle.uses(last), *(() if last.guard is None else (last.guard.register.name,))}
