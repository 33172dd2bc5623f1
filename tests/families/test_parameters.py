"""Parameters that are structs: empty, unions, nested, with pointers; functions as arguments of templates."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from family import blocks, module, normal, whole

import triptych as tt

NAMES = (
    "combine<float, Plus<float>>",
    "combine<float, Scaled>",
    "combine<int, Plus<int>>",
    "fold<add>",
    "fold<largest>",
)


class Either(ctypes.Union):
    _fields_ = (("whole", ctypes.c_int), ("real", ctypes.c_float), ("bytes", ctypes.c_ubyte * 8))


class Image(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_uint64),
        ("width", ctypes.c_int),
        ("height", ctypes.c_int),
        ("pitch", ctypes.c_longlong),
    )


class Inner(ctypes.Structure):
    _fields_ = (("tag", ctypes.c_byte), ("value", ctypes.c_double), ("pair", ctypes.c_short * 3))


class Everything(ctypes.Structure):
    """A C++ compiler gives the empty member a byte, and `wide` 16 bytes at a multiple of 16."""

    _fields_ = (
        ("nothing", ctypes.c_byte), ("inner", Inner * 2), ("either", Either), ("image", Image), ("flag", ctypes.c_bool),
        ("gap", ctypes.c_byte * 7), ("wide", ctypes.c_float * 4),
    )  # fmt: skip


class Table(ctypes.Structure):
    _fields_ = (("of", ctypes.c_int * 40),)


def test_empty() -> None:
    out, nothing = np.zeros(3, np.int32), b"\0"
    module("parameters", *NAMES)["empty"][1, 3](nothing, out, nothing, 41)
    assert out.tolist() == [42, 42, 42]


@pytest.mark.parametrize(("how", "wanted"), [(0, 0x40490FDB), (1, np.float32(np.pi)), (2, 66)])
def test_union(how: int, wanted: float) -> None:
    out = np.zeros(1)
    either = Either.from_buffer_copy(np.float32(np.pi).tobytes() + bytes([65, 66, 67, 68]))
    module("parameters", *NAMES)["either"][1, 1](either, how, out)
    assert out[0] == wanted


@pytest.mark.parametrize(("width", "height"), [(1, 1), (1, 2), (33, 5), (64, 4)])
def test_struct_with_a_pointer(width: int, height: int) -> None:
    found = normal(height, height, width + 3)
    given = found.copy()
    image = Image(tt.data_ptr(found), width, height, width + 3)
    if height > 1:
        module("parameters", *NAMES)["flip"][(blocks(width, 32), height // 2), 32](image)
    assert np.array_equal(found[:, :width], given[::-1, :width])
    assert np.array_equal(found[:, width:], given[:, width:])


def test_nested_struct() -> None:
    assert (ctypes.sizeof(Everything), Everything.wide.offset) == (112, 96)
    data, out = np.array([4, 5.5], np.float32), np.zeros(18)
    everything = Everything()
    everything.inner[0] = Inner(-7, 2.5, (1, -2, 3))
    everything.inner[1] = Inner(127, -1e300, (-32768, 0, 32767))
    everything.either.real = 0.25
    everything.image = Image(tt.data_ptr(data), 3, -4, 2**40)
    everything.flag = True
    everything.wide = (1.5, -2.5, 3.5, 0)
    module("parameters", *NAMES)["everything"][1, 1](everything, out)
    inner = [-7, 2.5, 1, -2, 3, 127, -1e300, -32768, 0, 32767]
    assert out.tolist() == [*inner, 0.25, 5.5, -4, 2**40, 1, 1.5, -2.5, 3.5]


def test_tables_by_value() -> None:
    numbers, places, out = whole(1, 40), whole(2, 64, low=0, high=40), np.zeros((2, 64), np.int32)
    table = Table((ctypes.c_int * 40)(*numbers.tolist()))
    module("parameters", *NAMES)["looked_up"][1, 64](table, places, out[0])
    assert np.array_equal(out[0], numbers[places])
    module("parameters", *NAMES)["changed"][1, 40](table, out[1])
    for thread in range(40):
        own = numbers.copy()
        np.add.at(own, (np.arange(40) * 7 + thread) % 40, np.arange(40))
        assert out[1, thread] == own[thread]
    assert list(table.of) == numbers.tolist()


@pytest.mark.parametrize("count", [1, 50])
def test_functions_as_arguments(count: int) -> None:
    a, b, out = normal(1, count), normal(2, count), np.zeros((3, count), np.float32)
    kernels = module("parameters", *NAMES)
    grid = blocks(count, 32)
    kernels["combine<float, Plus<float>>"][grid, 32](a, b, out[0], b"\0", count)
    kernels["combine<float, Scaled>"][grid, 32](a, b, out[1], np.float32(3).tobytes(), count)
    assert np.array_equal(out[0], a + b)
    np.testing.assert_allclose(out[1], 3 * a.astype(np.float64) - b, rtol=1e-6, atol=1e-6)
    numbers, sums = whole(1, count), np.zeros(count, np.int32)
    kernels["combine<int, Plus<int>>"][grid, 32](numbers, numbers, sums, b"\0", count)
    assert np.array_equal(sums, 2 * numbers)
    rows = normal(3, count, 7)
    kernels["fold<largest>"][1, count](rows, out[2], 7)
    assert np.array_equal(out[2], rows.max(1))
    kernels["fold<add>"][1, count](rows, out[2], 7)
    np.testing.assert_allclose(out[2], rows.sum(1, dtype=np.float64), rtol=1e-5, atol=1e-5)


def test_list_in_device_memory() -> None:
    order = np.random.default_rng(5).permutation(20).astype(np.int32)
    nodes, sums = tt.zeros(20 * 2, "s64"), np.zeros(20, np.int32)
    module("parameters", *NAMES)["link"][1, 8](nodes, order, 20)
    module("parameters", *NAMES)["follow"][1, 20](nodes, order, sums)
    assert sums.tolist() == [sum(k * k for k in range(start, 20)) for start in range(20)]
