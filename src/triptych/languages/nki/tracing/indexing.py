"""Index tiles of Beta 1: `nl.arange`, `nl.mgrid`, affine arithmetic on them, and the masks that comparisons make."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, NoReturn, cast

import numpy as np

from triptych.core.errors import NkiError
from triptych.languages.calling import author_location

ARRAYS = "a kernel's arrays are its tensors: pass np.array(…, dtype=np.float32), say"
"""What to do with a list of numbers."""
Shape = tuple[int, ...]
Box = tuple[tuple[int, int], ...]
"""For each axis of a tile the first index and the index behind the last that a mask lets through."""
Cut = tuple[tuple[int, int] | None, ...]
"""The same, None for an axis that the mask leaves whole."""


class Ds(NamedTuple):
    """`nl.ds(start, size)`: the slice start:start+size."""

    start: object
    """A whole number, a register or a tile of one element."""
    size: int


class LoopIndex(int):
    """An index of a loop, a whole number that knows which loop it belongs to."""

    loop: int

    def __new__(cls, value: int, loop: int) -> LoopIndex:
        """The index `value` of that loop."""
        made = super().__new__(cls, value)
        made.loop = loop
        return made


def refuse(message: str, hint: str | None = None) -> NkiError:
    """An error at the author's line."""
    return NkiError(message, where=author_location(), hint=hint)


def whole(value: object) -> int | None:
    """A whole number of Python or numpy as an int, None for anything else (truth values too)."""
    if type(value) is int:
        return value
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        return None
    return int(cast("int", value))


def number(value: object) -> float:
    """A number of Python or numpy as Python's; a whole one stays an int.

    Raises:
        NkiError: for one that no float holds.
    """
    plain = cast("float", value.item() if isinstance(value, np.generic) else value)
    try:
        wide = float(plain)
    except OverflowError:
        raise refuse(f"a number of {int(plain).bit_length()} bits is larger than any float") from None
    return plain if isinstance(plain, int) else wide


def whole_numbers(value: object, what: str) -> tuple[int, ...]:
    """The whole numbers of a sequence.

    Raises:
        NkiError: for anything else.
    """
    if isinstance(value, tuple) and not value:
        return ()
    parts = list(cast("Iterable[object]", value)) if isinstance(value, tuple | list | range | np.ndarray) else [None]
    numbers = [whole(part) for part in parts]
    if None in numbers:
        raise refuse(f"{what} is {value!r}; expected whole numbers")
    return tuple(cast("list[int]", numbers))


def access_pattern(value: object, what: str) -> tuple[tuple[int, int], ...]:
    """The pairs [step, count] of a sequence.

    Raises:
        NkiError: for anything else.
    """
    axes = list(cast("Iterable[object]", value)) if isinstance(value, tuple | list | np.ndarray) else [()]
    pairs = [whole_numbers(axis, what) for axis in axes]
    if any(len(pair) != 2 for pair in pairs):
        raise refuse(f"{what} is {value!r}; expected pairs [step, count]")
    return tuple((pair[0], pair[1]) for pair in pairs)


def sequence(value: object) -> list[object]:
    """The parts of a tuple or a list; anything else alone."""
    return list(cast("Iterable[object]", value)) if isinstance(value, tuple | list) else [value]


def join_shapes(first: Sequence[int], second: Sequence[int]) -> tuple[int, ...]:
    """The shape to which both index tiles broadcast.

    Raises:
        NkiError: where they do not.
    """
    try:
        return np.broadcast_shapes(tuple(first), tuple(second))
    except ValueError:
        raise refuse(f"index tiles of shapes {list(first)} and {list(second)} do not broadcast") from None


_ONE_NEW_AXIS = ((slice(None), None), (None, slice(None)), (slice(None), None, None), (None, slice(None), None),
                 (None, None, slice(None)))  # fmt: skip


