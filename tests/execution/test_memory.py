from __future__ import annotations

import gc
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from triptych.core.errors import ArgumentError
from triptych.core.handles import ALLOCATION_ALIGNMENT
from triptych.execution.host_memory import view
from triptych.execution.memory import Memory


def elements(memory: Memory, array: object) -> NDArray[Any]:
    """What the device sees of an array: through its handle and the map alone."""
    handle = memory.bind(array)
    return view(memory.map()[handle.storage], handle)


VIEWS: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "whole": lambda a: a,
    "slice": lambda a: a[1:, 2:5],
    "reversed": lambda a: a[::-1, ::-2],
    "transposed": lambda a: a.T,
    "row": lambda a: a[2],
    "scalar": lambda a: a[1, 1, ...],
    "broadcast": lambda a: np.broadcast_to(a[0], (3, a.shape[1])),
    "windows": lambda a: np.lib.stride_tricks.sliding_window_view(a, 2, axis=1),
    "bytes": lambda a: a.view(np.uint8),
    "new axis": lambda a: a[:, None],
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_share_their_owners_storage(name: str) -> None:
    memory = Memory()
    owner = np.random.default_rng(1).random((6, 8), dtype=np.float32)
    array = VIEWS[name](owner)
    assert memory.bind(array).storage == memory.bind(owner).storage
    assert np.array_equal(elements(memory, array), array)
    assert np.shares_memory(elements(memory, array), owner)
    assert memory.bind(array).storage.size == owner.nbytes


@pytest.mark.parametrize("order", ["C", "F", "K"])
def test_owner_of_any_order_is_seen_whole(order: Literal["C", "F", "K"]) -> None:
    owner = np.arange(60.0).reshape(3, 4, 5).transpose(2, 0, 1).copy(order=order)
    memory = Memory()
    assert np.array_equal(elements(memory, owner), owner)
    assert memory.bind(owner).storage.size == owner.nbytes


def test_addresses_are_aligned_apart_and_stable() -> None:
    memory = Memory()
    arrays = [np.zeros(count, np.uint8) for count in (1, 255, 256, 257, 5000, 0)]
    storages = [memory.bind(array).storage for array in arrays]
    assert all(storage.address % ALLOCATION_ALIGNMENT == 0 for storage in storages)
    for before, after in pairwise(storages):
        assert after.address >= before.end + 4096
    assert [memory.bind(array).storage for array in reversed(arrays)] == storages[::-1]
    assert [Memory().bind(array).data_ptr() for array in arrays] == [Memory().bind(arrays[0]).data_ptr()] * 6


def test_addresses_depend_on_the_order_of_binding_alone() -> None:
    def run() -> list[int]:
        memory = Memory()
        keep = [np.empty(size, np.float32) for size in (10, 2000, 3)]
        return [memory.bind(array).data_ptr() for array in keep]

    assert run() == run()


def test_storage_is_forgotten_with_its_owner() -> None:
    memory = Memory()
    kept = np.zeros(4)
    owner: NDArray[Any] | None = np.zeros(8)
    assert owner is not None
    part: NDArray[Any] | None = owner[2:]
    first = memory.bind(owner).storage
    memory.bind(kept)
    owner = None
    gc.collect()
    assert len(memory.map()) == 2  # the view keeps the owner alive
    assert memory.bind(part).storage == first
    part = None
    gc.collect()
    assert [storage.size for storage in memory.map()] == [kept.nbytes]
    assert memory.bind(np.zeros(8)).storage.address > first.address


def test_map_keeps_the_memory_alive() -> None:
    memory = Memory()
    owner: NDArray[Any] | None = np.full(1000, 7, np.uint8)
    storage = memory.bind(owner).storage
    seen = memory.map()
    owner = None
    gc.collect()
    assert (seen[storage] == 7).all()


def test_storing_through_the_map_reaches_the_array() -> None:
    memory = Memory()
    owner = np.zeros(4, np.float32)
    memory.map()
    storage = memory.bind(owner[1:]).storage
    memory.map()[storage][4:8] = np.frombuffer(np.float32(2.5).tobytes(), np.uint8)
    assert owner.tolist() == [0, 2.5, 0, 0]


def test_read_only_owner_gives_a_read_only_storage() -> None:
    memory = Memory()
    owner = np.zeros(4)
    assert memory.bind(owner).storage.writable
    owner.setflags(write=False)
    storage = memory.bind(owner).storage
    assert not storage.writable
    assert not memory.map()[storage].flags.writeable
    owner.setflags(write=True)
    assert memory.bind(owner).storage.writable
    assert memory.bind(owner).storage.address == storage.address
    assert not memory.bind(np.frombuffer(b"abcd", np.uint8)).storage.writable


