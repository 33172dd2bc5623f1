"""`cp.async`: a copy from global to shared memory for each active lane, as a helper of its own."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.isa.spaces import GLOBAL, SHARED
from triptych.gpu.lower.memory.access import SECTOR_SHIFT, HelperAccess
from triptych.gpu.lower.memory.counts import BankCount, SectorCount
from triptych.gpu.lower.memory.lane_places import LanePlaces
from triptych.gpu.lower.primitives.emitter import I8, I32, I64, POINTER, VOID, Emitter, constant, number, vector
from triptych.gpu.lower.records import Site

_COUNTERS = ("requests", "sectors", "bytes", "conflicts", "contiguous", "broadcast")
BYTEWISE = HelperAccess("load", GLOBAL, 1), HelperAccess("store", SHARED, 1)
"""The helpers of copies that are cut short."""


def copy_name(size: int) -> str:
    """The helper's symbol."""
    return f"triptych.copy.{size}"


def copy_type() -> ir.FunctionType:
    """(context, site, mask, targets, sources, source sizes); the shared memory's site follows the global one."""
    return ir.FunctionType(VOID, [POINTER, POINTER, I32, vector(I32), vector(I64), vector(I32)])


class _Counts:
    """A site, and what it had counted before."""

    def __init__(self, e: Emitter, site: ir.Value) -> None:
        self.e, self.site = e, site
        self.before = {name: e.load_field(Site, site, name) for name in _COUNTERS}

    def replace(self, **added: ir.Value) -> None:
        """Forgets what was counted since, and counts what is given."""
        for name, before in self.before.items():
            amount = added.get(name)
            total = before if amount is None else self.e.b.add(before, amount)
            self.e.b.store(total, self.e.field(Site, self.site, name))


def _count_once(e: Emitter, size: int, counts: Sequence[_Counts], request: tuple[ir.Value, ...]) -> None:
    """Counts the copies of all lanes of the mask as one load and one store; a lane's source lies in one sector."""
    mask, targets, sources, sizes = request
    sectors, banks = SectorCount(e), BankCount(e, constant(1), constant(size), mask, e.b.zext(targets, vector(I64)))
    places = [e.variable(v.type, v) for v in (targets, sources, sizes)]
    loaded = e.variable(I64, ir.Constant(I64, 0))
    with e.each_lane(mask) as lane:
        four, eight = (e.b.shl(lane, ir.Constant(I64, shift)) for shift in (2, 3))
        banks.add(lane, e.b.zext(e.b.load(e.offset(places[0], four), typ=I32), I64))
        given = e.b.zext(e.b.load(e.offset(places[2], four), typ=I32), I64)
        with e.when(e.b.icmp_unsigned("!=", given, ir.Constant(I64, 0))):
            source = e.b.load(e.offset(places[1], eight), typ=I64)
            sectors.add(lane, e.b.lshr(source, ir.Constant(I64, SECTOR_SHIFT)))
            wanted = e.intrinsic("llvm.umin.i64", I64, [given, ir.Constant(I64, size)])
            e.b.store(e.b.add(e.get(loaded, I64), wanted), loaded)
    one = ir.Constant(I64, 1)
    counts[0].replace(requests=one, sectors=sectors.total(), bytes=e.get(loaded, I64))
    wavefronts, conflicts = banks.totals()
    stored = e.b.mul(e.b.zext(e.count_ones(mask), I64), ir.Constant(I64, size))
    counts[1].replace(requests=one, sectors=wavefronts, bytes=stored, conflicts=conflicts)


def build_copy(size: int) -> ir.Module:
    """Whole copies and zeros go by words; what is cut short by its source size goes byte by byte, as one request."""
    module = ir.Module(name=copy_name(size))
    e = Emitter(ir.Function(module, copy_type(), copy_name(size)))
    context, site, mask, targets, sources, sizes = e.function.args
    shared_site = e.offset(site, Site.size())
    counted = [_Counts(e, place) for place in (site, shared_site)]
    kind = vector(I32)
    whole = e.b.and_(e.bits(e.b.icmp_unsigned(">=", sizes, number(kind, size))), mask)
    empty = e.b.and_(e.bits(e.b.icmp_unsigned("==", sizes, number(kind, 0))), mask)
    given, taken = LanePlaces(e, GLOBAL, size), LanePlaces(e, SHARED, size)
    given.admit(context, site, whole, sources, write=False)
    taken.admit(context, shared_site, e.b.or_(whole, empty), targets, write=True)
    with e.counted(constant(WARP_SIZE)) as lane:
        e.b.store(e.b.load(given.place(lane), align=1, typ=given.kind), taken.place(lane), align=1)
    partial = e.b.and_(mask, e.b.not_(e.b.or_(whole, empty)))
    with e.when(e.b.icmp_unsigned("!=", partial, ir.Constant(I32, 0)), likely=False):
        with e.counted(ir.Constant(I64, size)) as i:
            step = e.splat(i)
            there = e.b.and_(e.bits(e.b.icmp_unsigned(">", sizes, e.splat(e.b.trunc(i, I32)))), partial)
            byte = e.intrinsic(BYTEWISE[0].name, vector(I8), [context, site, there, e.b.add(sources, step)])
            byte = e.b.select(e.from_bits(there), byte, number(vector(I8), 0))
            arguments = [context, shared_site, partial, e.b.add(targets, e.b.trunc(step, vector(I32))), byte]
            e.intrinsic(BYTEWISE[1].name, VOID, arguments)
        _count_once(e, size, counted, (mask, targets, sources, sizes))
    e.b.ret_void()
    return module
