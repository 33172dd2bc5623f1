"""`cp.async`: a copy from global to shared memory for each active lane, as a helper of its own."""

from __future__ import annotations

from llvmlite import ir

from triptych.gpu.lower.emitter import I8, I32, I64, POINTER, VOID, Emitter, number, vector
from triptych.gpu.lower.memory.access import Access
from triptych.gpu.lower.records import Site

SITE_BYTES = Site.size()
_UNITS = {4: 1, 8: 2, 16: 4}


def copy_name(size: int) -> str:
    """The helper's symbol."""
    return f"triptych.copy.{size}"


def copy_type() -> ir.FunctionType:
    """(context, site, mask, targets, sources, source sizes); the shared memory's site follows the global one."""
    return ir.FunctionType(VOID, [POINTER, POINTER, I32, vector(I32), vector(I64), vector(I32)])


def needed_by_copy(size: int) -> tuple[Access, ...]:
    """The helpers that it calls."""
    count = _UNITS[size]
    byte = (Access("load", "global", 1), Access("store", "shared", 1))
    return (Access("load", "global", 4, count), Access("store", "shared", 4, count), *byte)


def build_copy(size: int) -> ir.Module:
    """Whole copies and zeros go by words; what is cut short by its source size goes byte by byte."""
    module = ir.Module(name=copy_name(size))
    e = Emitter(ir.Function(module, copy_type(), copy_name(size)))
    context, site, mask, targets, sources, sizes = e.function.args
    count = _UNITS[size]
    shared_site = e.offset(site, SITE_BYTES)
    kind = vector(I32)
    whole = e.b.and_(e.bits(e.b.icmp_unsigned(">=", sizes, number(kind, size))), mask)
    empty = e.b.and_(e.bits(e.b.icmp_unsigned("==", sizes, number(kind, 0))), mask)
    load, store = Access("load", "global", 4, count), Access("store", "shared", 4, count)
    loaded = e.intrinsic(load.name, load.result_type, [context, site, whole, sources])
    parts = [loaded] if count == 1 else [e.b.extract_value(loaded, i) for i in range(count)]
    e.intrinsic(store.name, VOID, [context, shared_site, e.b.or_(whole, empty), targets, *parts])
    partial = e.b.and_(mask, e.b.not_(e.b.or_(whole, empty)))
    with (
        e.when(e.b.icmp_unsigned("!=", partial, ir.Constant(I32, 0)), likely=False),
        e.counted(ir.Constant(I64, size)) as i,
    ):
        step = e.splat(i)
        there = e.b.and_(e.bits(e.b.icmp_unsigned(">", sizes, e.splat(e.b.trunc(i, I32)))), partial)
        byte = e.intrinsic("triptych.load.global.1x1", vector(I8), [context, site, there, e.b.add(sources, step)])
        arguments = [context, shared_site, partial, e.b.add(targets, e.b.trunc(step, vector(I32))), byte]
        e.intrinsic("triptych.store.shared.1x1", VOID, arguments)
    e.b.ret_void()
    return module
