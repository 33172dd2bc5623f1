"""The native functions, on numpy arrays. They are made when the first is needed, and kept in the cache on disk."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from triptych.core.cache import key_of
from triptych.core.dtypes import DTYPES
from triptych.native.engine import Unit, load_units
from triptych.neuron.isa.compiled import exponential, products, row_sums

Floats = NDArray[np.float32]
_LEVEL = 2
"""How hard LLVM's code generator works: 2 schedules the loops' instructions."""


@cache
def _addresses(build: Callable[[], ir.Module], names: tuple[str, ...]) -> dict[str, int]:
    """The addresses of a module's functions; the text of the module is all that its code depends on."""
    return load_units((Unit(f"neuron {key_of(str(build()))}", names, build, level=_LEVEL),))


@cache
def _function(build: Callable[[], ir.Module], names: tuple[str, ...], name: str, arguments: int) -> Callable[..., None]:
    """A function of so many addresses and sizes, of 64 bits each."""
    prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * arguments)
    return prototype(_addresses(build, names)[name])


def exp(values: Floats) -> Floats:
    """The exponential of each element, computed in float64 and rounded once."""
    source = np.ascontiguousarray(values)
    result = np.empty(source.shape, np.float32)
    run = _function(exponential.build, (exponential.NAME,), exponential.NAME, 3)
    run(source.ctypes.data, result.ctypes.data, source.size)
    return result


def reduce_rows(operation: str, rows: Floats) -> Floats:
    """Each of the rows [P, N] reduced from its first element to its last, by one of `row_sums.NAMES`: [P]."""
    source, step = _rows_of_neighbours(rows)
    result = np.empty(len(rows), np.float32)
    run = _function(row_sums.build, tuple(row_sums.NAMES.values()), row_sums.NAMES[operation], 5)
    run(source.ctypes.data, result.ctypes.data, *rows.shape, step)
    return result


class _Scratch(threading.local):
    """Memory that is kept from product to product: each thread has its own."""

    def __init__(self) -> None:
        """None yet."""
        self._kept = np.empty(0, np.float32)

    def address(self, elements: int) -> int:
        """That of so many float32; what they hold is overwritten by the next product."""
        if self._kept.size < elements:
            self._kept = np.empty(elements, np.float32)
        return self._kept.ctypes.data


_SCRATCH = _Scratch()
_PRODUCTS = tuple(products.NAMES.values())
_MULTIPLY = {dtype.numpy: products.NAMES[dtype.numpy.name] for dtype in (DTYPES["f32"], DTYPES["bf16"])}


def multiply(stationary: NDArray[Any], moving: NDArray[Any], onto: Floats | None = None) -> Floats:
    """stationary [K, M].T @ moving [K, N] of floats of at most 32 bits: [M, N], as `products` says.

    `onto` [M, N] has what it is added to, in float32, and is what is returned then.
    """
    name = _MULTIPLY.get(stationary.dtype)
    if name is None or stationary.dtype != moving.dtype:
        name = products.NAMES["float32"]
        stationary, moving = stationary.astype(np.float32), moving.astype(np.float32)
    (left, left_step), (right, right_step) = _rows_of_neighbours(stationary), _rows_of_neighbours(moving)
    (rows, height), width = left.shape, right.shape[1]
    shape = (_rounded_up(height, products.HEIGHT), _rounded_up(width, products.WIDTH))
    adds = onto is not None and onto.shape == shape and onto.flags.c_contiguous
    result = onto if onto is not None and adds else np.empty(shape, np.float32)
    scratch = _SCRATCH.address(products.scratch_elements(rows, height))
    run = _function(products.build, _PRODUCTS, name, 10)
    addresses = (left.ctypes.data, right.ctypes.data, result.ctypes.data, scratch)
    run(*addresses, rows, height, width, left_step, right_step, int(adds))
    if onto is None or adds:
        return result[:height, :width]
    return np.add(onto, result[:height, :width], out=onto)


def _rounded_up(count: int, width: int) -> int:
    return -(-count // width) * width


def _rows_of_neighbours(matrix: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """The matrix, its rows in memory as neighbours, and the elements from row to row."""
    if matrix.strides[1] != matrix.itemsize or matrix.strides[0] % matrix.itemsize:
        matrix = np.ascontiguousarray(matrix)
    return matrix, matrix.strides[0] // matrix.itemsize
