"""Runs a plan on inputs: the task of the process that executes. It knows neither expected results nor their budget."""

from __future__ import annotations

import hashlib
import pickle
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.core.errors import (
    BudgetExceeded,
    CompileError,
    DeadlockError,
    KernelFault,
    LaunchError,
    TriptychError,
    UnsupportedFeature,
    UnsupportedInstruction,
)
from triptych.core.launches import Finding, LaunchRecord
from triptych.core.output import redirecting
from triptych.core.plan import Plan, Program
from triptych.core.serialise import unpack
from triptych.core.settings import scope, settings
from triptych.core.source import SourceLocation
from triptych.core.touched import noting_touched
from triptych.core.validate import storages_of
from triptych.execution.profile import profile
from triptych.execution.run import PlanRun, run_plan
from triptych.judge.claims import join
from triptych.judge.execution.request import MOST_LEFT_OUT, ExecutionRequest, Run

_CACHED_FILE_BYTES = 4 << 20
_CACHED_BYTES = 16 << 20
"""Object code that goes back, at most."""
_IMPATIENCE = 64
"""By what the budgets of a run without one of its nodes are divided: loops over undefined counts are long."""
_CODES: Mapping[type[BaseException], str] = {
    BudgetExceeded: "kernel_hung",
    DeadlockError: "kernel_hung",
    KernelFault: "kernel_fault",
    LaunchError: "launch_refused",
    UnsupportedFeature: "unsupported",
    UnsupportedInstruction: "unsupported",
    CompileError: "compile_error",
    TriptychError: "plan_refused",
    MemoryError: "out_of_memory",
}
"""The reason of an error, the first whose class it is of."""


def execute_task(payload: bytes) -> bytes:
    """Runs what a pickled `ExecutionRequest` of the judge asks for, up to the first run that must not fail and does."""
    request: ExecutionRequest = pickle.loads(payload)
    folder = settings().cache_folder
    _unfold(request.cached, folder)
    reply = _Reply()
    plan = unpack(request.plan)
    for run in request.runs:
        reply.runs.append(_run(plan, request, run, reply))
        if "fault" in reply.runs[-1] and not run.may_fail:
            return reply.message((), _folded(folder))
    return reply.message(_dead(plan, request), _folded(folder))


class _Reply:
    """A reply as it grows: runs as JSON, and blobs that they name by their place."""

    def __init__(self) -> None:
        self.runs: list[dict[str, Any]] = []
        self.blobs: list[bytes] = []

    def blob(self, data: bytes) -> int:
        self.blobs.append(data)
        return len(self.blobs) - 1

    def message(self, dead: Sequence[int], cached: Mapping[str, bytes]) -> bytes:
        files = [{"path": path, "data": self.blob(data)} for path, data in cached.items()]
        return join({"runs": self.runs, "dead": list(dead), "cached": files}, self.blobs)


def _run(plan: Plan, request: ExecutionRequest, run: Run, reply: _Reply) -> dict[str, Any]:
    """One run, as JSON."""
    given = request.cases[run.case]
    data = _data(given)
    try:
        if run.is_watched:
            with noting_touched():
                done = _executed_plan(plan, data, request, run)
        else:
            done = _executed_plan(plan, data, request, run)
    except (TriptychError, MemoryError) as error:
        return {"fault": _fault(error)}
    return {
        "outputs": [reply.blob(one) for one in _outputs(done)],
        "inputs": {name: hashlib.sha256(data[name].data).hexdigest() for name in given},
        "choices": [choice.label for choice in done.choices],
        "launches": list(_launches(plan, done, reply)) if run.is_watched else [],
    }


def _dead(plan: Plan, request: ExecutionRequest) -> list[int]:
    """The nodes without which the first run's outputs are the same: left out a group after the other, and kept out.

    A group of which something contributes is halved, and its halves are tried behind all others.
    """
    if not request.droppable:
        return []
    run, dead, groups = request.runs[0], list[int](), deque(request.droppable)
    given = request.cases[run.case]
    wanted = _outputs(_executed_plan(plan, _data(given), request, run))
    for _ in range(MOST_LEFT_OUT):
        if not groups:
            break
        group = groups.popleft()
        left = tuple(node for at, node in enumerate(plan.nodes) if at not in group and at not in dead)
        if _gives(replace(plan, nodes=left), wanted, request):
            dead.extend(group)
        elif len(group) > 1:
            half = len(group) // 2
            groups.extend((group[:half], group[half:]))
    return dead


