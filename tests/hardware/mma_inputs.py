"""The matrices that are multiplied on a GPU, in styles that show how sums are made and rounded.

Numbers are made from the raw output of PCG64 by integer arithmetic, so that every version of numpy makes the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from mma_kinds import FLOATS, INTEGERS, Float, Kind
from numpy.typing import NDArray

Bits = NDArray[np.uint64]
"""Raw bits of elements, whatever their width."""


class _Stream:
    """Random numbers of a seed."""

    def __init__(self, seed: str) -> None:
        self._source = np.random.PCG64(crc32(seed.encode()))

    def raw(self, *shape: int) -> Bits:
        return self._source.random_raw(int(np.prod(shape))).reshape(shape)

    def below(self, bound: int | NDArray[np.int64], *shape: int) -> NDArray[np.int64]:
        """Whole numbers from 0 to below the bound."""
        return ((self.raw(*shape) >> np.uint64(40)).astype(np.int64) * bound) >> 24

    def between(self, low: int, high: int, *shape: int) -> NDArray[np.int64]:
        """Whole numbers, both ends included."""
        return low + self.below(high - low + 1, *shape)

    def chance(self, parts: int, of: int, *shape: int) -> NDArray[np.bool_]:
        return self.below(of, *shape) < parts


# --- Numbers of a format ------------------------------------------------------------------------------------------

Shape = tuple[int, ...]
_ANY = -1
"""A mantissa of random bits; otherwise it is given."""
_ONES = (1 << 52) - 1
"""A mantissa all of whose bits are set, in every format."""


def _join(f: Float, s: _Stream, negative: NDArray[np.bool_], field: NDArray[np.int64], mantissa: Bits) -> Bits:
    value = negative.astype(np.uint64) << np.uint64(f.exponent) | field.astype(np.uint64)
    value = value << np.uint64(f.mantissa) | mantissa & np.uint64((1 << f.mantissa) - 1)
    if not f.unused:
        return value
    return value << np.uint64(f.unused) | s.raw(*field.shape) & np.uint64((1 << f.unused) - 1)


def _numbers(f: Float, s: _Stream, exponents: NDArray[np.int64], mantissa: int = _ANY) -> Bits:
    """Finite numbers of random signs; exponents below the range make subnormals, those above it are cut."""
    field = np.clip(exponents + f.bias, 0, f.highest)
    shape = field.shape
    bits = s.raw(*shape) if mantissa == _ANY else np.full(shape, mantissa, np.uint64)
    if not f.has_infinity:  # the largest mantissa of the highest field is NaN
        largest = (bits & np.uint64((1 << f.mantissa) - 1)) == np.uint64((1 << f.mantissa) - 1)
        bits = np.where((field == f.highest) & largest, bits - np.uint64(1), bits)
    return _join(f, s, s.chance(1, 2, *shape), field, bits)


def _keep(s: _Stream, values: Bits, f: Float, parts: int, of: int) -> Bits:
    """The values, most of them replaced by zeros of random signs."""
    zeros = _join(
        f, s, s.chance(1, 2, *values.shape), np.zeros(values.shape, np.int64), np.zeros(values.shape, np.uint64)
    )
    return np.where(s.chance(parts, of, *values.shape), values, zeros)


def _special_values(f: Float) -> Sequence[int]:
    one, top, last = f.bias << f.mantissa, ((1 << f.exponent) - 1) << f.mantissa, (1 << f.mantissa) - 1
    largest = top - 1 if f.has_infinity else top + last - 1
    nans = (top + (last + 1) // 2 + 1, top + 1, top + last) if f.has_infinity else (top + last,)
    infinity = (top,) if f.has_infinity else ()
    sizes = (0, *infinity, *nans, one, largest, last + 1, 1, one + last)
    return [(sign << (f.exponent + f.mantissa) | size) << f.unused for size in sizes for sign in (0, 1)]


# --- Styles: (A, B, C) of a kind ----------------------------------------------------------------------------------

Matrices = tuple[Bits, Bits, Bits]


@dataclass(frozen=True, slots=True)
class _Task:
    """What is to be made: formats and shapes, with a tile first."""

    fa: Float
    fb: Float
    fc: Float
    a: Shape
    b: Shape
    c: Shape
    depth: int

    @property
    def tiles(self) -> int:
        return self.a[0]

    def parts(self) -> Sequence[tuple[Float, Shape]]:
        return ((self.fa, self.a), (self.fb, self.b), (self.fc, self.c))


def _in_window(low: int, high: int, c_low: int, c_high: int, mantissa: int = _ANY, keep: int = 8) -> _Style:
    """Exponents of a range, of A and B and of C; `keep` eighths of the elements are not zero."""

    def make(t: _Task, s: _Stream) -> Matrices:
        ends = ((low, high), (low, high), (c_low, c_high))
        a, b, c = (_numbers(f, s, s.between(*ends[i], *shape), mantissa) for i, (f, shape) in enumerate(t.parts()))
        return _keep(s, a, t.fa, keep, 8), _keep(s, b, t.fb, keep, 8), _keep(s, c, t.fc, 3, 4)

    return make


_Style = Callable[[_Task, _Stream], Matrices]


def _bits(t: _Task, s: _Stream) -> Matrices:
    a, b, c = (s.raw(*shape) >> np.uint64(64 - f.bits) for f, shape in t.parts())
    return a, b, c


def _finite(t: _Task, s: _Stream) -> Matrices:
    a, b, c = (_numbers(f, s, s.between(-f.bias, f.bias, *shape)) for f, shape in t.parts())
    return a, b, c


def _clusters(t: _Task, s: _Stream) -> Matrices:
    """A few large products and many smaller by a gap, which is the same all over a tile."""
    gap = s.between(0, 20, t.tiles, 1, 1)
    a, b = (_numbers(f, s, -np.where(s.chance(1, 4, *shape), 0, gap)) for f, shape in t.parts()[:2])
    return a, b, _numbers(t.fc, s, -gap * s.between(0, 2, *t.c))


def _cancel(t: _Task, s: _Stream) -> Matrices:
    """Half of A's elements come again, negated, against the same of B; half of C is about as large as a product."""
    a = _numbers(t.fa, s, s.between(-6, 6, *t.a))
    b = _numbers(t.fb, s, s.between(-6, 6, *t.b))
    order = np.argsort(s.raw(t.depth))
    for first, second in order.reshape(-1, 2)[: t.depth // 4 + 1]:
        a[:, :, second] = a[:, :, first] ^ np.uint64(1 << (t.fa.bits - 1))
        b[:, second, :] = b[:, first, :]
    place = int(s.below(t.depth, 1)[0])
    bias = t.fc.bias - t.fa.bias - t.fb.bias
    fields = [
        x >> np.uint64(f.unused + f.mantissa) for f, x in ((t.fa, a[:, :, place, None]), (t.fb, b[:, place, None, :]))
    ]
    exponents = sum(
        (f & np.uint64((1 << fmt.exponent) - 1)).astype(np.int64) for f, fmt in zip(fields, (t.fa, t.fb), strict=True)
    )
    near = _numbers(t.fc, s, exponents + bias - t.fc.bias + s.between(-1, 1, *t.c))
    return a, b, np.where(s.chance(1, 2, *t.c), near, _numbers(t.fc, s, s.between(-14, 12, *t.c)))


def _tiny(t: _Task, s: _Stream) -> Matrices:
    """A at the low end of its range, so that products and results are subnormal; C too, or a little above."""
    a = _numbers(t.fa, s, s.between(-t.fa.bias, 2 - t.fa.bias, *t.a))
    low = s.between(-24, 0, t.tiles, 1, 1)
    b = _numbers(t.fb, s, low + s.between(0, 4, *t.b))
    c = _numbers(t.fc, s, np.where(s.chance(1, 2, *t.c), 0, s.below(30, *t.c)) - t.fc.bias)
    return a, b, _keep(s, c, t.fc, 3, 4)


def _huge(t: _Task, s: _Stream) -> Matrices:
    """A at the high end of its range, B around 1 or there too, C at its end: sums overflow, on the way or at last."""
    a = _numbers(t.fa, s, t.fa.highest - t.fa.bias - s.below(3, *t.a))
    high = np.where(s.chance(1, 4, t.tiles, 1, 1), t.fb.highest - t.fb.bias, s.between(-3, 2, t.tiles, 1, 1))
    b = _numbers(t.fb, s, high - s.below(3, *t.b))
    c = _numbers(t.fc, s, t.fc.highest - t.fc.bias - s.below(4, *t.c))
    return a, b, _keep(s, c, t.fc, 3, 4)


def _specials(t: _Task, s: _Stream) -> Matrices:
    """Two special values in a row of A and in a column of B, and some in C."""
    made: list[Bits] = []
    for i, (f, shape) in enumerate(t.parts()):
        values = np.array(_special_values(f), np.uint64)
        special = values[s.below(len(values), *shape)]
        chance = s.chance(1, 4, *shape) if i == 2 else s.chance(2, t.depth, *shape)
        made.append(np.where(chance, special, _numbers(f, s, s.between(-2, 2, *shape))))
    a, b, c = made
    return a, b, c


def _zeros(t: _Task, s: _Stream) -> Matrices:
    """Zeros of both signs, and ones that cancel."""
    a, b, c = (_keep(s, _numbers(f, s, np.zeros(shape, np.int64), 0), f, 1, 4) for f, shape in t.parts())
    return a, b, c


_STYLES: Mapping[str, _Style] = {
    "bits": _bits,
    "finite": _finite,
    "narrow": _in_window(-2, 1, -3, 3),
    "wide": _in_window(-13, 12, -24, 24),
    "powers": _in_window(-14, 15, -28, 30, mantissa=0, keep=2),
    "ones": _in_window(-14, 15, -28, 30, mantissa=_ONES, keep=2),
    "sparse": _in_window(-14, 15, -28, 30, keep=2),
    "beside": _in_window(0, 0, -34, 34),
    "clusters": _clusters,
    "cancel": _cancel,
    "tiny": _tiny,
    "huge": _huge,
    "specials": _specials,
    "zeros": _zeros,
}
"""By the names in `mma_kinds.STYLES`."""


def _integers(kind: Kind, style: str, s: _Stream, shapes: Sequence[Shape]) -> Matrices:
    """Random bits; or elements at the ends of their ranges, and sums that leave theirs."""
    made: list[Bits] = []
    for name, shape in zip((kind.a, kind.b, kind.c), shapes, strict=True):
        bits = INTEGERS[name]
        values = s.raw(*shape) >> np.uint64(64 - bits)
        if style == "ends":
            top = 1 << (bits - 1)
            ends = np.array([top, top - 1, 2 * top - 1, 0 if name != "s32" else top + 5], np.uint64)
            values = ends[s.below(4, *shape)]
        made.append(values)
    a, b, c = made
    return a, b, c


def matrices(kind: Kind, style: str, tiles: int | None = None, seed: str = "") -> Matrices:
    """A (tiles, m, k), B (tiles, k, n) and C (tiles, m, n) of a kind and a style, as raw bits."""
    count = kind.tiles if tiles is None else tiles
    a, b, c = (count, kind.m, kind.k), (count, kind.k, kind.n), (count, kind.m, kind.n)
    s = _Stream(f"{seed}{kind.name} {style}")
    if kind.a in INTEGERS:
        return _integers(kind, style, s, (a, b, c))
    return _STYLES[style](_Task(FLOATS[kind.a], FLOATS[kind.b], FLOATS[kind.c], a, b, c, kind.k), s)
