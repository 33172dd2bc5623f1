"""The experiments of the memory wall to text and JSON: what was measured, beside what the formula says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from rich.console import Group, RenderableType
from rich.text import Text

from triptych.memory_wall import Axis, Experiment, Point
from triptych.report.quantities import count, duration, percent, ratio, size
from triptych.report.tables import plain_table

Measured: TypeAlias = tuple[Experiment, Sequence[Point]]
"""An experiment and its points."""


def value_on(axis: Axis, value: float) -> str:
    """A value of an axis as a person reads it."""
    match axis.unit:
        case "B":
            return size(value)
        case "s":
            return duration(value)
        case _:
            return count(value) if float(value).is_integer() else ratio(value)


def verdict(experiment: Experiment, points: Sequence[Point]) -> str:
    """Whether the points are as near to the formula as they have to be, and how near they are."""
    apart = experiment.disagreements(points)
    largest = max((point.off for point in points), default=0.0)
    if apart:
        told = f"{len(apart)} of {len(points)} are farther off than {percent(experiment.within)}"
        return f"{told}: up to {percent(largest)}"
    if largest == 0:
        return f"all {len(points)} are what the formula says, exactly"
    return f"all {len(points)} agree with the formula: to {percent(largest)}, of {percent(experiment.within)} allowed"


def measured_text(measured: Measured) -> RenderableType:
    """An experiment with all of its points."""
    experiment, points = measured
    table = plain_table()
    table.add_column("series", no_wrap=True)
    for heading in (experiment.x.label, experiment.y.label, "formula", "off"):
        table.add_column(heading, justify="right", no_wrap=True)
    for point in points:
        told = value_on(experiment.y, point.measured), value_on(experiment.y, point.formula), percent(point.off)
        table.add_row(point.series, f"{point.x:g}", *told)
    agrees = not experiment.disagreements(points)
    return Group(
        Text(f"{experiment.title}  {experiment.name}", "bold"),
        Text(experiment.formula),
        Text(experiment.measured),
        Text(),
        table,
        Text(verdict(experiment, points), "green" if agrees else "bold red"),
        Text(),
    )


def measured_json(measured: Measured) -> Mapping[str, Any]:
    """The same, of the form `experiment` in the schema."""
    experiment, points = measured
    return {
        "name": experiment.name,
        "title": experiment.title,
        "formula": experiment.formula,
        "measured": experiment.measured,
        "within": experiment.within,
        "agrees": not experiment.disagreements(points),
        "points": [
            {"series": one.series, "x": one.x, "measured": one.measured, "formula": one.formula} for one in points
        ],
    }
