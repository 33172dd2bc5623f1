"""How products of matrices are added up: a function for each arithmetic of `isa/tensor/numerics.py`, as code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from llvmlite import ir

from triptych.gpu.isa.tensor.fragments import LINES, SHARERS, Fragment, Product
from triptych.gpu.isa.tensor.numerics import FAST, HARDWARE
from triptych.gpu.lower.primitives.directed import constrained, rounded
from triptych.gpu.lower.primitives.emitter import DOUBLE, FLOAT, I1, I32, I64, Emitter, constant, number, vector
from triptych.gpu.lower.tensor.elements import number_of
from triptych.gpu.lower.tensor.summation import add_as_hardware


@dataclass(frozen=True, slots=True)
class Tile:
    """The numbers of a matrix in memory, block after block in the order of the fragment, each line after line."""

    place: ir.Value
    fragment: Fragment
    number: ir.Type

    @classmethod
    def of(cls, e: Emitter, fragment: Fragment) -> Tile:
        """Memory for a fragment's numbers."""
        words = fragment.bands * fragment.along * fragment.block_registers
        packed = 1 if fragment.element.name == "b1" else fragment.packed
        place = e.variable(ir.ArrayType(vector(number_of(fragment.element), LINES), words * SHARERS * packed))
        return cls.at(place, fragment)

    @classmethod
    def at(cls, place: ir.Value, fragment: Fragment) -> Tile:
        """A fragment's numbers in memory that is there."""
        return cls(place, fragment, number_of(fragment.element))

    @property
    def bytes(self) -> int:
        """Of a number."""
        return 8 if self.number == DOUBLE else 4

    @property
    def block_length(self) -> int:
        """Numbers of a line of a block; of single bits, a number is a word of 32."""
        return SHARERS if self.fragment.element.name == "b1" else SHARERS * self.fragment.run

    @property
    def block_bytes(self) -> int:
        """Of a block."""
        return LINES * self.block_length * self.bytes

    @property
    def size(self) -> int:
        """Bytes of all numbers."""
        return self.fragment.bands * self.fragment.along * self.block_bytes

    @property
    def block_type(self) -> ir.VectorType:
        """A block as one vector."""
        return vector(self.number, LINES * self.block_length)


Arithmetic = Callable[[Emitter, Product, Tile, Tile, Tile], None]
"""Adds the products of A and B to the sums: A and the sums by blocks of rows, B row after row, eight columns at a time
(each band of its fragment a block of `SHARERS · run · along` rows)."""
_Step = Callable[[ir.Value, ir.Value, ir.Value], ir.Value]
"""An element of A eight times, eight of B, eight sums -> eight sums."""


def _add_in_order(e: Emitter, product: Product, a: Tile, b: Tile, sums: Tile) -> None:
    """Each sum by itself, over the columns of A in ascending order."""
    step = _step_of(e, product)
    exact = a.number == FLOAT and sums.number == I32
    with e.counted(constant(product.b.bands)) as column, e.counted(constant(product.a.bands)) as band:
        block = e.b.add(e.b.mul(column, constant(product.a.bands)), band)
        home = e.offset(sums.place, e.b.mul(block, constant(sums.block_bytes)))
        row_bytes = LINES * sums.bytes
        rows = [e.offset(home, row_bytes * line) for line in range(LINES)]
        kind = vector(a.number, LINES)
        totals = [e.variable(kind, ir.Constant(kind, None) if exact else e.b.load(row, typ=kind)) for row in rows]
        _add_products(e, (a, b), (band, column), totals, step)
        if a.number == DOUBLE:
            with e.when(_is_any_nan(e, totals), likely=False):
                for row, total in zip(rows, totals, strict=True):
                    e.b.store(e.b.load(row, typ=kind), total)
                _add_products(e, (a, b), (band, column), totals, _keeping_nan(e, step))
        for row, total in zip(rows, totals, strict=True):
            value = e.get(total, kind)
            e.b.store(_add_exact(e, product, row, value) if exact else value, row)


