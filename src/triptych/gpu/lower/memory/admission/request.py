"""A warp's request as generated code is given it, and what all spaces do with one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import IntEnum

from llvmlite import ir

from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.isa.spaces import Space
from triptych.gpu.lower.primitives.emitter import I1, I32, I64, POINTER, Emitter, constant, lanes, number, vector
from triptych.gpu.lower.records import FaultKind, Site
from triptych.gpu.lower.scheduling.services import record_fault

ADMIT_TYPE = ir.FunctionType(I64, [POINTER, POINTER, I32, POINTER, I64, I64])
"""(context, site, mask, places, size, write) -> lanes | pattern << 32; at least one lane takes part."""


class Pattern(IntEnum):
    """How the places of the lanes that take part lie."""

    SCATTERED = 0
    CONTIGUOUS = 1
    """Lane i's is the i-th behind one place, and no lane between two that take part is missing."""
    BROADCAST = 2
    """All are one place."""


def admit_name(space: Space) -> str:
    """The symbol of a space's function."""
    return f"triptych.admit.{space}"


class Request:
    """The function's arguments, and what follows from them."""

    def __init__(self, function: ir.Function, space: Space) -> None:
        """Begins the function."""
        self.e = e = Emitter(function)
        self.space = space
        self.context, self.site, self.mask, self.places, self.size, self.write = function.args
        self.addresses = e.b.load(self.places, align=8, typ=vector(I64))
        self.first_lane = e.count_trailing_zeros(self.mask)
        above = e.intrinsic("llvm.ctlz.i32", I32, [self.mask, ir.Constant(I1, 0)])
        self.last_lane = e.b.sub(ir.Constant(I32, WARP_SIZE - 1), above)
        self.first_address, self.last_address = (
            e.b.load(self.place_of(e.b.zext(lane, I64)), typ=I64) for lane in (self.first_lane, self.last_lane)
        )
        self.inactive = e.b.not_(e.from_bits(self.mask))
        self.active_lanes = e.b.zext(e.count_ones(self.mask), I64)

    def place_of(self, lane: ir.Value) -> ir.Value:
        """Where a lane's address stands; `lane` is an i64."""
        return self.e.offset(self.places, self.e.b.shl(lane, constant(3)))


class Admission(ABC):
    """How a space admits a request."""

    def __init__(self, request: Request) -> None:
        """Emits into the request's function."""
        self.request = request
        self.e, self.b = request.e, request.e.b

    @abstractmethod
    def build(self) -> None:
        """Emits all of it."""


