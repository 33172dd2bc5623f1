"""Launches on the roofline, against figures worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from triptych.chips import GpuChip, load
from triptych.core.counters import Counter, Counters, Provenance
from triptych.core.errors import UsageError
from triptych.core.launches import Account, LaunchRecord
from triptych.core.plan import LaunchShape
from triptych.model import Roofline, place
from triptych.model.multiprocessors import resident_warps

N = 1 << 20
VEC_ADD: Mapping[str, int] = {
    "flops.f32": N,
    "global.load.sectors": 2 * N // 8,
    "global.store.sectors": N // 8,
    "global.load.compulsory_bytes": 8 * N,
    "global.store.compulsory_bytes": 4 * N,
}


def record(
    counters: Mapping[str, int], machine: str = "gpu", target: str = "sm_90", blocks: int = 4096
) -> LaunchRecord:
    provenance = Provenance.COUNTED_PTX if machine == "gpu" else Provenance.COUNTED_NKI
    by_name = {name: Counter(value, "units", provenance) for name, value in counters.items()}
    language = "cuda" if machine == "gpu" else "nki"
    shape = LaunchShape((blocks, 1, 1), (256, 1, 1))
    return LaunchRecord("k", machine, language, target, shape, 0, Account.of(Counters(by_name)))


def seconds(roofline: Roofline) -> dict[str, float]:
    return {roof.name: roof.seconds for roof in roofline.roofs}


def test_vec_add_is_one_flop_for_twelve_bytes() -> None:
    roofline = place(record(VEC_ADD), load("h100"))
    assert roofline.flops == N
    assert roofline.bytes == 8388608 + 4194304
    assert roofline.memory_level == "DRAM (compulsory)"
    assert roofline.intensity == 1 / 12
    assert [traffic.intensity for traffic in roofline.traffic] == [1 / 12, 1 / 12]
    assert roofline.ridge_point == 67e12 / 3.35e12
    assert roofline.bound == "memory"
    assert roofline.floor_s == pytest.approx(12582912 / 3.35e12, rel=1e-12)
    assert roofline.estimate_s == pytest.approx(2e-6 + 12582912 / 3.35e12, rel=1e-12)
    assert roofline.fraction == roofline.floor_s / roofline.estimate_s
    assert roofline.limited_by == "DRAM (compulsory)"
    assert roofline.notes == ()


def test_shared_memory_and_issue_raise_the_estimate_and_not_the_floor() -> None:
    chip, plain = load("h100"), place(record(VEC_ADD), load("h100"))
    conflicted = place(record({**VEC_ADD, "shared.load.wavefronts": 32 * N, "shared.store.wavefronts": N}), chip)
    assert conflicted.limited_by == "L1 and shared memory (wavefronts)"
    assert conflicted.limited_by_short == "shared memory"
    assert conflicted.estimate_s == pytest.approx(2e-6 + 33 * N / (132 * 1.83e9), rel=1e-12)
    issued = place(record({**VEC_ADD, "instructions.warp": 100 * N}), chip)
    assert issued.limited_by == "issue (warp instructions)"
    assert issued.estimate_s == pytest.approx(2e-6 + 100 * N / (4 * 132 * 1.83e9), rel=1e-12)
    assert conflicted.floor_s == issued.floor_s == plain.floor_s


@pytest.mark.parametrize("space", ["local", "shared.cluster"])
@pytest.mark.parametrize("kind", ["load", "store", "atomic"])
def test_local_and_other_blocks_memory_take_wavefronts(space: str, kind: str) -> None:
    counters = {"shared.load.wavefronts": N, f"{space}.{kind}.bytes": 128 * N + 1}
    roofline = place(record({**VEC_ADD, **counters}), load("h100"))
    assert seconds(roofline)["L1 and shared memory (wavefronts)"] == pytest.approx(
        (2 * N + 1) / (132 * 1.83e9), rel=1e-12
    )


@pytest.mark.parametrize(
    ("blocks", "threads", "a_clock"),
    [
        (1, 1, 1 / 4),
        (1, 33, 2 / 4),
        (1, 512, 4),
        (1, 1024, 4),
        (5, 64, 5 * 2 / 4),
        (131, 128, 131),
        (132, 32, 132 / 4),
        (198, 32, 198 / 4),
        (4096, 32, 4 * 132),
    ],
)
def test_few_warps_issue_little(blocks: int, threads: int, a_clock: float) -> None:
    """A loop of one warp is no faster on a chip of many SMs, and issues an instruction every fourth clock."""
    counters = {**VEC_ADD, "instructions.warp": 1 << 30, "shared.load.wavefronts": 1 << 20}
    one = record(counters)
    roofline = place(replace(one, shape=LaunchShape((blocks, 1, 1), (threads, 1, 1))), load("h100"))
    times = seconds(roofline)
    assert times["issue (warp instructions)"] == pytest.approx((1 << 30) / (a_clock * 1.83e9), rel=1e-12)
    assert times["L1 and shared memory (wavefronts)"] == pytest.approx(
        (1 << 20) / (min(132, blocks) * 1.83e9), rel=1e-12
    )
    assert roofline.floor_s == place(one, load("h100")).floor_s


@pytest.mark.parametrize(
    ("shape", "static", "warps"),
    [
        (LaunchShape((4096, 1, 1), (256, 1, 1)), 0, 64),
        (LaunchShape((4096, 1, 1), (1024, 1, 1)), 0, 64),
        (LaunchShape((4096, 1, 1), (768, 1, 1)), 0, 48),
        (LaunchShape((4096, 1, 1), (32, 1, 1)), 0, 4096 / 132),
        (LaunchShape((8192, 1, 1), (32, 1, 1)), 0, 32),
        (LaunchShape((4096, 1, 1), (128, 1, 1), 100_000), 0, 8),
        (LaunchShape((4096, 1, 1), (128, 1, 1), 16_384), 100_000, 4),
        (LaunchShape((4096, 1, 1), (128, 1, 1), 232_448), 0, 4),
        (LaunchShape((198, 1, 1), (256, 1, 1)), 0, 12),
        (LaunchShape((2, 3, 1), (16, 16, 2)), 0, 16),
    ],
)
def test_resident_warps(shape: LaunchShape, static: int, warps: float) -> None:
    chip = load("h100")
    assert isinstance(chip, GpuChip)
    one = replace(record(VEC_ADD), shape=shape, static_shared_bytes=static)
    assert resident_warps(one, chip) == pytest.approx(warps)


@pytest.mark.parametrize(("blocks", "busy"), [(1, 1), (100, 100), (131, 131)])
def test_idle_multiprocessors_compute_nothing(blocks: int, busy: int) -> None:
    """A product of one block takes an SM's tensor cores, not the chip's; another program might take them all."""
    one, chip = record({**VEC_ADD, "flops.tensor.f16": 1 << 40}, blocks=blocks), load("h100")
    whole = (1 << 40) / 9.89e14
    times = seconds(place(one, chip))
    assert times["tensor.f16 pipe, idle SMs left out"] == pytest.approx(whole * 132 / busy, rel=1e-12)
    assert times["tensor.f16 pipe"] == pytest.approx(whole, rel=1e-12)
    assert place(one, chip).floor_s == pytest.approx(whole, rel=1e-12)
    assert place(one, chip).limited_by_short == "tensor.f16, few SMs"
    assert not any("idle SMs" in name for name in seconds(place(replace_blocks(one, 132), chip)))


def replace_blocks(one: LaunchRecord, blocks: int) -> LaunchRecord:
    return replace(one, shape=LaunchShape((blocks, 1, 1), one.shape.block))


def test_waiting_for_mbarriers_takes_no_time() -> None:
    """How often a warp looks at one depends on the simulator's schedule."""
    chip, busy = load("h100"), {**VEC_ADD, "instructions.warp": 100 * N, "shared.atomic.wavefronts": 40 * N}
    waits = {"waiting.instructions": 60 * N, "waiting.wavefronts": 30 * N}
    rest = {"instructions.warp": 40 * N, "shared.atomic.wavefronts": 10 * N}
    assert seconds(place(record(busy | waits), chip)) == seconds(place(record(busy | rest), chip))


