"""What a schedule says of a kernel: events, how long each engine was at work and what it waited for, the critical path.

Everything here is modelled: costs are published formulas and a chip's figures, and nothing was timed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from triptych.chips import NeuronChip
from triptych.core.forks import LazyProperty
from triptych.core.source import SourceLocation
from triptych.neuron.isa.hardware import Engine
from triptych.neuron.isa.trace import Instruction, Trace
from triptych.neuron.timeline.causes import Cause
from triptych.neuron.timeline.schedule import Schedule, Simulation
from triptych.neuron.timeline.work import Work, work_of

LATENCY = "DMA latency"
"""What limits a kernel whose critical path is mostly the set-up of transfers."""


@dataclass(frozen=True, slots=True)
class Event:
    """One executed instruction: where and when it ran, and what it waited for. Times are seconds, modelled."""

    step: int
    """Its number among all events, in the order of the cores' programs."""
    core: int
    engine: Engine
    queue: int
    """The DMA queue of a transfer; else 0."""
    start: float
    """Of a transfer that of its set-up."""
    end: float
    operation: str
    where: SourceLocation
    waited_for: Cause
    """What it waited for last."""
    waited_for_step: int | None
    """The event that made it wait, None where none did."""


@dataclass(frozen=True, slots=True)
class Stall:
    """Seconds that an engine stood still for one cause, and whom it waited for."""

    cause: Cause
    culprit: Engine | None
    """The engine of what it waited for, None where there is none."""
    seconds: float


@dataclass(frozen=True, slots=True)
class EngineUse:
    """What an engine of one core did. `busy` and `stalls` add up to its last instruction's end, but for DMA's."""

    core: int
    engine: Engine
    instructions: int
    busy: float
    """Seconds in which it was at work; of the DMA engines those in which a transfer was under way."""
    stalls: tuple[Stall, ...]
    """The longest first; none of the DMA engines."""


@dataclass(frozen=True, slots=True)
class PathLine:
    """The part of the critical path that a line is responsible for on one engine."""

    where: SourceLocation
    engine: Engine
    seconds: float


