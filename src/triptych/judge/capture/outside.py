"""The parent's side of a capture: asks a sandbox for a candidate's plans, and believes nothing that comes back.

What comes back are plans, which are checked here: they take exactly the arrays that were given, make their outputs
themselves, and are no larger than a plan may be. The rest of a reply are claims, for messages and for names.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass

from triptych.core.errors import PlanError
from triptych.core.handles import Handle, Storage, contiguous_strides
from triptych.core.plan import Node, Plan
from triptych.core.serialise import unpack
from triptych.core.source import SourceLocation
from triptych.core.validate import storages_of
from triptych.execution.capture import MOST_NODES
from triptych.judge.capture.request import ArraySpec, CaptureRequest, CaptureSize
from triptych.judge.claims import Claim, ForgedReply, split
from triptych.judge.reasons import TELLABLE
from triptych.judge.stable_text import without_addresses, without_numbers_of_processes
from triptych.sandbox import End, Limits, Outcome, Sandbox

TASK = "triptych.judge.capture.inside:capture_task"
PRELOAD = "triptych.judge.capture.inside"
"""What a sandbox that captures imports once."""
_MOST_TEXT = 1 << 14
_MOST_HEADER = 1 << 20
"""Bytes: of what is told beside the plans."""
_MOST_BYTES = 3 << 30
"""Of a plan's arrays: no process that executes one may hold more (`workshop.EXECUTION_LIMITS`)."""
_ENDS = {
    End.TIMED_OUT: "capture_timed_out",
    End.OUT_OF_MEMORY: "out_of_memory",
    End.REPLY_TOO_LARGE: "plan_refused",
}
"""Why there is no reply; all others are `process_died`."""


@dataclass(frozen=True, slots=True)
class Library:
    """Work that a library would have done."""

    operator: str
    where: SourceLocation | None
    used: bool
    """Whether a kernel, a copy or an output takes the result."""


@dataclass(frozen=True, slots=True)
class Captured:
    """What a candidate asks a machine to do. The plans are facts, all else is what its process claims."""

    plans: tuple[Plan, ...]
    """One for each size of the request."""
    library: tuple[Library, ...]
    """Of all sizes, each line once."""
    differs: bool
    """Whether a second call of the same size asks for other work."""
    tampered: tuple[str, ...]
    """Functions of Python's or triptych's that are not what they were."""
    printed: str
    """What it wrote to standard output and error, the end of it."""
    outcome: Outcome
    """Of the sandbox."""


@dataclass(frozen=True, slots=True)
class CaptureFailed:
    """Why there are no plans."""

    code: str
    """A row of `reasons.py`."""
    message: str
    where: SourceLocation | None = None
    outcome: Outcome | None = None
    """Of the sandbox; None where it was not asked."""


def capture(sandbox: Sandbox, request: CaptureRequest, limits: Limits | None = None) -> Captured | CaptureFailed:
    """The plans of a candidate, or why there are none. Whatever the candidate does, this returns.

    Args:
        sandbox: where the candidate runs; it has `PRELOAD` among its preloaded modules, if that is to be quick.
        request: the candidate and the calls.
        limits: of the run; the sandbox's own where they are not said.
    """
    outcome = sandbox.run(TASK, pickle.dumps(request), limits=limits)
    if outcome.reply is None:
        told = without_numbers_of_processes(outcome.detail) or outcome.end.value
        return CaptureFailed(_ENDS.get(outcome.end, "process_died"), told, None, outcome)
    return read_reply(outcome.reply, request, outcome)


