"""`ldmatrix` and `stmatrix`: rows of 8×8 matrices in shared memory and words of the lanes, as helpers of their own."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from llvmlite import ir

from triptych.gpu.hardware import WARP_SIZE
from triptych.gpu.isa.spaces import SHARED
from triptych.gpu.lower.memory.access import HelperAccess
from triptych.gpu.lower.memory.moves import return_all
from triptych.gpu.lower.primitives.emitter import I16, I32, POINTER, VOID, Emitter, constant, start_function, vector

ROWS = 8
"""Rows of a matrix, and elements of a row; lane 8m + r names the place of matrix m's row r (PTX, 9.7.14.5.15)."""
LOAD_ROWS = HelperAccess("load", SHARED, 4, 4)
"""A row has 16 bytes."""
STORE_ROWS = HelperAccess("store", SHARED, 4, 4)


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
    arguments = [context, site, _naming(e, mask, count), addresses]
    rows = e.intrinsic(LOAD_ROWS.name, LOAD_ROWS.result_type, arguments)
    table = _in_memory(e, [e.b.extract_value(rows, index) for index in range(LOAD_ROWS.count)])
    words = e.variable(ir.ArrayType(vector(I32), count))
    with _each_element(e, count, transposed) as elements:
        for word, row, kind in elements:
            e.b.store(e.b.load(e.offset(table, row), typ=kind), e.offset(words, word))
    return_all(e.b, HelperAccess("load", SHARED, 4, count), _vectors(e, words, count))
    return module


def build_store_matrix(count: int, transposed: bool) -> ir.Module:
    """The module with the helper: `(context, site, mask, addresses, words of each matrix)`."""
    name = store_matrix_name(count, transposed)
    module = ir.Module(name=name)
    e = start_function(module, name, VOID, [POINTER, POINTER, I32, vector(I32), *[vector(I32)] * count])
    context, site, mask, addresses, *given = e.function.args
    words, table = _in_memory(e, given), e.variable(ir.ArrayType(vector(I32), STORE_ROWS.count))
    with _each_element(e, count, transposed) as elements:
        for word, row, kind in elements:
            e.b.store(e.b.load(e.offset(words, word), typ=kind), e.offset(table, row))
    rows = _vectors(e, table, STORE_ROWS.count)
    e.intrinsic(STORE_ROWS.name, VOID, [context, site, _naming(e, mask, count), addresses, *rows])
    e.b.ret_void()
    return module


def _naming(e: Emitter, mask: ir.Value, count: int) -> ir.Value:
    """The lanes that name places; the others' addresses are not used."""
    return e.b.and_(mask, ir.Constant(I32, (1 << ROWS * count) - 1))


def _in_memory(e: Emitter, vectors: Sequence[ir.Value]) -> ir.Value:
    table = e.variable(ir.ArrayType(vector(I32), len(vectors)))
    for index, value in enumerate(vectors):
        e.b.store(value, e.offset(table, 4 * WARP_SIZE * index))
    return table


def _vectors(e: Emitter, table: ir.Value, count: int) -> list[ir.Value]:
    return [e.b.load(e.offset(table, 4 * WARP_SIZE * index), typ=vector(I32)) for index in range(count)]


@contextmanager
def _each_element(e: Emitter, count: int, transposed: bool) -> Generator[list[tuple[ir.Value, ir.Value, ir.Type]]]:
    """Runs for each row of each matrix: of its elements the offsets among the words and among the rows, and the type.

    Words lie lane after lane, matrix after matrix; a matrix's are its rows one after the other, or the transpose's. Of
    the rows the first words lie lane after lane, then the second ones … Elements go two at a time where they may.
    """
    vector_bytes = 4 * WARP_SIZE
    with e.counted(constant(count)) as matrix, e.counted(constant(ROWS)) as row:
        words = e.b.add(e.b.mul(matrix, constant(vector_bytes)), e.b.mul(row, constant(2 if transposed else 2 * ROWS)))
        rows = e.b.mul(e.b.add(e.b.mul(matrix, constant(ROWS)), row), constant(4))
        yield [
            (
                e.b.add(words, constant(column * (2 * ROWS if transposed else 2))),
                e.b.add(rows, constant(column // 2 * vector_bytes + column % 2 * 2)),
                I16 if transposed else I32,
            )
            for column in range(0, ROWS, 1 if transposed else 2)
        ]
