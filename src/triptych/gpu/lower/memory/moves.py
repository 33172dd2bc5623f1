"""A full warp's loads and stores of host memory, once the place is known."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.lower.memory.access import HelperAccess
from triptych.gpu.lower.primitives.emitter import I32, Emitter, undefined, vector


def move_contiguous(
    b: ir.IRBuilder, access: HelperAccess, place: ir.Value, values: Sequence[ir.Value]
) -> list[ir.Value]:
    """Loads or stores 32 · count neighbouring elements."""
    if access.kind == "store":
        b.store(interleave(b, values), place, align=1)
        return []
    return read_contiguous(b, access, place)


def read_contiguous(b: ir.IRBuilder, access: HelperAccess, place: ir.Value) -> list[ir.Value]:
    """The `count` vectors of 32 · count neighbouring elements."""
    count, wide = access.count, vector(access.element, WARP_SIZE * access.count)
    whole = b.load(place, align=1, typ=wide)
    if count == 1:
        return [whole]
    picks = [[ir.Constant(I32, i * count + position) for i in range(WARP_SIZE)] for position in range(count)]
    return [b.shuffle_vector(whole, undefined(wide), ir.Constant(vector(I32), pick)) for pick in picks]


def move_broadcast(e: Emitter, access: HelperAccess, place: ir.Value, values: Sequence[ir.Value]) -> list[ir.Value]:
    """All lanes load one place; of stores the last lane's value stays."""
    loaded: list[ir.Value] = []
    for position in range(access.count):
        there = e.offset(place, position * access.size)
        if access.kind == "load":
            loaded.append(e.splat(e.b.load(there, align=1, typ=access.element)))
        else:
            value = e.b.extract_element(values[position], ir.Constant(I32, WARP_SIZE - 1))
            e.b.store(value, there, align=1)
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


def interleave(b: ir.IRBuilder, values: Sequence[ir.Value]) -> ir.Value:
    """{a, b, …} lane by lane: a0 b0 … a1 b1 …, for one, two or four vectors."""
    if len(values) == 1:
        return values[0]
    half = len(values) // 2
    evens, odds = interleave(b, values[0::2]), interleave(b, values[1::2])
    size = WARP_SIZE * half
    picks = [index for i in range(size) for index in (i, size + i)]
    return b.shuffle_vector(evens, odds, ir.Constant(vector(I32, 2 * size), [ir.Constant(I32, i) for i in picks]))
