"""Numbers of two bytes: 128 bits of them at once, pairs, atomics on those that lie at odd places; loops of swaps."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from family import blocks, module, normal, whole

BF16 = ml_dtypes.bfloat16
SUMS: dict[str, npt.DTypeLike] = {"scaled_sum<__nv_bfloat16>": BF16, "scaled_sum<__half>": np.float16}


@pytest.mark.parametrize("packs", [1, 33, 100])
@pytest.mark.parametrize(("name", "kind"), SUMS.items())
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_scaled_sum(name: str, kind: npt.DTypeLike, packs: int, arch: str) -> None:
    a, b = normal(packs, 8 * packs).astype(kind), normal(9, 8 * packs).astype(kind)
    a[:3] = [np.inf, -0.0, 1e-7]
    found = np.zeros(8 * packs + 8, kind)
    report = module("packed", *SUMS, arch=arch)[name][blocks(packs, 64), 64](a, b, found, -1.5, packs)
    exact = a.astype(np.float32) + b.astype(np.float32) * np.float32(-1.5)
    fused = (a.astype(np.float64) + b.astype(np.float64) * -1.5).astype(np.float32)
    assert ((found[:-8] == exact.astype(kind)) | (found[:-8] == fused.astype(kind))).all()
    assert not found[-8:].any()
    assert report.counters.value("global.load.bytes") == 2 * report.counters.value("global.store.bytes") == 32 * packs


@pytest.mark.parametrize("count", [1, 40])
def test_pairs(count: int) -> None:
    a, b = normal(count, count, 2).astype(np.float16), normal(8, count, 2).astype(np.float16)
    fused, largest = np.zeros((2, count, 2), np.float16)
    module("packed", *SUMS)["of_pairs"][blocks(count, 32), 32](a, b, fused, largest, count)
    wanted = a.astype(np.float64) * b.astype(np.float64) + a[:, :1].astype(np.float64)
    assert np.array_equal(fused, wanted.astype(np.float16))  # 22 bits of a product and a sum: exact in float64
    assert np.array_equal(largest, np.maximum(a, b[:, ::-1]))


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize(
    ("name", "kind"), [("add_by_pairs", BF16), ("add_by_swaps", np.float16), ("add_alone", np.float16)]
)
def test_adding_where_pairs_are_split(name: str, kind: npt.DTypeLike, offset: int) -> None:
    sums = np.zeros(14, kind)
    places, values = whole(offset, 200, low=0, high=11), whole(3, 200, low=-2, high=3).astype(kind)
    module("packed", *SUMS)[name][2, 128](sums[offset : offset + 12], places, values, 200)
    wanted = np.bincount(places + offset, values.astype(np.float64), 14)
    assert np.array_equal(sums.astype(np.float64), wanted)  # whole numbers below 2**8: exact


@pytest.mark.parametrize("count", [1, 2, 150])
def test_loops_of_swaps(count: int) -> None:
    values = np.random.default_rng(count).standard_normal(count)
    largest, product, shorts = np.full(1, -np.inf), np.ones(1, np.float32), np.full(3, 65000, np.uint16)
    module("packed", *SUMS)["swaps"][blocks(count, 64), 64](largest, product, shorts, values, count)
    assert largest[0] == values.max()
    assert product[0] == 0.5 ** (count % 2)
    assert shorts.tolist() == [(65000 + sum(range(k, count, 3))) % 2**16 for k in range(3)]
