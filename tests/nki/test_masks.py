"""Masks of Beta 1 on instructions whose operands differ in their free size, and on what is composed of several."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from numpy.typing import NDArray

import triptych as tt
from triptych.core.errors import NkiError
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki_beta1
from triptych.languages.nki.tracing.indexing import Mask
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


# Masks that compare axes with each other


@pytest.mark.parametrize("shape", [(6, 9), (4, 3, 5)])
def test_boxes_of_any_affine_mask(shape: tuple[int, ...]) -> None:
    """The boxes have each element that the mask lets through once."""
    chosen = np.random.default_rng(45)
    indices, true = nl.mgrid[tuple(slice(0, count) for count in shape)], np.indices(shape)
    for _ in range(60):
        mask, expected = True, np.ones(shape, bool)
        for _ in range(int(chosen.integers(1, 4))):
            factors, bound = chosen.integers(-2, 3, len(shape)), int(chosen.integers(-6, 7))
            compare = COMPARISONS[int(chosen.integers(len(COMPARISONS)))]
            mask &= compare(sum((int(f) * one for f, one in zip(factors, indices, strict=True)), start=0), bound)
            expected &= compare(np.tensordot(factors, true, 1), bound)
        assert isinstance(mask, Mask)
        for split_rows in (True, False):
            found = np.zeros(shape, int)
            for box in mask.boxes(shape, split_rows=split_rows):
                found[tuple(slice(first, end) for first, end in box)] += 1
            assert np.array_equal(found, expected)


COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)


def test_a_triangle_is_stored_and_computed() -> None:
    """DMAs begin at any row; what engines compute begins at row 0, a column after the other."""

    @nki_beta1.jit
    def kernel(a: NkiTensor) -> tuple[NkiTensor, NkiTensor]:
        lower = nl.ndarray((8, 8), dtype=a.dtype, buffer=nl.shared_hbm)
        upper = nl.ndarray((8, 8), dtype=a.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.arange(8)[:, None], nl.arange(8)[None, :]
        data, sums = nl.load(a), nl.zeros((8, 8), nl.float32)
        nl.store(lower, nl.zeros((8, 8), nl.float32))
        nl.store(lower[i_p, i_f], data[i_p, i_f], mask=i_p >= i_f)
        sums[i_p, i_f] = nl.multiply(data, 2.0, mask=(i_p <= i_f) & (i_f < 7))
        sums += nl.add(data, 1.0, mask=i_p < i_f)
        nl.store(upper, sums)
        return lower, upper

    a = np.arange(64, dtype=np.float32).reshape(8, 8)
    with tt.profile(chip="trn2") as profile:
        lower, upper = kernel(a)
    doubled = np.triu(2 * a)
    doubled[:, 7] = 0
    assert np.array_equal(lower, np.tril(a))
    assert np.array_equal(upper, doubled + np.triu(a + 1, 1))
    assert profile.launches[-1].findings == ()
    assert profile.launches[-1].counters["dma.transfers"].value == 1 + 1 + 8 + 1  # a row each of the triangle


def test_a_triangle_that_no_engine_can_begin_at() -> None:
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((8, 8), dtype=a.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.arange(8)[:, None], nl.arange(8)[None, :]
        nl.store(out, nl.multiply(nl.load(a), 2.0, mask=i_p >= i_f))
        return out

    with pytest.raises(NkiError, match=r"a box, one of which cannot be: .* starting at partition 1") as caught:
        nki_beta1.jit(kernel).capture(random(8, 8))
    assert caught.value.hint is not None
    assert "affine_select" in caught.value.hint


def test_a_reduction_takes_no_triangle() -> None:
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((8, 1), dtype=a.dtype, buffer=nl.shared_hbm)
        mask = nl.arange(8)[:, None] <= nl.arange(8)[None, :]
        nl.store(out, nisa.tensor_reduce(np.add, nl.load(a), axis=(1,), mask=mask, keepdims=True))
        return out

    with pytest.raises(NkiError, match="tensor_reduce: a mask that compares axes needs tiles of one shape"):
        nki_beta1.jit(kernel).capture(random(8, 8))


def test_masks_of_the_operands_of_a_product() -> None:
    """`stationary[i_f < m]`: the product has its full shape, and only its part is made."""

    @nki_beta1.jit
    def kernel(a: NkiTensor, b: NkiTensor) -> tuple[NkiTensor, NkiTensor]:
        out = nl.ndarray((64, 96), dtype=nl.float32, buffer=nl.shared_hbm)
        summed = nl.ndarray((64, 96), dtype=nl.float32, buffer=nl.shared_hbm)
        i_p, i_f, left, right = nl.arange(48)[:, None], nl.arange(96)[None, :], nl.load(a), nl.load(b)
        total = nl.zeros((64, 96), nl.float32, buffer=nl.psum)
        for _ in nl.affine_range(2):
            total += nl.matmul(left[nl.arange(64)[None, :] < 32], right[(i_f < 40) & (i_p >= 32)], transpose_x=True)
        nl.store(summed, nl.copy(total))
        filled = nl.zeros((64, 96), nl.float32)
        filled[...] = nl.copy(nisa.nc_matmul(left[i_p < 32], right[i_f <= 30]))[0:64, 0:96]
        nl.store(out, nl.zeros((64, 96), nl.float32))
        i_m = nl.arange(64)[:, None]
        nl.store(out[i_m, i_f], filled[i_m, i_f], mask=i_f <= 30)
        return out, summed

    a, b = random(48, 64).round(), random(48, 96).round()
    out, summed = kernel(a, b)
    expected = a[:32].T @ b[:32]
    expected[:, 31:] = 0
    assert np.array_equal(out, expected)
    expected = 2 * a[32:].T @ b[32:]
    expected[32:], expected[:, 40:] = 0, 0
    assert np.array_equal(summed, expected)


def test_an_operand_mask_is_for_products_alone() -> None:
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((8, 8), dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.exp(nl.load(a)[nl.arange(8)[None, :] < 4]))
        return out

    with pytest.raises(NkiError, match=r"a mask as an index .* operands of nl.matmul and nisa.nc_matmul alone"):
        nki_beta1.jit(kernel).capture(random(8, 8))


def test_an_operand_mask_of_what_a_product_transposes_first() -> None:
    """It is refused with what to write instead, which is taken: an operand as the engine takes it, or mask=."""

    def masked(a: NkiTensor, b: NkiTensor, way: str) -> NkiTensor:
        out = nl.ndarray((8, 24), dtype=a.dtype, buffer=nl.shared_hbm)
        x, y, few = nl.load(a), nl.load(b), nl.arange(16)[None, :] < 9
        first = nl.arange(16)[:, None] < 9
        if way == "operand":
            nl.store(out, nl.copy(nl.matmul(x[few], y)))
        elif way == "[K, M]":
            nl.store(out, nl.copy(nl.matmul(nl.transpose(x)[first], y, transpose_x=True)))
        elif way == "mask=":
            nl.store(out, nl.copy(nl.matmul(x, y, mask=first)))
        else:
            nl.store(out, nl.copy(nl.matmul(x, y[first])))
        return out

    kernel = nki_beta1.jit(masked)
    a, b = random(8, 16).round(), random(16, 24).round()
    with pytest.raises(NkiError, match=r"nl\.matmul: x is `.*` with a mask as its index, and without") as caught:
        kernel.capture(a, b, "operand")
    assert caught.value.where is not None
    assert caught.value.where.file == __file__
    assert caught.value.hint is not None
    assert "pass x as [K, M] with transpose_x=True" in caught.value.hint
    for way in ("[K, M]", "mask=", "y[mask]"):
        assert np.array_equal(kernel(a, b, way), a[:, :9] @ b[:9]), way


def test_masks_of_transpositions() -> None:
    @nki_beta1.jit
    def kernel(a: NkiTensor) -> tuple[NkiTensor, ...]:
        i_p, i_f, data = nl.arange(16)[:, None], nl.arange(24)[None, :], nl.load(a)
        mask = (i_p < 12) & (i_f < 20)
        found: list[NkiTensor] = []
        for mirror in (
            nl.transpose(data, mask=mask),
            nl.transpose(data, dtype=nl.float32, mask=mask),
            nisa.nc_transpose(data, mask=mask),
            nisa.nc_transpose(data, engine=nisa.vector_engine, mask=mask),
            nisa.dma_transpose(data, mask=mask),
        ):
            out = nl.ndarray((24, 16), dtype=a.dtype, buffer=nl.shared_hbm)
            nl.store(out, nl.zeros((24, 16), a.dtype))
            nl.store(out[0:20, 0:12], nl.copy(mirror[0:20, 0:12]))
            found.append(out)
        return tuple(found)

    a = random(16, 24)
    expected = np.zeros((24, 16), np.float32)
    expected[:20, :12] = a[:12, :20].T
    for one in kernel(a):
        assert np.array_equal(one, expected)
