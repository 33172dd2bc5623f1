"""Labels beside points, placed so that they cover neither each other nor a point where there is room."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

CHARACTER_WIDTH = 7.2
"""Units of the drawing, of a label's 12-unit type: an estimate that suits the wide faces."""
LINE_HEIGHT = 14.0
POINT_RADIUS = 5.0
_GAP = 3.0


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle; y grows downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        """Whether the two share an area."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom

    def holds(self, other: Box) -> bool:
        """Whether the other one lies inside."""
        across = self.left <= other.left and other.right <= self.right
        return across and self.top <= other.top and other.bottom <= self.bottom


@dataclass(frozen=True, slots=True)
class Label:
    """A text whose baseline begins (`start`), is halved (`middle`) or ends (`end`) at a point."""

    x: float
    y: float
    text: str
    anchor: str = "start"
    kind: str = "label"
    angle: float = 0.0
    """Degrees, clockwise around the point."""

    @property
    def box(self) -> Box:
        """What the text covers, were it not turned."""
        width = cell_len(self.text) * CHARACTER_WIDTH
        left = self.x - {"start": 0.0, "middle": width / 2, "end": width}[self.anchor]
        return Box(left, self.y - 0.8 * LINE_HEIGHT, left + width, self.y + 0.2 * LINE_HEIGHT)


@dataclass(frozen=True, slots=True)
class Spot:
    """A point and the texts that may stand beside it, the best first."""

    x: float
    y: float
    texts: tuple[str, ...]

    @property
    def box(self) -> Box:
        """What the point itself covers."""
        return Box(self.x - POINT_RADIUS, self.y - POINT_RADIUS, self.x + POINT_RADIUS, self.y + POINT_RADIUS)


def place_labels(spots: Sequence[Spot], taken: Iterable[Box], inside: Box) -> list[Label]:
    """A label for every spot, in their order.

    A label keeps clear of the points, of `taken` and of the labels before it; where nowhere is free, its shortest text
    stands right of its point all the same.
    """
    covered = [*taken, *(spot.box for spot in spots)]
    labels: list[Label] = []
    for spot in spots:
        label = _free(spot, covered, inside)
        labels.append(label)
        covered.append(label.box)
    return labels


def _free(spot: Spot, covered: Sequence[Box], inside: Box) -> Label:
    for text in spot.texts:
        for label in _around(spot, text):
            if inside.holds(label.box) and not any(label.box.meets(box) for box in covered):
                return label
    return next(iter(_around(spot, spot.texts[-1])))


def _around(spot: Spot, text: str) -> Iterable[Label]:
    """Right, left, below, above."""
    aside, middle = POINT_RADIUS + _GAP, spot.y + 0.3 * LINE_HEIGHT
    yield Label(spot.x + aside, middle, text)
    yield Label(spot.x - aside, middle, text, "end")
    yield Label(spot.x, spot.y + aside + 0.8 * LINE_HEIGHT, text, "middle")
    yield Label(spot.x, spot.y - aside - 0.2 * LINE_HEIGHT, text, "middle")
