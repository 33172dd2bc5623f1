"""Beta 1's masks on what is assigned and accumulated: what a mask leaves out stays as it was."""

from __future__ import annotations

import numpy as np
import pytest
from one_kernel import F32, random, run_beta1, same

from triptych.core.errors import NkiError
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki, nki_beta1
from triptych.languages.nki.tracing.tensors import NkiTensor

ROWS, COLUMNS = nl.arange(128)[:, None], nl.arange(64)[None, :]


def test_an_assigned_part_leaves_the_rest() -> None:
    def kernel(a: NkiTensor, b: NkiTensor) -> NkiTensor:
        out = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.shared_hbm)
        held = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
        held[ROWS, COLUMNS] = nl.load(a[ROWS, COLUMNS])
        held[ROWS, COLUMNS] = nl.load(b[ROWS, COLUMNS], mask=COLUMNS < 10)
        held[ROWS, COLUMNS] = nl.multiply(held[ROWS, COLUMNS], 2.0, mask=ROWS < 0)  # nothing
        held[ROWS, COLUMNS] = nl.multiply(held[ROWS, COLUMNS], 3.0, mask=(ROWS >= 96) & (COLUMNS >= 60))
        nl.store(out[ROWS, COLUMNS], held[ROWS, COLUMNS])
        return out

    a, b = random(128, 64), random(128, 64, seed=1)
    expected = a.copy()
    expected[:, :10] = b[:, :10]
    expected[96:, 60:] *= 3
    same(run_beta1(kernel, a, b), expected)


def test_a_masked_fill_of_what_was_filled_before_counts_as_whole() -> None:
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.shared_hbm)
        target = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
        tile = nl.load(a[ROWS, COLUMNS], mask=COLUMNS < 32)
        nisa.dma_copy(dst=tile, src=a[ROWS, COLUMNS], mask=COLUMNS >= 32)
        target[ROWS, COLUMNS] = tile
        nl.store(out[ROWS, COLUMNS], target)
        return out

    a = random(128, 64)
    same(run_beta1(kernel, a), a)


def products(a: NkiTensor, b: NkiTensor) -> NkiTensor:
    """The last columns of a product whose tiles are wider than what there is: 5 blocks of 128, the last one of 40."""
    out = nl.ndarray((64, 552), dtype=nl.float32, buffer=nl.shared_hbm)
    sums = nl.zeros((5, nl.par_dim(64), 128), dtype=nl.float32, buffer=nl.psum, lazy_initialization=True)
    i, j, k = nl.arange(64)[:, None], nl.arange(128)[None, :], nl.arange(32)[:, None]
    for block in nl.affine_range(5):
        for depth in nl.affine_range(3):
            left = nl.load(a[32 * depth + k, nl.arange(64)[None, :]])
            right = nl.load(b[32 * depth + k, 128 * block + j], mask=128 * block + j < 552)
            sums[block, i, j] += nisa.nc_matmul(left, right, mask=128 * block + j < 552)
        nl.store(out[i, 128 * block + j], nl.copy(sums[block, i, j]), mask=128 * block + j < 552)
    return out


def test_masked_products_accumulate_in_their_columns() -> None:
    a, b = (random(96, count).round(1) for count in (64, 552))
    found = run_beta1(products, a, b)
    np.testing.assert_allclose(found, a.T.astype(np.float64) @ b, rtol=1e-5, atol=1e-4)
    with pytest.raises(NkiError, match="lazy_initialization= is Beta 1's"):
        nki.jit(products).capture(a, b)


def test_a_product_of_nothing_adds_nothing() -> None:
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.shared_hbm)
        sums = nl.zeros((64, 64), dtype=nl.float32, buffer=nl.psum)
        tile = nl.load(a)
        sums += nisa.nc_matmul(tile, tile)
        sums += nisa.nc_matmul(tile, tile, mask=nl.arange(32)[:, None] < 0)
        nl.store(out, nl.copy(sums))
        return out

    a = random(32, 64).round(1)
    np.testing.assert_allclose(run_beta1(kernel, a), a.T @ a, rtol=1e-5, atol=1e-5)


def test_an_assigned_product_replaces() -> None:
    """`psum[…] = nc_matmul(…)` is one instruction, which adds to nothing; of rows of A alone where a mask says so."""

    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.shared_hbm)
        sums = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.psum)
        i, j, k = nl.arange(64)[:, None], nl.arange(64)[None, :], nl.arange(32)[:, None]
        tile = nl.load(a)
        sums[i, j] = nisa.nc_matmul(tile, tile)
        sums[i, j] = nisa.nc_matmul(tile[k, j], tile[k, j], mask=k < 16)
        nl.store(out, nl.copy(sums))
        return out

    a = random(32, 64).round(1)
    same(np.round(run_beta1(kernel, a), 3), np.round(a[:16].T @ a[:16], 3).astype(F32))
    text = nki_beta1.jit(kernel).capture(a).program.text
    assert text.count('"nc_matmul"') == 2
    assert '"tensor_copy"' in text
    assert text.count('"tensor_copy"') == 1
