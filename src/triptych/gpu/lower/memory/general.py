"""Any mask and any addresses: neighbouring lanes together where they allow it, else lane by lane."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce

from llvmlite import ir

from triptych.gpu.hardware import BANK_BYTES, LOCAL_ALIGNMENT, RANK_SHIFT, WARP_SIZE, WINDOW_SIZE
from triptych.gpu.isa.spaces import CLUSTER, GENERIC, GENERIC_IN_CLUSTERS, GLOBAL, LOCAL, SHARED, Space
from triptych.gpu.lower.clusters import LOCATE
from triptych.gpu.lower.emitter import I1, I32, I64, POINTER, VOID, Emitter, lanes, number, vector
from triptych.gpu.lower.memory.access import PAIR_SHIFT, SECTOR_SHIFT, HelperAccess
from triptych.gpu.lower.memory.atomics import update_element
from triptych.gpu.lower.memory.counts import BankCount, SectorCount, count_even_wavefronts, count_sectors, mark_pairs
from triptych.gpu.lower.memory.moves import move_contiguous, return_all
from triptych.gpu.lower.memory.windows import WINDOWS
from triptych.gpu.lower.records import Context, FaultKind, Site
from triptych.gpu.lower.services import RESOLVE, record_fault


class _Request:
    """A warp's request: what the function was given, and where its results go."""

    def __init__(self, access: HelperAccess, function: ir.Function) -> None:
        self.access = access
        self.e = Emitter(function)
        self.context, self.site, self.mask, addresses, *self.values = function.args
        wide = vector(I64)
        self.addresses = addresses if addresses.type == wide else self.e.b.zext(addresses, wide)
        self.results = [self.e.variable(vector(access.element)) for _ in range(access.results)]
        for place in self.results:
            self.e.b.store(number(vector(access.element), 0), place)
        self.done = self.e.block("done")


def build_general(access: HelperAccess, function: ir.Function) -> None:
    """Emits the function that takes any mask and any addresses."""
    request = _Request(access, function)
    e = request.e
    work = e.block("work")
    e.b.cbranch(e.b.icmp_unsigned("!=", request.mask, ir.Constant(I32, 0)), work, request.done)
    e.b.position_at_end(work)
    WAYS[access.space](request).build()
    e.b.branch(request.done)
    e.b.position_at_end(request.done)
    return_all(e.b, access, [e.get(place, vector(access.element)) for place in request.results])


