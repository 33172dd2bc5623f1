"""Any mask and any addresses: by halves, or else, once admitted, all lanes at once where that goes, or lane by lane."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial

from llvmlite import ir

from triptych.gpu.hardware import LOCAL_WORD_BYTES, WARP_SIZE
from triptych.gpu.isa.machine import PAIRED_CAS
from triptych.gpu.isa.spaces import LOCAL, Space
from triptych.gpu.lower.memory.access import HelperAccess
from triptych.gpu.lower.memory.admission import Pattern, admission_name
from triptych.gpu.lower.memory.admission.generic import part_lanes
from triptych.gpu.lower.memory.atomics import swap_pair, update_element
from triptych.gpu.lower.memory.halves import serve_halves
from triptych.gpu.lower.memory.interleaving import parts_of
from triptych.gpu.lower.memory.moves import interleave, read_contiguous, return_all
from triptych.gpu.lower.primitives.emitter import I32, I64, POINTER, VOID, Emitter, constant, number, vector
from triptych.gpu.lower.records import FaultKind, Site
from triptych.gpu.lower.scheduling.services import record_fault
from triptych.gpu.lower.watching.mbarriers import emit_change

_MASKED = (4, 8)
"""Bytes of an element for which processors have masked loads and stores, and loads of scattered elements."""


def build_general(access: HelperAccess, function: ir.Function) -> None:
    """Emits the function that takes any mask and any addresses."""
    e = Emitter(function)
    if not access.is_atomic:
        serve_halves(e, access, function.args)
    element = vector(access.element)
    outputs = [e.variable(element, number(element, 0)) for _ in range(access.results)]
    with e.when(e.b.icmp_unsigned("!=", function.args[2], ir.Constant(I32, 0))):
        _MOVES.get(access.kind, _Atomic)(e, access, outputs).build()
    return_all(e.b, access, [e.get(place, element) for place in outputs])


class _Access(ABC):
    """An access of at least one lane, whose places of the host are in memory once it is admitted."""

    def __init__(self, e: Emitter, access: HelperAccess, outputs: Sequence[ir.Value]) -> None:
        self.e, self.b, self.access, self.outputs = e, e.b, access, outputs
        self.context, self.site, self.mask, addresses, *self.values = e.function.args
        wide = vector(I64)
        self.addresses = addresses if addresses.type == wide else self.b.zext(addresses, wide)
        self.places = e.variable(wide, self.addresses)

    def build(self) -> None:
        """Emits the access."""
        size, write = constant(self.access.bytes), constant(0 if self.access.kind == "load" else 1)
        arguments = [self.context, self.site, self.mask, self.places, size, write]
        given = self.e.intrinsic(admission_name(self.access.space, self.access.bytes), I64, arguments)
        self.move(self.b.trunc(given, I32), self.b.lshr(given, constant(32)))

    @abstractmethod
    def move(self, admitted: ir.Value, pattern: ir.Value) -> None:
        """Emits what follows admission, for the admitted lanes, an i32; `pattern` is a `Pattern`, an i64."""

    def host(self, lane: ir.Value) -> ir.Value:
        """A lane's place of the host, an i64."""
        return self.b.load(self.e.offset(self.places, self.b.shl(lane, constant(3))), typ=I64)

    def pointer(self, host: ir.Value, position: int = 0) -> ir.Value:
        """To an element of a lane's."""
        return self.b.inttoptr(self.b.add(host, constant(position * self.access.size)), POINTER)


