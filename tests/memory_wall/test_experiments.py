"""The experiments of the memory wall: measured again at small sizes, and the recorded figures against formulas."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import triptych as tt
from triptych.kernels import nki
from triptych.memory_wall import EXPERIMENTS, Axis, Experiment, Point, experiment
from triptych.memory_wall.attention import TILED, flash, standard, standard_intensity
from triptych.memory_wall.experiment import counted
from triptych.report import MEMORY_WALL_SCHEMA, schema
from triptych.report.experiments import value_on, verdict

DOCUMENT: Mapping[str, Any] = json.loads(
    (Path(__file__).parents[2] / "docs/data/memory_wall.json").read_text(encoding="utf-8")
)
RECORDED: Mapping[str, Sequence[Point]] = {
    row["name"]: [Point(**point) for point in row["points"]] for row in DOCUMENT["experiments"]
}
LANGUAGES = ("CUDA C++", "Triton", "NKI")
NKI_TILED = [one for one in TILED if one.language == "NKI"]
CHEAP = ("fusion", "coalescing", "divergence", "bank_conflicts", "double_buffering")
"""Those that compile little: the kernels of attention have tests of their own, which count what they move."""


@pytest.mark.parametrize("name", CHEAP)
def test_small_sizes_agree(name: str) -> None:
    one = experiment(name)
    points = list(one.run(True))
    assert one.disagreements(points) == []
    assert len(points) >= 6


@pytest.mark.parametrize("kernel", NKI_TILED, ids=lambda one: one.series)
def test_traffic_of_tiles(kernel: Any) -> None:  # noqa: ANN401  a `Tiled`
    counters = flash(kernel, 512, 64).counters
    moved = counters.value("dma.load.bytes") + counters.value("dma.store.bytes")
    assert moved == kernel.bytes(512, 64) == 2 * (2 * 512 * 64 + 2 * 512 * 512 * 64 // kernel.queries)


def test_a_streamed_head_is_right() -> None:
    """Blocks of queries and tiles of keys that are cut short; room in SBUF does not grow with the head."""
    random = np.random.default_rng(0)
    q = random.standard_normal((1, 4, 300, 64)).astype(np.float16)
    k, v = (random.standard_normal((1, 2, 700, 64)).astype(np.float16) for _ in range(2))
    wide_q, wide_k, wide_v = (one.astype(np.float64) for one in (q, *(np.repeat(x, 2, axis=1) for x in (k, v))))
    weights = np.exp(wide_q @ wide_k.swapaxes(2, 3) / 8)
    expected = weights / weights.sum(3, keepdims=True) @ wide_v
    np.testing.assert_allclose(np.asarray(nki.attention_streamed(q, k, v, queries=256)), expected, atol=4e-3)
    long = np.zeros((1, 1, 1536, 64), np.float16)
    room = [
        counted("trn2", lambda keys=keys: nki.attention_streamed(long[:, :, :128], keys, keys)).value("sbuf.peak_bytes")
        for keys in (long[:, :, :1024], long)
    ]
    assert room[0] == room[1]


def test_intensity_with_scores_in_memory() -> None:
    assert round(standard_intensity(4096, 128), 2) == 62.06
    three = [launch.roofline for launch in standard("NKI", 256, 128)]
    measured = sum(one.flops for one in three) / sum(one.bytes for one in three)
    assert measured == pytest.approx(standard_intensity(256, 128), rel=0.05)


def test_the_record_is_of_these_experiments_and_agrees() -> None:
    jsonschema.validate(DOCUMENT, schema(MEMORY_WALL_SCHEMA))
    assert not DOCUMENT["quick"]
    assert list(RECORDED) == list(EXPERIMENTS)
    for row, one in zip(DOCUMENT["experiments"], EXPERIMENTS.values(), strict=True):
        assert (row["title"], row["formula"], row["measured"]) == (one.title, one.formula, one.measured)
        assert row["agrees"]
        assert one.disagreements(RECORDED[one.name]) == []


def recorded(name: str, series: str) -> dict[float, float]:
    return {point.x: point.measured for point in RECORDED[name] if point.series == series}


@pytest.mark.parametrize("language", LANGUAGES)
def test_recorded_fusion(language: str) -> None:
    array = 4 * 2**20
    for count in (1, 2, 4, 8):
        assert recorded("fusion", f"{language}, a launch a step")[count] == pytest.approx(2 * count * array, rel=0.01)
        assert recorded("fusion", f"{language}, one launch")[count] == pytest.approx(2 * array, rel=0.01)


@pytest.mark.parametrize("language", LANGUAGES)
def test_recorded_attention(language: str) -> None:
    """62.06 FLOP/byte with scores in memory; without, bytes by the tiling, and memory in proportion to N."""
    assert recorded("standard_attention", language)[4096] == pytest.approx(62.06, rel=0.05)
    tiles = {one.queries: one for one in TILED if one.language == language}
    assert len(tiles) == 2
    for queries, kernel in tiles.items():
        series = recorded("flash_traffic", kernel.series)
        assert list(series) == [512, 1024, 2048, 4096]
        for n, moved in series.items():
            stores = kernel.store_parts * 2 * n * 64 + kernel.row_bytes * n
            assert moved == pytest.approx(2 * n * 64 + 4 * n * n * 64 / queries + stores, rel=0.05)
    needed = {way: recorded("attention_memory", f"{language}, {way}") for way in ("scores in memory", "FlashAttention")}
    growth = {way: series[4096] / series[512] for way, series in needed.items()}
    assert growth == {"scores in memory": pytest.approx(64, rel=0.05), "FlashAttention": pytest.approx(8, rel=0.05)}


def test_disagreements_are_told() -> None:
    points = [Point("a", 1, 100, 100), Point("a", 2, 104, 100), Point("b", 1, math.nan, 1)]
    one = Experiment("x", "X", "1", "1", "", 0.03, Axis("x"), Axis("y"), lambda _: points)
    assert one.disagreements(points) == points[1:]
    assert verdict(one, points[:2]) == "1 of 2 are farther off than 3%: up to 4%"
    near = [Point("a", 1, 101, 100)]
    assert verdict(one, near) == "all 1 agree with the formula: to 1%, of 3% allowed"
    assert verdict(one, points[:1]) == "all 1 are what the formula says, exactly"
    assert [value_on(Axis("", unit), 2048) for unit in ("B", "s", "")] == ["2 KiB", "2048 s", "2048"]
    with pytest.raises(tt.UnknownName, match="fusion"):
        experiment("fuson")


def test_a_kernel_with_a_finding_is_no_measurement() -> None:
    kernel = tt.cuda.compile('extern "C" __global__ void beyond(float *x) { x[threadIdx.x] = 1; }')["beyond"]
    with pytest.raises(ValueError, match="no measurement"):
        counted("h100", lambda: kernel[1, 32](np.zeros(64, np.float32)[:16]))
