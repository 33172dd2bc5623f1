"""Memory accesses as functions that every kernel shares: bounds, address translation, counters, the access itself.

A helper acts for a whole warp: `(context, site, mask, addresses, values…)`. It takes the short way where the active
lanes touch neighbouring elements or one element, and goes lane by lane otherwise. An access that faults is recorded,
left out, and stops the launch. Names: `triptych.load.global.4x2` loads two neighbouring elements of 4 bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llvmlite import ir

from triptych.gpu.isa.spaces import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_SIZE
from triptych.gpu.lower.atomics import update_element
from triptych.gpu.lower.emitter import I1, I8, I32, I64, POINTER, VOID, Emitter, lanes, number, vector
from triptych.gpu.lower.layout import WARP_SIZE, Context, FaultKind, Site

SECTOR_SHIFT = 5
"""Global memory moves in sectors of 32 bytes."""
PAIR_SHIFT = 6
"""DRAM is read in pairs of sectors, 64 bytes."""
GENERIC_SITES = ("global", "shared", "local")
"""A generic access has three sites in a row, one for each space that it may reach."""
BANKS = 32
"""Shared memory has 32 banks of 4 bytes; one wavefront serves each bank once."""


@dataclass(frozen=True, slots=True)
class Access:
    """What a helper does: `kind` is load, store, or an atomic's operation."""

    kind: str
    space: str
    size: int
    """Bytes of an element."""
    count: int = 1
    is_float: bool = False
    is_signed: bool = False

    @property
    def name(self) -> str:
        """The helper's symbol."""
        suffix = "f" if self.is_float else "s" if self.is_signed else ""
        return f"triptych.{self.kind}.{self.space}.{self.size}x{self.count}{suffix}"

    @property
    def is_atomic(self) -> bool:
        """Whether it reads, changes and writes."""
        return self.kind not in ("load", "store")

    @property
    def bytes(self) -> int:
        """Bytes of one lane."""
        return self.size * self.count

    @property
    def element(self) -> ir.IntType:
        """The element's type in generated code."""
        return ir.IntType(8 * self.size)

    @property
    def operands(self) -> int:
        """Value operands."""
        if self.is_atomic:
            return 2 if self.kind == "cas" else 1
        return self.count if self.kind == "store" else 0

    @property
    def results(self) -> int:
        """Result vectors."""
        return 0 if self.kind == "store" else self.count

    @property
    def result_type(self) -> ir.Type:
        """Nothing, a vector, or a structure of vectors."""
        one = vector(self.element)
        return VOID if not self.results else one if self.results == 1 else ir.LiteralStructType([one] * self.results)

    @property
    def address_type(self) -> ir.IntType:
        """The type of an address: 32 bits reach all of shared memory."""
        return I32 if self.space == "shared" else I64

    @property
    def function_type(self) -> ir.FunctionType:
        """(context, site, mask, addresses, values…) -> results."""
        values = [vector(self.element)] * self.operands
        return ir.FunctionType(self.result_type, [POINTER, POINTER, I32, vector(self.address_type), *values])


class Helper:
    """Builds one helper as a module of its own: the short ways, and a second function for all the rest."""

    def __init__(self, access: Access) -> None:
        """Builds it."""
        self.module = ir.Module(name=access.name)
        has_short_ways = not access.is_atomic and access.space in ("global", "shared")
        name = f"{access.name}.general" if has_short_ways else access.name
        general = ir.Function(self.module, access.function_type, name)
        General(access, general)
        if has_short_ways:
            general.linkage = "internal"
            general.attributes.add("noinline")
            build_short_ways(access, ir.Function(self.module, access.function_type, access.name), general)


