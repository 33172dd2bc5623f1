"""What is known of memory (written, accumulating, what it holds) is what a record of each element says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from triptych.core.dtypes import dtype_of
from triptych.neuron.isa.hardware import Space
from triptych.neuron.isa.trace import Pattern, Tensor
from triptych.neuron.run.buffers import Buffer, Pool, new_buffer
from triptych.neuron.run.strided import Place, Scattered, Strided, layout_of

PARTITIONS, FREE = 6, 8
NOBODY_S = {"f32": np.nan, "s32": 4}
"""What memory holds that nobody wrote."""


def _tensor(dtype: str, *, zeroed: bool = False) -> Tensor:
    return Tensor("t", Space.PSUM, dtype_of(dtype), PARTITIONS, FREE, (PARTITIONS, FREE), zeroed=zeroed)


def _at(dtype: str, offset: int, pattern: Pattern) -> Strided:
    return Strided(offset, layout_of(pattern, dtype_of(dtype).stored))


def _place(random: np.random.Generator, dtype: str) -> Place:
    """All of the tensor in either order of its axes, a box, a row repeated, or scattered elements."""
    kind = random.integers(5)
    if kind == 0:
        return _at(dtype, 0, ((FREE, PARTITIONS), (1, FREE)))
    if kind == 1:
        return _at(dtype, 0, ((1, FREE), (FREE, PARTITIONS)))
    if kind == 2:
        first, column = (int(random.integers(0, most)) for most in (PARTITIONS, FREE))
        rows, columns = int(random.integers(1, PARTITIONS - first + 1)), int(random.integers(1, FREE - column + 1))
        return _at(dtype, first * FREE + column, ((FREE, rows), (1, columns)))
    if kind == 3:
        return _at(dtype, 0, ((0, PARTITIONS), (1, FREE)))
    return Scattered(random.choice(PARTITIONS * FREE, size=(3, 4), replace=False).astype(np.int64))


def _offsets(place: Place) -> NDArray[np.int64]:
    if isinstance(place, Scattered):
        return place.offsets
    found = np.array(place.offset, np.int64)
    for step, count in place.layout.pattern:
        found = np.add.outer(found, step * np.arange(count))
    return found


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("dtype", ["f32", "s32"])
def test_random_places(dtype: str, seed: int) -> None:
    """Values and marks of 30 random writes, looked at in random places between them."""
    random = np.random.default_rng(seed)
    zeroed = bool(seed % 4 == 3)
    buffer = new_buffer(_tensor(dtype, zeroed=zeroed), 1, Pool())
    size = PARTITIONS * FREE
    values = np.full(size, 0 if zeroed else NOBODY_S[dtype], buffer.tensor.dtype.numpy)
    written, accumulating = np.full(size, zeroed), np.zeros(size, np.bool_)
    for step in range(30):
        place = _place(random, dtype)
        offsets = _offsets(place)
        if random.integers(3):
            given = (np.arange(offsets.size) + 100 * step).reshape(offsets.shape).astype(values.dtype)
            flags = None if random.integers(2) else random.integers(0, 2, offsets.shape).astype(np.bool_)
            now = bool(random.integers(2))
            buffer.write(place, given)
            buffer.mark_defined(place, flags)
            buffer.mark_accumulating(place, now)
            values[offsets] = given
            written[offsets] = True if flags is None else flags
            accumulating[offsets] = now
        _compare(buffer, _place(random, dtype), values, written, accumulating)
    assert buffer.undefined_elements() == np.count_nonzero(~written)


def _compare(
    buffer: Buffer, place: Place, values: NDArray[Any], written: NDArray[np.bool_], accumulating: NDArray[np.bool_]
) -> None:
    offsets = _offsets(place)
    np.testing.assert_array_equal(buffer.read(place), values[offsets])
    defined, marked = buffer.defined_view(place), buffer.accumulating_view(place)
    np.testing.assert_array_equal(np.ones(offsets.shape, np.bool_) if defined is None else defined, written[offsets])
    np.testing.assert_array_equal(np.broadcast_to(marked, offsets.shape), accumulating[offsets])


@pytest.mark.parametrize(("zeroed", "held"), [(True, 0.0), (False, np.nan)])
def test_memory_that_another_tile_had(zeroed: bool, held: float) -> None:
    """It is that one's memory, and holds nothing of it."""
    pool = Pool()
    data = np.full(4 * PARTITIONS * FREE, 7, np.uint8)
    pool.give(data)
    buffer = new_buffer(_tensor("f32", zeroed=zeroed), 1, pool)
    assert buffer.data is data
    everywhere = _at("f32", 0, ((FREE, PARTITIONS), (1, FREE)))
    np.testing.assert_array_equal(buffer.read(everywhere), np.full((PARTITIONS, FREE), held, np.float32))
    assert buffer.undefined_elements() == (0 if zeroed else PARTITIONS * FREE)
    assert not np.shares_memory(new_buffer(_tensor("f32"), 1, pool).data, data)


def test_a_view_in_another_dtype_shares_what_is_known() -> None:
    """Two bytes written through one view are half of an element of the other, whose other half nobody wrote."""
    tensor = _tensor("f32")
    halves = replace(tensor, dtype=dtype_of("u16"), free=2 * FREE, shape=(PARTITIONS, 2 * FREE), alias=0)
    buffer = new_buffer(tensor, 1, Pool())
    view = buffer.alias(halves)
    first = _at("u16", 0, ((2 * FREE, 1), (1, 1)))
    view.write(first, np.full((1, 1), 7, np.uint16))
    view.mark_defined(first, None)
    assert view.defined_view(first) is None
    np.testing.assert_array_equal(buffer.read(_at("f32", 0, ((FREE, 1), (1, 1)))).view(np.uint16)[0, 0], 7)
    everywhere = _at("f32", 0, ((FREE, PARTITIONS), (1, FREE)))
    whole = buffer.defined_view(everywhere)
    assert whole is not None
    assert not whole.any()
    everything = _at("u16", 0, ((2 * FREE, PARTITIONS), (1, 2 * FREE)))
    view.write(everything, np.zeros((PARTITIONS, 2 * FREE), np.uint16))
    view.mark_defined(everything, None)
    assert buffer.defined_view(everywhere) is None
    assert buffer.undefined_elements() == 0
