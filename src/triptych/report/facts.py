"""How a launch was asked for: a row for each fact, which JSON, HTML, the trace and the terminal's columns read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triptych.core.source import SourceLocation
from triptych.execution.launch_report import LaunchReport
from triptych.report.quantities import extent, size


@dataclass(frozen=True, slots=True)
class Fact:
    """A row: JSON and the trace have `value` under `key`, people read `text` under `title`."""

    key: str
    title: str
    value: Callable[[LaunchReport], Any]
    """As JSON has it."""
    text: Callable[[LaunchReport], str]
    """Empty where there is nothing to say: what the machine does not have, or what holds where nobody asks."""


def _of_gpu(text: Callable[[LaunchReport], str]) -> Callable[[LaunchReport], str]:
    return lambda launch: text(launch) if launch.record.machine == "gpu" else ""


def _several(extents: Sequence[int]) -> str:
    return "" if set(extents) == {1} else extent(extents)


def place_json(where: SourceLocation | None) -> dict[str, Any] | None:
    """A place in a source as JSON has it."""
    return None if where is None else {"file": where.file, "line": where.line}


FACTS: Mapping[str, Fact] = {
    row.key: row
    for row in (
        Fact("language", "language", lambda one: one.language, lambda one: one.language),
        Fact("target", "compiled for", lambda one: one.target, lambda one: one.target),
        Fact("chip", "on", lambda one: one.chip.name, lambda one: one.chip.name),
        Fact("grid", "grid", lambda one: list(one.grid), lambda one: extent(one.grid)),
        Fact("block", "block", lambda one: list(one.block), _of_gpu(lambda one: extent(one.block))),
        Fact(
            "cluster", "cluster",
            lambda one: list(one.record.shape.cluster), lambda one: _several(one.record.shape.cluster),
        ),
        Fact(
            "shared_bytes", "shared memory",
            lambda one: one.record.shared_bytes, _of_gpu(lambda one: size(one.record.shared_bytes)),
        ),
        Fact(
            "cooperative", "cooperative",
            lambda one: one.record.shape.cooperative, lambda one: "yes" if one.record.shape.cooperative else "",
        ),
        Fact(
            "call_site", "launched at",
            lambda one: place_json(one.call_site), lambda one: "" if one.call_site is None else str(one.call_site),
        ),
        Fact(
            "stopped", "stopped",
            lambda one: one.stopped, lambda one: "by a fault: nothing was counted to its end" if one.stopped else "",
        ),
    )
}  # fmt: skip
"""The table, by key. The kernel's name is not in it: reports have it as a title."""


def facts_json(launch: LaunchReport) -> dict[str, Any]:
    """All facts as JSON has them."""
    return {key: fact.value(launch) for key, fact in FACTS.items()}


def facts_told(launch: LaunchReport) -> list[tuple[str, str]]:
    """Titles and texts, of what there is to say."""
    told = ((fact.title, fact.text(launch)) for fact in FACTS.values())
    return [(title, text) for title, text in told if text]
