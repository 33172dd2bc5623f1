"""What the page's template shows, as values: all figures are texts here, none is escaped yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from triptych.core.checks import Severity
from triptych.core.launches import Finding
from triptych.core.source import SourceLocation
from triptych.execution.launch_report import LaunchReport
from triptych.model import Roof
from triptych.report.columns import COLUMNS, Origin, cells_of, in_one_line
from triptych.report.counter_views import CounterView, counter_views
from triptych.report.facts import facts_told
from triptych.report.findings import line_text
from triptych.report.groups import Group
from triptych.report.hot_lines import LINE_COLUMNS, HotLine, lines_of
from triptych.report.html.chart import Chart, chart_of
from triptych.report.quantities import count, duration, percent, rate, ratio, size

LINES_SHOWN = 15
"""Of a launch's source lines, by cost; the JSON has them all."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A column's heading; words stand left, numbers right."""

    text: str
    left: bool
    modelled: bool


@dataclass(frozen=True, slots=True)
class Span:
    """So many columns of one origin."""

    origin: str
    columns: int


@dataclass(frozen=True, slots=True)
class LaunchRow:
    """A row of the table of launches; `number` names the launch's section."""

    number: int
    label: str
    kernel: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChipView:
    """A chip, its launches as a table, and its roofline; `unplaced` numbers those that have no place on it."""

    title: str
    bandwidth: str
    headings: tuple[Heading, ...]
    spans: tuple[Span, ...]
    rows: tuple[LaunchRow, ...]
    chart: Chart | None
    unplaced: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RoofView:
    """A roof of the model: so much work at such a peak takes so long.

    `share` is of the estimate, in percent; `role` says what the roof counts towards.
    """

    name: str
    work: str
    peak: str
    time: str
    share: str
    role: str


@dataclass(frozen=True, slots=True)
class LineView:
    """A source line: where, its text, the callers that it was inlined into, and its figures."""

    where: str
    text: str
    frames: tuple[str, ...]
    share: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FindingView:
    """What a check saw."""

    severity: str
    check: str
    message: str
    where: str
    text: str
    frames: tuple[str, ...]
    hint: str


@dataclass(frozen=True, slots=True)
class LaunchView:
    """Everything about the launches of one group."""

    number: int
    label: str
    count: int
    """How many they are; every figure is one launch's."""
    kernel: str
    facts: tuple[tuple[str, str], ...]
    worst: str
    """The worst severity of its findings; empty where there is none."""
    findings: tuple[FindingView, ...]
    roofs: tuple[RoofView, ...]
    line_headings: tuple[str, ...]
    lines: tuple[LineView, ...]
    lines_left_out: int
    counters: tuple[CounterView, ...]
    notes: tuple[str, ...]


def chip_views(groups: Iterable[Group]) -> tuple[ChipView, ...]:
    """One for each chip, in the order of its first launch."""
    by_chip: dict[str, list[Group]] = {}
    for group in groups:
        by_chip.setdefault(group.launch.chip.name, []).append(group)
    return tuple(_chip_view(several) for several in by_chip.values())


def _chip_view(groups: Sequence[Group]) -> ChipView:
    chip = groups[0].launch.chip
    columns = COLUMNS[chip.machine]
    chart = chart_of(groups)
    shown = {point.target for point in chart.points} if chart else set[int]()
    return ChipView(
        title=chip.described,
        bandwidth=rate(chip.memory_bytes_per_s, "B/s"),
        headings=tuple(
            Heading(in_one_line(one.heading), one.left, one.origin is Origin.MODELLED) for one in columns
        ),
        spans=tuple(
            Span(origin.value, len(list(several))) for origin, several in groupby(columns, key=lambda one: one.origin)
        ),
        rows=tuple(
            LaunchRow(
                *(group.numbers[0], group.label, group.launch.kernel),
                cells_of(group.launch),
            )
            for group in groups
        ),
        chart=chart,
        unplaced=tuple(group.label for group in groups if group.numbers[0] not in shown),
    )  # fmt: skip


def launch_view(group: Group) -> LaunchView:
    """The section of a group."""
    launch = group.launch
    lines = lines_of(launch)
    severities = [finding.severity for finding in launch.findings]
    return LaunchView(
        number=group.numbers[0],
        label=group.label,
        count=len(group.numbers),
        kernel=launch.kernel,
        facts=tuple(_facts(launch)),
        worst=next((one.value for one in reversed(Severity) if one in severities), ""),
        findings=tuple(map(_finding, launch.findings)),
        roofs=tuple(_roofs(launch)),
        line_headings=tuple(in_one_line(column.heading) for column in LINE_COLUMNS[launch.record.machine]),
        lines=tuple(_line(line, launch.record.machine) for line in lines[:LINES_SHOWN]),
        lines_left_out=max(len(lines) - LINES_SHOWN, 0),
        counters=tuple(counter_views(launch)),
        notes=launch.notes,
    )


def _facts(launch: LaunchReport) -> Iterable[tuple[str, str]]:
    yield from facts_told(launch)
    if launch.stopped:
        return
    roofline = launch.roofline
    yield "bound", f"{roofline.bound}, {ratio(roofline.intensity)} FLOP/byte against {ratio(roofline.ridge_point)}"
    yield "limited by", roofline.limited_by
    yield "floor", duration(roofline.floor_s)
    yield "estimate", f"{duration(roofline.estimate_s)}, of which the floor is {percent(roofline.fraction)}"


def _roofs(launch: LaunchReport) -> Iterable[RoofView]:
    if launch.stopped:
        return
    roofline = launch.roofline
    whole = roofline.estimate_s or 1.0
    overhead = roofline.launch_overhead_s
    yield RoofView("launch overhead", "", "", duration(overhead), _share(overhead / whole), "estimate")
    for roof in sorted(roofline.roofs, key=lambda one: -one.seconds):
        work, peak = _amounts(roof)
        role = "floor, estimate" if roof.required else "estimate"
        yield RoofView(roof.name, work, peak, duration(roof.seconds), _share(roof.seconds / whole), role)


def _amounts(roof: Roof) -> tuple[str, str]:
    if roof.unit == "bytes":
        return size(roof.amount), rate(roof.rate, "B/s")
    unit = roof.unit.removesuffix("s")
    return f"{count(roof.amount)} {unit if roof.amount == 1 else roof.unit}", rate(roof.rate, f"{unit}/s")


def _share(fraction: float) -> str:
    return f"{100 * min(fraction, 1.0):.1f}"


def _line(line: HotLine, machine: str) -> LineView:
    cells = tuple(column.cell(line) for column in LINE_COLUMNS[machine])
    return LineView(str(line.where), line.where.text, _frames(line.frames), _share(line.share), cells)


def _frames(frames: Sequence[SourceLocation]) -> tuple[str, ...]:
    return tuple(f"{frame}  {frame.text}".rstrip() for frame in frames)


def _finding(finding: Finding) -> FindingView:
    where = finding.where
    return FindingView(
        *(finding.severity.value, finding.check, finding.message),
        *("" if where is None else str(where), line_text(finding.message, where)),
        *(_frames(finding.frames), finding.hint or ""),
    )
