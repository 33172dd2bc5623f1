"""Executes a plan's nodes in their order over the bytes of its storages; the alternatives of a `Choose` on clones."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from triptych import gpu
from triptych.core.errors import KernelFault, LaunchError, PlanError
from triptych.core.handles import Handle, Storage
from triptych.core.launches import LaunchRecord
from triptych.core.plan import Allocate, Choose, Constant, Copy, Fill, Launch, Plan, Program, SetVariable
from triptych.core.source import SourceLocation
from triptych.execution.arrays import undefined_byte
from triptych.execution.demangle import readable
from triptych.execution.dispatch import execute
from triptych.execution.host_memory import Bytes, view
from triptych.execution.modelling import roofline_of
from triptych.execution.profile import active_chip
from triptych.execution.records import record_of
from triptych.execution.variables import store

PHYSICAL_BYTES = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
"""The host's memory."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a `Choose` node came to: the label of the winner, and modelled seconds by label.

    `refused` has the alternatives that could not be launched, with the reason.
    """

    label: str
    seconds: Mapping[str, float]
    refused: Mapping[str, str]


@dataclass(slots=True)
class State:
    """The memory that a plan, or one alternative of it, runs on, and what happened there."""

    buffers: dict[Storage, Bytes]
    device: gpu.DeviceMemory = field(default_factory=lambda: gpu.DeviceMemory())
    """What kernels keep on the device itself."""
    call_site: SourceLocation | None = None
    """The line of the author's program that the plan is run for."""
    remarks: tuple[str, ...] = ()
    """What the language says of the launches' arguments."""
    records: list[LaunchRecord] = field(default_factory=list[LaunchRecord])
    choices: list[Choice] = field(default_factory=list[Choice])

    def array(self, handle: Handle) -> NDArray[Any]:
        """The handle's elements, a view.

        Raises:
            PlanError: where nothing has allocated them yet.
        """
        self.require((handle,))
        return view(self.buffers[handle.storage], handle)

    def require(self, handles: Iterable[Handle]) -> None:
        """Raises `PlanError` where nothing has allocated a handle's storage yet."""
        for handle in handles:
            if handle.storage not in self.buffers:
                raise PlanError(f"plan: '{handle.storage.name}' is used where nothing has allocated it yet")

    def clone(self) -> State:
        """A copy of all that may be written; what is read-only is shared.

        Raises:
            PlanError: where the host has no memory for it.
        """
        try:
            device = self.device.clone()
            copies = {one: data.copy() if data.flags.writeable else data for one, data in self.buffers.items()}
        except MemoryError as error:
            raise PlanError("plan: the host has no memory for a copy of all arrays, for one alternative") from error
        return State(copies, device, self.call_site, self.remarks)

    def become(self, other: State) -> None:
        """Takes over what ran on a clone. The memory stays where it is, since the outputs are views of it."""
        for storage, data in other.buffers.items():
            mine = self.buffers.setdefault(storage, data)
            if mine is not data:
                np.copyto(mine, data)
        self.device.become(other.device)
        self.records += other.records
        self.choices += other.choices


def run_nodes(plan: Plan, programs: Mapping[str, Program], state: State) -> None:
    """Executes the nodes; `programs` are those of the plans around this one.

    Raises:
        PlanError: where a node uses what nothing has allocated, or a variable that its program has not, or the host has
            no memory for it.
        LaunchError: where a launch does not fit the chip in force or the kernel.
        KernelFault: where a kernel did what a device forbids; the launch is among the state's records.
    """
    programs = {**programs, **plan.programs}
    for node in plan.nodes:
        state.require(node.handles)
        match node:
            case Allocate(storage):
                state.buffers[storage] = _allocate(storage)
            case Constant(storage, contents):
                state.buffers[storage] = np.frombuffer(bytearray(contents), np.uint8)
            case Fill(target, value):
                state.array(target)[...] = value if target.dtype.is_float else int(value)
            case Copy(target, source):
                np.copyto(state.array(target), state.array(source))
            case SetVariable():
                store(state.device, programs[node.program], node)
            case Launch():
                run_one(programs[node.program], node, state)
            case Choose():
                _choose(node, programs, state)
            case _:
                assert_never(node)


def run_one(program: Program, launch: Launch, state: State) -> None:
    """Executes one launch, and adds its record to the state's: also that of one that a fault stops.

    Raises:
        LaunchError: where it does not fit the chip in force or the kernel.
        KernelFault: where the kernel did what a device forbids.
    """
    try:
        seen = execute(program, launch, state.buffers, state.device)
        state.records.append(record_of(program, launch, seen, state.call_site, state.remarks))
    except KernelFault as fault:
        state.records.append(record_of(program, launch, fault, state.call_site, state.remarks))
        raise
    except KeyboardInterrupt as stop:
        stop.add_note(f"while kernel '{readable(launch.entry)}' ran")
        raise


def _allocate(storage: Storage) -> Bytes:
    try:
        if storage.size > PHYSICAL_BYTES:  # a host that gives out more than it has would end this process later
            raise MemoryError
        return np.full(storage.size, undefined_byte(), np.uint8)
    except MemoryError as error:
        raise PlanError(f"plan: the host has no memory for '{storage.name}', {storage.size} bytes") from error


def _choose(node: Choose, programs: Mapping[str, Program], state: State) -> None:
    """Runs each alternative on a clone, at most two clones at a time, and keeps the one of the least modelled time."""
    seconds: dict[str, float] = {}
    refused: dict[str, LaunchError] = {}
    best: tuple[str, State] | None = None
    for label, alternative in zip(node.labels, node.alternatives, strict=True):
        trial = state.clone()
        try:
            run_nodes(alternative, programs, trial)
        except LaunchError as error:
            refused[label] = error
            continue
        except KernelFault:
            state.records += trial.records
            raise
        seconds[label] = sum(_modelled_seconds(record) for record in trial.records)
        if best is None or seconds[label] < seconds[best[0]]:
            best = label, trial
    if best is None:
        raise next(iter(refused.values()))
    state.become(best[1])
    state.choices.append(Choice(best[0], seconds, {label: error.message for label, error in refused.items()}))


def _modelled_seconds(record: LaunchRecord) -> float:
    return roofline_of(record, active_chip(record.machine)).estimate_s
