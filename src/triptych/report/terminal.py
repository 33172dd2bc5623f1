"""Launches -> rich renderables. The command line prints them; this folder never does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from triptych.core.checks import CHECKS, MACHINES, Severity
from triptych.core.launches import Finding
from triptych.core.source import SourceLocation
from triptych.execution.launch_report import LaunchReport
from triptych.execution.tuning import Tuning
from triptych.neuron.timeline import Timeline
from triptych.report.columns import COLUMNS, Column, cells_of, origins
from triptych.report.counter_views import CounterChoice, counter_views
from triptych.report.engines import timeline_tables
from triptych.report.findings import NO_KERNEL, NO_KERNEL_BEFORE_THE_ERROR, checks_that_looked, line_text
from triptych.report.groups import identity
from triptych.report.hot_lines import LINE_COLUMNS, ORDER, HotLine, LineColumn, hot_lines
from triptych.report.quantities import count, rate
from triptych.report.tables import plain_table
from triptych.report.tunings import tuning_tables

KERNEL_WIDTH = 24
"""Columns. A longer name is folded: C++ names can fill a screen."""
SHORT_KERNEL_WIDTH = 14
"""Columns, in the tables after the first: a longer name is cut."""
MIN_SOURCE_WIDTH = 16
"""Columns of a source line's text, however narrow the terminal."""
_SHOWN = 6
"""Of the lines that launched a kernel, and of the launches of each."""
STYLES = {Severity.NOTICE: "cyan", Severity.WARNING: "yellow", Severity.ERROR: "bold red"}


@dataclass(frozen=True, slots=True)
class _Row:
    """Consecutive launches that are the same in everything reported, as one row; `first` counts from 1."""

    first: int
    times: int
    launch: LaunchReport

    @property
    def label(self) -> str:
        return f"{self.first}" if self.times == 1 else f"{self.first}–{self.first + self.times - 1}"


def report(
    launches: Sequence[LaunchReport],
    width: int,
    *,
    lines_per_kernel: int = 5,
    failed: bool = False,
    asked: Iterable[str] = (),
    counters: CounterChoice | None = None,
    hidden: Sequence[LaunchReport] = (),
    tunings: Sequence[Tuning] = (),
) -> RenderableType:
    """The whole report for a terminal of `width` columns.

    `failed`: the script ended with an error; `asked`: the names of the checks that were asked for; `counters`: those
    that are listed launch by launch; `hidden`: the launches that are not to be shown; `tunings`: what autotuners chose.
    """
    if not launches:
        if hidden:
            return Text(f"triptych: no kernel that was launched matches --kernel; there were: {_kernels(hidden)}.")
        return Text(f"triptych: {NO_KERNEL_BEFORE_THE_ERROR if failed else NO_KERNEL}.")
    parts: list[RenderableType] = [*_heads(launches)]
    rows = _rows(launches)
    for machine in COLUMNS:
        those = [row for row in rows if row.launch.record.machine == machine]
        parts += _launch_tables(those, machine, width) if those else []
    parts += tuning_tables(tunings)
    parts += _call_sites(rows)
    parts += timeline_tables(_timelines(rows))
    parts += _line_tables(hot_lines(launches, lines_per_kernel), width)
    parts += _counter_tables(rows, counters) if counters is not None else []
    parts += _findings(launches)
    parts += _notes(launches)
    parts += _unused([*launches, *hidden], asked)
    if hidden:
        parts.append(Text(f"Not shown, since --kernel names others: {_kernels(hidden)}.", "dim"))
    return Group(*parts)


def _heads(launches: Sequence[LaunchReport]) -> Iterable[Text]:
    for chip in {launch.chip.name: launch.chip for launch in launches}.values():
        bandwidth = rate(chip.memory_bytes_per_s, "B/s")
        yield Text.assemble(("triptych", "bold"), f"  {chip.described}, {bandwidth} of memory bandwidth")


def _rows(launches: Sequence[LaunchReport]) -> list[_Row]:
    rows: list[_Row] = []
    first = 1
    for _, group in groupby(launches, key=identity):
        same = list(group)
        rows.append(_Row(first, len(same), same[0]))
        first += len(same)
    return rows