class General:
    """Emits the function that takes any mask and any addresses."""

    def __init__(self, access: Access, function: ir.Function) -> None:
        """Emits it."""
        self.access = access
        self.e = Emitter(function)
        self.context, self.site, self.mask, addresses, *self.values = function.args
        wide = vector(I64)
        self.addresses = addresses if addresses.type == wide else self.e.b.zext(addresses, wide)
        self.results = [self.e.variable(vector(access.element)) for _ in range(access.results)]
        for place in self.results:
            self.e.b.store(number(vector(access.element), 0), place)
        self.done = self.e.block("done")
        active = self.e.b.icmp_unsigned("!=", self.mask, ir.Constant(I32, 0))
        work = self.e.block("work")
        self.e.b.cbranch(active, work, self.done)
        self.e.b.position_at_end(work)
        {"global": _Global, "shared": _Shared, "local": _Local, "generic": _Generic}[access.space](self).build()
        self.e.b.branch(self.done)
        self.e.b.position_at_end(self.done)
        self._give_back()

    def _give_back(self) -> None:
        loaded = [self.e.get(place, vector(self.access.element)) for place in self.results]
        _return_all(self.e.b, self.access, loaded)


class _Way:
    """What the spaces share: lane-by-lane and whole-warp accesses to host memory."""

    def __init__(self, helper: General) -> None:
        self.helper = helper
        self.access = helper.access
        self.e = helper.e
        self.b = helper.e.b
        self.first_lane = self.e.count_trailing_zeros(helper.mask)
        self.first_address = self.b.extract_element(helper.addresses, self.first_lane)
        self.inactive = self.b.not_(self.e.from_bits(helper.mask))
        self.active_lanes = self.b.zext(self.e.count_ones(helper.mask), I64)

    def is_contiguous(self) -> ir.Value:
        """Whether lane i reaches for the i-th element behind one place, and the active lanes have no gap."""
        scaled = self.b.mul(self.b.zext(self.first_lane, I64), ir.Constant(I64, self.access.bytes))
        origin = self.e.splat(self.b.sub(self.first_address, scaled))
        expected = self.b.add(origin, lanes(I64, self.access.bytes))
        same = self.b.or_(self.b.icmp_unsigned("==", self.helper.addresses, expected), self.inactive)
        run = self.b.lshr(self.helper.mask, self.first_lane)
        gapless = self.b.icmp_unsigned(
            "==", self.b.and_(run, self.b.add(run, ir.Constant(I32, 1))), ir.Constant(I32, 0)
        )
        return self.b.and_(self.e.all_lanes(same), gapless)

    def is_uniform(self) -> ir.Value:
        """Whether all active lanes reach for one place."""
        origin = self.e.splat(self.first_address)
        same = self.b.or_(self.b.icmp_unsigned("==", self.helper.addresses, origin), self.inactive)
        return self.e.all_lanes(same)

    def is_aligned(self, address: ir.Value) -> ir.Value:
        low = self.b.and_(address, ir.Constant(I64, self.access.bytes - 1))
        return self.b.icmp_unsigned("==", low, ir.Constant(I64, 0))

    def is_full(self) -> ir.Value:
        return self.b.icmp_unsigned("==", self.helper.mask, ir.Constant(I32, -1))

    def fault(self, kind: ir.Value | int, lane: ir.Value, address: ir.Value) -> None:
        code = ir.Constant(I64, kind) if isinstance(kind, int) else kind
        size = ir.Constant(I64, self.access.bytes)
        arguments = [self.helper.context, self.helper.site, code, lane, address, size]
        self.e.intrinsic("triptych.fault", VOID, arguments)

    def pointer(self, address: ir.Value) -> ir.Value:
        return self.b.inttoptr(address, POINTER)

    # One lane ---------------------------------------------------------------------------------------------------

    def stacked(self) -> tuple[Callable[[ir.Value, ir.Value], None], Callable[[], None]]:
        """Ways to access one lane at a host address, and to hand over what was loaded."""
        element = vector(self.access.element)
        inputs = [self.e.variable(element, value) for value in self.helper.values]
        outputs = [self.e.variable(element, number(element, 0)) for _ in self.helper.results]

        def one(lane: ir.Value, host: ir.Value) -> None:
            index = self.b.mul(lane, ir.Constant(I64, self.access.size))
            if self.access.is_atomic:
                operands = [self.b.load(self.e.offset(place, index), typ=self.access.element) for place in inputs]
                old = update_element(self.e, self.access, self.pointer(host), operands)
                self.b.store(old, self.e.offset(outputs[0], index))
                return
            for position, place in enumerate(inputs or outputs):
                there = self.pointer(self.b.add(host, ir.Constant(I64, position * self.access.size)))
                here = self.e.offset(place, index)
                source, target = (here, there) if inputs else (there, here)
                self.b.store(self.b.load(source, align=1, typ=self.access.element), target, align=1)

        def finish() -> None:
            for place, result in zip(outputs, self.helper.results, strict=True):
                self.b.store(self.e.get(place, element), result)

        return one, finish

    # A whole warp -----------------------------------------------------------------------------------------------

    def move_contiguous(self, host: ir.Value) -> None:
        """Loads or stores 32 · count neighbouring elements, `host` being lane 0's place."""
        loaded = _move_run(self.b, self.access, self.pointer(host), self.helper.values)
        for value, result in zip(loaded, self.helper.results, strict=False):
            self.b.store(value, result)

    def move_masked(self, host: ir.Value) -> None:
        """As `move_contiguous` for one element a lane and a partial mask."""
        kind, mask = vector(self.access.element), self.e.from_bits(self.helper.mask)
        suffix = f"v{WARP_SIZE}i{8 * self.access.size}.p0"
        place, align = self.pointer(host), ir.Constant(I32, 1)
        if self.access.kind == "load":
            value = self.e.intrinsic(f"llvm.masked.load.{suffix}", kind, [place, align, mask, number(kind, 0)])
            self.b.store(value, self.helper.results[0])
        else:
            self.e.intrinsic(f"llvm.masked.store.{suffix}", VOID, [self.helper.values[0], place, align, mask])

    def move_uniform(self, host: ir.Value) -> None:
        """All active lanes load one place; of stores the last lane's value stays."""
        last = self.b.sub(
            ir.Constant(I32, 31), self.e.intrinsic("llvm.ctlz.i32", I32, [self.helper.mask, ir.Constant(I1, 0)])
        )
        for position in range(self.access.count):
            there = self.pointer(self.b.add(host, ir.Constant(I64, position * self.access.size)))
            if self.access.kind == "load":
                value = self.b.load(there, align=1, typ=self.access.element)
                self.b.store(self.e.splat(value), self.helper.results[position])
            else:
                self.b.store(self.b.extract_element(self.helper.values[position], last), there, align=1)

    def count_request(self, amount: ir.Value, counter: str = "sectors") -> None:
        one = ir.Constant(I64, 1)
        self.e.add_field(Site, self.helper.site, "requests", one)
        self.e.add_field(Site, self.helper.site, counter, amount)
        useful = self.b.mul(self.active_lanes, ir.Constant(I64, self.access.bytes))
        self.e.add_field(Site, self.helper.site, "bytes", useful)


