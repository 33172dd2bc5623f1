"""Which bytes of HBM a launch loaded and stored, and who did: what a record of each byte says, in several dtypes."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import pytest
from numpy.typing import NDArray

from triptych.core.dtypes import dtype_of
from triptych.core.touched import noting_touched
from triptych.execution.profile import Profile
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.languages.nki.typing import mutable_tensor
from triptych.neuron.isa.hardware import Space
from triptych.neuron.isa.trace import Tensor
from triptych.neuron.run.buffers import Buffer, Known
from triptych.neuron.run.marks import Marks
from triptych.neuron.run.shadow import Shadow
from triptych.neuron.run.strided import Place, Scattered, Strided, layout_of, offsets_of

PROGRAMS = 3
SIZE = 331
"""Of the storage: no multiple of any element's size."""
VIEWS = (("f32", 12, 64), ("u16", 2, 70), ("u8", 5, 300), ("s64", 32, 37), ("f32", 6, 81))
"""Arguments: dtype, first byte, elements."""


def _buffer(shadow: Shadow, dtype: str, base: int, count: int) -> Buffer:
    tensor = Tensor("t", Space.HBM, dtype_of(dtype), 1, count, (count,), (1,))
    data = np.zeros(SIZE, np.uint8)
    return Buffer(tensor, data, Known.of(count * tensor.dtype.bytes, defined=True), base, shadow)


def _place(random: np.random.Generator, buffer: Buffer) -> Place:
    """A box of whole rows or of parts of them, in either order or backwards, a row repeated, or scattered elements."""
    count, stored = buffer.tensor.free, buffer.tensor.dtype.stored
    kind = random.integers(5)
    if kind == 4:
        valid = None if random.integers(2) else random.integers(0, 2, (2, 3)).astype(np.bool_)
        offsets = random.integers(0, count, (2, 3))
        return Scattered(offsets if valid is None else np.where(valid, offsets, 0), valid)
    rows, columns = int(random.integers(1, 5)), int(random.integers(1, 7))
    step = 0 if kind == 3 else columns if kind == 2 else int(random.integers(columns, columns + 3))
    offset = int(random.integers(0, count - step * (rows - 1) - columns + 1))
    pattern = ((step, rows), (1, columns))
    if kind == 0:
        offset, pattern = offset + step * (rows - 1), ((1, columns), (-step, rows))
    return Strided(offset, layout_of(pattern, stored))


def _bytes_of(place: Place, buffer: Buffer, *, touched: bool = True) -> NDArray[np.int64]:
    """Of the storage; of the elements outside too, where it is not asked what is touched."""
    offsets, item = offsets_of(place), buffer.tensor.dtype.bytes
    if touched and isinstance(place, Scattered) and place.valid is not None:
        offsets = offsets[place.valid]
    return np.add.outer(buffer.base + offsets.reshape(-1) * item, np.arange(item)).reshape(-1)


@pytest.mark.parametrize("seed", range(60))
def test_random_accesses(seed: int) -> None:
    """60 loads and stores of any program through five arguments over one storage, with meetings between them."""
    random = np.random.default_rng(seed)
    shadow = Shadow(SIZE, PROGRAMS)
    buffers = [_buffer(shadow, *view) for view in VIEWS[: 1 + seed % len(VIEWS)]]
    loads, stores = np.zeros(SIZE, np.bool_), np.zeros(SIZE, np.int64)
    met = np.iinfo(np.uint8).max
    for _ in range(60):
        buffer = buffers[random.integers(len(buffers))]
        place = _place(random, buffer)
        what = random.integers(8)
        if what == 0:
            shadow.synchronise()
            stores[stores != 0] = met
        elif what < 4:
            buffer.stamp_load(place)
            loads[_bytes_of(place, buffer)] = True
        else:
            program = int(random.integers(PROGRAMS))
            buffer.stamp_store(place, 1 + program)
            stores[_bytes_of(place, buffer)] = 1 + program
        seen = _place(random, buffer)
        expected = {*stores[_bytes_of(seen, buffer, touched=False)].tolist()}
        assert {*np.unique(buffer.store_stamps(seen)).tolist()} == expected
        assert shadow.loads.marked_bytes() == np.count_nonzero(loads)
        assert shadow.stores.marked_bytes() == np.count_nonzero(stores)
    loaded, stored = shadow.touched()
    np.testing.assert_array_equal(loaded, loads)
    np.testing.assert_array_equal(stored, stores != 0)


def test_arguments_of_two_dtypes_over_one_storage(trn2: Profile) -> None:
    """Rows of float32 and, from an odd row on, of bfloat16: each byte is loaded or stored where numpy's views say."""

    @nki.jit
    def kernel(words: NkiTensor, halves: NkiTensor, out: Annotated[NkiTensor, mutable_tensor]) -> object:
        nl.store(out[0:4, 8:16], nl.load(words[0:4, 0:8]))
        nl.store(out[4:5, 0:2], nl.load(halves[1:2, 3:5]))
        return out

    raw = np.zeros(2048, np.uint8)
    words = raw[:512].view(np.float32).reshape(8, 16)
    halves = raw[96 : 96 + 512].view(nl.bfloat16).reshape(16, 16)
    out = raw[1024:2048].view(np.float32).reshape(8, 32)
    with noting_touched():
        kernel(words, halves, out)
    loaded, stored = np.zeros(2048, np.bool_), np.zeros(2048, np.bool_)
    loaded[:512].reshape(8, 64)[0:4, 0:32] = True
    loaded[96:608].reshape(16, 32)[1:2, 6:10] = True
    stored[1024:].reshape(8, 128)[0:4, 32:64] = True
    stored[1024:].reshape(8, 128)[4:5, 0:8] = True
    (launch,) = trn2.launches
    (touched,) = launch.record.touched
    np.testing.assert_array_equal(touched.loaded_bytes, loaded)
    np.testing.assert_array_equal(touched.stored_bytes, stored)
    assert launch.counters["hbm.load.compulsory_bytes"].value == np.count_nonzero(loaded)
    assert launch.counters["hbm.store.compulsory_bytes"].value == np.count_nonzero(stored)
    assert launch.counters["dma.load.bytes"].value == 4 * 32 + 4


def test_bytes_behind_the_last_whole_unit() -> None:
    """Units of 4 bytes in a memory of 10: the third has 2 bytes, and counts as 2."""
    marks = Marks(10, same=1)
    marks.set(0, Strided(1, layout_of(((1, 1),), np.dtype(np.float32))), 4, 0)
    assert marks.marked_bytes() == 6
    np.testing.assert_array_equal(np.flatnonzero(~marks.marked()), [4, 5, 6, 7])