def _gives(plan: Plan, wanted: Sequence[bytes], request: ExecutionRequest) -> bool:
    """Whether a plan runs, and gives the first run's outputs."""
    run = request.runs[0]
    try:
        done = _executed_plan(plan, _data(request.cases[run.case]), request, run, _IMPATIENCE)
    except (TriptychError, MemoryError):
        return False
    return _outputs(done) == wanted


def _executed_plan(
    plan: Plan, data: Mapping[str, NDArray[np.uint8]], request: ExecutionRequest, run: Run, impatience: int = 1
) -> PlanRun:
    with (
        scope(
            workers=1,
            block_order=run.block_order,
            undefined_byte=run.undefined_byte,
            budget=request.budget // impatience,
            launch_budget=request.launch_budget // impatience,
        ),
        profile(request.chip),
        redirecting(lambda _: None),
    ):
        return run_plan(plan, data)


def _outputs(done: PlanRun) -> list[bytes]:
    return [np.ascontiguousarray(one).tobytes() for one in done.outputs]


def _data(given: Mapping[str, bytes]) -> dict[str, NDArray[np.uint8]]:
    """Inputs that a run may change."""
    return {name: np.frombuffer(bytearray(data), np.uint8) for name, data in given.items()}


def _fault(error: BaseException) -> dict[str, Any]:
    code = next(code for kind, code in _CODES.items() if isinstance(error, kind))
    where = error.where if isinstance(error, TriptychError) else None
    message = error.message if isinstance(error, TriptychError) else "the host has no more memory for it"
    return {"code": code, "message": message, "where": _place(where)}


def _place(where: SourceLocation | None) -> dict[str, Any] | None:
    return None if where is None else {"file": where.file, "line": where.line}


def _launches(plan: Plan, done: PlanRun, reply: _Reply) -> Iterator[dict[str, Any]]:
    storages = {storage: place for place, storage in enumerate(storages_of(plan))}
    programs = {program: place for place, program in enumerate(programs_of(plan))}
    for launch in done.launches:
        record = launch.record
        yield {
            "kernel": record.kernel,
            "machine": record.machine,
            "language": record.language,
            "target": record.target,
            **_shape(record),
            "counters": {name: counter.value for name, counter in record.counters.items()},
            "findings": [_finding(one) for one in record.findings],
            "executed": _executed(record, programs),
            "touched": [
                {
                    "storage": storages[one.storage],
                    "unit": one.unit,
                    "loaded": reply.blob(np.packbits(one.loaded).tobytes()),
                    "stored": reply.blob(np.packbits(one.stored).tobytes()),
                }
                for one in record.touched
                if one.storage in storages
            ],
        }


def _shape(record: LaunchRecord) -> dict[str, Any]:
    shape = record.shape
    return {
        "grid": list(shape.grid),
        "block": list(shape.block),
        "cluster": list(shape.cluster),
        "shared_bytes": shape.shared_bytes,
        "cooperative": int(shape.cooperative),
        "static_shared_bytes": record.static_shared_bytes,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {"check": finding.check, "message": finding.message, "where": _place(finding.where)}


def _executed(record: LaunchRecord, programs: Mapping[Program, int]) -> dict[str, Any] | None:
    if record.executed is None:
        return None
    steps = [{"steps": list(one)} for one in record.executed.steps]
    return {"program": programs[record.executed.program], "programs": steps}


def programs_of(plan: Plan) -> tuple[Program, ...]:
    """The programs of a plan and of those inside it, each once."""
    inside = (program for node in plan.nodes for one in node.plans for program in programs_of(one))
    return tuple(dict.fromkeys((*plan.programs.values(), *inside)))


def _unfold(cached: Mapping[str, bytes], folder: Path) -> None:
    for name, data in cached.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _folded(folder: Path) -> dict[str, bytes]:
    """The cache's files, as many as may go back."""
    found: dict[str, bytes] = {}
    left = _CACHED_BYTES
    for path in sorted(folder.rglob("*")):
        size = path.stat().st_size if path.is_file() else 0
        if 0 < size <= min(_CACHED_FILE_BYTES, left):
            found[str(path.relative_to(folder))] = path.read_bytes()
            left -= size
    return found
