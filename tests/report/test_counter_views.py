"""Counters that are asked for by name, and kernels."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from rich.console import Console

from launches import VEC_ADD, finding, gpu_launch, nki_launch, stopped_launch
from triptych.core.checks import Severity
from triptych.core.errors import UnknownCounter, UsageError
from triptych.core.source import SourceLocation
from triptych.execution.launch_report import LaunchReport
from triptych.report.counter_views import CounterChoice, counter_views
from triptych.report.kernel_filter import KernelFilter
from triptych.report.terminal import report

LOADS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"


def names(launch: LaunchReport, text: str) -> list[str]:
    return [one.name for one in counter_views(launch, CounterChoice.of(text))]


def printed(
    launches: Sequence[LaunchReport], counters: str | None = None, hidden: Sequence[LaunchReport] = (), width: int = 200
) -> str:
    stream = io.StringIO()
    choice = None if counters is None else CounterChoice.of(counters)
    Console(file=stream, width=width).print(report(launches, width, counters=choice, hidden=hidden))
    return stream.getvalue()


def test_names_patterns_and_aliases() -> None:
    launch = gpu_launch()
    assert names(launch, "flops.f32, branches") == ["branches", "flops.f32"]
    assert names(launch, "global.*.sectors") == ["global.load.sectors", "global.store.sectors"]
    assert names(launch, LOADS) == ["global.load.sectors"]
    assert names(launch, "l1tex__t_sectors*") == ["global.load.sectors", "global.store.sectors"]
    roofs = [f"model.roof.{roof.name}" for roof in launch.roofline.roofs]
    assert names(launch, "model.roof.*,model.floor") == ["model.floor", *roofs]
    assert names(launch, roofs[0]) == roofs[:1]
    every = names(launch, "all")
    assert every == [*launch.counters, *(f"model.{name}" for name in launch.roofline.counters())]
    assert names(launch, "barriers") == []
    assert names(stopped_launch(), "all") == []


def test_values_units_and_provenance() -> None:
    shown = {one.name: one for one in counter_views(gpu_launch())}
    flops, floor = shown["flops.f32"], shown["model.floor"]
    assert (flops.value, flops.unit, flops.provenance, flops.modelled) == (
        "1,048,576",
        "FLOPs",
        "counted on PTX",
        False,
    )
    assert (floor.value, floor.unit, floor.provenance, floor.modelled) == ("3.75609e-06", "s", "modelled", True)


@pytest.mark.parametrize("text", ["flops.f33", "cycles", "model.roofs.*", "global.*.sector", "flops.f32,nothing"])
def test_what_no_machine_counts(text: str) -> None:
    with pytest.raises(UnknownCounter, match="unknown counter"):
        CounterChoice.of(text)


@pytest.mark.parametrize("text", ["", ",", " , "])
def test_no_name_at_all(text: str) -> None:
    with pytest.raises(UsageError, match="names no counter"):
        CounterChoice.of(text)


def test_a_table_for_each_row_of_launches() -> None:
    at = SourceLocation("folder/x.py", 9)
    launches = [gpu_launch(call_site=at), gpu_launch(call_site=at), gpu_launch("other", values={}), nki_launch()]
    text = printed(launches, "flops.*")
    assert "counters of vec_add (#1–2, launched at x.py:9)\n" in text
    assert "counters of other (#3)\n" in text
    assert "none of them: what is 0 is left out" in text
    rows = [line.split() for line in text.splitlines() if line.startswith("flops.")]
    assert rows == [
        ["flops.f32", "1,048,576", "FLOPs", "counted", "on", "PTX"],
        ["flops.vector", "1,048,576", "FLOPs", "counted", "on", "NKI"],
    ]
    assert "counters of" not in printed(launches)
    assert max(map(len, printed(launches, "all", width=60).splitlines())) <= 60


def test_kernels_that_several_lines_launched() -> None:
    one, two = SourceLocation("x.py", 9), SourceLocation("x.py", 12)
    launches = [gpu_launch(call_site=site) for site in (one, one, two, one)] + [gpu_launch("other", call_site=two)]
    text = " ".join(printed(launches).split())
    assert "vec_add was launched at x.py:9 (#1–2, 4), at x.py:12 (#3)." in text
    assert "other was launched" not in text
    many = [gpu_launch(call_site=SourceLocation("x.py", number)) for number in range(1, 10)]
    assert "at x.py:6 (#6), 3 more." in " ".join(printed(many).split())


def test_a_findings_launch() -> None:
    found = finding(Severity.WARNING, SourceLocation("k.cu", 3))
    text = printed([gpu_launch(), gpu_launch(findings=(found,), call_site=SourceLocation("x.py", 9))])
    assert "at k.cu:3\n    launched at x.py:9" in text


@pytest.mark.parametrize(
    ("patterns", "matching"),
    [
        ((), ["add", "add_one", "ns::scale<float>", "Scale"]),
        (("add",), ["add"]),
        (("add*",), ["add", "add_one"]),
        (("*scale",), ["ns::scale<float>"]),
        (("ns::scale<float>",), ["ns::scale<float>"]),
        (("regex:^(add|Sc)",), ["add", "add_one", "Scale"]),
        (("regex:one$", "Scale"), ["add_one", "Scale"]),
        (("none",), []),
    ],
)
def test_kernels_by_pattern(patterns: tuple[str, ...], matching: list[str]) -> None:
    launches = [gpu_launch(name) for name in ("add", "add_one", "ns::scale<float>", "Scale")]
    shown, hidden = KernelFilter.of(patterns).split(launches)
    assert [launch.kernel for launch in shown] == matching
    assert len(shown) + len(hidden) == len(launches)


def test_what_counts_in_the_exit_status_is_never_hidden() -> None:
    launches = [
        gpu_launch("add"),
        gpu_launch("bad", findings=(finding(Severity.WARNING),)),
        gpu_launch("odd", findings=(finding(Severity.NOTICE),)),
        gpu_launch("odd", values=VEC_ADD),
    ]
    shown, hidden = KernelFilter.of(["add"]).split(launches)
    assert [launch.kernel for launch in shown] == ["add", "bad"]
    assert [launch.kernel for launch in hidden] == ["odd", "odd"]
    assert "Not shown, since --kernel names others: odd (2 launches)." in printed(shown, hidden=hidden)
    nothing = printed([], hidden=hidden)
    assert "no kernel that was launched matches --kernel; there were: odd (2 launches)." in " ".join(nothing.split())


def test_no_regular_expression() -> None:
    with pytest.raises(UsageError, match=r"'regex:\(' is no regular expression: missing \)"):
        KernelFilter.of(["regex:("])
