"""Vectors put together, taken apart and turned, in shuffles that are single instructions of the processor."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from triptych.gpu.lower.primitives.emitter import I32, vector


def pick(b: ir.IRBuilder, first: ir.Value, second: ir.Value, places: Sequence[int]) -> ir.Value:
    """The elements at these places of two vectors, one behind the other."""
    return b.shuffle_vector(first, second, ir.Constant(vector(I32, len(places)), [ir.Constant(I32, p) for p in places]))


def concatenate(b: ir.IRBuilder, parts: Sequence[ir.Value]) -> ir.Value:
    """2ⁿ vectors of one length as one vector."""
    while len(parts) > 1:
        places = range(2 * parts[0].type.count)
        parts = [pick(b, first, second, places) for first, second in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def pieces(b: ir.IRBuilder, whole: ir.Value, length: int) -> list[ir.Value]:
    """A vector cut into shorter ones."""
    starts = range(0, whole.type.count, length)
    return [pick(b, whole, whole, range(start, start + length)) for start in starts]


def turn(b: ir.IRBuilder, lines: Sequence[ir.Value]) -> list[ir.Value]:
    """The columns of lines of 2ⁿ elements each, at least as many lines as elements or a multiple of it.

    Where lines are shorter than there are of them, those that are half the lines apart are one vector from the start.
    """
    count, length = len(lines), lines[0].type.count
    if length > count:
        cut = [pieces(b, line, count) for line in lines]
        return [column for part in zip(*cut, strict=True) for column in turn(b, part)]
    groups = range(length)
    return _turn_square(b, [concatenate(b, lines[group::length]) for group in groups])


def _turn_square(b: ir.IRBuilder, rows: Sequence[ir.Value]) -> list[ir.Value]:
    """Blocks of as many columns as there are rows, side by side, each turned: neighbours first, then pairs, …"""
    found, count, step = list(rows), rows[0].type.count, 1
    while step < len(rows):
        upper = [place if not place & step else count + (place ^ step) for place in range(count)]
        lower = [place | step if not place & step else count + place for place in range(count)]
        for index in (index for index in range(len(rows)) if not index & step):
            pair = found[index], found[index | step]
            found[index], found[index | step] = pick(b, *pair, upper), pick(b, *pair, lower)
        step *= 2
    return found
