"""The trace: Chrome's format, launches one after the other, every time modelled."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from launches import finding, gpu_launch, nki_launch, simulated_launch, stopped_launch
from triptych.core.checks import Severity
from triptych.core.source import SourceLocation
from triptych.execution.launch_report import LaunchReport
from triptych.report.trace import dumps, trace

REQUIRED = {
    "X": {"name", "cat", "ph", "ts", "dur", "pid", "tid", "args"},
    "M": {"name", "ph", "ts", "pid", "tid", "args"},
    "i": {"name", "cat", "ph", "s", "ts", "pid", "tid", "args"},
}
"""By phase: the keys of the format."""
LAUNCHES = [gpu_launch(), nki_launch(), gpu_launch("other"), gpu_launch(chip="a100-80", target="sm_80")]


def events(launches: Sequence[LaunchReport], phase: str | None = None) -> list[dict[str, Any]]:
    document = json.loads(dumps(trace(launches, script="x.py")))
    return [event for event in document["traceEvents"] if phase in (None, event["ph"])]


def launch_slices(launches: Sequence[LaunchReport]) -> list[dict[str, Any]]:
    return [event for event in events(launches, "X") if "counters" in event["args"]]


def test_the_format() -> None:
    found = finding(Severity.ERROR, SourceLocation("k.cu", 3), SourceLocation("k.cu", 9))
    all_events = events([*LAUNCHES, gpu_launch(findings=(found,))])
    assert {event["ph"] for event in all_events} == set(REQUIRED)
    for event in all_events:
        assert set(event) == REQUIRED[event["ph"]]
        assert isinstance(event["name"], str)
        assert event["name"]
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert event["pid"] > 0
        assert event["ts"] >= 0
        assert event.get("dur", 0) >= 0
        if event["ph"] == "M":
            assert event["name"] in {"process_name", "process_sort_index", "thread_name", "thread_sort_index"}


def test_every_slice_is_modelled_and_says_so() -> None:
    for event in events(LAUNCHES, "X"):
        assert event["cat"] == "modelled"
        assert event["args"]["provenance"] == "modelled"
        assert event["dur"] == pytest.approx(event["args"]["seconds"] * 1e6)


def test_launches_follow_each_other_over_all_chips() -> None:
    slices = launch_slices(LAUNCHES)
    assert [event["name"] for event in slices] == ["vec_add", "vec_add", "other", "vec_add"]
    assert [event["args"]["launch"] for event in slices] == [1, 2, 3, 4]
    assert slices[0]["ts"] == 0
    for before, after in pairwise(slices):
        assert after["ts"] == before["ts"] + before["dur"]
    for event, launch in zip(slices, LAUNCHES, strict=True):
        assert event["args"]["seconds"] == launch.roofline.estimate_s


def test_a_process_for_each_chip_and_a_track_for_each_roof() -> None:
    names = {(event["pid"], event["tid"]): event for event in events(LAUNCHES, "M") if event["name"] == "thread_name"}
    processes = [event["args"]["name"] for event in events(LAUNCHES, "M") if event["name"] == "process_name"]
    assert processes == [f"{launch.chip.title} (modelled)" for launch in (LAUNCHES[0], LAUNCHES[1], LAUNCHES[3])]
    assert len({track for _, track in names}) == len(names)
    for event in events(LAUNCHES, "X"):
        track = names[event["pid"], event["tid"]]["args"]["name"]
        assert track.startswith("launches" if "amount" not in event["args"] else "roof: ")
    launches = [event["pid"] for event in launch_slices(LAUNCHES)]
    assert launches == [1, 2, 1, 3]


def test_roofs_begin_after_the_overhead_and_end_with_their_launch() -> None:
    for index, launch in enumerate(LAUNCHES, 1):
        own = [event for event in events(LAUNCHES, "X") if event["args"]["launch"] == index]
        (whole,) = (event for event in own if "counters" in event["args"])
        (overhead,) = (event for event in own if event["name"] == "launch overhead")
        roofs = [event for event in own if "amount" in event["args"]]
        assert (overhead["ts"], overhead["tid"]) == (whole["ts"], whole["tid"])
        assert overhead["dur"] <= whole["dur"]
        assert [event["args"]["seconds"] for event in roofs] == [roof.seconds for roof in launch.roofline.roofs]
        assert {event["ts"] for event in roofs} == {overhead["ts"] + overhead["dur"]}
        end = max(event["ts"] + event["dur"] for event in roofs)
        assert end == pytest.approx(whole["ts"] + whole["dur"])


def test_slices_of_one_track_never_overlap() -> None:
    tracks: dict[int, list[dict[str, Any]]] = {}
    for event in events(LAUNCHES * 3, "X"):
        if event["name"] != "launch overhead":  # which lies inside its launch
            tracks.setdefault(event["tid"], []).append(event)
    for own in tracks.values():
        for before, after in pairwise(own):
            assert before["ts"] + before["dur"] <= after["ts"] * (1 + 1e-12)


def test_counters_by_provenance() -> None:
    (slice_,) = launch_slices([gpu_launch()])
    counters = slice_["args"]["counters"]
    assert counters["counted on PTX"]["flops.f32 (FLOPs)"] == 1048576
    assert counters["modelled"]["ridge_point (FLOP/byte)"] == 20
    assert "counted on NKI" in launch_slices([nki_launch()])[0]["args"]["counters"]
    assert slice_["args"]["grid"] == [4096, 1, 1]


def test_findings_are_instants_on_their_launch() -> None:
    found = finding(Severity.ERROR, SourceLocation("k.cu", 3), SourceLocation("k.cu", 9))
    launches = [gpu_launch(), gpu_launch(findings=(found, finding(Severity.NOTICE)))]
    first, second = events(launches, "i")
    assert (first["name"], second["name"]) == ("error: memcheck", "notice: memcheck")
    assert first["args"] == {"message": found.message, "where": "k.cu:3", "called_from": ["k.cu:9"]}
    assert first["ts"] == launch_slices(launches)[1]["ts"]


def test_a_stopped_launch_is_an_instant_without_time() -> None:
    launches = [gpu_launch(), stopped_launch(), gpu_launch()]
    stop, found = events(launches, "i")
    assert (stop["name"], stop["args"]["launch"], found["name"]) == ("stopped: bad", 2, "error: memcheck")
    first, last = launch_slices(launches)
    assert stop["ts"] == last["ts"] == first["ts"] + first["dur"]


def test_a_launch_that_does_nothing_takes_the_overhead() -> None:
    (slice_,) = launch_slices([gpu_launch(values={})])
    assert slice_["dur"] == pytest.approx(gpu_launch(values={}).roofline.launch_overhead_s * 1e6)


def test_nothing_launched() -> None:
    document = json.loads(dumps(trace([], script="x.py")))
    assert document["traceEvents"] == []
    assert document["otherData"]["script"] == "x.py"
    assert document["displayTimeUnit"] == "ns"


@pytest.mark.parametrize("name", ['"},{"ph":"X"', "a\nb", "\u2028\x00", "back\\slash"])
def test_names_are_text(name: str) -> None:
    (slice_,) = launch_slices([gpu_launch(name)])
    assert slice_["name"] == name


def test_instructions_of_a_neuroncore() -> None:
    """A slice for each instruction, on the track of its queue, within the launch that it belongs to."""
    launch = simulated_launch()
    slices = [event for event in events([gpu_launch(), launch], "X") if "critical_path" in event["args"]]
    assert [event["name"].split()[0] for event in slices] == ["dma_copy", "tensor_scalar", "dma_copy"]
    named = [event for event in events([gpu_launch(), launch], "M") if event["name"] == "thread_name"]
    names = {event["tid"]: event["args"]["name"] for event in named}
    tracks = [names[event["tid"]] for event in slices]
    assert tracks == ["core 0: dma queue 0", "core 0: vector", "core 0: dma queue 0"]
    (whole,) = [event for event in launch_slices([gpu_launch(), launch]) if event["args"]["launch"] == 2]
    assert slices[0]["ts"] == pytest.approx(whole["ts"])
    assert slices[-1]["ts"] + slices[-1]["dur"] == pytest.approx(whole["ts"] + whole["dur"])
    for event, waited in zip(slices, ("nothing", "data", "data"), strict=True):
        assert event["args"]["waited_for"] == waited
        assert event["args"]["critical_path"]
        assert event["args"]["where"].startswith(__file__.rsplit("/", 1)[0])
    assert slices[1]["args"]["waited_for_instruction"].startswith("dma_copy on dma, ")
