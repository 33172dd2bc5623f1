"""Counters of single accesses against those that an H200's own counters gave: equal, all of them."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import triptych as tt

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "tests" / "data" / "hardware" / "access_patterns-h200.json"
KERNELS = ROOT / "benchmarks" / "hardware" / "access_patterns.cu"
TYPES = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "unsigned long long", 16: "uint4"}
KINDS = ("shared_load", "shared_store", "global_load", "global_store")
SASS = "instructions.sass"
"""Recorded to see that the access was not merged or split; not a count of the machine's."""


@cache
def module() -> tt.cuda.CudaModule:
    names = [f"{kind}<{type_}>" for kind in KINDS for type_ in TYPES.values()]
    return tt.cuda.compile(KERNELS, arch="sm_90", names=names)


@cache
def record() -> dict[str, Any]:
    return json.loads(RECORD.read_text())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", TYPES)
def test_counters_equal_the_hardware(kind: str, size: int) -> None:
    kernel = module()[f"{kind}<{TYPES[size]}>"]
    out, data = np.zeros(32, np.uint32), np.zeros(1 << 20, np.int8)
    patterns = [p for p in record()["patterns"] if (p["kind"], p["size"]) == (kind, size)]
    assert len(patterns) == 38
    for pattern in patterns:
        offsets, mask = np.array(pattern["offsets"], np.uint32), np.uint32(pattern["mask"])
        more = {"global_load": (data, out), "global_store": (data,)}.get(kind, (out,))
        report = kernel[1, 32, 32768 if kind.startswith("shared") else 0](offsets, mask, *more)
        measured = {name: value for name, value in pattern["measured"].items() if name != SASS}
        assert {name: report.counters.value(name) for name in measured} == measured, pattern["name"]


def test_the_record_says_where_it_is_from() -> None:
    assert record()["device"].startswith("NVIDIA H200")
    assert record()["date"] == "2026-11-29"