@dataclass(slots=True, eq=False)  # never changed; not frozen, as kernels make several for each instruction
class IndexTile:
    """An affine index: element (i, j, …) is offset + steps[0] * i + steps[1] * j + …

    An axis of one element has step 0.
    """

    shape: tuple[int, ...]
    offset: int
    steps: tuple[int, ...]
    _views: dict[tuple[bool, ...], IndexTile] | None = None
    """Those with new axes that were asked for: of the tiles of `nl.arange`, which are asked again and again."""

    def __getitem__(self, key: object) -> IndexTile:
        """A view with new axes: `[:, None]`, `[None, :]`."""
        if self._views is None or not isinstance(key, tuple):
            return self._with_axes(key)
        new = tuple([one is None for one in cast("tuple[object, ...]", key)])
        found = self._views.get(new)
        if found is None or key not in _ONE_NEW_AXIS:
            found = self._views[new] = self._with_axes(cast("object", key))
        return found

    def _with_axes(self, key: object) -> IndexTile:
        shape: list[int] = []
        steps: list[int] = []
        axis = 0
        keys: list[object] = [key] if isinstance(key, list) else sequence(key)
        for one in keys:
            if one is None:
                shape.append(1)
                steps.append(0)
            elif one == slice(None) and axis < len(self.shape):
                shape.append(self.shape[axis])
                steps.append(self.steps[axis])
                axis += 1
            else:
                raise refuse(f"an index tile takes only ':' and None as indices, not {one!r}")
        if axis != len(self.shape):
            raise refuse(f"an index tile of {len(self.shape)} axes was indexed along {axis}")
        return IndexTile(tuple(shape), self.offset, tuple(steps))

    def spread(self, shape: Sequence[int]) -> IndexTile:
        """The same index over a shape that it broadcasts to."""
        missing = len(shape) - len(self.shape)
        return IndexTile(tuple(shape), self.offset, (0,) * missing + self.steps)

    def bounds(self, box: Box | None = None) -> tuple[int, int]:
        """The least and the greatest value, within a box of the tile's own rank."""
        low = high = self.offset
        for step, (first, end) in zip(self.steps, box or tuple((0, count) for count in self.shape), strict=True):
            ends = (step * first, step * (end - 1))
            low, high = low + min(ends), high + max(ends)
        return low, high

    def _combine(self, other: object, sign: int) -> IndexTile:
        number = whole(other)
        if number is not None:
            return IndexTile(self.shape, self.offset + sign * number, self.steps)
        if not isinstance(other, IndexTile):
            return NotImplemented
        shape = join_shapes(self.shape, other.shape)
        left, right = self.spread(shape), other.spread(shape)
        steps = tuple(a + sign * b for a, b in zip(left.steps, right.steps, strict=True))
        return IndexTile(shape, self.offset + sign * other.offset, steps)

    def __add__(self, other: object) -> IndexTile:
        """The sum with a whole number or another index tile."""
        return self._combine(other, 1)

    __radd__ = __add__

    def __sub__(self, other: object) -> IndexTile:
        """The difference."""
        return self._combine(other, -1)

    def __rsub__(self, other: object) -> IndexTile:
        """The difference, the other way round."""
        return (self * -1)._combine(other, 1)

    def __neg__(self) -> IndexTile:
        """The negative."""
        return self * -1

    def __mul__(self, other: object) -> IndexTile:
        """A multiple: whole numbers only, an index must stay affine."""
        factor = whole(other)
        if factor is None:
            raise refuse(f"an index tile can be multiplied by a whole number only, not by {other!r}")
        return IndexTile(self.shape, self.offset * factor, tuple(step * factor for step in self.steps))

    __rmul__ = __mul__

    def _not_affine(self, other: object) -> NoReturn:
        raise refuse(f"{other!r}: an index must stay affine: no division or modulo of index tiles")

    __floordiv__ = __mod__ = __truediv__ = __rfloordiv__ = __rmod__ = _not_affine

    def _compare(self, other: object, comparison: str) -> Mask:
        return Mask(((self - other, comparison),))

    def __lt__(self, other: object) -> Mask:
        """A mask."""
        return self._compare(other, "less")

    def __le__(self, other: object) -> Mask:
        """A mask."""
        return self._compare(other, "less_equal")

    def __gt__(self, other: object) -> Mask:
        """A mask."""
        return self._compare(other, "greater")

    def __ge__(self, other: object) -> Mask:
        """A mask."""
        return self._compare(other, "greater_equal")

    def __eq__(self, other: object) -> Mask:  # type: ignore[override]
        """A mask."""
        return self._compare(other, "equal")

    def __ne__(self, other: object) -> Mask:  # type: ignore[override]
        """A mask."""
        return self._compare(other, "not_equal")

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        """Never: control flow cannot depend on an index tile."""
        raise refuse("control flow depends on an index tile: its elements have no single truth value")


