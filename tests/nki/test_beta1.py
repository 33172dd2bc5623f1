"""What AWS's samples of Beta 1 do: blocks, dynamic copies, predicates that are truth values, results in arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
import pytest
from one_kernel import F32, Array, random, run_beta1, same

import triptych as tt
from triptych.core.errors import NkiError, NkiLimitError
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki_beta1
from triptych.languages.nki.tracing.tensors import NkiTensor


def in_blocks(blocks: int, *, together: bool) -> Callable[[NkiTensor], NkiTensor]:
    """A tensor of blocks in PSUM, a bank each: all are used at the end, or each is done with before the next."""

    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((blocks, 128, 512), dtype=a.dtype, buffer=nl.shared_hbm)
        held = nl.ndarray((blocks, nl.par_dim(128), 512), dtype=nl.float32, buffer=nl.psum)
        tile = nl.load(a)
        if together:
            for i in nl.affine_range(blocks):
                held[i] = nl.multiply(tile, float(i))
            for i in nl.affine_range(blocks):
                nl.store(out[i], nl.copy(held[i]))
        else:
            for i in nl.affine_range(blocks):
                held[i] = nl.multiply(tile, float(i))
                nl.store(out[i], nl.copy(held[i]))
        return out

    return kernel


def test_blocks_live_apart() -> None:
    a = random(128, 512)
    with tt.profile(chip="trn2") as profile:
        found = run_beta1(in_blocks(8, together=False), a)
    same(found, np.arange(8, dtype=F32)[:, np.newaxis, np.newaxis] * a)
    assert profile.launches[0].counters.value("psum.peak_bytes") == 2048
    same(run_beta1(in_blocks(8, together=True), a), found)
    with pytest.raises(
        NkiLimitError, match=r"9 live tiles take 18432 bytes of each PSUM partition.* `psum\d+` \(2048 B\)"
    ):
        nki_beta1.jit(in_blocks(9, together=True)).capture(a)


def test_copies_from_where_a_tile_says() -> None:
    def kernel(a: NkiTensor, offsets: NkiTensor) -> NkiTensor:
        out = nl.ndarray((64, 10), dtype=a.dtype, buffer=nl.shared_hbm)
        source, places = nl.load(a), nl.load(offsets)
        result = nl.ndarray((64, 10), dtype=a.dtype, buffer=nl.sbuf)
        rows, columns = nl.mgrid[0:64, 0:2]
        for i in nl.affine_range(5):
            result[rows, 2 * i + columns] = nisa.tensor_copy_dynamic_src(source[rows, places[0, i] + columns])
        nl.store(out, result)
        return out

    a, places = random(64, 32), np.array([[3, 30, 0, 7, 7]], np.int32)
    same(run_beta1(kernel, a, places), np.concatenate([a[:, at : at + 2] for at in places[0]], axis=1))


def test_copies_to_where_a_tile_says() -> None:
    def kernel(a: NkiTensor, offsets: NkiTensor) -> NkiTensor:
        out = nl.ndarray((64, 8, 4), dtype=a.dtype, buffer=nl.shared_hbm)
        source, places = nl.load(a), nl.load(offsets)
        result = nl.zeros((64, 8, 4), a.dtype)
        rows, columns = nl.arange(64)[:, None], nl.arange(4)[None, :]
        for i in nl.sequential_range(2):
            nisa.tensor_copy_dynamic_dst(dst=result[rows, places[0, i], columns], src=source[rows, 4 * i + columns])
        nl.store(out, result)
        return out

    a, places = random(64, 8), np.array([[6, 1]], np.int32)
    expected = np.zeros((64, 8, 4), F32)
    expected[:, 6], expected[:, 1] = a[:, :4], a[:, 4:]
    same(run_beta1(kernel, a, places), expected)


def test_a_static_copy_is_no_dynamic_one() -> None:
    def kernel(a: NkiTensor) -> NkiTensor:
        return nisa.tensor_copy_dynamic_src(nl.load(a))

    with pytest.raises(NkiError, match="is not indexed by the element of a tile"):
        nki_beta1.jit(kernel).capture(random(8, 8))


def test_predicates_may_be_truth_values() -> None:
    def kernel(a: NkiTensor, b: NkiTensor) -> NkiTensor:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        x, y = nl.load(a), nl.load(b)
        nisa.tensor_copy_predicated(src=y, dst=x, predicate=nl.less(x, y))
        nl.store(out, x)
        return out

    a, b = random(16, 8), random(16, 8, seed=81)
    same(run_beta1(kernel, a, b), np.maximum(a, b))


def test_a_partition_is_repeated() -> None:
    def kernel(a: NkiTensor, row: NkiTensor) -> NkiTensor:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        tile = nl.load(row)
        nl.store(out, nl.add(nl.add(nl.load(a), tile), tile.broadcast_to((128, 600))))
        return out

    a, row = random(128, 600), random(1, 600, seed=81)
    same(run_beta1(kernel, a, row), (a + row) + row)


def test_a_shuffle_reads_one_partition_for_all() -> None:
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((32, 16), dtype=a.dtype, buffer=nl.shared_hbm)
        wide = nl.ndarray((32, 16), dtype=a.dtype, buffer=nl.sbuf)
        nisa.nc_stream_shuffle(src=nl.load(a), dst=wide, shuffle_mask=[0] * 32)
        nl.store(out, wide)
        return out

    a = random(1, 16)
    same(run_beta1(kernel, a), np.broadcast_to(a, (32, 16)))


def test_traced_kernels_write_their_arguments() -> None:
    @nki_beta1.trace
    def kernel(a: NkiTensor, out: NkiTensor) -> None:
        nl.store(out, nl.multiply(nl.load(a), 3.0))

    a, out = random(16, 8), np.zeros((16, 8), F32)
    nki_beta1.simulate_kernel(kernel, a, out)
    same(out, 3 * a)


def test_a_column_is_loaded() -> None:
    """One element a partition, which scales what the Scalar engine takes the function of."""

    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(out, nisa.activation(op=nl.exp, data=nl.load(a), scale=nl.load(a[0:64, 3])))
        return out

    a = random(64, 8)
    np.testing.assert_allclose(run_beta1(kernel, a), np.exp(a.astype(np.float64) * a[:, 3:4]), rtol=1e-6)


def test_numbers_are_stored() -> None:
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((4, 8), dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(out, 0)
        nl.store(out[1:3, :], 2.5)
        return out

    expected = np.zeros((4, 8), F32)
    expected[1:3] = 2.5
    same(run_beta1(kernel, random(1, 1)), expected)


def test_a_decorator_names_the_target() -> None:
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        bounds = [nl.full((8, 1), value, nl.float32) for value in (0.0, 8.0)]
        held = nisa.range_select(
            on_true_tile=nl.load(a), comp_op0=np.greater_equal, comp_op1=np.less, bound0=bounds[0], bound1=bounds[1]
        )
        nl.store(out, held)
        return out

    a = random(8, 8)
    with tt.profile(chip="trn1"):
        same(cast(Array, nki_beta1.jit(platform_target="trn2")(kernel)(a)), a)
        with pytest.raises(NkiError, match="needs NeuronCore-v3"):
            nki_beta1.jit(kernel)(a)
