"""What of a kernel's time could be saved: for each kind of waste the timeline without it, beside the one with it.

A rule says which instructions it is about and what the work would be without the waste; the gain is the difference of
the two simulated lengths, so that what is hidden behind something else counts for nothing. All of it is modelled.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from triptych.chips import NeuronChip
from triptych.core.checks import TIMECHECK
from triptych.core.launches import Finding
from triptych.core.source import SourceLocation
from triptych.neuron.isa.hardware import Engine, Space
from triptych.neuron.isa.row import ROWS
from triptych.neuron.isa.trace import Instruction, Region, Tensor, Trace
from triptych.neuron.timeline.causes import Cause
from triptych.neuron.timeline.costs import FLOAT32_PASSES
from triptych.neuron.timeline.schedule import CoreWork, Simulation
from triptych.neuron.timeline.timeline import Timeline, timeline_of
from triptych.neuron.timeline.transfers import FULL_BYTES, Transfer
from triptych.neuron.timeline.work import Work, work_of

LEAST_GAIN = 0.03
"""Of the kernel's time; what would save less is not told."""
SMALL_BYTES = 512
"""Descriptors below it are told of. Source: the NKI DMA bandwidth guide."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What was executed, and its timeline."""

    trace: Trace
    steps: Sequence[Sequence[int]]
    chip: NeuronChip
    timeline: Timeline

    def where(self, concerned: Callable[[int], float]) -> tuple[int, SourceLocation | None]:
        """How many steps are concerned, and the line with most of it; `concerned` weighs a step, 0 for not at all."""
        weights: defaultdict[SourceLocation, float] = defaultdict(float)
        count = 0
        for step, instruction in enumerate(self.timeline.instructions):
            weight = concerned(step)
            if weight > 0:
                count += 1
                weights[instruction.where] += weight
        return count, max(weights, key=weights.__getitem__, default=None)


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of waste."""

    concerns: Callable[[Launch], Callable[[int], float]]
    """Weighs steps: by the seconds that are wasted, 0 where a step has none of it."""
    without: Callable[[Launch], float]
    """The kernel's seconds without the waste."""
    message: str
    """With `{count}` for the instructions, and `{saving}` for what is saved."""
    hint: str


def _again(launch: Launch, change: Callable[[CoreWork, int], CoreWork], setup_seconds: float | None = None) -> float:
    """The length of the timeline of changed work; `change` is given each core and the number of its first step."""
    work, offsets = launch.timeline.work, launch.timeline.schedule.offsets
    machine = work.machine if setup_seconds is None else replace(work.machine, setup_seconds=setup_seconds)
    cores = [change(core, first) for core, first in zip(work.cores, offsets, strict=True)]
    return max(Simulation(cores, machine).run().end, default=0.0)


def _all_transfers(launch: Launch) -> list[Transfer | None]:
    return [one for core in launch.timeline.work.cores for one in core.transfers]


# Descriptors


def _wasted(transfer: Transfer | None, *, strided: bool, instruction: Instruction, tensors: Sequence[Tensor]) -> float:
    """Seconds of a transfer beyond those of its bytes, where its descriptors are small for the reason that is meant."""
    if transfer is None or transfer.descriptor_bytes >= SMALL_BYTES or _strided(instruction, tensors) is not strided:
        return 0.0
    return transfer.seconds * (1 - transfer.descriptor_bytes / FULL_BYTES)


def _strided(instruction: Instruction, tensors: Sequence[Tensor]) -> bool:
    """Whether neighbours of an end of a transfer do not lie side by side."""
    ends = [one for one in instruction.operands.values() if isinstance(one, Region)]
    for end in ends:
        pattern = end.pattern[1:] if tensors[end.tensor].space.on_chip else end.pattern
        steps = [step for step, count in pattern if count > 1]
        if steps and steps[-1] != 1:
            return True
    return False


def _small(strided: bool) -> Callable[[Launch], Callable[[int], float]]:
    def concerns(launch: Launch) -> Callable[[int], float]:
        transfers, instructions = _all_transfers(launch), launch.timeline.instructions
        tensors = launch.timeline.work.tensors
        return lambda step: _wasted(transfers[step], strided=strided, instruction=instructions[step], tensors=tensors)

    return concerns


def _in_full(transfer: Transfer) -> Transfer:
    """The transfer with descriptors of full size."""
    part = transfer.descriptor_bytes / FULL_BYTES
    return replace(transfer, engines=tuple((engine, seconds * part) for engine, seconds in transfer.engines))


def _with_full_descriptors(strided: bool) -> Callable[[Launch], float]:
    def without(launch: Launch) -> float:
        weigh = _small(strided)(launch)

        def fuller(core: CoreWork, first: int) -> CoreWork:
            moved = [one and (_in_full(one) if weigh(step) else one) for step, one in enumerate(core.transfers, first)]
            return replace(core, transfers=moved)

        return _again(launch, fuller)

    return without


# Movement