def _interleave(b: ir.IRBuilder, values: Sequence[ir.Value]) -> ir.Value:
    """{a, b, …} lane by lane: a0 b0 … a1 b1 …, for one, two or four vectors."""
    if len(values) == 1:
        return values[0]
    half = len(values) // 2
    evens, odds = _interleave(b, values[0::2]), _interleave(b, values[1::2])
    size = WARP_SIZE * half
    picks = [index for i in range(size) for index in (i, size + i)]
    return b.shuffle_vector(evens, odds, ir.Constant(vector(I32, 2 * size), [ir.Constant(I32, i) for i in picks]))


class _Global(_Way):
    """Storages in the global address space."""

    def build(self) -> None:
        if not self.access.is_atomic:
            self._short_ways()
        self._lane_by_lane()

    def _matches(self, low: ir.Value, high: ir.Value) -> ir.Value:
        """Whether [low, high) lies in the site's last storage."""
        above = self.b.icmp_unsigned(">=", low, self.e.load_field(Site, self.helper.site, "low"))
        below = self.b.icmp_unsigned("<=", high, self.e.load_field(Site, self.helper.site, "high"))
        return self.b.and_(above, below)

    def _resolve(self, low: ir.Value, size: ir.Value) -> ir.Value:
        """Makes the storage that holds the bytes the site's last one; the fault's kind, 0 where there is one."""
        write = ir.Constant(I64, 0 if self.access.kind == "load" else 1)
        return self.e.intrinsic("triptych.resolve", I64, [self.helper.context, self.helper.site, low, size, write])

    def _reachable(self, low: ir.Value, size: ir.Value) -> ir.Value:
        """Whether the bytes lie in one storage, which then is the site's last one."""
        found = self.e.variable(I1, self._matches(low, self.b.add(low, size)))
        with self.e.when(self.b.not_(self.e.get(found, I1)), likely=False):
            kind = self._resolve(low, size)
            self.b.store(self.b.icmp_unsigned("==", kind, ir.Constant(I64, 0)), found)
        return self.e.get(found, I1)

    def _host(self, address: ir.Value) -> ir.Value:
        return self.b.add(address, self.e.load_field(Site, self.helper.site, "delta"))

    def _touch(self, low: ir.Value, high: ir.Value) -> None:
        """Marks the 64-byte pairs of [low, high)."""
        touched = self.e.load_field(Site, self.helper.site, "touched")
        shift = ir.Constant(I64, PAIR_SHIFT)
        last = self.b.lshr(self.b.sub(high, ir.Constant(I64, 1)), shift)
        first = self.b.lshr(low, shift)
        with self.e.counted(self.b.add(self.b.sub(last, first), ir.Constant(I64, 1))) as i:
            self.b.store(ir.Constant(I8, 1), self.pointer(self.b.add(self.b.add(touched, first), i)))

    def _short_ways(self) -> None:
        bytes_ = ir.Constant(I64, self.access.bytes)
        with self.e.when(self.b.and_(self.is_contiguous(), self.is_aligned(self.first_address))):
            size = self.b.mul(self.active_lanes, bytes_)
            low = self.first_address
            with self.e.when(self._reachable(low, size)):
                self._contiguous(low, self.b.add(low, size))
        with (
            self.e.when(self.b.and_(self.is_uniform(), self.is_aligned(self.first_address))),
            self.e.when(self._reachable(self.first_address, bytes_)),
        ):
            self.count_request(ir.Constant(I64, 1))
            self._touch(self.first_address, self.b.add(self.first_address, bytes_))
            self.move_uniform(self._host(self.first_address))
            self._leave()

    def _leave(self) -> None:
        """The access is done; nothing more is emitted on this way."""
        self.b.branch(self.helper.done)
        self.b.position_at_end(self.e.block("unreached"))

    def _contiguous(self, low: ir.Value, high: ir.Value) -> None:
        shift = ir.Constant(I64, SECTOR_SHIFT)
        one = ir.Constant(I64, 1)
        last = self.b.lshr(self.b.sub(high, one), shift)
        sectors = self.b.add(self.b.sub(last, self.b.lshr(low, shift)), one)
        full = self.is_full()
        with self.e.when(full, likely=True):
            self.count_request(sectors)
            self._touch(low, high)
            self.move_contiguous(self._host(low))
            self._leave()
        if self.access.count == 1 and self.access.size >= 4:
            self.count_request(sectors)
            self._touch(low, high)
            before = self.b.mul(self.b.zext(self.first_lane, I64), ir.Constant(I64, self.access.bytes))
            self.move_masked(self.b.sub(self._host(low), before))
            self._leave()

    def _lane_by_lane(self) -> None:
        one, finish = self.stacked()
        place = self.e.variable(vector(I64), self.helper.addresses)
        sectors = SectorCount(self.e)
        bytes_ = ir.Constant(I64, self.access.bytes)
        with self.e.each_lane(self.helper.mask) as lane:
            address = self.b.load(self.e.offset(place, self.b.shl(lane, ir.Constant(I64, 3))), typ=I64)
            kind = self.e.variable(I64, ir.Constant(I64, 0))
            with self.e.when(self.b.not_(self._matches(address, self.b.add(address, bytes_))), likely=False):
                self.b.store(self._resolve(address, bytes_), kind)
            with self.e.when(self.b.not_(self.is_aligned(address)), likely=False):
                self.b.store(ir.Constant(I64, FaultKind.MISALIGNED), kind)
            code = self.e.get(kind, I64)
            with self.b.if_else(self.b.icmp_unsigned("==", code, ir.Constant(I64, 0)), likely=True) as (fine, bad):
                with fine:
                    one(lane, self._host(address))
                    sectors.add(lane, self.b.lshr(address, ir.Constant(I64, SECTOR_SHIFT)))
                    pair = self.b.lshr(address, ir.Constant(I64, PAIR_SHIFT))
                    touched = self.e.load_field(Site, self.helper.site, "touched")
                    self.b.store(ir.Constant(I8, 1), self.pointer(self.b.add(touched, pair)))
                with bad:
                    self.fault(code, lane, address)
        finish()
        self.count_request(sectors.total())


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


