"""Steps with costs and dependencies -> when each begins and ends: a simulation of the queues, event after event.

Each engine but the DMA engines takes the instructions of its queue one at a time, in their order, or, where a compiler
reorders them, the first of those that wait for nothing. A transfer begins
when what it waits for has happened and one of the DMA queues is free, the oldest first; behind its set-up its bytes go
through the DMA engines that serve them, each of which moves what comes first. Events are handled in the order of time,
so that whatever is shared (the DMA engines, HBM, a port) is given to who asks first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from triptych.neuron.isa.hardware import Engine
from triptych.neuron.timeline.causes import Cause
from triptych.neuron.timeline.dependencies import Dependency
from triptych.neuron.timeline.rooms import Room
from triptych.neuron.timeline.transfers import Transfer


@dataclass(frozen=True, slots=True)
class Machine:
    """What a core has, as far as the schedule depends on it."""

    result_seconds: Mapping[Engine, float]
    """From an instruction's end until others see its result."""
    setup_seconds: float
    """Before a transfer's first byte."""
    dma_engines: int
    dma_queues: int
    shares_port: frozenset[Engine]
    """Engines that cannot work at the same time."""
    reorders: bool = False
    """Whether an engine takes what is ready before what waits; not so in programs that meet others."""


@dataclass(frozen=True, slots=True)
class CoreWork:
    """What one core is to do: a sequence for each property, an entry a step; steps are numbered from 0."""

    engines: Sequence[Engine]
    seconds: Sequence[float]
    """On the engine; 0 of transfers."""
    transfers: Sequence[Transfer | None]
    dependencies: Sequence[Sequence[Dependency]]
    instructions: Sequence[int]
    """Which instruction a step executes."""
    rooms: Sequence[Room] = ()
    meetings: Mapping[int, object] = field(default_factory=dict[int, object])
    """The meetings of steps that wait for other cores."""


@dataclass(slots=True)
class Schedule:
    """When the steps of all cores begin and end: a list for each property, core after core."""

    start: list[float]
    """When it begins; of a transfer its set-up."""
    end: list[float]
    counted_from: list[float]
    """From when on it is itself what takes time: its start, or when the DMA engines come to it."""
    cause: list[Cause]
    """What it waited for last."""
    by: list[int]
    """The step that made it wait, -1 for none."""
    queue: list[int]
    """The DMA queue of a transfer; else 0."""
    offsets: list[int]
    """The first step of each core."""


@dataclass(slots=True)
class _Pool:
    """A room while the simulation runs."""

    left: int
    sizes: Sequence[int]
    used_by: Sequence[tuple[int, ...]]
    wants: Sequence[tuple[int, int]]
    remaining: list[int]
    until: list[float]
    """When the last of a tile's users so far ends."""
    last: list[int]
    granted: int = 0
    """How many of the wants have got their room."""


@dataclass(slots=True)
class _Core:
    """A core while the simulation runs; steps are numbered through all cores."""

    first: int
    work: CoreWork
    engines: list[int]
    """The number of each step's engine, as in `_ENGINES`; below, lists by that number."""
    queues: list[list[int]]
    heads: list[int]
    free: list[float]
    last: list[int]
    dma_free: list[float]
    dma_last: list[int]
    idle_queues: list[int]
    pools: list[_Pool]
    ready: list[list[int]]
    """The steps of each engine that wait for the engine alone, a heap."""
    called: list[float]
    """For when each engine is to look at them again."""
    hbm_free: float = 0.0
    hbm_last: int = -1
    port_free: float = 0.0
    port_last: int = -1
    waiting: list[int] = field(default_factory=list[int])
    """Transfers that could begin but for a queue, a heap."""


_ENGINES: Sequence[Engine] = tuple(Engine)
_NUMBERS: Mapping[Engine, int] = {engine: number for number, engine in enumerate(_ENGINES)}
_DMA = _NUMBERS[Engine.DMA]

_RELEASE, _BEGIN, _DONE, _NEXT = range(4)
"""Kinds of events; those of one time are handled in this order."""
_Event = tuple[float, int, int, int]
"""Time, kind, step (of a release: the core), and of a release the pool and the tile's number."""


