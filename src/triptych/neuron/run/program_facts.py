"""What running a program needs to know besides its instructions, found once a trace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triptych.core.values import value
from triptych.neuron.isa.hardware import Hardware, Space
from triptych.neuron.isa.loops import loop_ends
from triptych.neuron.isa.occupancy import lifetimes, roots
from triptych.neuron.isa.trace import Instruction, Region, Trace
from triptych.neuron.run.kinds import Kind, Use, kinds_of
from triptych.neuron.run.strided import Strided


@value
class Step:
    """An instruction, and what executing it needs to know."""

    instruction: Instruction
    kind: Kind
    regions: tuple[tuple[Use, Region, Strided], ...]
    """Those of its kind, and their places before indices move them."""
    numbers: Mapping[str, float]
    """Its operands that are numbers."""
    dropped: Sequence[int]
    """The tensors that nothing names behind it."""


@dataclass(frozen=True, slots=True, eq=False)
class ProgramFacts:
    """Of one program of the grid."""

    steps: tuple[Step, ...]
    """One for each instruction."""
    ends: Mapping[int, int]
    """The end of each loop, by its begin."""
    begins: Mapping[int, int]
    """The other way round."""

    @classmethod
    def of(cls, trace: Trace, program: int, hardware: Hardware) -> ProgramFacts:
        """That of a program of a trace."""
        instructions = trace.programs[program]
        ends = loop_ends(instructions)
        begins = {end: begin for begin, end in ends.items()}
        dropped = _dropped(trace, program)
        kinds = kinds_of(instructions, trace.tensors, hardware)
        steps = tuple(
            Step(instruction, kind, _regions(instruction, kind), _numbers(instruction, kind), dropped.get(at, ()))
            for at, (instruction, kind) in enumerate(zip(instructions, kinds, strict=True))
        )
        return cls(steps, ends, begins)


_NO_NUMBERS: Mapping[str, float] = {}


def _numbers(instruction: Instruction, kind: Kind) -> Mapping[str, float]:
    if len(instruction.operands) == len(kind.uses):
        return _NO_NUMBERS
    return {name: one for name, one in instruction.operands.items() if not isinstance(one, Region)}


def _regions(instruction: Instruction, kind: Kind) -> tuple[tuple[Use, Region, Strided], ...]:
    region = instruction.region
    return tuple([(use, one := region(use.name), Strided(one.offset, use.layout)) for use in kind.uses])


def _dropped(trace: Trace, program: int) -> Mapping[int, Sequence[int]]:
    """All but what outlives the program: arguments, what all programs share, and states of generators."""
    states = {at for at, one in enumerate(trace.tensors) if one.space is Space.ENGINE and one.zeroed}
    kept = {at for at, one in enumerate(trace.tensors) if one.shared} | {*trace.arguments} | states
    rooted = roots(trace.tensors, trace.programs[program])
    found: defaultdict[int, list[int]] = defaultdict(list)
    for tensor, at in lifetimes(rooted).last.items():
        if tensor not in kept and any(region.tensor == tensor for region in rooted[at].regions()):
            found[at].append(tensor)
    return found
