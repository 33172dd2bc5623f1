"""What a machine says of one launch: counters in all and by source line, and findings."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from triptych.core.counters import Counters
from triptych.core.source import SourceLocation


class Severity(Enum):
    """How bad a finding is."""

    NOTICE = "notice"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check saw: which check, how bad, what, and where in the author's source."""

    check: str
    severity: Severity
    message: str
    where: SourceLocation | None = None
    frames: tuple[SourceLocation, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """The counters of one source line; `frames` are the callers it was inlined into, innermost first."""

    where: SourceLocation
    counters: Counters
    frames: tuple[SourceLocation, ...] = ()


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """One executed launch. `machine` is `gpu` or `neuron`; `target` is what it was compiled for."""

    kernel: str
    machine: str
    language: str
    target: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    counters: Counters
    lines: tuple[Line, ...]
    findings: tuple[Finding, ...] = ()
