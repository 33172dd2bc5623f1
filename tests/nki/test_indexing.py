"""Index tiles and masks against numpy's own index arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from operator import ge, gt, le, lt
from typing import Any

import numpy as np
import pytest

from triptych.core.errors import NkiError
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki, nki_beta1
from triptych.languages.nki.tracing.indexing import Mask
from triptych.languages.nki.tracing.tensors import NkiTensor


@pytest.mark.parametrize("compare", [lt, le, gt, ge])
def test_masks_of_one_axis(compare: Callable[[Any, int], Any]) -> None:
    count = 12
    for step, offset, bound in product((1, 3, -1, -2), (-5, 0, 7), (-7, -1, 0, 4, 11)):
        mask = compare(nl.arange(count)[None, :] * step + offset, bound)
        assert isinstance(mask, Mask)
        true = np.nonzero(compare(np.arange(count) * step + offset, bound))[0]
        box = mask.box((4, count))
        if true.size == 0:
            assert box is None
        else:
            assert box == ((0, 4), (true[0], true[-1] + 1))


def test_masks_combine() -> None:
    i_p, i_f = nl.mgrid[0:8, 0:16]
    assert ((i_p < 5) & (i_f >= 3) & (i_f < 20)).box((8, 16)) == ((0, 5), (3, 16))
    assert (~(i_p < 5)).box((8, 16)) == ((5, 8), (0, 16))
    assert ((i_p < 5) & (i_p > 6)).box((8, 16)) is None
    assert ((i_p < 5) & False).box((8, 16)) is None
    for wrong in (lambda: (i_p < i_f).box((8, 16)), lambda: (i_p < 2) | (i_f < 2), lambda: bool(i_p < 2)):
        with pytest.raises(NkiError):
            wrong()


def test_affine_indices() -> None:
    """Strides, offsets and swapped axes, against numpy's advanced indexing."""

    @nki_beta1.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((10, 12), dtype=a.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.arange(10)[:, None], nl.arange(12)[None, :]
        nl.store(out[i_p, i_f], nl.load(a[2, 3 * i_f + 1, 39 - i_p - 2 * i_f]))
        return out

    a = np.random.default_rng(80).random((3, 40, 40)).astype(np.float32)
    rows, columns = np.arange(10)[:, None], np.arange(12)[None, :]
    assert np.array_equal(kernel(a), a[2, 3 * columns + 1, 39 - rows - 2 * columns])


def test_basic_indices() -> None:
    @nki.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((5, 4), dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.load(a[-1, 1:11:2, ...][:, nl.ds(3, 8)][..., 0:8:2]))
        return out

    a = np.random.default_rng(81).random((3, 12, 14)).astype(np.float32)
    assert np.array_equal(kernel(a), a[-1, 1:11:2][:, 3:11][:, 0:8:2])


def test_ds_alone_is_the_first_axis() -> None:
    @nki.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((4, 14), dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.load(a[nl.ds(3, 4)]))
        return out

    a = np.random.default_rng(82).random((12, 14)).astype(np.float32)
    assert np.array_equal(kernel(a), a[3:7])


def test_views() -> None:
    @nki.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((6, 2, 20), dtype=a.dtype, buffer=nl.shared_hbm)
        data = nl.load(a.reshape((6, 40))).reshape((6, 20, 2)).permute((0, 2, 1))
        assert data.shape == (6, 2, 20)
        assert data.expand_dim(1).squeeze_dim(1).shape == data.shape
        nl.store(out, nl.copy(data))
        return out

    a = np.random.default_rng(82).random((3, 2, 40)).astype(np.float32)
    assert np.array_equal(kernel(a), a.reshape(6, 20, 2).transpose(0, 2, 1))


def test_explicit_access_patterns() -> None:
    @nki.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((4, 3, 5), dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.load(a.ap([[20, 4], [2, 3], [1, 5]], offset=7)))
        return out

    a = np.arange(100, dtype=np.float32).reshape(10, 10)
    index = 7 + 20 * np.arange(4)[:, None, None] + 2 * np.arange(3)[:, None] + np.arange(5)
    assert np.array_equal(kernel(a), index.astype(np.float32))


def test_an_indirect_index_of_three_axes() -> None:
    """Rows that a tile of indices names, of each some elements along two axes."""

    @nki_beta1.jit
    def kernel(a: NkiTensor, rows: NkiTensor) -> tuple[NkiTensor, NkiTensor]:
        out = nl.ndarray((16, 3, 4), dtype=a.dtype, buffer=nl.shared_hbm)
        mirrored = nl.ndarray((4, 3, 16), dtype=a.dtype, buffer=nl.shared_hbm)
        index = nl.load(rows)[nl.arange(16)[:, None], 0]
        i_y, i_z = nl.arange(3)[None, :, None], 2 * nl.arange(4)[None, None, :]
        nl.store(out, nl.load(a[index, i_y, i_z]))
        nl.store(mirrored, nisa.dma_transpose(a[index, i_y, i_z], axes=(2, 1, 0)))
        return out, mirrored

    a = np.random.default_rng(84).random((20, 3, 8)).astype(np.float32)
    rows = np.random.default_rng(85).integers(0, 20, (16, 1)).astype(np.int32)
    out, mirrored = kernel(a, rows)
    assert np.array_equal(out, a[rows[:, 0], :, ::2])
    assert np.array_equal(mirrored, out.transpose(2, 1, 0))


def test_mask_skips_everything() -> None:
    """A mask that lets nothing through issues no instruction."""

    @nki_beta1.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.mgrid[0:8, 0:8]
        for start in range(0, 32, 8):
            rows = start + i_p
            mask = rows < a.shape[0]
            nl.store(out[rows, i_f], nl.load(a[rows, i_f], mask=mask), mask=mask)
        return out

    a = np.random.default_rng(83).random((13, 8)).astype(np.float32)
    assert np.array_equal(kernel(a), a)
