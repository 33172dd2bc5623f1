"""The record of kernels at named sizes: none is left out, all are right, none has a finding, and some are run again."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import record_kernel_sizes
from generators.attention_forward import ATTENTION_FORWARD
from generators.kernel_sizes import CALLS, LANGUAGES, Run, measure, runs, sources
from triptych.kernels.catalogue import KERNELS
from triptych.operators import OPERATORS, case

RECORDED: Mapping[str, Any] = json.loads(record_kernel_sizes.DATA.read_text(encoding="utf-8"))
NEEDED = [
    "vec_add",
    "elementwise_chain",
    "gelu_linear",
    "reduce_sum",
    "softmax",
    "rms_norm",
    "layer_norm",
    "swiglu",
    "rope",
    "transpose",
    "matmul",
    "attention",
    "cross_entropy",
    "cumsum",
]
"""Operators that every language has a kernel for."""
REFUSED = {
    **{f"cuda.{name} {size}": "expected a multiple of" for name, size in (
        ("matmul_mma", "ragged"), ("matmul_wgmma", "ragged"), ("matmul_wmma", "ragged"),
        ("matmul_wmma", "llama_3_8b_decode"),
    )},
    "triton.persistent_matmul ragged": "expected a multiple of 8",
    "nki.matmul_blocked llama_3_70b_down": "SBUF",
    "nki.softmax gpt2_vocabulary": "SBUF",
    "nki.softmax llama_3_vocabulary": "SBUF",
}  # fmt: skip
"""Kernels and sizes that they do not take, and what the message says."""


def recorded(run: Run) -> Mapping[str, Any] | None:
    return RECORDED.get(run.name, {}).get(run.size.name)


def run_of(name: str, size: str = "tiny") -> Run:
    (run,) = [run for run in runs() if (run.name, run.size.name) == (name, size)]
    return run


def test_no_kernel_is_left_out() -> None:
    """Every function that carries out an operator, at every size of that."""
    sizes: dict[str, set[str]] = {}
    for run in runs():
        sizes.setdefault(run.name, set()).add(run.size.name)
    assert set(sizes) == {place for place, one in KERNELS.items() if one.operator is not None}
    for run in runs():
        assert sizes[run.name] == {one.name for one in OPERATORS[run.operator.name].sizes}
    for name in NEEDED:
        assert {run.language for run in runs() if run.operator.name == name} == set(LANGUAGES)


def test_it_is_known_how_to_call_each() -> None:
    """What takes or returns something else than its operator says has a way to be called, or an operator of its own."""
    special = {place for place, one in KERNELS.items() if one.operator is not None and not one.as_operator}
    assert special == {*CALLS, *(run.name for run in runs() if run.operator is ATTENTION_FORWARD)}


def test_all_are_recorded() -> None:
    names = {(run.name, run.size.name) for run in runs()}
    assert {(name, size) for name, sizes in RECORDED.items() for size in sizes} == names


def test_all_are_right() -> None:
    refused: dict[str, str] = {}
    for run in runs():
        row = recorded(run) or {}
        if "refused" in row:
            refused[f"{run.name} {run.size.name}"] = row["refused"]
        elif row:
            assert row["error"] <= 1, run
            assert row["findings"] == 0, run
            assert row["bytes_over_least"] > 0.99, run
    assert set(refused) == set(REFUSED)
    assert all(REFUSED[name] in message for name, message in refused.items())


@pytest.mark.parametrize(
    "name", ["nki.rms_norm", "nki.gelu_linear", "nki.matmul_tiled", "nki.attention_forward", "nki.attention_streamed"]
)
def test_some_again(name: str) -> None:
    again, row = measure(run_of(name)), {**(recorded(run_of(name)) or {})}
    for one in (again, row):
        del one["host"], one["digest"]  # a kernel that was changed is right still
    assert row == again


def test_what_a_kernel_is_made_of() -> None:
    def of(name: str) -> set[str]:
        return {path.name for path in sources(name, run_of(name).function)}

    shared = {"arrays.py", "problems.py", "loading.py"}
    assert of("cuda.vec_add") >= {"elementwise.py", "vec_add.cu", "packs.cuh"} | shared
    assert of("cuda.matmul_wgmma") >= {"matmul.py", "matmul_wgmma.cu", "hopper.cuh"} | shared
    assert of("nki.attention_streamed") == {"attention_streamed.py", "attention.py", "tiles.py", "arrays.py"}
    assert {"persistent_matmul.py", "matmul.py", "machine.py"} <= of("triton.persistent_matmul")


def test_rows_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has a row is not run again, unless the kernel was changed; rows of other files are taken likewise."""
    path, other, run = tmp_path / "rows.json", tmp_path / "others.json", run_of("nki.rms_norm")
    record_kernel_sizes.record(path, ["nki.rms_norm/tiny"])
    rows = record_kernel_sizes.load(path)
    assert list(rows) == ["nki.rms_norm"]
    asked: list[str] = []

    def counted(run: Run) -> dict[str, Any]:
        asked.append(run.size.name)
        return {"error": 2.0, "findings": 0, "digest": run.digest}

    monkeypatch.setattr(record_kernel_sizes, "measure", counted)
    record_kernel_sizes.record(path, ["nki.rms_norm/*"])
    assert "tiny" not in asked
    assert set(asked) == {size.name for size in run.operator.sizes} - {"tiny"}
    rows["nki.rms_norm"]["tiny"]["digest"] = "another"
    record_kernel_sizes.store(other, rows)
    record_kernel_sizes.take(other, [path])
    assert record_kernel_sizes.load(other) == record_kernel_sizes.load(path)
    record_kernel_sizes.take(path, [other])
    assert record_kernel_sizes.load(other) == record_kernel_sizes.load(path)


def test_sums_of_another_base_are_wrong() -> None:
    """What `attention_forward` returns besides attention is judged as exactly."""
    one = case(ATTENTION_FORWARD, "tiny", "f16", "normal")
    out, log_sums = (np.asarray(array) for array in one.stored(one.expected))
    assert one.error((out, log_sums)) <= 1
    assert one.error((out, log_sums * np.float32(math.log(2)))) > 1
    assert one.error((out, log_sums.astype(np.float16).astype(np.float32))) > 1
