"""Launches -> a trace in Chrome's trace-event format, which Perfetto and `chrome://tracing` open.

Every time in it is modelled: a launch lasts its estimate, and begins where the one before it ends, on whatever chip
that ran. So launches never overlap, and gaps between them and the host's own time are not there to be seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

from triptych.core.counters import Counter
from triptych.core.launches import Finding
from triptych.execution.launch_report import LaunchReport
from triptych.neuron.isa.hardware import Engine
from triptych.neuron.timeline import Event as Executed
from triptych.report.facts import facts_json

Event = dict[str, Any]

MICROSECONDS = 1e6
"""To a second: the format's unit of time."""
MODELLED = "modelled"
"""The category of every slice."""
_LAUNCHES = "launches, each at its estimate"
_TRACKS = 1000
"""Numbers of tracks kept for a chip: viewers want them to be distinct over all chips."""


def trace(launches: Iterable[LaunchReport], *, script: str) -> dict[str, Any]:
    """The document: a process for each chip, in it a track of launches and a track for each roof.

    A launch is a slice of its estimate, with the launch overhead inside it. Each roof's slice begins after the
    overhead and lasts as long as the roof's work takes at its peak; the longest one ends with the launch. Times are in
    microseconds from the first launch's start. Counters stand in a launch's `args`, by provenance. A launch that a
    fault stopped is an instant: no time of it is known. What a NeuronCore executed has a track for each engine and each
    DMA queue of a core, with a slice an instruction: its line, what it waited for, whether it is on the critical path.
    """
    chips: dict[str, _Process] = {}
    slices: list[Event] = []
    now = 0.0
    for number, launch in enumerate(launches, 1):
        process = chips.setdefault(launch.chip.name, _Process(len(chips) + 1, launch.chip.title))
        if launch.stopped:
            slices += _stopped(number, launch, process, now)
            continue
        slices += _slices(number, launch, process, now)
        now += launch.roofline.estimate_s * MICROSECONDS
    return {
        "displayTimeUnit": "ns",
        "otherData": {
            "script": script,
            "times": "modelled: estimates at the chip's peaks, one launch after the other; nothing was timed",
        },
        "traceEvents": [*(event for process in chips.values() for event in process.names()), *slices],
    }


def dumps(document: Mapping[str, Any]) -> str:
    """JSON text, an event a line."""
    head = {key: value for key, value in document.items() if key != "traceEvents"}
    events = ",\n".join(json.dumps(event, ensure_ascii=False, allow_nan=False) for event in document["traceEvents"])
    return f'{json.dumps(head, ensure_ascii=False)[:-1]}, "traceEvents": [\n{events}\n]}}\n'


class _Place(TypedDict):
    """A track of a process."""

    pid: int
    tid: int


@dataclass(slots=True)
class _Process:
    """A chip of the trace, and its tracks by name."""

    number: int
    title: str
    tracks: dict[str, int] = field(default_factory=dict[str, int])

    def place(self, track: str) -> _Place:
        """What puts an event on the track of a name."""
        return _Place(pid=self.number, tid=self.tracks.setdefault(track, self.number * _TRACKS + len(self.tracks)))

    def names(self) -> Iterator[Event]:
        """The metadata events: what the chip and its tracks are called, and their order."""
        first = self.number * _TRACKS
        yield self._metadata("process_name", first, {"name": f"{self.title} (modelled)"})
        yield self._metadata("process_sort_index", first, {"sort_index": self.number})
        for name, number in self.tracks.items():
            yield self._metadata("thread_name", number, {"name": name})
            yield self._metadata("thread_sort_index", number, {"sort_index": number})

    def _metadata(self, name: str, track: int, args: Mapping[str, Any]) -> Event:
        return {"name": name, "ph": "M", "pid": self.number, "tid": track, "ts": 0, "args": args}