class _Move(_Access):
    """A load or a store."""

    def __init__(self, e: Emitter, access: HelperAccess, outputs: Sequence[ir.Value]) -> None:
        super().__init__(e, access, outputs)
        self.has_masks = access.count == 1 and access.size in _MASKED
        self.lane_type = ir.IntType(8 * access.bytes)
        self.element = vector(access.element)
        self.whole = vector(access.element, WARP_SIZE * access.count)

    def move(self, admitted: ir.Value, pattern: ir.Value) -> None:
        if LOCAL not in self.access.space.reaches or self.access.bytes <= LOCAL_WORD_BYTES:
            self.move_together(admitted, pattern)
            return
        apart = dict(part_lanes(self.e, self.access.space, admitted, self.addresses))[LOCAL]
        self.move_together(self.b.and_(admitted, self.b.not_(apart)), pattern)
        with self.e.when(self.b.icmp_unsigned("!=", apart, ir.Constant(I32, 0)), likely=False):
            self._move_apart(apart)

    @abstractmethod
    def move_together(self, admitted: ir.Value, pattern: ir.Value) -> None:
        """`move`, of lanes whose bytes lie one behind the other."""

    def _move_apart(self, lanes: ir.Value) -> None:
        """Lanes that reach for several words of local memory, which lie apart."""
        homes = self.outputs or [self.e.variable(value.type, value) for value in self.values]
        size, b = self.access.size, self.b
        part = min(size, LOCAL_WORD_BYTES)
        with self.e.each_lane(lanes) as lane:
            host, start = self.host(lane), b.mul(lane, constant(size))
            for offset, distance in parts_of(part, self.access.bytes):
                there = b.inttoptr(b.add(host, constant(distance)), POINTER)
                here = self.e.offset(homes[offset // size], b.add(start, constant(offset % size)))
                source, target = (there, here) if self.access.kind == "load" else (here, there)
                b.store(b.load(source, align=1, typ=ir.IntType(8 * part)), target, align=1)

    def is_run(self, pattern: ir.Value) -> ir.Value:
        """Whether one instruction moves all."""
        together = self.b.icmp_unsigned("==", pattern, constant(Pattern.CONTIGUOUS))
        full = self.b.icmp_unsigned("==", self.mask, ir.Constant(I32, -1))
        return together if self.has_masks else self.b.and_(together, full)

    def run_start(self) -> ir.Value:
        """Lane 0's place of the host in a contiguous request, whether that lane takes part or not."""
        first = self.b.zext(self.e.count_trailing_zeros(self.mask), I64)
        return self.pointer(self.b.sub(self.host(first), self.b.mul(first, constant(self.access.bytes))))

    def copy_lanes(self, lanes: ir.Value, staged: ir.Value) -> None:
        """Each lane's bytes between its place and `staged`, where those of all lanes lie one behind the other."""
        with self.e.each_lane(lanes) as lane:
            there = self.pointer(self.host(lane))
            here = self.e.offset(staged, self.b.mul(lane, constant(self.access.bytes)))
            source, target = (there, here) if self.access.kind == "load" else (here, there)
            self.b.store(self.b.load(source, align=1, typ=self.lane_type), target, align=1)

    def masked(self, name: str, result: ir.Type, arguments: Sequence[ir.Value]) -> ir.Value:
        """Calls one of LLVM's masked loads and stores."""
        return self.e.intrinsic(f"llvm.masked.{name}", result, arguments)


class _Load(_Move):
    def move_together(self, admitted: ir.Value, pattern: ir.Value) -> None:
        b, done = self.b, self.e.block("done")
        with self.e.when(b.icmp_unsigned("==", pattern, constant(Pattern.BROADCAST))):
            host = self.host(b.zext(self.e.count_trailing_zeros(self.mask), I64))
            for position, output in enumerate(self.outputs):
                b.store(self.e.splat(b.load(self.pointer(host, position), align=1, typ=self.access.element)), output)
            b.branch(done)
            b.position_at_end(self.e.block("unreached"))
        if self.has_masks:
            self._masked(admitted, pattern)
        else:
            self._staged(admitted, pattern)
        b.branch(done)
        b.position_at_end(done)

    def _masked(self, admitted: ir.Value, pattern: ir.Value) -> None:
        b, align, none = self.b, ir.Constant(I32, 1), number(self.element, 0)
        mask = self.e.from_bits(admitted)
        suffix = f"v{WARP_SIZE}i{8 * self.access.size}"
        with b.if_else(self.is_run(pattern)) as (together, scattered):
            with together:
                value = self.masked(f"load.{suffix}.p0", self.element, [self.run_start(), align, mask, none])
                b.store(value, self.outputs[0])
            with scattered:
                staged = self.e.variable(self.whole, number(self.whole, 0))
                self.copy_lanes(admitted, staged)
                b.store(b.load(staged, typ=self.whole), self.outputs[0])

    def _staged(self, admitted: ir.Value, pattern: ir.Value) -> None:
        b = self.b
        staged = self.e.variable(self.whole)
        source = self.e.variable(POINTER, staged)
        with b.if_else(self.is_run(pattern)) as (together, scattered):
            with together:
                b.store(self.run_start(), source)
            with scattered:
                b.store(number(self.whole, 0), staged)
                self.copy_lanes(admitted, staged)
        values = read_contiguous(b, self.access, self.e.get(source, POINTER))
        for value, output in zip(values, self.outputs, strict=True):
            b.store(value, output)


class _Store(_Move):
    """Of lanes that reach for one place the last one's value stays."""

    def move_together(self, admitted: ir.Value, pattern: ir.Value) -> None:
        b = self.b
        whole = interleave(b, self.values)
        with b.if_else(self.is_run(pattern)) as (together, scattered):
            with together:
                if self.has_masks:
                    arguments = [whole, self.run_start(), ir.Constant(I32, 1), self.e.from_bits(admitted)]
                    self.masked(f"store.v{WARP_SIZE}i{8 * self.access.size}.p0", VOID, arguments)
                else:
                    b.store(whole, self.run_start(), align=1)
            with scattered:
                self.copy_lanes(admitted, self.e.variable(self.whole, whole))


class _Atomic(_Access):
    def move(self, admitted: ir.Value, pattern: ir.Value) -> None:
        inputs = [self.e.variable(value.type, value) for value in self.values]
        space = self.access.space
        # What an operation does, and how its faults are told, is the space's that a lane reaches for.
        parts = part_lanes(self.e, space, admitted, self.addresses) if space.reaches else [(space, admitted)]
        for position, (part, lanes) in enumerate(parts):
            with self.e.each_lane(lanes) as lane:
                if part is LOCAL:
                    self._refuse(lane, part, position, constant(FaultKind.ATOMIC_IN_LOCAL), constant(0))
                else:
                    self._update(lane, inputs, part, position)

    def _update(self, lane: ir.Value, inputs: Sequence[ir.Value], space: Space, site: int) -> None:
        b, access = self.b, self.access
        host, index = self.host(lane), b.mul(lane, constant(access.size))
        operands = [b.load(self.e.offset(place, index), typ=access.element) for place in inputs]
        places = [self.pointer(host, position) for position in range(access.results)]
        if access.kind == PAIRED_CAS:
            found = swap_pair(self.e, access, places, operands)
        else:
            refuse = partial(self._refuse, lane, space, site)
            own = [operands] if access.results == 1 else [[operand] for operand in operands]
            found = [
                update_element(self.e, access, place, given, refuse, flushes=space.flushes_sums)
                for place, given in zip(places, own, strict=True)
            ]
            if access.watched:
                emit_change(self.e, self.context, access.kind, host, found[0])
        for old, output in zip(found, self.outputs, strict=True):
            b.store(old, self.e.offset(output, index))

    def _refuse(self, lane: ir.Value, space: Space, site: int, kind: ir.Value, element: ir.Value) -> None:
        """What an operation may not do with the element that it found is a fault; a `kind` of 0 is none."""
        with self.e.when(self.b.icmp_unsigned("!=", kind, constant(0)), likely=False):
            address = self.b.sub(self.b.extract_element(self.addresses, lane), constant(space.window if site else 0))
            where = {"lane": lane, "address": address, "size": constant(self.access.bytes)}
            there = self.e.offset(self.site, site * Site.size())
            record_fault(self.e, self.context, kind, detail=element, site=there, **where)


_MOVES: Mapping[str, type[_Access]] = {"load": _Load, "store": _Store}
