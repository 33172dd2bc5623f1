"""Launches that are the same in everything reported, so that a report can say it once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, fields

from triptych.core.launches import Account
from triptych.execution.launch_report import LaunchReport

_RUNS_SHOWN = 6
"""Of a group's runs of launches, in its label."""


def identity(launch: LaunchReport) -> Hashable:
    """Equal for launches that are equal in everything reported, but for their source lines.

    That is every field of the record, the chip and the remarks: all that a report shows is made of these.
    """
    record, chip = launch.record, launch.chip
    told = (getattr(record, field.name) for field in fields(record))
    return (
        *(tuple(value.counters.items()) if isinstance(value, Account) else value for value in told),
        *(chip.name, chip.title, tuple(chip.facts.items()), launch.remarks),
    )


@dataclass(frozen=True, slots=True)
class Group:
    """Launches of one identity and of the same source lines; `numbers` count all launches of a run from 1."""

    launch: LaunchReport
    numbers: tuple[int, ...]

    @property
    def label(self) -> str:
        """The numbers, neighbours as a run: `1–10, 12`; of many runs the first ones and how many launches there are."""
        runs = _runs(self.numbers)
        shown = ", ".join(f"{first}" if first == last else f"{first}–{last}" for first, last in runs[:_RUNS_SHOWN])
        return shown if len(runs) <= _RUNS_SHOWN else f"{shown}, … ({len(self.numbers)} launches)"


def groups_of(launches: Iterable[LaunchReport]) -> list[Group]:
    """The groups, in the order of their first launches."""
    found: dict[Hashable, tuple[LaunchReport, list[int]]] = {}
    for number, launch in enumerate(launches, 1):
        places = tuple((line.where, line.frames) for line in launch.record.lines)
        found.setdefault((identity(launch), places), (launch, []))[1].append(number)
    return [Group(launch, tuple(numbers)) for launch, numbers in found.values()]


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return runs
