"""The bytes of numbers: Python's own way to them, where it knows the type, gives what numpy gives."""

from __future__ import annotations

import math

import numpy as np
import pytest

from triptych.core.dtypes import DTYPES, DType

NUMPY_TYPES = [row for row in DTYPES.values() if row.numpy.fields is None]
FLOATS = (0.0, -0.0, 1.5, 1 / 3, -2.75e-3, 1e-45, 6e4, 1e39, math.inf, -math.inf, math.nan)


@pytest.mark.parametrize("dtype", NUMPY_TYPES, ids=str)
def test_packed_is_what_numpy_makes(dtype: DType) -> None:
    values = FLOATS if dtype.is_float else [value for value in (0, 1, -1, 2**31 - 1, 2**63) if dtype.holds(value)]
    for value in values:
        with np.errstate(over="ignore", invalid="ignore"):
            expected = np.array(value).astype(dtype.numpy).tobytes()
            assert dtype.pack(value) == expected, value
    assert len(dtype.pack(values[0])) == dtype.bytes


@pytest.mark.parametrize("name", ["s32", "u64", "u8"])
def test_a_whole_number_given_as_a_float(name: str) -> None:
    assert DTYPES[name].pack(3.0) == DTYPES[name].pack(3)


@pytest.mark.parametrize("name", ["tf32", "x4f8e4m3fn", "x4f4e2m1fn"])
def test_a_type_that_numpy_lacks_has_no_values(name: str) -> None:
    assert not any(DTYPES[name].holds(value) for value in (0, 1.0, float("nan")))