@dataclass(frozen=True, slots=True)
class Mask:
    """A conjunction: each term is an affine index and how it must compare with 0."""

    terms: tuple[tuple[IndexTile, str], ...]

    def __and__(self, other: object) -> Mask:
        """Both."""
        if isinstance(other, bool | np.bool_):
            return self if other else Mask(((IndexTile((1,), 0, (0,)), "not_equal"),))
        if not isinstance(other, Mask):
            return NotImplemented
        return Mask(self.terms + other.terms)

    __rand__ = __and__

    def __or__(self, other: object) -> Mask:
        """Never: only conjunctions are masks."""
        raise refuse("a mask is a conjunction (&) of affine comparisons; '|' is not supported")

    def __invert__(self) -> Mask:
        """The opposite of a single comparison."""
        if len(self.terms) != 1:
            raise refuse("only a single comparison can be inverted (~)")
        opposite = {
            "less": "greater_equal", "greater_equal": "less", "greater": "less_equal", "less_equal": "greater",
            "equal": "not_equal", "not_equal": "equal",
        }  # fmt: skip
        index, comparison = self.terms[0]
        return Mask(((index, opposite[comparison]),))

    def __bool__(self) -> bool:
        """Never: control flow cannot depend on a mask."""
        raise refuse("control flow depends on a mask of index tiles: use it as mask=")

    @property
    def slanted(self) -> bool:
        """Whether it is more than bounds of single axes, so that it may let through several boxes of a tile."""
        return any(
            sum(map(bool, index.steps)) > (comparison not in ("equal", "not_equal")) for index, comparison in self.terms
        )

    def boxes(self, shape: Sequence[int], *, split_rows: bool) -> list[Box]:
        """The boxes of a tile of `shape` that together are what the mask lets through, none of an element of another.

        `split_rows`: as few boxes as may be; else such that, where that is possible, each has the same first row.
        """
        terms = [(_spread(index, shape), comparison) for index, comparison in self.terms]
        whole, axes = [(0, count) for count in shape], range(len(shape))
        by_columns = _boxes(whole, terms, tuple(reversed(axes)))
        return min(by_columns, _boxes(whole, terms, tuple(axes)), key=len) if split_rows else by_columns

    def box(self, shape: Sequence[int]) -> Box | None:
        """The part of a tile of `shape` that the mask lets through; None where it is empty.

        Raises:
            NkiError: for a mask that is not a box, such as one that compares two axes with each other.
        """
        terms = tuple([(one.shape, one.offset, one.steps, comparison) for one, comparison in self.terms])
        return _known_box(terms, tuple(shape))


@lru_cache(1 << 12)
def _known_box(terms: tuple[tuple[Shape, int, Shape, str], ...], shape: Shape) -> Box | None:
    """The box of a mask whose terms have these shapes, offsets, steps and comparisons."""
    limits = [(0, int(count)) for count in shape]
    for counts, offset, steps, comparison in terms:
        limits = _cut(limits, IndexTile(counts, int(offset), steps), comparison, shape)
    return tuple(limits) if all(first < end for first, end in limits) else None


def box_cut(box: Box, shape: Sequence[int]) -> Cut:
    """The part of a tile of `shape` that a box is: () for all of it."""
    cut = tuple(None if part == (0, count) else part for part, count in zip(box, shape, strict=True))
    return cut if any(cut) else ()


def _cut(
    limits: list[tuple[int, int]], index: IndexTile, comparison: str, shape: Sequence[int]
) -> list[tuple[int, int]]:
    """The limits within which one term holds too."""
    term = _spread(index, shape)
    axes = [axis for axis, step in enumerate(term.steps) if step]
    if not axes:
        return limits if _holds(term.offset, comparison) else [(0, 0) for _ in limits]
    if len(axes) > 1 or comparison in ("equal", "not_equal"):
        raise refuse(
            "a mask must bound single axes here (i_p < n, i_f >= m …)",
            "nisa.affine_select selects by any affine comparison, of two axes too",
        )
    axis = axes[0]
    first, end = limits[axis]
    low, high = _solve(term.offset, term.steps[axis], comparison)
    first = first if low is None else max(first, low)
    end = end if high is None else min(end, high)
    return [*limits[:axis], (first, end), *limits[axis + 1 :]]


def _spread(index: IndexTile, shape: Sequence[int]) -> IndexTile:
    """The index of a mask with as many axes as a tile of `shape`."""
    if len(index.shape) > len(shape):
        raise refuse(f"a mask of shape {list(index.shape)} on a tile of shape {list(shape)}")
    return index.spread((*[1] * (len(shape) - len(index.shape)), *index.shape))


