"""The bytes of each lane, once its place of the host is known, moved apart from those of the others."""

from __future__ import annotations

from llvmlite import ir

from triptych.gpu.isa.spaces import Space
from triptych.gpu.lower.memory.admission import admission_name
from triptych.gpu.lower.primitives.emitter import I32, I64, POINTER, Emitter, constant, vector


class LanePlaces:
    """An admitted request of so many bytes a lane; lanes that may not have theirs have a spare place instead."""

    def __init__(self, e: Emitter, space: Space, size: int) -> None:
        """Emits nothing but the memory: of the places, and of the spare one, which begins with zeros."""
        self.e, self.space, self.size = e, space, size
        self.kind = ir.IntType(8 * size)
        self.places = e.variable(vector(I64))
        self.spare = e.variable(self.kind, ir.Constant(self.kind, 0))

    def admit(self, context: ir.Value, site: ir.Value, mask: ir.Value, addresses: ir.Value, *, write: bool) -> None:
        """Emits the admission; where `mask` is empty, nothing is counted."""
        e, wide = self.e, vector(I64)
        e.b.store(addresses if addresses.type == wide else e.b.zext(addresses, wide), self.places)
        admitted = e.variable(I64, constant(0))
        with e.when(e.b.icmp_unsigned("!=", mask, ir.Constant(I32, 0)), likely=True):
            arguments = [context, site, mask, self.places, constant(self.size), constant(int(write))]
            e.b.store(e.intrinsic(admission_name(self.space, self.size), I64, arguments), admitted)
        lanes = e.b.trunc(e.get(admitted, I64), I32)
        with e.when(e.b.icmp_unsigned("!=", lanes, ir.Constant(I32, -1))):
            spare = e.splat(e.b.ptrtoint(self.spare, I64))
            e.b.store(e.b.select(e.from_bits(lanes), e.get(self.places, wide), spare), self.places)

    def place(self, lane: ir.Value | int) -> ir.Value:
        """A lane's place of the host; `lane` is an i64 where it is not known."""
        offset = 8 * lane if isinstance(lane, int) else self.e.b.shl(lane, constant(3))
        return self.e.b.inttoptr(self.e.b.load(self.e.offset(self.places, offset), typ=I64), POINTER)
