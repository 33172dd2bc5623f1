"""The instruction table's primitives as LLVM code over vectors of 32 lanes, or over scalars where all lanes agree."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from llvmlite import ir

from triptych.core.errors import UnsupportedInstruction
from triptych.gpu.hardware import PARAM_WINDOW, WARP_SIZE
from triptych.gpu.isa.types import PRED, TYPES, ScalarType
from triptych.gpu.lower.directed import DIRECTIONS, directed_name
from triptych.gpu.lower.emitter import (
    DOUBLE,
    FLOAT,
    HALF,
    I1,
    I16,
    I32,
    I64,
    POINTER,
    VOID,
    Emitter,
    lanes,
    number,
    vector,
)
from triptych.gpu.lower.memory import Access, atomic_access, copy_name, emit_inline, helper_space
from triptych.gpu.lower.records import Context
from triptych.gpu.lower.shuffle import SHUFFLE


@dataclass(frozen=True, slots=True)
class Value:
    """An LLVM value: a scalar if `uniform` or if it has a stride (base + lane · stride), else a vector of 32."""

    ir: ir.Value
    uniform: bool
    stride: int = 0


def element_type(t: ScalarType) -> ir.Type:
    """The LLVM type of one lane; 16-bit floats are held by their bits."""
    if t.kind == "predicate":
        return I1
    if t.name in ("f32", "f64"):
        return FLOAT if t.bits == 32 else DOUBLE
    return ir.IntType(t.bits)


_ORDERED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_ROUNDINGS = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
Operation = Callable[..., ir.Value]


class LlvmMachine:
    """Fulfils `Machine` for code that is being emitted.

    The kernel's lowering sets, before each instruction, which lanes are active (`active`, an i32) and which memory
    site is the instruction's (`site`).
    """

    def __init__(self, e: Emitter, context: ir.Value, warp: ir.Value) -> None:
        """Emits with `e`; `context` and `warp` point to the structures of `records`."""
        self.e = e
        self.b = e.b
        self.context = context
        self.warp = warp
        self.active: ir.Value = ir.Constant(I32, -1)
        self.site: ir.Value | None = None
        self.parameter_bytes = 0

    # Plumbing ---------------------------------------------------------------------------------------------------

    def spread(self, a: Value) -> ir.Value:
        """The value as a vector."""
        if a.stride:
            return self.b.add(self.e.splat(a.ir), lanes(a.ir.type, a.stride))
        return self.e.splat(a.ir) if a.uniform else a.ir

    def whole(self, a: Value) -> Value:
        """The value as a scalar or as a vector: without a stride."""
        return Value(self.spread(a), False) if a.stride else a

    def _stride_of(self, a: Value) -> int | None:
        return 0 if a.uniform else a.stride or None

    def _affine(self, t: ScalarType, base: ir.Value, stride: int) -> Value:
        size = 1 << t.bits
        stride %= size
        return Value(base, stride == 0, stride - size if stride >= size // 2 else stride)

    def _apply(self, operation: Operation, *operands: Value) -> Value:
        if all(a.uniform for a in operands):
            return Value(operation(*(a.ir for a in operands)), True)
        return Value(operation(*(self.spread(a) for a in operands)), False)

    def _intrinsic(self, name: str, t: ir.Type, *operands: Value, extra: Sequence[ir.Value] = ()) -> Value:
        def call(*values: ir.Value) -> ir.Value:
            kind = values[0].type
            result = vector(t) if isinstance(kind, ir.VectorType) else t
            return self.e.intrinsic(f"llvm.{name}.{_mangle(kind)}", result, [*values, *extra])

        return self._apply(call, *operands)

    def _cast(self, operation: str, target: ir.Type, a: Value) -> Value:
        a = self.whole(a)
        method: Operation = getattr(self.b, operation)
        return Value(method(a.ir, target if a.uniform else vector(target)), a.uniform)

    # Integers ---------------------------------------------------------------------------------------------------

    def constant(self, t: ScalarType, value: int | float) -> Value:
        """See `Machine`."""
        kind = element_type(t)
        if t.kind == "predicate":
            return Value(ir.Constant(I1, int(value) & 1), True)
        if isinstance(kind, ir.IntType):
            return Value(ir.Constant(kind, int(value) & ((1 << t.bits) - 1)), True)
        plain = float(value)
        if t.bits == 32 and not math.isinf(plain) and not math.isnan(plain):
            plain = struct.unpack("<f", struct.pack("<f", plain))[0]
        return Value(ir.Constant(kind, plain), True)

    def add(self, t: ScalarType, a: Value, b: Value) -> Value:
        """See `Machine`."""
        left, right = self._stride_of(a), self._stride_of(b)
        if left is None or right is None or not (left or right):
            return self._apply(self.b.add, a, b)
        return self._affine(t, self.b.add(a.ir, b.ir), left + right)

    def sub(self, t: ScalarType, a: Value, b: Value) -> Value:
        """See `Machine`."""
        left, right = self._stride_of(a), self._stride_of(b)
        if left is None or right is None or not (left or right):
            return self._apply(self.b.sub, a, b)
        return self._affine(t, self.b.sub(a.ir, b.ir), left - right)

    def mul(self, t: ScalarType, a: Value, b: Value) -> Value:
        """See `Machine`."""
        for value, factor in ((a, b), (b, a)):
            if value.stride and factor.uniform and isinstance(factor.ir, ir.Constant):
                return self._affine(t, self.b.mul(value.ir, factor.ir), value.stride * _signed(factor.ir))
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
        return self.select(t, zero, a, rest)

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

    def resize(self, source: ScalarType, target: ScalarType, a: Value) -> Value:
        """See `Machine`."""
        if target.bits == source.bits:
            return a
        if a.uniform and isinstance(a.ir, ir.Constant):
            value = _signed(a.ir) if source.is_signed else a.ir.constant
            return self.constant(target, value)
        if a.stride and target.bits < source.bits:
            return self._affine(target, self.b.trunc(a.ir, ir.IntType(target.bits)), a.stride)
        if target.bits < source.bits:
            return self._cast("trunc", ir.IntType(target.bits), a)
        return self._cast("sext" if source.is_signed else "zext", ir.IntType(target.bits), a)

    # Comparison and selection -----------------------------------------------------------------------------------

    def compare(self, t: ScalarType, relation: str, a: Value, b: Value) -> Value:
        """See `Machine`."""
        if t.name in ("f32", "f64"):
            return self._apply(partial(*self._float_test(relation)), a, b)
        if relation == "lt" and _is_known(a) and _is_known(b):
            return self.constant(PRED, _known(a) < _known(b))
        test = self.b.icmp_signed if t.is_signed else self.b.icmp_unsigned
        return self._apply(partial(test, _ORDERED[relation]), a, b)

    def _float_test(self, relation: str) -> tuple[Operation, str]:
        if relation == "nan":
            return self.b.fcmp_unordered, "uno"
        return self.b.fcmp_ordered, "ord" if relation == "num" else _ORDERED[relation]

    def select(self, t: ScalarType, condition: Value, a: Value, b: Value) -> Value:
        """See `Machine`."""
        if condition.uniform and isinstance(condition.ir, ir.Constant):
            return a if condition.ir.constant else b
        if condition.uniform and not (a.uniform and b.uniform):
            return Value(self.b.select(condition.ir, self.spread(a), self.spread(b)), False)
        return self._apply(self.b.select, condition, a, b)

    # Floating point ---------------------------------------------------------------------------------------------

    def float_add(self, t: ScalarType, a: Value, b: Value) -> Value:
        """See `Machine`."""
        return self._apply(self.b.fadd, a, b)

    def float_sub(self, t: ScalarType, a: Value, b: Value) -> Value:
        """See `Machine`."""
        return self._apply(self.b.fsub, a, b)

    def float_mul(self, t: ScalarType, a: Value, b: Value) -> Value:
        """See `Machine`."""
        return self._apply(self.b.fmul, a, b)

    def float_div(self, t: ScalarType, a: Value, b: Value) -> Value:
        """See `Machine`."""
        return self._apply(self.b.fdiv, a, b)

    def fma(self, t: ScalarType, a: Value, b: Value, c: Value) -> Value:
        """See `Machine`."""
        return self._intrinsic("fma", element_type(t), a, b, c)

    def square_root(self, t: ScalarType, a: Value) -> Value:
        """See `Machine`."""
        return self._intrinsic("sqrt", element_type(t), a)

    def float_directed(self, t: ScalarType, operation: str, mode: str, *operands: Value) -> Value:
        """See `Machine`."""
        kind = vector(element_type(t))
        arguments = [ir.Constant(I32, DIRECTIONS[mode]), *(self.spread(a) for a in operands)]
        result = self.e.intrinsic(directed_name(operation, t), kind, arguments)
        if all(a.uniform for a in operands):
            return Value(self.b.extract_element(result, ir.Constant(I32, 0)), True)
        return Value(result, False)

    def round_integral(self, t: ScalarType, mode: str, a: Value) -> Value:
        """See `Machine`."""
        return self._intrinsic(_ROUNDINGS[mode], element_type(t), a)

    def resize_float(self, source: ScalarType, target: ScalarType, a: Value) -> Value:
        """See `Machine`."""
        if source.bits == 16:
            a = self._cast("bitcast", HALF, a)
        if target.bits == 16:
            return self._cast("bitcast", I16, self._cast("fptrunc", HALF, a))
        return self._cast("fpext" if target.bits > source.bits else "fptrunc", element_type(target), a)

    def float_to_integer(self, source: ScalarType, target: ScalarType, a: Value) -> Value:
        """See `Machine`."""
        name = "fptosi.sat" if target.is_signed else "fptoui.sat"
        kind = ir.IntType(target.bits)

        def call(value: ir.Value) -> ir.Value:
            result = vector(kind) if isinstance(value.type, ir.VectorType) else kind
            return self.e.intrinsic(f"llvm.{name}.{_mangle(result)}.{_mangle(value.type)}", result, [value])

        return self._apply(call, a)

    def integer_to_float(self, source: ScalarType, target: ScalarType, a: Value) -> Value:
        """See `Machine`."""
        return self._cast("sitofp" if source.is_signed else "uitofp", element_type(target), a)

    def bitcast(self, source: ScalarType, target: ScalarType, a: Value) -> Value:
        """See `Machine`."""
        kind = element_type(target)
        return a if kind == element_type(source) else self._cast("bitcast", kind, a)

    # Memory -----------------------------------------------------------------------------------------------------

    def load(self, space: str, t: ScalarType, address: Value, count: int) -> Sequence[Value]:
        """See `Machine`."""
        if space == "param":
            return self._load_parameter(t, address, count)
        access = Access("load", helper_space(space), t.bytes, count)
        if space == "shared" and address.uniform:
            parts = self._access_inline(access, "broadcast", address)
            return [self.bitcast(_bits_type(t), t, Value(p, True)) for p in parts]
        if space == "shared" and address.stride == access.bytes and address.ir.type == I32:
            parts = self._access_inline(access, "contiguous", address)
        else:
            parts = self._parts(self._access(access, address, ()), count)
        bits = ir.IntType(t.bits)
        return [
            Value(p if element_type(t) == bits else self.b.bitcast(p, vector(element_type(t))), False) for p in parts
        ]

    def _parts(self, given: ir.Value, count: int) -> list[ir.Value]:
        return [given] if count == 1 else [self.b.extract_value(given, i) for i in range(count)]

    def _access_inline(
        self, access: Access, way: str, address: Value, values: Sequence[ir.Value] = ()
    ) -> list[ir.Value]:
        """A shared access whose lanes are known to reach for one element (`broadcast`) or neighbours (`contiguous`)."""
        assert self.site is not None, "a memory instruction has a site"
        place = address.ir
        if place.type != I32:
            place = self._low_half(place)
        return emit_inline(self.e, access, way, (self.context, self.site, self.active, place), values)

    def _load_parameter(self, t: ScalarType, address: Value, count: int) -> Sequence[Value]:
        if not isinstance(address.ir, ir.Constant):
            return self._load_computed_parameter(t, address, count)
        if address.ir.constant + t.bytes * count > self.parameter_bytes:
            raise UnsupportedInstruction(
                f"ld.param reads bytes {address.ir.constant} … {address.ir.constant + t.bytes * count - 1}"
                f" of {self.parameter_bytes} bytes of parameters"
            )
        base = self.b.inttoptr(self.e.load_field(Context, self.context, "parameters"), POINTER)
        places = (self.e.offset(base, address.ir.constant + position * t.bytes) for position in range(count))
        return [Value(self.b.load(place, align=1, typ=element_type(t)), True) for place in places]

    def _load_computed_parameter(self, t: ScalarType, address: Value, count: int) -> Sequence[Value]:
        """A parameter at a register's address, checked as global memory is; uniform where the address is."""
        window = Value(number(vector(I64), PARAM_WINDOW), False)
        loaded = self.load("global", t, self._apply(self.b.add, address, window), count)
        if not address.uniform:
            return loaded
        first = self.e.count_trailing_zeros(self.active)
        return [Value(self.b.extract_element(value.ir, first), True) for value in loaded]

    def store(self, space: str, t: ScalarType, address: Value, values: Sequence[Value]) -> None:
        """See `Machine`."""
        if space == "param":
            raise UnsupportedInstruction("st.param writes a kernel's parameter, which is read-only")
        access = Access("store", helper_space(space), t.bytes, len(values))
        bits = [self._as_bits(t, v) for v in values]
        if space == "shared" and address.stride == access.bytes and address.ir.type == I32:
            self._access_inline(access, "contiguous", address, bits)
        else:
            self._access(access, address, bits)

    def atomic(
        self, space: str, operation: str, t: ScalarType, address: Value, operands: Sequence[Value]
    ) -> Sequence[Value]:
        """See `Machine`."""
        count = 1 if operation == "cas" else len(operands)
        access = atomic_access(operation, helper_space(space), t, count)
        old = self._access(access, address, [self._as_bits(t, v) for v in operands])
        return [self.bitcast(_bits_type(t), t, Value(part, False)) for part in self._parts(old, count)]

    def _as_bits(self, t: ScalarType, value: Value) -> ir.Value:
        wide = self.spread(value)
        return wide if isinstance(wide.type.element, ir.IntType) else self.b.bitcast(wide, vector(ir.IntType(t.bits)))

    def _access(self, access: Access, address: Value, values: Sequence[ir.Value]) -> ir.Value:
        assert self.site is not None, "a memory instruction has a site"
        places = self._shared_places(address) if access.space == "shared" else self.spread(address)
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

    def load_matrix(self, address: Value, count: int, transposed: bool) -> Sequence[Value]:
        """See `Machine`."""
        active = self.active
        self.active = self.b.and_(active, ir.Constant(I32, (1 << 8 * count) - 1))  # the others' addresses are not used
        rows = self._access(Access("load", "shared", 4, 4), Value(self.spread(address), False), ())
        self.active = active
        words = [self.b.extract_value(rows, i) for i in range(4)]
        table = self.e.variable(ir.ArrayType(vector(I32), 4))
        for index, word in enumerate(words):
            self.b.store(word, self.e.offset(table, index * 4 * WARP_SIZE))
        results: list[Value] = []
        for matrix in range(count):
            out = ir.Constant(vector(I32), ir.Undefined)
            picked: ir.Value = out
            for lane in range(WARP_SIZE):
                picked = self.b.insert_element(
                    picked, self._matrix_word(table, matrix, lane, transposed), ir.Constant(I32, lane)
                )
            results.append(Value(picked, False))
        return results

    def _matrix_word(self, table: ir.Value, matrix: int, lane: int, transposed: bool) -> ir.Value:
        """Lane l holds elements 2(l mod 4) and the next of row l / 4; of the transpose's row where asked."""
        row, pair = lane // 4, lane % 4
        if not transposed:
            place = (pair * WARP_SIZE + matrix * 8 + row) * 4
            return self.b.load(self.e.offset(table, place), typ=I32)
        halves: list[ir.Value] = []
        for column in (2 * pair, 2 * pair + 1):
            place = (row // 2 * WARP_SIZE + matrix * 8 + column) * 4 + row % 2 * 2
            halves.append(self.b.zext(self.b.load(self.e.offset(table, place), typ=I16), I32))
        return self.b.or_(halves[0], self.b.shl(halves[1], ir.Constant(I32, 16)))

    # The warp ---------------------------------------------------------------------------------------------------

    def lane_index(self) -> Value:
        """See `Machine`."""
        return Value(ir.Constant(I32, 0), False, 1)

    def fence(self) -> None:
        """See `Machine`."""
        self.b.fence("seq_cst")

    def active_mask(self) -> Value:
        """See `Machine`."""
        return Value(self.active, True)

    def shuffle(self, t: ScalarType, a: Value, source_lane: Value) -> Value:
        """See `Machine`."""
        if a.uniform:
            return a
        if source_lane.uniform:
            return Value(self.b.extract_element(self.spread(a), source_lane.ir), True)
        wide = vector(I32)
        return Value(self.e.intrinsic(SHUFFLE, wide, [self.spread(a), self.spread(source_lane)]), False)

    def ballot(self, predicate: Value) -> Value:
        """See `Machine`."""
        return Value(self.b.and_(self.e.bits(self.spread(predicate)), self.active), True)


def _signed(constant: ir.Constant) -> int:
    bits, value = constant.type.width, int(constant.constant)
    return value - (1 << bits) if value >= 1 << (bits - 1) else value


def _known(a: Value) -> int:
    assert isinstance(a.ir, ir.Constant)
    return int(a.ir.constant)


def _is_known(a: Value) -> bool:
    """A constant that is the same read as signed or as unsigned."""
    return a.uniform and isinstance(a.ir, ir.Constant) and isinstance(a.ir.type, ir.IntType) and _signed(a.ir) >= 0


def _bits_type(t: ScalarType) -> ScalarType:
    return TYPES[f"b{t.bits}"]


def _mangle(kind: ir.Type) -> str:
    if isinstance(kind, ir.VectorType):
        return f"v{kind.count}{_mangle(kind.element)}"
    if isinstance(kind, ir.IntType):
        return f"i{kind.width}"
    return "f64" if kind == DOUBLE else "f16" if kind == HALF else "f32"