class Simulation:
    """One run over the work of all cores."""

    def __init__(self, cores: Sequence[CoreWork], machine: Machine) -> None:
        """Nothing has begun yet."""
        self._machine = machine
        self._result = [machine.result_seconds[engine] for engine in _ENGINES]
        self._shares_port = [engine in machine.shares_port for engine in _ENGINES]
        count = sum(len(core.engines) for core in cores)
        self._ready = [0.0] * count
        self._pending = [0] * count
        self._after_result: list[list[tuple[int, Cause]]] = [[] for _ in range(count)]
        self._after_end: list[list[tuple[int, Cause]]] = [[] for _ in range(count)]
        self._core_of: list[int] = []
        self._events: list[_Event] = []
        self._meetings: dict[int, object] = {}
        self._held: set[int] = set()
        """Steps whose cause is known: they came to a meeting, or to a port."""
        self._members: dict[object, int] = {}
        self._arrived: dict[object, list[int]] = {}
        self._cores: list[_Core] = []
        for number, work in enumerate(cores):
            self._add(number, work)
        self.schedule = Schedule(
            [0.0] * count,
            [0.0] * count,
            [0.0] * count,
            [Cause.NOTHING] * count,
            [-1] * count,
            [0] * count,
            [core.first for core in self._cores],
        )

    def _add(self, number: int, work: CoreWork) -> None:
        first = len(self._core_of)
        self._core_of += [number] * len(work.engines)
        engines = [_NUMBERS[engine] for engine in work.engines]
        queues: list[list[int]] = [[] for _ in _ENGINES]
        for step, engine in enumerate(engines, first):
            queues[engine].append(step)
        for step, found in enumerate(work.dependencies, first):
            self._pending[step] = len(found)
            for other, cause in found:
                after = self._after_end if cause is Cause.BUFFER_READ else self._after_result
                after[first + other].append((step, cause))
        for step, meeting in work.meetings.items():
            self._meetings[first + step] = meeting
            self._members[meeting] = self._members.get(meeting, 0) + 1
        pools = [
            _Pool(
                one.bytes, one.sizes, one.used_by, one.wants,
                list(one.uses), [0.0] * len(one.sizes), [-1] * len(one.sizes),
            )
            for one in work.rooms
        ]  # fmt: skip
        for pool in pools:
            for step, _ in pool.wants:
                self._pending[first + step] += 1
        machine, count = self._machine, len(_ENGINES)
        self._cores.append(
            _Core(
                first, work, engines, queues, [0] * count, [0.0] * count, [-1] * count,
                [0.0] * machine.dma_engines, [-1] * machine.dma_engines, list(range(machine.dma_queues)), pools,
                [[] for _ in _ENGINES], [-1.0] * count,
            )
        )  # fmt: skip

    def run(self) -> Schedule:
        """Simulate to the end."""
        for core in self._cores:
            heapify(core.idle_queues)
            for step in range(core.first, core.first + len(core.engines)):
                self._offer(step)
            for pool in core.pools:
                self._grant(core, pool, 0.0, -1)
        events = self._events
        while events or self._force():
            time, kind, step, tile = heappop(events)
            core = self._cores[step if kind == _RELEASE else self._core_of[step]]
            if kind == _BEGIN:
                self._begin(core, step, time)
            elif kind == _NEXT:
                self._next(core, core.engines[step - core.first], time)
            elif kind == _DONE:
                heappush(core.idle_queues, self.schedule.queue[step])
                if core.waiting:
                    self._wait_ended(core, time, step)
            else:
                pool, number = core.pools[tile % len(core.pools)], tile // len(core.pools)
                pool.left += pool.sizes[number]
                self._grant(core, pool, time, pool.last[number])
        return self.schedule

    def _offer(self, step: int) -> None:
        """A step may begin as far as others are concerned, if its engine comes to it."""
        if not self._pending[step]:
            heappush(self._events, (self._ready[step], _BEGIN, step, 0))

    def _resolve(self, step: int, time: float, cause: Cause, by: int) -> None:
        """Something that a step waits for happens at a time."""
        if time > self._ready[step]:
            self._ready[step] = time
            self.schedule.cause[step], self.schedule.by[step] = cause, by
        self._pending[step] -= 1
        self._offer(step)

    def _begin(self, core: _Core, step: int, time: float) -> None:
        engine = core.engines[step - core.first]
        if engine != _DMA:
            if step not in self._held:
                heappush(core.ready[engine], step)
            self._next(core, engine, time)
        elif step not in self._meetings or self._meet(step, time):
            if core.idle_queues:
                self._transfer(core, step, time)
            else:
                heappush(core.waiting, step)

    def _candidate(self, core: _Core, engine: int) -> int:
        """The step that an engine would take next, -1 for none."""
        ready = core.ready[engine]
        if not ready:
            return -1
        in_order = not self._machine.reorders or core.work.meetings
        return -1 if in_order and ready[0] != core.queues[engine][core.heads[engine]] else ready[0]

    def _next(self, core: _Core, engine: int, time: float) -> None:
        """An engine takes the next step, if there is one that it can take now."""
        while (step := self._candidate(core, engine)) >= 0:
            if core.free[engine] > time:
                self._call(core, engine, core.free[engine], step)
                return
            if step not in self._held and core.last[engine] >= 0 and core.free[engine] >= self._ready[step]:
                self.schedule.cause[step], self.schedule.by[step] = Cause.QUEUE, core.last[engine]
            if step in self._meetings and (step in self._held or not self._meet(step, time)):
                self._held.add(step)
                return
            if self._shares_port[engine]:
                if core.port_free > time:
                    self._held.add(step)
                    self.schedule.cause[step], self.schedule.by[step] = Cause.PORT, core.port_last
                    self._call(core, engine, core.port_free, step)
                    return
                if self._rival(core, engine, step, time):
                    continue
            self._execute(core, engine, step, time)

    def _call(self, core: _Core, engine: int, time: float, step: int) -> None:
        """Let an engine look again at a time."""
        if core.called[engine] != time:
            core.called[engine] = time
            heappush(self._events, (time, _NEXT, step, 0))

    def _rival(self, core: _Core, engine: int, step: int, time: float) -> bool:
        """Whether another engine of the port has an earlier step that could begin too; it then does."""
        for other, shares in enumerate(self._shares_port):
            if not shares or other == engine or core.free[other] > time:
                continue
            earlier = self._candidate(core, other)
            if 0 <= earlier < step and earlier not in self._meetings:
                self._next(core, other, time)
                return True
        return False

    def _execute(self, core: _Core, engine: int, step: int, time: float) -> None:
        heappop(core.ready[engine])
        core.heads[engine] += 1
        end = time + core.work.seconds[step - core.first]
        if self._shares_port[engine]:
            core.port_free, core.port_last = end, step
        core.free[engine], core.last[engine] = end, step
        self._note(core, step, time, time, end, end + self._result[engine])

    def _meet(self, step: int, time: float) -> bool:
        """Whether all have come to a meeting; the others then begin too."""
        meeting = self._meetings[step]
        arrived = self._arrived.setdefault(meeting, [])
        arrived.append(step)
        if len(arrived) < self._members[meeting]:
            return False
        for other in arrived:
            del self._meetings[other]
            if other != step:
                self.schedule.cause[other], self.schedule.by[other] = Cause.MEETING, step
                heappush(self._events, (time, _BEGIN, other, 0))
        return True

    def _wait_ended(self, core: _Core, time: float, by: int) -> None:
        """A queue is free for the oldest transfer that waits for one."""
        step = heappop(core.waiting)
        if self._ready[step] < time:
            self.schedule.cause[step], self.schedule.by[step] = Cause.DMA_QUEUES, by
        self._transfer(core, step, time)

    def _transfer(self, core: _Core, step: int, time: float) -> None:
        transfer = core.work.transfers[step - core.first]
        assert transfer is not None
        self.schedule.queue[step] = heappop(core.idle_queues)
        ready = time + self._machine.setup_seconds
        end, begun, cause, by = ready, ready, Cause.NOTHING, -1
        free, last = core.dma_free, core.dma_last
        for engine, seconds in transfer.engines:
            start = free[engine] if free[engine] > ready else ready
            if start + seconds > end:
                end, begun, cause, by = start + seconds, start, Cause.DMA_ENGINES, last[engine]
            free[engine], last[engine] = start + seconds, step
        if transfer.hbm_seconds:
            start = max(core.hbm_free, ready)
            if start + transfer.hbm_seconds > end:
                end, begun, cause, by = start + transfer.hbm_seconds, start, Cause.HBM, core.hbm_last
            core.hbm_free, core.hbm_last = start + transfer.hbm_seconds, step
        if begun > ready:
            self.schedule.cause[step], self.schedule.by[step] = cause, by
        heappush(self._events, (end, _DONE, step, 0))
        self._note(core, step, time, begun if begun > ready else time, end, end)

    def _note(self, core: _Core, step: int, start: float, counted_from: float, end: float, seen: float) -> None:
        """A step's times are known: those that wait for it learn of it, and tiles that nobody uses are free again."""
        schedule = self.schedule
        schedule.start[step], schedule.counted_from[step], schedule.end[step] = start, counted_from, end
        for other, cause in self._after_result[step]:
            self._resolve(other, seen, cause, step)
        for other, cause in self._after_end[step]:
            self._resolve(other, end, cause, step)
        for number, pool in enumerate(core.pools):
            for tile in pool.used_by[core.work.instructions[step - core.first]]:
                pool.remaining[tile] -= 1
                if end >= pool.until[tile]:
                    pool.until[tile], pool.last[tile] = end, step
                if not pool.remaining[tile]:
                    event = (pool.until[tile], _RELEASE, self._core_of[step], tile * len(core.pools) + number)
                    heappush(self._events, event)

    def _grant(self, core: _Core, pool: _Pool, time: float, by: int) -> None:
        """Give room to those whose turn it is."""
        while pool.granted < len(pool.wants) and pool.wants[pool.granted][1] <= pool.left:
            step, size = pool.wants[pool.granted]
            pool.left -= size
            pool.granted += 1
            self._resolve(core.first + step, time, Cause.SPACE, by)

    def _force(self) -> bool:
        """Where all wait and a memory is too small for what is alive, which leniency allows: room that there is not."""
        for core in self._cores:
            for pool in core.pools:
                if pool.granted < len(pool.wants):
                    pool.left = max(pool.left, pool.wants[pool.granted][1])
                    self._grant(core, pool, max(self.schedule.end), -1)
                    return True
        return False
