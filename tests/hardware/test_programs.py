"""Whole programs, triptych's kernels for tensor cores, against a recording of an H200.

In the arithmetic of the device's tensor cores they have its very bits, but for what `ex2.approx`, `lg2.approx` and
`div.full` give, which is known within bounds alone: programs where plain functions stand in for them have the same bits
too. `benchmarks/hardware/record_programs.py` makes the record; a few kernels of it are run here, all of them by
`compare_programs.py` beside it.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from plain_functions import with_plain_functions
from program_bounds import part_of_bound
from program_cases import Case, cases
from program_run import digest_of, record, recorded_plan, run_here, same_bits, shown

TABLE = Path(__file__).parents[2] / "docs" / "data" / "hardware_programs.json"
CASES = {case.name: number for number, case in enumerate(cases())}
SAME = [
    case for case in cases()
    if case.kernel == "cuda.matmul_wgmma"
    or (case.kernel, case.target, case.dtype, case.sizes) == ("triton.matmul", "sm_80", "bf16", (96, 80, 112))
    or (case.plain and (case.kernel, case.dtype) == ("cuda.attention_mma", "bf16") and case.sizes[-1] == 64)
]  # fmt: skip
NEAR = [
    case for case in cases()
    if not case.plain and (case.kernel, case.dtype) == ("cuda.attention_mma", "f16") and case.sizes[-1] == 64
]  # fmt: skip
FAST = [case for case in SAME if case.kernel == "cuda.matmul_wgmma"]


def names(chosen: list[Case]) -> list[str]:
    return [case.name.replace(" ", "-") for case in chosen]


def test_the_record_is_of_these_programs() -> None:
    assert [(row["case"], row["inputs"]) for row in record()["cases"]] == [
        (case.name, digest_of(*case.inputs())) for case in cases()
    ]
    assert not [row for row in record()["cases"] if "failed" in row]
    assert record()["device"].startswith("NVIDIA H200")
    assert len(recorded_plan().nodes) == len(CASES)


@pytest.mark.parametrize("case", SAME, ids=names(SAME))
def test_the_bits_are_the_devices(case: Case) -> None:
    number = CASES[case.name]
    assert all(same_bits(number, run_here(case, number, "hardware")))


@pytest.mark.parametrize("case", NEAR, ids=names(NEAR))
def test_with_approximate_functions_few_elements_differ(case: Case) -> None:
    """Where an exponential is another, a weight may round to its neighbour: one element of a thousand differs."""
    number = CASES[case.name]
    (found,) = run_here(case, number, "hardware")
    (device,) = shown(number, [found])
    assert np.count_nonzero(found.bits != device.bits) <= found.bits.size / 1000
    assert part_of_bound(case, 0, found, device) <= 1


@pytest.mark.parametrize("case", FAST, ids=names(FAST))
def test_fast_arithmetic_keeps_its_bound(case: Case) -> None:
    number = CASES[case.name]
    (device,), (found,) = (run_here(case, number, numerics) for numerics in ("hardware", "fast"))
    assert same_bits(number, [device]) == [True]
    assert 0 < part_of_bound(case, 0, found, device) <= 1


def test_the_documented_table_is_of_this_record() -> None:
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    assert {name: table[name] for name in record() if name != "cases"} == {
        name: value for name, value in record().items() if name != "cases"
    }
    for row in table["rows"]:
        assert row["plain_same"] == row["plain"]
        assert row["part"] <= 1
        assert row["fast_part"] <= 1
        assert row["same"] == row["outputs"] or "attention" in row["kernel"]
    outputs = sum(len(entry["outputs"]) for entry in record()["cases"])
    assert sum(row["outputs"] + row["plain"] for row in table["rows"]) == outputs


def test_plain_functions_refuse_what_they_would_leave() -> None:
    text = with_plain_functions("ex2.approx.ftz.f32 %f1, %f2;\ndiv.full.f32 %f1, %f2, %f3;\nlg2.approx.f32 %f1, %f2;\n")
    assert "approx" not in text
    assert "full" not in text
    with pytest.raises(ValueError, match=r"sin\.approx\.f32 %f1, %f2"):
        with_plain_functions("mov.f32 %f1, %f2;\nsin.approx.f32 %f1, %f2;\n")
    with pytest.raises(ValueError, match="no plain function for: @%p1"):
        with_plain_functions("@%p1 ex2.approx.f32 %f1, %f2;\n")