class _Windowed(_Way):
    """Spaces that are one piece of host memory: the block's shared memory, a lane's local memory."""

    fault_kind: int
    base_field: str
    size_field: str

    def __init__(self, helper: General) -> None:
        super().__init__(helper)
        self.size = self.e.load_field(Context, helper.context, self.size_field)

    def host_base(self, lane: ir.Value) -> ir.Value:
        return self.e.load_field(Context, self.helper.context, self.base_field)

    def inside(self, address: ir.Value, bytes_: ir.Value | int) -> ir.Value:
        amount = ir.Constant(I64, bytes_) if isinstance(bytes_, int) else bytes_
        end = self.b.add(address, amount)
        no_wrap = self.b.icmp_unsigned("<=", address, end)
        return self.b.and_(no_wrap, self.b.icmp_unsigned("<=", end, self.size))

    def count_lane(self, lane: ir.Value, address: ir.Value) -> None:
        """Counts what a lane's access adds to the request."""

    def close_count(self) -> None:
        """Counts the request."""
        self.count_request(ir.Constant(I64, 1), "sectors")

    def lane_by_lane(self) -> None:
        one, finish = self.stacked()
        place = self.e.variable(vector(I64), self.helper.addresses)
        with self.e.each_lane(self.helper.mask) as lane:
            address = self.b.load(self.e.offset(place, self.b.shl(lane, ir.Constant(I64, 3))), typ=I64)
            kind = self.e.variable(I64, ir.Constant(I64, 0))
            with self.e.when(self.b.not_(self.inside(address, self.access.bytes)), likely=False):
                self.b.store(ir.Constant(I64, self.fault_kind), kind)
            with self.e.when(self.b.not_(self.is_aligned(address)), likely=False):
                self.b.store(ir.Constant(I64, FaultKind.MISALIGNED), kind)
            code = self.e.get(kind, I64)
            with self.b.if_else(self.b.icmp_unsigned("==", code, ir.Constant(I64, 0)), likely=True) as (fine, bad):
                with fine:
                    one(lane, self.b.add(self.host_base(lane), address))
                    self.count_lane(lane, address)
                with bad:
                    self.fault(code, lane, address)
        finish()
        self.close_count()


