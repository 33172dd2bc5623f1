"""Copies that one thread issues: into shared memory of the cluster, of which an mbarrier tells, and from it."""

from __future__ import annotations

from llvmlite import ir

from triptych.gpu.hardware import RANK_SHIFT
from triptych.gpu.isa.asynchronous.mbarrier_object import OBJECT_BYTES
from triptych.gpu.lower.primitives.emitter import I32, I64, POINTER, VOID, constant, start_function
from triptych.gpu.lower.records import Site
from triptych.gpu.lower.scheduling.clusters import LOCATE
from triptych.gpu.lower.watching.accesses import RANGE
from triptych.gpu.lower.watching.completion import add_copy
from triptych.gpu.lower.watching.copies import BULK_GROUPS, next_number, tag_of
from triptych.gpu.lower.watching.layout import SCANNED, TAG_BYTES, WatchedMemory, ended, watch
from triptych.gpu.lower.watching.reads import add_reader
from triptych.gpu.lower.watching.records import Completion, HazardKind, WatchedBlock

LAND, TAKE = watch("land"), watch("take")
_OWN = (1 << RANK_SHIFT) - 1


def build_bulk_watching() -> ir.Module:
    """The module with `LAND` and `TAKE`."""
    module = ir.Module(name=watch("bulk"))
    _build_land(module)
    _build_take(module)
    return module


def _find(memory: WatchedMemory, site: ir.Value, address: ir.Value, size: ir.Value) -> ir.Value:
    """The host's place of an address of the cluster, an i64; returns where there is none, which is a fault."""
    e = memory.e
    kind = e.intrinsic(LOCATE, I64, [memory.context, site, address, size])
    with e.when(e.b.icmp_unsigned("!=", kind, constant(0)), likely=False):
        e.b.ret_void()
    return e.load_field(Site, site, "delta")


def _phase_of(memory: WatchedMemory, site: ir.Value, mbarrier: ir.Value) -> dict[str, ir.Value]:
    """The fields of a `Pending` that completes transactions of an mbarrier."""
    place = _find(memory, site, mbarrier, constant(OBJECT_BYTES))
    return {"place": place, "amount": memory.b.zext(ended(memory.e, memory.phases(place)), I64)}


def _build_land(module: ir.Module) -> None:
    """land(context, site, lane, address, size, mbarrier, overlaps): a copy into shared memory of the cluster.

    It completes transactions of the mbarrier; addresses may name blocks. `overlaps`: it may meet others like it.
    """
    e = start_function(module, LAND, VOID, [POINTER, POINTER, *[I64] * 5])
    context, site, lane, address, size, mbarrier, overlaps = e.function.args
    own, b = WatchedMemory(e, context), e.b
    with e.when(b.icmp_unsigned("==", size, constant(0)), likely=False):
        b.ret_void()
    host, low = _find(own, site, address, size), b.and_(address, constant(_OWN))
    shared, high = b.sub(host, low), b.add(low, size)
    with e.when(b.icmp_unsigned("==", overlaps, constant(0)), likely=True):
        e.intrinsic(RANGE, VOID, [context, shared, constant(HazardKind.WRITE), site, lane, low, high])
    phase = _phase_of(own, site, mbarrier)
    memory = WatchedMemory(e, context, shared)
    copy = next_number(memory)
    given = {"site": b.ptrtoint(site, I64), "lane": lane, "number": copy, "low": low, "high": high, **phase}
    pending = memory.copy(copy)
    memory.start(pending, constant(Completion.MBARRIER), {**given, "lanes": b.shl(constant(1), lane)})
    add_copy(memory, pending, e.field(WatchedBlock, memory.block(), "first"))
    first = memory.granule_of(low)
    tags, tag = memory.tag(first), tag_of(e, copy, lane)
    count = b.add(b.sub(memory.granule_of(b.sub(high, constant(1))), first), constant(1))
    whole = b.udiv(count, constant(SCANNED))
    with e.counted(whole) as i:
        place = e.offset(tags, b.mul(i, constant(SCANNED * TAG_BYTES)))
        b.store(e.splat(tag, SCANNED), place, align=TAG_BYTES)
    done = b.mul(whole, constant(SCANNED))
    with e.counted(b.sub(count, done)) as i:
        b.store(tag, e.offset(tags, b.mul(b.add(done, i), constant(TAG_BYTES))))
    b.ret_void()


def _build_take(module: ir.Module) -> None:
    """take(context, site, lane, address, size, signals, mbarrier): a copy from the block's own shared memory.

    It is done by its group of bulk copies or, where it `signals`, by transactions of the mbarrier.
    """
    e = start_function(module, TAKE, VOID, [POINTER, POINTER, *[I64] * 5])
    context, site, lane, address, size, signals, mbarrier = e.function.args
    memory, b = WatchedMemory(e, context), e.b
    high = b.add(address, size)
    outside = b.icmp_unsigned(">", high, memory.field("shared_size"))
    with e.when(b.or_(outside, b.icmp_unsigned("==", size, constant(0))), likely=False):
        b.ret_void()
    read = [context, memory.shared, constant(HazardKind.READ), site, lane, address, high]
    e.intrinsic(RANGE, VOID, read)
    given = {"site": b.ptrtoint(site, I64), "lane": lane, "low": address, "high": high}
    with e.when(b.icmp_unsigned("!=", signals, constant(0))):
        add_reader(memory, constant(Completion.MBARRIER), given | _phase_of(memory, site, mbarrier))
        b.ret_void()
    groups = memory.lanes_of(memory.own_warp(), BULK_GROUPS)
    group = b.zext(b.load(e.offset(groups, b.shl(lane, constant(2))), typ=I32), I64)
    add_reader(memory, constant(Completion.BULK_GROUP), given | {"amount": group})
    b.ret_void()