def test_uncoalesced_requests_raise_the_estimate_and_not_the_floor() -> None:
    strided = place(record({**VEC_ADD, "global.load.sectors": 16 * N}), load("h100"))
    plain = place(record(VEC_ADD), load("h100"))
    assert strided.floor_s == plain.floor_s
    assert strided.limited_by == "L2 (global sectors requested)"
    assert strided.estimate_s == pytest.approx(2e-6 + (16 * N + N // 8) * 32 / 9.8e12, rel=1e-12)
    assert strided.limited_by_short == "L2"
    assert strided.at("l2").intensity < plain.at("l2").intensity
    assert strided.at("dram") == strided.traffic[0] == plain.at("dram")


@pytest.mark.parametrize(
    ("pipe", "peak"),
    [("f32", 67e12), ("f64", 34e12), ("f16", 133.8e12), ("tensor.bf16", 989e12), ("tensor.s8", 1979e12)],
)
def test_the_ridge_is_that_of_the_pipe_at_work(pipe: str, peak: float) -> None:
    left = place(record({f"flops.{pipe}": 10**9, "global.load.compulsory_bytes": 10**9}), load("h100"))
    assert left.ridge_point == peak / 3.35e12
    assert left.bound == "memory"
    right = place(record({f"flops.{pipe}": 10**12, "global.load.compulsory_bytes": 10**6}), load("h100"))
    assert right.bound == "compute"
    assert right.floor_s == pytest.approx(10**12 / peak, rel=1e-12)
    assert right.limited_by == f"{pipe} pipe"


def test_the_dominant_pipe_is_the_one_that_takes_longest() -> None:
    counters = {"flops.tensor.f16": 10**9, "flops.f32": 10**8, "global.load.compulsory_bytes": 100}
    roofline = place(record(counters), load("h100"))
    assert roofline.flops == 1_100_000_000
    assert roofline.pipe == "f32"  # 1e8 / 67e12 is longer than 1e9 / 989e12
    assert roofline.floor_s == pytest.approx(1e8 / 67e12, rel=1e-12)
    assert seconds(roofline)["tensor.f16 pipe"] == pytest.approx(1e9 / 989e12, rel=1e-12)


def test_exactly_at_the_ridge_it_is_compute_bound() -> None:
    roofline = place(record({"flops.f32": 20_000_000, "global.load.compulsory_bytes": 1_000_000}), load("h100"))
    assert roofline.intensity == roofline.ridge_point == 20.0
    assert roofline.bound == "compute"


def test_without_flops() -> None:
    roofline = place(record({"global.load.compulsory_bytes": 64, "global.store.compulsory_bytes": 64}), load("h100"))
    assert (roofline.flops, roofline.intensity, roofline.bound) == (0, 0.0, "memory")
    assert roofline.ridge_point == 67e12 / 3.35e12
    assert 0 < roofline.fraction < 1
    assert roofline.limited_by == "launch overhead"


def test_without_bytes() -> None:
    roofline = place(record({"flops.f32": 10**12}), load("h100"))
    assert (roofline.bytes, roofline.intensity, roofline.bound) == (0, math.inf, "compute")
    assert not [name for name in roofline.counters() if name.startswith("intensity.")]
    assert 0 < roofline.fraction < 1


def test_without_any_work() -> None:
    roofline = place(record({}), load("h100"))
    assert (roofline.floor_s, roofline.fraction, roofline.bound) == (0.0, 0.0, "memory")
    assert roofline.estimate_s == 2e-6
    assert roofline.roofs == ()
    assert roofline.limited_by == "launch overhead"


def test_another_target_is_said() -> None:
    roofline = place(record(VEC_ADD, target="sm_80"), load("h100"))
    assert roofline.notes == ("Compiled for sm_80; placed on h100, whose own target is sm_90.",)


def test_v100_says_that_it_is_modelled_from_another_target() -> None:
    roofline = place(record(VEC_ADD, target="sm_75"), load("v100"))
    assert len(roofline.notes) == 1
    assert "sm_75" in roofline.notes[0]


def test_a_pipe_that_the_chip_lacks_is_said() -> None:
    counters = {"flops.tensor.fp8": 10**9, "global.load.compulsory_bytes": 64}
    roofline = place(record(counters, target="sm_80"), load("a100-80"))
    assert "a100-80 has no tensor.fp8 pipe: its FLOPs are placed on the tensor.f16 pipe." in roofline.notes
    assert roofline.floor_s == pytest.approx(1e9 / 312e12, rel=1e-12)


@pytest.mark.parametrize(
    ("pipe", "chip", "placed"),
    [("b1", "t4", "tensor.s8"), ("s4", "h100", "tensor.s8"), ("f64", "l4", "f64"), ("s8", "v100", "f32")],
)
def test_tensor_cores_without_a_type_take_a_wider_one(pipe: str, chip: str, placed: str) -> None:
    roofline = place(record({f"flops.tensor.{pipe}": 10**9}, target="sm_75"), load(chip))
    assert any(f"has no tensor.{pipe} pipe: its FLOPs are placed on the {placed} pipe" in n for n in roofline.notes)


def test_idle_multiprocessors_are_said() -> None:
    roofline = place(record(VEC_ADD, blocks=100), load("h100"))
    assert "leaves 32 of 132 SMs idle" in roofline.notes[0]


def test_the_machine_must_fit_the_chip() -> None:
    with pytest.raises(UsageError, match="ran on the gpu machine; it cannot be placed on trn2"):
        place(record(VEC_ADD), load("trn2"))


def test_neuron_vec_add() -> None:
    counters = {
        "flops.vector": N,
        "elements.vector": N,
        "hbm.load.compulsory_bytes": 8 * N,
        "hbm.store.compulsory_bytes": 4 * N,
        "dma.load.bytes": 8 * N,
        "dma.store.bytes": 4 * N,
    }
    roofline = place(record(counters, "neuron", "trn2"), load("trn2"))
    assert roofline.intensity == 1 / 12
    assert roofline.memory_level == "HBM (compulsory)"
    assert roofline.bound == "memory"
    assert roofline.floor_s == pytest.approx(12 * N / 0.375e12, rel=1e-12)
    assert seconds(roofline)["vector engine"] == pytest.approx(N / (128 * 0.96e9), rel=1e-12)
    assert seconds(roofline)["DMA (bytes moved)"] == pytest.approx(12 * N / (16 * 27.2e9), rel=1e-12)
    assert roofline.estimate_s == pytest.approx(2 * 1.3e-6 + roofline.floor_s, rel=1e-12)


def test_neuron_matmul_is_compute_bound() -> None:
    counters = {"flops.tensor.f32": 10**12, "hbm.load.compulsory_bytes": 10**6, "hbm.store.compulsory_bytes": 10**6}
    roofline = place(record(counters, "neuron", "trn2"), load("trn2"))
    assert roofline.bound == "compute"
    assert roofline.ridge_point == 20e12 / 0.375e12
    assert roofline.floor_s == pytest.approx(1e12 / 20e12, rel=1e-12)


def test_every_modelled_number_says_so() -> None:
    counters = place(record(VEC_ADD), load("h100")).counters()
    assert {counter.provenance for counter in counters.values()} == {Provenance.MODELLED}
    assert counters["floor"].unit == "s"
    assert counters["intensity.DRAM (compulsory)"].value == 1 / 12
