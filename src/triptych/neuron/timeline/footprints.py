"""Which bytes the regions of a program touch: two regions overlap where they share a cell.

A memory is written in mixed radix, its digits being the steps of the regions of it (partitions, rows, columns), so that
a region is a box: an interval of each digit. The ends of all intervals cut each digit into parts, and a cell is a part
of every digit. A region that is no box counts as the smallest box around it, and one whose place is known only when the
kernel runs as the whole of its tensor: where these touch more than they should, dependencies are added, never lost.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from triptych.neuron.isa.hardware import Space
from triptych.neuron.isa.trace import Region, Tensor

Axes = tuple[tuple[int, int], ...]
"""(step in bytes, count) an axis, the largest step first, without axes that do not move."""
Key = tuple[int, int, tuple[tuple[int, int], ...]]
"""A tensor, an offset and a pattern: what a region touches."""
Root = int | Space
"""A tensor that no other shares bytes with; or a memory, for all that the author placed in it."""
Box = tuple[tuple[int, int], ...]
"""The first and the last value of each digit."""

_PITCH = 1 << 20
"""Bytes from a partition to the next, where all of a memory is one: more than a partition has."""
MOST_CELLS = 64
"""Cells of a region on average, above which a memory's finest cuts are given up."""


@dataclass(frozen=True, slots=True)
class Span:
    """The bytes of a region in its root: an offset and axes."""

    root: Root
    offset: int
    axes: Axes


def root_of(tensor: int, tensors: Sequence[Tensor]) -> Root:
    """Whose bytes a tensor's are."""
    alias = tensors[tensor].alias
    owner = tensor if alias is None else alias
    return owner if tensors[owner].address is None else tensors[owner].space


def key_of(region: Region) -> Key:
    """What a region touches; the whole tensor has the pattern ()."""
    if region.dynamic is not None:
        return (region.tensor, 0, ())
    return (region.tensor, region.offset, region.pattern)


