"""What running a program needs to know besides its instructions, found once a trace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triptych.neuron.isa.hardware import Hardware, Space
from triptych.neuron.isa.loops import loop_ends
from triptych.neuron.isa.occupancy import lifetimes, roots
from triptych.neuron.isa.trace import Trace
from triptych.neuron.run.kinds import Kind, kinds_of


@dataclass(frozen=True, slots=True, eq=False)
class ProgramFacts:
    """Of one program of the grid."""

    kinds: tuple[Kind, ...]
    """That of each instruction."""
    dropped: Mapping[int, Sequence[int]]
    """The tensors that nothing names behind an instruction that does, by its index."""
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
        return cls(kinds_of(instructions, trace.tensors, hardware), _dropped(trace, program), ends, begins)


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
