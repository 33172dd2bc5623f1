"""The machine's entry: a launch of a serialised trace on the caller's memory -> what happened."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from triptych.core.checks import Check, in_force
from triptych.core.collection import uncollected
from triptych.core.errors import ArgumentError, LaunchError, NkiLimitError, PlanError
from triptych.core.handles import Handle, Storage
from triptych.core.launches import Account, Executed, Finding, Observed
from triptych.core.output import write_output
from triptych.core.plan import Argument, Launch, LaunchShape, Program
from triptych.core.source import SourceLocation
from triptych.core.touched import Touched, is_noting_touched
from triptych.neuron.isa.capacity import verify_capacity
from triptych.neuron.isa.hardware import Hardware, Space, hardware
from triptych.neuron.isa.occupancy import peak_of, tiles_of
from triptych.neuron.isa.row import Surroundings
from triptych.neuron.isa.serialise import from_json
from triptych.neuron.isa.trace import GENERATIONS, Tensor, Trace
from triptych.neuron.isa.verify import Verifier
from triptych.neuron.run.buffers import Buffer, Known, Pool, new_buffer
from triptych.neuron.run.checks import outputcheck, timecheck
from triptych.neuron.run.findings import Findings
from triptych.neuron.run.meetings import run_programs
from triptych.neuron.run.program import ProgramRun
from triptych.neuron.run.program_facts import ProgramFacts
from triptych.neuron.run.shadow import Shadow
from triptych.neuron.run.tally import Counts, Tally

_CACHED_TRACES = 32
_CHECKS_BY_DEFAULT = in_force("neuron")

Memory = Mapping[Storage, NDArray[np.uint8]]


def run_launch(
    program: Program, launch: Launch, memory: Memory, checks: frozenset[Check] = _CHECKS_BY_DEFAULT
) -> Observed:
    """Execute a Neuron program on `memory`, the bytes of every storage that its arguments view.

    Only the `checks` look at it; those of the machine by default.

    Raises:
        NkiError: where an instruction breaks a rule of its row.
        ArgumentError: where an argument is not what the trace was made for.
        LaunchError: where the grid is not the trace's, or the launch has blocks, clusters or shared memory.
        PlanError: where the program is no trace.
    """
    loaded = _loaded_program(program)
    trace = loaded.trace
    if launch.grid != full_grid(trace.grid):
        raise LaunchError(f"the trace was made for the grid {full_grid(trace.grid)}; the launch has {launch.grid}")
    if launch.shape != LaunchShape(launch.grid):
        raise LaunchError(f"{trace.kernel}: a launch on a NeuronCore has a grid alone; this is {launch.shape}")
    pool, findings = Pool(), Findings(checks, trace.notices)
    shared = _bind_arguments(trace, launch.arguments, memory, pool)
    with np.errstate(all="ignore"):
        runs = [ProgramRun(trace, index, one, shared, pool, findings) for index, one in enumerate(loaded.facts)]
        try:
            run_programs(runs, trace.kernel, lambda: _synchronise(shared))
        finally:
            write_output("".join(text for run in runs for text in run.printed))
    outputcheck(findings, (shared[index] for index in trace.outputs))
    steps = tuple(run.steps for run in runs)
    timecheck(findings, trace, steps)
    tally = loaded.tally or _tally(loaded.facts, steps)
    account = Account.of(tally.counters(_launch_counters(loaded.peaks, shared)), tally.lines())
    touched = _touched(launch, trace, shared) if is_noting_touched() else ()
    return Observed(account, findings.all(), Executed(_kept(program), steps), touched=touched)


def _touched(launch: Launch, trace: Trace, shared: Mapping[int, Buffer]) -> tuple[Touched, ...]:
    """What was loaded and stored of the storages that the arguments view."""
    found: dict[Storage, Touched] = {}
    for index, argument in zip(trace.arguments, launch.arguments, strict=True):
        shadow = shared[index].shadow
        assert isinstance(argument, Handle)
        assert shadow is not None
        found[argument.storage] = Touched(argument.storage, 1, *shadow.touched())
    return tuple(found.values())


@lru_cache(_CACHED_TRACES)
def _kept(program: Program) -> Program:
    """One object for all equal programs, so that the records of many launches hold one text."""
    return program


def _synchronise(shared: Mapping[int, Buffer]) -> None:
    """The programs met."""
    for shadow in {id(one.shadow): one.shadow for one in shared.values() if one.shadow is not None}.values():
        shadow.synchronise()


def full_grid(grid: tuple[int, ...]) -> tuple[int, int, int]:
    """An SPMD grid of any rank as three numbers: axes behind the second are joined into the third."""
    padded = (*grid, 1, 1, 1)
    return padded[0], padded[1], prod(grid[2:])


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A verified trace, the limits of its target, and what running it needs to know of its programs."""

    trace: Trace
    limits: Hardware
    facts: tuple[ProgramFacts, ...]
    peaks: Mapping[str, int]
    """The counters of the most bytes of SBUF and PSUM that its tiles take."""
    tally: Tally | None
    """What it counts, where no loop decides how often."""


