"""Requests in two halves, as thread blocks of 16 threads a row make them: each half at neighbouring elements or at one.

`serve(context, site, mask, addresses, bytes, run_wavefronts, single_wavefronts) -> {place, place, are_runs}` is a
function a space, for any access of `bytes` a lane. Where the warp is full, its lanes 0 to 15 reach for neighbouring
elements and the others too, or all lanes of a half for one element, aligned and inside the block's memory, or the
storage that the site hit last, the request is counted; the result are the host's places of the halves, and whether
elements are neighbours. Else the first place is null, and nothing has happened.

How many wavefronts the request is, of elements that are neighbours or are one, is known beforehand unless the halves
are served together: then it is 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from llvmlite import ir

from triptych.gpu.hardware import BANK_BYTES, BANKS, WARP_SIZE
from triptych.gpu.isa.spaces import GLOBAL, SHARED, Space
from triptych.gpu.lower.memory.access import PAIR_SHIFT, SECTOR_SHIFT, HelperAccess
from triptych.gpu.lower.memory.counts import mark_pairs, phases_of
from triptych.gpu.lower.memory.moves import move_broadcast, move_contiguous, return_all
from triptych.gpu.lower.memory.windows import WINDOWS
from triptych.gpu.lower.primitives.arranging import pick
from triptych.gpu.lower.primitives.emitter import I1, I32, I64, POINTER, Emitter, constant, vector
from triptych.gpu.lower.records import Context, Site

_HALF = WARP_SIZE // 2
_SERVED = ir.LiteralStructType([POINTER, POINTER, I1])
_NOWHERE = ir.Constant(POINTER, None)
_WORD_SHIFT = BANK_BYTES.bit_length() - 1
_BANKS_SHIFT = BANKS.bit_length() - 1


def halves_name(space: Space) -> str:
    """The symbol of a space's function."""
    return f"triptych.halves.{space}"


def build_halves(module: ir.Module, space: Space) -> None:
    """Emits a space's function, which is one of `HALVES`."""
    arguments = [POINTER, POINTER, I32, vector(ir.IntType(space.address_bits)), I64, I64, I64]
    HALVES[space](Emitter(ir.Function(module, ir.FunctionType(_SERVED, arguments), halves_name(space)))).build()


def serve_halves(e: Emitter, access: HelperAccess, arguments: Sequence[ir.Value]) -> None:
    """Emits the way of requests in halves, which returns; the others go on behind it.

    `arguments` are a helper's. Of a space that has no such way nothing is emitted.
    """
    b, phases = e.b, phases_of(access.kind, access.bytes)
    context, site, mask, addresses, *values = arguments
    served = next((space for space in HALVES if space in access.space.sites), None)
    if served is None or served.address_bits != access.space.address_bits:
        return
    known = phases.lanes < WARP_SIZE
    numbers = (access.bytes, phases.contiguous[0] * known, phases.broadcast * known)
    there = e.offset(site, access.space.sites.index(served) * Site.size())
    given = e.intrinsic(
        halves_name(served), _SERVED, [context, there, mask, addresses, *(constant(number) for number in numbers)]
    )
    first, second, are_runs = (b.extract_value(given, index) for index in range(3))
    with e.when(b.icmp_unsigned("!=", first, _NOWHERE)):
        with e.when(are_runs):
            return_all(b, access, move_contiguous(e, access, [first, second], values))
            b.position_at_end(e.block("unreached"))
        return_all(b, access, move_broadcast(e, access, [first, second], values))
        b.position_at_end(e.block("unreached"))