class _Shared(_Windowed):
    """The block's shared memory, in banks."""

    fault_kind = FaultKind.SHARED_BOUNDS
    base_field = "shared"
    size_field = "shared_size"

    def build(self) -> None:
        self.banks = BankCount(self.e, self.access.bytes)
        self.lane_by_lane()

    def count_lane(self, lane: ir.Value, address: ir.Value) -> None:
        self.banks.add(lane, address)

    def close_count(self) -> None:
        wavefronts, conflicts = self.banks.totals()
        self.count_request(wavefronts)
        self.e.add_field(Site, self.helper.site, "conflicts", conflicts)


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


class _Local(_Windowed):
    """Each lane's own memory."""

    fault_kind = FaultKind.LOCAL_BOUNDS
    base_field = "local"
    size_field = "local_size"

    def build(self) -> None:
        self.lane_by_lane()

    def host_base(self, lane: ir.Value) -> ir.Value:
        base = super().host_base(lane)
        warp = self.e.load_field(Context, self.helper.context, "warp_index")
        thread = self.b.add(self.b.mul(warp, ir.Constant(I64, WARP_SIZE)), lane)
        return self.b.add(base, self.b.mul(thread, self.size))


class _Generic(_Way):
    """Generic addresses: the lanes are parted by window, and each part goes its space's way."""

    def build(self) -> None:
        shared = self._within(SHARED_WINDOW)
        local = self._within(LOCAL_WINDOW)
        rest = self.b.and_(self.helper.mask, self.b.not_(self.b.or_(shared, local)))
        for space, mask, window in (
            ("global", rest, 0),
            ("shared", shared, SHARED_WINDOW),
            ("local", local, LOCAL_WINDOW),
        ):
            with self.e.when(self.b.icmp_unsigned("!=", mask, ir.Constant(I32, 0))):
                self._call(space, mask, window)

    def _within(self, window: int) -> ir.Value:
        place = self.b.sub(self.helper.addresses, number(vector(I64), window))
        inside = self.b.icmp_unsigned("<", place, number(vector(I64), WINDOW_SIZE))
        return self.b.and_(self.e.bits(inside), self.helper.mask)

    def _call(self, space: str, mask: ir.Value, window: int) -> None:
        a = self.access
        other = Access(a.kind, space, a.size, a.count, a.is_float, a.is_signed)
        places = self.b.sub(self.helper.addresses, number(vector(I64), window))
        if other.address_type is I32:
            places = self.b.trunc(places, vector(I32))
        site = self.e.offset(self.helper.site, GENERIC_SITES.index(space) * Site.size())
        arguments = [self.helper.context, site, mask, places, *self.helper.values]
        given = self.e.intrinsic(other.name, other.result_type, arguments)
        chosen = self.e.from_bits(mask)
        for index, place in enumerate(self.helper.results):
            part = given if a.results == 1 else self.b.extract_value(given, index)
            old = self.e.get(place, vector(a.element))
            self.b.store(self.b.select(chosen, part, old), place)