class _Way(ABC):
    """What the spaces share: lane-by-lane and whole-warp accesses to host memory."""

    def __init__(self, request: _Request) -> None:
        self.request = request
        self.access = request.access
        self.e = request.e
        self.b = request.e.b
        self.first_lane = self.e.count_trailing_zeros(request.mask)
        self.first_address = self.b.extract_element(request.addresses, self.first_lane)
        self.inactive = self.b.not_(self.e.from_bits(request.mask))
        self.active_lanes = self.b.zext(self.e.count_ones(request.mask), I64)

    @abstractmethod
    def build(self) -> None:
        """Emits the access."""

    def is_contiguous(self) -> ir.Value:
        """Whether lane i reaches for the i-th element behind one place, and the active lanes have no gap."""
        scaled = self.b.mul(self.b.zext(self.first_lane, I64), ir.Constant(I64, self.access.bytes))
        origin = self.e.splat(self.b.sub(self.first_address, scaled))
        expected = self.b.add(origin, lanes(I64, self.access.bytes))
        same = self.b.or_(self.b.icmp_unsigned("==", self.request.addresses, expected), self.inactive)
        run = self.b.lshr(self.request.mask, self.first_lane)
        gapless = self.b.icmp_unsigned(
            "==", self.b.and_(run, self.b.add(run, ir.Constant(I32, 1))), ir.Constant(I32, 0)
        )
        return self.b.and_(self.e.all_lanes(same), gapless)

    def is_broadcast(self) -> ir.Value:
        """Whether all active lanes reach for one place."""
        origin = self.e.splat(self.first_address)
        same = self.b.or_(self.b.icmp_unsigned("==", self.request.addresses, origin), self.inactive)
        return self.e.all_lanes(same)

    def is_aligned(self, address: ir.Value) -> ir.Value:
        low = self.b.and_(address, ir.Constant(I64, self.access.bytes - 1))
        return self.b.icmp_unsigned("==", low, ir.Constant(I64, 0))

    def all_sound(self, low: ir.Value, high: ir.Value) -> ir.Value:
        """Whether all 32 lanes are active, and reach for aligned places inside [low, high)."""
        wide = vector(I64)
        room = self.b.sub(self.b.sub(high, low), ir.Constant(I64, self.access.bytes))
        offsets = self.b.sub(self.request.addresses, self.e.splat(low))
        inside = self.b.icmp_unsigned("<=", offsets, self.e.splat(room))
        odd = self.b.and_(self.request.addresses, number(wide, self.access.bytes - 1))
        sound = self.b.and_(inside, self.b.icmp_unsigned("==", odd, number(wide, 0)))
        some_room = self.b.icmp_signed(">=", room, ir.Constant(I64, 0))
        return self.b.and_(self.b.and_(self.is_full(), some_room), self.e.all_lanes(sound))

    @contextmanager
    def each_address(self) -> Generator[tuple[ir.Value, ir.Value]]:
        """Runs for all 32 lanes, ascending; gives the lane and its address, i64."""
        place = self.e.variable(vector(I64), self.request.addresses)
        with self.e.counted(ir.Constant(I64, WARP_SIZE)) as lane:
            yield lane, self.b.load(self.e.offset(place, self.b.shl(lane, ir.Constant(I64, 3))), typ=I64)

    def leave(self) -> None:
        """The access is done; nothing more is emitted on this way."""
        self.b.branch(self.request.done)
        self.b.position_at_end(self.e.block("unreached"))

    def is_full(self) -> ir.Value:
        return self.b.icmp_unsigned("==", self.request.mask, ir.Constant(I32, -1))

    def fault(self, kind: FaultKind | ir.Value, lane: ir.Value, address: ir.Value) -> None:
        size = ir.Constant(I64, self.access.bytes)
        site = self.request.site
        record_fault(self.e, self.request.context, kind, lane=lane, site=site, address=address, size=size)

    def pointer(self, address: ir.Value) -> ir.Value:
        return self.b.inttoptr(address, POINTER)

    # One lane ---------------------------------------------------------------------------------------------------

    def stacked(self) -> tuple[Callable[[ir.Value, ir.Value], None], Callable[[], None]]:
        """Ways to access one lane at a host address, and to hand over what was loaded."""
        element = vector(self.access.element)
        inputs = [self.e.variable(element, value) for value in self.request.values]
        outputs = [self.e.variable(element, number(element, 0)) for _ in self.request.results]

        def one(lane: ir.Value, host: ir.Value) -> None:
            index = self.b.mul(lane, ir.Constant(I64, self.access.size))
            if self.access.is_atomic:
                operands = [self.b.load(self.e.offset(place, index), typ=self.access.element) for place in inputs]
                for position, place in enumerate(outputs):
                    there = self.pointer(self.b.add(host, ir.Constant(I64, position * self.access.size)))
                    own = operands if self.access.kind == "cas" else operands[position : position + 1]
                    self.b.store(update_element(self.e, self.access, there, own), self.e.offset(place, index))
                return
            for position, place in enumerate(inputs or outputs):
                there = self.pointer(self.b.add(host, ir.Constant(I64, position * self.access.size)))
                here = self.e.offset(place, index)
                source, target = (here, there) if inputs else (there, here)
                self.b.store(self.b.load(source, align=1, typ=self.access.element), target, align=1)

        def finish() -> None:
            for place, result in zip(outputs, self.request.results, strict=True):
                self.b.store(self.e.get(place, element), result)

        return one, finish

    # A whole warp -----------------------------------------------------------------------------------------------

    def move_contiguous(self, host: ir.Value) -> None:
        """Loads or stores 32 · count neighbouring elements, `host` being lane 0's place."""
        loaded = move_contiguous(self.b, self.access, self.pointer(host), self.request.values)
        for value, result in zip(loaded, self.request.results, strict=False):
            self.b.store(value, result)

    def move_masked(self, host: ir.Value) -> None:
        """As `move_contiguous` for one element a lane and a partial mask."""
        kind, mask = vector(self.access.element), self.e.from_bits(self.request.mask)
        suffix = f"v{WARP_SIZE}i{8 * self.access.size}.p0"
        place, align = self.pointer(host), ir.Constant(I32, 1)
        if self.access.kind == "load":
            value = self.e.intrinsic(f"llvm.masked.load.{suffix}", kind, [place, align, mask, number(kind, 0)])
            self.b.store(value, self.request.results[0])
        else:
            self.e.intrinsic(f"llvm.masked.store.{suffix}", VOID, [self.request.values[0], place, align, mask])

    def move_broadcast(self, host: ir.Value) -> None:
        """All active lanes load one place; of stores the last lane's value stays."""
        above = self.e.intrinsic("llvm.ctlz.i32", I32, [self.request.mask, ir.Constant(I1, 0)])
        last = self.b.sub(ir.Constant(I32, WARP_SIZE - 1), above)
        for position in range(self.access.count):
            there = self.pointer(self.b.add(host, ir.Constant(I64, position * self.access.size)))
            if self.access.kind == "load":
                value = self.b.load(there, align=1, typ=self.access.element)
                self.b.store(self.e.splat(value), self.request.results[position])
            else:
                self.b.store(self.b.extract_element(self.request.values[position], last), there, align=1)

    def count_request(self, amount: ir.Value, counter: str = "sectors") -> None:
        one = ir.Constant(I64, 1)
        self.e.add_field(Site, self.request.site, "requests", one)
        self.e.add_field(Site, self.request.site, counter, amount)
        useful = self.b.mul(self.active_lanes, ir.Constant(I64, self.access.bytes))
        self.e.add_field(Site, self.request.site, "bytes", useful)


