"""Values of the code that is being emitted: scalars or vectors of 32 lanes, and the primitives that only move bits."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from llvmlite import ir

from triptych.gpu.isa.types import F32, PRED, ScalarType
from triptych.gpu.lower.primitives.emitter import DOUBLE, FLOAT, HALF, I1, I32, Emitter, number, vector

Operation = Callable[..., ir.Value]


@dataclass(frozen=True, slots=True)
class Value:
    """An LLVM value: a scalar if `uniform` or if it has a stride (base + lane · stride), else a vector of 32."""

    ir: ir.Value
    uniform: bool
    stride: int = 0
    loose: bool = False
    """Whether, read as f32, each NaN in it stands for the canonical one: so results of arithmetic are left until their
    bits matter (`ValueMachine.settled`). Of f64: whether the bits of its NaN never matter."""


def element_type(t: ScalarType) -> ir.Type:
    """The LLVM type of one lane; 16-bit floats are held by their bits."""
    if t.kind == "predicate":
        return I1
    if t.name in ("f32", "f64"):
        return FLOAT if t.bits == 32 else DOUBLE
    return ir.IntType(t.bits)


CANONICAL = 0x7FFF_FFFF
"""The bits of an f32 that is no number, where arithmetic made it."""
_ORDERED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


class ValueMachine:
    """What all primitives are made with. A value is *loose* if it is an f32 whose NaN nobody has looked at."""

    def __init__(self, e: Emitter) -> None:
        """Emits with `e`."""
        self.e = e
        self.b = e.b

    def settled(self, a: Value) -> Value:
        """The value with the bits that the hardware would give."""
        if not a.loose:
            return a
        is_vector = isinstance(a.ir.type, ir.VectorType)
        kind = a.ir.type.element if is_vector else a.ir.type
        if kind == DOUBLE:
            return replace(a, loose=False)
        single = self.b.bitcast(a.ir, vector(FLOAT) if is_vector else FLOAT) if isinstance(kind, ir.IntType) else a.ir
        nan = self.b.fcmp_unordered("uno", single, single)
        canonical: ir.Value = number(vector(I32) if is_vector else I32, CANONICAL)
        if not isinstance(kind, ir.IntType):
            canonical = self.b.bitcast(canonical, a.ir.type)
        return Value(self.b.select(nan, canonical, a.ir), a.uniform)

    def spread(self, a: Value) -> ir.Value:
        """The value's bits as a vector."""
        return self.lanes_of(self.settled(a))

    def lanes_of(self, a: Value) -> ir.Value:
        """The value as a vector, loose if it is."""
        if a.stride:
            return self.e.affine(a.ir, a.stride)
        return self.e.splat(a.ir) if a.uniform else a.ir

    def whole(self, a: Value) -> Value:
        """The value as a scalar or as a vector: without a stride."""
        return Value(self.lanes_of(a), False) if a.stride else a

    def _stride_of(self, a: Value) -> int | None:
        return 0 if a.uniform else a.stride or None

    def _affine(self, t: ScalarType, base: ir.Value, stride: int) -> Value:
        size = 1 << t.bits
        stride %= size
        return Value(base, stride == 0, stride - size if stride >= size // 2 else stride)

    def _apply(self, operation: Operation, *operands: Value) -> Value:
        """An operation that sees bits."""
        return self._apply_loosely(operation, *(self.settled(a) for a in operands))

    def _apply_loosely(self, operation: Operation, *operands: Value, loose: bool = False) -> Value:
        """An operation to which all NaN are alike, or that moves bits as they are."""
        if all(a.uniform for a in operands):
            return Value(operation(*(a.ir for a in operands)), True, loose=loose)
        return Value(operation(*(self.lanes_of(a) for a in operands)), False, loose=loose)

    def _compute(self, t: ScalarType, operation: Operation, *operands: Value) -> Value:
        """A floating-point operation. Of f64, all operands are alike that are NaN (`FloatMachine`)."""
        loose = t is F32 or all(a.loose or is_number(a) for a in operands)
        return self._apply_loosely(operation, *operands, loose=loose)

    def _call(self, name: str, t: ir.Type, extra: Sequence[ir.Value] = ()) -> Operation:
        """An intrinsic over scalars or vectors, by its name without the types."""

        def call(*values: ir.Value) -> ir.Value:
            kind = values[0].type
            result = vector(t) if isinstance(kind, ir.VectorType) else t
            return self.e.intrinsic(f"llvm.{name}.{mangle(kind)}", result, [*values, *extra])

        return call

    def _intrinsic(self, name: str, t: ir.Type, *operands: Value, extra: Sequence[ir.Value] = ()) -> Value:
        return self._apply(self._call(name, t, extra), *operands)

    def _cast(self, operation: str, target: ir.Type, a: Value) -> Value:
        a = self.whole(a)
        method: Operation = getattr(self.b, operation)
        return Value(method(a.ir, target if a.uniform else vector(target)), a.uniform)

    # Values that are there --------------------------------------------------------------------------------------

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
        return Value(ir.Constant(kind, plain), True, loose=t is F32 and math.isnan(plain))

    def resize(self, source: ScalarType, target: ScalarType, a: Value) -> Value:
        """See `Machine`."""
        if target.bits == source.bits:
            return a
        a = self.settled(a)
        if a.uniform and isinstance(a.ir, ir.Constant):
            value = signed_value(a.ir) if source.is_signed else a.ir.constant
            return self.constant(target, value)
        if a.stride and target.bits < source.bits:
            return self._affine(target, self.b.trunc(a.ir, ir.IntType(target.bits)), a.stride)
        if target.bits < source.bits:
            return self._cast("trunc", ir.IntType(target.bits), a)
        return self._cast("sext" if source.is_signed else "zext", ir.IntType(target.bits), a)

    def bitcast(self, source: ScalarType, target: ScalarType, a: Value) -> Value:
        """See `Machine`."""
        kind = element_type(target)
        if kind == element_type(source):
            return a
        return replace(self._cast("bitcast", kind, a), loose=a.loose and target.bits == 32)

    # Comparison and selection -----------------------------------------------------------------------------------

    def compare(self, t: ScalarType, relation: str, a: Value, b: Value) -> Value:
        """See `Machine`."""
        if t.name in ("f32", "f64"):
            return self._apply_loosely(partial(*self._float_test(relation)), a, b)
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
        loose = (a.loose or b.loose) and all(x.loose or is_number(x) for x in (a, b))
        if not loose:
            a, b = self.settled(a), self.settled(b)
        if condition.uniform and not (a.uniform and b.uniform):
            return Value(self.b.select(condition.ir, self.lanes_of(a), self.lanes_of(b)), False, loose=loose)
        return self._apply_loosely(self.b.select, condition, a, b, loose=loose)


def is_number(a: Value) -> bool:
    """Whether a value is a constant that, as a float, is no NaN."""
    if not isinstance(a.ir, ir.Constant) or isinstance(a.ir.type, ir.VectorType):
        return False
    constant = a.ir.constant
    if isinstance(constant, float):
        return not math.isnan(constant)
    return isinstance(constant, int) and constant & 0x7FFF_FFFF <= 0x7F80_0000 and a.ir.type == I32


def signed_value(constant: ir.Constant) -> int:
    """A constant integer, read as a signed one."""
    bits, value = constant.type.width, int(constant.constant)
    return value - (1 << bits) if value >= 1 << (bits - 1) else value


def _known(a: Value) -> int:
    assert isinstance(a.ir, ir.Constant)
    return int(a.ir.constant)


def _is_known(a: Value) -> bool:
    """A constant that is the same read as signed or as unsigned."""
    return a.uniform and isinstance(a.ir, ir.Constant) and isinstance(a.ir.type, ir.IntType) and signed_value(a.ir) >= 0


def mangle(kind: ir.Type) -> str:
    """A type as LLVM writes it into the names of intrinsics."""
    if isinstance(kind, ir.VectorType):
        return f"v{kind.count}{mangle(kind.element)}"
    if isinstance(kind, ir.IntType):
        return f"i{kind.width}"
    return "f64" if kind == DOUBLE else "f16" if kind == HALF else "f32"
