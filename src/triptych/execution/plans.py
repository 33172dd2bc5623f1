"""Runs a whole plan on data: every node in its order, the alternatives of a `Choose` on clones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.core.arrays import Handle, Storage
from triptych.core.errors import ArgumentError, LaunchError, PlanError
from triptych.core.plan import Allocate, Choose, Constant, Copy, Fill, Launch, Plan, Program
from triptych.core.validate import check_plan, handles_of, storages_of
from triptych.execution.arrays import UNDEFINED_BYTE
from triptych.execution.dispatch import execute
from triptych.execution.host import host_array
from triptych.execution.layout import Bytes, Extent, view, window
from triptych.execution.profile import LaunchReport, active_chip, record_launch


@dataclass(frozen=True, slots=True)
class Choice:
    """What a `Choose` node came to: the label of the winner, and modelled seconds by label.

    `refused` has the alternatives that could not be launched, with the reason.
    """

    label: str
    seconds: Mapping[str, float]
    refused: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PlanRun:
    """What running a plan gave: the launches in order (of alternatives, the winners'), and the outputs as arrays."""

    launches: tuple[LaunchReport, ...]
    outputs: tuple[NDArray[Any], ...]
    """In the order of the plan's own; views of the memory that the plan ran on."""
    choices: tuple[Choice, ...]


@dataclass(slots=True)
class _State:
    """The memory that a plan, or one alternative of it, runs on, and what happened there."""

    buffers: dict[Storage, Bytes]
    launches: list[LaunchReport] = field(default_factory=list[LaunchReport])
    choices: list[Choice] = field(default_factory=list[Choice])

    def clone(self) -> _State:
        """A copy of all that may be written; what is read-only is shared."""
        return _State(
            {storage: data.copy() if data.flags.writeable else data for storage, data in self.buffers.items()}
        )

    def become(self, other: _State) -> None:
        """Takes over what ran on a clone. The memory stays where it is, since the outputs are views of it."""
        for storage, data in other.buffers.items():
            mine = self.buffers.setdefault(storage, data)
            if mine is not data:
                np.copyto(mine, data)
        self.launches += other.launches
        self.choices += other.choices


def run_plan(plan: Plan, data: Mapping[str, object]) -> PlanRun:
    """Runs `plan` on `data`: one C-ordered array for each storage that the plan does not make itself, by its name.

    The arrays are not copied; what the plan writes to an input is written to them.

    Raises:
        PlanError: where the plan is inconsistent, or `data` has too few or too many names.
        ArgumentError: where an array does not fit its storage.
        KernelFault: where a kernel did what a device forbids.
    """
    check_plan(plan)
    state = _State(_bind(plan, data))
    try:
        _run_nodes(plan, {}, state)
    finally:
        for report in state.launches:
            record_launch(report.record)
    _check_made(plan.outputs, state)
    outputs = tuple(view(state.buffers[handle.storage], handle) for handle in plan.outputs)
    return PlanRun(tuple(state.launches), outputs, tuple(state.choices))


def _made(plan: Plan) -> set[Storage]:
    """The storages that the plan makes itself."""
    made: set[Storage] = set()
    for node in plan.nodes:
        match node:
            case Allocate() | Constant():
                made.add(node.storage)
            case Choose():
                made.update(*(_made(alternative) for alternative in node.alternatives))
            case _:
                pass
    return made


def _bind(plan: Plan, data: Mapping[str, object]) -> dict[Storage, Bytes]:
    made = _made(plan)
    wanted = {storage.name: storage for storage in storages_of(plan) if storage not in made}
    missing, superfluous = wanted.keys() - data.keys(), data.keys() - wanted.keys()
    if missing or superfluous:
        names = ", ".join(wanted) or "none"
        wrong = f"missing: {', '.join(sorted(missing))}" if missing else f"unknown: {', '.join(sorted(superfluous))}"
        raise PlanError(f"plan: it takes data for: {names}; {wrong}")
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


def _run_nodes(plan: Plan, programs: Mapping[str, Program], state: _State) -> None:
    programs = {**programs, **plan.programs}
    for node in plan.nodes:
        _check_made(handles_of(node), state)
        match node:
            case Allocate(storage):
                state.buffers[storage] = np.full(storage.size, UNDEFINED_BYTE, np.uint8)
            case Constant(storage, contents):
                state.buffers[storage] = np.frombuffer(bytearray(contents), np.uint8)
            case Fill(target, value):
                _fill(view(state.buffers[target.storage], target), value, target)
            case Copy(target, source):
                np.copyto(view(state.buffers[target.storage], target), view(state.buffers[source.storage], source))
            case Launch():
                record = execute(programs[node.program], node, state.buffers)
                state.launches.append(LaunchReport(record, active_chip(record.machine)))
            case Choose():
                _choose(node, programs, state)


def _check_made(handles: Iterable[Handle], state: _State) -> None:
    for handle in handles:
        if handle.storage not in state.buffers:
            raise PlanError(f"plan: '{handle.storage.name}' is used where nothing has allocated it yet")


def _fill(target: NDArray[Any], value: int | float, handle: Handle) -> None:
    if not handle.dtype.is_float and value != int(value if np.isfinite(value) else 0):
        raise PlanError(f"plan: fill of '{handle.storage.name}': {value} is no {handle.dtype}")
    try:
        target[...] = value if handle.dtype.is_float else int(value)
    except OverflowError as error:
        raise PlanError(f"plan: fill of '{handle.storage.name}': {value} is no {handle.dtype}") from error


def _choose(node: Choose, programs: Mapping[str, Program], state: _State) -> None:
    """Runs each alternative on a clone, at most two clones at a time, and keeps the one of the least modelled time."""
    seconds: dict[str, float] = {}
    refused: dict[str, LaunchError] = {}
    best: tuple[str, _State] | None = None
    for label, alternative in zip(node.labels, node.alternatives, strict=True):
        trial = state.clone()
        try:
            _run_nodes(alternative, programs, trial)
        except LaunchError as error:
            refused[label] = error
            continue
        seconds[label] = sum(report.roofline.estimate_s for report in trial.launches)
        if best is None or seconds[label] < seconds[best[0]]:
            best = label, trial
    if best is None:
        raise next(iter(refused.values()))
    state.become(best[1])
    state.choices.append(Choice(best[0], seconds, {label: error.message for label, error in refused.items()}))
