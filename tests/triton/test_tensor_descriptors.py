"""Tensor descriptors, of the host and of the device, as tensor maps: Triton's own code for sm_90 on the machine."""

# Triton's language and host side have no types: kernels, and what was recorded of launches, are `Any` here.
# ruff: noqa: ANN001, ANN201, ANN401
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false, reportUnknownArgumentType=false, reportUntypedFunctionDecorator=false
# pyright: reportAttributeAccessIssue=false, reportUnknownLambdaType=false, reportPrivateUsage=false
# pyright: reportArgumentType=false, reportInvalidTypeForm=false

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.runtime._allocation import NullAllocator
from triton.tools.tensor_descriptor import TensorDescriptor

from triptych.core.errors import ArgumentError, MemoryFault
from triptych.core.plan import Struct
from triptych.execution.profile import profile
from triptych.gpu.tensor_map import BYTES, FIELDS, number_in
from triptych.languages.triton import activate, tensor

jit: Any = triton.jit


@pytest.fixture
def hopper() -> Generator[None]:
    """The driver, on an H100 compiling for sm_90; scratch memory for descriptors that kernels make."""
    with activate(chip="h100", target="sm_90"):
        triton.set_allocator(lambda size, alignment, stream: tensor(np.zeros(size, np.int8)))
        yield
        triton.set_allocator(NullAllocator())


@jit
def add_one(source, target, M: tl.constexpr, N: tl.constexpr):
    row, column = tl.program_id(0) * M, tl.program_id(1) * N
    target.store([row, column], source.load([row, column]) + 1)


@jit
def accumulate(source, target, M: tl.constexpr, N: tl.constexpr):
    target.atomic_add([0, 0], source.load([tl.program_id(0) * M, 0]))


@jit
def add_one_by_device_descriptors(x, out, rows, columns, M: tl.constexpr, N: tl.constexpr):
    source = tl.make_tensor_descriptor(x, shape=[rows, columns], strides=[columns, 1], block_shape=[M, N])
    target = tl.make_tensor_descriptor(out, shape=[rows, columns], strides=[columns, 1], block_shape=[M, N])
    row, column = tl.program_id(0) * M, tl.program_id(1) * N
    target.store([row, column], source.load([row, column]) + 1)


@jit
def show(source, out, M: tl.constexpr, N: tl.constexpr):
    tl.store(out + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], source.load([8, 0]))


def descriptor(array: np.ndarray[Any, Any], *block: int, **more: Any) -> Any:
    return TensorDescriptor.from_tensor(tensor(array), list(block), **more)


@pytest.mark.usefixtures("hopper")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8])
def test_host_descriptors(dtype: type) -> None:
    x = (np.arange(100 * 80) % 50).astype(dtype).reshape(100, 80)
    out = np.zeros_like(x)
    with profile() as seen:
        add_one[(4, 3)](descriptor(x, 32, 32), descriptor(out, 32, 32), 32, 32)
    np.testing.assert_array_equal(out, x + 1)
    counters = seen.launches[0].counters
    assert counters.value("tma.load.boxes") == counters.value("tma.store.boxes") == 12
    assert counters.value("global.load.bytes") == counters.value("global.store.bytes") == x.nbytes


@pytest.mark.usefixtures("hopper")
def test_reductions_by_descriptors() -> None:
    x, out = np.arange(96 * 16, dtype=np.int32).reshape(96, 16), np.ones((32, 16), np.int32)
    accumulate[(3,)](descriptor(x, 32, 16), descriptor(out, 32, 16), 32, 16)
    np.testing.assert_array_equal(out, 1 + x.reshape(3, 32, 16).sum(0))


@pytest.mark.usefixtures("hopper")
def test_device_descriptors() -> None:
    """Each block makes its maps in shared memory, field by field, and publishes them in its scratch."""
    x = (np.arange(100 * 72) % 1000).astype(np.float16).reshape(100, 72)
    out = np.zeros_like(x)
    add_one_by_device_descriptors[(4, 2)](x, out, 100, 72, 32, 64)
    np.testing.assert_array_equal(out, x + 1)


@pytest.mark.usefixtures("hopper")
def test_what_lies_outside_is_filled_as_asked() -> None:
    x, out = np.ones((12, 16), np.float32), np.zeros((16, 16), np.float32)
    show[(1,)](descriptor(x, 16, 16), out, 16, 16)
    np.testing.assert_array_equal(out, [[1] * 16] * 4 + [[0] * 16] * 12)
    by_nan = descriptor(x, 16, 16)
    by_nan.padding = "nan"  # Triton itself asks torch's types of elements whether they have it
    show[(1,)](by_nan, out, 16, 16)
    assert np.isnan(out[4:]).all()
    np.testing.assert_array_equal(out[:4], 1)


@pytest.mark.usefixtures("hopper")
@pytest.mark.skipif(not hasattr(TensorDescriptor, "round_f32_to_tf32"), reason="Triton has it from 3.7 on")
def test_singles_are_rounded_as_asked() -> None:
    x, out = np.full((24, 16), 1 + 3 * 2.0**-11, np.float32), np.zeros((16, 16), np.float32)
    show[(1,)](descriptor(x, 16, 16, round_f32_to_tf32=True), out, 16, 16)
    np.testing.assert_array_equal(out, np.float32(1 + 2.0**-9))


@pytest.mark.usefixtures("hopper")
def test_a_descriptor_of_more_than_its_array_is_a_fault_of_the_line() -> None:
    x, out = np.ones((12, 16), np.float32), np.zeros((16, 16), np.float32)
    longer = TensorDescriptor(tensor(x), [24, 16], [16, 1], [16, 16])
    with pytest.raises(MemoryFault, match="out of bounds") as caught:
        show[(1,)](longer, out, 16, 16)
    assert caught.value.where is not None
    assert caught.value.where.file == __file__


def test_what_a_launch_holds(recorder: Any) -> None:
    x, out = np.zeros((64, 32), np.float16), np.zeros((16, 16), np.float16)
    with activate(target="sm_90"):
        show[(1,)](descriptor(x, 16, 16), out, 16, 16)
    launch = recorder.launches[0]
    assert launch.names[:5] == (
        "source",
        "source.shape[0]",
        "source.shape[1]",
        "source.strides[0]",
        "source.strides[1]",
    )
    one, *numbers = launch.arguments[:5]
    assert isinstance(one, Struct)
    assert [number.value for number in numbers] == [64, 32, 32, 1]
    ((_, handle),) = one.pointers
    assert handle.shape == (64, 32)
    assert len(one.data) == BYTES
    read = {name: number_in(one.data, field) for name, field in FIELDS.items()}
    assert (read["rank"], read["elemtype"], read["swizzle_mode"], read["global_dim"]) == (1, 6, 1, 32)
    declared = recorder.programs[0].text.partition(".entry")[2].partition(")")[0].count(".param")
    assert len(launch.arguments) == declared


def test_what_no_tensor_map_holds_is_named(recorder: Any) -> None:
    x, out = np.zeros((64, 32), np.float32), np.zeros((16, 16), np.float32)
    late = descriptor(x, 16, 16)
    late.strides = [31, 1]
    with activate(target="sm_90"), pytest.raises(ArgumentError, match=r"'source': tensor map: strides\[0\] is 124"):
        show[(1,)](late, out, 16, 16)
    assert recorder.launches == []
