"""Copies of boxes of tensors against those of an H200, byte by byte; and the tensor maps that its driver takes.

The record is made by `benchmarks/hardware/record_tensor_copies.py`, of the copies in `tensor_cases.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from driver_maps import maps
from numpy.typing import NDArray
from tensor_cases import ELEMENT_BYTES, Case, Map, cases, kernel_text

import triptych as tt
from triptych.execution.memory import memory
from triptych.execution.tensor_maps import encode_tensor_map
from triptych.gpu.tensor_map import Descriptor

RECORD = Path(__file__).parents[1] / "data" / "hardware" / "tensor_copies-h200.npz"
CASES = {case.name: case for case in cases()}
BLOCK = 128
ILLEGAL, MISALIGNED = "715", "716"
"""What the driver says of an illegal instruction, and of a misaligned address."""


@cache
def recorded() -> Mapping[str, NDArray[Any]]:
    with np.load(RECORD) as data:
        return dict(data)


@cache
def record() -> Mapping[str, Any]:
    return json.loads(str(recorded()["record"]))


def encode(one: Map, address: int) -> Descriptor:
    return encode_tensor_map(
        address, one.dtype, one.shape, (*one.strides, ELEMENT_BYTES[one.dtype]), one.box, one.element_strides,
        swizzle=one.swizzle, fill=one.fill, interleave=one.interleave,
        corners=(one.lower, one.upper) if one.is_im2col else None,
    )  # fmt: skip


@cache
def module(text: str) -> tt.ptx.PtxModule:
    return tt.ptx.compile(text)


def run(case: Case) -> tuple[NDArray[np.uint8], int]:
    """What was copied to: the tile or the tensor; and whether the barrier completed."""
    tensor, image = case.tensor(), case.image()
    after = np.zeros(len(image) + 8, np.uint8)
    descriptor = encode(case.map, memory().bind(tensor).data_ptr()).pack()
    places, offsets = [*case.coordinates, 0, 0, 0, 0][:5], [*case.offsets, 0, 0, 0][:3]
    kernel = module(kernel_text(case))["copy"]
    numbers = (len(image), case.base, case.expected_bytes, *places, *offsets)
    kernel[1, BLOCK](np.frombuffer(descriptor, "V128")[0], image, after, *numbers, tensor)
    return after[: len(image)] if case.kind == "load" else tensor, int(after[len(image)])


def test_the_record_is_of_these_copies() -> None:
    told = ("complete", "failed", "refused")
    recorded = [{name: value for name, value in row.items() if name not in told} for row in record()["cases"]]
    assert recorded == json.loads(json.dumps([case.as_json() for case in CASES.values()]))
    assert record()["device"].startswith("NVIDIA H200")
    assert record()["date"] == "2026-11-30"


@pytest.mark.parametrize("name", CASES)
def test_bytes_equal_the_hardware(name: str) -> None:
    number = list(CASES).index(name)
    row = record()["cases"][number]
    failed = row.get("failed", "")
    if failed:
        kind = tt.TensorMapMisuse if failed.endswith(ILLEGAL) else tt.MemoryFault
        assert failed.endswith((ILLEGAL, MISALIGNED))
        with pytest.raises(kind):
            run(CASES[name])
        return
    found, complete = run(CASES[name])
    np.testing.assert_array_equal(found, recorded()[f"after{number}"])
    assert complete == row["complete"] == 1


@pytest.mark.parametrize(("name", "one", "address"), maps(), ids=[name for name, _, _ in maps()])
def test_maps_are_refused_as_by_the_driver(name: str, one: Map, address: int) -> None:
    status = dict(record()["maps"])[name]
    if one.interleave != "none":
        with pytest.raises(tt.TriptychError, match=r"interleave|axes"):
            encode(one, address)
    elif status:
        with pytest.raises(tt.TriptychError, match="tensor map: "):
            encode(one, address)
    else:
        assert len(encode(one, address).pack()) == 128


@pytest.mark.parametrize("number", range(4))
def test_replaced_fields_mean_what_the_driver_is_given(number: int) -> None:
    """A map made of zeros by `tensormap.replace` has the driver's first half, where the numbers stand."""
    row = record()["replaced"][number]
    assert row["replaced"][:128] == row["encoded"][:128]