def build_short_ways(access: Access, function: ir.Function, general: ir.Function) -> None:
    """Emits the helper itself: a full warp at neighbouring elements or at one; it hands anything else over."""
    e = Emitter(function)
    b = e.b
    context, site, mask, addresses, *values = function.args
    kind = addresses.type.element
    first = b.extract_element(addresses, ir.Constant(I32, 0))
    way = (_ShortGlobal if access.space == "global" else _ShortShared)(e, access, context, site, first)
    distance = b.sub(addresses, e.splat(first))
    aligned = b.icmp_unsigned("==", b.and_(first, ir.Constant(kind, access.bytes - 1)), ir.Constant(kind, 0))
    eligible = b.and_(b.icmp_unsigned("==", mask, ir.Constant(I32, -1)), aligned)
    check, check_same, other = e.block("full"), e.block("spread"), e.block("general")
    b.cbranch(eligible, check, other)
    wide = [number(vector(access.element), 0)] * access.results
    for start, pattern, size, counter, following in (
        (check, lanes(kind, access.bytes), WARP_SIZE * access.bytes, "neighbours", check_same),
        (check_same, number(vector(kind), 0), access.bytes, "same", other),
    ):
        b.position_at_end(start)
        fits, inside = e.block("fits"), e.block("inside")
        b.cbranch(e.all_lanes(b.icmp_unsigned("==", distance, pattern)), fits, following)
        b.position_at_end(fits)
        b.cbranch(way.reaches(size), inside, other)
        b.position_at_end(inside)
        place = way.enter(size, counter)
        loaded = (
            _move_run(b, access, place, values) if counter == "neighbours" else _move_same(e, access, place, values)
        )
        _return_all(b, access, loaded or wide)
    b.position_at_end(other)
    given = b.call(general, [context, site, mask, addresses, *values])
    if access.results:
        b.ret(given)
    else:
        b.ret_void()


