"""Runs plans: on the arrays of this process, as interactive use does, or on data given by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from numpy.typing import NDArray

from triptych.core.errors import ArgumentError, KernelFault, PlanError
from triptych.core.handles import Handle, Storage
from triptych.core.plan import Launch, Plan, Program
from triptych.core.validate import check_plan, storages_of
from triptych.execution.call_site import call_site
from triptych.execution.host import host_array
from triptych.execution.host_memory import Bytes, Extent, window
from triptych.execution.launch_report import LaunchReport
from triptych.execution.memory import Memory
from triptych.execution.memory import memory as memory_in_force
from triptych.execution.nodes import Choice, State, run_nodes, run_one
from triptych.execution.records import record_launch, record_of
from triptych.execution.variables import device_of

__all__ = ["Choice", "PlanRun", "note_stopped", "run_launch_here", "run_plan", "run_plan_here"]


@dataclass(frozen=True, slots=True)
class PlanRun:
    """What running a plan gave: the launches in order (of alternatives, the winners'), and the outputs as arrays."""

    launches: tuple[LaunchReport, ...]
    outputs: tuple[NDArray[Any], ...]
    """In the order of the plan's own; views of the memory that the plan ran on."""
    choices: tuple[Choice, ...]


def run_plan(plan: Plan, data: Mapping[str, object]) -> PlanRun:
    """Runs `plan` on `data`: one C-ordered array for each storage that the plan does not make itself, by its name.

    The arrays are not copied; what the plan writes to an input is written to them. The device is a new one: variables
    of modules have their initial values until the plan sets them, and nothing is allocated on the heap. Open profiles
    note every launch, also one that a fault stops.

    Raises:
        PlanError: where the plan is inconsistent, or `data` has too few or too many names.
        ArgumentError: where an array does not fit its storage.
        LaunchError: where a launch does not fit the chip in force or the kernel.
        KernelFault: where a kernel did what a device forbids.
    """
    recorder = memory_in_force().recorder
    if recorder is not None:
        raise recorder.refuse("run_plan runs a plan on data")
    check_plan(plan)
    return _run(plan, State(_bind(plan, data), call_site=call_site()))


def run_plan_here(plan: Plan, memory: Memory, remarks: tuple[str, ...] = ()) -> PlanRun:
    """Runs a plan whose handles are `memory`'s: on the arrays that these were bound to, and all that those point to.

    Where a recorder is in force, it is noted, and the outputs are arrays without values.
    The device is the process's: variables of modules and the heap are as the last launch left them.
    What the plan allocates keeps its device address as long as an output that views it lives. Open profiles note every
    launch, also one that a fault stops, with the `remarks` of the language.

    Raises:
        PlanError: where the plan uses what is neither in `memory` nor made by itself.
        LaunchError: where a launch does not fit the chip in force or the kernel.
        KernelFault: where a kernel did what a device forbids.
    """
    if memory.recorder is not None:
        return PlanRun((), cast("tuple[NDArray[Any], ...]", memory.recorder.run_plan(plan)), ())
    state = State(memory.map(), device_of(memory), call_site(), remarks)
    run = _run(plan, state)
    for storage in plan.made:
        memory.adopt(storage, state.buffers[storage])
    return run


def run_launch_here(program: Program, launch: Launch, memory: Memory, remarks: tuple[str, ...] = ()) -> LaunchReport:
    """Runs the plan of one launch as `run_plan_here` does, and quicker: interactive use, a launch at a time.

    Where a recorder is in force, it is noted.

    Raises:
        LaunchError: where the launch does not fit the chip in force or the kernel.
        KernelFault: where the kernel did what a device forbids.
    """
    if memory.recorder is not None:
        return memory.recorder.launch(program, launch)
    buffers, owners = memory.lend()
    state = State(buffers, device_of(memory), call_site(), remarks)
    report: LaunchReport | None = None
    try:
        run_one(program, launch, state)
    finally:
        for record in state.records:
            report = record_launch(record)
        del owners  # they have kept the bytes until here
    assert report is not None
    return report


def note_stopped(program: Program, launch: Launch, fault: KernelFault) -> None:
    """Open profiles note a launch that a fault stopped while its plan was being made: in a kernel's own Python."""
    record_launch(record_of(program, launch, fault, call_site()))


def _run(plan: Plan, state: State) -> PlanRun:
    reports: tuple[LaunchReport, ...] = ()
    try:
        run_nodes(plan, {}, state)
    finally:
        reports = tuple(record_launch(record) for record in state.records)
    outputs = tuple(state.array(handle) for handle in plan.outputs)
    return PlanRun(reports, outputs, tuple(state.choices))


def _bind(plan: Plan, data: Mapping[str, object]) -> dict[Storage, Bytes]:
    if not isinstance(data, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # whatever a caller gave
        raise PlanError(
            f"plan: expected data by the names of storages, got {type(data).__name__}",
            hint="run_plan(plan, {name: array})",
        )
    made = plan.made
    wanted = {storage.name: storage for storage in storages_of(plan) if storage not in made}
    missing, superfluous = wanted.keys() - data.keys(), data.keys() - wanted.keys()
    for label, wrong in (("missing", missing), ("unknown", superfluous)):
        if wrong:
            names = ", ".join(wanted) or "none"
            raise PlanError(f"plan: it takes data for: {names}; {label}: {', '.join(sorted(map(str, wrong)))}")
    return {storage: _bytes_of(data[name], storage) for name, storage in wanted.items()}


def _bytes_of(array: object, storage: Storage) -> Bytes:
    host = host_array(array)
    layout = Handle(storage, host.dtype, host.shape, host.strides)
    if layout.nbytes != storage.size or not layout.contiguous:
        raise ArgumentError(
            f"data for '{storage.name}': expected {storage.size} bytes in C order, got {host.label},"
            f" {layout.nbytes} bytes{'' if layout.contiguous else ' with gaps'}"
        )
    if storage.writable and not host.owner.extent.writable:
        raise ArgumentError(f"data for '{storage.name}': the plan may write it, but the array is read-only")
    return window(Extent(host.start, storage.size, storage.writable), array)
