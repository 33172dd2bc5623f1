"""Profiles: which chip and compile target are in force, and what each launch of a `with` block did there."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, cached_property

from triptych.chips import DEFAULT_BY_MACHINE, Chip, load
from triptych.core.counters import Counters
from triptych.core.errors import UnknownName
from triptych.core.launches import Finding, LaunchRecord, Line
from triptych.core.settings import settings
from triptych.execution.checks import CHECKS
from triptych.model import Roofline, place

_TARGET_PREFIX = {"gpu": "sm_", "neuron": ("trn", "inf")}
_CAPABILITIES = (75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121)
"""Compute capabilities that NVRTC 13 compiles for."""
_TARGETS = (*(f"sm_{number}" for number in _CAPABILITIES), "trn1", "trn2", "trn3", "inf2")


def check_target(target: str) -> str:
    """The target itself.

    Raises:
        UnknownName: where no compiler has it; `sm_90a` and the like count as `sm_90`.
    """
    plain = target[:-1] if target.startswith("sm_") and target[-1:] in ("a", "f") else target
    if plain not in _TARGETS:
        raise UnknownName.of("compile target", target, _TARGETS)
    return target


@dataclass(frozen=True)
class LaunchReport:
    """One executed launch beside the chip that it is placed on."""

    record: LaunchRecord
    chip: Chip

    @cached_property
    def roofline(self) -> Roofline:
        """The launch's place on the chip's roofline, computed when first asked for."""
        return place(self.record, self.chip)

    @property
    def kernel(self) -> str:
        """The kernel's name, as its author wrote it where that is known."""
        return self.record.kernel

    @property
    def language(self) -> str:
        """What the author wrote it in."""
        return self.record.language

    @property
    def target(self) -> str:
        """What it was compiled for (`sm_80`, `trn2`)."""
        return self.record.target

    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks along x, y and z."""
        return self.record.grid

    @property
    def block(self) -> tuple[int, int, int]:
        """Threads of a block along x, y and z."""
        return self.record.block

    @property
    def counters(self) -> Counters:
        """What the machine counted."""
        return self.record.counters

    @property
    def lines(self) -> tuple[Line, ...]:
        """The same by source line."""
        return self.record.lines

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the checks saw."""
        return self.record.findings

    def __repr__(self) -> str:
        """The kernel, its grid and block, the chip and how many findings there are."""
        findings = f", {len(self.findings)} findings" if self.findings else ""
        return f"<{self.kernel} grid={self.grid} block={self.block} on {self.chip.name}{findings}>"


@dataclass(slots=True)
class Profile:
    """The launches of a `with` block, in order. A profile inside another is seen by both, each with its own chip."""

    chip: Chip
    target: str | None
    """The compile target that was asked for; None: the chip's own."""
    checks: tuple[str, ...] = ()
    launches: list[LaunchReport] = field(default_factory=list[LaunchReport])

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all launches."""
        return tuple(finding for launch in self.launches for finding in launch.findings)


_stack: ContextVar[tuple[Profile, ...]] = ContextVar("triptych_profiles", default=())
_of_process: list[Profile] = []
"""Profiles that see the launches of every thread; outside all others."""


def _open_profiles() -> tuple[Profile, ...]:
    return (*_of_process, *_stack.get())


@contextmanager
def profile(
    chip: str | Chip | None = None,
    target: str | None = None,
    check: str | Iterable[str] | None = None,
    *,
    all_threads: bool = False,
) -> Generator[Profile]:
    """Records every launch of the `with` block.

    Args:
        chip: whose roofline: a name, a path of a TOML file or a chip; the one in force where it is not said.
        target: the compile target (`sm_80`); the chip's own where a chip is named, else the one in force.
        check: names of checks, as a list or separated by commas, for instance `"memcheck"`; the outer
            profile's where none is said.
        all_threads: whether the launches of every thread of the process are meant; else those of this one alone.

    Yields:
        The profile, whose `launches` fill as the block runs.

    Raises:
        UnknownName: for a chip or a check that there is not.
    """
    outer = current()
    if chip is not None:
        found = load(chip) if isinstance(chip, str) else chip
    else:
        found = outer.chip if outer else _chip(settings().chip)
        target = target or (outer.target if outer else settings().target)
    if target is not None:
        check_target(target)
    checks = _check_names(check) if check is not None else (outer.checks if outer else ())
    new = Profile(found, target, checks)
    if all_threads:
        _of_process.append(new)
        try:
            yield new
        finally:
            _of_process.remove(new)
        return
    token = _stack.set((*_stack.get(), new))
    try:
        yield new
    finally:
        _stack.reset(token)


def _check_names(check: str | Iterable[str]) -> tuple[str, ...]:
    names = check.split(",") if isinstance(check, str) else check
    found = dict.fromkeys(name.strip() for name in names if name.strip())
    for name in found:
        if name not in CHECKS:
            raise UnknownName.of("check", name, CHECKS)
    return tuple(found)


def current() -> Profile | None:
    """The innermost profile that is open here."""
    stack = _open_profiles()
    return stack[-1] if stack else None


def active_checks() -> tuple[str, ...]:
    """The names of the checks in force."""
    inner = current()
    return inner.checks if inner else ()


def active_chip(machine: str | None = None) -> Chip:
    """The chip in force: the innermost profile's, else the settings'.

    With a `machine` (`gpu`, `neuron`) that the chip in force is none of, the default chip of that machine.

    Raises:
        UnknownName: where the settings name a chip that there is not.
    """
    inner = current()
    return _for_machine(inner.chip if inner else _chip(settings().chip), machine)


def _chip(name: str) -> Chip:
    """The chip of a name, read once; one of the user's own files is read again each time."""
    return load(name) if "/" in name or name.endswith(".toml") else _named_chip(name)


@cache
def _named_chip(name: str) -> Chip:
    return load(name)


def _for_machine(chip: Chip, machine: str | None) -> Chip:
    return chip if machine in (None, chip.machine) else _chip(DEFAULT_BY_MACHINE[machine])


def active_target(machine: str = "gpu") -> str:
    """The compile target in force for a machine: the one asked for, else that of the chip in force."""
    inner = current()
    asked = inner.target if inner is not None else settings().target
    if asked is not None and asked.startswith(_TARGET_PREFIX[machine]):
        return asked
    return active_chip(machine).target


def record_launch(record: LaunchRecord) -> LaunchReport:
    """Notes the launch in every open profile, each with its own chip; returns the innermost one's report."""
    report = LaunchReport(record, active_chip(record.machine))
    for open_profile in _open_profiles():
        chip = _for_machine(open_profile.chip, record.machine)
        open_profile.launches.append(report if chip is report.chip else LaunchReport(record, chip))
    return report
