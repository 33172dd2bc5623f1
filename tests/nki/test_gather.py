"""GPSIMD's instructions that gather, search and sort, against plain Python."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from one_kernel import F32, filled, random, refused, run, run_beta1, run_kernel, same, tile

from triptych.core.errors import NkiError, NkiLimitError
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki.tracing.tensors import NkiTensor

BF16 = ml_dtypes.bfloat16
I32, U32 = np.int32, np.uint32


@pytest.mark.parametrize("dtype", [F32, BF16, np.int8])
def test_nc_n_gather(dtype: type[np.generic]) -> None:
    generator = np.random.default_rng(1)
    data = generator.integers(-100, 100, (100, 24)).astype(dtype)
    indices = generator.integers(0, 24, (100, 40)).astype(U32)
    (found,) = run(nisa.nc_n_gather, [data, indices], ((100, 40), dtype))
    same(found, np.take_along_axis(data, indices.astype(np.int64), axis=1))


def test_gather_flattened_runs_over_all_free_axes() -> None:
    data = np.array([[[1, 2], [3, 4]], [[5, 6], [7, 8]]], F32)
    indices = np.array([[[0, 1], [1, 3]], [[3, 3], [1, 0]]], U32)

    def body(out: NkiTensor, a: NkiTensor, b: NkiTensor) -> None:
        nisa.tensor_copy(out, nl.gather_flattened(a, b))

    same(run(body, [data, indices], ((2, 2, 2), F32))[0], np.array([[[1, 2], [2, 4]], [[8, 8], [6, 5]]]))


def test_a_gather_outside_is_a_finding() -> None:
    data, indices = random(4, 8), np.full((4, 2), 8, U32)
    (found,), findings = run_kernel(nisa.nc_n_gather, [data, indices], ((4, 2), F32))
    assert "8 indices are outside of 0 to 7" in findings["memcheck"]
    assert np.isnan(found).all()


def expected_local_gather(data: np.ndarray, index: np.ndarray, each: int, valid: int) -> np.ndarray:
    result = np.empty((data.shape[0], valid, each), data.dtype)
    for core in range(data.shape[0] // 16):
        rows = range(16 * core, 16 * core + 16)
        listed = [int(index[partition, column]) for column in range(index.shape[1]) for partition in rows][:valid]
        for partition in rows:
            for place, first in enumerate(listed):
                result[partition, place] = data[partition, first : first + each]
    return result


@pytest.mark.parametrize(("each", "valid"), [(1, None), (1, 40), (4, 64)])
def test_local_gather(each: int, valid: int | None) -> None:
    data = random(32, 64)
    index = (np.random.default_rng(2).integers(0, 64 // each, (32, 4)) * each).astype(np.uint16)
    count = valid or 64

    def body(out: NkiTensor, a: NkiTensor, b: NkiTensor) -> None:
        nisa.local_gather(out, a, b, each, valid)

    (found,) = run(body, [data, index], ((32, count, each), F32))
    same(found, expected_local_gather(data, index, each, count))


def test_local_gather_returns_a_tile_in_beta_1() -> None:
    data, index = random(16, 32), np.random.default_rng(3).integers(0, 32, (16, 2)).astype(np.uint16)

    def kernel(a: NkiTensor, b: NkiTensor) -> NkiTensor:
        out = nl.ndarray((16, 32, 1), dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(out, nisa.local_gather(nl.load(a), nl.load(b)))
        return out

    same(run_beta1(kernel, data, index), expected_local_gather(data, index, 1, 32))


@pytest.mark.parametrize("dtype", [F32, I32])
def test_nonzero_with_count(dtype: type[np.generic]) -> None:
    data = np.random.default_rng(4).integers(0, 2, (33, 20)).astype(dtype)
    data[16] = 0
    data[32] = 1

    def body(out: NkiTensor, a: NkiTensor) -> None:
        nisa.memset(out, 77)
        nisa.nonzero_with_count(out, a, index_offset=16, padding_val=-5)

    (found,), findings = run_kernel(body, [data], ((33, 21), I32))
    expected = np.full((33, 21), 77)
    for partition in (0, 16, 32):
        places = [at + 16 for at in range(20) if data[partition, at] != 0]
        expected[partition] = [*places, *[-5] * (20 - len(places)), len(places)]
    same(found, expected)
    assert findings == {}


@pytest.mark.parametrize(("n", "k"), [(42, 8), (48, 48), (8, 1), (160, 17)])
def test_topk(n: int, k: int) -> None:
    generator = np.random.default_rng(5)
    data = generator.permutation(np.arange(-80, 80, dtype=F32)).reshape(16, 10).astype(BF16)
    data = np.concatenate([data, (-data.astype(F32)).astype(BF16)])

    def body(values: NkiTensor, places: NkiTensor, a: NkiTensor) -> None:
        nisa.topk(values, places, a, n)

    values, places = run(body, [data], ((32, k), BF16), ((32, k), U32), chip="trn3")
    for partition in range(32):
        group = partition // 16 * 16
        snake = [float(data[group + at % 16, at // 16]) for at in range(n)]
        order = sorted(range(n), key=lambda at: snake[at])[-k:]
        assert places[partition].tolist() == order
        same(values[partition], np.array([snake[at] for at in order]))


def test_sequence_bounds() -> None:
    ids = np.array([[0, 1, 1, 2, 2, 2, 0, 3, 3]], I32)
    (found,) = run(nisa.sequence_bounds, [ids], ((1, 2, 9), I32))
    same(found, np.array([[[9, 1, 1, 3, 3, 3, 9, 7, 7], [-1, 3, 3, 6, 6, 6, -1, 9, 9]]]))


def u32(*shape: int) -> NkiTensor:
    return filled(*shape, dtype=nl.uint32, value=0)


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        (lambda: nisa.nc_n_gather(tile(8, 4), tile(8, 8), tile(8, 4)), NkiError, "'indices' .* expected uint32"),
        (lambda: nisa.nc_n_gather(tile(8, 4), tile(8, 8), u32(8, 5)), NkiError, "free total elements 4 != 'indices'"),
        (lambda: nisa.nc_n_gather(tile(8, 4, dtype=nl.bfloat16), tile(8, 8), u32(8, 4)), NkiError, "one dtype"),
        (lambda: nisa.nc_n_gather(tile(8, 4), tile(8, 8, buffer=nl.psum), u32(8, 4)), NkiError,
         r"data must be in \['sbuf'\], got psum"),
        (lambda: nisa.local_gather(tile(8, 16), tile(8, 8), tile(8, 1, dtype=nl.uint16)), NkiError,
         "8 partitions, no multiple of 16"),
        (lambda: nisa.local_gather(tile(16, 48), tile(16, 8), tile(16, 1, dtype=nl.uint16), 3), NkiError,
         "num_elem_per_idx is 3"),
        (lambda: nisa.local_gather(tile(16, 17), tile(16, 8), tile(16, 1, dtype=nl.uint16), 1, 17), NkiError,
         "num_valid_indices is 17; .* has 16 for each core"),
        (lambda: nisa.local_gather(tile(16, 4112), tile(16, 8), tile(16, 257, dtype=nl.uint16)), NkiLimitError,
         "4112 indices for each core; the limit is 4096"),
        (lambda: nisa.nonzero_with_count(tile(16, 8, dtype=nl.int32), tile(16, 8)), NkiError,
         "has 8 elements in each partition; expected 9"),
        (lambda: nisa.topk(tile(16, 8, dtype=nl.bfloat16), u32(16, 8), tile(16, 4), 42), NkiError,
         "'src' .* float32; expected bfloat16"),
        (lambda: nisa.topk(tile(16, 8, dtype=nl.bfloat16), u32(16, 8), tile(16, 2, dtype=nl.bfloat16), 42), NkiError,
         "n is 42; 16 partitions of .* have 32"),
        (lambda: nisa.topk(tile(16, 8, dtype=nl.bfloat16), u32(16, 8), tile(16, 2, dtype=nl.bfloat16), 7),
         NkiLimitError, "n is 7; expected 8 to 65535"),
        (lambda: nisa.sequence_bounds(tile(1, 2, 9), tile(2, 9)), NkiError, r"expected \[1, 2, 9\]"),
        (lambda: nl.gather_flattened(tile(8, 8), u32(8, 4), axis=1), NkiError, "axis=1"),
    ],
)  # fmt: skip
def test_refused(body: Callable[[], object], error: type[NkiError], message: str) -> None:
    refused(body, error, message)


def test_nonzero_needs_a_later_core() -> None:
    refused(
        lambda: nisa.nonzero_with_count(tile(16, 9, dtype=nl.int32), tile(16, 8)),
        NkiError,
        "needs NeuronCore-v3",
        chip="trn1",
    )