class _ShortGlobal:
    """Global memory: inside the site's last storage, from a sector's start on."""

    def __init__(self, e: Emitter, access: Access, context: ir.Value, site: ir.Value, first: ir.Value) -> None:
        self.e, self.b, self.access, self.site, self.first = e, e.b, access, site, first

    def reaches(self, size: int) -> ir.Value:
        end = self.b.add(self.first, ir.Constant(I64, size))
        above = self.b.icmp_unsigned(">=", self.first, self.e.load_field(Site, self.site, "low"))
        below = self.b.icmp_unsigned("<=", end, self.e.load_field(Site, self.site, "high"))
        inside = self.b.and_(above, below)
        if size == self.access.bytes:
            return inside
        within = self.b.and_(self.first, ir.Constant(I64, (1 << SECTOR_SHIFT) - 1))
        return self.b.and_(inside, self.b.icmp_unsigned("==", within, ir.Constant(I64, 0)))

    def enter(self, size: int, counter: str) -> ir.Value:
        """Counts and marks; gives the host's place."""
        self.e.add_field(Site, self.site, counter, ir.Constant(I64, 1))
        touched = self.e.load_field(Site, self.site, "touched")
        shift = ir.Constant(I64, PAIR_SHIFT)
        pairs = max(size >> PAIR_SHIFT, 1)
        marks = number(vector(I8, pairs), 1) if pairs > 1 else ir.Constant(I8, 1)
        first = self.b.add(touched, self.b.lshr(self.first, shift))
        self.b.store(marks, self.b.inttoptr(first, POINTER), align=1)
        last = self.b.lshr(self.b.add(self.first, ir.Constant(I64, size - 1)), shift)
        self.b.store(ir.Constant(I8, 1), self.b.inttoptr(self.b.add(touched, last), POINTER))
        host = self.b.add(self.first, self.e.load_field(Site, self.site, "delta"))
        return self.b.inttoptr(host, POINTER)


class _ShortShared:
    """Shared memory."""

    def __init__(self, e: Emitter, access: Access, context: ir.Value, site: ir.Value, first: ir.Value) -> None:
        self.e, self.b, self.site = e, e.b, site
        self.context = context
        self.first = e.b.zext(first, I64)

    def reaches(self, size: int) -> ir.Value:
        end = self.b.add(self.first, ir.Constant(I64, size))
        return self.b.icmp_unsigned("<=", end, self.e.load_field(Context, self.context, "shared_size"))

    def enter(self, size: int, counter: str) -> ir.Value:
        """Counts; gives the host's place."""
        self.e.add_field(Site, self.site, counter, ir.Constant(I64, 1))
        base = self.b.inttoptr(self.e.load_field(Context, self.context, "shared"), POINTER)
        return self.e.offset(base, self.first)


def _move_run(b: ir.IRBuilder, access: Access, place: ir.Value, values: Sequence[ir.Value]) -> list[ir.Value]:
    """Loads or stores 32 · count neighbouring elements."""
    count, wide = access.count, vector(access.element, WARP_SIZE * access.count)
    if access.kind == "store":
        b.store(_interleave(b, values), place, align=1)
        return []
    whole = b.load(place, align=1, typ=wide)
    if count == 1:
        return [whole]
    undefined = ir.Constant(wide, ir.Undefined)
    picks = [[ir.Constant(I32, i * count + position) for i in range(WARP_SIZE)] for position in range(count)]
    return [b.shuffle_vector(whole, undefined, ir.Constant(vector(I32), pick)) for pick in picks]


