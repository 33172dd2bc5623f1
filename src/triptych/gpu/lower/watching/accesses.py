"""Accesses of a block's shared memory: the tags of what they reach for, and of writes the readers that are not done."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce

from llvmlite import ir

from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.isa.spaces import SHARED
from triptych.gpu.lower.primitives.emitter import (
    I32,
    I64,
    POINTER,
    VOID,
    Emitter,
    constant,
    lanes,
    number,
    start_function,
    vector,
)
from triptych.gpu.lower.records import Context
from triptych.gpu.lower.watching.completion import EXAMINE
from triptych.gpu.lower.watching.layout import LEAST_REGION_BYTES, SCANNED, TAG_BYTES, WatchedMemory, watch
from triptych.gpu.lower.watching.reads import MEETS, OVERWRITE
from triptych.gpu.lower.watching.records import REGIONS, HazardKind, WatchedBlock

ACCESS, GENERIC_ACCESS, RUN, RANGE, ANY = (watch(n) for n in ("access", "generic_access", "run", "range", "any"))
_ELEMENT_BYTES = 16
"""Those of the longest access of a lane, whose address is a multiple of its size."""
KEEPS_REGISTERS = "preserve_allcc"
_TOGETHER = 16
"""Accesses that are looked at together."""
EXTREMES = (("umin", 0xFFFF_FFFF), ("umax", 0))
"""By LLVM's names, with what leaves them as they are."""


def build_accesses(module: ir.Module) -> None:
    """Emits `ANY`, `RANGE`, `ACCESS`, `GENERIC_ACCESS` and `RUN`."""
    _build_any(module)
    _build_range(module)
    _build_access(module)
    _build_generic(module)
    _build_run(module)


@contextmanager
def each_granule(memory: WatchedMemory, low: ir.Value, high: ir.Value) -> Generator[ir.Value]:
    """Runs for the granules between two offsets that have a tag which is not 0."""
    e, b = memory.e, memory.b
    first, last = memory.granule_of(low), memory.granule_of(b.sub(high, constant(1)))
    with e.counted(b.add(b.sub(last, first), constant(1))) as i:
        granule = b.add(first, i)
        tag = b.load(memory.tag(granule), typ=I32)
        with e.when(b.icmp_unsigned("!=", tag, ir.Constant(I32, 0)), likely=False):
            yield granule


def _build_any(module: ir.Module) -> None:
    """any(context, shared, low, high): whether a granule between two offsets has a tag that is not 0, an i32."""
    e = start_function(module, ANY, I32, [POINTER, I64, I64, I64])
    context, shared, low, high = e.function.args
    memory, wide = WatchedMemory(e, context, shared), vector(I32, SCANNED)
    pending = e.b.and_(memory.regions(low, high), e.load_field(WatchedBlock, memory.block(), "pending", I32))
    with e.when(e.b.icmp_unsigned("==", pending, ir.Constant(I32, 0)), likely=True):
        e.b.ret(pending)
    first, last = memory.granule_of(low), memory.granule_of(e.b.sub(high, constant(1)))
    count = e.b.add(e.b.sub(last, first), constant(1))
    found, tags = e.variable(wide, number(wide, 0)), memory.tag(first)
    whole = e.b.udiv(count, constant(SCANNED))
    with e.counted(whole) as i:
        some = e.b.load(e.offset(tags, e.b.mul(i, constant(SCANNED * TAG_BYTES))), align=4, typ=wide)
        e.b.store(e.b.or_(e.get(found, wide), some), found)
    done = e.b.mul(whole, constant(SCANNED))
    rest = e.splat(e.b.trunc(e.b.sub(count, done), I32), SCANNED)
    some = e.b.load(e.offset(tags, e.b.mul(done, constant(TAG_BYTES))), align=4, typ=wide)
    places = ir.Constant(wide, [ir.Constant(I32, i) for i in range(SCANNED)])
    some = e.b.select(e.b.icmp_unsigned("<", places, rest), some, number(wide, 0))
    e.b.ret(e.intrinsic(f"llvm.vector.reduce.or.v{SCANNED}i32", I32, [e.b.or_(e.get(found, wide), some)]))


def _build_range(module: ir.Module) -> None:
    """range(context, shared, kind, site, lane, low, high): what lies between two offsets is read, or written."""
    e = start_function(module, RANGE, VOID, [POINTER, I64, I64, POINTER, I64, I64, I64])
    context, shared, kind, site, lane, low, high = e.function.args
    some = e.intrinsic(ANY, I32, [context, shared, low, high])
    memory = WatchedMemory(e, context, shared)
    with (
        e.when(e.b.icmp_unsigned("!=", some, ir.Constant(I32, 0)), likely=False),
        each_granule(memory, low, high) as granule,
    ):
        start = e.b.shl(granule, memory.field("watched_shift"))
        address = e.intrinsic("llvm.umax.i64", I64, [start, low])
        e.intrinsic(EXAMINE, VOID, [context, shared, kind, site, lane, address, granule])
    with e.when(e.b.icmp_unsigned("==", kind, constant(HazardKind.WRITE))), e.when(_has_readers(memory), likely=False):
        e.intrinsic(OVERWRITE, VOID, [context, shared, site, lane, low, high])
    e.b.ret_void()


