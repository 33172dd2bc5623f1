"""Global memory: storages in one address space, counted in sectors, whose touched pairs are marked."""

from __future__ import annotations

from llvmlite import ir

from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.lower.memory.access import PAIR_SHIFT, SECTOR_SHIFT
from triptych.gpu.lower.memory.admission.request import Pattern, PlainAdmission, Request
from triptych.gpu.lower.memory.counts import SectorCount, count_sectors, mark_pairs
from triptych.gpu.lower.primitives.emitter import I64, constant
from triptych.gpu.lower.records import Site
from triptych.gpu.lower.scheduling.services import RESOLVE


class AdmitGlobal(PlainAdmission):
    """By runs where the lanes' places allow it, all at once inside the site's last storage, else lane by lane."""

    def __init__(self, request: Request) -> None:
        """See `PlainAdmission`."""
        super().__init__(request)
        self.sectors = SectorCount(self.e)

    def build(self) -> None:
        """See `PlainAdmission`."""
        self.admit_runs()
        self._spread()
        self.lane_by_lane()

    def _field(self, name: str) -> ir.Value:
        return self.e.load_field(Site, self.request.site, name)

    def _matches(self, low: ir.Value, high: ir.Value) -> ir.Value:
        """Whether [low, high) lies in the site's last storage."""
        # Signed: no storage lies in the upper half, where `high` could wrap around.
        above = self.b.icmp_signed(">=", low, self._field("low"))
        return self.b.and_(above, self.b.icmp_unsigned("<=", high, self._field("high")))

    def _missing(self, low: ir.Value, size: ir.Value) -> ir.Value:
        """Makes the storage that holds the bytes the site's last one; the fault's kind, 0 where there is one."""
        kind = self.e.variable(I64, constant(0))
        with self.e.when(self.b.not_(self._matches(low, self.b.add(low, size))), likely=False):
            arguments = [self.request.context, self.request.site, low, size, self.request.write]
            self.b.store(self.e.intrinsic(RESOLVE, I64, arguments), kind)
        return self.e.get(kind, I64)

    def admit_run(self, pattern: Pattern, size: ir.Value) -> None:
        """See `PlainAdmission`."""
        b, low = self.b, self.request.first_address
        with self.e.when(b.icmp_unsigned("==", self._missing(low, size), constant(0))):
            last = b.add(low, b.sub(size, constant(1)))
            sector, pair = constant(SECTOR_SHIFT), constant(PAIR_SHIFT)
            self.count_request(b.add(b.sub(b.lshr(last, sector), b.lshr(low, sector)), constant(1)))
            pairs = b.add(b.sub(b.lshr(last, pair), b.lshr(low, pair)), constant(1))
            first = b.add(self._field("touched"), b.lshr(low, pair))
            with self.e.counted(pairs) as i:
                mark_pairs(self.e, b.add(first, i))
            self.set_places(b.add(self.request.addresses, self.e.splat(self._field("delta"))))
            self.leave(pattern)

    def _spread(self) -> None:
        """A full warp at any places of the site's last storage."""
        with self.e.when(self.all_sound(self._field("low"), self._field("high"))):
            touched = self._field("touched")
            with self.e.counted(constant(WARP_SIZE)) as lane:
                address = self.b.load(self.request.place_of(lane), typ=I64)
                mark_pairs(self.e, self.b.add(touched, self.b.lshr(address, constant(PAIR_SHIFT))))
            self.set_places(self.b.add(self.request.addresses, self.e.splat(self._field("delta"))))
            self.count_request(count_sectors(self.e, self.request.addresses))
            self.leave(Pattern.SCATTERED)

    def find(self, lane: ir.Value, address: ir.Value) -> ir.Value:
        """See `PlainAdmission`."""
        return self._missing(address, self.request.size)

    def host_of(self, lane: ir.Value, address: ir.Value) -> ir.Value:
        """See `PlainAdmission`."""
        return self.b.add(address, self._field("delta"))

    def count_lane(self, lane: ir.Value, address: ir.Value) -> None:
        """See `PlainAdmission`."""
        self.sectors.add(lane, self.b.lshr(address, constant(SECTOR_SHIFT)))
        mark_pairs(self.e, self.b.add(self._field("touched"), self.b.lshr(address, constant(PAIR_SHIFT))))

    def close_count(self) -> None:
        """See `PlainAdmission`."""
        self.count_request(self.sectors.total())
