"""Figures as SVG files: points of several series, and the lines of their formulas."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from triptych.memory_wall import Axis, Point
from triptych.report.experiments import value_on

_WIDTH, _HEIGHT = 760, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 84.0, 500.0, 16.0, 368.0
_COLOURS = ("#0969da", "#cf222e", "#1a7f37", "#8250df", "#bc4c00", "#57606a")
_MARKS: Sequence[Callable[[float, float], str]] = (
    lambda x, y: f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5"/>',
    lambda x, y: f'<rect x="{x - 4.5:.1f}" y="{y - 4.5:.1f}" width="9" height="9"/>',
    lambda x, y: f'<path d="M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6z"/>',
    lambda x, y: f'<path d="M{x:.1f} {y - 6:.1f}l5.5 10h-11z"/>',
    lambda x, y: f'<path d="M{x - 5:.1f} {y:.1f}h10m-5 -5v10"/>',
    lambda x, y: f'<path d="M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8"/>',
)
_STYLE = (
    'text { font: 12px -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328; }'
    " .grid { stroke: #d0d7de; } .series { fill: none; stroke-width: 1.6; } .formula { stroke-dasharray: 5 3; }"
)


@dataclass(frozen=True, slots=True)
class _Scale:
    """From an axis' values to places of the drawing."""

    axis: Axis
    low: float
    high: float
    start: float
    end: float

    def place(self, value: float) -> float:
        low, high, value = (math.log2(one) if self.axis.logarithmic else one for one in (self.low, self.high, value))
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Powers of two, or multiples of 1, 2 or 5 times a power of ten; at most nine."""
        if self.axis.logarithmic:
            first, last = math.ceil(math.log2(self.low)), math.floor(math.log2(self.high))
            return [2.0**power for power in range(first, last + 1, 1 + (last - first) // 9)]
        rough = (self.high - self.low) / 8
        power = 10 ** math.floor(math.log10(rough))
        step = next(power * each for each in (1, 2, 5, 10) if power * each >= rough)
        return [step * each for each in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]


def _scale(axis: Axis, values: Sequence[float], start: float, end: float) -> _Scale:
    low, high = min(values), max(values)
    if axis.logarithmic:
        return _Scale(axis, low / 1.25, high * 1.25, start, end)
    return _Scale(axis, 0.0, high * 1.08, start, end)


def figure(title: str, x: Axis, y: Axis, points: Sequence[Point]) -> str:
    """The points as marks, a line through what the formula says; series in the order in which they come."""
    across = _scale(x, [one.x for one in points], _LEFT, _RIGHT)
    up = _scale(y, [value for one in points for value in (one.measured, one.formula)], _BOTTOM, _TOP)
    parts = [*_grid(across, up)]
    for index, name in enumerate(dict.fromkeys(one.series for one in points)):
        own = sorted((one for one in points if one.series == name), key=lambda one: one.x)
        colour, mark = _COLOURS[index % len(_COLOURS)], _MARKS[index % len(_MARKS)]
        line = " ".join(f"{across.place(one.x):.1f},{up.place(one.formula):.1f}" for one in own)
        marks = "".join(mark(across.place(one.x), up.place(one.measured)) for one in own)
        parts.append(f'<g class="series" stroke="{colour}"><polyline class="formula" points="{line}"/>{marks}</g>')
        height = _TOP + 14 + 22 * index
        parts.append(f'<g class="series" stroke="{colour}">{mark(_RIGHT + 22, height)}</g>')
        parts.append(_text(_RIGHT + 36, height + 4, name, "start"))
    parts.append(_text(_RIGHT + 14, _BOTTOM - 20, "marks: measured", "start"))
    parts.append(_text(_RIGHT + 14, _BOTTOM - 2, "dashes: the formula", "start"))
    body = "\n".join(parts)
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" xmlns="http://www.w3.org/2000/svg" role="img">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n"
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" rx="8" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


def _grid(across: _Scale, up: _Scale) -> list[str]:
    parts: list[str] = []
    for value in across.ticks():
        place = across.place(value)
        parts.append(f'<path class="grid" d="M{place:.1f} {_TOP}V{_BOTTOM}"/>')
        parts.append(_text(place, _BOTTOM + 18, value_on(across.axis, value), "middle"))
    for value in up.ticks():
        place = up.place(value)
        parts.append(f'<path class="grid" d="M{_LEFT} {place:.1f}H{_RIGHT}"/>')
        parts.append(_text(_LEFT - 6, place + 4, value_on(up.axis, value), "end"))
    parts.append(_text((_LEFT + _RIGHT) / 2, _BOTTOM + 40, across.axis.label, "middle"))
    middle = (_TOP + _BOTTOM) / 2
    parts.append(
        f'<text x="16" y="{middle:.0f}" text-anchor="middle" transform="rotate(-90 16 {middle:.0f})">'
        f"{escape(up.axis.label)}</text>"
    )
    return parts


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
