"""The instruction table's primitives as LLVM code over vectors of 32 lanes, or over scalars where all lanes agree."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from triptych.core.errors import UnsupportedInstruction
from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.isa.asynchronous.bulk_copy import BulkCopy
from triptych.gpu.isa.asynchronous.mbarrier_object import elements_of, is_one_answer
from triptych.gpu.isa.binding import BoundInstruction
from triptych.gpu.isa.spaces import PARAM, Space
from triptych.gpu.isa.tensor.matrix_descriptors import MOST_REGISTERS, GroupProduct
from triptych.gpu.isa.types import TYPES, U32, U64, ScalarType
from triptych.gpu.lower.asynchronous.bulk_copies import bulk_name
from triptych.gpu.lower.asynchronous.mbarrier import COMPLETE
from triptych.gpu.lower.asynchronous.tensor_copies import MAP_WORD, STORED_WORD, tensor_copy_code, tensor_copy_name
from triptych.gpu.lower.memory import (
    HelperAccess,
    atomic_access,
    copy_name,
    emit_broadcast_call,
    emit_inline,
    load_matrix_name,
    load_matrix_result,
    store_matrix_name,
    ways_of,
)
from triptych.gpu.lower.primitives.emitter import I1, I32, I64, POINTER, VOID, Emitter, lanes, number, vector
from triptych.gpu.lower.primitives.values import Value, element_type, signed_value
from triptych.gpu.lower.primitives.warp_machine import WarpMachine
from triptych.gpu.lower.records import Context, Site
from triptych.gpu.lower.scheduling.clusters import block_rank
from triptych.gpu.lower.tensor.wgmma import group_name
from triptych.gpu.tensor_map import MOST_AXES, TensorCopy


class LlvmMachine(WarpMachine):
    """Fulfils `Machine` for code that is being emitted.

    The kernel's lowering sets, before each instruction, which memory site is the instruction's (`site`), and what
    `WarpMachine` wants.
    """

    def __init__(self, e: Emitter, context: ir.Value, warp: ir.Value) -> None:
        """Emits with `e`; `context` and `warp` point to the structures of `records`."""
        super().__init__(e, context)
        self.warp = warp
        self.site: ir.Value | None = None
        self.parameter_bytes = 0
        self.stack_start = 0
        self.homes: dict[str, ir.Value] = {}
        """Where registers of matrices are handed over in memory."""

    def symbol(self, name: str) -> str:
        """The symbol of the variant of a helper that the kernel calls."""
        return name

    def begin(self, instruction: BoundInstruction, sources: Sequence[Value]) -> None:
        """Called before the meaning of each instruction."""

    def finish(self, results: Sequence[Value]) -> None:
        """Called behind it."""

    def end_block(self) -> None:
        """Called behind the last instruction of a block, before what chooses the next."""

    # Integers ---------------------------------------------------------------------------------------------------

    def add(self, t: ScalarType, a: Value, b: Value) -> Value:
        """See `Machine`."""
        a, b = self.settled(a), self.settled(b)
        left, right = self._stride_of(a), self._stride_of(b)
        if left is None or right is None or not (left or right):
            return self._apply(self.b.add, a, b)
        return self._affine(t, self.b.add(a.ir, b.ir), left + right)

    def sub(self, t: ScalarType, a: Value, b: Value) -> Value:
        """See `Machine`."""
        a, b = self.settled(a), self.settled(b)
        left, right = self._stride_of(a), self._stride_of(b)
        if left is None or right is None or not (left or right):
            return self._apply(self.b.sub, a, b)
        return self._affine(t, self.b.sub(a.ir, b.ir), left - right)

    def mul(self, t: ScalarType, a: Value, b: Value) -> Value:
        """See `Machine`."""
        for value, factor in ((a, b), (b, a)):
            if value.stride and factor.uniform and isinstance(factor.ir, ir.Constant):
                return self._affine(t, self.b.mul(value.ir, factor.ir), value.stride * signed_value(factor.ir))
        return self._apply(self.b.mul, a, b)

    def divide(self, t: ScalarType, a: Value, b: Value) -> Value:
        """See `Machine`."""
        zero = self.compare(t, "eq", b, self.constant(t, 0))
        ones = self.constant(t, -1)
        if not t.is_signed:
            safe = self.select(t, zero, self.constant(t, 1), b)
            return self.select(t, zero, ones, self._apply(self.b.udiv, a, safe))
        negated = self.compare(t, "eq", b, ones)  # x86 traps on the smallest integer / -1
        safe = self.select(t, self._apply(self.b.or_, zero, negated), self.constant(t, 1), b)
        quotient = self._apply(self.b.sdiv, a, safe)
        quotient = self.select(t, negated, self.sub(t, self.constant(t, 0), a), quotient)
        return self.select(t, zero, ones, quotient)

    def remainder(self, t: ScalarType, a: Value, b: Value) -> Value:
        """See `Machine`."""
        zero = self.compare(t, "eq", b, self.constant(t, 0))
        unsafe = zero
        if t.is_signed:
            unsafe = self._apply(self.b.or_, zero, self.compare(t, "eq", b, self.constant(t, -1)))
        safe = self.select(t, unsafe, self.constant(t, 1), b)
        rest = self._apply(self.b.srem if t.is_signed else self.b.urem, a, safe)
        return self.select(t, zero, self.constant(t, -1), rest)

    def bit_and(self, t: ScalarType, a: Value, b: Value) -> Value:
        """See `Machine`."""
        return self._apply(self.b.and_, a, b)

    def bit_or(self, t: ScalarType, a: Value, b: Value) -> Value:
        """See `Machine`."""
        return self._apply(self.b.or_, a, b)

    def bit_xor(self, t: ScalarType, a: Value, b: Value) -> Value:
        """See `Machine`."""
        return self._apply(self.b.xor, a, b)

    def shift_left(self, t: ScalarType, a: Value, amount: Value) -> Value:
        """See `Machine`."""
        if a.stride and amount.uniform and isinstance(amount.ir, ir.Constant):
            return self._affine(t, self.b.shl(a.ir, amount.ir), a.stride << amount.ir.constant)
        return self._apply(self.b.shl, a, amount)

    def shift_right(self, t: ScalarType, a: Value, amount: Value) -> Value:
        """See `Machine`."""
        return self._apply(self.b.ashr if t.is_signed else self.b.lshr, a, amount)

    def count_ones(self, t: ScalarType, a: Value) -> Value:
        """See `Machine`."""
        return self._intrinsic("ctpop", ir.IntType(t.bits), a)

    def count_leading_zeros(self, t: ScalarType, a: Value) -> Value:
        """See `Machine`."""
        return self._intrinsic("ctlz", ir.IntType(t.bits), a, extra=[ir.Constant(I1, 0)])

    def reverse_bits(self, t: ScalarType, a: Value) -> Value:
        """See `Machine`."""
        return self._intrinsic("bitreverse", ir.IntType(t.bits), a)

    # Memory -----------------------------------------------------------------------------------------------------

    def load(self, space: Space, t: ScalarType, address: Value, count: int) -> Sequence[Value]:
        """See `Machine`."""
        if space is PARAM:
            return self._load_parameter(t, address, count)
        access = HelperAccess("load", space.helper, t.bytes, count)
        if address.uniform and "broadcast" in ways_of(access):
            parts = self._access_inline(access, "broadcast", address)
            return [self.bitcast(_bits_type(t), t, Value(p, True)) for p in parts]
        way = self._way_inside(access, address)
        if way is not None:
            parts = self._access_inline(access, way, address)
        else:
            parts = self._parts(self._access(access, address, ()), count)
        bits = ir.IntType(t.bits)
        return [
            Value(p if element_type(t) == bits else self.b.bitcast(p, vector(element_type(t))), False) for p in parts
        ]

    def _way_inside(self, access: HelperAccess, address: Value) -> str | None:
        """The way that stands inside the kernel of lanes known to reach for neighbours, or for one offset of theirs."""
        if self.e.is_brief:
            return None
        ways = ways_of(access)
        if "contiguous" in ways and address.stride == access.bytes and address.ir.type == I32:
            return "contiguous"
        return "row" if "row" in ways and address.uniform else None

    def _parts(self, given: ir.Value, count: int) -> list[ir.Value]:
        return [given] if count == 1 else [self.b.extract_value(given, i) for i in range(count)]

    def _access_inline(
        self, access: HelperAccess, way: str, address: Value, values: Sequence[ir.Value] = ()
    ) -> list[ir.Value]:
        """An access whose lanes are known to reach for places that lie in one of `ways_of`."""
        assert self.site is not None, "a memory instruction has a site"
        place = address.ir
        if access.address_type == I32 != place.type:
            place = self._low_half(place)
        arguments = (self.context, self.site, self.active, place)
        if self.e.is_brief and way == "broadcast":
            return emit_broadcast_call(self.e, access, arguments)
        return emit_inline(self.e, access, way, arguments, values)

    def _load_parameter(self, t: ScalarType, address: Value, count: int) -> Sequence[Value]:
        first = address.ir.constant if isinstance(address.ir, ir.Constant) else None
        if first is None or first + t.bytes * count > self.parameter_bytes:  # a register's: a fault once it is reached
            return self._load_computed_parameter(t, address, count)
        base = self.e.at_entry("parameters", self._parameters)
        places = (self.e.offset(base, first + position * t.bytes) for position in range(count))
        return [Value(self.b.load(place, align=1, typ=element_type(t)), True) for place in places]

    def _parameters(self) -> ir.Value:
        return self.b.inttoptr(self.e.load_field(Context, self.context, "parameters"), POINTER)

    def _load_computed_parameter(self, t: ScalarType, address: Value, count: int) -> Sequence[Value]:
        """A parameter at a register's address, checked as global memory is; uniform where the address is."""
        window = Value(number(vector(I64), PARAM.window), False)
        loaded = self.load(PARAM.helper, t, self._apply(self.b.add, address, window), count)
        if not address.uniform:
            return loaded
        first = self.e.count_trailing_zeros(self.active)
        return [Value(self.b.extract_element(value.ir, first), True) for value in loaded]

    def store(self, space: Space, t: ScalarType, address: Value, values: Sequence[Value]) -> None:
        """See `Machine`."""
        if space is PARAM:
            raise UnsupportedInstruction("st.param writes a kernel's parameter, which is read-only")
        access = HelperAccess("store", space.helper, t.bytes, len(values))
        bits = [self._as_bits(t, v) for v in values]
        way = self._way_inside(access, address)
        if way is not None:
            self._access_inline(access, way, address, bits)
        else:
            self._access(access, address, bits)

    def atomic(
        self, space: Space, operation: str, t: ScalarType, address: Value, operands: Sequence[Value]
    ) -> Sequence[Value]:
        """See `Machine`."""
        count = elements_of(operation, len(operands))
        access = atomic_access(operation, space.helper, t, count)
        old = self._access(access, address, [self._as_bits(t, v) for v in operands])
        if is_one_answer(operation, (a.uniform for a in (address, *operands))):
            first = self.b.and_(self.e.count_trailing_zeros(self.active), ir.Constant(I32, WARP_SIZE - 1))
            return [Value(self.b.extract_element(old, first), True)]
        return [self.bitcast(_bits_type(t), t, Value(part, False)) for part in self._parts(old, count)]

    def _as_bits(self, t: ScalarType, value: Value) -> ir.Value:
        wide = self.spread(value)
        return wide if isinstance(wide.type.element, ir.IntType) else self.b.bitcast(wide, vector(ir.IntType(t.bits)))

    def _access(self, access: HelperAccess, address: Value, values: Sequence[ir.Value]) -> ir.Value:
        assert self.site is not None, "a memory instruction has a site"
        places = self._shared_places(address) if access.address_type == I32 else self.spread(address)
        arguments = [self.context, self.site, self.active, places, *values]
        return self.e.intrinsic(access.name, access.result_type, arguments)

    def _shared_places(self, address: Value) -> ir.Value:
        places = self.spread(address)
        return places if places.type.element == I32 else self._low_half(places)

    def _low_half(self, places: ir.Value) -> ir.Value:
        """Addresses of 32 bits; what lies beyond them stays out of bounds, and as far aligned as it was."""
        is_vector = isinstance(places.type, ir.VectorType)
        short = vector(I32) if is_vector else I32
        beyond = self.b.icmp_unsigned(">", places, number(places.type, 0xFFFF_FFFF))
        low = self.b.trunc(places, short)
        return self.b.select(beyond, self.b.or_(low, number(short, 0xFFFF_FFF0)), low)

    def copy_to_shared(self, size: int, target: Value, source: Value, source_size: Value) -> None:
        """See `Machine`."""
        assert self.site is not None, "a memory instruction has a site"
        places, sizes = self._shared_places(target), self.spread(source_size)
        arguments = [self.context, self.site, self.active, places, self.spread(source), sizes]
        self.e.intrinsic(copy_name(size), VOID, arguments)

    def copy_bulk(
        self, copy: BulkCopy, target: Value, source: Value, size: Value, barrier: Value, blocks: Value
    ) -> None:
        """See `Machine`."""
        assert self.site is not None, "a memory instruction has a site"
        places = (self._wide_places(place) for place in (target, source))
        rest = (self.spread(size), self._wide_places(barrier), self.spread(blocks))
        self.e.intrinsic(self.symbol(bulk_name(copy)), VOID, [self.context, self.site, self.active, *places, *rest])

    def _wide_places(self, address: Value) -> ir.Value:
        """Addresses of 64 bits."""
        places = self.spread(address)
        return places if places.type.element == I64 else self.b.zext(places, vector(I64))

    def copy_tensor(
        self,
        copy: TensorCopy,
        tensor_map: Value,
        coordinates: Sequence[Value],
        shared: Value,
        offsets: Sequence[Value],
        barrier: Value | None,
        blocks: Value | None,
    ) -> None:
        """See `Machine`."""
        assert self.site is not None, "a memory instruction has a site"
        nothing, nowhere = self.constant(U32, 0), self.constant(U64, 0)
        places = [self._wide_places(place or nowhere) for place in (tensor_map, shared, barrier)]
        numbers = (*coordinates, *[nothing] * (MOST_AXES - len(coordinates)))
        steps = (*offsets, *[nothing] * (MOST_AXES - 2 - len(offsets)))
        rest = [self.spread(value) for value in (*numbers, *steps, blocks or nothing)]
        how = ir.Constant(I64, tensor_copy_code(copy))
        arguments = [self.context, self.site, self.active, how, *places, *rest]
        self.e.intrinsic(self.symbol(tensor_copy_name(copy.operation)), VOID, arguments)

    def copy_tensor_map(self, target: Value, source: Value) -> None:
        """See `Machine`."""
        assert self.site is not None, "a memory instruction has a site"
        shared, apart = self._shared_places(source), lanes(I32, MAP_WORD.bytes)
        request = [self.context, self.site, self.active, self.b.add(shared, apart)]
        words = self.e.intrinsic(MAP_WORD.name, MAP_WORD.result_type, request)
        places = self.b.add(self._wide_places(target), lanes(I64, MAP_WORD.bytes))
        there = [self.context, self.e.offset(self.site, Site.size()), self.active, places, words]
        self.e.intrinsic(STORED_WORD.name, VOID, there)

    def move_address(self, address: Value, distance: int) -> Value:
        """See `Machine`."""
        kind = address.ir.type.element if isinstance(address.ir.type, ir.VectorType) else address.ir.type
        t = U32 if kind == I32 else U64
        return self.add(t, address, self.constant(t, distance)) if distance else address

    def complete(self, barrier: Value, amount: Value) -> None:
        """See `Machine`."""
        assert self.site is not None, "a memory instruction has a site"
        addresses, amounts = (self.e.variable(vector(I64), self._wide_places(v)) for v in (barrier, amount))
        with self.e.each_lane(self.active) as lane:
            place = self.b.shl(lane, ir.Constant(I64, 3))
            operands = (self.b.load(self.e.offset(lanes, place), typ=I64) for lanes in (addresses, amounts))
            self.e.intrinsic(self.symbol(COMPLETE), VOID, [self.context, self.site, lane, *operands])

    def load_matrix(self, address: Value, count: int, transposed: bool) -> Sequence[Value]:
        """See `Machine`."""
        assert self.site is not None, "a memory instruction has a site"
        arguments = [self.context, self.site, self.active, self._shared_places(address)]
        given = self.e.intrinsic(load_matrix_name(count, transposed), load_matrix_result(count), arguments)
        return [Value(part, False) for part in self._parts(given, count)]

    def store_matrix(self, address: Value, matrices: Sequence[Value], transposed: bool) -> None:
        """See `Machine`."""
        assert self.site is not None, "a memory instruction has a site"
        words = [self.spread(matrix) for matrix in matrices]
        arguments = [self.context, self.site, self.active, self._shared_places(address), *words]
        self.e.intrinsic(store_matrix_name(len(words), transposed), VOID, arguments)

    def multiply_group(
        self, product: GroupProduct, sums: Sequence[Value], a: Sequence[Value], b: Value, keeps: Value
    ) -> Sequence[Value]:
        """See `Machine`."""
        assert self.site is not None, "a memory instruction has a site"
        home = self._in_memory("d", MOST_REGISTERS, sums)
        first = self._in_memory("a", len(a), a) if product.a_in_registers else self._wide_places(a[0])
        bits = self.e.bits(self.spread(keeps))
        arguments = [self.context, self.site, self.active, home, first, self._wide_places(b), bits]
        self.e.intrinsic(self.symbol(group_name(product)), VOID, arguments)
        kind = vector(element_type(product.warp.d.register))
        places = (self.e.offset(home, 4 * WARP_SIZE * index) for index in range(len(sums)))
        return [Value(self.b.load(place, typ=kind), False) for place in places]

    def _in_memory(self, name: str, room: int, registers: Sequence[Value]) -> ir.Value:
        """Registers of 32 bits one behind the other, in memory that all instructions of the function share."""
        if name not in self.homes:
            self.homes[name] = self.e.variable(ir.ArrayType(vector(I32), room), name=name)
        for index, register in enumerate(registers):
            self.b.store(self.spread(register), self.e.offset(self.homes[name], 4 * WARP_SIZE * index))
        return self.homes[name]

    def block_rank(self) -> Value:
        """See `Machine`."""
        return Value(self.b.trunc(block_rank(self.e, self.context), I32), True)

    def stack_bounds(self) -> tuple[Value, Value]:
        """See `Machine`."""
        end = self.e.load_field(Context, self.context, "local_size")
        return self.constant(U64, self.stack_start), Value(end, True)

    def fence(self) -> None:
        """See `Machine`."""
        self.b.fence("seq_cst")


def _bits_type(t: ScalarType) -> ScalarType:
    return TYPES[f"b{t.bits}"]
