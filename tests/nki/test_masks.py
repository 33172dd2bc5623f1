"""Masks of Beta 1 on instructions whose operands differ in their free size, and on what is composed of several."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki_beta1
from triptych.languages.nki.tracing.tensors import NkiTensor


def random(*shape: int, seed: int = 44) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def stored(tile: object) -> NkiTensor:
    """An output whose first 5 rows are those of the tile."""
    assert isinstance(tile, NkiTensor)
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nl.store(out[0:5], tile[0:5])
    return out


def test_masks_of_statistics_and_of_the_largest() -> None:
    @nki_beta1.jit
    def kernel(a: NkiTensor) -> tuple[NkiTensor, NkiTensor, NkiTensor, NkiTensor]:
        i_p, i_f = nl.arange(8)[:, None], nl.arange(32)[None, :]
        data = nl.load(a)
        largest = nisa.max8(src=data, mask=i_p < 5)
        where = nisa.nc_find_index8(data=data, vals=largest, mask=i_p < 5)
        statistics = nisa.bn_stats(data, mask=(i_p < 5) & (i_f < 5))
        aggregate = nisa.bn_aggr(nisa.bn_stats(data, mask=i_p < 5), mask=i_p < 5)
        return stored(largest), stored(where), stored(statistics), stored(aggregate)

    a = random(8, 32)
    largest, where, statistics, aggregate = kernel(a)
    order = np.argsort(-a, axis=1)[:5, :8]
    assert np.array_equal(largest[:5], np.take_along_axis(a[:5], order, axis=1))
    assert np.array_equal(where[:5], order)
    even, odd = a[:5, 0:5:2], a[:5, 1:5:2]
    expected = [[3, e.mean(), e.var() * 3, 2, o.mean(), o.var() * 2] for e, o in zip(even, odd, strict=True)]
    np.testing.assert_allclose(statistics[:5], expected, rtol=1e-5)
    np.testing.assert_allclose(aggregate[:5], np.stack([a.mean(1), a.var(1)], axis=1)[:5], rtol=1e-5)


def test_statistics_of_fewer_elements_than_they_have_themselves() -> None:
    @nki_beta1.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((8, 6), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(out, nisa.bn_stats(nl.load(a), mask=nl.arange(4)[None, :] < 2))
        return out

    a = random(8, 4)
    zeros, ones = np.zeros(8, np.float32), np.ones(8, np.float32)
    assert np.array_equal(kernel(a), np.stack([ones, a[:, 0], zeros, ones, a[:, 1], zeros], axis=1))


def test_means_of_what_a_mask_lets_through() -> None:
    @nki_beta1.jit
    def kernel(a: NkiTensor) -> tuple[NkiTensor, NkiTensor]:
        mask = nl.arange(32)[None, :] < 10
        mean = nl.ndarray((8, 1), dtype=nl.float32, buffer=nl.shared_hbm)
        variance = nl.ndarray((8, 1), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(mean, nl.mean(nl.load(a), 1, mask=mask))
        nl.store(variance, nl.var(nl.load(a), 1, mask=mask))
        return mean, variance

    a = random(8, 32)
    mean, variance = kernel(a)
    np.testing.assert_allclose(mean[:, 0], a[:, :10].mean(1), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(variance[:, 0], a[:, :10].var(1), rtol=1e-5)