@dataclass(frozen=True)
class Timeline:
    """When everything happened, modelled. Steps are numbered core after core."""

    work: Work
    schedule: Schedule

    @property
    def seconds(self) -> float:
        """From the first instruction's begin to the last one's end."""
        return max(self.schedule.end, default=0.0)

    @property
    def steps(self) -> int:
        """Executed instructions; of Beta 1 without repeats, with what spills tiles."""
        return len(self.schedule.end)

    def events(self) -> Iterator[Event]:
        """All events, core after core in the order of the program."""
        schedule = self.schedule
        for step, instruction in enumerate(self.instructions):
            by = schedule.by[step]
            yield Event(
                step,
                self._cores[step],
                instruction.engine,
                schedule.queue[step],
                schedule.start[step],
                schedule.end[step],
                instruction.operation,
                instruction.where,
                schedule.cause[step],
                None if by < 0 else by,
            )

    @LazyProperty
    def instructions(self) -> Sequence[Instruction]:
        """What each step executes."""
        cores = zip(self.work.programs, self.work.cores, strict=True)
        return [program[at] for program, core in cores for at in core.instructions]

    @LazyProperty
    def _cores(self) -> Sequence[int]:
        """The core of each step."""
        return [number for number, core in enumerate(self.work.cores) for _ in core.instructions]

    @LazyProperty
    def uses(self) -> tuple[EngineUse, ...]:
        """Each engine of each core that did something."""
        return tuple(self._use(core, engine, steps) for (core, engine), steps in self._queues.items())

    @LazyProperty
    def _queues(self) -> Mapping[tuple[int, Engine], Sequence[int]]:
        """The steps of each engine of each core, in their order."""
        found: defaultdict[tuple[int, Engine], list[int]] = defaultdict(list)
        for step, (core, instruction) in enumerate(zip(self._cores, self.instructions, strict=True)):
            found[core, instruction.engine].append(step)
        order = list(Engine)
        return dict(sorted(found.items(), key=lambda one: (one[0][0], order.index(one[0][1]))))

    def _use(self, core: int, engine: Engine, steps: Sequence[int]) -> EngineUse:
        stalls = () if engine is Engine.DMA else self._stalls(steps)
        return EngineUse(core, engine, len(steps), _covered(self._spans(steps)), stalls)

    def _spans(self, steps: Sequence[int]) -> list[tuple[float, float]]:
        return [(self.schedule.start[step], self.schedule.end[step]) for step in steps]

    def _stalls(self, steps: Sequence[int]) -> tuple[Stall, ...]:
        schedule = self.schedule
        found: defaultdict[tuple[Cause, Engine | None], float] = defaultdict(float)
        free = 0.0
        for step in sorted(steps, key=schedule.start.__getitem__):
            if schedule.start[step] > free:
                by = schedule.by[step]
                culprit = None if by < 0 else self.instructions[by].engine
                found[schedule.cause[step], culprit] += schedule.start[step] - free
            free = max(free, schedule.end[step])
        longest = sorted(found.items(), key=lambda one: -one[1])
        return tuple(Stall(cause, culprit, seconds) for (cause, culprit), seconds in longest)

    @property
    def busy(self) -> Mapping[Engine, float]:
        """Seconds in which each engine was at work; of several cores those of the busiest."""
        found: dict[Engine, float] = {}
        for use in self.uses:
            found[use.engine] = max(found.get(use.engine, 0.0), use.busy)
        return found

    @property
    def utilisation(self) -> float:
        """The part of the time in which the Tensor engine was at work, of several cores the busiest's."""
        return self.busy.get(Engine.TENSOR, 0.0) / self.seconds if self.seconds else 0.0

    @LazyProperty
    def overlap(self) -> float:
        """Of the time in which transfers are under way on a core the part in which another engine is at work there."""
        moving = shared = 0.0
        for core in range(len(self.work.cores)):
            moved = self._spans(self._queues.get((core, Engine.DMA), ()))
            others = [
                span
                for (number, engine), steps in self._queues.items()
                if number == core and engine not in (Engine.DMA, Engine.SYNC)
                for span in self._spans(steps)
            ]
            moving += _covered(moved)
            shared += _covered(moved) + _covered(others) - _covered([*moved, *others])
        return shared / moving if moving else 0.0

    @LazyProperty
    def critical_path(self) -> tuple[int, ...]:
        """The steps that each waited for the one before, from the first to that which ends last."""
        schedule = self.schedule
        if not schedule.end:
            return ()
        step = max(range(len(schedule.end)), key=schedule.end.__getitem__)
        path: list[int] = []
        while step >= 0:
            path.append(step)
            step = schedule.by[step]
        return tuple(reversed(path))

    def shares(self) -> Iterator[tuple[int, float]]:
        """The steps of the critical path, and the seconds that each adds to it; they add up to the whole."""
        path, counted_from = self.critical_path, self.schedule.counted_from
        for step, following in zip(path, (*path[1:], None), strict=True):
            until = self.seconds if following is None else counted_from[following]
            yield step, until - counted_from[step]

    @LazyProperty
    def critical_lines(self) -> tuple[PathLine, ...]:
        """The critical path by source line and engine, the longest first."""
        found: defaultdict[tuple[SourceLocation, Engine], float] = defaultdict(float)
        for step, seconds in self.shares():
            found[self.instructions[step].where, self.instructions[step].engine] += seconds
        longest = sorted(found.items(), key=lambda one: -one[1])
        return tuple(PathLine(where, engine, seconds) for (where, engine), seconds in longest)

    @property
    def limited_by(self) -> str:
        """What most of the critical path is made of: an engine, or the set-up of transfers."""
        found: defaultdict[str, float] = defaultdict(float)
        setup = self.work.machine.setup_seconds
        for step, seconds in self.shares():
            engine = self.instructions[step].engine
            latency = 0.0
            if engine is Engine.DMA and self.schedule.counted_from[step] == self.schedule.start[step]:
                latency = min(setup, seconds)
            found[LATENCY] += latency
            found[f"{engine.value} engine" if engine is not Engine.DMA else "DMA engines"] += seconds - latency
        return max(found, key=found.__getitem__) if found else "nothing"


def _covered(spans: Sequence[tuple[float, float]]) -> float:
    """Seconds that at least one of the spans covers."""
    total, until = 0.0, 0.0
    for start, end in sorted(spans):
        if end > until:
            total += end - max(start, until)
            until = end
    return total


def timeline_of(trace: Trace, steps: Sequence[Sequence[int]], chip: NeuronChip) -> Timeline:
    """The timeline of a launch on a chip.

    Args:
        trace: what was executed.
        steps: for each program of the grid the index of the instruction that each of its steps executed.
        chip: whose clocks, bandwidths and generation count.
    """
    work = work_of(trace, steps, chip)
    return Timeline(work, Simulation(work.cores, work.machine).run())
