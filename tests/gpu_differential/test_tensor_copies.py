"""Copies of boxes of tensors on both executors, and against a model that runs no code (`box_model.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest
from both import Array, Outcome, run_both
from box_model import Box, loaded, stored
from numpy.typing import NDArray
from tensor_cases import SHARED_BYTES, Case, Map, cases, kernel_text

from triptych.core.errors import KernelFault, MemoryFault, TensorMapMisuse
from triptych.core.handles import AddressSpace
from triptych.execution.tensor_maps import encode_tensor_map
from triptych.gpu.tensor_map import FILLS, Descriptor

THREADS = 128
DTYPES: Mapping[str, np.dtype[Any]] = {
    "u8": np.dtype(np.uint8), "u16": np.dtype(np.uint16), "f16": np.dtype(np.float16), "u32": np.dtype(np.uint32),
    "f32": np.dtype(np.float32), "f64": np.dtype(np.float64),
}  # fmt: skip


def addresses(*arrays: Array) -> list[int]:
    """Where `run_both` places arrays that are passed in this order."""
    space = AddressSpace()
    return [space.place(f"array{index}", array.nbytes, writable=True).address for index, array in enumerate(arrays)]


def copy(case: Case, descriptor: Descriptor, tensor: Array, image: Array, *, only: str = "") -> Outcome:
    """A launch of the recorded copies' kernel; its arrays are the tile before and after, and the tensor."""
    after = np.zeros(len(image) + 8, np.uint8)
    placed = replace(descriptor, address=descriptor.address + addresses(image, after, tensor)[2])
    numbers = (np.uint32(len(image)), np.uint32(case.base), np.uint32(case.expected_bytes))
    places = map(np.int32, [*case.coordinates, 0, 0, 0, 0][:5])
    offsets = map(np.uint16, [*case.offsets, 0, 0, 0][:3])
    given = (placed.pack(), image, after, *numbers, *places, *offsets, tensor)
    return run_both(kernel_text(case), "copy", 1, THREADS, *given, only=only)


def descriptor_of(one: Map) -> Descriptor:
    corners = (one.lower, one.upper) if one.is_im2col else None
    return encode_tensor_map(
        0, one.dtype, one.shape, (*one.strides, DTYPES[one.dtype].itemsize if one.dtype in DTYPES else 4), one.box,
        one.element_strides, swizzle=one.swizzle, fill=one.fill, corners=corners,
    )  # fmt: skip


RECORDED = [case for case in cases() if case.map.dtype in DTYPES]


@pytest.mark.parametrize("case", RECORDED[::11], ids=lambda case: case.name)
def test_recorded_copies(case: Case) -> None:
    try:
        copy(case, descriptor_of(case.map), case.tensor(), case.image(), only="generated")
    except KernelFault as fault:
        with pytest.raises(type(fault)):
            copy(case, descriptor_of(case.map), case.tensor(), case.image(), only="oracle")
        return
    copy(case, descriptor_of(case.map), case.tensor(), case.image())


# --- Random boxes ---------------------------------------------------------------------------------------------------


