"""`ldmatrix` and `stmatrix`: rows of 8×8 matrices in shared memory and words of the lanes, as helpers of their own."""

from __future__ import annotations

from llvmlite import ir

from triptych.gpu.isa.spaces import SHARED
from triptych.gpu.lower.memory.access import HelperAccess
from triptych.gpu.lower.memory.lane_places import LanePlaces
from triptych.gpu.lower.memory.moves import return_all
from triptych.gpu.lower.primitives.arranging import concatenate, pieces, turn
from triptych.gpu.lower.primitives.emitter import I16, I32, POINTER, VOID, Emitter, start_function, vector

ROWS = 8
"""LanePlaces of a matrix, and elements of a row; lane 8m + r names the place of matrix m's row r (PTX, 9.7.14.5.15)."""
MATRIX_ROW_BYTES = 16


def load_matrix_name(count: int, transposed: bool) -> str:
    """The helper's symbol."""
    return f"triptych.load_matrix.{count}{'.transposed' if transposed else ''}"


def store_matrix_name(count: int, transposed: bool) -> str:
    """The helper's symbol."""
    return f"triptych.store_matrix.{count}{'.transposed' if transposed else ''}"


def load_matrix_result(count: int) -> ir.Type:
    """A vector of words for each matrix."""
    return vector(I32) if count == 1 else ir.LiteralStructType([vector(I32)] * count)


def build_load_matrix(count: int, transposed: bool) -> ir.Module:
    """The module with the helper: `(context, site, mask, addresses) -> words of each matrix`."""
    name = load_matrix_name(count, transposed)
    module = ir.Module(name=name)
    e = start_function(module, name, load_matrix_result(count), [POINTER, POINTER, I32, vector(I32)])
    context, site, mask, addresses = e.function.args
    rows = LanePlaces(e, SHARED, MATRIX_ROW_BYTES)
    rows.admit(context, site, _naming(e, mask, count), addresses, write=False)
    kind = vector(I16, ROWS)
    matrices: list[ir.Value] = []
    for first in range(0, ROWS * count, ROWS):
        found = [e.b.load(rows.place(lane), align=1, typ=kind) for lane in range(first, first + ROWS)]
        whole = concatenate(e.b, turn(e.b, found) if transposed else found)
        matrices.append(e.b.bitcast(whole, vector(I32)))
    return_all(e.b, HelperAccess("load", SHARED, 4, count), matrices)
    return module


def build_store_matrix(count: int, transposed: bool) -> ir.Module:
    """The module with the helper: `(context, site, mask, addresses, words of each matrix)`."""
    name = store_matrix_name(count, transposed)
    module = ir.Module(name=name)
    e = start_function(module, name, VOID, [POINTER, POINTER, I32, vector(I32), *[vector(I32)] * count])
    context, site, mask, addresses, *matrices = e.function.args
    rows = LanePlaces(e, SHARED, MATRIX_ROW_BYTES)
    rows.admit(context, site, _naming(e, mask, count), addresses, write=True)
    for index, matrix in enumerate(matrices):
        lines = pieces(e.b, e.b.bitcast(matrix, vector(I16, ROWS * ROWS)), ROWS)
        for row, line in enumerate(turn(e.b, lines) if transposed else lines):
            e.b.store(line, rows.place(ROWS * index + row), align=1)
    e.b.ret_void()
    return module


def _naming(e: Emitter, mask: ir.Value, count: int) -> ir.Value:
    """The lanes that name places; the others' addresses are not used."""
    return e.b.and_(mask, ir.Constant(I32, (1 << ROWS * count) - 1))
