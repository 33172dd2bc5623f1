"""What every report tells of a launch: each fact of the table, and each section, or a reason why not."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping

import pytest
from parsed import Parsed
from rich.console import Console

from launches import VEC_ADD, finding, gpu_launch, line, nki_launch
from triptych.core.checks import Severity
from triptych.core.plan import LaunchShape
from triptych.core.source import SourceLocation
from triptych.execution.launch_report import LaunchReport
from triptych.report import document
from triptych.report import dumps as json_dumps
from triptych.report.counter_views import CounterChoice
from triptych.report.facts import FACTS, facts_json, facts_told
from triptych.report.html import page
from triptych.report.terminal import report
from triptych.report.trace import dumps, trace

SHAPE = LaunchShape((24, 3, 1), (96, 1, 1), 5120, (8, 3, 1), cooperative=True)
LAUNCH = gpu_launch(
    "marked", chip="h200", target="sm_89", shape=SHAPE, call_site=SourceLocation("caller.py", 77),
    lines=(line("hot.cu", 31, VEC_ADD, SourceLocation("inlined.cu", 41)),),
    findings=(finding(Severity.WARNING, SourceLocation("found.cu", 51), SourceLocation("frame.cu", 61)),),
)  # fmt: skip


def as_terminal(launch: LaunchReport) -> str:
    stream = io.StringIO()
    Console(file=stream, width=250).print(report([launch], 250, counters=CounterChoice.of("all")))
    return " ".join(stream.getvalue().split())


def as_json(launch: LaunchReport) -> str:
    return json_dumps(document([launch], script="x.py", arguments=[], exit_status=0))


def as_page(launch: LaunchReport) -> str:
    return Parsed(page([launch], script="x.py", arguments=[], exit_status=0)).text


def as_trace(launch: LaunchReport) -> str:
    return dumps(trace([launch], script="x.py"))


REPORTS: Mapping[str, Callable[[LaunchReport], str]] = {
    "terminal": as_terminal,
    "json": as_json,
    "html": as_page,
    "trace": as_trace,
}
SECTIONS: Mapping[str, str] = {
    "kernel": "marked",
    "language": "cuda",
    "chip": "h200",
    "target": "sm_89",
    "call site": "caller.py",
    "lines": "hot.cu",
    "callers of lines": "inlined.cu",
    "findings": "found.cu",
    "callers of findings": "frame.cu",
    "messages": "global load of 4 bytes behind the end of",
    "counters": "global.load.compulsory_bytes",
    "model": "ridge_point",
    "notes": "72 blocks leaves 60 of 132 SMs idle",
}
"""What a report has, and a text of `LAUNCH` that shows it."""
LEFT_OUT: Mapping[tuple[str, str], str] = {
    ("terminal", "callers of lines"): "its hot lines are sums over all callers",
    ("trace", "lines"): "no time of a line is known",
    ("trace", "callers of lines"): "no time of a line is known",
    ("trace", "notes"): "a viewer has no place for them",
}
"""What reports do without, each with the reason."""


@pytest.mark.parametrize("name", REPORTS)
def test_every_report_has_every_section(name: str) -> None:
    text = REPORTS[name](LAUNCH)
    missing = {section for section, shown in SECTIONS.items() if shown not in text}
    assert missing == {section for report_name, section in LEFT_OUT if report_name == name}


def test_facts_as_people_read_them() -> None:
    assert dict(facts_told(LAUNCH)) == {
        "language": "cuda", "compiled for": "sm_89", "on": "h200", "grid": "24×3", "block": "96", "cluster": "8×3",
        "shared memory": "5 KiB", "cooperative": "yes", "launched at": "caller.py:77",
    }  # fmt: skip
    assert dict(facts_told(nki_launch())) == {"language": "nki", "compiled for": "trn2", "on": "trn2", "grid": "1"}


@pytest.mark.parametrize("launch", [LAUNCH, nki_launch()], ids=["gpu", "neuron"])
def test_json_page_and_trace_have_every_fact(launch: LaunchReport) -> None:
    facts = facts_json(launch)
    assert facts.keys() == FACTS.keys()
    (told,) = json.loads(as_json(launch))["launches"]
    events = json.loads(as_trace(launch))["traceEvents"]
    (arguments,) = (event["args"] for event in events if "counters" in event["args"])
    text = as_page(launch)
    for key, value in facts.items():
        assert told[key] == arguments[key] == value
    for title, shown in facts_told(launch):
        assert f"{title}{shown}" in text


def test_the_shape_is_told_whole() -> None:
    facts = facts_json(LAUNCH)
    assert {key: facts[key] for key in ("grid", "block", "cluster", "shared_bytes", "cooperative")} == {
        "grid": [24, 3, 1],
        "block": [96, 1, 1],
        "cluster": [8, 3, 1],
        "shared_bytes": 5120,
        "cooperative": True,
    }
    assert facts["call_site"] == {"file": "caller.py", "line": 77}
