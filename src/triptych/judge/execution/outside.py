"""Has a plan executed in a sandbox, and reads what comes back: a claim, of which each value is checked."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePosixPath
from typing import TypeVar

import numpy as np

from triptych.core.checks import CHECKS
from triptych.core.counters import counters_of
from triptych.core.errors import UnknownCounter
from triptych.core.handles import Storage
from triptych.core.languages import LANGUAGES
from triptych.core.launches import Account, Executed, Finding, LaunchRecord
from triptych.core.plan import LaunchShape, Plan, Program
from triptych.core.source import SourceLocation
from triptych.core.touched import Marks, Touched
from triptych.core.validate import storages_of
from triptych.judge.claims import Claim, ForgedReply, split
from triptych.judge.execution.inside import execute_task, programs_of
from triptych.judge.execution.request import Execution, ExecutionRequest, Ran, Run, Stopped
from triptych.judge.reasons import TELLABLE
from triptych.judge.stable_text import without_addresses, without_numbers_of_processes
from triptych.sandbox import End, Sandbox

_T = TypeVar("_T")
TASK = f"{execute_task.__module__}:{execute_task.__name__}"
_ENDS: Mapping[End, tuple[str, str]] = {
    End.TIMED_OUT: ("execution_timed_out", "the kernels took longer to run than they may"),
    End.OUT_OF_MEMORY: ("out_of_memory", "the kernels, or their code, took more memory than they may"),
    End.REPLY_TOO_LARGE: ("plan_refused", "more launches over more memory than one reply can tell of"),
}
"""The reason of a process that did not answer; any other end has died."""
_UNITS = {"gpu": 64, "neuron": 1}
_FILE_NAME_CHARACTERS = 300
_MOST_HEADER = 64 << 20
"""Bytes. Of a launch in a run it has one or two thousand, of a NeuronCore's instruction eight."""


def execute(sandbox: Sandbox, plan: Plan, request: ExecutionRequest) -> Execution:
    """Runs what is asked for in a fresh process of the sandbox.

    Args:
        sandbox: used by this thread alone.
        plan: that of the request.
        request: what to run.
    """
    payload = pickle.dumps(request)
    outcome = sandbox.run(TASK, payload)
    if outcome.end is End.LOST:  # the sandbox ended, not the process: once that can be bad luck
        outcome = sandbox.run(TASK, payload)
    if outcome.end is not End.REPLIED or outcome.reply is None:
        detail = without_numbers_of_processes(outcome.detail)
        code, message = _ENDS.get(outcome.end, ("process_died", f"the process that executes died: {detail}"))
        return Execution((Stopped(code, message, None),), frozenset(), {}, outcome.cpu_s, outcome.layers)
    return read_reply(plan, request, outcome.reply, outcome.cpu_s, outcome.layers)


def read_reply(
    plan: Plan, request: ExecutionRequest, reply: bytes, cpu_s: float = 0.0, layers: tuple[str, ...] = ()
) -> Execution:
    """What the task's reply to a request says; where it says nothing that could be an answer, that it is forged."""
    try:
        header, blobs = split(reply, _MOST_HEADER)
        runs, dead, cached = _Reader(plan, request, blobs).read(header)
    except ForgedReply as forged:
        stopped = Stopped("forged_reply", f"the process that executes gave no answer: {forged}", None)
        return Execution((stopped,), frozenset(), {}, cpu_s, layers)
    return Execution(runs, dead, cached, cpu_s, layers)


