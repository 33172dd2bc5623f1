"""`triptych demo`: a + b and GELU(W x + b), fused and not, run, checked, and placed on the roofline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import typer

from triptych.cli.options import ChipOption, HtmlOption, JsonOption, TraceOption
from triptych.cli.reports import Reports
from triptych.cli.terminal import EXIT_FINDINGS, Terminal, interruptible

if TYPE_CHECKING:
    from rich.console import RenderableType

    from triptych.demo.cases import Case
    from triptych.execution.launch_report import LaunchReport


_FLOPS_DIFFER = (
    "One problem has other FLOPs in each language: those of its own instructions. On a GPU erf is a polynomial, on"
    " Neuron one activation; threads that share a sum add up its parts."
)


@dataclass(frozen=True, slots=True)
class _Result:
    """A case, its largest error as a multiple of what is allowed, and its launches."""

    case: Case
    error: float
    launches: Sequence[LaunchReport]

    @property
    def passed(self) -> bool:
        return self.error <= 1.0

    @property
    def estimate_s(self) -> float:
        return sum(launch.roofline.estimate_s for launch in self.launches)

    @property
    def read_and_written(self) -> tuple[int, int]:
        """Bytes of memory that the launches read, and wrote, each byte once a launch."""
        headlines = [(launch.counters, launch.roofline.traffic[0].level) for launch in self.launches]
        read = sum(int(counters.value(name)) for counters, level in headlines for name in level.reads)
        written = sum(int(counters.value(name)) for counters, level in headlines for name in level.writes)
        return read, written


def demo(chip: ChipOption = None, html: HtmlOption = None, trace: TraceOption = None, json: JsonOption = None) -> None:
    """Run the example kernels in CUDA C++, Triton and NKI, check them against float64, and place them on the roofline.

    --chip sets the GPU (or the Neuron chip); the other machine keeps its default chip.
    """
    from triptych.report import is_clean

    reports = Reports.to(json, html, trace)
    reports.reserve_stdout()
    results = _run(chip)
    launches = [launch for result in results for launch in result.launches]
    passed = all(result.passed for result in results) and is_clean(launches)
    status = 0 if passed else EXIT_FINDINGS
    reports.write(launches, script="triptych demo", arguments=[], exit_status=status)
    if not reports.takes_stdout:
        _show(results, launches)
    raise typer.Exit(status)


def _run(chip: str | None) -> list[_Result]:
    from triptych.cli.activation import languages
    from triptych.execution.profile import profile

    results: list[_Result] = []
    with profile(chip), languages(), interruptible():
        from triptych.demo.cases import cases

        for case in cases():
            with profile() as recorded:
                result = case.solve(*case.problem.inputs)
            results.append(_Result(case, case.problem.largest_error(result), recorded.launches))
    return results


def _show(results: Sequence[_Result], launches: Sequence[LaunchReport]) -> None:
    from rich.text import Text

    from triptych.report.plot import roofline_plot
    from triptych.report.terminal import report

    terminal = Terminal()
    terminal.show(_checks(results))
    terminal.show(_fusions(results))
    terminal.show(report(launches, terminal.width, lines_per_kernel=0))
    terminal.show(Text(_FLOPS_DIFFER, "dim"))
    for name in dict.fromkeys(launch.chip.name for launch in launches):
        there = [launch for launch in launches if launch.chip.name == name]
        terminal.show(Text(f"\n{there[0].chip.described}, at the estimated times", "bold"))
        terminal.say(roofline_plot(there, terminal.width))


def _checks(results: Sequence[_Result]) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from triptych.report.quantities import duration, percent, size
    from triptych.report.tables import plain_table

    table = plain_table()
    for heading in ("problem", "language", "launches", "against\nfloat64"):
        table.add_column(heading)
    for heading in ("error, of\nallowed", "memory\nbytes", "estimate"):
        table.add_column(heading, justify="right")
    for result in results:
        kernels = " + ".join(launch.kernel for launch in result.launches)
        verdict = Text("right", "green") if result.passed else Text("WRONG", "bold red")
        moved = size(sum(launch.roofline.bytes for launch in result.launches))
        estimate = duration(result.estimate_s)
        case = result.case
        table.add_row(case.problem.title, case.language.name, kernels, verdict, percent(result.error), moved, estimate)
    return Group(table, Text())


def _fusions(results: Sequence[_Result]) -> RenderableType:
    """What launches read and wrote together, each byte once a launch, and what the fused launch in their place did."""
    from rich.console import Group
    from rich.text import Text

    from triptych.report.quantities import count, ratio, size
    from triptych.report.tables import plain_table

    table = plain_table()
    for heading in ("fused", "language"):
        table.add_column(heading)
    for heading in ("launches", "KiB\nread", "KiB\nwritten", "spared", "estimate,\nµs"):
        table.add_column(heading, justify="right")
    for apart, fused in pairwise(results):
        if apart.case.language is not fused.case.language or apart.case.problem is not fused.case.problem:
            continue
        pairs = list(zip(apart.read_and_written, fused.read_and_written, strict=True))
        table.add_row(
            fused.case.problem.title,
            fused.case.language.name,
            f"{len(apart.launches)} → {len(fused.launches)}",
            *(f"{count(before / 1024)} → {count(after / 1024)}" for before, after in pairs),
            size(sum(before - after for before, after in pairs)),
            f"{ratio(1e6 * apart.estimate_s)} → {ratio(1e6 * fused.estimate_s)}",
        )
    return Group(table, Text())