def _random_map(random: np.random.Generator, axes: int) -> Map:
    dtype = str(random.choice(list(DTYPES)))
    size = DTYPES[dtype].itemsize
    swizzle = str(random.choice(["none", "32B", "64B", "128B"]))
    widest = {"none": 160, "32B": 32, "64B": 64, "128B": 128}[swizzle]
    width = int(random.integers(1, widest // 16 + 1)) * 16 // size
    shape = (*(int(n) for n in random.integers(1, 9, axes - 1)), int(random.integers(1, 3 * width)))
    row = -(-shape[-1] * size // 16) * 16 + 16 * int(random.integers(0, 2))
    strides = [row]
    for extent in shape[-2:0:-1]:
        strides.insert(0, strides[0] * extent + 16 * int(random.integers(0, 2)))
    box = (*(int(n) for n in random.integers(1, 7, axes - 1)), width)
    steps = (*(int(n) for n in random.integers(1, 4, axes - 1)), 1)
    fill = "nan" if dtype.startswith("f") and random.integers(2) else "zero"
    return Map(dtype, shape, tuple(strides if axes > 1 else ()), box, steps, swizzle=swizzle, fill=fill)


def _random_case(seed: int, kind: str) -> Case:
    random = np.random.default_rng(seed)
    axes = 1 + seed % 5 if kind == "load" else 2 + seed % 2
    one = _random_map(random, axes)
    chunk = 16 // DTYPES[one.dtype].itemsize
    low = -2 if kind == "load" else 0
    first = int(random.integers(low, one.shape[-1] // chunk + 2)) * chunk
    rest = [int(random.integers(2 * low, extent + 1)) for extent in one.shape[-2::-1]]
    return Case(f"{kind} {seed}", kind, one, (first, *rest), base=128 * int(random.integers(0, 9)))


def _tensor(one: Map, random: np.random.Generator) -> tuple[NDArray[np.uint8], Array]:
    """The tensor's memory, and the tensor in it."""
    whole = random.integers(0, 256, max(one.tensor_bytes, 16), np.uint8)
    dtype = DTYPES[one.dtype]
    strides = (*one.strides, dtype.itemsize)
    return whole, np.lib.stride_tricks.as_strided(whole.view(dtype), one.shape, strides)


def _box_of(case: Case) -> Box:
    return Box(case.coordinates[::-1], case.map.box, case.map.element_strides, case.map.swizzle)


@pytest.mark.parametrize("seed", range(25))
def test_random_loads(seed: int) -> None:
    case = _random_case(seed, "load")
    whole, tensor = _tensor(case.map, np.random.default_rng(seed))
    image = case.image()
    found = copy(case, descriptor_of(case.map), whole, image)
    fill = FILLS[case.map.fill == "nan"]
    expected = loaded(tensor, _box_of(case), case.base, image, fill)
    np.testing.assert_array_equal(found.arrays[1][: len(image)], expected)
    assert found.arrays[1][len(image)] == 1
    assert found.counters["shared.async.store.bytes"] == case.map.box_bytes


@pytest.mark.parametrize("seed", range(40, 52))
def test_random_stores(seed: int) -> None:
    case = _random_case(seed, "store")
    whole, tensor = _tensor(case.map, np.random.default_rng(seed))
    image = np.random.default_rng(seed + 1000).integers(0, 256, case.image_bytes, np.uint8)
    found = copy(case, descriptor_of(case.map), whole, image)
    expected = stored(tensor, _box_of(case), case.base, image)
    strides = (*case.map.strides, tensor.dtype.itemsize)
    left = np.lib.stride_tricks.as_strided(found.arrays[2].view(tensor.dtype), case.map.shape, strides)
    np.testing.assert_array_equal(left.view(f"u{left.dtype.itemsize}"), expected.view(f"u{left.dtype.itemsize}"))


# --- Counters -------------------------------------------------------------------------------------------------------


def _tile(shape: tuple[int, int], box: tuple[int, int], **more: Any) -> Map:  # noqa: ANN401
    return Map("u16", shape, (2 * shape[1],), box, (1, 1), **more)


COUNTED: Mapping[str, tuple[Map, tuple[int, int], Mapping[str, int]]] = {
    "whole sectors": (_tile((16, 64), (8, 32)), (0, 4), {"bytes": 512, "sectors": 16, "requests": 1}),
    "half sectors": (_tile((16, 64), (8, 24)), (8, 4), {"bytes": 384, "sectors": 16, "requests": 1}),
    "rows of half sectors, side by side": (_tile((16, 8), (8, 8)), (0, 4), {"bytes": 128, "sectors": 4, "requests": 1}),
    "some outside": (_tile((16, 64), (8, 32)), (48, 12), {"bytes": 128, "sectors": 4, "requests": 1}),
    "all outside": (_tile((16, 64), (8, 32)), (64, 0), {"bytes": 0, "sectors": 0, "requests": 0}),
}


@pytest.mark.parametrize("name", COUNTED)
def test_counters_of_a_box(name: str) -> None:
    one, place, expected = COUNTED[name]
    case = Case(name, "load", one, place)
    counters = copy(case, descriptor_of(one), case.tensor(), case.image()).counters
    plain = copy(replace(case, coordinates=(64, 0)), descriptor_of(one), case.tensor(), case.image()).counters
    for counter, value in expected.items():  # beside what the kernel itself loads
        assert counters[f"global.load.{counter}"] - plain[f"global.load.{counter}"] == value
    assert counters["shared.async.store.bytes"] == prod(one.counts) * 2
    assert counters["shared.async.store.requests"] == 1
    assert counters["tma.load.boxes"] == 1


# --- Faults ---------------------------------------------------------------------------------------------------------

GOOD = _tile((16, 64), (8, 32))


def _raises(case: Case, data: Descriptor, kind: type[KernelFault], match: str) -> None:
    for only in ("generated", "oracle"):
        with pytest.raises(kind, match=match if only == "generated" else None):
            copy(case, data, case.tensor(), case.image(), only=only)


MISFITS: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "axes": ({"shape": (64, 16, 2), "strides": (128, 2048), "box": (32, 8, 1), "element_strides": (1, 1, 1)}, "3 axes"),
    "a box's extent": ({"box": (32, 257)}, r"box_dim\[1\] = 257; expected 1 to 256"),
    "no extent": ({"box": (32, 0)}, r"box_dim\[1\] = 0; expected 1 to 256"),
    "the tensor's extent": ({"shape": (0, 16)}, r"global_dim\[0\] = 0"),
    "a stride": ({"strides": (120,)}, r"global_stride\[0\] = 120; .*a multiple of 16"),
    "a step": ({"element_strides": (1, 9)}, r"element_stride\[1\] = 9; expected 1 to 8"),
    "a row": ({"box": (12, 8)}, "rows have 24 bytes"),
    "the span": ({"swizzle": 1}, "rows have 64 bytes, more than the swizzle's span"),
    "a swizzle": ({"swizzle": 4}, "swizzle_mode = 4; expected 0 to 3"),
    "the fill": ({"fill": 1}, "fills elements of u16 .* with NaN"),
    "another mode": ({"box": (32, 8), "lower": (0,), "upper": (0,)}, "is of the other mode"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_a_map_that_does_not_fit(name: str) -> None:
    changes, match = MISFITS[name]
    _raises(Case(name, "load", GOOD, (0, 0)), replace(descriptor_of(GOOD), **changes), TensorMapMisuse, match)


def test_a_copy_from_within_a_chunk() -> None:
    _raises(Case("place", "load", GOOD, (4, 0)), descriptor_of(GOOD), TensorMapMisuse, "innermost coordinate 4")


def test_a_store_before_the_start() -> None:
    _raises(Case("store", "store", GOOD, (0, -1)), descriptor_of(GOOD), TensorMapMisuse, "reaches the coordinate -1")


def test_a_reduction_that_there_is_not() -> None:
    _raises(Case("add", "add", GOOD, (0, 0)), descriptor_of(GOOD), TensorMapMisuse, "no such reduction")


def test_a_tensor_larger_than_its_memory() -> None:
    case = Case("beyond", "load", GOOD, (32, 12))
    _raises(case, replace(descriptor_of(GOOD), shape=(64, 17)), MemoryFault, "is out of bounds")


def test_a_store_beyond_an_edge_within_a_chunk() -> None:
    """An H200 stores whole chunks: what is stored behind a row of no whole chunks may be no memory of the tensor's."""
    one = Map("u16", (20,), (), (32,), (1,))
    case = Case("edge", "store", one, (0,))
    with pytest.raises(MemoryFault, match="write of size 48 bytes"):
        copy(case, descriptor_of(one), np.zeros(20, np.uint16), case.image(), only="generated")


@pytest.mark.parametrize(("base", "match"), [(64, "a multiple of 128"), (SHARED_BYTES, "is out of bounds")])
def test_a_place_in_shared_memory(base: int, match: str) -> None:
    _raises(Case("place", "load", GOOD, (0, 0), base=base), descriptor_of(GOOD), MemoryFault, match)


def test_bytes_that_are_no_map() -> None:
    case = Case("none", "load", GOOD, (0, 0))
    image, after = case.image(), np.zeros(case.image_bytes + 8, np.uint8)
    numbers = (np.uint32(len(image)), np.uint32(0), np.uint32(512), *[np.int32(0)] * 5, *[np.uint16(0)] * 3)
    for data, told in ((b"\xa5" * 128, "0xa5a5a5a5"), (bytes(128), "0x00000000")):
        for only in ("generated", "oracle"):
            match = f"is none: it begins with {told}" if only == "generated" else "NO_MAP"
            with pytest.raises(TensorMapMisuse, match=match):
                run_both(kernel_text(case), "copy", 1, THREADS, data, image, after, *numbers, case.tensor(), only=only)