class _Halves(ABC):
    """The function of a space."""

    def __init__(self, e: Emitter) -> None:
        self.e, self.b = e, e.b
        self.context, self.site, self.mask, self.addresses, self.bytes, *self.wavefronts = e.function.args
        wide = [self.b.extract_element(self.addresses, ir.Constant(I32, lane)) for lane in (0, 1, _HALF)]
        first, following, second = (address if address.type == I64 else self.b.zext(address, I64) for address in wide)
        self.first, self.second, self.are_runs = first, second, self.b.icmp_unsigned("!=", first, following)
        one, runs = self.bytes, self.b.mul(self.bytes, constant(_HALF))
        self.size = self.b.select(self.are_runs, runs, one)
        """Bytes that a half reaches for."""

    def build(self) -> None:
        b, inside, nowhere = self.b, self.e.block("inside"), self.e.block("nowhere")
        b.cbranch(self._lie_so(), inside, nowhere)
        b.position_at_end(nowhere)
        b.ret(ir.Constant(_SERVED, [_NOWHERE, _NOWHERE, ir.Constant(I1, 0)]))
        b.position_at_end(inside)
        self.e.add_field(Site, self.site, "requests", constant(1))
        self.e.add_field(Site, self.site, "bytes", b.mul(self.bytes, constant(WARP_SIZE)))
        self.count()
        distance = self.distance()
        places = (b.inttoptr(b.add(start, distance), POINTER) for start in (self.first, self.second))
        result: ir.Value = ir.Constant(_SERVED, ir.Undefined)
        for index, value in enumerate((*places, self.are_runs)):
            result = b.insert_value(result, value, index)
        b.ret(result)

    def _lie_so(self) -> ir.Value:
        """Whether all lanes take part and lie by halves, aligned and where they may."""
        b, kind = self.b, self.addresses.type
        starts = pick(b, self.addresses, self.addresses, [lane // _HALF * _HALF for lane in range(WARP_SIZE)])
        step = b.trunc(b.select(self.are_runs, self.bytes, constant(0)), I32)
        behind = ir.Constant(vector(I32), [ir.Constant(I32, lane % _HALF) for lane in range(WARP_SIZE)])
        steps = b.mul(behind, self.e.splat(step))
        expected = b.add(starts, steps if kind.element == I32 else b.zext(steps, kind))
        together = self.e.all_lanes(b.icmp_unsigned("==", self.addresses, expected))
        odd = b.and_(b.or_(self.first, self.second), b.sub(self.bytes, constant(1)))
        aligned = b.icmp_unsigned("==", odd, constant(0))
        full = b.icmp_unsigned("==", self.mask, ir.Constant(I32, -1))
        inside = b.and_(self.has(self.first), self.has(self.second))
        return b.and_(b.and_(full, aligned), b.and_(inside, together))

    def ends(self, start: ir.Value, shift: int) -> tuple[ir.Value, ir.Value]:
        """The first and the last of the units that a half touches, of `1 << shift` bytes each."""
        b, units = self.b, constant(shift)
        return b.lshr(start, units), b.lshr(b.add(start, b.sub(self.size, constant(1))), units)

    @abstractmethod
    def has(self, start: ir.Value) -> ir.Value:
        """Whether a half from `start` on may be reached."""

    @abstractmethod
    def distance(self) -> ir.Value:
        """From an address to the host's."""

    @abstractmethod
    def count(self) -> None:
        """Counts what the request comes to in the hardware's units."""


class _GlobalHalves(_Halves):
    def _field(self, name: str) -> ir.Value:
        return self.e.load_field(Site, self.site, name)

    def has(self, start: ir.Value) -> ir.Value:
        # Signed: no storage lies in the upper half, where the end could wrap around.
        above = self.b.icmp_signed(">=", start, self._field("low"))
        return self.b.and_(above, self.b.icmp_unsigned("<=", self.b.add(start, self.size), self._field("high")))

    def distance(self) -> ir.Value:
        return self._field("delta")

    def count(self) -> None:
        """Sectors: those of both halves, less the ones that they share."""
        b, one = self.b, constant(1)
        (low, high), (low_2, high_2) = (self.ends(start, SECTOR_SHIFT) for start in (self.first, self.second))
        begin = self.e.intrinsic("llvm.smax.i64", I64, [low, low_2])
        end = self.e.intrinsic("llvm.smin.i64", I64, [high, high_2])
        both = self.e.intrinsic("llvm.smax.i64", I64, [b.add(b.sub(end, begin), one), constant(0)])
        each = b.add(b.add(b.sub(high, low), one), b.add(b.sub(high_2, low_2), one))
        self.e.add_field(Site, self.site, "sectors", b.sub(each, both))
        touched = self._field("touched")
        with self.e.counted(constant(2)) as half:
            start = b.select(b.trunc(half, I1), self.second, self.first)
            first, last = self.ends(start, PAIR_SHIFT)
            with self.e.counted(b.add(b.sub(last, first), one)) as i:
                mark_pairs(self.e, b.add(b.add(touched, first), i))


class _SharedHalves(_Halves):
    window = WINDOWS[SHARED]

    def has(self, start: ir.Value) -> ir.Value:
        limit = self.e.load_field(Context, self.context, self.window.size)
        return self.b.icmp_unsigned("<=", self.b.add(start, self.size), limit)

    def distance(self) -> ir.Value:
        return self.e.load_field(Context, self.context, self.window.base)

    def count(self) -> None:
        """What is known of wavefronts, where the halves are not served together; else one or two.

        No half has two words in one bank. Two halves have where the distance of two different words, one of each, is a
        multiple of the number of banks.
        """
        b, bank = self.b, constant(_BANKS_SHIFT)
        (low, high), (low_2, high_2) = (self.ends(start, _WORD_SHIFT) for start in (self.first, self.second))
        least, most = b.sub(low_2, high), b.sub(high_2, low)
        multiples = b.sub(b.ashr(most, bank), b.ashr(b.sub(least, constant(1)), bank))
        meet = b.and_(b.icmp_signed("<=", least, constant(0)), b.icmp_signed(">=", most, constant(0)))
        clashes = b.icmp_unsigned("!=", multiples, b.zext(meet, I64))
        told = b.select(self.are_runs, *self.wavefronts)
        known = b.icmp_unsigned("!=", told, constant(0))
        conflicts = b.select(known, constant(0), b.zext(clashes, I64))
        wavefronts = b.select(known, told, b.add(conflicts, constant(1)))
        self.e.add_field(Site, self.site, "sectors", wavefronts)
        self.e.add_field(Site, self.site, "conflicts", conflicts)


HALVES: Mapping[Space, type[_Halves]] = {GLOBAL: _GlobalHalves, SHARED: _SharedHalves}
"""How the spaces serve them that have one."""