def _add_products(
    e: Emitter, multiplicands: tuple[Tile, Tile], place: tuple[ir.Value, ir.Value], totals: Sequence[ir.Value],
    step: _Step,
) -> None:  # fmt: skip
    """The products of a band of A and eight columns of B, added to eight rows of totals."""
    (a, b), (band, column) = multiplicands, place
    kind, width, along = vector(a.number, LINES), a.block_length, a.fragment.along
    following = e.variable(b.place.type, e.offset(b.place, e.b.mul(column, constant(along * b.block_bytes))))
    with e.counted(constant(along)) as block:
        block = e.b.add(e.b.mul(block, constant(a.fragment.bands)), band)
        start = e.offset(a.place, e.b.mul(block, constant(a.block_bytes)))
        with e.counted(constant(width)) as element:
            row = e.get(following, b.place.type)
            right = e.b.load(row, typ=kind)
            e.b.store(e.offset(row, LINES * b.bytes), following)
            first = e.offset(start, e.b.mul(element, constant(a.bytes)))
            for line, total in enumerate(totals):
                left = e.b.load(e.offset(first, line * width * a.bytes), typ=a.number)
                e.b.store(step(e.splat(left, LINES), right, e.get(total, kind)), total)


def _step_of(e: Emitter, product: Product) -> _Step:
    if product.operation != "mul":
        combine = e.b.xor if product.operation == "xor" else e.b.and_
        name = f"llvm.ctpop.v{LINES}i32"
        return lambda a, b, c: e.b.add(c, e.intrinsic(name, vector(I32, LINES), [combine(a, b)]))
    kind = vector(number_of(product.a.element), LINES)
    if product.rounding != "rn":
        return lambda a, b, c: constrained(e, "fma", [a, b, c])
    name = f"llvm.fma.v{LINES}f{64 if kind.element == DOUBLE else 32}"
    return lambda a, b, c: e.intrinsic(name, kind, [a, b, c])


def _is_any_nan(e: Emitter, totals: Sequence[ir.Value]) -> ir.Value:
    found: ir.Value = ir.Constant(vector(I1, LINES), None)
    for total in totals:
        value = e.get(total, vector(DOUBLE, LINES))
        found = e.b.or_(found, e.b.fcmp_unordered("uno", value, value))
    return e.intrinsic(f"llvm.vector.reduce.or.v{LINES}i1", I1, [found])


def _keeping_nan(e: Emitter, step: _Step) -> _Step:
    """A step of doubles with the NaN of `fma`: b's before c's before a's, made quiet, else an invalid operation's."""
    kind = vector(I64, LINES)

    def kept(a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        new = step(a, b, c)
        nan = e.b.bitcast(new, kind)
        for operand in (a, c, b):
            quiet = e.b.or_(e.b.bitcast(operand, kind), number(kind, 1 << 51))
            nan = e.b.select(e.b.fcmp_unordered("uno", operand, operand), quiet, nan)
        return e.b.select(e.b.fcmp_unordered("uno", new, new), e.b.bitcast(nan, new.type), new)

    return kept


def _add_exact(e: Emitter, product: Product, row: ir.Value, total: ir.Value) -> ir.Value:
    """C and a sum of integers, which a single holds exactly: it is below 2^24 for 64 products of 8 bits and 8 bits."""
    kind = vector(I32, LINES)
    before, added = e.b.load(row, typ=kind), e.b.fptosi(total, kind)
    if product.saturates:
        return e.intrinsic(f"llvm.sadd.sat.v{LINES}i32", kind, [before, added])
    return e.b.add(before, added)


def _add_fast(e: Emitter, product: Product, a: Tile, b: Tile, sums: Tile) -> None:
    """See `isa/tensor/numerics.py`; f64 in the rounding mode that the instruction names."""
    if product.rounding == "rn":
        _add_in_order(e, product, a, b, sums)
    else:
        with rounded(e, product.rounding):
            _add_in_order(e, product, a, b, sums)


def _add_as_hardware(e: Emitter, product: Product, a: Tile, b: Tile, sums: Tile) -> None:
    """See `isa/tensor/numerics.py`."""
    (_add_fast if product.summation is None else add_as_hardware)(e, product, a, b, sums)


ARITHMETICS: Mapping[str, Arithmetic] = {FAST: _add_fast, HARDWARE: _add_as_hardware}
"""By name."""
