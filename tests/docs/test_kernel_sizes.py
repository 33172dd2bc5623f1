"""The record of kernels at named sizes: all are right, none has a finding, and one is run again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from generators.kernel_sizes import Run, measure, runs

RECORDED: Mapping[str, Any] = json.loads(
    (Path(__file__).parents[2] / "docs/data/kernel_sizes.json").read_text(encoding="utf-8")
)
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


def recorded(run: Run) -> Mapping[str, Any]:
    return RECORDED[run.operator.name][run.size.name][run.language]


def test_all_that_fit_are_recorded() -> None:
    wanted = {(run.operator.name, run.size.name, run.language) for run in runs() if run.fits}
    assert wanted == {
        (name, size, language)
        for name, sizes in RECORDED.items()
        for size, found in sizes.items()
        for language in found
    }
    for name in NEEDED:
        assert set(RECORDED[name]["tiny"]) == {"CUDA C++", "Triton", "NKI"}


def test_all_are_right() -> None:
    for run in runs():
        if run.fits and "refused" not in recorded(run):
            assert recorded(run)["error"] <= 1, run
            assert recorded(run)["findings"] == 0, run
            assert recorded(run)["bytes_over_least"] > 0.99, run
    refused = {
        (run.operator.name, run.size.name, run.name) for run in runs() if run.fits and "refused" in recorded(run)
    }
    assert refused == {
        ("matmul", "ragged", "matmul_mma"),
        ("moe_matmul", "mixtral_8x7b", "moe_matmul"),
        ("softmax", "gpt2_vocabulary", "softmax"),
        ("softmax", "llama_3_vocabulary", "softmax"),
    }


@pytest.mark.parametrize("name", ["rms_norm", "gelu_linear"])
def test_one_again(name: str) -> None:
    (run,) = [run for run in runs() if (run.operator.name, run.size.name, run.language) == (name, "tiny", "NKI")]
    assert {**recorded(run)} == {"function": name, "dtype": "f32", **measure(run)}
