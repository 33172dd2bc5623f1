"""What a machine says of one launch: counters in all and by source line, and findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from triptych.core.checks import CHECKS, Check, Severity
from triptych.core.counters import Counters
from triptych.core.errors import KernelFault, MemoryFault
from triptych.core.memory_access import NO_ACCESS, MemoryAccess, TellsAccess
from triptych.core.plan import LaunchShape, Program
from triptych.core.source import Index, SourceLocation
from triptych.core.touched import Touched


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


Counted = tuple[Counters, tuple[Line, ...]]
"""Counters in all, and of each source line."""


class Account:
    """What a machine counted of a launch, worked out when somebody first asks: most launches nobody asks about."""

    __slots__ = ("_counted",)

    def __init__(self, counted: Counted | Callable[[], Counted]) -> None:
        """What was counted, or what gives it: the same whenever it is called, and kept until then."""
        self._counted = counted

    @classmethod
    def of(cls, counters: Counters, lines: Sequence[Line] = ()) -> Account:
        """One that is there already."""
        return cls((counters, tuple(lines)))

    def __eq__(self, other: object) -> bool:
        """Whether the same was counted, in all and on every line."""
        return isinstance(other, Account) and self._all == other._all

    @property
    def _all(self) -> Counted:
        known = self._counted
        if callable(known):
            known = self._counted = known()
        return known

    @property
    def counters(self) -> Counters:
        """What was counted in all."""
        return self._all[0]

    @property
    def lines(self) -> tuple[Line, ...]:
        """The same by source line."""
        return self._all[1]


@dataclass(frozen=True, slots=True)
class Executed:
    """What a NeuronCore executed: enough to model when each instruction ran (`neuron/timeline/`)."""

    program: Program
    steps: tuple[Sequence[int], ...]
    """For each program of the grid the index of the instruction of each of its steps."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Blocks that stand for their grid, of a launch that is only timed: others were not run."""

    blocks: int
    """Those that ran."""
    of: int
    """Those of the grid."""
    load_bytes: int
    """Supposed of the whole grid: the compulsory bytes read, as many times those of the sample as there are blocks to
    one of it, but of no array more than it has."""
    store_bytes: int
    """The same of those written."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What a machine saw of a launch: what it counted, and what the checks found."""

    account: Account
    findings: tuple[Finding, ...] = ()
    executed: Executed | None = None
    """Of a NeuronCore."""
    sample: Sample | None = None
    """Which blocks ran, where that were not all."""
    touched: tuple[Touched, ...] = ()
    """What it loaded and stored, of each storage that it may reach; nothing where nobody asked (`core/touched.py`)."""

    @property
    def counters(self) -> Counters:
        """What was counted in all."""
        return self.account.counters

    @property
    def lines(self) -> tuple[Line, ...]:
        """The same by source line."""
        return self.account.lines


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
    account: Account
    findings: tuple[Finding, ...] = ()
    checks: tuple[str, ...] = ()
    """The names of the checks that were in force, those that are always on included."""
    call_site: SourceLocation | None = None
    """The line of the author's program that launched it, None where there is none."""
    stopped: bool = False
    """Whether a fault stopped it: then nothing is counted, and the fault is its finding."""
    remarks: tuple[str, ...] = ()
    """What its language says of the arguments."""
    executed: Executed | None = None
    """What a NeuronCore executed; None of a GPU's launch, and of one that a fault stopped."""
    sample: Sample | None = None
    """Which blocks ran, where that were not all: what was counted is theirs."""
    touched: tuple[Touched, ...] = ()
    """What it loaded and stored, of each storage that it may reach; nothing where nobody asked (`core/touched.py`)."""

    @property
    def counters(self) -> Counters:
        """What was counted in all."""
        return self.account.counters

    @property
    def lines(self) -> tuple[Line, ...]:
        """The same by source line."""
        return self.account.lines

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block, static and dynamic."""
        return self.static_shared_bytes + self.shape.shared_bytes
