"""Profiles: which chip and compile target are in force, and what each launch of a `with` block did there."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from triptych.chips import DEFAULT_BY_MACHINE, Chip, ChipChoice, load
from triptych.core.checks import CHECKS, Check, in_force
from triptych.core.errors import UnknownName, UsageError
from triptych.core.settings import settings
from triptych.execution.targets import check_target, machine_of
from triptych.execution.tuning import Tuning

if TYPE_CHECKING:  # with all that a launch is, which comes with the first one
    from triptych.core.launches import Finding
    from triptych.execution.launch_report import LaunchReport


@dataclass(slots=True)
class Profile:
    """The launches of a `with` block, in order. A profile inside another is seen by both, each with its own chip."""

    asked: Chip | None
    """The chip that was asked for; None: nobody named one, and each machine has its default."""
    target: str | None
    """The compile target that was asked for; None: the chip's own."""
    checks: tuple[str, ...] | None = None
    """The names of the checks that were asked for; None: nobody asked, and those on by default are in force."""
    launches: list[LaunchReport] = field(default_factory=list["LaunchReport"])
    tunings: list[Tuning] = field(default_factory=list[Tuning])
    """What autotuners chose, in order."""

    def __repr__(self) -> str:
        """The chips of its launches, how many there are and how many findings."""
        chips = ", ".join(dict.fromkeys(launch.chip.name for launch in self.launches)) or self.chip.name
        return f"<profile on {chips}: {len(self.launches)} launches, {len(self.findings)} findings>"

    @property
    def chip(self) -> Chip:
        """Whose roofline launches are placed on, if it can run them: the chip asked for, else the GPUs' default."""
        return self.asked or self.chip_of("gpu")

    def chip_of(self, machine: str) -> Chip:
        """The chip of launches on a machine: the one asked for, or the machine's default where that is another's."""
        return chip_of(self.asked, machine)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all launches."""
        return tuple(finding for launch in self.launches for finding in launch.findings)


_stack: ContextVar[tuple[Profile, ...]] = ContextVar("triptych_profiles", default=())
_of_process: list[Profile] = []
"""Profiles that see the launches of every thread; outside all others."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What a language was activated with: it goes before the settings, and behind what a profile asks for."""

    chip: Chip | None = None
    target: str | None = None


_selected = Selection()
"""The process's."""


def select(selection: Selection) -> Selection:
    """Puts a chip and a compile target in force for the process, where no profile asks for others; None: neither.

    A chip without a target brings its own. Gives back what was in force before.
    """
    global _selected
    before, _selected = _selected, selection
    return before


def open_profiles() -> tuple[Profile, ...]:
    """Those that see the launches made here, from the outermost to the innermost."""
    return (*_of_process, *_stack.get())


@contextmanager
def profile(
    chip: ChipChoice | None = None,
    target: str | None = None,
    check: str | Iterable[str] | None = None,
    *,
    all_threads: bool = False,
) -> Generator[Profile]:
    """Records every launch of the `with` block.

    Args:
        chip: whose roofline: a name, a path of a TOML file or a chip; the one in force where it is not said.
        target: the compile target (`sm_80`); the chip's own where a chip is named, else the one in force.
        check: names of checks, as a list or separated by commas, for instance `"racecheck,initcheck"`: they take
            the place of those that are on by default; what is always on is so in any case. The outer profile's where
            it is not said. An empty list: none but what is always on.
        all_threads: whether the launches of every thread of the process are meant; else those of this one alone.

    Yields:
        The profile, whose `launches` fill as the block runs.

    Raises:
        UnknownName: for a chip or a check that there is not.
        ChipError: for a chip's file that is none.
        UsageError: for what stands for no chip, and for a text of checks that names none.
    """
    outer = current()
    if chip is not None:
        asked = load(chip)
    else:
        asked = _asked(outer)
        target = target or _asked_target(outer)
    if target is not None:
        check_target(target)
    checks = _check_names(check) if check is not None else (outer.checks if outer else None)
    new = Profile(asked, target, checks)
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
    if not found and isinstance(check, str):
        raise UsageError(f"check={check!r} names no check", hint=f"known: {', '.join(CHECKS)}")
    return tuple(found)


def current() -> Profile | None:
    """The innermost profile that is open here."""
    stack = _stack.get() or _of_process
    return stack[-1] if stack else None


def active_checks(machine: str) -> frozenset[Check]:
    """The checks that look at a launch on a machine (`gpu`, `neuron`), by the innermost profile."""
    inner = current()
    return in_force(machine, inner.checks if inner else None)


def active_chip(machine: str | None = None) -> Chip:
    """The chip in force: the innermost profile's, else the one selected, else the settings', else the default.

    With a `machine` (`gpu`, `neuron`) that the chip asked for is none of, the default chip of that machine.

    Raises:
        UnknownName: where the settings name a chip that there is not.
    """
    asked = _asked(current())
    return asked if machine is None and asked is not None else chip_of(asked, machine or "gpu")


def asked_here() -> tuple[Chip | None, str | None]:
    """The chip and the target that somebody named for what is launched here."""
    inner = current()
    return _asked(inner), _asked_target(inner)


def _asked(inner: Profile | None) -> Chip | None:
    """The chip that somebody named: a profile, an activation, or the settings."""
    if inner is not None and inner.asked is not None:
        return inner.asked
    chosen = _selected.chip or (settings().chip if inner is None else None)
    return None if chosen is None else load(chosen)


def _asked_target(inner: Profile | None) -> str | None:
    """The target that somebody named; whoever names a chip alone means its own."""
    if inner is not None and (inner.target is not None or inner.asked is not None):
        return inner.target
    if _selected.chip is not None or _selected.target is not None or inner is not None:
        return _selected.target
    return settings().target


def chip_of(asked: Chip | None, machine: str) -> Chip:
    """The chip that was asked for, where it is the machine's; the machine's default where it is another's, or none."""
    return asked if asked is not None and asked.machine == machine else load(DEFAULT_BY_MACHINE[machine])


def active_target(machine: str = "gpu") -> str:
    """The compile target in force for a machine: the one asked for, else that of the chip in force.

    Raises:
        UnknownName: where the settings name a target, or a chip, that there is not.
    """
    return active_chip_and_target(machine)[1]


def active_chip_and_target(machine: str) -> tuple[Chip, str]:
    """Both in force for a machine, as `active_chip` and `active_target` give them.

    Raises:
        UnknownName: where the settings name a target, or a chip, that there is not.
    """
    inner = current()
    chip, asked = chip_of(_asked(inner), machine), _asked_target(inner)
    fits = asked is not None and machine_of(check_target(asked)) == machine
    return chip, asked if asked is not None and fits else chip.target


def record_tuning(tuning: Tuning) -> None:
    """Notes an autotuner's choice in every open profile."""
    for open_profile in open_profiles():
        open_profile.tunings.append(tuning)
