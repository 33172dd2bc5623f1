"""Tensor maps of arrays: what they hold, what they are refused for, and plans that carry them."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import triptych as tt
from triptych.core.errors import PlanError
from triptych.core.plan import Launch, Struct
from triptych.core.validate import check_plan
from triptych.execution.tensor_maps import encode_tensor_map
from triptych.gpu.tensor_map import BYTES, FIELDS, LIMITS, LOWER, TILES, UPPER, corner_in, number_in

SOURCE = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry words(.param .align 64 .b8 map[128], .param .u64 out) {
    .reg .b32 %r<4>; .reg .b64 %d<4>;
    mov.u64 %d0, map; cvta.param.u64 %d0, %d0; ld.param.u64 %d1, [out];
    mov.u32 %r0, %tid.x; mul.wide.u32 %d2, %r0, 4; add.u64 %d0, %d0, %d2; add.u64 %d1, %d1, %d2;
    ld.u32 %r1, [%d0]; st.global.u32 [%d1], %r1; ret;
}
.visible .entry pointer(.param .u64 map) { ret; }
"""


def array(*shape: int) -> NDArray[np.float32]:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def test_a_map_reaches_the_kernel() -> None:
    x, out = array(6, 5, 8), np.zeros(32, np.uint32)
    one = tt.tensor_map(x, (2, 3, 8), swizzle="32B", fill="nan", element_strides=(1, 2, 1), l2_promotion="128B")
    tt.ptx.compile(SOURCE)["words"][1, 32](one, out)
    data = out.tobytes()
    assert data == bytes(one)
    assert len(data) == BYTES
    numbers = {name: [number_in(data, field, i) for i in range(field.count)] for name, field in FIELDS.items()}
    assert numbers == {
        "mark": [TILES], "rank": [2], "global_address": [tt.data_ptr(x)], "global_stride": [32, 160, 0, 0],
        "global_dim": [8, 5, 6, 0, 0], "box_dim": [8, 3, 2, 0, 0], "element_stride": [1, 2, 1, 0, 0], "elemtype": [7],
        "interleave_layout": [0], "swizzle_mode": [1], "swizzle_atomicity": [0], "fill_mode": [1],
    }  # fmt: skip


def test_fields_lie_apart_and_fill_the_map() -> None:
    taken = [place for f in FIELDS.values() for place in range(f.offset, f.offset + f.bytes * f.count)]
    assert sorted(taken) == list(range(BYTES))
    box = FIELDS["box_dim"]
    for corner in (LOWER, UPPER):
        assert box.offset + 8 <= corner.offset
        assert corner.offset + 6 <= box.offset + 20
    assert {limit.field for limit in LIMITS} == FIELDS.keys() - {"mark", "rank"}


def test_a_view_begins_where_it_does() -> None:
    x = array(16, 32)
    one = tt.tensor_map(x[4:, 8:24], (4, 16))
    assert one.descriptor.address == tt.data_ptr(x) + 4 * 128 + 32
    assert one.descriptor.shape == (16, 12)
    assert one.descriptor.strides == (128,)


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (np.bool_, "u8"), (np.int8, "u8"), (np.uint8, "u8"), (np.int16, "u16"), (np.uint16, "u16"), (np.int32, "s32"),
        (np.uint32, "u32"), (np.int64, "s64"), (np.uint64, "u64"), (np.float16, "f16"), (np.float32, "f32"),
        (np.float64, "f64"), (ml_dtypes.bfloat16, "bf16"), (ml_dtypes.float8_e4m3fn, "u8"),
    ],
)  # fmt: skip
def test_types_of_elements(dtype: Any, name: str) -> None:  # noqa: ANN401
    elements: NDArray[Any] = np.zeros((4, 64), dtype)
    assert tt.tensor_map(elements, (4, 16)).descriptor.element_type.name == name


def test_columns() -> None:
    one = tt.im2col_map(array(2, 5, 7, 16), 12, 8, (-1, -2), (0, 3), element_strides=(1, 2, 1, 1), dtype="tf32")
    data = bytes(one)
    assert one.descriptor.box == (8, 12)
    assert [corner_in(data, LOWER, i) for i in range(2)] == [-2, -1]
    assert [corner_in(data, UPPER, i) for i in range(2)] == [3, 0]
    assert number_in(data, FIELDS["elemtype"]) == 11


