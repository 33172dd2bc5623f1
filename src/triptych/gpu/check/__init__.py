"""Checks of a launch: a file each. Those that stop it make errors; those that only look are in `FINDERS`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

from triptych.core.checks import ASYNCCHECK, SYNCCHECK, VIEWCHECK, Check
from triptych.core.launches import Finding
from triptych.gpu.check import asynccheck, synccheck, viewcheck, warpgroups
from triptych.gpu.run.kernel import Kernel
from triptych.gpu.run.worker import LaunchState, Worker

Finder = Callable[[Kernel, LaunchState, Sequence[Worker]], Iterator[Finding]]

FINDERS: Mapping[Check, Sequence[Finder]] = {
    SYNCCHECK: (synccheck.find, warpgroups.find),
    VIEWCHECK: (viewcheck.find,),
    ASYNCCHECK: (asynccheck.find,),
}
"""What each check that does not stop a launch has seen when it is over."""


def find_all(
    checks: frozenset[Check], kernel: Kernel, state: LaunchState, workers: Sequence[Worker]
) -> tuple[Finding, ...]:
    """What the checks in force have seen."""
    found: list[Finding] = []
    for finder in _finders(checks):
        found += finder(kernel, state, workers)
    return tuple(found)


@cache
def _finders(checks: frozenset[Check]) -> tuple[Finder, ...]:
    return tuple(finder for check, several in FINDERS.items() if check in checks for finder in several)
