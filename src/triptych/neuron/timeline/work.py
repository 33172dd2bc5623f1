"""A trace and what was executed of it -> what is scheduled: each core's steps with their costs and dependencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triptych.chips import NeuronChip
from triptych.neuron.isa.hardware import Engine, Space
from triptych.neuron.isa.occupancy import peak_of, tiles_of
from triptych.neuron.isa.repeats import without_repeats
from triptych.neuron.isa.row import ROWS, Effect
from triptych.neuron.isa.spilling import Fitted, spilled
from triptych.neuron.isa.trace import BETA1, CURRENT, Instruction, Tensor, Trace
from triptych.neuron.timeline.costs import RESULT_CYCLES, cycles_of
from triptych.neuron.timeline.dependencies import dependencies_of
from triptych.neuron.timeline.generations import GENERATIONS, clocks_of, generation_of
from triptych.neuron.timeline.rooms import rooms_of
from triptych.neuron.timeline.schedule import CoreWork, Machine
from triptych.neuron.timeline.transfers import QUEUES, transfer_of


@dataclass(frozen=True, slots=True)
class Work:
    """What is scheduled, before it is: the cores, and the instruction of each step."""

    cores: tuple[CoreWork, ...]
    programs: tuple[tuple[Instruction, ...], ...]
    tensors: tuple[Tensor, ...]
    """Of the trace, and those of what was added."""
    added: tuple[frozenset[int], ...]
    """The instructions of each core that the trace has not: those that spill tiles."""
    machine: Machine
    chip: str


def work_of(trace: Trace, steps: Sequence[Sequence[int]], chip: NeuronChip, *, spills: bool = True) -> Work:
    """What a launch asks of the queues of a chip's cores.

    What Beta 1's compiler changes is done here: repeats are left out, tiles spilled (not so without `spills`), and the
    engines take what is ready.

    Args:
        trace: what was executed.
        steps: for each program of the grid the index of the instruction that each of its steps executed.
        chip: whose clocks, bandwidths and generation count.
    """
    generation = generation_of(chip)
    clocks = clocks_of(chip)
    capacities = {
        Space.SBUF: chip.sbuf_bytes_per_partition - chip.sbuf_reserved_bytes_per_partition,
        Space.PSUM: chip.psum_bytes_per_partition,
    }
    cores, tensors, added = list[_Core](), trace.tensors, list[frozenset[int]]()
    beta1 = trace.generation == BETA1
    for core in _cores(trace, steps):
        fitted = _compiled(core, tensors, capacities[Space.SBUF] if spills else None) if beta1 else None
        cores.append(core if fitted is None else (fitted.program, range(len(fitted.program)), core[2]))
        tensors = tensors if fitted is None else fitted.tensors
        added.append(frozenset() if fitted is None else fitted.added)
    machine = Machine(
        {engine: RESULT_CYCLES / clock for engine, clock in clocks.items()} | {Engine.DMA: 0.0},
        chip.dma_latency_s,
        chip.dma_engines_per_core,
        QUEUES,
        GENERATIONS[generation].shares_port,
        beta1,
    )
    programs = tuple(program for program, _, _ in cores)
    works = tuple(_core_work(tensors, *core, capacities, chip, clocks, generation) for core in cores)
    return Work(works, programs, tensors, tuple(added), machine, chip.name)


_Core = tuple[tuple[Instruction, ...], Sequence[int], Mapping[int, object]]
"""The instructions of a core, the steps, and the meetings of steps."""


def _compiled(core: _Core, tensors: tuple[Tensor, ...], capacity: int | None) -> Fitted | None:
    """A core's program as Beta 1's compiler leaves it, with tiles spilled that exceed `capacity`, if there is one.

    None where it stays as it is written.
    """
    program, _, meetings = core
    if meetings:
        return None
    once = without_repeats(program, tensors)
    for shorter in (once, program) if once is not None else (program,):
        if capacity is None or peak_of(tiles_of(shorter, tensors)[Space.SBUF], tensors).bytes <= capacity:
            return None if shorter is program else Fitted(tuple(shorter), tensors, frozenset())
        fitted = spilled(shorter, tensors, capacity)
        if fitted is not None:
            return fitted
    return None


def _cores(trace: Trace, steps: Sequence[Sequence[int]]) -> list[_Core]:
    """The cores that a grid runs on: one for all programs, in their order, or one a program where they may meet.

    Programs of `import nki` are the cores of a logical NeuronCore, or ranks; so are those of Beta 1 that meet. Else
    Beta 1's grid is work for one core.
    """
    meetings = [_meetings(program, taken) for program, taken in zip(trace.programs, steps, strict=True)]
    if trace.generation == CURRENT or any(meetings):
        return [(*core, met) for core, met in zip(zip(trace.programs, steps, strict=True), meetings, strict=True)]
    joined: list[Instruction] = []
    taken: list[int] = []
    for program, own in zip(trace.programs, steps, strict=True):
        taken += [len(joined) + at for at in own]
        joined += program
    return [(tuple(joined), taken, {})]


def _meetings(program: Sequence[Instruction], steps: Sequence[int]) -> dict[int, object]:
    """For each step that meets other programs what they have in common: the kind of the meeting, and its number."""
    found: dict[int, object] = {}
    counts: dict[object, int] = {}
    if all(ROWS[one.operation].effect is not Effect.MEET for one in program):
        return found
    for step, at in enumerate(steps):
        one = program[at]
        if ROWS[one.operation].effect is Effect.MEET:
            kind = (one.operation, one.attributes.get("pipe_id"), one.attributes.get("group"))
            found[step] = (kind, counts.setdefault(kind, 0))
            counts[kind] += 1
    return found


def _core_work(
    tensors: Sequence[Tensor],
    program: Sequence[Instruction],
    steps: Sequence[int],
    meetings: Mapping[int, object],
    capacities: dict[Space, int],
    chip: NeuronChip,
    clocks: Mapping[Engine, float],
    generation: int,
) -> CoreWork:
    seconds = [
        0.0 if one.engine is Engine.DMA else cycles_of(one, tensors, generation) / clocks[one.engine] for one in program
    ]
    transfers = [transfer_of(one, tensors, chip) if one.engine is Engine.DMA else None for one in program]
    return CoreWork(
        [program[at].engine for at in steps],
        [seconds[at] for at in steps],
        [transfers[at] for at in steps],
        dependencies_of(program, steps, tensors),
        steps,
        tuple(rooms_of(program, steps, tensors, capacities)),
        meetings,
    )