X = array(16, 32)
REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: tt.tensor_map(X, (4,)), "box has 1 numbers; expected 2, one for each axis"),
    (lambda: tt.tensor_map(X, (0, 32)), r"box\[0\] is 0; expected 1 to 256"),
    (lambda: tt.tensor_map(X, (257, 32)), r"box\[0\] is 257; expected 1 to 256"),
    (lambda: tt.tensor_map(X, (4, 3)), r"box\[1\] is 3, 12 bytes of f32; expected a multiple of 16 bytes"),
    (lambda: tt.tensor_map(X, (4, 1.5)), "box is .* expected whole numbers"),  # type: ignore[arg-type]
    (lambda: tt.tensor_map(X, (4, 16), swizzle="32B"), r"64 bytes of f32; with swizzle 32B at most 32 bytes"),
    (lambda: tt.tensor_map(X, (4, 16), swizzle="48B"), "swizzle is '48B'; expected none, 32B, 64B or 128B"),
    (lambda: tt.tensor_map(X, (4, 16), fill="one"), "fill is 'one'; expected zero or nan"),
    (lambda: tt.tensor_map(X, (4, 16), l2_promotion="32B"), "l2_promotion is '32B'; expected none, 64B, 128B or 256B"),
    (lambda: tt.tensor_map(X, (4, 16), interleave="64B"), "interleave is '64B'; expected none, 16B or 32B"),
    (lambda: tt.tensor_map(X, (4, 16), dtype="f8"), "dtype is f8; expected u8, u16, "),
    (lambda: tt.tensor_map(X, (4, 16), dtype="u16"), r"strides\[1\] is 4; expected 2: along the last axis"),
    (lambda: tt.tensor_map(X, (4, 16), element_strides=(9, 1)), r"element_strides\[0\] is 9; expected 1 to 8"),
    (lambda: tt.tensor_map(X, (4, 16), element_strides=(1,)), "element_strides has 1 numbers; expected 2"),
    (lambda: tt.tensor_map(X.view(np.int32), (4, 16), fill="nan"), "fill is nan; elements of s32 can only be filled"),
    (lambda: tt.tensor_map(X[:, 1:], (4, 16)), r"address is \d+; expected .*, a multiple of 16"),
    (lambda: tt.tensor_map(X[:, ::2], (4, 16)), r"strides\[1\] is 8; expected 4: along the last axis"),
    (lambda: tt.tensor_map(X[::-1], (4, 16)), r"strides\[0\] is -128; expected 0 to 1099511627775"),
    (lambda: tt.tensor_map(array(4, 30), (4, 16)), r"strides\[0\] is 120; expected .*, a multiple of 16"),
    (lambda: tt.tensor_map(X.T, (4, 16)), r"strides\[0\] is 4; expected .*, a multiple of 16"),
    (lambda: tt.tensor_map(array(1, 1, 1, 1, 4, 4), (1,) * 5 + (4,)), "the array has 6 axes; expected 1 to 5"),
    (lambda: tt.tensor_map(np.zeros((0, 4), np.float32), (1, 4)), r"shape\[0\] is 0; expected 1 to 4294967296"),
    (lambda: tt.tensor_map(X.astype(np.complex64), (4, 16)), "dtype|axes|strides"),
    (lambda: tt.tensor_map([1.0], (4,)), "expected an array, got list"),
    (lambda: tt.tensor_map(np.zeros((256, 256), np.float64), (256, 256)), "a box has 524288 bytes; expected at most"),
    (lambda: tt.im2col_map(X, 8, 8, (), ()), "the array has 2 axes; expected 3 to 5"),
    (lambda: tt.im2col_map(array(2, 8, 8), 1025, 8, (0,), (0,)), "pixels is 1025; expected 1 to 1024"),
    (lambda: tt.im2col_map(array(2, 8, 8), 8, 257, (0,), (0,)), "channels is 257; expected 1 to 256"),
    (lambda: tt.im2col_map(array(2, 8, 8), 8, 2, (0,), (0,)), "channels is 2, 8 bytes of f32; expected a multiple"),
    (lambda: tt.im2col_map(array(2, 8, 8), 8, 8, (0, 0), (0,)), "lower has 2 numbers; expected 1"),
    (lambda: tt.im2col_map(array(2, 8, 8, 8), 8, 8, (0, -129), (0, 0)), r"lower\[1\] is -129; expected -128 to 127"),
    (lambda: tt.im2col_map(array(2, 2, 8, 8, 8), 8, 8, (0,) * 3, (0, 16, 0)), r"upper\[1\] is 16; expected -16 to 15"),
    (lambda: tt.im2col_map(array(2, 8, 8), 8, 8, (4,), (-4,)), r"of 8 pixels nothing is left"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(tt.ArgumentError, match=message):
        make()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"swizzle": "128B_atom_32B"}, "swizzle 128B_atom_32B needs sm_100"),
        ({"interleave": "16B"}, "interleave is 16B"),
    ],
)
def test_what_is_not_supported(changes: dict[str, str], message: str) -> None:
    with pytest.raises(tt.UnsupportedFeature, match=message):
        tt.tensor_map(X, (4, 16), **changes)  # type: ignore[arg-type]


