"""The timeline of a NeuronCore's launch in the reports."""

from __future__ import annotations

import io
import json
from typing import Any

import jsonschema
import pytest
from rich.cells import cell_len
from rich.console import Console

from launches import gpu_launch, nki_launch, simulated_launch
from triptych.execution.launch_report import LaunchReport
from triptych.report.engines import timeline_json
from triptych.report.json_report import document, dumps, schema
from triptych.report.terminal import report


def text(*launches: LaunchReport, width: int = 100) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width, highlight=False, markup=False).print(report(launches, width))
    return stream.getvalue()


def test_the_terminal_says_who_worked_and_who_waited() -> None:
    told = text(simulated_launch())
    assert "engines of scale (#1): " in told
    assert ", simulated" in told
    vector = next(line for line in told.splitlines() if line.startswith("vector "))
    assert "data (dma)" in vector
    assert "Engines work in 0% of the time in which data are moved." in told
    assert "Critical path: launches.py:" in told
    assert "simulated timelines" in told
    assert max(map(cell_len, text(simulated_launch(), width=60).splitlines())) <= 60


def test_launches_without_a_timeline_have_no_engines() -> None:
    assert "engines of" not in text(gpu_launch(), nki_launch())
    assert timeline_json(nki_launch().timeline) is None


def test_json() -> None:
    launch = simulated_launch()
    assert launch.timeline is not None
    whole = json.loads(dumps(document([launch], script="x.py", arguments=(), exit_status=0)))
    validator: Any = jsonschema.Draft202012Validator(schema())
    validator.validate(whole)
    told = whole["launches"][0]["timeline"]
    assert told["seconds"] == launch.roofline.estimate_s == launch.timeline.seconds
    assert {one["engine"]: one["instructions"] for one in told["engines"]} == {"vector": 1, "dma": 2}
    assert told["overlap"] == pytest.approx(0)
    assert sum(one["seconds"] for one in told["critical_path"]) == pytest.approx(told["seconds"])
    (vector,) = [one for one in told["engines"] if one["engine"] == "vector"]
    assert [(one["cause"], one["engine"]) for one in vector["stalls"]] == [("data", "dma")]
