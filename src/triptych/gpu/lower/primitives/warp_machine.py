"""The primitives among the lanes of a warp as LLVM code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llvmlite import ir

from triptych.gpu.isa.tensor.fragments import Product
from triptych.gpu.isa.types import F32, U32, ScalarType
from triptych.gpu.lower.primitives.emitter import I32, I64, VOID, Emitter, constant, number, vector
from triptych.gpu.lower.primitives.floating import FloatMachine
from triptych.gpu.lower.primitives.values import Value
from triptych.gpu.lower.records import MisuseKind
from triptych.gpu.lower.scheduling.services import MISUSE
from triptych.gpu.lower.tensor.staging import StagedTiles

SHUFFLE, EXCHANGE = "triptych.shuffle", "triptych.exchange"
"""Helpers (`shuffle.py`)."""
_IDENTITIES: Mapping[str, int] = {
    "add": 0, "or": 0, "xor": 0, "and": -1, "umin": -1, "umax": 0, "smin": 0x7FFF_FFFF, "smax": -0x8000_0000,
}  # fmt: skip
"""What leaves a reduction of 32 bits as it is, by LLVM's name of it."""


class WarpMachine(FloatMachine):
    """What lanes do among each other.

    The kernel's lowering sets, before each instruction, which lanes are active (`active`, an i32), and where the first
    `Misuse` of one that names lanes is kept (`misuse`).
    """

    def __init__(self, e: Emitter, context: ir.Value) -> None:
        """Emits with `e`; `context` points to the worker's."""
        super().__init__(e)
        self.context = context
        self.active: ir.Value = ir.Constant(I32, -1)
        self.misuse: ir.Value | None = None
        self.tiles = StagedTiles(self.e)

    def lane_index(self) -> Value:
        """See `Machine`."""
        return Value(ir.Constant(I32, 0), False, 1)

    def active_mask(self) -> Value:
        """See `Machine`."""
        return Value(self.active, True)

    def ballot(self, predicate: Value) -> Value:
        """See `Machine`."""
        return Value(self.b.and_(self.e.bits(self.spread(predicate)), self.active), True)

    # Values of other lanes --------------------------------------------------------------------------------------

    def shuffle(self, t: ScalarType, a: Value, source_lane: Value) -> Value:
        """See `Machine`."""
        if a.uniform:
            return a
        if source_lane.uniform:
            return Value(self.b.extract_element(self.spread(a), source_lane.ir), True)
        values, lanes = self.spread(a), self.spread(source_lane)
        if t.bits < 64:
            return Value(self.e.intrinsic(SHUFFLE, vector(I32), [values, lanes]), False)
        shift = number(vector(I64), 32)
        halves = (self.b.trunc(part, vector(I32)) for part in (values, self.b.lshr(values, shift)))
        parts = (self.e.intrinsic(SHUFFLE, vector(I32), [half, lanes]) for half in halves)
        low, high = (self.b.zext(part, vector(I64)) for part in parts)
        return Value(self.b.or_(low, self.b.shl(high, shift)), False)

    def exchange(self, t: ScalarType, a: Value, source_lane: Value, mask: Value) -> Value:
        """See `Machine`; where all lanes are active and in the mask, there is nothing to look at."""
        if mask.uniform and not (a.uniform or source_lane.uniform):
            assert self.misuse is not None, "an instruction that names lanes has a place for its misuses"
            vectors = [self.spread(a), self.spread(source_lane)]
            given = [self.context, self.misuse, self.active, mask.ir, *vectors]
            return Value(self.e.intrinsic(EXCHANGE, vector(I32), given), False)
        shuffled = self.spread(self.shuffle(t, a, source_lane))
        result = self.e.variable(shuffled.type, shuffled)
        if mask.uniform:
            full = self.b.icmp_unsigned("==", self.b.and_(self.active, mask.ir), ir.Constant(I32, -1))
            with self.e.when(self.b.not_(full), likely=False):
                self.drop_absent(shuffled, result, source_lane, mask)
        else:
            self.drop_absent(shuffled, result, source_lane, mask)
        value = self.e.get(result, shuffled.type)
        if a.uniform and source_lane.uniform and mask.uniform:
            return Value(self.b.extract_element(value, ir.Constant(I32, 0)), True)
        return Value(value, False)

    def drop_absent(self, shuffled: ir.Value, result: ir.Value, source_lane: Value, mask: Value) -> None:
        """What comes from lanes that are not active becomes 0; a lane that reads one that takes no part is told."""
        sources, active = self.spread(source_lane), Value(self.active, True)
        named = self._has_lane(self._apply(self.b.and_, mask, active), source_lane)
        absent = self.b.and_(self.b.not_(self.e.bits(named)), self.active)
        with self.e.when(self.b.icmp_unsigned("!=", absent, ir.Constant(I32, 0)), likely=False):
            kept = self.b.select(self._has_lane(active, source_lane), shuffled, number(shuffled.type, 0))
            self.b.store(kept, result)
            self._note(MisuseKind.SOURCE, absent, sources)

    def _has_lane(self, lanes: Value, lane: Value) -> ir.Value:
        """Whether sets of lanes hold a lane each, a <32 x i1>."""
        bit = self._apply(self.b.and_, self._apply(self.b.lshr, lanes, lane), self.constant(U32, 1))
        return self.spread(self.compare(U32, "ne", bit, self.constant(U32, 0)))

    # Misuses ----------------------------------------------------------------------------------------------------

    def check_member(self, mask: Value) -> None:
        """Tells of active lanes that their own mask does not name."""
        if mask.uniform:
            if isinstance(mask.ir, ir.Constant) and mask.ir.constant == 0xFFFF_FFFF:
                return
            named = mask.ir
        else:
            named = self.e.bits(self._has_lane(mask, self.lane_index()))
        outside = self.b.and_(self.active, self.b.not_(named))
        with self.e.when(self.b.icmp_unsigned("!=", outside, ir.Constant(I32, 0)), likely=False):
            self._note(MisuseKind.OUTSIDE, outside, number(vector(I32), 0))

    def _note(self, kind: MisuseKind, lanes: ir.Value, sources: ir.Value) -> None:
        assert self.misuse is not None, "an instruction that names lanes has a place for its misuses"
        self.e.intrinsic(MISUSE, VOID, [self.context, self.misuse, constant(kind), lanes, sources])

    # Matrices ---------------------------------------------------------------------------------------------------

    def multiply_matrices(self, product: Product, registers: Sequence[Value]) -> Sequence[Value]:
        """See `Machine`."""
        factors = product.a.registers + product.b.registers
        # A sum that is no number makes another, whatever its bits.
        sums = self.lanes_of if product.c.element is F32 else self.spread
        lanes = [self.spread(value) for value in registers[:factors]] + [sums(value) for value in registers[factors:]]
        given = self.tiles.multiply(product, lanes)
        return [Value(register, False) for register in given]

    # Reductions -------------------------------------------------------------------------------------------------

    def reduce(self, t: ScalarType, operation: str, a: Value, mask: Value) -> Value:
        """See `Machine`; lanes with one mask together."""
        if operation in ("min", "max"):
            operation = f"{'s' if t.is_signed else 'u'}{operation}"
        values = self.spread(a)
        if mask.uniform:
            return Value(self._reduce_members(operation, values, self.b.and_(self.active, mask.ir)), True)
        masks = self.spread(mask)
        left, result = self.e.variable(I32, self.active), self.e.variable(values.type, number(values.type, 0))
        head, body, done = self.e.block("groups"), self.e.block("group"), self.e.block("grouped")
        self.b.branch(head)
        self.b.position_at_end(head)
        rest = self.e.get(left, I32)
        self.b.cbranch(self.b.icmp_unsigned("!=", rest, ir.Constant(I32, 0)), body, done)
        self.b.position_at_end(body)
        named = self.b.extract_element(masks, self.e.count_trailing_zeros(rest))
        same = self.b.icmp_unsigned("==", masks, self.e.splat(named))
        total = self.e.splat(self._reduce_members(operation, values, self.b.and_(self.active, named)))
        self.b.store(self.b.select(same, total, self.e.get(result, values.type)), result)
        self.b.store(self.b.and_(rest, self.b.not_(self.e.bits(same))), left)
        self.b.branch(head)
        self.b.position_at_end(done)
        return Value(self.e.get(result, values.type), False)

    def _reduce_members(self, operation: str, values: ir.Value, members: ir.Value) -> ir.Value:
        others = number(values.type, _IDENTITIES[operation] & 0xFFFF_FFFF)
        chosen = self.b.select(self.e.from_bits(members), values, others)
        return self.e.intrinsic(f"llvm.vector.reduce.{operation}.v32i32", I32, [chosen])
