"""The primitives as code of kernels that asynccheck looks at: as they are, and what tells the check of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from llvmlite import ir

from triptych.gpu.isa.asynchronous.mbarrier_object import OPERATIONS, changes_mbarrier
from triptych.gpu.isa.binding import BoundInstruction
from triptych.gpu.isa.effects import Effect
from triptych.gpu.isa.spaces import ASYNCHRONOUS, CLUSTER, GENERIC, GENERIC_IN_CLUSTERS, SHARED, Space
from triptych.gpu.isa.types import ScalarType
from triptych.gpu.lower.memory import MATRIX_ROW_BYTES, HelperAccess
from triptych.gpu.lower.memory.matrices import ROWS
from triptych.gpu.lower.primitives.emitter import I32, I64, VOID, Emitter, constant, lanes, vector
from triptych.gpu.lower.primitives.machine import LlvmMachine
from triptych.gpu.lower.primitives.values import Value
from triptych.gpu.lower.watching.accesses import Looks
from triptych.gpu.lower.watching.bulk import LAND
from triptych.gpu.lower.watching.copies import AWAIT, BULK_GROUPS, COMMIT, COPY, GROUPS, TRACK
from triptych.gpu.lower.watching.layout import watched_name
from triptych.gpu.lower.watching.mbarriers import OBSERVE
from triptych.gpu.lower.watching.products import AWAIT_PRODUCTS, COMMIT_PRODUCTS
from triptych.gpu.lower.watching.records import HazardKind

_PLAIN = (Effect.NONE, Effect.LOAD, Effect.STORE, Effect.WARP, Effect.MULTIPLY, Effect.LOAD_MATRIX)
"""Behind these it is early enough to look at the accesses before them."""
_Look = Callable[[Looks, ir.Value, ir.Value, ir.Value, int, int], None]
_LOOKS: Mapping[Space, _Look] = {
    SHARED: Looks.look, CLUSTER: Looks.look, GENERIC: Looks.look_at_generic,
    GENERIC_IN_CLUSTERS: Looks.look_at_generic,
}  # fmt: skip
"""How accesses in a space are looked at, of which those in other blocks' shared memory are left out."""


