"""Products added up as an H200's tensor cores do it (`isa/tensor/summation.py` has the rules), in integer arithmetic.

Eight columns of a row at a time: a first walk along K finds the largest exponent, a second adds what is left of the
products below it. What is not finite is added by itself, where there is any.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from llvmlite import ir

from triptych.gpu.isa.tensor.fragments import LINES, Product
from triptych.gpu.isa.tensor.summation import FORMATS, LEAST_EXPONENT, Summation, accumulator_of
from triptych.gpu.lower.primitives.emitter import DOUBLE, FLOAT, HALF, I1, I32, I64, Emitter, constant, number, vector
from triptych.gpu.lower.tensor.elements import LEAST_ALIGNMENT

if TYPE_CHECKING:
    from triptych.gpu.lower.tensor.arithmetic import Tile

_INTEGERS, _WIDE, _FLOATS, _DOUBLES = (vector(kind, LINES) for kind in (I32, I64, FLOAT, DOUBLE))
_BYTES = 4
"""Of a number."""
_NONE = -(1 << 12)
"""The exponent of a zero: below all others, and so is its sum with any of them."""
_HIDDEN, _FIELD, _BIAS = 23, 0xFF, 127
"""Of f32: the place of the digit that is not written down, the exponent's bits, and what is added to it."""
_DIGITS = 10
"""Of the mantissa of a multiplicand, whatever its format."""
_INFINITY = 0x7F80_0000
_DOUBLE_BIAS, _DOUBLE_MANTISSA = 1023, 52


def add_as_hardware(e: Emitter, product: Product, a: Tile, b: Tile, sums: Tile) -> None:
    """An `Arithmetic` (`arithmetic.py`) of the products that have a `Summation`."""
    assert product.summation is not None
    _Hardware(e, product, product.summation, (a, b, sums)).add()


