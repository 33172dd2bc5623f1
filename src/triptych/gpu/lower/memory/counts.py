"""What a request comes to in the units of the hardware: sectors of global memory, wavefronts of shared memory."""

from __future__ import annotations

from llvmlite import ir

from triptych.gpu.lower.emitter import I1, I8, I32, I64, Emitter, number, vector
from triptych.gpu.lower.layout import WARP_SIZE

BANKS = 32
"""Shared memory has 32 banks of 4 bytes; one wavefront serves each bank once."""


class SectorCount:
    """Counts the distinct sectors of a request: by neighbours while they ascend, by all pairs once they do not."""

    def __init__(self, e: Emitter) -> None:
        """Nothing yet."""
        self.e, self.b = e, e.b
        none = ir.Constant(I64, -1)
        self.seen = e.variable(vector(I64), number(vector(I64), -1))
        self.last = e.variable(I64, none)
        self.steps = e.variable(I64, ir.Constant(I64, 0))
        self.unsorted = e.variable(I1, ir.Constant(I1, 0))

    def add(self, lane: ir.Value, sector: ir.Value) -> None:
        """One lane's sector."""
        self.b.store(sector, self.e.offset(self.seen, self.b.shl(lane, ir.Constant(I64, 3))))
        last = self.e.get(self.last, I64)
        step = self.b.zext(self.b.icmp_signed("!=", sector, last), I64)
        self.b.store(self.b.add(self.e.get(self.steps, I64), step), self.steps)
        self.b.store(self.b.or_(self.e.get(self.unsorted, I1), self.b.icmp_signed("<", sector, last)), self.unsorted)
        self.b.store(sector, self.last)

    def total(self) -> ir.Value:
        """How many there are."""
        with self.e.when(self.e.get(self.unsorted, I1)):
            seen = self.e.get(self.seen, vector(I64))
            self.b.store(ir.Constant(I64, 0), self.steps)
            with self.e.counted(ir.Constant(I64, WARP_SIZE)) as i:
                sector = self.b.load(self.e.offset(self.seen, self.b.shl(i, ir.Constant(I64, 3))), typ=I64)
                equal = self.e.bits(self.b.icmp_unsigned("==", seen, self.e.splat(sector)))
                first = self.b.zext(self.e.count_trailing_zeros(equal), I64)
                counts = self.b.and_(
                    self.b.icmp_unsigned("==", first, i), self.b.icmp_signed("!=", sector, ir.Constant(I64, -1))
                )
                self.b.store(self.b.add(self.e.get(self.steps, I64), self.b.zext(counts, I64)), self.steps)
        return self.e.get(self.steps, I64)


class BankCount:
    """Counts the wavefronts of a shared-memory request.

    Lanes are served in phases of 128 bytes (32 lanes of up to 4 bytes, 16 of 8, 8 of 16); in a phase each bank gives
    one 4-byte word a wavefront, to all lanes that ask for that word.
    """

    def __init__(self, e: Emitter, bytes_: int) -> None:
        """Nothing yet."""
        self.e, self.b = e, e.b
        self.words = max(bytes_ // 4, 1)
        self.lane_shift = {1: 5, 2: 4, 4: 3, 8: 2}[self.words]
        self.phases = self.phase_count(bytes_)
        self.counts = e.variable(ir.ArrayType(I8, BANKS * self.phases))
        self.seen = e.variable(ir.ArrayType(I32, BANKS * WARP_SIZE * self.words))
        self.most = e.variable(ir.ArrayType(I8, self.phases))
        for place, size in ((self.counts, BANKS * self.phases), (self.most, self.phases)):
            e.b.store(ir.Constant(ir.ArrayType(I8, size), None), place)

    @staticmethod
    def phase_count(bytes_: int) -> int:
        """The wavefronts of a full warp without a conflict."""
        return max(bytes_ // 4, 1)

    def add(self, lane: ir.Value, address: ir.Value) -> None:
        """One lane's words."""
        phase = self.b.lshr(lane, ir.Constant(I64, self.lane_shift))
        for position in range(self.words):
            word = self.b.add(self.b.lshr(address, ir.Constant(I64, 2)), ir.Constant(I64, position))
            bank = self.b.and_(word, ir.Constant(I64, BANKS - 1))
            self._add_word(phase, bank, self.b.trunc(word, I32))

    def _add_word(self, phase: ir.Value, bank: ir.Value, word: ir.Value) -> None:
        row = self.b.add(self.b.mul(phase, ir.Constant(I64, BANKS)), bank)
        count_place = self.e.offset(self.counts, row)
        count = self.b.zext(self.b.load(count_place, typ=I8), I64)
        per_phase = WARP_SIZE * self.words // self.phases
        start = self.b.mul(row, ir.Constant(I64, per_phase))
        known = self.e.variable(I1, ir.Constant(I1, 0))
        with self.e.counted(count) as i:
            place = self.e.offset(self.seen, self.b.shl(self.b.add(start, i), ir.Constant(I64, 2)))
            same = self.b.icmp_unsigned("==", self.b.load(place, typ=I32), word)
            self.b.store(self.b.or_(self.e.get(known, I1), same), known)
        with self.e.when(self.b.not_(self.e.get(known, I1))):
            place = self.e.offset(self.seen, self.b.shl(self.b.add(start, count), ir.Constant(I64, 2)))
            self.b.store(word, place)
            more = self.b.trunc(self.b.add(count, ir.Constant(I64, 1)), I8)
            self.b.store(more, count_place)
            most_place = self.e.offset(self.most, phase)
            most = self.b.load(most_place, typ=I8)
            larger = self.b.select(self.b.icmp_unsigned(">", more, most), more, most)
            self.b.store(larger, most_place)

    def totals(self) -> tuple[ir.Value, ir.Value]:
        """Wavefronts, and those beyond one for each phase with an active lane."""
        total, needed = ir.Constant(I64, 0), ir.Constant(I64, 0)
        for phase in range(self.phases):
            most = self.b.zext(self.b.load(self.e.offset(self.most, phase), typ=I8), I64)
            total = self.b.add(total, most)
            used = self.b.icmp_unsigned("!=", most, ir.Constant(I64, 0))
            needed = self.b.add(needed, self.b.zext(used, I64))
        return total, self.b.sub(total, needed)