def _slices(number: int, launch: LaunchReport, process: _Process, start: float) -> Iterator[Event]:
    roofline = launch.roofline
    place = process.place(_LAUNCHES)
    yield _slice(launch.kernel, start, roofline.estimate_s, place, _arguments(number, launch))
    overhead = roofline.launch_overhead_s
    if overhead > 0:
        yield _slice("launch overhead", start, overhead, place, {"launch": number})
    for finding in launch.findings:
        yield _finding(finding, start, place)
    for roof in roofline.roofs:
        told = {"launch": number, "amount": roof.amount, "unit": roof.unit, "peak_per_s": roof.rate}
        told["counts_towards_floor"] = roof.required
        begin = start + overhead * MICROSECONDS
        yield _slice(f"{roof.name}: {launch.kernel}", begin, roof.seconds, process.place(f"roof: {roof.name}"), told)
    yield from _instructions(number, launch, process, start)


def _instructions(number: int, launch: LaunchReport, process: _Process, start: float) -> Iterator[Event]:
    """A slice for each instruction of a launch that has a timeline."""
    timeline = launch.timeline
    if timeline is None:
        return
    events = list(timeline.events())
    critical = frozenset(timeline.critical_path)
    for event in events:
        told: dict[str, Any] = {"launch": number, "where": str(event.where), "waited_for": event.waited_for.value}
        if event.waited_for_step is not None:
            other = events[event.waited_for_step]
            told["waited_for_instruction"] = f"{other.operation} on {other.engine.value}, {other.where}"
        told["critical_path"] = event.step in critical
        place = process.place(_queue_of(event))
        name = f"{event.operation} {Path(event.where.file).name}:{event.where.line}"
        yield _slice(name, start + event.start * MICROSECONDS, event.end - event.start, place, told)


def _queue_of(event: Executed) -> str:
    queue = f" queue {event.queue}" if event.engine is Engine.DMA else ""
    return f"core {event.core}: {event.engine.value}{queue}"


def _stopped(number: int, launch: LaunchReport, process: _Process, start: float) -> Iterator[Event]:
    place = process.place(_LAUNCHES)
    told = {"launch": number, **facts_json(launch)}
    yield _instant(f"stopped: {launch.kernel}", "stopped", start, place, told)
    for finding in launch.findings:
        yield _finding(finding, start, place)


def _slice(name: str, start: float, seconds: float, place: _Place, arguments: Mapping[str, Any]) -> Event:
    """A complete event; `start` is in microseconds."""
    told = {"provenance": MODELLED, "seconds": seconds, **arguments}
    return {
        "name": name,
        "cat": MODELLED,
        "ph": "X",
        "ts": start,
        "dur": seconds * MICROSECONDS,
        **place,
        "args": told,
    }


def _finding(finding: Finding, start: float, place: _Place) -> Event:
    """An instant at the launch's start: when in the launch it happened is not known."""
    told: dict[str, Any] = {"message": finding.message}
    if finding.where is not None:
        told["where"] = str(finding.where)
    if finding.frames:
        told["called_from"] = [str(frame) for frame in finding.frames]
    if finding.hint is not None:
        told["hint"] = finding.hint
    return _instant(f"{finding.severity.value}: {finding.check}", "finding", start, place, told)


def _instant(name: str, category: str, start: float, place: _Place, arguments: Mapping[str, Any]) -> Event:
    return {"name": name, "cat": category, "ph": "i", "s": "t", "ts": start, **place, "args": arguments}


def _arguments(number: int, launch: LaunchReport) -> dict[str, Any]:
    roofline = launch.roofline
    return {
        "launch": number,
        **facts_json(launch),
        "bound": roofline.bound,
        "limited_by": roofline.limited_by,
        "counters": _by_provenance([*launch.counters.items(), *roofline.counters().items()]),
    }


def _by_provenance(counters: Iterable[tuple[str, Counter]]) -> dict[str, dict[str, int | float]]:
    """Values under their provenance, each named with its unit: viewers show a tree of names and plain values."""
    found: dict[str, dict[str, int | float]] = {}
    for name, counter in counters:
        found.setdefault(counter.provenance.value, {})[f"{name} ({counter.unit})"] = counter.value
    return found
