"""Times are taken as they should be: all of it but the GPU, whose driver does nothing here."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from capture_times import capture
from recording import store
from time_cases import Case, cases
from time_inputs import Array, digest_of, values_of

from triptych.core.plan import Plan
from triptych.core.serialise import pack

HARDWARE = Path(__file__).parents[2] / "benchmarks" / "hardware"
NAMES = ("cuda.vec_add f32 tiny", "cuda.reduce_sum f32 tiny", "cuda.transpose f32 tiny")


def found(name: str) -> Case:
    (one,) = (one for one in cases() if one.name == name)
    return one


def bundle_of(folder: Path, plans: dict[str, Plan]) -> Path:
    """A bundle whose cubins are nothing, without that of the last plan's program."""
    arrays = {f"plan:{name}": np.frombuffer(pack(plan), np.uint8) for name, plan in plans.items()}
    names = ["helpers", *(digest_of(one.text) for plan in list(plans.values())[:-1] for one in plan.programs.values())]
    arrays |= {f"cubin:{name}": np.zeros(16, np.uint8) for name in names}
    told = [asdict(found(name)) | {"name": name} for name in plans]
    store(folder / "bundle.npz", arrays, cases=told, assemblers=["none"])
    return folder / "bundle.npz"


def recorded(bundle: Path, *options: str) -> dict[str, Any]:
    output = bundle.with_suffix(".json")
    command = [sys.executable, str(HARDWARE / "record_times.py"), str(bundle), str(output), "--dry", *options]
    subprocess.run(command, check=True, capture_output=True, timeout=100)
    return json.loads(output.read_text())


def test_all_cases_are_named_and_have_inputs() -> None:
    names = [one.name for one in cases()]
    assert len(set(names)) == len(names)
    assert set(NAMES) <= set(names)
    for one in cases():
        assert one.inputs
        assert callable(one.function)


def test_inputs_repeat_a_pattern() -> None:
    one = values_of(Array("x", "f16", (3, 1 << 21)))
    assert (one.dtype, one.shape) == (np.dtype(np.float16), (3, 1 << 21))
    assert np.array_equal(one.reshape(-1)[4_194_301:], one.reshape(-1)[: one.size - 4_194_301])
    integers = values_of(Array("targets", "s64", (1000,), below=7))
    assert set(integers.tolist()) == set(range(7))


def test_what_fails_is_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    plans = {name: capture(found(name)) for name in NAMES}
    record = recorded(bundle_of(tmp_path, plans))
    assert record["unit"] == "s"
    rows = {row["case"]: row for row in record["cases"]}
    assert list(rows)[-3:] == list(NAMES)
    assert "empty kernel" in rows
    assert "no array" in rows[NAMES[2]]["failed"] or "cubin" in rows[NAMES[2]]["failed"]
    for name in NAMES[:2]:
        row = rows[name]
        assert row["cold"]["count"] >= 20
        assert row["cold"]["first_quartile"] <= row["cold"]["median"] <= row["cold"]["third_quartile"]
        assert len(row["launches"]) == 1


def test_without_time_nothing_is_measured(tmp_path: Path) -> None:
    record = recorded(bundle_of(tmp_path, {NAMES[0]: capture(found(NAMES[0]))}), "--seconds", "0")
    assert record["cases"] == []