def _move_same(e: Emitter, access: Access, place: ir.Value, values: Sequence[ir.Value]) -> list[ir.Value]:
    """All lanes load one place; of stores the last lane's value stays."""
    loaded: list[ir.Value] = []
    for position in range(access.count):
        there = e.offset(place, position * access.size)
        if access.kind == "load":
            loaded.append(e.splat(e.b.load(there, align=1, typ=access.element)))
        else:
            value = e.b.extract_element(values[position], ir.Constant(I32, WARP_SIZE - 1))
            e.b.store(value, there, align=1)
    return loaded


def _return_all(b: ir.IRBuilder, access: Access, values: Sequence[ir.Value]) -> None:
    if not access.results:
        b.ret_void()
    elif access.results == 1:
        b.ret(values[0])
    else:
        whole: ir.Value = ir.Constant(ir.LiteralStructType([value.type for value in values]), ir.Undefined)
        for index, value in enumerate(values):
            whole = b.insert_value(whole, value, index)
        b.ret(whole)


def require_inline(module: ir.Module, access: Access, way: str) -> ir.Function:
    """A shared access with a scalar address, to be inlined: `one` element for all lanes, or a `run` of neighbours.

    `(context, site, mask, address, values…)`; a load of `one` gives scalars. What is not simple goes to the helper.
    """
    name = f"{access.name}.{way}"
    known = module.globals.get(name)
    if known is not None:
        return known
    result = access.result_type
    if way == "one" and access.results:
        result = access.element if access.results == 1 else ir.LiteralStructType([access.element] * access.results)
    values = [vector(access.element)] * access.operands
    kind = ir.FunctionType(result, [POINTER, POINTER, I32, I32, *values])
    function = ir.Function(module, kind, name)
    function.linkage = "internal"
    function.attributes.add("alwaysinline")
    _build_inline(access, way, function)
    return function


def _build_inline(access: Access, way: str, function: ir.Function) -> None:
    e = Emitter(function)
    b = e.b
    context, site, mask, address, *operands = function.args
    size = access.bytes if way == "one" else WARP_SIZE * access.bytes
    short = _ShortShared(e, access, context, site, address)
    low = b.and_(address, ir.Constant(I32, access.bytes - 1))
    simple = b.and_(b.icmp_unsigned("==", low, ir.Constant(I32, 0)), b.icmp_unsigned("==", mask, ir.Constant(I32, -1)))
    simple = b.and_(simple, short.reaches(size))
    inside, other = e.block("inside"), e.block("other")
    b.cbranch(simple, inside, other)
    b.position_at_end(inside)
    place = short.enter(size, "same" if way == "one" else "neighbours")
    if way == "run":
        _return_all(b, access, _move_run(b, access, place, operands))
    else:
        _return_all(
            b,
            access,
            [b.load(e.offset(place, i * access.size), align=1, typ=access.element) for i in range(access.count)],
        )
    b.position_at_end(other)
    spread = e.splat(address) if way == "one" else b.add(e.splat(address), lanes(I32, access.bytes))
    given = e.intrinsic(access.name, access.result_type, [context, site, mask, spread, *operands])
    if not access.results:
        b.ret_void()
    elif way == "run":
        b.ret(given)
    else:
        first = e.count_trailing_zeros(mask)
        index = b.and_(first, ir.Constant(I32, WARP_SIZE - 1))
        parts = [given] if access.results == 1 else [b.extract_value(given, i) for i in range(access.results)]
        _return_all(b, access, [b.extract_element(part, index) for part in parts])


def needed_by(access: Access) -> tuple[Access, ...]:
    """The helpers that a helper calls."""
    if access.space != "generic":
        return ()
    a = access
    return tuple(
        Access(a.kind, space, a.size, a.count, a.is_float, a.is_signed) for space in ("global", "shared", "local")
    )