class _Refused(Exception):
    """A plan that a candidate made cannot be judged."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def read_reply(reply: bytes, request: CaptureRequest, outcome: Outcome) -> Captured | CaptureFailed:
    """What a reply says; one that is no reply to the request is `forged_reply`."""
    try:
        return _read(reply, request, outcome)
    except ForgedReply as problem:
        return CaptureFailed("forged_reply", str(problem), None, outcome)
    except _Refused as problem:
        return CaptureFailed(problem.code, str(problem), None, outcome)


def _read(reply: bytes, request: CaptureRequest, outcome: Outcome) -> Captured | CaptureFailed:
    header, blobs = split(reply, _MOST_HEADER)
    if header.has("failure"):
        failure = header.inner("failure")
        code = failure.text("code")
        if code not in TELLABLE or blobs:
            raise ForgedReply(f"there is no reason '{code[:40]}'")
        told = without_addresses(failure.text("message", _MOST_TEXT))
        return CaptureFailed(code, told, _place(failure), outcome)
    if len(blobs) != len(request.sizes):
        raise ForgedReply(f"{len(blobs)} plans for {len(request.sizes)} sizes")
    plans = tuple(_plan(blob, size) for blob, size in zip(blobs, request.sizes, strict=True))
    library = header.each("library", lambda one: Library(one.text("operator"), _place(one), one.number("used") != 0))
    return Captured(
        plans,
        library,
        header.number("differs") != 0,
        header.texts("tampered"),
        header.text("printed", _MOST_TEXT),
        outcome,
    )


def _place(claim: Claim) -> SourceLocation | None:
    return SourceLocation(claim.text("file"), claim.number("line")) if claim.has("file") else None


def _plan(blob: bytes, size: CaptureSize) -> Plan:
    try:
        plan = unpack(blob)
    except (PlanError, RecursionError, ArithmeticError, LookupError, TypeError, ValueError) as problem:
        raise ForgedReply(f"no plan: {problem}") from problem
    _check_inputs(plan, size)
    _check_outputs(plan, size)
    _check_bounds(plan)
    return plan


def _check_inputs(plan: Plan, size: CaptureSize) -> None:
    """Raises `ForgedReply` where a plan takes other arrays than those that were given."""
    expected = [(one.name, one.kind, one.shape, contiguous_strides(one.shape, one.kind), 0) for one in size.inputs]
    found = [(one.storage.name, one.dtype, one.shape, one.strides, one.offset) for one in plan.inputs]
    if found != expected:
        raise ForgedReply("the plan takes other arrays than those that were given")
    for handle, spec in zip(plan.inputs, size.inputs, strict=True):
        if handle.storage.size != spec.nbytes or not handle.storage.writable:
            raise ForgedReply(f"the plan takes another '{spec.name}' than the one that was given")
    given = {handle.storage for handle in plan.inputs}
    made = plan.made
    if given & made or set(storages_of(plan)) - given - made:
        raise ForgedReply("the plan uses arrays that were neither given nor made")


def _check_outputs(plan: Plan, size: CaptureSize) -> None:
    """Raises `_Refused` where outputs are not what was asked for, or not the plan's own."""
    message = output_mistake(plan.outputs, size.outputs)
    if message:
        raise _Refused("shape", message)
    given: set[Storage] = {handle.storage for handle in plan.inputs}
    for handle, spec in zip(plan.outputs, size.outputs, strict=True):
        if handle.storage in given:
            raise _Refused("output_not_stored", f"output '{spec.name}' is the input '{handle.storage.name}'")


def output_mistake(outputs: tuple[Handle, ...], wanted: tuple[ArraySpec, ...]) -> str:
    """What is wrong with the number, a shape, a type or the order in memory of outputs; empty where nothing is."""
    if len(outputs) != len(wanted):
        names = ", ".join(one.name for one in wanted)
        return f"the solution returned {len(outputs)} arrays; expected {len(wanted)}: {names}"
    for handle, spec in zip(outputs, wanted, strict=True):
        if (handle.dtype, handle.shape) != (spec.kind, spec.shape):
            got = ArraySpec("", handle.dtype.name, handle.shape)
            return f"output '{spec.name}' is {got}; expected {spec}"
        if not handle.in_order:
            strides = ", ".join(map(str, handle.strides))
            return f"output '{spec.name}' is a view that moves axes (strides of {strides} bytes); expected C order"
    return ""


def _check_bounds(plan: Plan) -> None:
    nodes, size = sum(1 for _ in _nodes(plan)), sum(storage.size for storage in storages_of(plan))
    if nodes > MOST_NODES or size > _MOST_BYTES:
        raise _Refused(
            "plan_refused", f"{nodes} nodes over {size} bytes of arrays; at most {MOST_NODES} over {_MOST_BYTES}"
        )


def _nodes(plan: Plan) -> Iterator[Node]:
    for node in plan.nodes:
        yield node
        for inside in node.plans:
            yield from _nodes(inside)
