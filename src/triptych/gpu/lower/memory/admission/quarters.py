"""Shared memory for 16 bytes a lane: a quarter of the warp that reaches for all banks at once is served in one go."""

from __future__ import annotations

from llvmlite import ir

from triptych.gpu.hardware import BANK_BYTES, BANKS, WARP_SIZE
from triptych.gpu.lower.memory.admission.request import Pattern, admit_name
from triptych.gpu.lower.memory.admission.windowed import AdmitShared
from triptych.gpu.lower.primitives.emitter import I32, I64, constant, number, vector

QUARTER = WARP_SIZE // 4
BYTES = 16
"""Of a lane."""
_GROUPS = BANKS * BANK_BYTES // BYTES
"""Of four neighbouring banks, which hold a lane's bytes."""


class AdmitQuarters(AdmitShared):
    """Requests without a bank conflict are seen at once (`counts.phases_of`); the others are left to `AdmitShared`."""

    def build(self) -> None:
        """See `PlainAdmission`."""
        b, r = self.b, self.request
        # Loads whose even lanes have no neighbour are served by half warps.
        neighbours = b.and_(b.and_(r.mask, b.lshr(r.mask, ir.Constant(I32, 1))), ir.Constant(I32, 0x5555_5555))
        usual = b.icmp_unsigned("!=", neighbours, ir.Constant(I32, 0))
        with self.e.when(b.and_(self._all_inside(), usual)):
            reached = self._groups_reached()
            counts = [self.e.count_ones(groups) for groups in reached]
            apart = b.icmp_unsigned("==", _sum(b, counts), self.e.count_ones(r.mask))
            with self.e.when(apart):
                self.count_request(_sum(b, [b.zext(_is_any(b, groups), I64) for groups in reached]))
                self.set_places(b.add(r.addresses, self.e.splat(self.base)))
                self.leave(Pattern.SCATTERED)
        arguments = [r.context, r.site, r.mask, r.places, r.size, r.write]
        b.ret(self.e.intrinsic(admit_name(r.space), I64, arguments))

    def _all_inside(self) -> ir.Value:
        """Whether the lanes that take part reach for aligned places of the window."""
        b, r = self.b, self.request
        room = b.sub(self.limit, constant(BYTES))
        inside = b.icmp_unsigned("<=", r.addresses, self.e.splat(room))
        odd = b.and_(r.addresses, number(vector(I64), BYTES - 1))
        sound = b.and_(inside, b.icmp_unsigned("==", odd, number(vector(I64), 0)))
        return b.and_(b.icmp_signed(">=", room, constant(0)), self.e.all_lanes(b.or_(sound, r.inactive)))

    def _groups_reached(self) -> list[ir.Value]:
        """The groups of banks that each quarter of the warp reaches for, a bit each, as i32."""
        b, r = self.b, self.request
        kind = vector(I32)
        rows = b.lshr(b.trunc(r.addresses, kind), number(kind, BYTES.bit_length() - 1))
        bits = b.shl(number(kind, 1), b.and_(rows, number(kind, _GROUPS - 1)))
        bits = b.select(r.inactive, number(kind, 0), bits)
        found: list[ir.Value] = []
        for first in range(0, WARP_SIZE, QUARTER):
            picks = [ir.Constant(I32, first + lane) for lane in range(QUARTER)]
            quarter = b.shuffle_vector(bits, bits, ir.Constant(vector(I32, QUARTER), picks))
            found.append(self.e.intrinsic(f"llvm.vector.reduce.or.v{QUARTER}i32", I32, [quarter]))
        return found


def _is_any(b: ir.IRBuilder, groups: ir.Value) -> ir.Value:
    return b.icmp_unsigned("!=", groups, ir.Constant(I32, 0))


def _sum(b: ir.IRBuilder, values: list[ir.Value]) -> ir.Value:
    total, *rest = values
    for value in rest:
        total = b.add(total, value)
    return total
