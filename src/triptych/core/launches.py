"""What a machine says of one launch: counters in all and by source line, and findings."""

from __future__ import annotations

from dataclasses import dataclass, replace

from triptych.core.checks import CHECKS, Check, Severity
from triptych.core.counters import Counters
from triptych.core.errors import Access, KernelFault, MemoryFault
from triptych.core.source import Index, SourceLocation


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check saw: which check, how bad, what, and where in the author's source.

    Raises:
        ValueError: for a check that is not in the table.
    """

    check: str
    """The name of a row of the table of checks."""
    severity: Severity
    message: str
    where: SourceLocation | None = None
    frames: tuple[SourceLocation, ...] = ()
    """The callers that the line was inlined into, innermost first."""
    thread: Index | None = None
    """The thread in its block, where one is meant."""
    block: Index | None = None
    """The block in its grid, where one is meant."""
    hint: str | None = None
    """What to do."""
    access: Access | None = None
    """`load`, `store` or `atomic`: of a fault of memory, as are the following."""
    space: str | None = None
    """The memory that it reached for: `global`, `shared`, `local` or `param`."""
    address: int | None = None
    """Where the thread's access began, in bytes."""
    bytes: int | None = None
    """The bytes that the thread asked for."""
    allocation: str | None = None
    """The name of the nearest allocation, or of the one that may not be written."""

    def __post_init__(self) -> None:
        """Refuses a name that is not in the table."""
        if self.check not in CHECKS:
            raise ValueError(f"'{self.check}' is not in the table of checks: {', '.join(CHECKS)}")

    @classmethod
    def of(cls, check: Check, message: str, where: SourceLocation | None = None) -> Finding:
        """A finding of a row of the table, as severe as the row says."""
        return cls(check.name, check.severity, message, where)

    @classmethod
    def of_fault(cls, fault: KernelFault) -> Finding:
        """The finding of the launch that a fault stopped: the same message, place and advice."""
        check = fault.check
        told = cls(
            check.name, check.severity, fault.message, fault.where, fault.frames, fault.thread, fault.block, fault.hint
        )
        if not isinstance(fault, MemoryFault):
            return told
        known = {name: getattr(fault, name) for name in ("access", "space", "address", "bytes", "allocation")}
        return replace(told, **known)


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
    checks: tuple[str, ...] = ()
    """The names of the checks that were in force, those that are always on included."""
    stopped: bool = False
    """Whether a fault stopped it: then nothing is counted, and the fault is its finding."""