@dataclass(slots=True)
class _Reader:
    """Reads a reply to a request. Nothing in it is believed but what it may be by its type and its size."""

    plan: Plan
    request: ExecutionRequest
    blobs: list[bytes]

    def read(self, reply: Claim) -> tuple[tuple[Ran | Stopped, ...], frozenset[int], dict[str, bytes]]:
        """The runs, one for each that was asked for or up to the first that was stopped, dead nodes, object code."""
        claims = reply.each("runs", lambda one: one)
        if not 1 <= len(claims) <= len(self.request.runs):
            raise ForgedReply(f"{len(claims)} runs, of {len(self.request.runs)}")
        runs = tuple(self._run(claim, run) for claim, run in zip(claims, self.request.runs, strict=False))
        pairs = zip(runs, self.request.runs, strict=False)
        ends = [isinstance(one, Stopped) and not asked.may_fail for one, asked in pairs]
        if any(ends[:-1]) or (len(runs) < len(self.request.runs) and not ends[-1]):
            raise ForgedReply("runs behind one that was stopped, or fewer than were asked for")
        dead = frozenset(reply.numbers("dead"))
        if not dead <= frozenset(chain.from_iterable(self.request.droppable)):
            raise ForgedReply("nodes that contribute nothing, of which nobody asked that")
        return runs, dead, dict(reply.each("cached", self._file))

    def _run(self, claim: Claim, run: Run) -> Ran | Stopped:
        if claim.has("fault"):
            fault = claim.inner("fault")
            code = fault.text("code")
            if code not in TELLABLE:
                raise ForgedReply(f"no reason has the code {code!r}")
            return Stopped(code, without_addresses(fault.text("message")), _place(fault))
        outputs = tuple(map(self._blob, claim.numbers("outputs")))
        if [len(one) for one in outputs] != [handle.nbytes for handle in self.plan.outputs]:
            raise ForgedReply("outputs of other sizes than the plan's")
        given = self.request.cases[run.case]
        hashes = {name: claim.inner("inputs").text(name) for name in given}
        return Ran(outputs, hashes, claim.each("launches", self._record), claim.texts("choices"))

    def _record(self, claim: Claim) -> LaunchRecord:
        machine = claim.text("machine")
        if machine not in _UNITS:
            raise ForgedReply(f"no machine is called {machine!r}")
        try:
            counters = counters_of(machine, claim.values("counters"))
        except UnknownCounter as unknown:
            raise ForgedReply(unknown.message) from unknown
        language, kernel = claim.text("language"), claim.text("kernel")
        if language not in LANGUAGES or not kernel:
            raise ForgedReply(f"a kernel called {kernel!r} in the language {language!r}")
        executed = claim.inner("executed") if claim.has("executed") else None
        if (executed is not None) != (machine == "neuron"):
            raise ForgedReply("what was executed is told of a NeuronCore alone")
        return LaunchRecord(
            kernel=kernel,
            machine=machine,
            language=language,
            target=claim.text("target"),
            shape=_shape(claim),
            static_shared_bytes=claim.number("static_shared_bytes"),
            account=Account.of(counters),
            findings=claim.each("findings", _finding),
            executed=None if executed is None else self._executed(executed),
            touched=claim.each("touched", lambda one: self._touched(one, machine)),
        )

    def _executed(self, claim: Claim) -> Executed:
        programs = programs_of(self.plan)
        program: Program = _nth(programs, claim.number("program"))
        return Executed(program, claim.each("programs", lambda one: one.numbers("steps")))

    def _touched(self, claim: Claim, machine: str) -> Touched:
        storage: Storage = _nth(storages_of(self.plan), claim.number("storage"))
        unit = claim.number("unit")
        if unit != _UNITS[machine]:
            raise ForgedReply(f"marks of {unit} bytes")
        count = (
            max(storage.end - 1, storage.address) // unit + 1 - storage.address // unit if unit > 1 else storage.size
        )
        loaded, stored = (_marks(self._blob(claim.number(name)), count) for name in ("loaded", "stored"))
        return Touched(storage, unit, loaded, stored)

    def _file(self, claim: Claim) -> tuple[str, bytes]:
        name = claim.text("path", _FILE_NAME_CHARACTERS)
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\0" in name or not path.parts:
            raise ForgedReply(f"a file called {name!r}")
        return name, self._blob(claim.number("data"))

    def _blob(self, place: int) -> bytes:
        return _nth(self.blobs, place)


def _nth(values: Sequence[_T], place: int) -> _T:
    if place >= len(values):
        raise ForgedReply(f"place {place} of {len(values)}")
    return values[place]


def _marks(data: bytes, count: int) -> Marks:
    if len(data) != -(-count // 8):
        raise ForgedReply(f"{len(data)} bytes of marks, for {count}")
    return np.unpackbits(np.frombuffer(data, np.uint8), count=count).astype(np.bool_)


def _shape(claim: Claim) -> LaunchShape:
    def triple(name: str) -> tuple[int, int, int]:
        found = claim.numbers(name)
        if len(found) != 3:
            raise ForgedReply(f"{name}: expected three numbers")
        return found[0], found[1], found[2]

    grid, block, cluster = map(triple, ("grid", "block", "cluster"))
    return LaunchShape(grid, block, claim.number("shared_bytes"), cluster, bool(claim.number("cooperative")))


def _finding(claim: Claim) -> Finding:
    check = claim.text("check")
    if check not in CHECKS:
        raise ForgedReply(f"no check is called {check!r}")
    return Finding.of(CHECKS[check], claim.text("message"), _place(claim))


def _place(claim: Claim) -> SourceLocation | None:
    if not claim.has("where"):
        return None
    place = claim.inner("where")
    return SourceLocation(place.text("file"), place.number("line"))