def _launch_tables(rows: Sequence[_Row], machine: str, width: int) -> Iterable[RenderableType]:
    """As many tables as the columns need: each holds the columns that fit, beside the launch's number and kernel."""
    names = max(cell_len(row.launch.record.kernel) for row in rows)
    numbers = max(cell_len(row.label) for row in rows) + len("  ") + len("  ")
    texts = zip(*(cells_of(row.launch) for row in rows), strict=True)
    cells = dict(zip(COLUMNS[machine], texts, strict=True))
    needs = {column: max(map(cell_len, (*column.heading.split("\n"), *texts))) + 2 for column, texts in cells.items()}
    limits = [min(limit, max(names, len("kernel"))) for limit in (KERNEL_WIDTH, SHORT_KERNEL_WIDTH)]
    runs = _packed(needs, width - numbers - limits[0], width - numbers - limits[1])
    for position, columns in enumerate(runs):
        table = plain_table()
        table.add_column("#", justify="right", no_wrap=True)
        if position == 0:
            table.add_column("kernel", overflow="fold", width=limits[0])
        else:
            table.add_column("kernel", overflow="ellipsis", no_wrap=True, width=limits[1])
        for column in columns:
            table.add_column(column.heading, justify="left" if column.left else "right", no_wrap=True)
        for index, row in enumerate(rows):
            table.add_row(
                row.label, Text(row.launch.record.kernel), *(Text(cells[column][index]) for column in columns)
            )
        yield Text()
        yield table


def _timelines(rows: Sequence[_Row]) -> list[tuple[str, Timeline]]:
    """Of each kernel that has a timeline the first launch's."""
    found: dict[str, tuple[str, Timeline]] = {}
    for row in rows:
        timeline = None if row.launch.stopped else row.launch.timeline
        if timeline is not None:
            found.setdefault(row.launch.kernel, (f"{row.launch.kernel} (#{row.label})", timeline))
    return list(found.values())


def _packed(needs: Mapping[Column, int], first_room: int, room: int) -> list[list[Column]]:
    """The columns in order, cut into runs that need at most the room there is; a run holds at least one column."""
    runs: list[list[Column]] = []
    left = 0
    for column, need in needs.items():
        if not runs or need > left:
            left = room if runs else first_room
            runs.append([])
        runs[-1].append(column)
        left -= need
    return runs


def _call_sites(rows: Sequence[_Row]) -> Iterable[Text]:
    """Which line launched what, of the kernels that several lines launched."""
    found: dict[str, dict[SourceLocation, list[str]]] = {}
    for row in rows:
        if row.launch.call_site is not None:
            found.setdefault(row.launch.kernel, {}).setdefault(row.launch.call_site, []).append(row.label)
    for kernel, sites in found.items():
        if len(sites) > 1:
            told = (f"at {_short(site)} (#{_first(labels)})" for site, labels in sites.items())
            yield Text(f"\n{kernel} was launched {_first(list(told))}.", "dim")


def _first(texts: Sequence[str]) -> str:
    """The first ones, and how many more there are."""
    more = len(texts) - _SHOWN
    return ", ".join([*texts[:_SHOWN], *([f"{more} more"] if more > 0 else [])])


def _short(where: SourceLocation) -> str:
    return f"{where.file.rsplit('/', 1)[-1]}:{where.line}"


def _kernels(launches: Iterable[LaunchReport]) -> str:
    """Their names, with how often each was launched: `add (3 launches), scale (1 launch)`."""
    times = Counter(launch.kernel for launch in launches)
    return ", ".join(f"{name} ({count(several)} launch{'es' * (several > 1)})" for name, several in times.items())


def _counter_tables(rows: Sequence[_Row], choice: CounterChoice) -> Iterable[RenderableType]:
    """A table for each row of launches: every counter that was asked for, with its unit and provenance."""
    for row in rows:
        launch = row.launch
        site = "" if launch.call_site is None else f", launched at {_short(launch.call_site)}"
        yield Text(f"\ncounters of {launch.kernel} (#{row.label}{site})", "bold")
        table = plain_table()
        for heading, right in (("name", False), ("value", True), ("unit", False), ("provenance", False)):
            table.add_column(heading, justify="right" if right else "left", overflow="fold")
        for one in counter_views(launch, choice):
            table.add_row(*map(Text, (one.name, one.value, one.unit, one.provenance)))
        yield table if table.row_count else Text("none of them: what is 0 is left out", "dim")