def _unhidden(launch: Launch) -> Callable[[int], float]:
    """Transfers, by their part of the critical path."""
    shares = dict(launch.timeline.shares())
    instructions = launch.timeline.instructions
    return lambda step: shares.get(step, 0.0) if instructions[step].engine is Engine.DMA else 0.0


def _without_movement(launch: Launch) -> float:
    def still(core: CoreWork, _: int) -> CoreWork:
        free = Transfer(0, 0, 0, (), 0.0)
        return replace(core, transfers=[one and free for one in core.transfers])

    return _again(launch, still, 0.0)


# Buffers

_BUFFERS = frozenset({Cause.BUFFER_READ, Cause.BUFFER_WRITTEN})


def _waits_for(causes: frozenset[Cause]) -> Callable[[Launch], Callable[[int], float]]:
    """Steps that began late for a cause, by what they waited."""

    def concerns(launch: Launch) -> Callable[[int], float]:
        schedule = launch.timeline.schedule

        def weigh(step: int) -> float:
            by = schedule.by[step]
            late = schedule.start[step] - (schedule.start[by] if by >= 0 else 0.0)
            return late if schedule.cause[step] in causes else 0.0

        return weigh

    return concerns


def _with_more_buffers(launch: Launch) -> float:
    def renamed(core: CoreWork, _: int) -> CoreWork:
        kept = [tuple(one for one in found if one[1] not in _BUFFERS) for found in core.dependencies]
        return replace(core, dependencies=kept)

    return _again(launch, renamed)


def _with_more_room(launch: Launch) -> float:
    return _again(launch, lambda core, _: replace(core, rooms=()))


def _spills(launch: Launch) -> Callable[[int], float]:
    """Transfers that save tiles and bring them back."""
    work, schedule = launch.timeline.work, launch.timeline.schedule
    own = [at in added for core, added in zip(work.cores, work.added, strict=True) for at in core.instructions]
    return lambda step: schedule.end[step] - schedule.start[step] if own[step] else 0.0


def _without_spills(launch: Launch) -> float:
    """The kernel where SBUF holds all of its tiles."""
    work = work_of(launch.trace, launch.steps, launch.chip, spills=False)
    cores = [replace(one, rooms=()) for one in work.cores]
    return max(Simulation(cores, work.machine).run().end, default=0.0)


# The Tensor engine


def _float32(launch: Launch) -> Callable[[int], float]:
    timeline, tensors = launch.timeline, launch.timeline.work.tensors

    def weigh(step: int) -> float:
        one = timeline.instructions[step]
        if one.engine is not Engine.TENSOR or one.attributes.get("is_transpose"):
            return 0.0
        names = [name for name in ("stationary", "moving") if name in one.operands]
        wide = any(tensors[one.region(name).tensor].dtype.name == "f32" for name in names)
        return timeline.schedule.end[step] - timeline.schedule.start[step] if wide else 0.0

    return weigh


def _in_one_pass(launch: Launch) -> float:
    weigh = _float32(launch)

    def faster(core: CoreWork, first: int) -> CoreWork:
        taken = enumerate(core.seconds, first)
        return replace(core, seconds=[one / FLOAT32_PASSES if weigh(step) else one for step, one in taken])

    return _again(launch, faster)


# Work on another engine

_ELEMENTWISE = (Engine.VECTOR, Engine.SCALAR, Engine.GPSIMD)


def _busiest(launch: Launch, among: Sequence[Engine] = _ELEMENTWISE) -> tuple[Engine, Engine]:
    """The engine of some that works most, and the one that works least."""
    busy = launch.timeline.busy
    ordered = sorted(among, key=lambda one: busy.get(one, 0.0))
    return ordered[-1], ordered[0]


def _movable(instruction: Instruction, tensors: Sequence[Tensor], source: Engine, target: Engine) -> bool:
    """Whether an instruction could run on another engine."""
    if instruction.engine is not source or target not in ROWS[instruction.operation].engines:
        return False
    in_psum = any(tensors[one.tensor].space is Space.PSUM for one in instruction.regions())
    return target.facts.reaches_psum or not in_psum


def _evacuates(instruction: Instruction, tensors: Sequence[Tensor]) -> bool:
    """Whether it does no more than copy a tile out of PSUM."""
    source = instruction.operands.get("src")
    return (
        instruction.operation == "tensor_copy"
        and isinstance(source, Region)
        and tensors[source.tensor].space is Space.PSUM
    )


def _moves(evacuations: bool) -> Callable[[Launch], Callable[[int], float]]:
    def concerns(launch: Launch) -> Callable[[int], float]:
        timeline, tensors = launch.timeline, launch.timeline.work.tensors
        source, target = _busiest(launch, _PSUM_ENGINES if evacuations else _ELEMENTWISE)

        def weigh(step: int) -> float:
            one = timeline.instructions[step]
            meant = _movable(one, tensors, source, target) and _evacuates(one, tensors) is evacuations
            return timeline.schedule.end[step] - timeline.schedule.start[step] if meant else 0.0

        return weigh

    return concerns


_PSUM_ENGINES = (Engine.VECTOR, Engine.SCALAR)


