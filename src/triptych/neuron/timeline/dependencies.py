"""What must have happened before each step of a program: which steps before it touch the same bytes, or decide it.

A step is an instruction as it was executed: one in a loop is as many steps as rounds were run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from triptych.neuron.isa.hardware import Engine
from triptych.neuron.isa.loops import BEGINS
from triptych.neuron.isa.row import ROWS, Effect
from triptych.neuron.isa.trace import Instruction, Region, Tensor
from triptych.neuron.timeline.causes import Cause
from triptych.neuron.timeline.footprints import Footprints, Key, key_of

Dependency = tuple[int, Cause]
"""The step that is waited for, and why."""


@dataclass(frozen=True, slots=True)
class Accesses:
    """The regions that an instruction reads and writes."""

    reads: tuple[Key, ...]
    writes: tuple[Key, ...]


@cache
def _roles(operation: str) -> tuple[tuple[str, bool, bool], ...]:
    """The operands of an instruction: name, whether it is read, and written.

    What a meeting names without reading it (a barrier's tensor) is held by it: read and written.
    """
    rules = ROWS[operation].operands
    return tuple((one.name, one.read or not one.written, one.written or not one.read) for one in rules)


def accesses_of(instruction: Instruction) -> Accesses:
    """What it touches, by the rules of its row."""
    reads: list[Key] = []
    writes: list[Key] = []
    operands = instruction.operands
    for name, read, written in _roles(instruction.operation):
        operand = operands.get(name)
        if not isinstance(operand, Region):
            continue
        key = key_of(operand)
        if read:
            reads.append(key)
        if written:
            writes.append(key)
        if operand.dynamic is not None:
            reads.append(key_of(operand.dynamic.index))
    return Accesses(tuple(reads), tuple(writes))


def dependencies_of(
    program: Sequence[Instruction], steps: Sequence[int], tensors: Sequence[Tensor]
) -> list[tuple[Dependency, ...]]:
    """For each step the steps that it waits for, those left out that the order of its engine's queue implies.

    Args:
        program: the instructions.
        steps: the index of the instruction that each step executes.
        tensors: of the trace.
    """
    accesses = [accesses_of(one) for one in program]
    footprints = Footprints(
        (key for one in accesses for key in (*one.reads, *one.writes)),
        (key for one in accesses for key in one.writes),
        tensors,
    )
    return list(_Walk(program, accesses, footprints).over(steps))


@cache
def _queue(engine: Engine) -> str | None:
    """The engine's queue, None of the DMA engines, which do not end in the order in which they begin."""
    return None if engine is Engine.DMA else engine.value


@cache
def _begins_loop(operation: str) -> bool:
    return ROWS[operation].effect in BEGINS


class _Walk:
    """Goes through the steps, and knows of each cell who wrote it last and who has read it since."""

    def __init__(self, program: Sequence[Instruction], accesses: Sequence[Accesses], footprints: Footprints) -> None:
        self._queues = [_queue(one.engine) for one in program]
        self._gates = [_begins_loop(one.operation) and _decided_by_data(one) for one in program]
        self._reads = [_cells(one.reads, footprints) for one in accesses]
        self._writes = [_cells(one.writes, footprints) for one in accesses]
        self._writer: list[int] = [-1] * footprints.count
        self._readers: list[dict[str | int, int]] = [{} for _ in range(footprints.count)]

    def over(self, steps: Sequence[int]) -> Iterator[tuple[Dependency, ...]]:
        gate = -1
        queues: list[str | None] = []
        for step, at in enumerate(steps):
            queues.append(self._queues[at])
            found = self._data(step, at, queues)
            if gate >= 0:
                found.setdefault(gate, Cause.CONTROL)
            yield tuple(found.items())
            if self._gates[at]:
                gate = step

    def _data(self, step: int, at: int, queues: Sequence[str | None]) -> dict[int, Cause]:
        """The hazards of a step; where there are two with one step, the one that waits longer."""
        found: dict[int, Cause] = {}
        writers, readers, own = self._writer, self._readers, queues[step]
        for cell in self._reads[at]:
            if writers[cell] >= 0:
                found[writers[cell]] = Cause.DATA
        queue = step if own is None else own
        for cell in self._writes[at]:
            writer = writers[cell]
            if writer >= 0 and (own is None or queues[writer] != own) and found.get(writer) is not Cause.DATA:
                found[writer] = Cause.BUFFER_WRITTEN
            for reader_queue, reader in readers[cell].items():
                if reader_queue != queue:
                    found.setdefault(reader, Cause.BUFFER_READ)
        for cell in self._reads[at]:
            readers[cell][queue] = step
        for cell in self._writes[at]:
            writers[cell] = step
            readers[cell] = {}
        return found


def _cells(keys: Sequence[Key], footprints: Footprints) -> tuple[int, ...]:
    if len(keys) == 1:
        return footprints[keys[0]]
    return tuple({cell for key in keys for cell in footprints[key]})


def _decided_by_data(instruction: Instruction) -> bool:
    """Whether registers say if the body of a loop that begins here is run."""
    if ROWS[instruction.operation].effect is Effect.BEGIN_WHILE:
        return True
    return any(isinstance(instruction.operands.get(name), Region) for name in ("lower", "upper"))