class WatchingMachine(LlvmMachine):
    """Fulfils `Machine` as `LlvmMachine` does."""

    def __init__(self, e: Emitter, context: ir.Value, warp: ir.Value) -> None:
        """See `LlvmMachine`; at the start of a function."""
        super().__init__(e, context, warp)
        self.looks = Looks(e, context)
        self.effect = Effect.NONE
        self.landing: Value | None = None
        """Where the present instruction stores asynchronously."""
        self.tested: ir.Value | None = None
        """The addresses of the mbarriers at which it looks."""

    def symbol(self, name: str) -> str:
        """See `LlvmMachine`."""
        return watched_name(name)

    # Before and after instructions ------------------------------------------------------------------------------

    def begin(self, instruction: BoundInstruction, sources: Sequence[Value]) -> None:
        """See `LlvmMachine`."""
        self.effect, self.landing, self.tested = instruction.effect, None, None
        if instruction.effect not in _PLAIN:
            self.looks.flush()
        follow = _FOLLOWED.get(instruction.effect)
        if follow is not None:
            follow(self, instruction, sources)

    def end_block(self) -> None:
        """See `LlvmMachine`."""
        self.looks.flush()

    def finish(self, results: Sequence[Value]) -> None:
        """See `LlvmMachine`."""
        if self.effect is Effect.MBARRIER_TEST and self.tested is not None:
            ended = self.b.and_(self.e.bits(self.spread(results[0])), self.active)
            with self.e.when(self.b.icmp_unsigned("!=", ended, ir.Constant(I32, 0))):
                self.e.intrinsic(OBSERVE, VOID, [self.context, ended, self.tested])

    def _commit(self, kind: str) -> None:
        self.e.intrinsic(f"{COMMIT}.{kind}", VOID, [self.context, self.active])

    def _await(self, kind: str, newest: ir.Value) -> None:
        self.e.intrinsic(f"{AWAIT}.{kind}", VOID, [self.context, self.active, newest])

    def commit_group(self, instruction: BoundInstruction, sources: Sequence[Value]) -> None:
        """`cp.async.commit_group`."""
        self._commit(GROUPS)

    def await_group(self, instruction: BoundInstruction, sources: Sequence[Value]) -> None:
        """`cp.async.wait_group`."""
        self._await(GROUPS, self._scalar(sources[0]))

    def await_all(self, instruction: BoundInstruction, sources: Sequence[Value]) -> None:
        """`cp.async.wait_all`, which takes in what is in no group."""
        self._commit(GROUPS)
        self._await(GROUPS, ir.Constant(I32, 0))

    def commit_bulk(self, instruction: BoundInstruction, sources: Sequence[Value]) -> None:
        """`cp.async.bulk.commit_group`."""
        self._commit(BULK_GROUPS)

    def await_bulk(self, instruction: BoundInstruction, sources: Sequence[Value]) -> None:
        """`cp.async.bulk.wait_group`."""
        self._await(BULK_GROUPS, self._scalar(sources[0]))

    def commit_products(self, instruction: BoundInstruction, sources: Sequence[Value]) -> None:
        """`wgmma.commit_group`."""
        self.e.intrinsic(COMMIT_PRODUCTS, VOID, [self.context])

    def await_products(self, instruction: BoundInstruction, sources: Sequence[Value]) -> None:
        """`wgmma.wait_group`."""
        self.e.intrinsic(AWAIT_PRODUCTS, VOID, [self.context, constant(instruction.form.immediates[0])])

    def _scalar(self, value: Value) -> ir.Value:
        """A literal."""
        assert value.uniform, "literals are the same in all lanes"
        return value.ir

    # Memory -----------------------------------------------------------------------------------------------------

    def store(self, space: Space, t: ScalarType, address: Value, values: Sequence[Value]) -> None:
        """See `Machine`."""
        self.landing = address if space is ASYNCHRONOUS else None
        super().store(space, t, address, values)

    def atomic(
        self, space: Space, operation: str, t: ScalarType, address: Value, operands: Sequence[Value]
    ) -> Sequence[Value]:
        """See `Machine`."""
        self.landing = address if space is ASYNCHRONOUS else None
        return super().atomic(space, operation, t, address, operands)

    def _access(self, access: HelperAccess, address: Value, values: Sequence[ir.Value]) -> ir.Value:
        if access.kind in OPERATIONS:
            places = self._shared_places(address)
            if self.effect is Effect.MBARRIER_TEST:
                self.tested = places
            elif self.effect is Effect.MBARRIER_COPIES:
                self.e.intrinsic(TRACK, VOID, [self.context, self.active, places])
            return super()._access(replace(access, watched=changes_mbarrier(access.kind)), address, values)
        look = _LOOKS.get(access.space)
        if look is not None and self.landing is None:
            places = self._shared_places(address) if access.address_type == I32 else self.spread(address)
            self._look(look, self.active, places, access.bytes, writes=access.kind != "load")
        return super()._access(access, address, values)

    def _look(self, look: _Look, mask: ir.Value, places: ir.Value, size: int, *, writes: bool) -> None:
        assert self.site is not None, "a memory instruction has a site"
        look(self.looks, self.site, mask, places, size, HazardKind.WRITE if writes else HazardKind.READ)

    def _access_inline(
        self, access: HelperAccess, way: str, address: Value, values: Sequence[ir.Value] = ()
    ) -> list[ir.Value]:
        assert self.site is not None, "a memory instruction has a site"
        place = address.ir if address.ir.type == I32 else self._low_half(address.ir)
        step = access.bytes if way == "contiguous" else 0
        kind = HazardKind.READ if access.kind == "load" else HazardKind.WRITE
        self.looks.look_at_run(self.site, self.active, place, step, access.bytes, kind)
        return super()._access_inline(access, way, address, values)

    def copy_to_shared(self, size: int, target: Value, source: Value, source_size: Value) -> None:
        """See `Machine`."""
        assert self.site is not None, "a memory instruction has a site"
        places = self._shared_places(target)
        self.e.intrinsic(COPY, VOID, [self.context, self.site, self.active, places, constant(size)])
        super().copy_to_shared(size, target, source, source_size)

    def copy_tensor_map(self, target: Value, source: Value) -> None:
        """See `Machine`."""
        words = self.b.add(self._shared_places(source), lanes(I32, 4))
        self._look(Looks.look, self.active, words, 4, writes=False)
        super().copy_tensor_map(target, source)

    def complete(self, barrier: Value, amount: Value) -> None:
        """See `Machine`."""
        assert self.site is not None, "a memory instruction has a site"
        assert self.landing is not None, "what completes transactions has stored"
        places = [self.e.variable(vector(I64), self._wide_places(v)) for v in (self.landing, amount, barrier)]
        overlaps = constant(int(self.effect is Effect.REDUCTION_ASYNC))
        with self.e.each_lane(self.active) as lane:
            offset = self.b.shl(lane, constant(3))
            operands = [self.b.load(self.e.offset(values, offset), typ=I64) for values in places]
            self.e.intrinsic(LAND, VOID, [self.context, self.site, lane, *operands, overlaps])
        super().complete(barrier, amount)

    def load_matrix(self, address: Value, count: int, transposed: bool) -> Sequence[Value]:
        """See `Machine`."""
        self._look_at_rows(address, count, writes=False)
        return super().load_matrix(address, count, transposed)

    def store_matrix(self, address: Value, matrices: Sequence[Value], transposed: bool) -> None:
        """See `Machine`."""
        self._look_at_rows(address, len(matrices), writes=True)
        super().store_matrix(address, matrices, transposed)

    def _look_at_rows(self, address: Value, count: int, *, writes: bool) -> None:
        """Lanes name the rows of `count` matrices; the others' addresses are not used."""
        naming = self.b.and_(self.active, ir.Constant(I32, (1 << ROWS * count) - 1))
        self._look(Looks.look, naming, self._shared_places(address), MATRIX_ROW_BYTES, writes=writes)


_Follow = Callable[[WatchingMachine, BoundInstruction, Sequence[Value]], None]
_FOLLOWED: Mapping[Effect, _Follow] = {
    Effect.COMMIT_COPIES: WatchingMachine.commit_group,
    Effect.AWAIT_COPIES: WatchingMachine.await_group,
    Effect.AWAIT_ALL_COPIES: WatchingMachine.await_all,
    Effect.COMMIT_BULK: WatchingMachine.commit_bulk,
    Effect.AWAIT_BULK: WatchingMachine.await_bulk,
    Effect.COMMIT_PRODUCTS: WatchingMachine.commit_products,
    Effect.AWAIT_PRODUCTS: WatchingMachine.await_products,
}
"""What effects without a meaning tell the check."""
