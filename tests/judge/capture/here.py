"""Captures in this process, without a sandbox: what they say is the same."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

from triptych.core.plan import Node
from triptych.judge.capture.inside import capture_task
from triptych.judge.capture.outside import Captured, CaptureFailed, read_reply
from triptych.judge.capture.request import ArraySpec, CaptureRequest, CaptureSize
from triptych.sandbox import End, Outcome

FILE = "solution.py"


def size(n: int = 64, dtype: str = "f32") -> CaptureSize:
    """One input and one output of n elements, and a constant."""
    one = CaptureSize((ArraySpec("x", dtype, (n,)),), (ArraySpec("y", dtype, (n,)),), {"n": n, "epsilon": 0.5})
    assert one.inputs[0].nbytes == n * one.inputs[0].kind.bytes
    return one


def asked(source: str, *sizes: CaptureSize, **options: bool | str) -> CaptureRequest:
    """A request for a source."""
    return CaptureRequest(source, FILE, sizes or (size(),), **options)  # type: ignore[arg-type]  # fields of several types, by name


def read(reply: bytes, request: CaptureRequest) -> Captured | CaptureFailed:
    """What the parent makes of a reply."""
    return read_reply(reply, request, Outcome(End.REPLIED, reply, "", (), 0.0))


def run(request: CaptureRequest) -> Captured | CaptureFailed:
    """The request, captured here."""
    return read(capture_task(pickle.dumps(request)), request)


def captured(source: str, *sizes: CaptureSize, **options: bool | str) -> Captured:
    """The plans of a source that can be captured."""
    found = run(asked(source, *sizes, **options))
    assert isinstance(found, Captured), found
    return found


def failure(source: str, *sizes: CaptureSize, **options: bool | str) -> CaptureFailed:
    """Why a source cannot be captured."""
    found = run(asked(source, *sizes, **options))
    assert isinstance(found, CaptureFailed), found
    return found


def kinds(nodes: Sequence[Node]) -> list[str]:
    """The kinds of nodes, in order."""
    return [type(node).__name__ for node in nodes]
