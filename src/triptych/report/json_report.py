"""Launches -> a JSON document of the form `triptych.run/1`, whose JSON Schema lies beside this file."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from typing import Any, cast

from triptych.core.counters import Counter
from triptych.core.errors import TriptychError
from triptych.core.launches import Finding, Line
from triptych.core.source import SourceLocation
from triptych.execution.launch_report import LaunchReport
from triptych.execution.tuning import Tuning
from triptych.model import Roofline
from triptych.report.engines import timeline_json
from triptych.report.facts import facts_json, place_json
from triptych.report.findings import is_clean
from triptych.report.tunings import tuning_json

SCHEMA = "triptych.run/1"
"""The document's `schema`: it changes when a reader would have to."""
CHIPS_SCHEMA = "triptych.chips/1"
"""That of what `triptych chips --json` writes."""
INSTRUCTIONS_SCHEMA = "triptych.instructions/1"
"""That of what `triptych instructions --json` writes."""
OPERATORS_SCHEMA = "triptych.operators/1"
"""That of what `triptych operators --json` writes."""
MEMORY_WALL_SCHEMA = "triptych.memory-wall/1"
"""That of what `triptych memory-wall --json` writes."""


@cache
def schema(name: str = SCHEMA) -> Mapping[str, Any]:
    """The JSON Schema (draft 2020-12) of the documents whose `schema` is `name`."""
    file = f"schemas/{name.removeprefix('triptych.').replace('/', '-')}.schema.json"
    text = files("triptych.report").joinpath(file).read_text(encoding="utf-8")
    return cast("Mapping[str, Any]", json.loads(text))


def document(
    launches: Iterable[LaunchReport],
    *,
    script: str,
    arguments: Sequence[str],
    exit_status: int,
    error: BaseException | None = None,
    tunings: Iterable[Tuning] = (),
) -> dict[str, Any]:
    """The whole run: the script, its arguments, how it ended, what the checks found, and every launch, in order.

    `error` is the exception that ended the script, a kernel's fault for instance, where one did; `tunings` are what
    autotuners chose.
    """
    told = list(launches)
    return {
        "schema": SCHEMA,
        "script": script,
        "arguments": list(arguments),
        "exit_status": exit_status,
        "clean": is_clean(told),
        "error": None if error is None else _error(error),
        "launches": [launch_json(launch) for launch in told],
        "tunings": [tuning_json(tuning) for tuning in tunings],
    }


def dumps(value: Mapping[str, Any]) -> str:
    """JSON text, as strict JSON allows: a NaN or an infinity in a counter is an error of ours, never output."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def launch_json(launch: LaunchReport) -> dict[str, Any]:
    """One launch, of the form `launch` in the schema."""
    record = launch.record
    return {
        "kernel": record.kernel,
        **facts_json(launch),
        "counters": _counters(record.counters),
        "model": {} if launch.stopped else _counters(launch.roofline.counters()),
        "roofline": None if launch.stopped else _roofline(launch.roofline),
        "timeline": None if launch.stopped else timeline_json(launch.timeline),
        "notes": list(launch.notes),
        "lines": [_line(line) for line in record.lines],
        "checks": list(record.checks),
        "findings": [_finding(finding) for finding in record.findings],
    }


def _error(error: BaseException) -> dict[str, Any]:
    ours = error if isinstance(error, TriptychError) else None
    where = ours.where if ours is not None else None
    return {
        "kind": type(error).__name__,
        "message": ours.message if ours is not None else str(error),
        "hint": ours.hint if ours is not None else "\n".join(getattr(error, "__notes__", ())) or None,
        "file": None if where is None else where.file,
        "line": None if where is None else where.line,
    }


def _counters(counters: Mapping[str, Counter]) -> dict[str, Any]:
    return {
        name: {"value": counter.value, "unit": counter.unit, "provenance": counter.provenance.value}
        for name, counter in counters.items()
    }


def _roofline(roofline: Roofline) -> dict[str, Any]:
    return {
        "flops": roofline.flops,
        "bytes": roofline.bytes,
        "memory_level": roofline.memory_level,
        "intensity": roofline.intensity if math.isfinite(roofline.intensity) else None,
        "ridge_point": roofline.ridge_point,
        "bound": roofline.bound,
        "limited_by": roofline.limited_by,
        "floor_s": roofline.floor_s,
        "estimate_s": roofline.estimate_s,
        "fraction": roofline.fraction,
    }


def _frames(frames: Sequence[SourceLocation]) -> list[dict[str, Any] | None]:
    return [place_json(frame) for frame in frames]


def _line(line: Line) -> dict[str, Any]:
    return {
        "file": line.where.file,
        "line": line.where.line,
        "text": line.where.text,
        "frames": _frames(line.frames),
        "counters": _counters(line.counters),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    where = finding.where
    return {
        "check": finding.check,
        "severity": finding.severity.value,
        "message": finding.message,
        "file": None if where is None else where.file,
        "line": None if where is None else where.line,
        "frames": _frames(finding.frames),
        "thread": None if finding.thread is None else list(finding.thread),
        "block": None if finding.block is None else list(finding.block),
        "hint": finding.hint,
        **asdict(finding.memory),
    }
