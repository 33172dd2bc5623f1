"""The roofline of a chip with its launches, as lines, points and labels of a drawing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from triptych.report.groups import Group
from triptych.report.html.labels import CHARACTER_WIDTH, LINE_HEIGHT, Box, Label, Spot, place_labels
from triptych.report.plane import LogAxis, Place, axes_of, ceilings_of, place_of
from triptych.report.quantities import rate, ratio

WIDTH, HEIGHT = 760.0, 440.0
"""Units of the drawing; a page scales it."""
PLOT = Box(92.0, 14.0, WIDTH - 14.0, HEIGHT - 50.0)
NEAR = 9.0
"""Units. Points that are nearer to each other share a label."""
NAME_LENGTH = 20
"""Characters of a kernel's name in a label; the table has it whole."""
NUMBERS_SHOWN = 4
"""Of the launches that share a label."""
_MOST_DECADES = 12
"""Labels along an axis."""


@dataclass(frozen=True, slots=True)
class Line:
    """A straight line of a kind: `grid`, `slope` or `ceiling`."""

    kind: str
    x1: float
    y1: float
    x2: float
    y2: float


@dataclass(frozen=True, slots=True)
class Point:
    """A launch: where it lies, the language that colours it, and what it says when it is pointed at."""

    x: float
    y: float
    language: str
    title: str
    target: int
    """The launch's number, which the page links to."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A whole drawing."""

    lines: tuple[Line, ...]
    points: tuple[Point, ...]
    labels: tuple[Label, ...]
    languages: tuple[str, ...]
    """Those of the points, for the legend."""
    width: float = WIDTH
    height: float = HEIGHT


@dataclass(frozen=True, slots=True)
class _Plane:
    """From FLOP/byte and FLOP/s to units of the drawing."""

    across: LogAxis
    up: LogAxis

    def x(self, intensity: float) -> float:
        return PLOT.left + self.across.share(intensity) * (PLOT.right - PLOT.left)

    def y(self, flops_per_s: float) -> float:
        return PLOT.bottom - self.up.share(flops_per_s) * (PLOT.bottom - PLOT.top)


def chart_of(groups: Sequence[Group]) -> Chart | None:
    """The chart of groups that are all on one chip; None where none of them has a place on it."""
    placed = [(group, place) for group in groups if (place := place_of(group.launch)) is not None]
    if not placed:
        return None
    bandwidth = groups[0].launch.chip.memory_bytes_per_s
    ceilings = ceilings_of(group.launch for group in groups)
    plane = _Plane(*axes_of([place for _, place in placed], bandwidth, list(ceilings)))
    points = tuple(_point(plane, group, place) for group, place in placed)
    roof_labels = _ceiling_labels(plane, ceilings)
    spots = [_spot(cluster) for cluster in _clusters(list(zip((group for group, _ in placed), points, strict=True)))]
    labels = place_labels(spots, [label.box for label in roof_labels], PLOT)
    slope, slope_label = _slope(plane, bandwidth, max(ceilings))
    return Chart(
        lines=(*_grid(plane), slope, *_ceilings(plane, bandwidth, ceilings)),
        points=points,
        labels=(*_axis_labels(plane, placed[0][0].launch.roofline.memory_level), slope_label, *roof_labels, *labels),
        languages=tuple(dict.fromkeys(point.language for point in points)),
    )


def _point(plane: _Plane, group: Group, place: Place) -> Point:
    record = group.launch.record
    told = f"{ratio(place.intensity)} FLOP/byte, {rate(place.flops_per_s, 'FLOP/s')} at the estimated time"
    title = f"{group.label} {record.kernel} ({record.language}): {told}"
    return Point(plane.x(place.intensity), plane.y(place.flops_per_s), record.language, title, group.numbers[0])


def _clusters(points: Sequence[tuple[Group, Point]]) -> list[list[tuple[Group, Point]]]:
    """Each point joins the first cluster whose first point is near."""
    clusters: list[list[tuple[Group, Point]]] = []
    for group, point in points:
        for cluster in clusters:
            first = cluster[0][1]
            if math.hypot(first.x - point.x, first.y - point.y) < NEAR:
                cluster.append((group, point))
                break
        else:
            clusters.append([(group, point)])
    return clusters


