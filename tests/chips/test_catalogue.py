"""The chips that come with triptych: all load, all values have sources, and what reports rely on holds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

import triptych.chips
from triptych.chips import DEFAULT_BY_MACHINE, Chip, GpuChip, NeuronChip, load, names, targets
from triptych.core.errors import ChipError, UnknownName, UsageError
from triptych.core.gpu_targets import CAPABILITIES, capability_of, target_of_ptx

EXPECTED = names()


def gpu(name: str) -> GpuChip:
    chip = load(name)
    assert isinstance(chip, GpuChip)
    return chip


def test_names() -> None:
    folder = Path(str(triptych.chips.__file__)).parent / "data"
    assert names() == tuple(sorted(path.stem for path in folder.iterdir()))
    assert set(DEFAULT_BY_MACHINE.values()) <= set(names())


@pytest.mark.parametrize("name", EXPECTED)
def test_every_value_has_a_source(name: str) -> None:
    chip = load(name)
    assert chip.name == name
    assert chip.title
    assert all(fact.source.strip() for fact in chip.facts.values())
    kept = {f"flops_per_s.{pipe}" for pipe in chip.flops_per_s}
    assert kept == {key for key in chip.facts if key.startswith("flops_per_s.")}
    for key, fact in chip.facts.items():
        if "." not in key and key != "compute_capability":
            assert getattr(chip, key) == fact.value


@pytest.mark.parametrize("name", [name for name in EXPECTED if not name.startswith(("trn", "inf"))])
def test_gpu_numbers_hang_together(name: str) -> None:
    chip = gpu(name)
    assert chip.l2_bytes_per_s > chip.dram_bytes_per_s
    assert chip.flops_per_s["f32"] > chip.flops_per_s["f64"]
    assert chip.flops_per_s["tensor.f16"] > chip.flops_per_s["f32"]
    lanes = 64 if chip.compute_capability in ((7, 0), (7, 5), (8, 0)) else 128
    derived = chip.sm_count * lanes * 2 * chip.clock_hz
    assert derived == pytest.approx(chip.flops_per_s["f32"], rel=0.09)  # Hopper and B200 are stated at another clock
    if chip.modelled_from is None:
        assert chip.target == "sm_" + "".join(map(str, chip.compute_capability))


@pytest.mark.parametrize("name", ["trn1", "trn2", "trn3", "inf2"])
def test_neuron_numbers_hang_together(name: str) -> None:
    chip = load(name)
    assert isinstance(chip, NeuronChip)
    assert chip.partition_count == 128
    assert chip.psum_bytes_per_partition == 8 * chip.psum_bank_bytes
    assert chip.core_hbm_bytes_per_s * chip.core_count == pytest.approx(chip.hbm_bytes_per_s)
    assert chip.flops_per_s["tensor.bf16"] > chip.flops_per_s["tensor.f32"] > chip.flops_per_s["vector"]


def test_h100() -> None:
    chip = gpu("h100")
    assert chip.compute_capability == (9, 0)
    assert chip.target == "sm_90"
    assert chip.sm_count == 132
    assert chip.dram_bytes_per_s == 3.35e12
    assert chip.shared_bytes_per_block_max == 227 * 1024
    assert chip.flops_per_s["f32"] == 67e12
    assert chip.notes == ()


def test_v100_is_compiled_for_another_target_and_says_so() -> None:
    chip = gpu("v100")
    assert chip.compute_capability == (7, 0)
    assert chip.target == "sm_75"
    assert "sm_75" in chip.notes[0]


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("H100", "h100"),
        ("H100 SXM", "h100"),
        ("h100_pcie", "h100-pcie"),
        ("A100", "a100-80"),
        ("RTX 4090", "rtx4090"),
        ("trainium 3", "trn3"),
        ("Inferentia 2", "inf2"),
        ("inferentia-2", "inf2"),
    ],
)
def test_spellings(spelling: str, name: str) -> None:
    assert load(spelling).name == name


def test_unknown_names_get_near_ones() -> None:
    with pytest.raises(UnknownName, match="h100") as caught:
        load("h1000")
    assert "unknown chip 'h1000'" in str(caught.value)


@pytest.mark.parametrize(("name", "alias"), [("trainum2", "trainium2"), ("inferentia3", "inferentia2")])
def test_aliases_are_near_names_too(name: str, alias: str) -> None:
    with pytest.raises(UnknownName, match=f"unknown chip '{name}'") as caught:
        load(name)
    assert caught.value.hint is not None
    assert alias in caught.value.hint


def test_a_chip_stands_for_itself_and_nothing_else_does() -> None:
    chip = load("h100")
    assert load(chip) is chip
    for wrong in (5, None, b"h100"):
        with pytest.raises(UsageError, match="stands for no chip"):
            load(cast("str", wrong))


def test_a_path_works_wherever_a_name_does(tmp_path: Path) -> None:
    source = Path(sys.modules[load.__module__].__file__ or "").parent / "data" / "h100.toml"
    own = tmp_path / "mine.toml"
    own.write_text(source.read_text(encoding="utf-8").replace("3.35e12", "1.0e12"), encoding="utf-8")
    chips: list[Chip] = [load(str(own)), load(own)]
    assert [chip.memory_bytes_per_s for chip in chips] == [1.0e12, 1.0e12]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ChipError, match="cannot read the chip file") as caught:
        load(str(tmp_path / "none.toml"))
    assert "none.toml" in str(caught.value)


def test_importing_chips_is_cheap() -> None:
    heavy = "numpy", "rich", "typer", "triton"
    code = f"import sys, triptych.chips; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_targets_are_those_of_the_chips() -> None:
    assert targets("neuron") == ("inf2", "trn1", "trn2", "trn3")
    assert "sm_90" in targets("gpu")
    for name in EXPECTED:
        chip = load(name)
        if isinstance(chip, NeuronChip):
            assert chip.target == chip.name  # a Neuron target is looked up among the chips
        else:
            assert capability_of(chip.target) in CAPABILITIES


@pytest.mark.parametrize(("generation", "name"), [("gen2", "trn1"), ("gen3", "trn2"), ("gen4", "trn3")])
def test_a_generation_of_neuron_cores_names_its_training_chip(generation: str, name: str) -> None:
    chip = load(generation)
    assert isinstance(chip, NeuronChip)
    assert (chip.name, chip.core_generation) == (name, generation)


@pytest.mark.parametrize(
    ("target", "capability"),
    [("sm_80", 80), ("sm_90a", 90), ("sm_100f", 100), ("sm_9", None), ("sm_90b", None), ("trn2", None), ("", None)],
)
def test_capability_of_a_target(target: str, capability: int | None) -> None:
    assert capability_of(target) == capability


@pytest.mark.parametrize("target", ["sm_90a", "sm_80"])
def test_target_of_a_ptx_text(target: str) -> None:
    assert target_of_ptx(f".version 9.0\n.target {target}, debug\n.address_size 64\n") == target
    assert target_of_ptx(".version 9.0\n") is None
