"""The timeline of a NeuronCore's launch as a table, as sentences, and as JSON: who worked, who waited for what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from triptych.neuron.isa.hardware import Engine
from triptych.neuron.timeline import EngineUse, PathLine, Stall, Timeline
from triptych.report.quantities import count, duration, percent
from triptych.report.tables import plain_table

SHOWN = 4
"""Kernels whose engines are shown, and lines of each critical path."""


def engine_table(timeline: Timeline) -> RenderableType:
    """A row for each engine that did something, with what it waited for longest."""
    table = plain_table()
    several = len(timeline.work.cores) > 1
    for heading, right in (("engine", False), ("instr.", True), ("at work", True), ("of it all", True)):
        table.add_column(heading, justify="right" if right else "left", no_wrap=True)
    table.add_column("stood still", justify="right", no_wrap=True)
    table.add_column("most of it for", overflow="fold")
    for use in timeline.uses:
        name = f"core {use.core}: {use.engine.value}" if several else use.engine.value
        share = percent(use.busy / timeline.seconds) if timeline.seconds else percent(0.0)
        still = sum(stall.seconds for stall in use.stalls)
        told = "" if use.engine is Engine.DMA else duration(still)
        table.add_row(name, count(use.instructions), duration(use.busy), share, told, waits(use))
    return table


def waits(use: EngineUse) -> str:
    """What an engine waited for longest, and whom."""
    if not use.stalls:
        return ""
    longest = use.stalls[0]
    return f"{longest.cause.value}{_of(longest)}, {duration(longest.seconds)}"


def _of(stall: Stall) -> str:
    return "" if stall.culprit is None else f" ({stall.culprit.value})"


def sentences(timeline: Timeline) -> Iterable[Text]:
    """How much of the movement is hidden, and which lines the time goes to."""
    moved = any(use.engine is Engine.DMA for use in timeline.uses)
    if moved:
        yield Text(f"Engines work in {percent(timeline.overlap)} of the time in which data are moved.")
    lines = timeline.critical_lines[:SHOWN]
    if lines and timeline.seconds:
        yield Text(f"Critical path: {', '.join(_line(one, timeline.seconds) for one in lines)}.")


def _line(one: PathLine, seconds: float) -> str:
    return f"{one.where.file.rsplit('/', 1)[-1]}:{one.where.line} ({one.engine.value}) {percent(one.seconds / seconds)}"


def timeline_json(timeline: Timeline | None) -> dict[str, Any] | None:
    """Of the form `timeline` in the schema; None of a launch that has none."""
    if timeline is None:
        return None
    return {
        "seconds": timeline.seconds,
        "overlap": timeline.overlap,
        "tensor_utilisation": timeline.utilisation,
        "engines": [_engine(use) for use in timeline.uses],
        "critical_path": [
            {"file": one.where.file, "line": one.where.line, "engine": one.engine.value, "seconds": one.seconds}
            for one in timeline.critical_lines
        ],
    }


def _engine(use: EngineUse) -> Mapping[str, Any]:
    return {
        "core": use.core,
        "engine": use.engine.value,
        "instructions": use.instructions,
        "busy_s": use.busy,
        "stalls": [_stall(one) for one in use.stalls],
    }


def _stall(stall: Stall) -> Mapping[str, Any]:
    culprit = None if stall.culprit is None else stall.culprit.value
    return {"cause": stall.cause.value, "engine": culprit, "seconds": stall.seconds}


def timeline_tables(timelines: Sequence[tuple[str, Timeline]]) -> Iterable[RenderableType]:
    """The engines of the kernels, by their titles; of all but the first few how many there are."""
    for title, timeline in timelines[:SHOWN]:
        yield Text(f"\nengines of {title}: {duration(timeline.seconds)}, simulated", "bold")
        yield engine_table(timeline)
        yield from sentences(timeline)
    more = len(timelines) - SHOWN
    if more > 0:
        yield Text(f"… and those of {count(more)} more kernel{'s' * (more > 1)}: --json has them.", "dim")
