"""Floating point as LLVM code, with the NaN that the hardware gives.

Results of f32 arithmetic are *loose*: their NaN is the processor's, and becomes the canonical one where bits matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from llvmlite import ir

from triptych.gpu.isa.types import F32, F64, TYPES, ScalarType
from triptych.gpu.lower.primitives.directed import DIRECTIONS, directed_name
from triptych.gpu.lower.primitives.emitter import HALF, I16, I32, number, undefined, vector
from triptych.gpu.lower.primitives.values import Operation, Value, ValueMachine, element_type, is_number, mangle

_ROUNDINGS = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}


class FloatMachine(ValueMachine):
    """The floating-point primitives."""

    def float_add(self, t: ScalarType, a: Value, b: Value) -> Value:
        """See `Machine`."""
        return self._keep_nan(t, (1, 0), self.b.fadd, a, b)

    def float_sub(self, t: ScalarType, a: Value, b: Value) -> Value:
        """See `Machine`."""
        return self._keep_nan(t, (1, 0), self.b.fsub, a, b)

    def float_mul(self, t: ScalarType, a: Value, b: Value) -> Value:
        """See `Machine`."""
        return self._keep_nan(t, (1, 0), self.b.fmul, a, b)

    def float_div(self, t: ScalarType, a: Value, b: Value) -> Value:
        """See `Machine`."""
        return self._keep_nan(t, (0, 1), self.b.fdiv, a, b)

    def fma(self, t: ScalarType, a: Value, b: Value, c: Value) -> Value:
        """See `Machine`."""
        return self._keep_nan(t, (1, 2, 0), self._call("fma", element_type(t)), a, b, c)

    def _keep_nan(self, t: ScalarType, order: Sequence[int], operation: Operation, *operands: Value) -> Value:
        """An operation; of f64, the operand that is first in an order is kept where several are NaN.

        Which of them the processor keeps, or LLVM, is not known. So where a result is NaN, which is rare, it is made
        once more.
        """
        result = self._compute(t, operation, *operands)
        if t is F32 or sum(not _has_one_nan(a) for a in operands) < 2:
            return result
        if result.uniform:
            return self._compute(t, operation, *self._first_nan(order, operands))
        home = self.e.variable(result.ir.type, result.ir)
        with self.e.when(self._some_nan(result.ir), likely=False):
            again = self._compute(t, operation, *self._first_nan(order, operands))
            self.b.store(again.ir, home)
        return Value(self.e.get(home, result.ir.type), False)

    def _some_nan(self, values: ir.Value) -> ir.Value:
        """Whether any of 32 doubles is NaN."""
        picks = (ir.Constant(vector(I32, 16), list(range(first, first + 16))) for first in (0, 16))
        halves = (self.b.shuffle_vector(values, undefined(values.type), pick) for pick in picks)
        unordered = self.b.fcmp_unordered("uno", *halves)
        return self.b.icmp_unsigned("!=", self.b.bitcast(unordered, I16), ir.Constant(I16, 0))

    def _first_nan(self, order: Sequence[int], operands: Sequence[Value]) -> list[Value]:
        """Doubles, each replaced by the one before it in an order where that is NaN: so that these are alike."""
        found = list(operands)
        first: Value | None = None
        for place in order:
            if _has_one_nan(found[place]):
                continue
            if first is not None:
                nan = self._apply_loosely(partial(self.b.fcmp_unordered, "uno"), first, first)
                found[place] = self._apply_loosely(self.b.select, nan, first, found[place])
            first = found[place]
        return found

    def square_root(self, t: ScalarType, a: Value) -> Value:
        """See `Machine`."""
        # To LLVM the root of a negative number is any NaN, and may be what a select puts in its place: hence the fence.
        root = self._compute(t, self._call("sqrt", element_type(t)), a)
        return self._compute(t, self._call("arithmetic.fence", element_type(t)), root)

    def float_negate(self, t: ScalarType, a: Value) -> Value:
        """See `Machine`."""
        return self._with_sign(t, a, self.b.fneg)

    def float_magnitude(self, t: ScalarType, a: Value) -> Value:
        """See `Machine`."""
        return self._with_sign(t, a, self._call("fabs", element_type(t)))

    def _with_sign(self, t: ScalarType, a: Value, operation: Operation) -> Value:
        changed = self._compute(t, operation, a)
        if t is F32:
            return changed
        bits = TYPES[f"b{t.bits}"]
        quiet = self._apply(self.b.or_, self.bitcast(t, bits, a), self.constant(bits, 1 << 51))
        return self.select(t, self.compare(t, "nan", a, a), self.bitcast(bits, t, quiet), changed)

    def flush(self, t: ScalarType, a: Value) -> Value:
        """See `Machine`."""

        def flush_bits(value: ir.Value) -> ir.Value:
            kind = value.type
            whole = vector(I32) if isinstance(kind, ir.VectorType) else I32
            bits = self.b.bitcast(value, whole)
            exponent = self.b.and_(bits, number(whole, 0x7F80_0000))
            small = self.b.icmp_unsigned("==", exponent, number(whole, 0))
            sign = self.b.and_(bits, number(whole, 0x8000_0000))
            return self.b.bitcast(self.b.select(small, sign, bits), kind)

        return self._apply_loosely(flush_bits, a, loose=a.loose)

    def canonical(self, t: ScalarType, a: Value) -> Value:
        """See `Machine`."""
        return replace(a, loose=True)

    def float_directed(self, t: ScalarType, operation: str, mode: str, *operands: Value) -> Value:
        """See `Machine`."""
        if t is F64:
            order = (0, 1) if operation == "div" else (*range(1, len(operands)), 0)
            operands = tuple(self._first_nan(order, operands))
        kind = vector(element_type(t))
        arguments = [ir.Constant(I32, DIRECTIONS[mode]), *(self.lanes_of(a) for a in operands)]
        result = self.e.intrinsic(directed_name(operation, t), kind, arguments)
        if all(a.uniform for a in operands):
            return Value(self.b.extract_element(result, ir.Constant(I32, 0)), True, loose=t is F32)
        return Value(result, False, loose=t is F32)

    def round_integral(self, t: ScalarType, mode: str, a: Value) -> Value:
        """See `Machine`."""
        return self._compute(t, self._call(_ROUNDINGS[mode], element_type(t)), a)

    def resize_float(self, source: ScalarType, target: ScalarType, a: Value) -> Value:
        """See `Machine`."""
        if source.bits == 16:
            a = self._cast("bitcast", HALF, self.settled(a))
        if target.bits == 16:
            return self._cast("bitcast", I16, self._cast("fptrunc", HALF, a))
        if target is F64:
            a = self.settled(a)
        result = self._cast("fpext" if target.bits > source.bits else "fptrunc", element_type(target), a)
        return self.canonical(target, result) if source.bits == 16 and target is F32 else result

    def float_to_integer(self, source: ScalarType, target: ScalarType, a: Value) -> Value:
        """See `Machine`."""
        name = "fptosi.sat" if target.is_signed else "fptoui.sat"
        kind = ir.IntType(target.bits)

        def call(value: ir.Value) -> ir.Value:
            result = vector(kind) if isinstance(value.type, ir.VectorType) else kind
            return self.e.intrinsic(f"llvm.{name}.{mangle(result)}.{mangle(value.type)}", result, [value])

        return self._apply_loosely(call, a)

    def integer_to_float(self, source: ScalarType, target: ScalarType, a: Value) -> Value:
        """See `Machine`."""
        result = self._cast("sitofp" if source.is_signed else "uitofp", element_type(target), self.settled(a))
        return replace(result, loose=target is F64)


def _has_one_nan(a: Value) -> bool:
    """Whether a double is no NaN, or one whose bits do not matter."""
    return a.loose or is_number(a)
