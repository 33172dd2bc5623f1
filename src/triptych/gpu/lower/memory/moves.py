"""A full warp's loads and stores of host memory, once the place is known."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.lower.memory.access import HelperAccess
from triptych.gpu.lower.primitives.arranging import concatenate, pieces
from triptych.gpu.lower.primitives.emitter import I32, Emitter, number, undefined, vector

_LONG = 64
"""Bits: up to these, parts of a lane's element are joined by shifts, for which LLVM finds better code in less time than
for shuffles of many lanes."""


def move_contiguous(
    e: Emitter, access: HelperAccess, places: Sequence[ir.Value], values: Sequence[ir.Value]
) -> list[ir.Value]:
    """Loads or stores the neighbouring elements at each place, of as many lanes as every other place has."""
    b, count = e.b, WARP_SIZE // len(places) * access.count
    if access.kind == "store":
        whole = interleave(b, values)
        parts = pieces(b, whole, count) if len(places) > 1 else [whole]
        for part, place in zip(parts, places, strict=True):
            b.store(part, place, align=1)
        return []
    kind = vector(access.element, count)
    return take_apart(b, concatenate(b, [b.load(place, align=1, typ=kind) for place in places]), access.count)


def read_contiguous(b: ir.IRBuilder, access: HelperAccess, place: ir.Value) -> list[ir.Value]:
    """The `count` vectors of 32 · count neighbouring elements."""
    count, wide = access.count, vector(access.element, WARP_SIZE * access.count)
    return take_apart(b, b.load(place, align=1, typ=wide), count)


def move_broadcast(
    e: Emitter, access: HelperAccess, places: Sequence[ir.Value], values: Sequence[ir.Value]
) -> list[ir.Value]:
    """All lanes of a place, as many as every other place has, load it; of stores the last lane's value stays."""
    loaded: list[ir.Value] = []
    lanes_each = WARP_SIZE // len(places)
    for position in range(access.count):
        there = [e.offset(place, position * access.size) for place in places]
        if access.kind == "load":
            each = [e.splat(e.b.load(place, align=1, typ=access.element), lanes_each) for place in there]
            loaded.append(concatenate(e.b, each))
            continue
        for index, place in enumerate(there, 1):
            value = e.b.extract_element(values[position], ir.Constant(I32, index * lanes_each - 1))
            e.b.store(value, place, align=1)
    return loaded


def return_all(b: ir.IRBuilder, access: HelperAccess, values: Sequence[ir.Value]) -> None:
    """Returns nothing, a value, or a structure of values."""
    if not access.results:
        b.ret_void()
    elif access.results == 1:
        b.ret(values[0])
    else:
        whole: ir.Value = ir.Constant(ir.LiteralStructType([value.type for value in values]), ir.Undefined)
        for index, value in enumerate(values):
            whole = b.insert_value(whole, value, index)
        b.ret(whole)


def take_apart(b: ir.IRBuilder, whole: ir.Value, count: int) -> list[ir.Value]:
    """The `count` vectors whose elements lie lane by lane in one: what `interleave` makes, taken apart again."""
    if count == 1:
        return [whole]
    bits = whole.type.element.width
    together = max(min(count, _LONG // bits), 1)
    if together > 1:
        longs = take_apart(
            b, b.bitcast(whole, vector(ir.IntType(bits * together), whole.type.count // together)), count // together
        )
        return [part for long in longs for part in _halve(b, long, together)]
    picks = [[ir.Constant(I32, i * count + position) for i in range(WARP_SIZE)] for position in range(count)]
    return [b.shuffle_vector(whole, undefined(whole.type), ir.Constant(vector(I32), pick)) for pick in picks]


def interleave(b: ir.IRBuilder, values: Sequence[ir.Value]) -> ir.Value:
    """{a, b, …} lane by lane: a0 b0 … a1 b1 …, for one, two, four … vectors of one type."""
    element = values[0].type.element
    together = max(min(len(values), _LONG // element.width), 1)
    longs = [_join(b, values[start : start + together]) for start in range(0, len(values), together)]
    return b.bitcast(_weave(b, longs), vector(element, WARP_SIZE * len(values)))


def _halve(b: ir.IRBuilder, whole: ir.Value, count: int) -> list[ir.Value]:
    """The `count` parts of each lane's element, the lowest first."""
    if count == 1:
        return [whole]
    bits: int = whole.type.element.width // 2
    half = vector(ir.IntType(bits), whole.type.count)
    high = b.lshr(whole, number(whole.type, bits))
    return [part for end in (whole, high) for part in _halve(b, b.trunc(end, half), count // 2)]


def _join(b: ir.IRBuilder, parts: Sequence[ir.Value]) -> ir.Value:
    """Lane by lane the parts of one element, the lowest first."""
    if len(parts) == 1:
        return parts[0]
    low, high = (_join(b, half) for half in (parts[: len(parts) // 2], parts[len(parts) // 2 :]))
    wide = vector(ir.IntType(2 * low.type.element.width))
    return b.or_(b.zext(low, wide), b.shl(b.zext(high, wide), number(wide, low.type.element.width)))


def _weave(b: ir.IRBuilder, values: Sequence[ir.Value]) -> ir.Value:
    if len(values) == 1:
        return values[0]
    half = len(values) // 2
    evens, odds = _weave(b, values[0::2]), _weave(b, values[1::2])
    size = WARP_SIZE * half
    picks = [index for i in range(size) for index in (i, size + i)]
    return b.shuffle_vector(evens, odds, ir.Constant(vector(I32, 2 * size), [ir.Constant(I32, i) for i in picks]))