def _has_readers(memory: WatchedMemory) -> ir.Value:
    """Whether there are readers of the block's shared memory that may not be done."""
    reads = memory.e.load_field(WatchedBlock, memory.block(), "reads")
    return memory.b.icmp_unsigned("!=", reads, constant(0))


def _build_access(module: ir.Module) -> None:
    """access(context, site, mask, addresses, size, kind): the lanes of a mask read, or write, `size` bytes each."""
    e = start_function(module, ACCESS, VOID, [POINTER, POINTER, I32, vector(I32), I64, I64])
    context, site, mask, addresses, size, kind = e.function.args
    memory, wide = WatchedMemory(e, context), vector(I32)
    limit = e.b.trunc(memory.field("shared_size"), I32)
    inside = e.b.icmp_unsigned("<", addresses, e.splat(limit))  # what is aligned and begins inside lies inside
    chosen = e.b.and_(inside, e.from_bits(mask))
    mask = e.bits(chosen)
    with e.when(e.b.icmp_unsigned("==", mask, ir.Constant(I32, 0)), likely=False):
        e.b.ret_void()
    low, high = (extreme(e, which, e.b.select(chosen, addresses, number(wide, other))) for which, other in EXTREMES)
    high = e.b.add(high, size)
    some = e.intrinsic(ANY, I32, [context, memory.shared, low, high])
    writes = e.b.icmp_unsigned("==", kind, constant(HazardKind.WRITE))
    meets = e.variable(I32, some)
    with e.when(e.b.and_(writes, _has_readers(memory)), likely=False):
        met = e.intrinsic(MEETS, I32, [context, memory.shared, low, high])
        e.b.store(e.b.or_(some, met), meets)
    with e.when(e.b.icmp_unsigned("!=", e.get(meets, I32), ir.Constant(I32, 0)), likely=False):
        places = e.variable(wide, addresses)
        with e.each_lane(mask) as lane:
            own = e.b.zext(e.b.load(e.offset(places, e.b.shl(lane, constant(2))), typ=I32), I64)
            e.intrinsic(RANGE, VOID, [context, memory.shared, kind, site, lane, own, e.b.add(own, size)])
    e.b.ret_void()


def extreme(e: Emitter, which: str, numbers: ir.Value) -> ir.Value:
    """The least or the greatest of 32 numbers (i32), as an i64; `which` is one of `EXTREMES`."""
    return e.b.zext(e.intrinsic(f"llvm.vector.reduce.{which}.v32i32", I32, [numbers]), I64)


def _build_generic(module: ir.Module) -> None:
    """The same for generic addresses, of which only those of the block's own shared memory matter."""
    e = start_function(module, GENERIC_ACCESS, VOID, [POINTER, POINTER, I32, vector(I64), I64, I64])
    context, site, mask, addresses, size, kind = e.function.args
    places = e.b.sub(addresses, number(vector(I64), SHARED.window))
    limit = e.splat(e.load_field(Context, context, "shared_size"))
    own = e.b.and_(e.bits(e.b.icmp_unsigned("<", places, limit)), mask)
    with e.when(e.b.icmp_unsigned("!=", own, ir.Constant(I32, 0)), likely=False):
        e.intrinsic(ACCESS, VOID, [context, site, own, e.b.trunc(places, vector(I32)), size, kind])
    e.b.ret_void()


def _build_run(module: ir.Module) -> None:
    """run(context, site, mask, address, step, size, kind): the same for addresses at equal distances.

    The caller keeps all its registers.
    """
    e = Emitter(declare_run(module))
    context, site, mask, address, step, size, kind = e.function.args
    addresses = e.b.add(e.splat(address), e.b.mul(e.splat(step), lanes(I32)))
    e.intrinsic(ACCESS, VOID, [context, site, mask, addresses, size, kind])
    e.b.ret_void()


def declare_run(module: ir.Module) -> ir.Function:
    """`RUN` in a module."""
    known = module.globals.get(RUN)
    if known is None:
        known = ir.Function(module, ir.FunctionType(VOID, [POINTER, POINTER, I32, I32, I32, I64, I64]), RUN)
        known.calling_convention = KEEPS_REGISTERS
    return known


@dataclass(frozen=True, slots=True)
class _Run:
    """An access at which nobody has looked yet: lane i reaches for `size` bytes at `address` + i · `step`."""

    site: ir.Value
    mask: ir.Value
    address: ir.Value
    step: int
    size: int
    kind: int

    @property
    def place(self) -> tuple[ir.Value, int]:
        """The address as a value that code has, and a distance from it."""
        address = self.address
        if isinstance(address, ir.Instruction) and address.opname == "add":
            base, distance = address.operands
            if isinstance(distance, ir.Constant):
                return base, (distance.constant + (1 << 31)) % (1 << 32) - (1 << 31)
        return address, 0

    @property
    def reached(self) -> int:
        """Bytes from the address on."""
        return self.size + self.step * (WARP_SIZE - 1)