def test_addresses_beyond_those_of_the_hardware() -> None:
    with pytest.raises(tt.ArgumentError, match="address is 144115188075855872; expected 0 to 144115188075855871"):
        encode_tensor_map(1 << 57, "f32", (4, 4), (16, 4), (4, 4))


def test_a_map_is_passed_by_value_alone() -> None:
    one = tt.tensor_map(X, (4, 16))
    with pytest.raises(tt.ArgumentError, match=r"expected .*, got TensorMap"):
        tt.ptx.compile(SOURCE)["pointer"][1, 32](one)
    with pytest.raises(tt.ArgumentError, match="128 bytes, got 8 bytes"):
        tt.ptx.compile(SOURCE)["words"][1, 32](np.float64(1).view("V8"), np.zeros(32, np.uint32))


# --- Lifetimes and plans ----------------------------------------------------------------------------------------------


def test_a_map_keeps_its_array() -> None:
    x = array(4, 8)
    address, one = tt.data_ptr(x), tt.tensor_map(x, (4, 8))
    del x
    gc.collect()
    others = [array(4, 8) for _ in range(4)]
    assert address not in {tt.data_ptr(other) for other in others}
    assert number_in(bytes(one), FIELDS["global_address"]) == address


def plan_of(x: NDArray[np.float32]) -> tt.plans.Plan:
    return tt.ptx.compile(SOURCE)["words"][1, 32].plan(tt.tensor_map(x, (4, 8)), np.zeros(32, np.uint32))


def test_a_plan_carries_the_array_of_a_map() -> None:
    plan = plan_of(array(4, 8))
    assert plan == plan_of(array(4, 8)), "addresses of a plan's own"
    assert tt.plans.unpack(tt.plans.pack(plan)) == plan
    launch = plan.nodes[0]
    assert isinstance(launch, Launch)
    handle = launch.handles[0]
    assert handle.storage in {one.storage for one in plan.inputs}
    one = launch.arguments[0]
    assert isinstance(one, Struct)
    assert one.pointers == ((FIELDS["global_address"].offset, handle),)
    assert number_in(one.packed, FIELDS["global_address"]) == handle.data_ptr()


@pytest.mark.parametrize("offset", [-1, 121])
def test_a_pointer_lies_in_its_struct(offset: int) -> None:
    plan = plan_of(array(4, 8))
    launch = plan.nodes[0]
    assert isinstance(launch, Launch)
    wrong = Struct(bytes(BYTES), ((offset, launch.handles[0]),))
    broken = replace(plan, nodes=(replace(launch, arguments=(wrong, launch.arguments[1])),))
    with pytest.raises(PlanError, match=f"argument 0: a pointer at byte {offset} of 128"):
        check_plan(broken)