def _elsewhere(evacuations: bool) -> Callable[[Launch], float]:
    """The kernel with those instructions on the idler engine: evacuations all, others every second one."""

    def without(launch: Launch) -> float:
        tensors = launch.trace.tensors
        source, target = _busiest(launch, _PSUM_ENGINES if evacuations else _ELEMENTWISE)
        seen = 0
        programs: list[tuple[Instruction, ...]] = []
        for program in launch.trace.programs:
            moved: list[Instruction] = []
            for one in program:
                meant = _movable(one, tensors, source, target) and _evacuates(one, tensors) is evacuations
                seen += meant
                moved.append(replace(one, engine=target) if meant and (evacuations or seen % 2) else one)
            programs.append(tuple(moved))
        return timeline_of(replace(launch.trace, programs=tuple(programs)), launch.steps, launch.chip).seconds

    return without


RULES: Sequence[Rule] = (
    Rule(
        _small(strided=False), _with_full_descriptors(strided=False),
        f"{{count}} transfers move rows of less than {SMALL_BYTES} bytes; with rows of {FULL_BYTES}, no slower,"
        " the kernel takes {saving} less",
        f"load wider tiles: rows of {FULL_BYTES} bytes and more in each partition use the DMA engines fully",
    ),
    Rule(
        _small(strided=True), _with_full_descriptors(strided=True),
        f"{{count}} transfers walk memory with a step, so that each run of it takes as long as {FULL_BYTES} bytes;"
        " without steps the kernel takes {saving} less",
        "load rows that lie side by side and rearrange them on the chip: nisa.nc_transpose, or a tile's own steps",
    ),
    Rule(
        _float32, _in_one_pass,
        f"{{count}} products of float32 take {FLOAT32_PASSES} passes of the Tensor engine each; of bfloat16 the kernel"
        " takes {saving} less",
        "give nc_matmul bfloat16 where that is exact enough: it accumulates in float32 all the same",
    ),
    Rule(
        _waits_for(_BUFFERS), _with_more_buffers,
        "{count} instructions wait for a buffer that is still in use; with a new one each time the kernel takes"
        " {saving} less",
        "declare the tile inside the loop, or use two in turns, so that a load and the work on the last one overlap",
    ),
    Rule(
        _waits_for(frozenset({Cause.SPACE})), _with_more_room,
        "{count} instructions wait for room in SBUF or PSUM, which tiles take for long; with room for all the kernel"
        " takes {saving} less",
        "use smaller tiles, or each for the last time earlier; the compiler would spill what does not fit",
    ),
    Rule(
        _spills, _without_spills,
        "{count} transfers save tiles to HBM and bring them back, as SBUF cannot hold all that is used again; with room"
        " for all the kernel takes {saving} less",
        "use a tile for the last time before the next is loaded: smaller tiles, or loops in another order",
    ),
    Rule(
        _unhidden, _without_movement,
        "{count} transfers are not hidden behind the engines' work; if all were the kernel takes {saving} less",
        "keep in SBUF what is used again, begin loads earlier, or give each load more work",
    ),
    Rule(
        _moves(evacuations=True), _elsewhere(evacuations=True),
        "{count} copies out of PSUM run on the busier of the Vector and Scalar engines; on the other the kernel takes"
        " {saving} less",
        "choose the engine: nisa.tensor_copy(…, engine=…), or nisa.activation(op=nl.copy, …) for the Scalar engine",
    ),
    Rule(
        _moves(evacuations=False), _elsewhere(evacuations=False),
        "{count} instructions run on the busiest engine that the idlest could execute; with every second one there the"
        " kernel takes {saving} less",
        "give some of them engine=…: the Vector, Scalar and GPSIMD engines work at the same time",
    ),
)  # fmt: skip
"""The table."""


def advice(trace: Trace, steps: Sequence[Sequence[int]], chip: NeuronChip) -> Iterator[Finding]:
    """What would make a kernel faster on a chip, the rule that saves most first; nothing that saves next to nothing."""
    work: Work = work_of(trace, steps, chip)
    launch = Launch(trace, steps, chip, Timeline(work, Simulation(work.cores, work.machine).run()))
    found: list[tuple[float, Finding]] = []
    for rule in RULES:
        count, where = launch.where(rule.concerns(launch))
        if not count:
            continue
        gain = launch.timeline.seconds - rule.without(launch)
        if gain >= LEAST_GAIN * launch.timeline.seconds:
            found.append((gain, _finding(rule, count, gain, launch.timeline.seconds, where)))
    yield from (finding for _, finding in sorted(found, key=lambda one: -one[0]))


def _finding(rule: Rule, count: int, gain: float, seconds: float, where: SourceLocation | None) -> Finding:
    saving = f"{1e6 * gain:.4g} of {1e6 * seconds:.4g} µs ({gain / seconds:.0%})"
    message = f"{rule.message.format(count=count, saving=saving)}: modelled"
    return Finding(TIMECHECK.name, TIMECHECK.severity, message, where, hint=rule.hint)