class _Hardware:
    """Emits the sums of one product."""

    def __init__(self, e: Emitter, product: Product, row: Summation, tiles: tuple[Tile, Tile, Tile]) -> None:
        self.e, self.b, self.product, self.row = e, e.b, product, row
        self.a, self.right, self.sums = tiles
        self.depth = product.shape[2]
        self.accumulator = accumulator_of(product.c.element.name, product.d.element.name)
        self.odd = e.variable(I1, ir.Constant(I1, 0))
        """Whether A or B has anything that is not finite."""
        (sizes_a, exponents_a), (sizes_b, exponents_b) = (self._scale(tile) for tile in (self.a, self.right))
        self.significands, self.exponents = (sizes_a, sizes_b), (exponents_a, exponents_b)
        """Of A and of B: significand · 2^(exponent − digits), integers that lie as the numbers do."""

    # Numbers as integers ----------------------------------------------------------------------------------------

    def _split(self, numbers: ir.Value, name: str, dropped: int) -> tuple[ir.Value, ir.Value]:
        """Numbers of a format, as singles: significands, without their lowest digits, and exponents."""
        b, count, least = self.b, numbers.type.count, 1 - FORMATS[name].bias
        kind = vector(I32, count)
        bits = b.bitcast(numbers, kind)
        field = b.and_(b.lshr(bits, number(kind, _HIDDEN)), number(kind, _FIELD))
        mantissa = b.and_(bits, number(kind, (1 << _HIDDEN) - 1))
        normal = b.icmp_unsigned("!=", field, number(kind, 0))
        size = b.or_(mantissa, b.select(normal, number(kind, 1 << _HIDDEN), number(kind, 0)))
        exponent = b.sub(b.select(normal, field, number(kind, 1)), number(kind, _BIAS))
        lifted = self._larger(exponent, number(kind, least))
        size = self._cut(size, b.add(b.sub(lifted, exponent), number(kind, dropped)))
        sign = b.ashr(bits, number(kind, 31))
        zero = b.icmp_unsigned("==", size, number(kind, 0))
        return b.sub(b.xor(size, sign), sign), b.select(zero, number(kind, _NONE), lifted)

    def _larger(self, x: ir.Value, y: ir.Value) -> ir.Value:
        return self.b.select(self.b.icmp_signed(">", x, y), x, y)

    def _cut(self, size: ir.Value, digits: ir.Value) -> ir.Value:
        """A size without its lowest digits."""
        most = number(digits.type, 31)
        return self.b.lshr(size, self.b.select(self.b.icmp_signed("<", digits, most), digits, most))

    def _scale(self, tile: Tile) -> tuple[ir.Value, ir.Value]:
        e, fragment = self.e, tile.fragment
        numbers = fragment.bands * fragment.along * LINES * tile.block_length
        memory = [e.variable(ir.ArrayType(_INTEGERS, numbers // LINES)) for _ in range(2)]
        with e.counted(constant(fragment.bands * fragment.along)) as block:
            offset = self.b.mul(block, constant(tile.block_bytes))
            loaded = self.b.load(e.offset(tile.place, offset), align=LEAST_ALIGNMENT, typ=tile.block_type)
            name = "f16" if self.row.by_halves else fragment.element.name
            for value, place in zip(self._split(loaded, name, _HIDDEN - _DIGITS), memory, strict=True):
                self.b.store(value, e.offset(place, offset), align=LEAST_ALIGNMENT)
            e.b.store(self.b.or_(e.get(self.odd, I1), self._any_odd(loaded)), self.odd)
        return memory[0], memory[1]

    def _any_odd(self, numbers: ir.Value) -> ir.Value:
        """Whether any of singles is infinite or no number."""
        count = numbers.type.count
        odd = self.b.not_(self._is_finite(numbers))
        return self.e.intrinsic(f"llvm.vector.reduce.or.v{count}i1", I1, [odd])

    def _is_finite(self, numbers: ir.Value) -> ir.Value:
        kind = vector(I32, numbers.type.count)
        infinity = number(kind, _INFINITY)
        field = self.b.and_(self.b.bitcast(numbers, kind), infinity)
        return self.b.icmp_unsigned("!=", field, infinity)

    # Places -----------------------------------------------------------------------------------------------------

    def _k(self, step: int, i: ir.Value) -> ir.Value:
        """The place along K of the i-th product of a step."""
        if not self.row.by_halves:
            return self.b.add(i, constant(step * self.row.depth))
        pair = self.b.shl(self.b.lshr(i, constant(1)), constant(2))
        return self.b.add(pair, self.b.or_(self.b.and_(i, constant(1)), constant(2 * step)))

    def _left(self, place: tuple[ir.Value, ir.Value], k: ir.Value) -> ir.Value:
        """Where an element of a row (of a band) of A lies, in bytes."""
        band, line = place
        width, fragment = constant(self.a.block_length), self.a.fragment
        block = self.b.add(self.b.mul(self.b.udiv(k, width), constant(fragment.bands)), band)
        element = self.b.add(self.b.mul(line, width), self.b.urem(k, width))
        return self.b.add(self.b.mul(block, constant(self.a.block_bytes)), self.b.mul(element, constant(_BYTES)))

    def _row_of_right(self, column: ir.Value, k: ir.Value) -> ir.Value:
        """Where a row of eight columns of B lies, in bytes."""
        row = self.b.add(self.b.mul(column, constant(self.depth)), k)
        return self.b.mul(row, constant(LINES * _BYTES))

    # Sums -------------------------------------------------------------------------------------------------------

    def add(self) -> None:
        """All of them."""
        e, bands = self.e, self.product.a.bands
        with (
            e.counted(constant(self.product.b.bands)) as column,
            e.counted(constant(bands)) as band,
            e.counted(constant(LINES)) as line,
        ):
            block = self.b.add(self.b.mul(column, constant(bands)), band)
            offset = self.b.add(self.b.mul(block, constant(LINES)), line)
            home = e.offset(self.sums.place, self.b.mul(offset, constant(LINES * _BYTES)))
            before = self.b.load(home, typ=_FLOATS)
            self.b.store(self._sum(before, (band, line), column), home)

    def _sum(self, c: ir.Value, place: tuple[ir.Value, ir.Value], column: ir.Value) -> ir.Value:
        steps = 2 if self.row.by_halves else -(-self.depth // self.row.depth)
        total = number(_FLOATS, 0.0) if self.row.by_halves else c
        for step in range(steps):
            total = self._step(total, place, column, (step, self.depth // steps))
        return self.b.fadd(c, total) if self.row.by_halves else total

    def _step(
        self, before: ir.Value, place: tuple[ir.Value, ir.Value], column: ir.Value, part: tuple[int, int]
    ) -> ir.Value:
        """Some products, and what came before."""
        e, (step, count) = self.e, part
        own, exponent = self._split(before, self.accumulator, 0)
        largest = e.variable(_INTEGERS, self._larger(exponent, number(_INTEGERS, LEAST_EXPONENT)))
        with e.counted(constant(count)) as i:
            exponents = self.b.add(*self._factors(self.exponents, place, column, self._k(step, i)))
            e.b.store(self._larger(exponents, e.get(largest, _INTEGERS)), largest)
        top = e.get(largest, _INTEGERS)
        products = e.variable(_INTEGERS, number(_INTEGERS, 0))
        with e.counted(constant(count)) as i:
            k = self._k(step, i)
            exponents = self.b.add(*self._factors(self.exponents, place, column, k))
            exact = self.b.mul(*self._factors(self.significands, place, column, k))
            aligned = self._aligned(exact, self.b.sub(top, exponents), 2 * _DIGITS)
            e.b.store(self.b.add(e.get(products, _INTEGERS), aligned), products)
        last = self._aligned(own, self.b.sub(top, exponent), _HIDDEN)
        total = self.b.add(*(self.b.sext(x, _WIDE) for x in (e.get(products, _INTEGERS), last)))
        result = e.variable(_FLOATS, self._rounded(total, top))
        with e.when(self.b.or_(e.get(self.odd, I1), self._any_odd(before)), likely=False):
            special = self._special(before, place, column, part)
            kept = self.b.select(self._is_finite(special), e.get(result, _FLOATS), special)
            self.b.store(kept, result)
        return e.get(result, _FLOATS)

    def _factors(
        self, pair: tuple[ir.Value, ir.Value], place: tuple[ir.Value, ir.Value], column: ir.Value, k: ir.Value
    ) -> tuple[ir.Value, ir.Value]:
        """The significands or the exponents of an element of A, eight times, and of eight of B."""
        one, eight = pair
        scalar = self.b.load(self.e.offset(one, self._left(place, k)), typ=I32)
        vectors = self.b.load(self.e.offset(eight, self._row_of_right(column, k)), typ=_INTEGERS)
        return self.e.splat(scalar, LINES), vectors

    def _aligned(self, significands: ir.Value, below: ir.Value, digits: int) -> ir.Value:
        """Significands as multiples of the unit, cut towards zero; their exponents are so far below the largest."""
        b, more = self.b, self.row.fraction - digits
        sign = b.ashr(significands, number(_INTEGERS, 31))
        size = b.sub(b.xor(significands, sign), sign)
        if more > 0:
            size = b.shl(size, number(_INTEGERS, more))
        size = self._cut(size, below if more > 0 else b.add(below, number(_INTEGERS, -more)))
        return b.sub(b.xor(size, sign), sign)

    def _rounded(self, total: ir.Value, largest: ir.Value) -> ir.Value:
        """total · 2^(largest − fraction) as a single; what f16 is made of keeps a trace of the digits that it lost.

        A double holds it exactly.
        """
        b = self.b
        exponent = b.add(b.sext(largest, _WIDE), number(_WIDE, _DOUBLE_BIAS - self.row.fraction))
        scale = b.bitcast(b.shl(exponent, number(_WIDE, _DOUBLE_MANTISSA)), _DOUBLES)
        exact = b.fmul(b.sitofp(total, _DOUBLES), scale)
        bits = b.bitcast(exact, _WIDE)
        digits = _HIDDEN if self.accumulator == "f16" else self.row.digits
        low = number(_WIDE, (1 << (_DOUBLE_MANTISSA - digits)) - 1)
        lost, kept = b.and_(bits, low), b.and_(bits, b.not_(low))
        if self.accumulator == "f16":
            trace = b.select(
                b.icmp_unsigned("!=", lost, number(_WIDE, 0)),
                number(_WIDE, 1 << (_DOUBLE_MANTISSA - digits)),
                number(_WIDE, 0),
            )
            return self._as_half(b.fptrunc(b.bitcast(b.or_(kept, trace), _DOUBLES), _FLOATS))
        return self._without_sign(b.fptrunc(self._cut_subnormal(exact, b.bitcast(kept, _DOUBLES)), _FLOATS), 0.0)

    def _cut_subnormal(self, exact: ir.Value, cut: ir.Value) -> ir.Value:
        """Below the normal singles the unit stays the same."""
        unit = 2.0 ** (1 - _BIAS - self.row.digits)
        whole = self.b.fmul(exact, number(_DOUBLES, 1 / unit))
        whole = self.e.intrinsic(f"llvm.trunc.v{LINES}f64", _DOUBLES, [whole])
        size = self.e.intrinsic(f"llvm.fabs.v{LINES}f64", _DOUBLES, [exact])
        small = self.b.fcmp_ordered("<", size, number(_DOUBLES, 2.0 ** (1 - _BIAS)))
        return self.b.select(small, self.b.fmul(whole, number(_DOUBLES, unit)), cut)

    def _as_half(self, singles: ir.Value) -> ir.Value:
        """Rounded to f16 where more is to come; the last ones are when D's registers are filled."""
        singles = self._without_sign(singles, 2.0**-25)
        if not self.row.by_halves:
            return singles
        return self.b.fpext(self.b.fptrunc(singles, vector(HALF, LINES)), _FLOATS)

    def _without_sign(self, singles: ir.Value, most: float) -> ir.Value:
        """What becomes 0 is +0: up to a size."""
        size = self.e.intrinsic(f"llvm.fabs.v{LINES}f32", _FLOATS, [singles])
        zero = self.b.fcmp_ordered("<=", size, number(_FLOATS, most))
        return self.b.select(zero, number(_FLOATS, 0.0), singles)

    # What is not finite -----------------------------------------------------------------------------------------

    def _special(
        self, before: ir.Value, place: tuple[ir.Value, ir.Value], column: ir.Value, part: tuple[int, int]
    ) -> ir.Value:
        """The sum with 1 or -1 for every finite number but 0: finite where the true one is."""
        e, (step, count) = self.e, part
        total = e.variable(_FLOATS, self._reduced(before))
        with e.counted(constant(count)) as i:
            k = self._k(step, i)
            one = self.b.load(e.offset(self.a.place, self._left(place, k)), typ=FLOAT)
            eight = self.b.load(e.offset(self.right.place, self._row_of_right(column, k)), typ=_FLOATS)
            factors = [self._reduced(x) for x in (e.splat(one, LINES), eight)]
            fma = partial(e.intrinsic, f"llvm.fma.v{LINES}f32", _FLOATS)
            e.b.store(fma([*factors, e.get(total, _FLOATS)]), total)
        return e.get(total, _FLOATS)

    def _reduced(self, numbers: ir.Value) -> ir.Value:
        b = self.b
        some = b.fcmp_unordered("!=", numbers, number(_FLOATS, 0.0))
        size = b.select(some, number(_FLOATS, 1.0), number(_FLOATS, 0.0))
        signed = self.e.intrinsic(f"llvm.copysign.v{LINES}f32", _FLOATS, [size, numbers])
        return b.select(self._is_finite(numbers), signed, numbers)
