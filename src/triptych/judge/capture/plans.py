"""A candidate's plans for the sizes of a task: those that are known, or what a sandbox captures now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from triptych.chips import Chip
from triptych.core.plan import Program
from triptych.judge.candidate import Candidate, Task
from triptych.judge.capture.outside import Captured, Library, capture
from triptych.judge.capture.request import CaptureRequest, sizes_of
from triptych.judge.execution.inside import programs_of
from triptych.judge.verdict import Failed, failed
from triptych.judge.workshop import CapturedPlans, Known, Workshop
from triptych.operators.operator import Size


def capture_sizes(
    workshop: Workshop, candidate: Candidate, task: Task, sizes: Sequence[Size], chips: Sequence[Chip]
) -> Known | Failed:
    """What the candidate's host code asks for at each size.

    Args:
        workshop: the sandbox to capture in, and what is known of candidates.
        candidate: its source.
        task: whose operator and type.
        sizes: the sizes.
        chips: those that it is captured for: all have one compile target. The default ones where there are none.
    """
    key = replace(task, sizes=tuple(sizes), chips=tuple(chips)).key(candidate)
    known = workshop.memory.known(key)
    if known is None:
        request = CaptureRequest(
            candidate.source,
            candidate.name,
            sizes_of(task.operator, [size.values for size in sizes], task.dtype),
            candidate.format,
            chips[0] if chips else None,
        )
        found = capture(workshop.capture_of(candidate.source), request)
        if found.outcome is not None:
            workshop.note(found.outcome.layers)
        if not isinstance(found, Captured):
            return failed(found.code, found.message, found.where)
        plans = believed(found)
        if not isinstance(plans, CapturedPlans):
            return plans
        known = Known(key, plans, {})
        workshop.memory.remember(known)
    return known


def believed(found: Captured) -> CapturedPlans | Failed:
    """The plans, unless something beside them speaks against the candidate."""
    if found.differs:
        return failed("capture_differs", "the second call of a size asks for other work than the first")
    if found.tampered:
        return failed("tampered", f"replaced while it was captured: {', '.join(found.tampered)}")
    library = dict.fromkeys(_told(one) for one in found.library if one.used)
    if library:
        return failed("library_work", f"work outside of kernels: {'; '.join(library)}")
    programs: dict[Program, None] = {}
    for plan in found.plans:
        programs |= dict.fromkeys(programs_of(plan))
    languages = tuple(dict.fromkeys(program.language for program in programs))
    machines = tuple(dict.fromkeys(program.machine for program in programs))
    if len(machines) > 1:
        return failed("unsupported", f"kernels for several machines in one solution: {', '.join(machines)}")
    return CapturedPlans(found.plans, languages, machines[0] if machines else "gpu")


def _told(work: Library) -> str:
    return work.operator if work.where is None else f"{work.operator} at {work.where}"