def _line_tables(lines: Sequence[HotLine], width: int) -> Iterable[RenderableType]:
    key = attrgetter("kernel", "machine", "language", "launches")
    for (kernel, machine, language, launches), group in groupby(lines, key=key):
        sums = f", sums over {launches} launches" if launches > 1 else ""
        yield Text(f"\nhot lines of {kernel} ({language}){sums}", "bold")
        yield _line_table(list(group), LINE_COLUMNS[machine], width)
    if lines:
        yield Text(f"\n{ORDER}", "dim")


def _line_table(lines: Sequence[HotLine], columns: Sequence[LineColumn], width: int) -> RenderableType:
    """Figures at their full width; what is left of the terminal goes to the source text."""
    places = [_short(line.where) for line in lines]
    cells = [[column.cell(line) for line in lines] for column in columns]
    needs = [max(map(cell_len, places))]
    needs += [
        max(map(cell_len, (*column.heading.split("\n"), *texts))) for column, texts in zip(columns, cells, strict=True)
    ]
    left = max(width - sum(needs) - 2 * len(needs) - 1, MIN_SOURCE_WIDTH)
    table = plain_table()
    table.add_column("line", no_wrap=True, min_width=needs[0])
    for column, need in zip(columns, needs[1:], strict=True):
        table.add_column(column.heading, justify="right", no_wrap=True, min_width=need)
    table.add_column("source", no_wrap=True, overflow="ellipsis", max_width=left)
    for index, line in enumerate(lines):
        table.add_row(Text(places[index]), *(Text(texts[index]) for texts in cells), Text(line.where.text))
    return table


def _findings(launches: Sequence[LaunchReport]) -> Iterable[RenderableType]:
    """Each once, with the number of the first launch that has it, and in how many it is."""
    seen: dict[tuple[str, Finding], list[int]] = {}
    for number, launch in enumerate(launches, 1):
        for finding in launch.record.findings:
            seen.setdefault((launch.record.kernel, finding), []).append(number)
    if seen:
        yield Text("\nfindings", "bold")
    for (kernel, finding), numbers in seen.items():
        again = f", the first of {count(len(numbers))} launches" if len(numbers) > 1 else ""
        head = (f"{finding.severity.value}", STYLES[finding.severity])
        place = f"in {kernel} (#{numbers[0]}{again})"
        yield _indented(Text.assemble(head, f" {finding.check} {place}: {finding.message}"), 2)
        if finding.where is not None:
            yield _indented(Text(f"at {finding.where}  {line_text(finding.message, finding.where)}".rstrip()), 4)
        yield from (_indented(Text(f"called from {frame}"), 4) for frame in finding.frames)
        site = launches[numbers[0] - 1].call_site
        if site is not None and site != finding.where:
            yield _indented(Text(f"launched at {site}  {site.text}".rstrip()), 4)
        if finding.hint is not None:
            yield _indented(Text(finding.hint), 4)
    checks = checks_that_looked(launches)
    yield Text(f"\nchecks: {checks}" if seen else f"\nThe checks found nothing: {checks}.", "dim")


def _indented(text: Text, columns: int) -> RenderableType:
    return Padding(text, (0, 0, 0, columns), expand=False)


def _notes(launches: Sequence[LaunchReport]) -> Iterable[Text]:
    """What each launch's model says about itself, once, with how many launches it concerns where not all do."""
    yield Text()
    times: dict[str, int] = {}
    for launch in launches:
        for note in launch.notes:
            times[note] = times.get(note, 0) + 1
    for note, seen in times.items():
        yield Text(note if seen == len(launches) else f"{note} ({seen} of {len(launches)} launches)", "dim")
    yield Text(origins(dict.fromkeys(launch.record.machine for launch in launches)), "dim")


def _unused(launches: Sequence[LaunchReport], asked: Iterable[str]) -> Iterable[Text]:
    """The checks that were asked for and looked at no launch."""
    used = {name for launch in launches for name in launch.record.checks}
    for name in asked:
        if name not in used:
            machines = " and ".join(MACHINES[machine] for machine in CHECKS[name].when)
            yield Text(f"No launch was one for {name}, which works on {machines}.", "dim")
