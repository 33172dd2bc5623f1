"""The terminal report: everything is there, at any width, without escape codes where there is no terminal."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from launches import GPU_CHECKS, finding, gpu_launch, line, nki_launch, stopped_launch
from triptych.core.checks import Severity
from triptych.core.source import SourceLocation
from triptych.execution.launch_report import LaunchReport
from triptych.report.hot_lines import hot_lines
from triptych.report.terminal import report


def printed(
    launches: Sequence[LaunchReport], width: int = 80, *, terminal: bool = False, asked: Sequence[str] = ()
) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=terminal, highlight=False, markup=False)
    console.print(report(launches, width, asked=asked))
    return stream.getvalue()


def test_all_figures_are_there() -> None:
    text = printed([gpu_launch()], 200)
    for figure in (
        "vec_add",
        "cuda",
        "4096",
        "256",
        "459 k",
        "1.05 M",
        "12 MiB",
        "0.0833",
        "memory",
        "3.76 µs",
        "5.76 µs",
        "65.3%",
    ):
        assert figure in text, figure
    told = " ".join(text.split())
    assert "Of the columns, warp instr., FLOPs, sectors/request, divergent and bank conflicts are counted;" in told
    assert "DRAM bytes, L2 bytes, FLOP/byte, ridge," in told
    assert "are modelled, with every peak taken for achievable." in told
    assert "NVIDIA H100 SXM5 80 GB, 3.35 TB/s" in text


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    long_name = "_Z11gelu_linearILi128ELi64EEvPKfS1_S1_Pfiii"
    launches = [gpu_launch(), gpu_launch(long_name), nki_launch()]
    text = printed(launches, width)
    assert max(map(cell_len, text.splitlines())) <= width
    for heading in ("language", "instr.", "FLOPs", "bytes", "/request", "conflicts", "bound", "floor", "estimate"):
        assert heading in text
    assert "_Z11gelu" in text


def test_a_long_name_is_folded_and_not_cut() -> None:
    long_name = "_Z11gelu_linearILi128ELi64EEvPKfS1_S1_Pfiii"
    text = printed([gpu_launch(long_name)], 120)
    pieces = [long_name[start : start + 24] for start in range(0, len(long_name), 24)]
    assert all(piece in text for piece in pieces)


def test_escape_codes_only_on_a_terminal() -> None:
    launches = [gpu_launch(findings=(finding(Severity.ERROR),))]
    assert "\x1b" not in printed(launches)
    assert "\x1b" in printed(launches, terminal=True)


def test_markup_in_names_and_messages_is_text() -> None:
    text = printed([gpu_launch("k[bold]", findings=(finding(Severity.WARNING),))], 120)
    assert "k[bold]" in text
    assert "[a]" in text


def test_equal_launches_share_a_row() -> None:
    text = printed([gpu_launch()] * 10 + [gpu_launch("other")], 200)
    assert text.count("459 k") == 2
    assert "1–10" in text
    assert "11" in text


def test_nothing_launched() -> None:
    assert "launched no kernel" in printed([])


def test_findings() -> None:
    where, frame = SourceLocation("k.cu", 3), SourceLocation("k.cu", 9)
    text = printed([gpu_launch(findings=(finding(Severity.ERROR, where, frame),))] * 2, 120)
    head = "error memcheck in vec_add (#1, the first of 2 launches): global load of 4 bytes behind the end of [a]"
    assert head in text
    assert "at k.cu:3" in text
    assert "called from k.cu:9" in text
    assert f"checks: {', '.join(GPU_CHECKS)} (GPU)" in text


def test_a_findings_launch_advice_and_its_line_once(tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text("x[i] = 1;\n", encoding="utf-8")
    where = SourceLocation(str(source), 1)
    found = replace(finding(Severity.ERROR), message="bad store\n  x[i] = 1;", where=where, hint="look at i")
    text = printed([gpu_launch(), gpu_launch(), gpu_launch(findings=(found,))], 200)
    assert "error memcheck in vec_add (#3): bad store" in text
    assert text.count("x[i] = 1;") == 1
    assert "    look at i" in text
    again = printed([gpu_launch(findings=(replace(found, message="bad store"),))], 200)
    assert f"at {source}:1  x[i] = 1;" in again


def test_the_checks_that_looked_are_named() -> None:
    text = " ".join(printed([gpu_launch(), nki_launch()]).split())
    assert f"The checks found nothing: {', '.join(GPU_CHECKS)} (GPU)." in text


def test_a_stopped_launch_has_no_figures() -> None:
    text = printed([stopped_launch()], 200)
    row = next(line for line in text.splitlines() if line.startswith("1  bad"))
    assert row.split() == ["1", "bad", "cuda", "4096", "256", "stopped", *["–"] * 13]
    assert "idle" not in text
    assert " 0 s" not in text
    assert hot_lines([stopped_launch()]) == []


def test_a_check_that_looked_at_no_launch_is_named() -> None:
    text = printed([gpu_launch()], 200, asked=("memcheck", "racecheck"))
    assert "No launch was one for racecheck, which works on the NeuronCore." in text
    assert "for memcheck" not in text
    assert "No launch was one" not in printed([gpu_launch()], 200)


def test_notes_say_how_many_launches_they_concern() -> None:
    text = printed([gpu_launch(), gpu_launch(target="sm_80")], 200)
    assert "Compiled for sm_80; placed on h100, whose own target is sm_90. (1 of 2 launches)" in text
    assert "Compilers no longer target compute capability 7.0" in printed(
        [gpu_launch(chip="v100", target="sm_75")], 200
    )


def test_hot_lines_are_summed_and_ranked(tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text("one\ntwo\nthree\n", encoding="utf-8")
    lines = (
        line(str(source), 1, {"instructions.warp": 10}),
        line(str(source), 2, {"instructions.warp": 70, "flops.f32": 64}),
        line(str(source), 3, {"instructions.warp": 20, "global.load.sectors": 16, "global.load.requests": 4}),
    )
    launch = gpu_launch(lines=lines)
    found = hot_lines([launch, launch], per_kernel=2)
    assert [(hot.where.line, hot.share) for hot in found] == [(3, 0.2), (2, 0.7)]
    assert found[1].counters.value("flops.f32") == 128
    assert [hot.launches for hot in found] == [2, 2]
    assert "hot lines of vec_add (cuda), sums over 2 launches\n" in printed([launch, launch], 120)
    text = printed([launch], 120)
    assert "hot lines of vec_add (cuda)\n" in text
    assert "Hot lines: by the largest of their shares of instructions, sectors" in text
    assert "k.cu:3" in text
    assert "three" in text


def test_hot_lines_of_nki() -> None:
    assert hot_lines([nki_launch()]) == []
    load = {"instructions.dma": 3, "dma.load.bytes": 4096}
    add = {"instructions.vector": 1, "flops.vector": 512}
    lines = line("k.py", 1, load, machine="neuron"), line("k.py", 2, add, machine="neuron")
    first, second = hot_lines([nki_launch(lines), nki_launch(lines)])
    assert (first.where.line, first.share, second.share) == (1, 0.75, 0.25)
    assert first.counters.value("dma.load.bytes") == 2 * 4096


def test_ratios_are_not_added_up() -> None:
    launch = gpu_launch(lines=(line("k.cu", 1, {"instructions.warp": 10, "threads.active_lanes": 32}),))
    (hot,) = hot_lines([launch, launch])
    assert {name: counter.value for name, counter in hot.counters.items()} == {"instructions.warp": 20}


def test_inlined_lines_are_one_line() -> None:
    frames = SourceLocation("k.cu", 8), SourceLocation("k.cu", 9)
    lines = tuple(line("k.cu", 1, {"instructions.warp": 5}, frame) for frame in frames)
    (hot,) = hot_lines([gpu_launch(lines=lines)])
    assert hot.counters.value("instructions.warp") == 10


def test_a_script_whose_launch_failed_launched_something() -> None:
    stream = io.StringIO()
    Console(file=stream, width=80).print(report([], 80, failed=True))
    assert "ended with an error before any kernel had run to its end" in stream.getvalue()