def _ends(runs: Sequence[_Run]) -> Iterator[tuple[ir.Value, int]]:
    """Places (a value, and a distance from it) that lie in all regions in which some runs lie.

    Runs beside each other are taken together as far as the smallest region reaches: its ends tell of all between.
    """
    by_base: dict[ir.Value, list[tuple[int, int]]] = {}
    for run in runs:
        base, offset = run.place
        assert run.reached <= LEAST_REGION_BYTES, "the regions of its ends are all that a run lies in"
        by_base.setdefault(base, []).append((offset, run.reached))
    for base, places in by_base.items():
        left = sorted(places)
        while left:
            (start, reached), *_ = left
            near = [place for place in left if sum(place) - start <= LEAST_REGION_BYTES]
            left = [place for place in left if place not in near]
            yield base, start
            if reached > _ELEMENT_BYTES or set(near) != {(start, reached)}:
                yield base, max(map(sum, near)) - 1


class Looks:
    """What a kernel's code does for its accesses: it looks at the regions that they reach for.

    At runs of addresses it looks some accesses later, at several together: `flush` before copies and waits.
    """

    def __init__(self, e: Emitter, context: ir.Value) -> None:
        """Emits with `e`, at the start of a function that runs a warp: its block stays the same."""
        self.e, self.b, self.context = e, e.b, context
        memory = WatchedMemory(e, context)
        self.block = memory.block()
        self.region = e.b.trunc(memory.field("watched_region"), I32)
        self._runs: list[_Run] = []

    def _closed(self, kind: int) -> ir.Value:
        """The regions that may not be written, or read, unseen, as bits."""
        return self.e.load_field(WatchedBlock, self.block, "closed" if kind == HazardKind.WRITE else "pending", I32)

    def look_at_run(self, site: ir.Value, mask: ir.Value, address: ir.Value, step: int, size: int, kind: int) -> None:
        """Lane i reaches for `size` bytes at `address` + i · `step`, an i32: no more than the smallest region has."""
        self._runs.append(_Run(site, mask, address, step, size, kind))
        if len(self._runs) == _TOGETHER:
            self.flush()

    def flush(self) -> None:
        """Calls `RUN` for all runs at which nobody has looked yet, where one of their regions is closed."""
        runs, self._runs = self._runs, []
        if not runs:
            return
        b = self.b
        found: list[ir.Value] = []
        for kind in sorted({run.kind for run in runs}):
            closed = self._closed(kind)
            for base, offset in _ends([run for run in runs if run.kind == kind]):
                place = b.add(base, ir.Constant(I32, offset)) if offset else base
                region = b.and_(b.lshr(place, self.region), ir.Constant(I32, REGIONS - 1))
                found.append(b.lshr(closed, region))
        some = b.and_(reduce(b.or_, found), ir.Constant(I32, 1))
        with self.e.when(b.icmp_unsigned("!=", some, ir.Constant(I32, 0)), likely=False):
            for run in runs:
                numbers = [ir.Constant(I32, run.step), constant(run.size), constant(run.kind)]
                b.call(declare_run(self.e.module), [self.context, run.site, run.mask, run.address, *numbers])

    def look(self, site: ir.Value, mask: ir.Value, addresses: ir.Value, size: int, kind: int) -> None:
        """The lanes of a mask reach for `size` bytes each; calls `ACCESS` where a region is closed."""
        b, wide = self.b, vector(I32)
        closed = self._closed(kind)
        with self.e.when(b.icmp_unsigned("!=", closed, ir.Constant(I32, 0))):
            regions = b.lshr(addresses, self.e.splat(self.region))
            regions = b.and_(regions, number(wide, REGIONS - 1))
            found = b.and_(b.lshr(self.e.splat(closed), regions), number(wide, 1))
            some = self.e.intrinsic("llvm.vector.reduce.or.v32i32", I32, [found])
            with self.e.when(b.icmp_unsigned("!=", some, ir.Constant(I32, 0)), likely=False):
                self._call(ACCESS, site, mask, addresses, size, kind)

    def look_at_generic(self, site: ir.Value, mask: ir.Value, addresses: ir.Value, size: int, kind: int) -> None:
        """The same for generic addresses, by `GENERIC_ACCESS`."""
        closed = self._closed(kind)
        with self.e.when(self.b.icmp_unsigned("!=", closed, ir.Constant(I32, 0))):
            self._call(GENERIC_ACCESS, site, mask, addresses, size, kind)

    def _call(
        self, function: str, site: ir.Value, mask: ir.Value, addresses: ir.Value, size: int, kind: int
    ) -> None:  # fmt: skip
        given = [self.context, site, mask, addresses, constant(size), constant(kind)]
        self.e.intrinsic(function, VOID, given)