def test_two_arrays_over_one_buffer_have_one_storage() -> None:
    memory = Memory()
    buffer = bytearray(64)
    whole, part = np.frombuffer(buffer, np.int32), np.frombuffer(buffer, np.int32, offset=16, count=4)
    assert memory.bind(whole).storage == memory.bind(part).storage
    assert memory.bind(part).data_ptr() == memory.bind(whole).data_ptr() + 16
    del whole
    gc.collect()
    elements(memory, part)[:] = 5
    assert part.tolist() == [5] * 4
    viewed = np.frombuffer(memoryview(part.data), np.int32)
    assert memory.bind(viewed).storage == memory.bind(part).storage


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.float8_e4m3fn])
def test_torch_tensors(dtype: torch.dtype) -> None:
    memory = Memory()
    tensor = torch.zeros(6, 4, dtype=torch.float32).to(dtype)
    handle = memory.bind(tensor[2:, 1])
    assert handle.shape == (4,)
    assert handle.strides == (4 * tensor.element_size(),)
    assert handle.data_ptr() - memory.bind(tensor).data_ptr() == 9 * tensor.element_size()
    assert handle.storage == memory.bind(tensor).storage
    assert handle.storage.size == tensor.numel() * tensor.element_size()
    memory.map()[handle.storage][:] = 1
    assert bool((tensor.view(torch.uint8) == 1).all())


def test_torch_and_numpy_over_the_same_memory_are_one_storage() -> None:
    memory = Memory()
    tensor = torch.arange(12)
    assert memory.bind(tensor.numpy()[3:]).storage == memory.bind(tensor).storage
    array = np.arange(12)
    storage = memory.bind(array).storage
    assert memory.bind(torch.from_numpy(array)).storage == storage  # pyright: ignore[reportUnknownMemberType]


def test_torch_storage_outlives_the_wrapper_and_is_forgotten_with_it() -> None:
    memory = Memory()
    tensor = torch.ones(8)
    storage = memory.bind(tensor).storage
    part = tensor[4:]
    del tensor
    gc.collect()
    assert memory.bind(part).storage == storage
    del part
    gc.collect()
    assert memory.map() == {}


def test_structs_and_complex_numbers_are_bytes() -> None:
    memory = Memory()
    points = np.zeros(5, np.dtype([("x", "f4"), ("n", "i4")], align=True))
    handle = memory.bind(points)
    assert (handle.dtype.name, handle.shape, handle.strides) == ("u8", (5, 8), (8, 1))
    assert memory.bind(np.zeros((2, 3), np.complex64)).shape == (2, 3, 8)
    assert memory.bind(torch.zeros(3, dtype=torch.complex64)).shape == (3, 8)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(2, object), "array of Python objects"),
        (np.zeros(2, ">f4"), r"big-endian array \(>f4\)"),
        (np.zeros(2, "U3"), "dtype <U3, which no kernel language has"),
        (np.zeros(2, np.longdouble), "which no kernel language has"),
        ([1.0, 2.0], "expected an array, got list"),
        (torch.zeros(2, device="meta"), "on device meta"),
        (torch.zeros(2, 2).to_sparse(), "torch.sparse_coo tensor"),
    ],
)
def test_what_is_no_array_for_a_kernel_is_an_argument_error(array: object, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Memory().bind(array)


def test_binding_again_and_again_does_not_grow() -> None:
    memory = Memory()
    owner = np.zeros(16)
    for start in range(16):
        memory.bind(owner[start:])
    assert len(memory.map()) == 1
    for _ in range(100):
        memory.bind(np.zeros(16))
    assert len(memory.map()) <= 2


def test_what_is_lent_for_a_launch_keeps_the_owners_alive() -> None:
    memory = Memory()
    owner: NDArray[Any] | None = np.full(1000, 7, np.uint8)
    storage = memory.bind(owner).storage
    lent, owners = memory.lend()
    owner = None
    gc.collect()
    assert len(owners) == 1
    assert (lent[storage] == 7).all()
    del lent, owners
    gc.collect()
    assert memory.lend() == ({}, [])


def test_what_is_derived_of_memory_is_kept_until_something_changes() -> None:
    memory, made = Memory(), list[int]()

    def look() -> list[int]:
        return memory.lend()[0].derive(list, lambda contents: made.append(1) or [storage.size for storage in contents])

    first = np.zeros(8)
    memory.bind(first)
    assert (look(), look(), len(made)) == ([64], [64], 1)
    second: NDArray[Any] | None = np.zeros(2)
    memory.bind(second)
    memory.bind(first[2:])
    assert (look(), look(), len(made)) == ([64, 16], [64, 16], 2)
    first.setflags(write=False)
    memory.bind(first)
    assert (look(), len(made)) == ([64, 16], 3)
    second = None
    gc.collect()
    assert (look(), len(made)) == ([64], 4)


def test_a_tensor_that_was_resized_in_place_is_another_storage() -> None:
    memory, tensor = Memory(), torch.zeros(4)
    before = memory.bind(tensor)
    assert memory.bind(tensor) == before
    tensor.resize_(1000)  # pyright: ignore[reportUnknownMemberType]
    after = memory.bind(tensor)
    assert (after.storage.size, after.shape) == (4000, (1000,))
    assert after.storage.address > before.storage.address
    tensor.set_(torch.ones(2).untyped_storage())  # pyright: ignore[reportUnknownMemberType]
    assert memory.bind(tensor).storage.size == 8
    assert memory.bind(tensor.to(torch.int32)).dtype.name == "s32"
