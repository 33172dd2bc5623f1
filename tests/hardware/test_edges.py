"""What the recorded rows leave open against a recording of an H200, by both executors: its very bits.

The record is made by `benchmarks/hardware/edges.py` and `record_rows.py` there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edge_kernels import EdgeKernel, edge_kernels
from row_kernel import Lanes, run_text

from triptych.core.settings import scope

RECORD = Path(__file__).parents[1] / "data" / "hardware" / "edges-h200.npz"
KERNELS = {kernel.name: kernel for kernel in edge_kernels()}


@cache
def record() -> Mapping[str, Any]:
    return json.loads(str(np.load(RECORD)["record"]))


@cache
def recorded() -> Mapping[str, tuple[Mapping[str, Any], Lanes]]:
    """By a kernel's name: its entry, and its outputs."""
    data = np.load(RECORD)
    return {row["row"]: (row, data[f"outputs{number}"]) for number, row in enumerate(record()["rows"])}


@pytest.fixture(autouse=True)
def one_worker() -> Iterator[None]:
    with scope(workers=1):
        yield


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=lambda kernel: kernel.name)
def test_results_are_those_of_the_device(kernel: EdgeKernel) -> None:
    entry, theirs = recorded()[kernel.name]
    assert "refused" not in entry
    assert tuple(entry["opcodes"]) == kernel.opcodes
    assert entry["inputs"] == hashlib.sha256(kernel.inputs.tobytes()).hexdigest()[:16], "recorded with other operands"
    for name, ours in zip(
        ("generated code", "oracle"), run_text(kernel.text, kernel.inputs, kernel.shape), strict=True
    ):
        wrong = np.argwhere(ours != theirs)
        shown = [
            f"{name}: output {row}, operands {[hex(x) for x in kernel.inputs[:, case].tolist()]}: "
            f"{ours[row, case]:#x}, the device gave {theirs[row, case]:#x}"
            for row, case in wrong[:4].tolist()
        ]
        assert not shown, "\n".join(shown)


def test_every_kernel_was_recorded() -> None:
    assert record()["device"].startswith("NVIDIA H200")
    assert recorded().keys() == KERNELS.keys()
