"""The short ways: a full warp at neighbouring elements or at one, inside the storage of last time."""

from __future__ import annotations

from collections.abc import Mapping

from llvmlite import ir

from triptych.gpu.hardware import PAIR_BYTES, SECTOR_BYTES, WARP_SIZE
from triptych.gpu.isa.spaces import GENERIC, GENERIC_IN_CLUSTERS, GLOBAL, SHARED, Space
from triptych.gpu.lower.memory.access import PAIR_SHIFT, HelperAccess
from triptych.gpu.lower.memory.counts import mark_pairs
from triptych.gpu.lower.memory.moves import move_broadcast, move_contiguous, return_all
from triptych.gpu.lower.memory.windows import WINDOWS
from triptych.gpu.lower.primitives.emitter import I32, I64, POINTER, Emitter, lanes, number, vector
from triptych.gpu.lower.records import Context, Site


def build_short_ways(access: HelperAccess, function: ir.Function, general: ir.Function) -> None:
    """Emits the helper itself: a full warp at neighbouring elements or at one; it hands anything else over."""
    e = Emitter(function)
    b = e.b
    context, site, mask, addresses, *values = function.args
    kind = addresses.type.element
    first = b.extract_element(addresses, ir.Constant(I32, 0))
    way = SHORT_WAYS[access.space](e, access, context, site, first)
    distances, other = b.sub(addresses, e.splat(first)), e.block("other")
    aligned = b.icmp_unsigned("==", b.and_(first, ir.Constant(kind, access.bytes - 1)), ir.Constant(kind, 0))
    _go_on_if(e, b.and_(b.icmp_unsigned("==", mask, ir.Constant(I32, -1)), aligned), other)
    for pattern, size, counter, move in (
        (lanes(kind, access.bytes), WARP_SIZE * access.bytes, "contiguous", move_contiguous),
        (number(vector(kind), 0), access.bytes, "broadcast", move_broadcast),
    ):
        following = e.block("following")
        _go_on_if(e, e.all_lanes(b.icmp_unsigned("==", distances, pattern)), following)
        _go_on_if(e, way.reaches(size), other)
        return_all(b, access, move(e, access, [way.enter(size, counter)], values))
        b.position_at_end(following)
    b.branch(other)
    b.position_at_end(other)
    given = b.call(general, [context, site, mask, addresses, *values])
    if access.results:
        b.ret(given)
    else:
        b.ret_void()


def _go_on_if(e: Emitter, condition: ir.Value, otherwise: ir.Block) -> None:
    following = e.block("following")
    e.b.cbranch(condition, following, otherwise)
    e.b.position_at_end(following)


class _ShortGlobal:
    """Global memory: inside the site's last storage, from a sector's start on."""

    def __init__(self, e: Emitter, access: HelperAccess, context: ir.Value, site: ir.Value, first: ir.Value) -> None:
        """An access of a full warp whose lane 0 reaches for `first`."""
        self.e, self.b, self.access, self.first = e, e.b, access, first
        self.site = e.offset(site, access.space.sites.index(GLOBAL) * Site.size())

    def reaches(self, size: int) -> ir.Value:
        """Whether `size` bytes from there are the storage's."""
        end = self.b.add(self.first, ir.Constant(I64, size))
        # Signed: no storage lies in the upper half, where `end` could wrap around.
        above = self.b.icmp_signed(">=", self.first, self.e.load_field(Site, self.site, "low"))
        below = self.b.icmp_unsigned("<=", end, self.e.load_field(Site, self.site, "high"))
        inside = self.b.and_(above, below)
        if size == self.access.bytes:
            return inside
        within = self.b.and_(self.first, ir.Constant(I64, SECTOR_BYTES - 1))
        return self.b.and_(inside, self.b.icmp_unsigned("==", within, ir.Constant(I64, 0)))

    def enter(self, size: int, counter: str) -> ir.Value:
        """Counts and marks; gives the host's place."""
        self.e.add_field(Site, self.site, counter, ir.Constant(I64, 1))
        touched = self.e.load_field(Site, self.site, "touched")
        shift = ir.Constant(I64, PAIR_SHIFT)
        pairs = max(size // PAIR_BYTES, 1)
        mark_pairs(self.e, self.b.add(touched, self.b.lshr(self.first, shift)), pairs)
        last = self.b.lshr(self.b.add(self.first, ir.Constant(I64, size - 1)), shift)
        mark_pairs(self.e, self.b.add(touched, last))
        host = self.b.add(self.first, self.e.load_field(Site, self.site, "delta"))
        return self.b.inttoptr(host, POINTER)


class ShortShared:
    """Shared memory."""

    def __init__(self, e: Emitter, access: HelperAccess, context: ir.Value, site: ir.Value, first: ir.Value) -> None:
        """An access of a full warp whose lane 0 reaches for `first`."""
        self.e, self.b, self.site = e, e.b, site
        self.context = context
        self.window = WINDOWS[access.space]
        self.first = e.b.zext(first, I64)

    def reaches(self, size: int) -> ir.Value:
        """Whether `size` bytes from there are the block's."""
        end = self.b.add(self.first, ir.Constant(I64, size))
        return self.b.icmp_unsigned("<=", end, self.e.load_field(Context, self.context, self.window.size))

    def enter(self, size: int, counter: str) -> ir.Value:
        """Counts; gives the host's place."""
        self.e.add_field(Site, self.site, counter, ir.Constant(I64, 1))
        base = self.b.inttoptr(self.e.load_field(Context, self.context, self.window.base), POINTER)
        return self.e.offset(base, self.first)


SHORT_WAYS: Mapping[Space, type[_ShortGlobal | ShortShared]] = {
    GLOBAL: _ShortGlobal, SHARED: ShortShared, GENERIC: _ShortGlobal, GENERIC_IN_CLUSTERS: _ShortGlobal
}  # fmt: skip
"""The short way of each space that has one; of generic addresses those of storages take it, as no window holds one."""
