"""Products of matrices as the PE array forms them: a sum goes down a column, each row adds its product, in float32.

dst[m, n] = fma(a[K-1, m], b[K-1, n], … fma(a[1, m], b[1, n], fma(a[0, m], b[0, n], 0))): products are exact, sums are
rounded. The order is that of the rows, so that results do not depend on the machine that this runs on.

Both operands are packed into panels of `WIDTH` columns, row after row, the last filled up with zeros. The sums of
`HEIGHT` columns of a panel of a with one of b are in registers together; both panels stay in the first cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from llvmlite import ir

from triptych.neuron.isa.compiled.loops import (
    FLOAT,
    I64,
    POINTER,
    element,
    function,
    fused,
    in_all_lanes,
    loop,
    splat,
    vector_of,
    whole,
)

HEIGHT, WIDTH = 4, 16
"""Columns of a and of b, whose sums fill 8 registers of 8 lanes: an addition takes a core four cycles, and two begin in
each. `WIDTH` float32 are a line of the cache."""
DTYPES: Mapping[str, tuple[ir.Type, int]] = {"float32": (FLOAT, 4), "bfloat16": (ir.IntType(16), 2)}
"""What an element is loaded as, and its bytes, by the dtypes that are packed as they are."""

_LANES = 8
_ACROSS = WIDTH // _LANES
_I32 = ir.IntType(32)
_UPPER_HALF = 16
"""A bfloat16 is the upper half of a float32."""


NAMES = {dtype: f"triptych.neuron.multiply.{dtype}" for dtype in DTYPES}
"""The function that multiplies operands of a dtype."""


def scratch_elements(rows: int, columns: int) -> int:
    """The float32 that the panels of a [rows, columns] and one of b take."""
    return rows * WIDTH * (-(-columns // WIDTH) + 1)


def build() -> ir.Module:
    """`multiply(a, b, to, scratch, rows, columns of a, of b, step of a, of b, adds)` of each dtype.

    Rows begin a step of elements apart. The result has a multiple of `HEIGHT` rows and of `WIDTH` columns; where `adds`
    is not 0, it is added to what is there.
    """
    module = ir.Module("triptych.neuron.products")
    for dtype, name in NAMES.items():
        _build_multiply(module, dtype, name)
    return module


def _load(builder: ir.IRBuilder, dtype: str, base: ir.Value, index: ir.Value, lanes: int) -> ir.Value:
    """So many neighbours as float32."""
    kind, size = DTYPES[dtype]
    value = builder.load(element(builder, base, index, kind), typ=vector_of(kind, lanes), align=size)
    if kind is FLOAT:
        return value
    wide = vector_of(_I32, lanes)
    return builder.bitcast(builder.shl(builder.zext(value, wide), splat(wide, _UPPER_HALF)), vector_of(FLOAT, lanes))


@dataclass(frozen=True, slots=True)
class _Matrix:
    """An operand: its first element, its columns, and the elements from row to row."""

    begin: ir.Value
    columns: ir.Value
    step: ir.Value

    def parts(self, builder: ir.IRBuilder, width: int) -> ir.Value:
        """How many of so many columns there are, the last filled up."""
        return builder.udiv(builder.add(self.columns, whole(width - 1)), whole(width))


def _build_pack(module: ir.Module, dtype: str) -> ir.Function:
    """`pack(from, to, rows, columns, step)`: one panel, of whose columns so many are left in the matrix."""
    name = f"triptych.neuron.pack.{dtype}"
    builder, (source, target, rows, columns, step) = function(module, name, (POINTER, POINTER, *[I64] * 3))

    def place(row: ir.Value, column: ir.Value) -> tuple[ir.Value, ir.Value]:
        return builder.add(builder.mul(row, step), column), builder.add(builder.mul(row, whole(WIDTH)), column)

    def store(value: ir.Value, at: ir.Value) -> None:
        builder.store(value, element(builder, target, at, FLOAT), align=4)

    def whole_row(row: ir.Value, carried: object) -> tuple[()]:
        del carried
        begin, to = place(row, whole(0))
        store(_load(builder, dtype, source, begin, WIDTH), to)
        return ()

    def part_of_row(row: ir.Value, carried: object) -> tuple[()]:
        def there(column: ir.Value, carried: object) -> tuple[()]:
            begin, to = place(row, column)
            store(_load(builder, dtype, source, begin, 1), to)
            return ()

        def missing(column: ir.Value, carried: object) -> tuple[()]:
            store(splat(FLOAT, 0.0), place(row, column)[1])
            return ()

        loop(builder, whole(0), columns, 1, (), there)
        loop(builder, columns, whole(WIDTH), 1, (), missing)
        return ()

    with builder.if_else(builder.icmp_signed(">=", columns, whole(WIDTH))) as (enough, part):
        with enough:
            loop(builder, whole(0), rows, 1, (), whole_row)
        with part:
            loop(builder, whole(0), rows, 1, (), part_of_row)
    builder.ret_void()
    return builder.function


def _build_multiply(module: ir.Module, dtype: str, name: str) -> None:
    """All panels of a are packed, then panel by panel of b: it is packed, and multiplied by each of a."""
    packing = _build_pack(module, dtype)
    builder, arguments = function(module, name, (*[POINTER] * 4, *[I64] * 6))
    a, b, target, scratch, rows, *sizes, adds = arguments
    left, right = _Matrix(a, sizes[0], sizes[2]), _Matrix(b, sizes[1], sizes[3])
    columns = builder.mul(right.parts(builder, WIDTH), whole(WIDTH))

    def place(panel: ir.Value) -> ir.Value:
        return element(builder, scratch, builder.mul(builder.mul(panel, rows), whole(WIDTH)), FLOAT)

    def pack(matrix: _Matrix, panel: ir.Value, to: ir.Value) -> None:
        first = builder.mul(panel, whole(WIDTH))
        begin = element(builder, matrix.begin, first, DTYPES[dtype][0])
        builder.call(packing, [begin, to, rows, builder.sub(matrix.columns, first), matrix.step])

    def pack_left(panel: ir.Value, carried: object) -> tuple[()]:
        pack(left, panel, place(panel))
        return ()

    def across_all(across: ir.Value, carried: object) -> tuple[()]:
        pack(right, across, panel_of_right)

        def down_all(down: ir.Value, carried: object) -> tuple[()]:
            first = builder.mul(down, whole(HEIGHT))
            panel, within = builder.udiv(first, whole(WIDTH)), builder.urem(first, whole(WIDTH))
            sums = _sums(builder, element(builder, place(panel), within, FLOAT), panel_of_right, rows)
            corner = builder.add(builder.mul(first, columns), builder.mul(across, whole(WIDTH)))
            for (row, part), total in zip(product(range(HEIGHT), range(_ACROSS)), sums, strict=True):
                at = builder.add(builder.add(corner, builder.mul(whole(row), columns)), whole(part * _LANES))
                _put(builder, total, element(builder, target, at, FLOAT), adds)
            return ()

        loop(builder, whole(0), left.parts(builder, HEIGHT), 1, (), down_all)
        return ()

    loop(builder, whole(0), left.parts(builder, WIDTH), 1, (), pack_left)
    panel_of_right = place(left.parts(builder, WIDTH))
    loop(builder, whole(0), right.parts(builder, WIDTH), 1, (), across_all)
    builder.ret_void()


def _put(builder: ir.IRBuilder, total: ir.Value, place: ir.Value, adds: ir.Value) -> None:
    with builder.if_else(builder.icmp_signed("!=", adds, whole(0))) as (added, alone):
        with added:
            old = builder.load(place, typ=total.type, align=4)
            builder.store(builder.fadd(old, total), place, align=4)
        with alone:
            builder.store(total, place, align=4)


def _sums(builder: ir.IRBuilder, left: ir.Value, right: ir.Value, rows: ir.Value) -> Sequence[ir.Value]:
    """Of one pair of panels."""
    vector = ir.VectorType(FLOAT, _LANES)

    def one_row(row: ir.Value, totals: Sequence[ir.Value]) -> Sequence[ir.Value]:
        begin = builder.mul(row, whole(WIDTH))
        wide = [
            builder.load(element(builder, right, builder.add(begin, whole(part * _LANES)), FLOAT), typ=vector, align=4)
            for part in range(_ACROSS)
        ]
        made: list[ir.Value] = []
        for at in range(HEIGHT):
            one = builder.load(element(builder, left, builder.add(begin, whole(at)), FLOAT), typ=FLOAT, align=4)
            each = in_all_lanes(builder, one, vector)
            made += [
                fused(builder, "fma", each, part, totals[at * _ACROSS + at_part]) for at_part, part in enumerate(wide)
            ]
        return made

    return loop(builder, whole(0), rows, 1, [splat(vector, 0.0)] * (HEIGHT * _ACROSS), one_row)
