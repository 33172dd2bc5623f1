"""Random numbers: XORWOW by its definition, seeds that repeat, and what a uniform distribution must be."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from one_kernel import F32, filled, random, refused, run, run_beta1, same, tile

from triptych.core.errors import NkiError
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki.tracing.tensors import NkiTensor

U32 = np.uint32


def xorwow(state: list[int], count: int) -> tuple[list[int], list[int]]:
    """`count` numbers of Marsaglia's generator (x, y, z, w, v, d), and the state behind them."""
    x, y, z, w, v, d = state
    numbers: list[int] = []
    for _ in range(count):
        t = x ^ (x >> 2)
        x, y, z, w = y, z, w, v
        v = (v ^ (v << 4)) ^ (t ^ (t << 1))
        v &= 0xFFFFFFFF
        d = (d + 362437) & 0xFFFFFFFF
        numbers.append((v + d) & 0xFFFFFFFF)
    return numbers, [x, y, z, w, v, d]


def test_gpsimd_generates_by_xorwow() -> None:
    seeds = np.random.default_rng(6).integers(0, 2**32, (20, 6), dtype=np.uint64).astype(U32)

    def body(bits: NkiTensor, after: NkiTensor, a: NkiTensor) -> None:
        nisa.rand_set_state(a)
        nisa.rng(bits, engine=nisa.engine.gpsimd)
        nisa.rand_get_state(after)

    bits, after = run(body, [seeds], ((20, 33), U32), ((20, 6), U32))
    for lane in range(20):
        numbers, state = xorwow([int(word) for word in seeds[lane]], 33)
        assert bits[lane].tolist() == numbers
        assert after[lane].tolist() == state


def test_a_narrow_dtype_takes_the_lowest_bits() -> None:
    seeds = np.arange(1, 97, dtype=U32).reshape(16, 6)

    def body(wide: NkiTensor, narrow: NkiTensor, a: NkiTensor) -> None:
        for out in (wide, narrow):
            nisa.rand_set_state(a)
            nisa.rng(out, engine=nisa.engine.gpsimd)

    wide, narrow = run(body, [seeds], ((16, 8), U32), ((16, 8), np.int8))
    same(narrow, (wide & 0xFF).astype(np.uint8).view(np.int8))


def test_a_seed_repeats_and_another_differs() -> None:
    def body(a: NkiTensor, b: NkiTensor, c: NkiTensor, seed: NkiTensor) -> None:
        for out, value in ((a, 42), (b, 42), (c, 43)):
            nisa.memset(seed, value)
            nl.random_seed(seed)
            nisa.tensor_copy(out, nl.rand((128, 64), dtype=nl.float32))

    a, b, c = run(body, [np.zeros((1, 1), np.int32)], *[((128, 64), F32)] * 3)
    same(a, b)
    assert not np.any(a == c)
    assert a.min() >= 0
    assert a.max() < 1
    assert abs(float(a.mean()) - 0.5) < 0.02
    assert len(np.unique(a)) > 8000


@pytest.mark.parametrize("dtype", [F32, ml_dtypes.bfloat16, np.int32])
def test_dropout_keeps_or_zeroes(dtype: type[np.generic]) -> None:
    data = np.arange(1, 1 + 128 * 64).reshape(128, 64).astype(dtype)
    rates = np.where(np.arange(128) < 64, 0.25, 1.0).astype(F32).reshape(128, 1)
    rates[1] = 0.0

    def body(out: NkiTensor, a: NkiTensor, prob: NkiTensor) -> None:
        nisa.dropout(out, a, prob)

    (found,) = run(body, [data, rates], ((128, 64), dtype))
    kept = found.astype(F32) != 0
    same(found[kept], data[kept])
    assert kept[1].all()
    assert not kept[64:].any()
    assert abs(float(kept[2:64].mean()) - 0.75) < 0.03


def test_rand2_is_uniform_between_its_bounds() -> None:
    def body(out: NkiTensor, high: NkiTensor) -> None:
        nisa.rand2(out, -2.0, high)

    (found,) = run(body, [np.full((128, 1), 4.0, F32)], ((128, 100), F32), chip="trn3")
    assert found.min() >= -2
    assert found.max() < 4
    assert abs(float(found.mean()) - 1) < 0.1


def test_beta_1_has_the_same() -> None:
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((64, 32), dtype=a.dtype, buffer=nl.shared_hbm)
        nl.random_seed(3)
        nl.store(out, nisa.dropout(nl.load(a), prob=0.5))
        return out

    a = np.abs(random(64, 32)) + 1
    found = run_beta1(kernel, a)
    assert 0.4 < float((found != 0).mean()) < 0.6


@pytest.mark.parametrize(
    ("chip", "body", "message"),
    [
        ("trn2", lambda: nisa.rng(tile(8, 8)), "'dst' .* float32; expected int8"),
        ("trn1", lambda: nisa.rng(tile(8, 8, dtype=nl.uint32), engine=nisa.engine.gpsimd), "since NeuronCore-v3"),
        ("trn2", lambda: nisa.rand2(tile(8, 8), 0.0, 1.0), "needs NeuronCore-v4"),
        ("trn2", lambda: nisa.rand_set_state(tile(8, 24, dtype=nl.uint32), engine=nisa.engine.vector),
         "since NeuronCore-v4"),
        ("trn3", lambda: nisa.rand_set_state(tile(8, 6, dtype=nl.uint32), engine=nisa.engine.vector),
         "6 words a lane; vector's are 24"),
        ("trn2", lambda: nisa.set_rng_seed(filled(2, 1, dtype=nl.int32)), "expected one of 32 bits"),
        ("trn2", lambda: nisa.dropout(tile(8, 8), tile(8, 8, dtype=nl.bfloat16), 0.5), "one dtype"),
        ("trn2", lambda: nl.rand((8, 8), buffer=nl.hbm), "random numbers are made on chip"),
    ],
)  # fmt: skip
def test_refused(chip: str, body: Callable[[], object], message: str) -> None:
    refused(body, NkiError, message, chip=chip)
