"""`cp.async`: a copy from global to shared memory for each active lane, as a helper of its own."""

from __future__ import annotations

from llvmlite import ir

from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.isa.spaces import GLOBAL, SHARED
from triptych.gpu.lower.memory.access import SECTOR_SHIFT, HelperAccess
from triptych.gpu.lower.memory.counts import SectorCount
from triptych.gpu.lower.memory.lane_places import LanePlaces
from triptych.gpu.lower.primitives.emitter import I8, I32, I64, POINTER, VOID, Emitter, constant, number, vector
from triptych.gpu.lower.records import FaultKind, Site
from triptych.gpu.lower.scheduling.services import record_fault

_COUNTERS = ("requests", "sectors", "bytes", "conflicts", "contiguous", "broadcast")
_LINE_BYTES = 64
"""Of the processor's caches."""
BYTEWISE = HelperAccess("load", GLOBAL, 1)
"""The helper that reads what is cut short."""


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


def _count_loads(e: Emitter, size: int, counts: _Counts, request: tuple[ir.Value, ...]) -> None:
    """Counts the copies of all lanes of the mask as one load; a lane's source lies in one sector."""
    mask, sources, sizes = request
    sectors = SectorCount(e)
    places = [e.variable(v.type, v) for v in (sources, sizes)]
    loaded = e.variable(I64, constant(0))
    with e.each_lane(mask) as lane:
        given = e.b.zext(e.b.load(e.offset(places[1], e.b.shl(lane, constant(2))), typ=I32), I64)
        with e.when(e.b.icmp_unsigned("!=", given, constant(0))):
            source = e.b.load(e.offset(places[0], e.b.shl(lane, constant(3))), typ=I64)
            sectors.add(lane, e.b.lshr(source, constant(SECTOR_SHIFT)))
            wanted = e.intrinsic("llvm.umin.i64", I64, [given, constant(size)])
            e.b.store(e.b.add(e.get(loaded, I64), wanted), loaded)
    counts.replace(requests=constant(1), sectors=sectors.total(), bytes=e.get(loaded, I64))


def build_copy(size: int) -> ir.Module:
    """Whole copies go in one piece; what is cut short is zeros first, then byte by byte, and counts as one request."""
    module = ir.Module(name=copy_name(size))
    e = Emitter(ir.Function(module, copy_type(), copy_name(size)))
    context, site, mask, targets, sources, sizes = e.function.args
    counted, kind = _Counts(e, site), vector(I32)
    whole = e.b.and_(e.bits(e.b.icmp_unsigned(">=", sizes, number(kind, size))), mask)
    empty = e.b.and_(e.bits(e.b.icmp_unsigned("==", sizes, number(kind, 0))), mask)
    given, taken = LanePlaces(e, GLOBAL, size), LanePlaces(e, SHARED, size)
    _prefetch(e, size, site, sources)
    given.admit(context, site, whole, sources, write=False)
    taken.admit(context, e.offset(site, Site.size()), mask, targets, write=True)
    with e.counted(constant(WARP_SIZE)) as lane:
        e.b.store(e.b.load(given.place(lane), align=1, typ=given.kind), taken.place(lane), align=1)
    partial = e.b.and_(mask, e.b.not_(e.b.or_(whole, empty)))
    with e.when(e.b.icmp_unsigned("!=", partial, ir.Constant(I32, 0)), likely=False):
        _copy_bytes(e, size, _aligned(e, size, partial, sources), taken)
        _count_loads(e, size, counted, (mask, sources, sizes))
    e.b.ret_void()
    return module


def _prefetch(e: Emitter, size: int, site: ir.Value, sources: ir.Value) -> None:
    """Has the processor fetch what most requests read while they are admitted: neighbours, in last time's storage.

    A hint alone: it reads nothing, and no address is wrong.
    """
    hosts = e.b.add(sources, e.splat(e.load_field(Site, site, "delta")))
    for lane in range(0, WARP_SIZE, _LINE_BYTES // size):
        place = e.b.inttoptr(e.b.extract_element(hosts, ir.Constant(I32, lane)), POINTER)
        read, keep, data = (ir.Constant(I32, value) for value in (0, 3, 1))
        e.intrinsic("llvm.prefetch.p0", VOID, [place, read, keep, data])


def _aligned(e: Emitter, size: int, lanes: ir.Value, sources: ir.Value) -> ir.Value:
    """The lanes whose source is a multiple of the copy's size, as it must be however little is read; others fault."""
    context, site = e.function.args[:2]
    odd = e.b.icmp_unsigned("!=", e.b.and_(sources, number(vector(I64), size - 1)), number(vector(I64), 0))
    wrong = e.b.and_(e.bits(odd), lanes)
    home = e.variable(vector(I64), sources)
    with e.each_lane(wrong) as lane:
        address = e.b.load(e.offset(home, e.b.shl(lane, constant(3))), typ=I64)
        where = {"lane": lane, "site": site, "address": address, "size": constant(size)}
        record_fault(e, context, constant(FaultKind.MISALIGNED), **where)
    return e.b.and_(lanes, e.b.not_(wrong))


def _copy_bytes(e: Emitter, size: int, lanes: ir.Value, taken: LanePlaces) -> None:
    context, site, _, _, sources, sizes = e.function.args
    home = e.variable(vector(I8))
    with e.counted(constant(size)) as i:
        there = e.b.and_(e.bits(e.b.icmp_unsigned(">", sizes, e.splat(e.b.trunc(i, I32)))), lanes)
        arguments = [context, site, there, e.b.add(sources, e.splat(i))]
        e.b.store(e.intrinsic(BYTEWISE.name, vector(I8), arguments), home)
        with e.each_lane(there) as lane:
            e.b.store(e.b.load(e.offset(home, lane), typ=I8), e.offset(taken.place(lane), i), align=1)
