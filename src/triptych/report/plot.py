"""A roofline as text: log-log, a letter per launch, fit for any terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from triptych.execution.launch_report import LaunchReport
from triptych.report.plane import LogAxis, Place, axes_of, ceilings_of, place_of
from triptych.report.quantities import rate, ratio

MARKS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_MARGIN = 11
"""Columns left of the plot, for the labels of the vertical axis."""


@dataclass(frozen=True, slots=True)
class Point:
    """A launch on the plot."""

    mark: str
    label: str
    place: Place


@dataclass(frozen=True, slots=True)
class _Axis:
    """A logarithmic axis of `cells` cells."""

    scale: LogAxis
    cells: int

    def cell(self, value: float) -> int:
        return round(self.scale.share(value) * (self.cells - 1))

    def value(self, cell: int) -> float:
        return self.scale.value(cell / (self.cells - 1))


def points_of(launches: Sequence[LaunchReport]) -> list[Point]:
    """A point per launch that computes something; a launch without FLOPs or bytes has no place on a log-log plot."""
    placed = [(launch, place) for launch in launches if (place := place_of(launch)) is not None]
    return [
        Point(MARKS[index % len(MARKS)], f"{launch.record.kernel} ({launch.record.language})", place)
        for index, (launch, place) in enumerate(placed)
    ]


def roofline_plot(launches: Sequence[LaunchReport], width: int, height: int = 16) -> str:
    """The launches, all on one chip, under its memory slope and the ceilings of the pipes that they use.

    `width` counts every column, `height` the rows of the plot without its axis. Empty where no launch has a place.
    """
    points = points_of(launches)
    if not points:
        return ""
    bandwidth = launches[0].chip.memory_bytes_per_s
    ceilings = list(ceilings_of(launches))
    horizontal, vertical = axes_of([point.place for point in points], bandwidth, ceilings)
    across, up = _Axis(horizontal, max(width - _MARGIN - 2, 20)), _Axis(vertical, height)
    grid = [[" "] * across.cells for _ in range(up.cells)]
    _draw_roofs(grid, across, up, bandwidth, ceilings)
    for point in points:
        _draw_point(grid[up.cell(point.place.flops_per_s)], across.cell(point.place.intensity), point.mark)
    return "\n".join([*_rows(grid, up), *_feet(across), *_legend(points)])


def _draw_roofs(grid: list[list[str]], across: _Axis, up: _Axis, bandwidth: float, ceilings: Sequence[float]) -> None:
    for column in range(across.cells):
        slope = bandwidth * across.value(column)
        for ceiling in ceilings:
            if slope >= ceiling:
                grid[up.cell(ceiling)][column] = "─"
        if slope < ceilings[-1]:
            grid[up.cell(slope)][column] = "/"


def _draw_point(row: list[str], column: int, mark: str) -> None:
    """The mark in its cell, or in the nearest cell of the row that holds no mark; `*` where it is crowded."""
    for step in (0, 1, -1, 2, -2, 3, -3):
        if 0 <= column + step < len(row) and row[column + step] not in MARKS:
            row[column + step] = mark
            return
    row[column] = "*"


def _rows(grid: list[list[str]], up: _Axis) -> list[str]:
    labels = {up.cell(value): rate(value, "FLOP/s") for value in up.scale.decades()}
    return [
        f"{labels.get(row, ''):>{_MARGIN}} {'┤' if row in labels else '│'}{''.join(cells).rstrip()}"
        for row, cells in reversed(list(enumerate(grid)))
    ]


def _feet(across: _Axis) -> list[str]:
    line, labels = ["─"] * across.cells, [" "] * across.cells
    for value in across.scale.decades():
        column = across.cell(value)
        line[column] = "┬"
        text = f"{value:g}"
        start = min(max(column - len(text) // 2, 0), across.cells - len(text))
        labels[start : start + len(text)] = text
    indent = " " * (_MARGIN + 1)
    return [f"{indent}└{''.join(line)}", f"{indent} {''.join(labels).rstrip()}", f"{indent} FLOP/byte"]


def _legend(points: Sequence[Point]) -> list[str]:
    return [
        f"  {point.mark}  {point.label}: {ratio(point.place.intensity)} FLOP/byte, "
        f"{rate(point.place.flops_per_s, 'FLOP/s')}"
        for point in points
    ]
