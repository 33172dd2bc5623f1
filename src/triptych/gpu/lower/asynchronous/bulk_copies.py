"""Bulk copies as generated code: a thread's request is written down, and performed from what is written.

A kernel calls `(context, site, mask, targets, sources, sizes, barriers, blocks)`. For each active lane that makes an
`AsyncCopy` and performs it at once. Its two memory sites are those of its row's effect: source, then target.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from llvmlite import ir

from triptych.gpu.hardware import RANK_SHIFT
from triptych.gpu.isa.asynchronous.bulk_copy import UNIT_BYTES, BulkCopy
from triptych.gpu.isa.spaces import ASYNCHRONOUS, GLOBAL, Space
from triptych.gpu.lower.asynchronous.mbarrier import COMPLETE
from triptych.gpu.lower.memory.access import PAIR_SHIFT, SECTOR_SHIFT, atomic_access
from triptych.gpu.lower.memory.atomics import update_element
from triptych.gpu.lower.memory.counts import mark_pairs
from triptych.gpu.lower.primitives.emitter import I1, I32, I64, POINTER, VOID, Emitter, constant, start_function, vector
from triptych.gpu.lower.records import AsyncCopy, FaultKind, Site
from triptych.gpu.lower.scheduling.clusters import LOCATE
from triptych.gpu.lower.scheduling.services import RESOLVE, record_fault
from triptych.gpu.lower.watching.bulk import LAND, TAKE
from triptych.gpu.lower.watching.layout import watched_name

_OPERANDS = {"target": I64, "source": I64, "bytes": I32, "barrier": I64, "blocks": I32}


def bulk_name(copy: BulkCopy) -> str:
    """The symbol that kernels call."""
    return f"triptych.bulk.{copy.name}"


def bulk_type() -> ir.FunctionType:
    """The type of what kernels call."""
    return ir.FunctionType(VOID, [POINTER, POINTER, I32, *(vector(kind) for kind in _OPERANDS.values())])


def build_bulk(copy: BulkCopy, *, watched: bool = False) -> ir.Module:
    """The module with what kernels call, and what performs one thread's copy."""
    name = watched_name(bulk_name(copy)) if watched else bulk_name(copy)
    module = ir.Module(name=name)
    perform = f"{name}.perform"
    (_WatchedPerformance if watched else _Performance)(copy, module, perform)
    e = Emitter(ir.Function(module, bulk_type(), name))
    context, site, mask, *operands = e.function.args
    places = {name: e.variable(v.type, v) for name, v in zip(_OPERANDS, operands, strict=True)}
    request = e.variable(ir.ArrayType(I64, AsyncCopy.size() // 8))
    with e.each_lane(mask) as lane:
        e.b.store(lane, e.field(AsyncCopy, request, "lane"))
        for name, kind in _OPERANDS.items():
            there = e.offset(places[name], e.b.mul(lane, constant(kind.width // 8)))
            value = e.b.load(there, typ=kind)
            e.b.store(value if kind == I64 else e.b.zext(value, I64), e.field(AsyncCopy, request, name))
        e.intrinsic(perform, VOID, [context, site, request])
    e.b.ret_void()
    return module


class _Performance:
    """Emits perform(context, site, copy): carries an `AsyncCopy` out, unless that is a fault."""

    complete = COMPLETE

    def __init__(self, copy: BulkCopy, module: ir.Module, name: str) -> None:
        self.copy = copy
        self.e = e = start_function(module, name, VOID, [POINTER, POINTER, POINTER])
        self.context, site, request = e.function.args
        self.sites = {"source": site, "target": e.offset(site, Site.size())}
        given = {name: e.load_field(AsyncCopy, request, name) for name in AsyncCopy.names()}
        self.lane, self.size = given["lane"], given["bytes"]
        self._check_units(given)
        with e.when(e.b.icmp_unsigned("!=", self.size, constant(0)), likely=True):
            self.take(given)
            source = self._find("source", copy.source, given["source"])
            with self._each_block(given) as (target, barrier):
                self.land(target, barrier)
                self._move(self._find("target", copy.target, target), source)
        if copy.signals:
            with self._each_block(given) as (_, barrier):
                e.intrinsic(self.complete, VOID, [self.context, self.sites["target"], self.lane, barrier, self.size])
        e.b.ret_void()

    def take(self, given: dict[str, ir.Value]) -> None:
        """Called before the source is read."""

    def land(self, target: ir.Value, barrier: ir.Value) -> None:
        """Called before the target in a block is written."""

    # Faults -----------------------------------------------------------------------------------------------------

    def _refuse(self, kind: FaultKind | ir.Value, wrong: ir.Value, end: str, address: ir.Value) -> None:
        """Returns where something is wrong at an end of the copy, which is recorded."""
        with self.e.when(wrong, likely=False):
            where = {"lane": self.lane, "site": self.sites[end], "address": address, "size": self.size}
            record_fault(self.e, self.context, kind, **where)
            self.e.b.ret_void()

    def _check_units(self, given: dict[str, ir.Value]) -> None:
        def is_odd(value: ir.Value) -> ir.Value:
            return self.e.b.icmp_unsigned("!=", self.e.b.and_(value, constant(UNIT_BYTES - 1)), constant(0))

        self._refuse(FaultKind.BULK_SIZE, is_odd(self.size), "source", given["source"])
        for end in ("source", "target"):
            self._refuse(FaultKind.BULK_ALIGNMENT, is_odd(given[end]), end, given[end])

    # Places -----------------------------------------------------------------------------------------------------

    @contextmanager
    def _each_block(self, given: dict[str, ir.Value]) -> Generator[tuple[ir.Value, ir.Value]]:
        """Runs for each block that the copy goes to; gives the target there, and the mbarrier that is told."""
        if not self.copy.multicast:
            yield given["target"], given["barrier"]
            return
        with self.e.each_lane(self.e.b.trunc(given["blocks"], I32)) as rank:
            named = self.e.b.shl(self.e.b.add(rank, constant(1)), constant(RANK_SHIFT))
            low = constant((1 << RANK_SHIFT) - 1)
            target, barrier = (self.e.b.or_(self.e.b.and_(given[n], low), named) for n in ("target", "barrier"))
            yield target, barrier

    def _find(self, end: str, space: Space, address: ir.Value) -> ir.Value:
        """The host's place of an end of the copy, an i64, whose bytes are counted; returns where there is a fault."""
        e, site = self.e, self.sites[end]
        if space is GLOBAL:
            write = constant(1 if end == "target" else 0)
            kind = e.intrinsic(RESOLVE, I64, [self.context, site, address, self.size, write])
        else:
            kind = e.intrinsic(LOCATE, I64, [self.context, site, address, self.size])
            if end == "source":  # which must be of the block itself
                named = e.b.icmp_unsigned("!=", e.b.lshr(address, constant(RANK_SHIFT)), constant(0))
                kind = e.b.select(named, constant(FaultKind.SHARED_BOUNDS), kind)
        self._refuse(kind, e.b.icmp_unsigned("!=", kind, constant(0)), end, address)
        e.add_field(Site, site, "requests", constant(1))
        e.add_field(Site, site, "bytes", self.size)
        delta = e.load_field(Site, site, "delta")
        if space is ASYNCHRONOUS:
            return delta
        self._count_sectors(site, address)
        return e.b.add(address, delta)

    def _pieces(self, address: ir.Value, shift: int) -> tuple[ir.Value, ir.Value]:
        """The number of the first piece of memory of 2^shift bytes that the copy touches, and how many those are."""
        b = self.e.b
        first = b.lshr(address, constant(shift))
        last = b.lshr(b.sub(b.add(address, self.size), constant(1)), constant(shift))
        return first, b.add(b.sub(last, first), constant(1))

    def _count_sectors(self, site: ir.Value, address: ir.Value) -> None:
        _, sectors = self._pieces(address, SECTOR_SHIFT)
        self.e.add_field(Site, site, "sectors", sectors)
        first, pairs = self._pieces(address, PAIR_SHIFT)
        touched = self.e.load_field(Site, site, "touched")
        with self.e.counted(pairs) as i:
            mark_pairs(self.e, self.e.b.add(self.e.b.add(touched, first), i))

    # Bytes ------------------------------------------------------------------------------------------------------

    def _move(self, target: ir.Value, source: ir.Value) -> None:
        """Copies, or combines, the bytes at host places."""
        e, kind = self.e, self.copy.type
        if kind is None:
            places = [e.b.inttoptr(place, POINTER) for place in (target, source)]
            e.intrinsic("llvm.memmove.p0.p0.i64", VOID, [*places, self.size, ir.Constant(I1, 0)])
            return
        access = atomic_access(self.copy.operation, self.copy.target.helper, kind, 1)
        flushes = self.copy.target.flushes_sums
        with e.counted(e.b.udiv(self.size, constant(kind.bytes))) as i:
            offset = e.b.mul(i, constant(kind.bytes))
            there, here = (e.b.inttoptr(e.b.add(place, offset), POINTER) for place in (target, source))
            update_element(e, access, there, [e.b.load(here, typ=access.element)], _no_refusal, flushes=flushes)


class _WatchedPerformance(_Performance):
    """The same for kernels that asynccheck looks at."""

    complete = watched_name(COMPLETE)

    def take(self, given: dict[str, ir.Value]) -> None:
        """See `_Performance`."""
        if self.copy.source is ASYNCHRONOUS:
            source, signals = given["source"], constant(int(self.copy.signals))
            request = [self.context, self.sites["source"], self.lane, source, self.size, signals, given["barrier"]]
            self.e.intrinsic(TAKE, VOID, request)

    def land(self, target: ir.Value, barrier: ir.Value) -> None:
        """See `_Performance`."""
        if self.copy.target is ASYNCHRONOUS:
            overlaps = constant(int(self.copy.type is not None))
            request = [self.context, self.sites["target"], self.lane, target, self.size, barrier, overlaps]
            self.e.intrinsic(LAND, VOID, request)


def _no_refusal(kind: ir.Value, element: ir.Value) -> None:
    raise AssertionError("a reduction refuses no element")
