"""The schedule: small programs worked out by hand, and a slow, obvious scheduler as the second witness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from triptych.neuron.isa.hardware import Engine, Space
from triptych.neuron.timeline.causes import Cause
from triptych.neuron.timeline.dependencies import Dependency
from triptych.neuron.timeline.rooms import Room
from triptych.neuron.timeline.schedule import CoreWork, Machine, Schedule, Simulation
from triptych.neuron.timeline.transfers import Transfer

RESULT = 1.0
MACHINE = Machine({engine: 0.0 if engine is Engine.DMA else RESULT for engine in Engine}, 10.0, 2, 2, frozenset())
SHARING = Machine(MACHINE.result_seconds, 10.0, 2, 2, frozenset({Engine.VECTOR, Engine.GPSIMD}))
PE, VECTOR, SCALAR, GPSIMD, DMA = Engine.TENSOR, Engine.VECTOR, Engine.SCALAR, Engine.GPSIMD, Engine.DMA


def transfer(*engines: float, hbm: float = 0.0) -> Transfer:
    """What each of the two DMA engines, and HBM, is asked for."""
    return Transfer(0, 0, 0, tuple((number, seconds) for number, seconds in enumerate(engines) if seconds), hbm)


@dataclass
class Builder:
    """Collects the steps of a core."""

    engines: list[Engine] = field(default_factory=list[Engine])
    seconds: list[float] = field(default_factory=list[float])
    transfers: list[Transfer | None] = field(default_factory=list[Transfer | None])
    dependencies: list[tuple[Dependency, ...]] = field(default_factory=list[tuple[Dependency, ...]])

    def step(self, engine: Engine, cost: float | Transfer, *dependencies: Dependency) -> int:
        moved = isinstance(cost, Transfer)
        self.engines.append(engine)
        self.seconds.append(0.0 if moved else cost)
        self.transfers.append(cost if moved else None)
        self.dependencies.append(dependencies)
        return len(self.engines) - 1

    def work(self, rooms: Sequence[Room] = (), meetings: dict[int, object] | None = None) -> CoreWork:
        steps = range(len(self.engines))
        return CoreWork(self.engines, self.seconds, self.transfers, self.dependencies, steps, rooms, meetings or {})


def run(*cores: CoreWork, machine: Machine = MACHINE) -> Schedule:
    return Simulation(cores, machine).run()


def test_two_loads_an_addition_and_a_store() -> None:
    b = Builder()
    first = b.step(DMA, transfer(4, 4))
    second = b.step(DMA, transfer(4, 4))
    add = b.step(VECTOR, 5.0, (first, Cause.DATA), (second, Cause.DATA))
    b.step(DMA, transfer(4, 4), (add, Cause.DATA))
    s = run(b.work())
    # Both are set up at once; the second waits for the DMA engines. The store begins when the sum is seen.
    assert s.start == [0, 0, 18, 24]
    assert s.end == [14, 18, 23, 38]
    assert s.cause == [Cause.NOTHING, Cause.DMA_ENGINES, Cause.DATA, Cause.DATA]
    assert s.by == [-1, first, second, add]
    assert s.counted_from == [0, 14, 18, 24]
    assert s.queue == [0, 1, 0, 0]


def test_buffers_that_are_reused_make_loads_wait() -> None:
    """One buffer: a load waits for the end of the product that reads it, and a product for its load."""
    for buffers, ends in ((1, [14, 20, 34, 40, 54, 60]), (2, [14, 20, 18, 26, 34, 40])):
        b = Builder()
        for tile in range(3):
            before = 2 * (tile - buffers) + 1
            freed = [(before, Cause.BUFFER_READ)] if before > 0 else []
            loaded = b.step(DMA, transfer(4, 4), *freed)
            b.step(PE, 6.0, (loaded, Cause.DATA))
        assert run(b.work()).end == ends


def test_a_result_takes_longer_than_an_end() -> None:
    b = Builder()
    one = b.step(VECTOR, 5.0)
    b.step(SCALAR, 2.0, (one, Cause.DATA))
    b.step(GPSIMD, 2.0, (one, Cause.BUFFER_READ))
    b.step(VECTOR, 2.0)
    b.step(VECTOR, 2.0, (one, Cause.DATA))
    s = run(b.work())
    assert s.start == [0, 6, 5, 5, 7]
    assert s.cause[3:] == [Cause.QUEUE, Cause.QUEUE]


def test_a_queue_keeps_its_order() -> None:
    """An instruction that could begin waits for one before it on its engine that cannot."""
    b = Builder()
    load = b.step(DMA, transfer(4, 4))
    b.step(VECTOR, 1.0, (load, Cause.DATA))
    b.step(VECTOR, 1.0)
    s = run(b.work())
    assert s.start == [0, 14, 15]
    assert s.by == [-1, load, 1]


def test_a_compiler_lets_what_is_ready_go_first() -> None:
    b = Builder()
    load = b.step(DMA, transfer(4))
    waiting = b.step(VECTOR, 5.0, (load, Cause.DATA))
    ready = b.step(VECTOR, 3.0)
    long = b.step(VECTOR, 20.0)
    s = run(b.work(), machine=replace(MACHINE, reorders=True))
    # The load ends at 14, while the engine is at what waits for nothing.
    assert [s.start[one] for one in (ready, long, waiting)] == [0.0, 3.0, 23.0]
    assert (s.cause[waiting], s.by[waiting]) == (Cause.QUEUE, long)
    in_order = run(b.work())
    assert [in_order.start[one] for one in (waiting, ready, long)] == [14.0, 19.0, 22.0]


def test_a_third_transfer_waits_for_a_queue() -> None:
    b = Builder()
    for _ in range(2):
        b.step(DMA, transfer(4, 0))
    b.step(DMA, transfer(0, 3))
    s = run(b.work())
    assert s.start == [0, 0, 14]
    assert s.end == [14, 18, 27]
    assert (s.cause[2], s.by[2], s.queue) == (Cause.DMA_QUEUES, 0, [0, 1, 0])


def test_the_oldest_transfer_gets_the_queue() -> None:
    b = Builder()
    b.step(DMA, transfer(4, 4))
    b.step(DMA, transfer(9, 9))
    late = b.step(VECTOR, 12.0)
    b.step(DMA, transfer(1, 1), (late, Cause.DATA))
    b.step(DMA, transfer(1, 1))
    assert run(b.work()).start == [0, 0, 0, 14, 23]


def test_hbm_is_shared() -> None:
    b = Builder()
    b.step(DMA, transfer(1, 0, hbm=6))
    b.step(DMA, transfer(0, 1, hbm=6))
    s = run(b.work())
    assert s.end == [16, 22]
    assert (s.cause[1], s.by[1]) == (Cause.HBM, 0)


def test_a_port_is_shared() -> None:
    b = Builder()
    b.step(VECTOR, 5.0)
    b.step(GPSIMD, 3.0)
    b.step(SCALAR, 1.0)
    assert run(b.work()).start == [0, 0, 0]
    s = run(b.work(), machine=SHARING)
    assert s.start == [0, 5, 0]
    assert (s.cause[1], s.by[1]) == (Cause.PORT, 0)


def test_a_tile_waits_for_room() -> None:
    """Room for two of three tiles: the third's load waits until the first's last user has ended."""
    b = Builder()
    for _ in range(3):
        load = b.step(DMA, transfer(4, 4))
        b.step(PE, 6.0, (load, Cause.DATA))
    room = Room(
        Space.SBUF,
        2,
        (1, 1, 1),
        tuple((tile,) for tile in range(3) for _ in range(2)),
        ((0, 1), (2, 1), (4, 1)),
        (2,) * 3,
    )
    s = run(b.work([room]))
    assert s.start == [0, 14, 0, 20, 20, 34]
    assert (s.cause[4], s.by[4]) == (Cause.SPACE, 1)


def test_what_does_not_fit_runs_all_the_same() -> None:
    """A lenient trace may hold more than there is room for."""
    b = Builder()
    b.step(VECTOR, 1.0)
    b.step(VECTOR, 1.0)
    room = Room(Space.SBUF, 1, (2, 1), ((0, 1), (0, 1)), ((0, 3),), (2, 2))
    assert run(b.work([room])).end == [1, 2]


def test_cores_meet() -> None:
    first, second = Builder(), Builder()
    first.step(VECTOR, 5.0)
    first.step(VECTOR, 1.0)
    second.step(VECTOR, 2.0)
    second.step(VECTOR, 1.0)
    second.step(VECTOR, 1.0)
    s = run(first.work(meetings={1: "barrier"}), second.work(meetings={1: "barrier"}))
    assert s.start == [0, 5, 0, 5, 6]
    assert s.offsets == [0, 2]
    assert (s.cause[3], s.by[3]) == (Cause.MEETING, 1)


# The slow scheduler


@dataclass
class Slow:
    """At each turn it looks at every step that has not begun, and begins the one that can begin first."""

    work: CoreWork
    machine: Machine
    start: dict[int, float] = field(default_factory=dict[int, float])
    end: dict[int, float] = field(default_factory=dict[int, float])
    granted: dict[int, float] = field(default_factory=dict[int, float])
    dma_free: dict[int, float] = field(default_factory=dict[int, float])
    hbm_free: float = 0.0

    def run(self) -> tuple[list[float], list[float]]:
        steps = range(len(self.work.engines))
        while len(self.start) < len(steps):
            candidates = [(self.earliest(step), 1, step) for step in steps if self.may_begin(step)]
            candidates += [(time, 0, step) for time, step in self.grants()]
            time, kind, step = min(candidates)
            if kind == 0:
                self.granted[step] = time
            else:
                self.begin(step, time)
        return [self.start[step] for step in steps], [self.end[step] for step in steps]

    def may_begin(self, step: int) -> bool:
        engine = self.work.engines[step]
        known = all(other in self.start for other, _ in self.work.dependencies[step])
        wants = any(step == one for room in self.work.rooms for one, _ in room.wants)
        before = (other for other in range(step) if self.work.engines[other] is engine)
        head = engine is DMA or self.machine.reorders or all(other in self.start for other in before)
        return step not in self.start and known and head and (not wants or step in self.granted)

    def earliest(self, step: int) -> float:
        engine = self.work.engines[step]
        times = [self.granted.get(step, 0.0)]
        for other, cause in self.work.dependencies[step]:
            late = 0.0 if cause is Cause.BUFFER_READ else self.machine.result_seconds[self.work.engines[other]]
            times.append(self.end[other] + late)
        if engine is DMA:
            ends = sorted(end for other, end in self.end.items() if self.work.engines[other] is DMA)
            times.append(ends[-self.machine.dma_queues] if len(ends) >= self.machine.dma_queues else 0.0)
        else:
            times += [end for other, end in self.end.items() if self.work.engines[other] is engine]
        if engine in self.machine.shares_port:
            times += [end for other, end in self.end.items() if self.work.engines[other] in self.machine.shares_port]
        return max(times)

    def begin(self, step: int, time: float) -> None:
        self.start[step] = time
        moved = self.work.transfers[step]
        if moved is None:
            self.end[step] = time + self.work.seconds[step]
            return
        ready = time + self.machine.setup_seconds
        ends = [ready]
        for engine, seconds in moved.engines:
            self.dma_free[engine] = max(ready, self.dma_free.get(engine, 0.0)) + seconds
            ends.append(self.dma_free[engine])
        if moved.hbm_seconds:
            self.hbm_free = max(ready, self.hbm_free) + moved.hbm_seconds
            ends.append(self.hbm_free)
        self.end[step] = max(ends)

    def grants(self) -> list[tuple[float, int]]:
        """The next grant of the only room, and when it can be given as far as is known."""
        if not self.work.rooms:
            return []
        (room,) = self.work.rooms
        left = [one for one in room.wants if one[0] not in self.granted]
        if not left:
            return []
        step, size = left[0]
        before = max(self.granted.values(), default=0.0)
        taken = sum(one for other, one in room.wants if other in self.granted)
        deaths: list[tuple[float, int]] = [(before, 0)]
        for tile, bytes_ in enumerate(room.sizes):
            users = [one for one, tiles in enumerate(room.used_by) if tile in tiles]
            if all(one in self.end for one in users):
                deaths.append((max(self.end[one] for one in users), bytes_))
        for time in sorted({max(time, before) for time, _ in deaths}):
            if taken - sum(one for died, one in deaths if died <= time) + size <= room.bytes:
                return [(time, step)]
        return []


def random_work(random: np.random.Generator, *, rooms: bool) -> CoreWork:
    """Steps on all engines that wait for some of those before them, and tiles that live for a while."""
    b = Builder()
    causes = (Cause.DATA, Cause.BUFFER_READ, Cause.BUFFER_WRITTEN)
    for step in range(40):
        others = random.permutation(step)[: int(random.integers(3))].tolist()
        dependencies = [(one, causes[int(random.integers(3))]) for one in others]
        if random.random() < 0.4:
            b.step(DMA, transfer(*random.uniform(0.5, 9, 2), hbm=random.uniform(0.1, 6)), *dependencies)
        else:
            engine = (PE, VECTOR, SCALAR, GPSIMD)[int(random.integers(4))]
            b.step(engine, float(random.uniform(0.5, 9)), *dependencies)
    if not rooms:
        return b.work()
    tiles = [sorted(int(one) for one in random.integers(step, min(step + 6, 40), 3)) for step in range(0, 40, 3)]
    used_by = tuple(tuple(tile for tile, users in enumerate(tiles) if step in users) for step in range(40))
    sizes = tuple(int(one) for one in random.integers(1, 4, len(tiles)))
    wants = [(step, sum(sizes[tile] for tile, users in enumerate(tiles) if users[0] == step)) for step in range(40)]
    alive = max(
        sum(size for users, size in zip(tiles, sizes, strict=True) if users[0] <= step <= users[-1])
        for step in range(40)
    )
    uses = tuple(len(set(users)) for users in tiles)
    return b.work([Room(Space.SBUF, alive, sizes, used_by, tuple(one for one in wants if one[1]), uses)])


@pytest.mark.parametrize(
    "machine", [MACHINE, SHARING, replace(MACHINE, reorders=True), replace(SHARING, reorders=True)]
)
@pytest.mark.parametrize("rooms", [False, True])
def test_random_programs_as_the_slow_scheduler_has_them(machine: Machine, rooms: bool) -> None:
    random = np.random.default_rng(22)
    for _ in range(25):
        work = random_work(random, rooms=rooms)
        found = run(work, machine=machine)
        start, end = Slow(work, machine).run()
        assert found.start == pytest.approx(start)
        assert found.end == pytest.approx(end)
        for step, by in enumerate(found.by):
            assert found.counted_from[step] <= found.end[step]
            assert by < 0 or found.start[by] <= found.counted_from[step]
