"""Where `wgmma` finds swizzled matrices by their descriptors: as an H200 does.

The record is made by `benchmarks/hardware/record_descriptors.py`.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
from descriptor_cases import BLOCK, ENTRY, SOURCE, cases, empty, places
from numpy.typing import NDArray

import triptych as tt

RECORD = Path(__file__).parents[1] / "data" / "hardware" / "descriptors-h200.npz"


@cache
def recorded() -> NDArray[np.uint16]:
    with np.load(RECORD) as data:
        assert "H200" in json.loads(str(data["record"]))["device"]
        return data["places"]


@cache
def module() -> tt.cuda.CudaModule:
    return tt.cuda.compile(SOURCE, arch="sm_90a")


def test_rows_are_where_an_h200_finds_them() -> None:
    found = empty()
    with tt.profile(chip="h200"):
        report = module()[ENTRY][len(cases()), BLOCK](cases(), found)
    np.testing.assert_array_equal(places(found), recorded())
    assert report.findings == ()
