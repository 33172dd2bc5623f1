"""Spaces that are one piece of host memory: the block's shared memory, a lane's local memory."""

from __future__ import annotations

from llvmlite import ir

from triptych.gpu.hardware import BANK_BYTES, WARP_SIZE
from triptych.gpu.lower.memory.admission.request import Pattern, PlainAdmission, Request
from triptych.gpu.lower.memory.counts import BankCount, count_even_wavefronts
from triptych.gpu.lower.memory.interleaving import LocalMemory
from triptych.gpu.lower.memory.windows import WINDOWS
from triptych.gpu.lower.primitives.emitter import I32, constant, lanes, vector
from triptych.gpu.lower.records import Context, Site


class _Windowed(PlainAdmission):
    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self.window = WINDOWS[request.space]
        self.limit = self._field(self.window.size)
        self.base = self._field(self.window.base)

    def _field(self, name: str) -> ir.Value:
        return self.e.load_field(Context, self.request.context, name)

    def find(self, lane: ir.Value, address: ir.Value) -> ir.Value:
        """See `PlainAdmission`."""
        return self._beyond(address, self.request.size)

    def _beyond(self, address: ir.Value, size: ir.Value) -> ir.Value:
        """The fault's kind of an access to `size` bytes, 0 where there is none."""
        end = self.b.add(address, size)
        no_wrap = self.b.icmp_unsigned("<=", address, end)
        inside = self.b.and_(no_wrap, self.b.icmp_unsigned("<=", end, self.limit))
        return self.b.select(inside, constant(0), constant(self.window.fault))


class AdmitShared(_Windowed):
    """The block's shared memory, in banks."""

    def build(self) -> None:
        """See `PlainAdmission`."""
        self.admit_runs()
        self._evenly_spaced()
        self.banks = BankCount(self.e, self.request.write, self.request.size, self.request.mask, self.request.addresses)
        self.lane_by_lane()

    def admit_run(self, pattern: Pattern, size: ir.Value) -> None:
        """Up to 32 neighbouring words, or one, are one wavefront."""
        b = self.b
        in_words = b.icmp_unsigned("<=", self.request.size, constant(BANK_BYTES))
        inside = b.icmp_unsigned("==", self._beyond(self.request.first_address, size), constant(0))
        with self.e.when(b.and_(in_words, inside)):
            self.count_request(constant(1))
            self.set_places(b.add(self.request.addresses, self.e.splat(self.base)))
            self.leave(pattern)

    def _evenly_spaced(self) -> None:
        """A full warp whose lanes reach for words at equal distances: a column of a matrix, say.

        Addresses have 32 bits: between two ends that are inside no lane is outside.
        """
        b, r = self.b, self.request
        step = b.sub(b.extract_element(r.addresses, ir.Constant(I32, 1)), r.first_address)
        odd = b.and_(b.or_(step, r.first_address), constant(BANK_BYTES - 1))
        in_words = b.and_(b.icmp_unsigned("==", odd, constant(0)), b.icmp_unsigned("<=", r.size, constant(BANK_BYTES)))
        apart = b.mul(step, constant(WARP_SIZE - 1))
        ends = b.icmp_unsigned("==", b.sub(r.last_address, r.first_address), apart)
        beyond = b.or_(self._beyond(r.first_address, r.size), self._beyond(r.last_address, r.size))
        inside = b.icmp_unsigned("==", beyond, constant(0))
        with self.e.when(b.and_(b.and_(self.is_full(), in_words), b.and_(ends, inside))):
            kind = vector(I32)
            first, apart = (self.e.splat(b.trunc(value, I32)) for value in (r.first_address, step))
            expected = b.add(first, b.mul(apart, lanes(I32)))
            with self.e.when(self.e.all_lanes(b.icmp_unsigned("==", b.trunc(r.addresses, kind), expected))):
                wavefronts = count_even_wavefronts(self.e, step)
                self.count_request(wavefronts)
                self.e.add_field(Site, r.site, "conflicts", b.sub(wavefronts, constant(1)))
                self.set_places(b.add(r.addresses, self.e.splat(self.base)))
                self.leave(Pattern.SCATTERED)

    def host_of(self, lane: ir.Value, address: ir.Value) -> ir.Value:
        """See `PlainAdmission`."""
        return self.b.add(self.base, address)

    def count_lane(self, lane: ir.Value, address: ir.Value) -> None:
        """See `PlainAdmission`."""
        self.banks.add(lane, address)

    def close_count(self) -> None:
        """See `PlainAdmission`."""
        wavefronts, conflicts = self.banks.totals()
        self.count_request(wavefronts)
        self.e.add_field(Site, self.request.site, "conflicts", conflicts)


class AdmitLocal(_Windowed):
    """Each lane's own memory. A place is that of the first byte; `interleaving.py` says where the others are."""

    def build(self) -> None:
        """See `PlainAdmission`."""
        self.memory = LocalMemory(self.e, self.request.context)
        with self.e.when(self.all_sound(constant(0), self.limit)):
            self.set_places(self.memory.places(self.request.addresses))
            self.close_count()
            self.leave(Pattern.SCATTERED)
        self.lane_by_lane()

    def host_of(self, lane: ir.Value, address: ir.Value) -> ir.Value:
        """See `PlainAdmission`."""
        return self.memory.place(lane, address)
