"""Generic addresses: the lanes are parted by window, and each part is admitted as its space does."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from llvmlite import ir

from triptych.gpu.hardware import RANK_SHIFT, WINDOW_SIZE
from triptych.gpu.isa.spaces import CLUSTER, SHARED, Space
from triptych.gpu.lower.memory.admission.request import Admission, admit_name
from triptych.gpu.lower.primitives.emitter import I32, I64, Emitter, constant, number, vector
from triptych.gpu.lower.records import Site


def part_lanes(e: Emitter, space: Space, mask: ir.Value, addresses: ir.Value) -> Iterator[tuple[Space, ir.Value]]:
    """The lanes of `mask`, an i32, that reach for each of the spaces that a generic one has, in these spaces' order."""

    def within(part: Space) -> ir.Value:
        place = e.b.sub(addresses, number(vector(I64), part.window))
        names_no_block = part is SHARED and CLUSTER in space.reaches
        size = 1 << RANK_SHIFT if names_no_block else WINDOW_SIZE
        inside = e.b.icmp_unsigned("<", place, number(vector(I64), size))
        return e.b.and_(e.bits(inside), mask)

    inside = {part: within(part) for part in space.reaches if part.window}
    if CLUSTER in inside:  # which has the window of shared memory
        inside[CLUSTER] = e.b.and_(inside[CLUSTER], e.b.not_(inside[SHARED]))
    rest = e.b.and_(mask, e.b.not_(reduce(e.b.or_, inside.values())))
    return ((part, inside.get(part, rest)) for part in space.reaches)


class AdmitGeneric(Admission):
    """Has a site for each space, one behind the other."""

    def build(self) -> None:
        """See `Admission`."""
        b, r = self.b, self.request
        result = self.e.variable(I64, constant(0))
        there = self.e.variable(vector(I64))
        parts = part_lanes(self.e, r.space, r.mask, r.addresses)
        for position, (space, mask) in enumerate(parts):
            with self.e.when(b.icmp_unsigned("!=", mask, ir.Constant(I32, 0))):
                b.store(b.sub(r.addresses, number(vector(I64), space.window)), there)
                site = self.e.offset(r.site, position * Site.size())
                arguments = [r.context, site, mask, there, r.size, r.write]
                given = self.e.intrinsic(admit_name(space), I64, arguments)
                before = b.load(r.places, align=8, typ=vector(I64))
                hosts = self.e.get(there, vector(I64))
                b.store(b.select(self.e.from_bits(mask), hosts, before), r.places, align=8)
                is_whole = b.icmp_unsigned("==", mask, r.mask)
                known = b.select(is_whole, constant(-1), constant(0xFFFF_FFFF))  # the pattern is that of a part else
                b.store(b.or_(self.e.get(result, I64), b.and_(given, known)), result)
        b.ret(self.e.get(result, I64))
