"""Accesses that stand inside a kernel: shared ones whose lanes are known to reach for one element (`broadcast`) or for
neighbouring ones (`contiguous`), and local ones whose lanes are known to reach for one offset (`row`).

The kernel holds the short way itself: a few scalar instructions, and the access. What is not simple (a partial mask,
a fault) goes to a fallback that keeps every register and passes vectors through the worker's scratch memory, so that
the kernel's own values stay where they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.isa.spaces import LOCAL, SHARED
from triptych.gpu.lower.memory.access import HelperAccess
from triptych.gpu.lower.memory.interleaving import LocalMemory
from triptych.gpu.lower.memory.moves import interleave, read_contiguous
from triptych.gpu.lower.memory.short import ShortShared
from triptych.gpu.lower.memory.words import ROW, Words
from triptych.gpu.lower.primitives.emitter import I32, I64, POINTER, VOID, Emitter, constant, lanes, number
from triptych.gpu.lower.records import Context, Site

_KEEPS_REGISTERS = "preserve_allcc"


def fallback_name(access: HelperAccess, way: str) -> str:
    """The symbol of a fallback."""
    return f"{access.name}.{way}"


def ways_of(access: HelperAccess) -> tuple[str, ...]:
    """The ways in which a helper's accesses can stand inside a kernel: stores of one element have none."""
    if access.is_atomic or access.space not in (SHARED, LOCAL):
        return ()
    if access.space is LOCAL:
        return ("row",)
    return ("contiguous", "broadcast") if access.kind == "load" else ("contiguous",)


def _fallback(module: ir.Module, access: HelperAccess, way: str) -> ir.Function:
    """Declares `fallback(context, site, mask, address)`; vectors lie in the worker's scratch memory."""
    name = fallback_name(access, way)
    known = module.globals.get(name)
    if known is None:
        known = ir.Function(module, ir.FunctionType(VOID, [POINTER, POINTER, I32, access.address_type]), name)
        known.calling_convention = _KEEPS_REGISTERS
    return known


def emit_inline(
    e: Emitter,
    access: HelperAccess,
    way: str,
    arguments: tuple[ir.Value, ir.Value, ir.Value, ir.Value],
    values: Sequence[ir.Value],
) -> list[ir.Value]:
    """The access at a scalar address, `arguments` being (context, site, mask, address); gives what a load loads.

    `broadcast` gives scalars, the others vectors.
    """
    b = e.b
    if way == "row":
        return _emit_row(e, access, arguments, values)
    context, site, mask, address = arguments
    short = ShortShared(e, access, context, site, address)
    low = b.and_(address, ir.Constant(I32, access.bytes - 1))
    simple = b.and_(b.icmp_unsigned("==", low, ir.Constant(I32, 0)), b.icmp_unsigned("==", mask, ir.Constant(I32, -1)))
    simple = b.and_(simple, short.reaches(access.bytes if way == "broadcast" else WARP_SIZE * access.bytes))
    place = e.variable(POINTER, b.inttoptr(e.load_field(Context, context, "scratch"), POINTER))
    whole = interleave(b, values) if values else None
    with b.if_else(simple, likely=True) as (inside, other):
        with inside:
            host = short.enter(0, way)
            b.store(host, place)
            if whole is not None:
                b.store(whole, host, align=1)
        with other:
            if whole is not None:
                b.store(whole, e.get(place, POINTER), align=1)
            b.call(_fallback(e.module, access, way), list(arguments))
    if whole is not None:
        return []
    there = e.get(place, POINTER)
    return read_contiguous(b, access, there) if way == "contiguous" else _read_one(e, access, there)


def emit_broadcast_call(
    e: Emitter, access: HelperAccess, arguments: tuple[ir.Value, ir.Value, ir.Value, ir.Value]
) -> list[ir.Value]:
    """A load of one element for all lanes, as `emit_inline`'s, but a call whatever it meets."""
    e.b.call(_fallback(e.module, access, "broadcast"), list(arguments))
    scratch = e.b.inttoptr(e.load_field(Context, arguments[0], "scratch"), POINTER)
    return _read_one(e, access, scratch)


def _read_one(e: Emitter, access: HelperAccess, place: ir.Value) -> list[ir.Value]:
    return [e.b.load(e.offset(place, i * access.size), align=1, typ=access.element) for i in range(access.count)]


def _emit_row(
    e: Emitter,
    access: HelperAccess,
    arguments: tuple[ir.Value, ir.Value, ir.Value, ir.Value],
    values: Sequence[ir.Value],
) -> list[ir.Value]:
    """A full warp's access to the words at one offset of local memory."""
    b = e.b
    context, site, mask, address = arguments
    memory, words = LocalMemory(e, context), Words(b, access)
    given = words.of(values)
    scratch = e.load_field(Context, context, "scratch")
    place = e.variable(I64, scratch)
    inside = b.and_(b.icmp_unsigned("==", mask, ir.Constant(I32, -1)), memory.has(address, access.bytes))
    with b.if_else(inside, likely=True) as (row, other):
        with row:
            e.add_field(Site, site, "broadcast", constant(1))
            start = memory.row(address)
            b.store(start, place)
            words.write(words.rows(start), given, e.splat(words.shift(address)))
        with other:
            words.write(words.rows(scratch), given, number(ROW, 0))
            b.call(_fallback(e.module, access, "row"), list(arguments))
    if given:
        return []
    return words.values(words.read(words.rows(e.get(place, I64))), e.splat(words.shift(address)))


def build_fallbacks(module: ir.Module, access: HelperAccess) -> None:
    """Emits the fallbacks of a helper beside it."""
    for way in ways_of(access):
        build = _build_row_fallback if way == "row" else _build_fallback
        build(_fallback(module, access, way), access, way)


def _build_row_fallback(function: ir.Function, access: HelperAccess, _: str) -> None:
    e = Emitter(function)
    context, site, mask, address = function.args
    words = Words(e.b, access)
    rows = words.rows(e.load_field(Context, context, "scratch"))
    values = words.values(words.read(rows), number(ROW, 0)) if access.kind == "store" else []
    given = e.intrinsic(access.name, access.result_type, [context, site, mask, e.splat(address), *values])
    if access.results:
        parts = [given] if access.results == 1 else [e.b.extract_value(given, i) for i in range(access.results)]
        words.write(rows, words.of(parts), e.splat(words.shift(address)))
    e.b.ret_void()


def _build_fallback(function: ir.Function, access: HelperAccess, way: str) -> None:
    e = Emitter(function)
    b = e.b
    context, site, mask, address = function.args
    scratch = b.inttoptr(e.load_field(Context, context, "scratch"), POINTER)
    spread = e.splat(address) if way == "broadcast" else b.add(e.splat(address), lanes(I32, access.bytes))
    values = read_contiguous(b, access, scratch) if access.kind == "store" else []
    given = e.intrinsic(access.name, access.result_type, [context, site, mask, spread, *values])
    if access.results:
        parts = [given] if access.results == 1 else [b.extract_value(given, i) for i in range(access.results)]
        if way == "contiguous":
            b.store(interleave(b, parts), scratch, align=1)
        else:
            index = b.and_(e.count_trailing_zeros(mask), ir.Constant(I32, WARP_SIZE - 1))
            for position, part in enumerate(parts):
                b.store(b.extract_element(part, index), e.offset(scratch, position * access.size), align=1)
    b.ret_void()
