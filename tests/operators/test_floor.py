"""The least time on a chip: by hand, at the chips' published peaks."""

from __future__ import annotations

import pytest

from triptych.chips import load, names
from triptych.operators import OPERATORS, operator
from triptych.operators.floor import floor


@pytest.mark.parametrize(
    ("name", "size", "dtype", "chip", "seconds", "bound"),
    [
        ("vec_add", "stream", "f32", "h100", 3 * 4 * 2**26 / 3.35e12, "memory"),
        ("vec_add", "stream", "f16", "a100-80", 3 * 2 * 2**26 / 2.039e12, "memory"),
        ("matmul", "square_4096", "f16", "a100-80", 2 * 4096**3 / 312e12, "matrix"),
        ("matmul", "square_4096", "f16", "v100", 2 * 4096**3 / 125e12, "matrix"),
        ("matmul", "llama_3_8b_decode", "bf16", "h100", 2 * (4096 + 4096**2 + 4096) / 3.35e12, "memory"),
    ],
)
def test_floors(name: str, size: str, dtype: str, chip: str, seconds: float, bound: str) -> None:
    one = operator(name)
    found = floor(one, one.size(size).values, one.dtype(dtype), load(chip))
    assert found.seconds == pytest.approx(seconds, rel=0.01)
    assert found.bound == bound


def test_every_chip_has_a_floor() -> None:
    for chip in map(load, names()):
        for one in OPERATORS.values():
            for dtype in one.dtypes:
                found = floor(one, one.sizes[-1].values, one.dtype(dtype), chip)
                bound = one.least_bytes(one.sizes[-1].values, one.dtype(dtype)) / chip.memory_bytes_per_s
                assert found.seconds >= bound > 0


def test_narrower_types_are_no_slower() -> None:
    """Half the bytes, and tensor cores at twice the rate."""
    chip = load("h100")
    for one in OPERATORS.values():
        if "f16" in one.dtypes:
            wide, narrow = (floor(one, one.sizes[-1].values, one.dtype(dtype), chip) for dtype in ("f32", "f16"))
            assert narrow.seconds <= wide.seconds
