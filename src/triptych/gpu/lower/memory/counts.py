"""What a request comes to in the units of the hardware: sectors of global memory, wavefronts of shared memory."""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from triptych.gpu.hardware import BANK_BYTES, BANKS, SECTOR_BYTES, WARP_SIZE
from triptych.gpu.lower.primitives.emitter import (
    I1,
    I8,
    I32,
    I64,
    POINTER,
    Emitter,
    constant,
    number,
    undefined,
    vector,
)


def mark_pairs(e: Emitter, address: ir.Value, count: int = 1) -> None:
    """Marks neighbouring 64-byte pairs as touched, at an address of a map of bytes.

    Only what is not marked yet is written: workers would take the map's cache lines from each other all the time.
    """
    kind = ir.IntType(8 * count)
    marked = ir.Constant(kind, int.from_bytes(b"\x01" * count, "little"))
    place = e.b.inttoptr(address, POINTER)
    fresh = e.b.icmp_unsigned("!=", e.b.load(place, align=1, typ=kind), marked)
    with e.when(fresh, likely=False):
        e.b.store(marked, place, align=1)


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
            _count_all_pairs(self.e, self.seen, self.steps)
        return self.e.get(self.steps, I64)


def _count_all_pairs(e: Emitter, sectors: ir.Value, count: ir.Value) -> None:
    """Stores how many values other than -1 there are; `sectors` and `count` are places."""
    b, none = e.b, ir.Constant(I64, -1)
    seen = e.get(sectors, vector(I64))
    b.store(ir.Constant(I64, 0), count)
    with e.counted(ir.Constant(I64, WARP_SIZE)) as i:
        sector = b.load(e.offset(sectors, b.shl(i, ir.Constant(I64, 3))), typ=I64)
        first = b.zext(e.count_trailing_zeros(e.bits(b.icmp_unsigned("==", seen, e.splat(sector)))), I64)
        counts = b.and_(b.icmp_unsigned("==", first, i), b.icmp_signed("!=", sector, none))
        b.store(b.add(e.get(count, I64), b.zext(counts, I64)), count)


def count_sectors(e: Emitter, addresses: ir.Value) -> ir.Value:
    """The distinct sectors of a full warp's addresses, each of which lies in one."""
    b, kind = e.b, vector(I64)
    sectors = b.lshr(addresses, number(kind, SECTOR_BYTES.bit_length() - 1))
    picks = ir.Constant(vector(I32), [ir.Constant(I32, max(lane - 1, 0)) for lane in range(WARP_SIZE)])
    before = b.shuffle_vector(sectors, undefined(kind), picks)
    steps = b.zext(e.count_ones(e.bits(b.icmp_unsigned("!=", sectors, before))), I64)
    count = e.variable(I64, b.add(steps, ir.Constant(I64, 1)))
    place = e.variable(kind, sectors)
    with e.when(b.not_(e.all_lanes(b.icmp_unsigned("<=", before, sectors)))):
        _count_all_pairs(e, place, count)
    return e.get(count, I64)


def count_even_wavefronts(e: Emitter, step: ir.Value) -> ir.Value:
    """The wavefronts of 32 words at equal distances, `step` bytes being a multiple of a word: those in one bank."""
    words = e.b.ashr(step, ir.Constant(I64, BANK_BYTES.bit_length() - 1))
    shared = e.b.or_(words, ir.Constant(I64, BANKS))  # the greatest power of two in both divides what goes round
    return e.b.and_(shared, e.b.sub(ir.Constant(I64, 0), shared))


@dataclass(frozen=True, slots=True)
class Phases:
    """How a warp's request to shared memory is cut: `lanes` at a time, one phase after the other.

    As an H200 counts them (`tests/data/hardware/access_patterns-h200.json`): 32 lanes of up to 4 bytes; 8-byte loads
    all at once, 8-byte stores by half warps; 16 bytes by quarter warps, but loads by half warps where each even lane
    and its neighbour reach for one place (or one of them is inactive).
    """

    lanes: int
    contiguous: tuple[int, int]
    """Wavefronts, and bank conflicts, of a full warp at neighbouring elements."""
    broadcast: int
    """Wavefronts of a full warp at one element."""


