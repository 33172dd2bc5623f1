"""Case: chips that there are not, and chip files with a missing or nonsensical value."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest
from case_helpers import random, refused

import triptych as tt

H100 = files("triptych.chips").joinpath("data", "h100.toml").read_text(encoding="utf-8")


def changed(folder: Path, key: str, line: str) -> str:
    """A copy of the H100's file with another line for `key`."""
    text, count = re.subn(rf'^"?{re.escape(key)}"? = .*$', lambda _: line, H100, flags=re.MULTILINE)
    assert count == 1
    file = folder / "mine.toml"
    file.write_text(text, encoding="utf-8")
    return str(file)


@pytest.mark.parametrize(("name", "near"), [("h10", "h100"), ("H101", "h100"), ("a1000", "a10"), ("tn2", "trn2")])
def test_an_unknown_chip_offers_near_names(name: str, near: str) -> None:
    with refused(tt.UnknownName, f"unknown chip '{name}'", "did you mean", near), tt.profile(chip=name):
        pass


def test_a_name_like_no_other_lists_all() -> None:
    with refused(tt.UnknownName, "unknown chip 'zzz'", *tt.chips.names()):
        tt.chips.load("zzz")


@pytest.mark.parametrize("key", ["sm_count", "dram_bytes_per_s", "compute_capability", "f32", "name"])
def test_a_missing_value_is_named(key: str, tmp_path: Path) -> None:
    path = changed(tmp_path, key, "")
    with refused(tt.ChipError, key, "is missing", path):
        tt.chips.load(path)


@pytest.mark.parametrize(
    ("key", "line", "parts"),
    [
        ("sm_count", 'sm_count = { value = -3, unit = "SMs", source = "me" }', ("sm_count", "-3")),
        ("sm_count", 'sm_count = { value = 0, unit = "SMs", source = "me" }', ("sm_count", "0")),
        ("sm_count", 'sm_count = { value = 1.5, unit = "SMs", source = "me" }', ("sm_count", "1.5")),
        ("sm_count", 'sm_count = { value = "many", unit = "SMs", source = "me" }', ("sm_count", "many")),
        ("sm_count", "sm_count = 132", ("sm_count",)),
        ("sm_count", 'sm_count = { value = 132, unit = "SMs" }', ("sm_count", "source")),
        ("sm_count", 'sm_count = { value = 132, unit = "B", source = "me" }', ("sm_count", "SMs")),
        ("sm_count", 'sm_cuont = { value = 132, unit = "SMs", source = "me" }', ("sm_cuont", "sm_count")),
        ("clock_hz", 'clock_hz = { value = nan, unit = "Hz", source = "me" }', ("clock_hz", "nan")),
        ("clock_hz", 'clock_hz = { value = inf, unit = "Hz", source = "me" }', ("clock_hz", "inf")),
        ("f32", 'f32 = { value = 67, unit = "FLOP/s", source = "me, in TFLOP/s" }', ("f32", "67")),
        ("target", 'target = { value = "hopper", source = "me" }', ("target", "hopper")),
        ("family", 'family = "tpu"', ("family", "tpu", "gpu")),
        ("name", "name = [", ("not a TOML file",)),
    ],
)
def test_nonsense_is_named(key: str, line: str, parts: tuple[str, ...], tmp_path: Path) -> None:
    path = changed(tmp_path, key, line)
    with refused(tt.ChipError, *parts) as caught:
        tt.chips.load(path)
    assert path in str(caught.value)


def test_a_chip_file_that_is_not_there(tmp_path: Path) -> None:
    with refused(tt.ChipError, "cannot read the chip file", "none.toml"), tt.profile(chip=str(tmp_path / "none.toml")):
        pass


def test_a_chip_file_of_one_s_own(tmp_path: Path) -> None:
    line = 'dram_bytes_per_s = { value = 1e12, unit = "B/s", source = "me" }'
    path = changed(tmp_path, "dram_bytes_per_s", line)
    source = 'extern "C" __global__ void twice(float *p) { p[blockIdx.x * 32 + threadIdx.x] *= 2; }\n'
    with tt.profile(chip=path) as mine, tt.profile(chip="h100") as built_in:
        tt.cuda.compile(source, arch="sm_90")["twice"][1000, 32](random(32_000))
    floors = [profile.launches[0].roofline.floor_s for profile in (mine, built_in)]
    assert floors[0] == pytest.approx(floors[1] * 3.35)
