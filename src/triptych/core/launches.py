"""What a machine says of one launch: counters in all and by source line, and findings."""

from __future__ import annotations

from dataclasses import dataclass

from triptych.core.checks import CHECKS, Check, Severity
from triptych.core.counters import Counters
from triptych.core.errors import KernelFault, MemoryFault
from triptych.core.memory_access import NO_ACCESS, MemoryAccess, TellsAccess
from triptych.core.plan import LaunchShape
from triptych.core.source import Index, SourceLocation


@dataclass(frozen=True, slots=True)
class Finding(TellsAccess):
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
    memory: MemoryAccess = NO_ACCESS
    """The access that is meant."""

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
        return cls(
            check.name, check.severity, fault.message, fault.where, fault.frames, fault.thread, fault.block, fault.hint,
            fault.memory if isinstance(fault, MemoryFault) else NO_ACCESS,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Line:
    """The counters of one source line; `frames` are the callers it was inlined into, innermost first."""

    where: SourceLocation
    counters: Counters
    frames: tuple[SourceLocation, ...] = ()


@dataclass(frozen=True, slots=True)
class Observed:
    """What a machine saw of a launch: counters in all and by source line, and what the checks found."""

    counters: Counters
    lines: tuple[Line, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """One executed launch: the kernel, how it was launched, from where, and what was seen of it."""

    kernel: str
    machine: str
    """`gpu` or `neuron`."""
    language: str
    target: str
    """What it was compiled for."""
    shape: LaunchShape
    static_shared_bytes: int
    """Shared memory that the kernel declares itself, up to where the dynamic part begins."""
    counters: Counters
    lines: tuple[Line, ...]
    findings: tuple[Finding, ...] = ()
    checks: tuple[str, ...] = ()
    """The names of the checks that were in force, those that are always on included."""
    call_site: SourceLocation | None = None
    """The line of the author's program that launched it, None where there is none."""
    stopped: bool = False
    """Whether a fault stopped it: then nothing is counted, and the fault is its finding."""
    remarks: tuple[str, ...] = ()
    """What its language says of the arguments."""

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block, static and dynamic."""
        return self.static_shared_bytes + self.shape.shared_bytes