def _span(key: Key, tensors: Sequence[Tensor]) -> Span:
    at, offset, pattern = key
    tensor = tensors[at]
    item = tensor.dtype.bytes
    root = root_of(at, tensors)
    if not pattern:
        pattern = ((tensor.free, tensor.partitions), (1, tensor.free))
    if isinstance(root, Space):
        owner = tensors[at if tensor.alias is None else tensor.alias]
        partition, element = divmod(offset, tensor.free)
        start = (owner.start + partition) * _PITCH + (owner.address or 0) + element * item
        scaled = [(step // tensor.free * _PITCH + step % tensor.free * item, count) for step, count in pattern]
        return Span(root, *_merged(start, (*scaled, (1, item))))
    return Span(root, *_merged(offset * item, (*((step * item, count) for step, count in pattern), (1, item))))


def _merged(offset: int, axes: Iterable[tuple[int, int]]) -> tuple[int, Axes]:
    """Axes with steps above 0, the largest first; neighbours that make one run of equal steps are joined."""
    turned: list[tuple[int, int]] = []
    for step, count in axes:
        if count == 1 or step == 0:
            continue
        if step < 0:
            offset += step * (count - 1)
        turned.append((abs(step), count))
    turned.sort()
    joined: list[tuple[int, int]] = []
    for step, count in turned:
        if joined and step == joined[-1][0] * joined[-1][1]:
            joined[-1] = (joined[-1][0], joined[-1][1] * count)
        else:
            joined.append((step, count))
    return offset, tuple(reversed(joined))


def _radices(spans: Sequence[Span], pitches: Iterable[int]) -> tuple[int, ...]:
    """The digits' units, the largest first, each a multiple of the next, 1 the last: the steps of most regions."""
    wanted = Counter(step for span in spans for step, _ in span.axes)
    chosen = [1]
    for step in (*pitches, *(step for step, _ in wanted.most_common())):
        if all(max(step, one) % min(step, one) == 0 for one in chosen) and step not in chosen:
            chosen.append(step)
    return tuple(sorted(chosen, reverse=True))


def box_of(offset: int, axes: Axes, radices: Sequence[int]) -> Box:
    """The smallest box around the bytes of a region."""
    low: list[int] = []
    rest = offset
    for radix in radices:
        digit, rest = divmod(rest, radix)
        low.append(digit)
    reach = [0] * len(radices)
    whole = len(radices)  # the digits from here on take every value
    for step, count in axes:
        at = next(index for index, radix in enumerate(radices) if radix <= step)
        run = step * (count - 1)
        reach[at] += -(-run // radices[at])
        if step % radices[at]:
            whole = min(whole, at + 1)
    spans: list[tuple[int, int]] = []
    for at in range(len(radices) - 1, 0, -1):
        extent, last = radices[at - 1] // radices[at], low[at] + reach[at]
        if at >= whole:
            last = max(last, extent - 1 + reach[at])
        if last >= extent:
            reach[at - 1] += last // extent
            spans.append((0, extent - 1))
        else:
            spans.append((low[at], last))
    spans.append((low[0], low[0] + reach[0]))
    return tuple(reversed(spans))


@dataclass(slots=True)
class _Grid:
    """The cuts of one root's digits."""

    cuts: list[list[int]]
    first: int
    """The number of its first cell."""

    @property
    def size(self) -> int:
        return prod(max(len(cut) - 1, 1) for cut in self.cuts)

    def parts(self, box: Box) -> list[range]:
        return [
            range(bisect_right(cut, low) - 1, bisect_left(cut, high + 1))
            for cut, (low, high) in zip(self.cuts, box, strict=True)
        ]

    def cells(self, box: Box) -> tuple[int, ...]:
        numbers = [self.first]
        for cut, part in zip(self.cuts, self.parts(box), strict=True):
            width = len(cut) - 1
            numbers = [(number - self.first) * width + self.first + one for number, one in product(numbers, part)]
        return tuple(numbers)


class Footprints:
    """The cells of the regions of a program, of roots that the program writes; what nobody writes has none."""

    def __init__(self, keys: Iterable[Key], written: Iterable[Key], tensors: Sequence[Tensor]) -> None:
        """For all that a program touches, and what of it it writes."""
        changing = {root_of(key[0], tensors) for key in written}
        by_root: dict[Root, list[Key]] = {}
        self.count = 0
        """Cells in all."""
        self._cells: dict[Key, tuple[int, ...]] = dict.fromkeys(keys, ())
        for key in self._cells:
            root = root_of(key[0], tensors)
            if root in changing:
                by_root.setdefault(root, []).append(key)
        for root, own in by_root.items():
            self._divide(root, own, tensors)

    def _divide(self, root: Root, keys: Sequence[Key], tensors: Sequence[Tensor]) -> None:
        """The cells of the regions of a root."""
        if len(keys) == 1:
            self._cells[keys[0]] = (self.count,)
            self.count += 1
            return
        spans = [_span(key, tensors) for key in keys]
        radices = _radices(spans, _pitches(root, tensors))
        boxes = [box_of(span.offset, span.axes, radices) for span in spans]
        grid = _cut(boxes, self.count)
        self.count += grid.size
        for key, box in zip(keys, boxes, strict=True):
            self._cells[key] = grid.cells(box)

    def __getitem__(self, key: Key) -> tuple[int, ...]:
        """The cells of a region."""
        return self._cells[key]


def _pitches(root: Root, tensors: Sequence[Tensor]) -> tuple[int, ...]:
    """The steps that are digits before any other: from partition to partition, along the axes of an array in HBM."""
    if isinstance(root, Space):
        return (_PITCH,)
    tensor = tensors[root]
    steps = (tensor.free,) if tensor.space.on_chip else sorted(map(abs, tensor.strides), reverse=True)
    return tuple(step * tensor.dtype.bytes for step in steps if step)


def _cut(boxes: Sequence[Box], first: int) -> _Grid:
    """The cuts that tell the boxes apart; the cells are numbered from `first` on."""
    digits = range(len(boxes[0]))
    cuts = [sorted({end for box in boxes for end in (box[at][0], box[at][1] + 1)}) for at in digits]
    grid = _Grid(cuts, first)
    for at in reversed(digits):
        if sum(prod(map(len, grid.parts(box))) for box in boxes) <= MOST_CELLS * len(boxes):
            break
        grid.cuts[at] = [cuts[at][0], cuts[at][-1]]
    return grid
