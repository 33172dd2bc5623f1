"""Rows of float32 reduced from their first element to their last, in float32: several rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from triptych.neuron.isa.compiled.loops import FLOAT, I64, POINTER, element, function, loop, whole, whole_steps

NAMES = {"add": "triptych.neuron.row_sums", "multiply": "triptych.neuron.row_products"}
"""The function of each operation whose order matters."""

_ROWS = 8
"""An addition takes four cycles, and two begin in each."""

Operation = Callable[[ir.Value, ir.Value], ir.Value]


def build() -> ir.Module:
    """`row_sums(from, to, rows, columns, step)`: rows begin `step` elements apart; none has no column."""
    module = ir.Module("triptych.neuron.rows")
    for operation, name in NAMES.items():
        builder, arguments = function(module, name, (POINTER, POINTER, I64, I64, I64))
        combine: Operation = {"add": builder.fadd, "multiply": builder.fmul}[operation]
        in_steps = whole_steps(builder, arguments[2], _ROWS)
        _reduce(builder, arguments, combine, _ROWS, (whole(0), in_steps))
        _reduce(builder, arguments, combine, 1, (in_steps, arguments[2]))
        builder.ret_void()
    return module


def _reduce(
    builder: ir.IRBuilder,
    arguments: Sequence[ir.Value],
    combine: Operation,
    height: int,
    bounds: tuple[ir.Value, ir.Value],
) -> None:
    source, target, _, columns, step = arguments

    def some_rows(first: ir.Value, carried: object) -> tuple[()]:
        del carried
        starts = [
            element(builder, source, builder.mul(builder.add(first, whole(row)), step), FLOAT) for row in range(height)
        ]

        def column(index: ir.Value, totals: Sequence[ir.Value]) -> Sequence[ir.Value]:
            loaded = [builder.load(element(builder, start, index, FLOAT), typ=FLOAT, align=4) for start in starts]
            return [combine(total, one) for total, one in zip(totals, loaded, strict=True)]

        firsts = [builder.load(start, typ=FLOAT, align=4) for start in starts]
        for row, total in enumerate(loop(builder, whole(1), columns, 1, firsts, column)):
            builder.store(total, element(builder, target, builder.add(first, whole(row)), FLOAT), align=4)
        return ()

    loop(builder, *bounds, height, (), some_rows)