class _Global(_Way):
    """Storages in the global address space."""

    def build(self) -> None:
        if not self.access.is_atomic:
            self._short_ways()
            self._spread()
        self._lane_by_lane()

    def _matches(self, low: ir.Value, high: ir.Value) -> ir.Value:
        """Whether [low, high) lies in the site's last storage."""
        # Signed: no storage lies in the upper half, where `high` could wrap around.
        above = self.b.icmp_signed(">=", low, self.e.load_field(Site, self.request.site, "low"))
        below = self.b.icmp_unsigned("<=", high, self.e.load_field(Site, self.request.site, "high"))
        return self.b.and_(above, below)

    def _resolve(self, low: ir.Value, size: ir.Value) -> ir.Value:
        """Makes the storage that holds the bytes the site's last one; the fault's kind, 0 where there is one."""
        write = ir.Constant(I64, 0 if self.access.kind == "load" else 1)
        return self.e.intrinsic(RESOLVE, I64, [self.request.context, self.request.site, low, size, write])

    def _reachable(self, low: ir.Value, size: ir.Value) -> ir.Value:
        """Whether the bytes lie in one storage, which then is the site's last one."""
        found = self.e.variable(I1, self._matches(low, self.b.add(low, size)))
        with self.e.when(self.b.not_(self.e.get(found, I1)), likely=False):
            kind = self._resolve(low, size)
            self.b.store(self.b.icmp_unsigned("==", kind, ir.Constant(I64, 0)), found)
        return self.e.get(found, I1)

    def _host(self, address: ir.Value) -> ir.Value:
        return self.b.add(address, self.e.load_field(Site, self.request.site, "delta"))

    def _touch(self, low: ir.Value, high: ir.Value) -> None:
        """Marks the 64-byte pairs of [low, high)."""
        touched = self.e.load_field(Site, self.request.site, "touched")
        shift = ir.Constant(I64, PAIR_SHIFT)
        last = self.b.lshr(self.b.sub(high, ir.Constant(I64, 1)), shift)
        first = self.b.lshr(low, shift)
        with self.e.counted(self.b.add(self.b.sub(last, first), ir.Constant(I64, 1))) as i:
            mark_pairs(self.e, self.b.add(self.b.add(touched, first), i))

    def _short_ways(self) -> None:
        bytes_ = ir.Constant(I64, self.access.bytes)
        with self.e.when(self.b.and_(self.is_contiguous(), self.is_aligned(self.first_address))):
            size = self.b.mul(self.active_lanes, bytes_)
            low = self.first_address
            with self.e.when(self._reachable(low, size)):
                self._contiguous(low, self.b.add(low, size))
        with (
            self.e.when(self.b.and_(self.is_broadcast(), self.is_aligned(self.first_address))),
            self.e.when(self._reachable(self.first_address, bytes_)),
        ):
            self.count_request(ir.Constant(I64, 1))
            self._touch(self.first_address, self.b.add(self.first_address, bytes_))
            self.move_broadcast(self._host(self.first_address))
            self.leave()

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
            self.leave()
        if self.access.count == 1 and self.access.size >= 4:
            self.count_request(sectors)
            self._touch(low, high)
            before = self.b.mul(self.b.zext(self.first_lane, I64), ir.Constant(I64, self.access.bytes))
            self.move_masked(self.b.sub(self._host(low), before))
            self.leave()

    def _spread(self) -> None:
        """A full warp at any places of the site's last storage."""
        low, high = (self.e.load_field(Site, self.request.site, name) for name in ("low", "high"))
        with self.e.when(self.all_sound(low, high)):
            one, finish = self.stacked()
            touched, delta = (self.e.load_field(Site, self.request.site, name) for name in ("touched", "delta"))
            with self.each_address() as (lane, address):
                one(lane, self.b.add(address, delta))
                mark_pairs(self.e, self.b.add(touched, self.b.lshr(address, ir.Constant(I64, PAIR_SHIFT))))
            finish()
            self.count_request(count_sectors(self.e, self.request.addresses))
            self.leave()

    def _lane_by_lane(self) -> None:
        one, finish = self.stacked()
        place = self.e.variable(vector(I64), self.request.addresses)
        sectors = SectorCount(self.e)
        bytes_ = ir.Constant(I64, self.access.bytes)
        with self.e.each_lane(self.request.mask) as lane:
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
                    touched = self.e.load_field(Site, self.request.site, "touched")
                    mark_pairs(self.e, self.b.add(touched, pair))
                with bad:
                    self.fault(code, lane, address)
        finish()
        self.count_request(sectors.total())