def _boxes(limits: list[tuple[int, int]], terms: Sequence[tuple[IndexTile, str]], order: Sequence[int]) -> list[Box]:
    """The boxes within limits for which all terms hold; axes that come first in `order` are split first."""
    later: list[tuple[IndexTile, str]] = []
    for index, comparison in terms:
        axes = sum(map(bool, index.steps))
        if axes > 1 or (axes and comparison == "not_equal"):
            later.append((index, comparison))
        else:
            bounds = ("less_equal", "greater_equal") if axes and comparison == "equal" else (comparison,)
            for bound in bounds:
                limits = _cut(limits, index, bound, index.shape)
    if any(first >= end for first, end in limits):
        return []
    if not later:
        return [tuple(limits)]
    axis = next(at for at in order if later[0][0].steps[at])
    found: list[Box] = []
    for place in range(*limits[axis]):
        inside = [*limits[:axis], (place, place + 1), *limits[axis + 1 :]]
        for box in _boxes(inside, [(_at(index, axis, place), comparison) for index, comparison in later], order):
            if found and found[-1] == (*box[:axis], (found[-1][axis][0], place), *box[axis + 1 :]):
                found[-1] = (*box[:axis], (found[-1][axis][0], place + 1), *box[axis + 1 :])
            else:
                found.append(box)
    return found


def _at(index: IndexTile, axis: int, place: int) -> IndexTile:
    """The index at one place along an axis."""
    steps = (*index.steps[:axis], 0, *index.steps[axis + 1 :])
    return IndexTile(index.shape, index.offset + index.steps[axis] * place, steps)


def _holds(value: int, comparison: str) -> bool:
    return {
        "less": value < 0, "less_equal": value <= 0, "greater": value > 0, "greater_equal": value >= 0,
        "equal": value == 0, "not_equal": value != 0,
    }[comparison]  # fmt: skip


def _solve(offset: int, step: int, comparison: str) -> tuple[int | None, int | None]:
    """The first i and the i behind the last for which offset + step * i compares with 0 as asked."""
    if comparison in ("greater", "greater_equal"):
        offset, step = -offset, -step
    slack = -offset - (1 if comparison in ("less", "greater") else 0)  # offset + step i < 0 is step i <= -offset - 1
    if step > 0:
        return None, slack // step + 1
    return -(slack // -step), None


def arange(*bounds: int) -> IndexTile:
    """`arange(stop)` or `arange(start, stop[, step])`: an index tile of one axis; `[:, None]` gives it a second."""
    if all(type(one) is int for one in bounds):
        return _known_arange(bounds)
    return _new_arange(bounds)


def _new_arange(bounds: tuple[int, ...]) -> IndexTile:
    numbers = whole_numbers(bounds, "nl.arange")
    values = range(*numbers) if 1 <= len(numbers) <= 3 and 0 not in numbers[2:] else range(0)
    if len(values) < 1:
        raise refuse(f"nl.arange{bounds} is empty")
    return IndexTile((len(values),), values.start, (values.step if len(values) > 1 else 0,), {})


_known_arange = lru_cache(1024)(_new_arange)


class Grid(tuple[IndexTile, ...]):
    """What `nl.mgrid[…]` gives: an index tile an axis, by position or as `.p`, `.x`, `.y`, `.z`."""

    __slots__ = ()

    @property
    def p(self) -> IndexTile:
        """Partition index."""
        return self[0]

    @property
    def x(self) -> IndexTile:
        """Index of the first free axis."""
        return self[1]

    @property
    def y(self) -> IndexTile:
        """Index of the second free axis."""
        return self[2]

    @property
    def z(self) -> IndexTile:
        """Index of the third free axis."""
        return self[3]


class MeshGrid:
    """`nl.mgrid[0:128, 0:512]`."""

    def __getitem__(self, key: slice | tuple[slice, ...]) -> Grid:
        """Index tiles of the full shape, one an axis."""
        slices = key if isinstance(key, tuple) else (key,)
        lines = [arange(one.start or 0, one.stop, one.step or 1) for one in slices]
        shape = tuple(line.shape[0] for line in lines)
        return Grid(
            IndexTile(shape, line.offset, tuple(line.steps[0] if axis == at else 0 for axis in range(len(shape))))
            for at, line in enumerate(lines)
        )


mgrid = MeshGrid()