def _spot(cluster: Sequence[tuple[Group, Point]]) -> Spot:
    """The numbers and, where it is one, the kernel's name; the numbers alone where there is no room."""
    numbers = ", ".join(str(group.numbers[0]) for group, _ in cluster[:NUMBERS_SHOWN])
    numbers += ", …" if len(cluster) > NUMBERS_SHOWN else ""
    names = {group.launch.record.kernel for group, _ in cluster}
    first = cluster[0][1]
    if len(names) > 1:
        return Spot(first.x, first.y, (numbers,))
    (name,) = names
    short = name if len(name) <= NAME_LENGTH else name[: NAME_LENGTH - 1] + "…"
    return Spot(first.x, first.y, (f"{numbers} {short}", numbers))


def _slope(plane: _Plane, bandwidth: float, ceiling: float) -> tuple[Line, Label]:
    """The memory's roof up to the ridge point of the highest ceiling, and its label along it."""
    ridge = ceiling / bandwidth
    start = max(plane.across.low, plane.up.low / bandwidth)
    line = Line("slope", plane.x(start), plane.y(start * bandwidth), plane.x(ridge), plane.y(ceiling))
    angle = math.degrees(math.atan2(line.y2 - line.y1, line.x2 - line.x1))
    x, y = (line.x1 + line.x2) / 2, (line.y1 + line.y2) / 2
    away = math.radians(angle - 90)
    text = f"memory: {rate(bandwidth, 'B/s')}"
    return line, Label(x + 7 * math.cos(away), y + 7 * math.sin(away), text, "middle", "roof", angle)


def _ceilings(plane: _Plane, bandwidth: float, ceilings: Iterable[float]) -> Iterable[Line]:
    for ceiling in ceilings:
        y = plane.y(ceiling)
        yield Line("ceiling", plane.x(max(ceiling / bandwidth, plane.across.low)), y, PLOT.right, y)


def _ceiling_labels(plane: _Plane, ceilings: dict[float, tuple[str, ...]]) -> list[Label]:
    """Above its ceiling at the right edge, else below it, else further left, so that no two labels meet."""
    labels: list[Label] = []
    for ceiling in reversed(ceilings):
        text = f"{', '.join(ceilings[ceiling])}: {rate(ceiling, 'FLOP/s')}"
        x, y = PLOT.right - 2, plane.y(ceiling)
        label = Label(x, y - 4, text, "end", "roof")
        step = 0
        while any(label.box.meets(other.box) for other in labels):
            step += 1
            left = step // 2 * (len(text) + 2) * CHARACTER_WIDTH
            label = Label(x - left, y - 4 if step % 2 == 0 else y + LINE_HEIGHT - 1, text, "end", "roof")
        labels.append(label)
    return labels


def _thinned(decades: Sequence[float]) -> Sequence[float]:
    return decades[:: math.ceil(len(decades) / _MOST_DECADES)]


def _grid(plane: _Plane) -> Iterable[Line]:
    for value in _thinned(plane.across.decades()):
        yield Line("grid", plane.x(value), PLOT.top, plane.x(value), PLOT.bottom)
    for value in _thinned(plane.up.decades()):
        yield Line("grid", PLOT.left, plane.y(value), PLOT.right, plane.y(value))


def _axis_labels(plane: _Plane, memory_level: str) -> Iterable[Label]:
    for value in _thinned(plane.across.decades()):
        yield Label(plane.x(value), PLOT.bottom + 18, f"{value:g}", "middle", "axis")
    for value in _thinned(plane.up.decades()):
        yield Label(PLOT.left - 6, plane.y(value) + 4, rate(value, "FLOP/s"), "end", "axis")
    yield Label((PLOT.left + PLOT.right) / 2, PLOT.bottom + 40, f"FLOP/byte, {memory_level}", "middle", "axis")
