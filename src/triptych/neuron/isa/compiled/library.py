"""The native functions, on numpy arrays. They are made when the first is needed, and kept in the cache on disk."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping
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


_HEAD = object.__basicsize__
"""The bytes of an object in front of its own fields."""


def address(array: NDArray[Any]) -> int:
    """Where an array's first element lies: the first field of numpy's `PyArrayObject` (its C API, "PyArray_Type").

    `array.ctypes.data` is the same, after 2 µs, three of which are a tenth of a small product.
    """
    return ctypes.c_size_t.from_address(id(array) + _HEAD).value


def exp(values: Floats, scale: Floats | None = None, bias: Floats | None = None, out: Floats | None = None) -> Floats:
    """The exponential of values [P, N] * scale + bias, which are float32; it is computed in float64, rounded once.

    Scale and bias, where there are any, are numbers or [P, 1]. `out` [P, N], where it can be, gets the result and is
    returned: it is another array, or `values` itself.
    """
    rows, columns = values.shape
    source, step = _rows_of_neighbours(values)
    if out is None or out.strides[1] != out.itemsize or (np.may_share_memory(out, source) and not _same(out, source)):
        out = np.empty(values.shape, np.float32)
    scales, biases = _column(scale, rows, 1.0), _column(bias, rows, 0.0)
    run = _function(exponential.build, (exponential.NAME,), exponential.NAME, 8)
    addresses = (address(source), address(out), address(scales), address(biases))
    run(*addresses, rows, columns, step, out.strides[0] // out.itemsize)
    return out


def _same(first: Floats, second: Floats) -> bool:
    """Whether each element of two arrays lies where the other's does."""
    return address(first) == address(second) and first.strides == second.strides


def _column(value: Floats | None, rows: int, default: float) -> Floats:
    """A number for each row."""
    if value is None:
        return _same_for_all(rows, default)
    flat = value.reshape(-1)
    return np.ascontiguousarray(flat if flat.size == rows else np.broadcast_to(flat, rows))


@cache
def _same_for_all(rows: int, number: float) -> Floats:
    return np.full(rows, number, np.float32)


def reduce_rows(operation: str, rows: Floats) -> Floats:
    """Each of the rows [P, N] reduced from its first element to its last, by one of `row_sums.NAMES`: [P]."""
    source, step = _rows_of_neighbours(rows)
    result = np.empty(len(rows), np.float32)
    run = _function(row_sums.build, tuple(row_sums.NAMES.values()), row_sums.NAMES[operation], 5)
    run(address(source), address(result), *rows.shape, step)
    return result


class _Scratch(threading.local):
    """Memory that is kept from product to product: each thread has its own."""

    def __init__(self) -> None:
        """None yet."""
        self._kept = np.empty(0, np.float32)
        self._size, self._address = 0, 0

    def address(self, elements: int) -> int:
        """That of so many float32; what they hold is overwritten by the next product."""
        if self._size < elements:
            self._kept = np.empty(elements, np.float32)
            self._size, self._address = elements, address(self._kept)
        return self._address


_SCRATCH = _Scratch()


@cache
def _products() -> Mapping[np.dtype[Any], Callable[..., None]]:
    """The function that multiplies operands of each dtype."""
    names = tuple(products.NAMES.values())
    known = (DTYPES["f32"].numpy, DTYPES["bf16"].numpy)
    return {dtype: _function(products.build, names, products.NAMES[dtype.name], 10) for dtype in known}


def multiply(
    stationary: NDArray[Any], moving: NDArray[Any], out: Floats | None = None, *, adds: bool = False
) -> Floats:
    """stationary [K, M].T @ moving [K, N] of floats of at most 32 bits: [M, N], as `products` says.

    `out`, neighbours [M, …] that are no operand, gets the result and is returned; `adds`: what it has is added to.
    """
    run = _products().get(stationary.dtype)
    if run is None or stationary.dtype != moving.dtype:
        run = _products()[np.dtype(np.float32)]
        stationary, moving = stationary.astype(np.float32), moving.astype(np.float32)
    (left, left_step), (right, right_step) = _rows_of_neighbours(stationary), _rows_of_neighbours(moving)
    (rows, height), width = left.shape, right.shape[1]
    shape = (_rounded_up(height, products.HEIGHT), _rounded_up(width, products.WIDTH))
    direct = out is not None and shape == (height, width)
    result = out if out is not None and direct else np.empty(shape, np.float32)
    scratch = _SCRATCH.address(products.scratch_elements(rows, height))
    addresses = (address(left), address(right), address(result), scratch)
    run(*addresses, rows, height, width, left_step, right_step, int(direct and adds))
    if out is None:
        return result[:height, :width]
    if not direct:
        made = result[:height, :width].reshape(out.shape)
        out[...] = out + made if adds else made
    return out


def _rounded_up(count: int, width: int) -> int:
    return -(-count // width) * width


def _rows_of_neighbours(matrix: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """The matrix, its rows in memory as neighbours, and the elements from row to row."""
    if matrix.strides[1] != matrix.itemsize or matrix.strides[0] % matrix.itemsize:
        matrix = np.ascontiguousarray(matrix)
    return matrix, matrix.strides[0] // matrix.itemsize