class PlainAdmission(Admission):
    """That of a space which is no choice of others."""

    # What is asked of a request ---------------------------------------------------------------------------------

    def is_full(self) -> ir.Value:
        """Whether all 32 lanes take part."""
        return self.b.icmp_unsigned("==", self.request.mask, ir.Constant(I32, -1))

    def admit_runs(self) -> None:
        """Emits `admit_run` for each pattern, where all lanes lie as it says."""
        b, r = self.b, self.request
        lanes_apart = b.zext(b.sub(r.last_lane, r.first_lane), I64)
        for pattern, step in ((Pattern.CONTIGUOUS, r.size), (Pattern.BROADCAST, constant(0))):
            apart = b.mul(lanes_apart, step)
            # The ends tell at little cost that most of the other requests lie otherwise.
            with (
                self.e.when(b.icmp_unsigned("==", b.sub(r.last_address, r.first_address), apart)),
                self.e.when(b.and_(self._lie_apart(step), self.is_aligned(r.first_address))),
            ):
                self.admit_run(pattern, b.add(apart, r.size))

    def _lie_apart(self, step: ir.Value) -> ir.Value:
        """Whether each lane's address is `step` bytes behind that of the lane before, which takes part too."""
        b, r = self.b, self.request
        # What is multiplied and what comes of it is small, but before the first lane, which takes no part.
        steps = b.mul(self.e.splat(b.trunc(step, I32)), b.sub(lanes(I32), self.e.splat(r.first_lane)))
        behind = b.zext(steps, vector(I64))
        same = b.icmp_unsigned("==", r.addresses, b.add(self.e.splat(r.first_address), behind))
        together = self.e.all_lanes(b.or_(same, r.inactive))
        run = b.lshr(r.mask, r.first_lane)
        gapless = b.icmp_unsigned("==", b.and_(run, b.add(run, ir.Constant(I32, 1))), ir.Constant(I32, 0))
        return b.and_(together, b.or_(gapless, b.icmp_unsigned("==", step, constant(0))))

    def is_aligned(self, address: ir.Value) -> ir.Value:
        """Whether an address is a multiple of the size."""
        low = self.b.and_(address, self.b.sub(self.request.size, constant(1)))
        return self.b.icmp_unsigned("==", low, constant(0))

    def all_sound(self, low: ir.Value, high: ir.Value) -> ir.Value:
        """Whether all 32 lanes take part, and reach for aligned places inside [low, high)."""
        b, wide = self.b, vector(I64)
        room = b.sub(b.sub(high, low), self.request.size)
        offsets = b.sub(self.request.addresses, self.e.splat(low))
        inside = b.icmp_unsigned("<=", offsets, self.e.splat(room))
        odd = b.and_(self.request.addresses, self.e.splat(b.sub(self.request.size, constant(1))))
        sound = b.and_(inside, b.icmp_unsigned("==", odd, number(wide, 0)))
        some_room = b.icmp_signed(">=", room, constant(0))
        return b.and_(b.and_(self.is_full(), some_room), self.e.all_lanes(sound))

    # What is done with it ---------------------------------------------------------------------------------------

    def fault(self, kind: ir.Value, lane: ir.Value, address: ir.Value) -> None:
        """Records that a lane may not have what it reaches for."""
        site, size = self.request.site, self.request.size
        record_fault(self.e, self.request.context, kind, lane=lane, site=site, address=address, size=size)

    def count_request(self, amount: ir.Value, counter: str = "sectors") -> None:
        """Counts the request, and its `amount` of sectors or wavefronts."""
        self.e.add_field(Site, self.request.site, "requests", constant(1))
        self.e.add_field(Site, self.request.site, counter, amount)
        self.e.add_field(Site, self.request.site, "bytes", self.b.mul(self.request.active_lanes, self.request.size))

    def set_places(self, hosts: ir.Value) -> None:
        """The host's places of all lanes at once, a <32 x i64>."""
        self.b.store(hosts, self.request.places, align=8)

    def leave(self, pattern: Pattern) -> None:
        """All lanes may; nothing more is emitted on this way."""
        self.b.ret(self.b.or_(self.b.zext(self.request.mask, I64), constant(pattern << 32)))
        self.b.position_at_end(self.e.block("unreached"))

    def lane_by_lane(self) -> None:
        """Each lane for itself; ends the function."""
        admitted = self.e.variable(I64, constant(0))
        with self.e.each_lane(self.request.mask) as lane:
            place = self.request.place_of(lane)
            address = self.b.load(place, typ=I64)
            misaligned = self.b.not_(self.is_aligned(address))
            kind = self.b.select(misaligned, constant(FaultKind.MISALIGNED), self.find(lane, address))
            fine = self.b.icmp_unsigned("==", kind, constant(0))
            with self.b.if_else(fine, likely=True) as (sound, bad):
                with sound:
                    self.b.store(self.host_of(lane, address), place)
                    self.count_lane(lane, address)
                with bad:
                    self.fault(kind, lane, address)
            self.b.store(self.b.or_(self.e.get(admitted, I64), self.b.shl(self.b.zext(fine, I64), lane)), admitted)
        self.close_count()
        self.b.ret(self.e.get(admitted, I64))

    # What spaces differ in ------------------------------------------------------------------------

    def admit_run(self, pattern: Pattern, size: ir.Value) -> None:
        """Admits a request whose lanes lie in `size` bytes from the first one's address on, if all of them may."""

    @abstractmethod
    def find(self, lane: ir.Value, address: ir.Value) -> ir.Value:
        """The fault's kind, 0 where there is none."""

    @abstractmethod
    def host_of(self, lane: ir.Value, address: ir.Value) -> ir.Value:
        """The host's place of an address that was found."""

    def count_lane(self, lane: ir.Value, address: ir.Value) -> None:
        """Counts what a lane's access adds to the request."""

    def close_count(self) -> None:
        """Counts the request."""
        self.count_request(constant(1))
