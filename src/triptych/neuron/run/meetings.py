"""Runs the programs of a grid, which wait for each other where they meet: barriers, exchanges, collectives."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

from triptych.core.errors import DeadlockError
from triptych.core.settings import settings
from triptych.neuron.run.program import Meeting, ProgramRun

Running = Generator[Meeting, Sequence[Meeting]]


def run_programs(runs: Sequence[ProgramRun], kernel: str, synchronise: Callable[[], None]) -> None:
    """Run all to their end: each as far as it gets alone, in the order of the setting, then those that meet.

    `synchronise` is called where all met: what was stored before is known to all.

    Raises:
        DeadlockError: where programs wait at different places, or for one that has ended.
    """
    running: dict[int, Running] = {index: run.run() for index, run in enumerate(runs)}
    waiting: dict[int, Meeting] = {}
    order = -1 if settings().block_order == "descending" else 1
    for index in list(running)[::order]:
        _advance(running, waiting, index, None)
    while waiting:
        group = _group(waiting, len(runs))
        if group is None:
            raise _deadlock(waiting, len(runs), kernel)
        met = [waiting.pop(index) for index in group]
        if len(group) == len(runs):
            synchronise()
        for index in group:
            _advance(running, waiting, index, met)


def _advance(running: dict[int, Running], waiting: dict[int, Meeting], index: int, met: list[Meeting] | None) -> None:
    try:
        waiting[index] = next(running[index]) if met is None else running[index].send(met)
    except StopIteration:
        del running[index]


def _group(waiting: dict[int, Meeting], programs: int) -> Sequence[int] | None:
    """Programs that wait for each other, all at the same kind of meeting; None where there are none."""
    for meeting in waiting.values():
        group = members(meeting, programs)
        if all(one in waiting and _kind(waiting[one]) == _kind(meeting) for one in group):
            return group
    return None


def members(meeting: Meeting, programs: int) -> Sequence[int]:
    """The programs that take part: those of its group, all where it names none."""
    group = meeting.instruction.attributes.get("group")
    named = [one for one in group if isinstance(one, int)] if isinstance(group, tuple) else []
    return named or list(range(programs))


def _kind(meeting: Meeting) -> tuple[object, ...]:
    attributes = meeting.instruction.attributes
    return meeting.instruction.operation, attributes.get("pipe_id"), attributes.get("group")


def _deadlock(waiting: dict[int, Meeting], programs: int, kernel: str) -> DeadlockError:
    first = min(waiting)
    places = [
        f"program {index} at {one.instruction.operation} in line {one.instruction.where.line}"
        for index, one in sorted(waiting.items())
    ]
    ended = [str(index) for index in range(programs) if index not in waiting]
    gone = f"; ended: {', '.join(ended)}" if ended else ""
    return DeadlockError(
        f"kernel {kernel}: programs wait for each other for ever: {', '.join(places)}{gone}",
        where=waiting[first].instruction.where,
        hint="all programs must reach the same barriers and exchanges, with the same pipe_id, in the same order",
        kernel=kernel,
    )