def load_trace(program: Program) -> tuple[Trace, Hardware]:
    """The verified trace of a program, and the limits of its target."""
    loaded = _loaded_program(program)
    return loaded.trace, loaded.limits


def _loaded_program(program: Program) -> _Loaded:
    if program.machine != "neuron":
        raise PlanError(f"a program for the machine '{program.machine}' was given to the Neuron machine")
    return _load(program.text, program.target)


@lru_cache(_CACHED_TRACES)
def _load(text: str, target: str) -> _Loaded:
    with uncollected():
        return _loaded(text, target)


def _loaded(text: str, target: str) -> _Loaded:
    trace, limits = from_json(text), hardware(target)
    if hardware(trace.target) is not limits:
        raise PlanError(f"a trace for {trace.target} in a program for {target}")
    if trace.generation not in GENERATIONS:
        raise PlanError(f"a trace of the generation '{trace.generation}'; there are {', '.join(GENERATIONS)}")
    if any(count < 1 for count in trace.grid) or len(trace.programs) != prod(trace.grid):
        raise PlanError(f"a trace of {len(trace.programs)} programs for the grid {trace.grid}")
    try:
        _check_tensors(trace, limits)
        notices: list[Finding] | None = [] if trace.lenient else None
        around = Surroundings(trace.tensors, limits, trace.generation, trace.grid, frozenset(trace.arguments))
        verifier = Verifier(around, notices)
        for program in trace.programs:
            for instruction in program:
                verifier.verify(instruction)
            verify_capacity(program, trace.tensors, limits, trace.generation, notices)
        facts = tuple(ProgramFacts.of(trace, index, limits) for index in range(len(trace.programs)))
        peaks = _peaks(trace)
    except (AssertionError, AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise PlanError(f"a damaged Neuron trace: {type(error).__name__}: {error}") from error
    tally = None if any(one.ends for one in facts) else _tally(facts, [range(len(one.steps)) for one in facts])
    return _Loaded(trace, limits, facts, peaks, tally)


def _tally(facts: Sequence[ProgramFacts], executed: Sequence[Sequence[int]]) -> Tally:
    """The counters of executed steps, of each program of the grid."""
    found: defaultdict[tuple[SourceLocation, Counts], int] = defaultdict(int)
    for one, indices in zip(facts, executed, strict=True):
        for at in indices:
            step = one.steps[at]
            found[step.instruction.where, step.kind.counts] += 1
    return Tally(found)


def _check_tensors(trace: Trace, limits: Hardware) -> None:
    for tensor in trace.tensors:
        partitions = limits.partitions if tensor.space.on_chip else 1
        if tensor.alias is not None:
            _check_alias(tensor, trace.tensors)
        if not 1 <= tensor.partitions <= partitions or tensor.free < 1:
            raise PlanError(f"tensor `{tensor.name}` has {tensor.partitions} partitions of {tensor.free} elements")
        _check_tiles(tensor, limits)
    bound = frozenset(trace.arguments)
    scratch = [
        tensor
        for index, tensor in enumerate(trace.tensors)
        if index not in bound and tensor.alias is None and not tensor.space.on_chip
    ]
    taken = sum(tensor.bytes_per_partition for tensor in scratch)
    if taken > limits.hbm_bytes:
        raise NkiLimitError(f"{taken} bytes of scratch tensors in HBM; the limit is {limits.hbm_bytes} a core")
    for index in (*trace.arguments, *trace.outputs):
        if not 0 <= index < len(trace.tensors) or trace.tensors[index].space is not Space.HBM:
            raise PlanError(f"argument {index} of the trace is no tensor in HBM")
        if len(trace.tensors[index].strides) != len(trace.tensors[index].shape):
            raise PlanError(f"argument {index} of the trace has not as many strides as axes")


def _check_tiles(tensor: Tensor, limits: Hardware) -> None:
    """Each tile of a tensor on chip lies within the partitions of its memory."""
    if not tensor.space.on_chip or tensor.alias is not None:
        return
    last = tensor.start + tensor.partitions
    if tensor.start < 0 or last > limits.partitions or tensor.blocks < 1 or tensor.free % tensor.blocks:
        raise PlanError(
            f"tensor `{tensor.name}` has {tensor.blocks} tiles of {tensor.free} elements together, at the partitions "
            f"{tensor.start} to {last - 1}"
        )


def _check_alias(tensor: Tensor, tensors: Sequence[Tensor]) -> None:
    """A view in another dtype has the memory, the partitions and the bytes of what it views."""
    assert tensor.alias is not None
    root = tensors[tensor.alias] if 0 <= tensor.alias < len(tensors) else tensor
    sizes = (root.space, root.partitions, root.bytes_per_partition)
    if root.alias is not None or sizes != (tensor.space, tensor.partitions, tensor.bytes_per_partition):
        raise PlanError(f"tensor `{tensor.name}` is a view of other bytes than it says")


def _bind_arguments(trace: Trace, arguments: tuple[Argument, ...], memory: Memory, pool: Pool) -> dict[int, Buffer]:
    """Buffers over the caller's memory for the arguments, and new ones for what all programs share."""
    if len(arguments) != len(trace.arguments):
        raise ArgumentError(f"{trace.kernel} takes {len(trace.arguments)} tensors; the launch has {len(arguments)}")
    shadows: dict[Storage, Shadow] = {}
    programs = len(trace.programs)
    buffers: dict[int, Buffer] = {}
    for index, argument in zip(trace.arguments, arguments, strict=True):
        if not isinstance(argument, Handle):
            raise ArgumentError(f"argument `{trace.tensors[index].name}` of {trace.kernel} must be a tensor")
        shadow = shadows.setdefault(argument.storage, Shadow(argument.storage.size, programs))
        buffers[index] = _bind(trace.tensors[index], argument, memory, shadow)
    for index, tensor in enumerate(trace.tensors):
        if tensor.shared and index not in buffers:
            buffers[index] = new_buffer(tensor, programs, pool)
    return buffers


def _bind(tensor: Tensor, handle: Handle, memory: Memory, shadow: Shadow) -> Buffer:
    item = tensor.dtype.bytes
    steps = tuple(
        stride // item if count > 1 else 0 for stride, count in zip(handle.strides, handle.shape, strict=True)
    )
    expected = tuple(step if count > 1 else 0 for step, count in zip(tensor.strides, tensor.shape, strict=True))
    if (handle.dtype, handle.shape, steps) != (tensor.dtype, tensor.shape, expected):
        raise ArgumentError(
            f"argument `{tensor.name}` is {handle.dtype} {list(handle.shape)} with steps {list(steps)}; "
            f"the trace was made for {tensor.dtype} {list(tensor.shape)} with steps {list(expected)}"
        )
    data = memory.get(handle.storage)
    base = handle.offset - tensor.origin * item
    if data is None or base < 0 or base + tensor.size * item > len(data):
        raise ArgumentError(f"argument `{tensor.name}` does not lie within its storage '{handle.storage.name}'")
    known = Known.of(tensor.size * item, defined=not tensor.shared)
    return Buffer(tensor, data, known, base, shadow, bool(data.flags.writeable))


def _peaks(trace: Trace) -> Mapping[str, int]:
    tiles = [tiles_of(program, trace.tensors) for program in trace.programs]
    return {
        f"{space.value}.peak_bytes": max((peak_of(one[space], trace.tensors).bytes for one in tiles), default=0)
        for space in (Space.SBUF, Space.PSUM)
    }


def _launch_counters(peaks: Mapping[str, int], shared: Mapping[int, Buffer]) -> dict[str, int]:
    shadows = {id(buffer.shadow): buffer.shadow for buffer in shared.values() if buffer.shadow is not None}
    return {
        "hbm.load.compulsory_bytes": sum(shadow.loads.marked_bytes() for shadow in shadows.values()),
        "hbm.store.compulsory_bytes": sum(shadow.stores.marked_bytes() for shadow in shadows.values()),
        **peaks,
    }
