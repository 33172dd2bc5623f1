"""`ldmatrix`: rows of 8×8 matrices from shared memory, dealt out to the lanes, as a helper of its own."""

from __future__ import annotations

from llvmlite import ir

from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.isa.spaces import SHARED
from triptych.gpu.lower.emitter import I16, I32, POINTER, Emitter, start_function, vector
from triptych.gpu.lower.memory.access import HelperAccess
from triptych.gpu.lower.memory.moves import return_all

ROWS = 8
"""Rows of a matrix; lane 8m + r names the place of matrix m's row r (PTX manual, 9.7.14.5.15)."""
LOAD_ROWS = HelperAccess("load", SHARED, 4, 4)
"""A row has 16 bytes."""


def load_matrix_name(count: int, transposed: bool) -> str:
    """The helper's symbol."""
    return f"triptych.load_matrix.{count}{'.transposed' if transposed else ''}"


def load_matrix_result(count: int) -> ir.Type:
    """A vector of words for each matrix."""
    return vector(I32) if count == 1 else ir.LiteralStructType([vector(I32)] * count)


def build_load_matrix(count: int, transposed: bool) -> ir.Module:
    """The module with the helper: `(context, site, mask, addresses) -> words of each matrix`."""
    name = load_matrix_name(count, transposed)
    module = ir.Module(name=name)
    e = start_function(module, name, load_matrix_result(count), [POINTER, POINTER, I32, vector(I32)])
    context, site, mask, addresses = e.function.args
    naming = e.b.and_(mask, ir.Constant(I32, (1 << ROWS * count) - 1))  # the others' addresses are not used
    rows = e.intrinsic(LOAD_ROWS.name, LOAD_ROWS.result_type, [context, site, naming, addresses])
    table = e.variable(ir.ArrayType(vector(I32), LOAD_ROWS.count))
    for index in range(LOAD_ROWS.count):
        e.b.store(e.b.extract_value(rows, index), e.offset(table, index * 4 * WARP_SIZE))
    words = [e.variable(vector(I32)) for _ in range(count)]
    for matrix, target in enumerate(words):
        for lane in range(WARP_SIZE):
            e.b.store(_word(e, table, matrix, lane, transposed), e.offset(target, 4 * lane))
    return_all(e.b, HelperAccess("load", SHARED, 4, count), [e.get(place, vector(I32)) for place in words])
    return module


def _word(e: Emitter, table: ir.Value, matrix: int, lane: int, transposed: bool) -> ir.Value:
    """Lane l holds elements 2(l mod 4) and the next of row l / 4; of the transpose's row where asked."""
    row, pair = lane // 4, lane % 4
    if not transposed:
        place = (pair * WARP_SIZE + matrix * ROWS + row) * 4
        return e.b.load(e.offset(table, place), typ=I32)
    halves: list[ir.Value] = []
    for column in (2 * pair, 2 * pair + 1):
        place = (row // 2 * WARP_SIZE + matrix * ROWS + column) * 4 + row % 2 * 2
        halves.append(e.b.zext(e.b.load(e.offset(table, place), typ=I16), I32))
    return e.b.or_(halves[0], e.b.shl(halves[1], ir.Constant(I32, 16)))