class _Windowed(_Way):
    """Spaces that are one piece of host memory: the block's shared memory, a lane's local memory."""

    def __init__(self, request: _Request) -> None:
        super().__init__(request)
        self.window = WINDOWS[request.access.space]
        self.size = self.e.load_field(Context, request.context, self.window.size)

    def host_base(self, lane: ir.Value) -> ir.Value:
        return self.e.load_field(Context, self.request.context, self.window.base)

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
        place = self.e.variable(vector(I64), self.request.addresses)
        with self.e.each_lane(self.request.mask) as lane:
            address = self.b.load(self.e.offset(place, self.b.shl(lane, ir.Constant(I64, 3))), typ=I64)
            kind = self.e.variable(I64, ir.Constant(I64, 0))
            with self.e.when(self.b.not_(self.inside(address, self.access.bytes)), likely=False):
                self.b.store(ir.Constant(I64, self.window.fault), kind)
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

    def build(self) -> None:
        if not self.access.is_atomic and self.access.bytes <= BANK_BYTES:
            self._evenly_spaced()
        self.banks = BankCount(self.e, self.access.kind, self.access.bytes, self.request.mask, self.request.addresses)
        self.lane_by_lane()

    def _evenly_spaced(self) -> None:
        """A full warp whose lanes reach for words at equal distances: a column of a matrix, say."""
        first, second = (self.b.extract_element(self.request.addresses, ir.Constant(I32, i)) for i in (0, 1))
        step = self.b.sub(second, first)
        expected = self.b.add(self.e.splat(first), self.b.mul(self.e.splat(step), lanes(I64)))
        even = self.e.all_lanes(self.b.icmp_unsigned("==", self.request.addresses, expected))
        apart = self.b.icmp_unsigned("!=", step, ir.Constant(I64, 0))
        in_words = self.b.icmp_unsigned("==", self.b.and_(step, ir.Constant(I64, BANK_BYTES - 1)), ir.Constant(I64, 0))
        even = self.b.and_(even, self.b.and_(apart, in_words))
        with self.e.when(self.b.and_(even, self.all_sound(ir.Constant(I64, 0), self.size))):
            one, finish = self.stacked()
            base = self.host_base(ir.Constant(I64, 0))
            with self.each_address() as (lane, address):
                one(lane, self.b.add(base, address))
            finish()
            wavefronts = count_even_wavefronts(self.e, step)
            self.count_request(wavefronts)
            self.e.add_field(Site, self.request.site, "conflicts", self.b.sub(wavefronts, ir.Constant(I64, 1)))
            self.leave()

    def count_lane(self, lane: ir.Value, address: ir.Value) -> None:
        self.banks.add(lane, address)

    def close_count(self) -> None:
        wavefronts, conflicts = self.banks.totals()
        self.count_request(wavefronts)
        self.e.add_field(Site, self.request.site, "conflicts", conflicts)


