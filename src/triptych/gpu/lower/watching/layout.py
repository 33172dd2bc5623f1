"""Where asynccheck's memory of a block lies: at distances from its shared memory, the same for all blocks of a launch.

Behind shared memory lie the phases of mbarriers (8 bytes for each 8 bytes of it: how many ended, and above these how
many somebody saw end), what is known of the block and of each warp, the tags, the last copies, and the readers.
"""

from __future__ import annotations

from collections.abc import Mapping

from llvmlite import ir

from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.lower.primitives.emitter import I1, I32, I64, POINTER, Emitter, constant, vector
from triptych.gpu.lower.records import Context
from triptych.gpu.lower.watching.records import (
    ARRIVALS_KEPT,
    COPIES_KEPT,
    READS_KEPT,
    REGIONS,
    Arrival,
    Pending,
    WatchedBlock,
    WatchedWarp,
)

LANE_BITS = WARP_SIZE.bit_length() - 1
"""The lowest bits of a tag: the lane that issued the copy, whose number lies above."""
TAG_BYTES = 4
SCANNED = 8
"""Tags that are looked at together."""
_ALIGNMENT = 256
LEAST_REGION_BYTES = 512
"""No access of a warp to neighbouring elements of shared memory is longer."""
_WARP_BYTES = WatchedWarp.size() + ARRIVALS_KEPT * Arrival.size()
_BLOCK_BYTES = -(-WatchedBlock.size() // 64) * 64


def watched_name(symbol: str) -> str:
    """The symbol of a helper's variant for kernels that asynccheck looks at."""
    return f"{symbol}.watched"


def watch(function: str) -> str:
    """The symbol of a function that such code calls."""
    return f"triptych.watch.{function}"


def place_memory(granule: int, shared_bytes: int, warps: int) -> tuple[int, Mapping[str, int]]:
    """The bytes of a block's memory, shared memory included, and the fields of `Context` that say where its parts lie.

    `granule`: bytes of shared memory that have one tag.
    """
    shared = -(-max(shared_bytes, 1) // _ALIGNMENT) * _ALIGNMENT
    known = _BLOCK_BYTES + warps * _WARP_BYTES
    tags = shared // granule * TAG_BYTES
    sizes = {
        "watched_phases": shared, "watched_warps": shared, "watched_tags": known,
        "watched_copies": tags + SCANNED * TAG_BYTES * WARP_SIZE, "watched_reads": COPIES_KEPT * Pending.size(),
    }  # fmt: skip
    places: dict[str, int] = {}
    end = 0
    for name, before in sizes.items():
        end = places[name] = end + -(-before // 64) * 64
    begin = places["watched_copies"] - places["watched_warps"]
    return end + READS_KEPT * Pending.size(), {
        **places, "watched_bytes": begin, "watched_shift": granule.bit_length() - 1,
        "watched_region": (max(shared // REGIONS, LEAST_REGION_BYTES) - 1).bit_length(),
    }  # fmt: skip


class WatchedMemory:
    """The memory of a block whose shared memory begins at `shared`, an i64: of the block that runs where not given."""

    def __init__(self, e: Emitter, context: ir.Value, shared: ir.Value | None = None) -> None:
        """Emits with `e`."""
        self.e, self.b, self.context = e, e.b, context
        self.shared = e.load_field(Context, context, "shared") if shared is None else shared

    def field(self, name: str) -> ir.Value:
        """A field of the context, an i64."""
        return self.e.load_field(Context, self.context, name)

    def block(self) -> ir.Value:
        """The `WatchedBlock`."""
        return self._at("watched_warps")

    def region_of(self, address: ir.Value) -> ir.Value:
        """The number of the region at an offset, an i64 below 32 whatever the offset."""
        region = self.b.lshr(address, self.field("watched_region"))
        return self.b.and_(region, constant(REGIONS - 1))

    def regions(self, low: ir.Value, high: ir.Value) -> ir.Value:
        """Those of what lies between two offsets of shared memory, as bits, an i32."""
        first, last = self.region_of(low), self.region_of(self.b.sub(high, constant(1)))
        several = self.b.sub(self.b.shl(constant(2), self.b.sub(last, first)), constant(1))
        return self.b.trunc(self.b.shl(several, first), I32)

    def close(self) -> None:
        """Says which regions are pending or read, where one of these has changed."""
        block = self.block()
        either = self.b.or_(*(self.e.load_field(WatchedBlock, block, name) for name in ("pending", "reading")))
        self.b.store(either, self.e.field(WatchedBlock, block, "closed"))

    def _at(self, name: str) -> ir.Value:
        return self.b.inttoptr(self.b.add(self.shared, self.field(name)), POINTER)

    def warp(self, index: ir.Value) -> ir.Value:
        """A `WatchedWarp`."""
        return self.e.offset(self.block(), self.b.add(self.b.mul(index, constant(_WARP_BYTES)), constant(_BLOCK_BYTES)))

    def own_warp(self) -> ir.Value:
        """That of the warp that runs."""
        return self.warp(self.field("warp_index"))

    def lanes_of(self, warp: ir.Value, name: str) -> ir.Value:
        """The address of the 32 numbers (i32) of a `WatchedWarp`."""
        return self.e.field(WatchedWarp, warp, f"{name}_0")

    def read_lanes(self, warp: ir.Value, name: str) -> ir.Value:
        """These numbers."""
        return self.b.load(self.lanes_of(warp, name), align=8, typ=vector(I32))

    def arrival(self, warp: ir.Value, number: ir.Value) -> ir.Value:
        """The place of the warp's `Arrival` of that number."""
        kept = self.b.and_(number, constant(ARRIVALS_KEPT - 1))
        return self.e.offset(warp, self.b.add(self.b.mul(kept, constant(Arrival.size())), constant(WatchedWarp.size())))

    def granule_of(self, address: ir.Value) -> ir.Value:
        """The number of the granule at an offset in shared memory, an i64."""
        return self.b.lshr(address, self.field("watched_shift"))

    def tag(self, granule: ir.Value) -> ir.Value:
        """The place of a granule's tag."""
        return self.e.offset(self._at("watched_tags"), self.b.mul(granule, constant(TAG_BYTES)))

    def copy(self, number: ir.Value) -> ir.Value:
        """The place of the `Pending` copy of that number."""
        kept = self.b.and_(number, constant(COPIES_KEPT - 1))
        return self.e.offset(self._at("watched_copies"), self.b.mul(kept, constant(Pending.size())))

    def read(self, place: ir.Value) -> ir.Value:
        """A `Pending` reader."""
        return self.e.offset(self._at("watched_reads"), self.b.mul(place, constant(Pending.size())))

    def phases(self, mbarrier: ir.Value) -> ir.Value:
        """Where the phases of the mbarrier at a place of the host, an i64, are counted."""
        return self.b.inttoptr(self.b.add(mbarrier, self.field("watched_phases")), POINTER)

    def start(self, pending: ir.Value, completion: ir.Value, given: Mapping[str, ir.Value]) -> None:
        """Writes a `Pending` down that the block that runs issues."""
        own = {"block": self.field("block_index"), "warp": self.field("warp_index"), "completion": completion}
        values = {**dict.fromkeys(("lane", "next", "lines"), constant(0)), **own, **given}
        for name, value in values.items():
            self.b.store(value, self.e.field(Pending, pending, name))


def ended(e: Emitter, phases: ir.Value) -> ir.Value:
    """How many phases of an mbarrier have ended, an i32, from the place where they are counted."""
    return e.b.load(phases, typ=I32)


def seen(e: Emitter, phases: ir.Value) -> ir.Value:
    """The place of how many of them somebody saw end, an i32."""
    return e.offset(phases, 4)


def lane_of(e: Emitter, lanes: ir.Value, lane: ir.Value) -> ir.Value:
    """Whether an i32 names a lane, an i64; an i1."""
    return e.b.trunc(e.b.lshr(e.b.zext(lanes, I64), lane), I1)