_UP_TO_4 = Phases(WARP_SIZE, (1, 0), 1)
_LOADS = {8: Phases(WARP_SIZE, (2, 1), 1), 16: Phases(WARP_SIZE // 4, (4, 0), 2)}
_STORES = {8: Phases(WARP_SIZE // 2, (2, 0), 2), 16: Phases(WARP_SIZE // 4, (4, 0), 4)}
_PAIRED_BYTES = 16
_MOST_PHASES = 4
_MOST_WORDS = 64
"""Of a phase in one bank: 32 lanes of two words."""


def phases_of(kind: str, bytes_: int) -> Phases:
    """The phases of loads, or of stores and atomics, of `bytes_` bytes a lane."""
    return (_LOADS if kind == "load" else _STORES).get(bytes_, _UP_TO_4)


class BankCount:
    """Counts the wavefronts of a shared-memory request: in a phase each bank gives one 4-byte word a wavefront.

    By `phases_of`; whether it writes and how many bytes a lane has are values of generated code.
    """

    def __init__(self, e: Emitter, write: ir.Value, size: ir.Value, mask: ir.Value, addresses: ir.Value) -> None:
        """Nothing yet; `addresses` are the warp's, to see which lanes are served together."""
        self.e, self.b = e, e.b
        b = e.b
        self.words = e.intrinsic("llvm.umax.i64", I64, [b.udiv(size, constant(BANK_BYTES)), constant(1)])
        self.lane_shift = self._lane_shift(write, size, mask, addresses)
        self.counts = e.variable(ir.ArrayType(I8, BANKS * _MOST_PHASES))
        self.seen = e.variable(ir.ArrayType(I32, BANKS * _MOST_PHASES * _MOST_WORDS))
        self.most = e.variable(ir.ArrayType(I8, _MOST_PHASES))
        for place, room in ((self.counts, BANKS * _MOST_PHASES), (self.most, _MOST_PHASES)):
            b.store(ir.Constant(ir.ArrayType(I8, room), None), place)

    def _lane_shift(self, write: ir.Value, size: ir.Value, mask: ir.Value, addresses: ir.Value) -> ir.Value:
        """From a lane to its phase."""
        b = self.b
        is_load = b.icmp_unsigned("==", write, constant(0))
        shift: ir.Value = constant(_UP_TO_4.lanes.bit_length() - 1)
        for bytes_ in sorted(_LOADS):
            loads, stores = (constant(kind[bytes_].lanes.bit_length() - 1) for kind in (_LOADS, _STORES))
            chosen: ir.Value = b.select(is_load, loads, stores)
            if bytes_ == _PAIRED_BYTES:
                by_halves = b.and_(is_load, self._even_lanes_share(mask, addresses))
                chosen = b.select(by_halves, constant((WARP_SIZE // 2).bit_length() - 1), chosen)
            shift = b.select(b.icmp_unsigned("==", size, constant(bytes_)), chosen, shift)
        return shift

    def _even_lanes_share(self, mask: ir.Value, addresses: ir.Value) -> ir.Value:
        """Whether each even lane and its neighbour reach for one place, or one of them is inactive."""
        b = self.b
        swap = ir.Constant(vector(I32), [ir.Constant(I32, i ^ 1) for i in range(WARP_SIZE)])
        swapped = b.shuffle_vector(addresses, undefined(addresses.type), swap)
        equal = self.e.bits(b.icmp_unsigned("==", addresses, swapped))
        one, odd, even = ir.Constant(I32, 1), ir.Constant(I32, 0xAAAA_AAAA), ir.Constant(I32, 0x5555_5555)
        partners = b.or_(b.and_(b.shl(mask, one), odd), b.and_(b.lshr(mask, one), even))
        apart = b.and_(b.and_(mask, partners), b.not_(equal))
        return b.icmp_unsigned("==", apart, ir.Constant(I32, 0))

    def add(self, lane: ir.Value, address: ir.Value) -> None:
        """One lane's words."""
        phase = self.b.lshr(lane, self.lane_shift)
        first = self.b.udiv(address, constant(BANK_BYTES))
        with self.e.counted(self.words) as position:
            word = self.b.add(first, position)
            bank = self.b.and_(word, constant(BANKS - 1))
            self._add_word(phase, bank, self.b.trunc(word, I32))

    def _add_word(self, phase: ir.Value, bank: ir.Value, word: ir.Value) -> None:
        row = self.b.add(self.b.mul(phase, constant(BANKS)), bank)
        count_place = self.e.offset(self.counts, row)
        count = self.b.zext(self.b.load(count_place, typ=I8), I64)
        start = self.b.mul(row, constant(_MOST_WORDS))
        known = self.e.variable(I1, ir.Constant(I1, 0))
        with self.e.counted(count) as i:
            place = self.e.offset(self.seen, self.b.shl(self.b.add(start, i), constant(2)))
            same = self.b.icmp_unsigned("==", self.b.load(place, typ=I32), word)
            self.b.store(self.b.or_(self.e.get(known, I1), same), known)
        with self.e.when(self.b.not_(self.e.get(known, I1))):
            place = self.e.offset(self.seen, self.b.shl(self.b.add(start, count), constant(2)))
            self.b.store(word, place)
            more = self.b.trunc(self.b.add(count, constant(1)), I8)
            self.b.store(more, count_place)
            most_place = self.e.offset(self.most, phase)
            most = self.b.load(most_place, typ=I8)
            larger = self.b.select(self.b.icmp_unsigned(">", more, most), more, most)
            self.b.store(larger, most_place)

    def totals(self) -> tuple[ir.Value, ir.Value]:
        """Wavefronts, and those beyond one for each phase with an active lane."""
        total, needed = constant(0), constant(0)
        for phase in range(_MOST_PHASES):
            most = self.b.zext(self.b.load(self.e.offset(self.most, phase), typ=I8), I64)
            total = self.b.add(total, most)
            used = self.b.icmp_unsigned("!=", most, constant(0))
            needed = self.b.add(needed, self.b.zext(used, I64))
        return total, self.b.sub(total, needed)