class _Local(_Windowed):
    """Each lane's own memory."""

    def build(self) -> None:
        with self.e.when(self.all_sound(ir.Constant(I64, 0), self.size)):
            one, finish = self.stacked()
            first, stride = self.host_base(ir.Constant(I64, 0)), self._stride()
            with self.each_address() as (lane, address):
                one(lane, self.b.add(self.b.add(first, self.b.mul(lane, stride)), address))
            finish()
            self.close_count()
            self.leave()
        self.lane_by_lane()

    def _stride(self) -> ir.Value:
        """Bytes from a thread's memory to the next one's."""
        before = ir.Constant(I64, LOCAL_ALIGNMENT - 1)
        return self.b.and_(self.b.add(self.size, before), self.b.not_(before))

    def host_base(self, lane: ir.Value) -> ir.Value:
        base = super().host_base(lane)
        warp = self.e.load_field(Context, self.request.context, "warp_index")
        thread = self.b.add(self.b.mul(warp, ir.Constant(I64, WARP_SIZE)), lane)
        return self.b.add(base, self.b.mul(thread, self._stride()))


class _Cluster(_Way):
    """The shared memory of the cluster's blocks: an address names one, whose memory is looked up lane by lane."""

    def build(self) -> None:
        one, finish = self.stacked()
        place = self.e.variable(vector(I64), self.request.addresses)
        size = ir.Constant(I64, self.access.bytes)
        with self.e.each_lane(self.request.mask) as lane:
            address = self.b.load(self.e.offset(place, self.b.shl(lane, ir.Constant(I64, 3))), typ=I64)
            found = self.e.intrinsic(LOCATE, I64, [self.request.context, self.request.site, address, size])
            kind = self.b.select(self.is_aligned(address), found, ir.Constant(I64, FaultKind.MISALIGNED))
            with self.b.if_else(self.b.icmp_unsigned("==", kind, ir.Constant(I64, 0)), likely=True) as (fine, bad):
                with fine:
                    one(lane, self.e.load_field(Site, self.request.site, "delta"))
                with bad:
                    self.fault(kind, lane, address)
        finish()
        self.count_request(ir.Constant(I64, 1))


class _Generic(_Way):
    """Generic addresses: the lanes are parted by window, and each part goes its space's way."""

    def build(self) -> None:
        parts = self.access.space.reaches
        inside = {space: self._within(space) for space in parts if space.window}
        if CLUSTER in inside:  # which has the window of shared memory
            inside[CLUSTER] = self.b.and_(inside[CLUSTER], self.b.not_(inside[SHARED]))
        rest = self.b.and_(self.request.mask, self.b.not_(reduce(self.b.or_, inside.values())))
        for position, space in enumerate(parts):
            mask = inside.get(space, rest)
            with self.e.when(self.b.icmp_unsigned("!=", mask, ir.Constant(I32, 0))):
                self._call(position, space, mask)

    def _within(self, space: Space) -> ir.Value:
        place = self.b.sub(self.request.addresses, number(vector(I64), space.window))
        names_no_block = space is SHARED and CLUSTER in self.access.space.reaches
        size = 1 << RANK_SHIFT if names_no_block else WINDOW_SIZE
        inside = self.b.icmp_unsigned("<", place, number(vector(I64), size))
        return self.b.and_(self.e.bits(inside), self.request.mask)

    def _call(self, position: int, space: Space, mask: ir.Value) -> None:
        a = self.access
        other = replace(a, space=space)
        places = self.b.sub(self.request.addresses, number(vector(I64), space.window))
        if other.address_type != I64:
            places = self.b.trunc(places, vector(other.address_type))
        site = self.e.offset(self.request.site, position * Site.size())
        arguments = [self.request.context, site, mask, places, *self.request.values]
        given = self.e.intrinsic(other.name, other.result_type, arguments)
        chosen = self.e.from_bits(mask)
        for index, place in enumerate(self.request.results):
            part = given if a.results == 1 else self.b.extract_value(given, index)
            old = self.e.get(place, vector(a.element))
            self.b.store(self.b.select(chosen, part, old), place)


WAYS: Mapping[Space, type[_Way]] = {
    GLOBAL: _Global, SHARED: _Shared, CLUSTER: _Cluster, LOCAL: _Local, GENERIC: _Generic,
    GENERIC_IN_CLUSTERS: _Generic,
}  # fmt: skip
"""The way of each space that has helpers of its own."""
