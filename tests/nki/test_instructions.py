"""Instructions against plain numpy: what they compute, edge values included, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from one_kernel import F32, Array, filled, random, refused, run, same, tile

import triptych as tt
from triptych.core.errors import NkiError
from triptych.execution.profile import Profile
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki, nki_beta1
from triptych.languages.nki.tracing.tensors import NkiTensor

NAN, INF = np.nan, np.inf


# tensor_tensor


def test_tensor_tensor_runs_on_an_engine_that_has_the_operation() -> None:
    a, b = np.abs(random(100, 40)) + 0.5, random(100, 40, seed=81)
    wide = a.astype(np.float64)

    def body(roots: NkiTensor, powers: NkiTensor, sums: NkiTensor, x: NkiTensor, y: NkiTensor) -> None:
        nisa.tensor_tensor(roots, x, y, op=nl.rsqrt)
        nisa.tensor_tensor(powers, x, y, op=nl.power)
        nisa.tensor_tensor(sums, x, y, op=nl.add)

    with tt.profile(chip="trn2") as profile:
        roots, powers, sums = run(body, [a, b], *[((100, 40), F32)] * 3)
    same(roots, (1 / np.sqrt(wide)).astype(F32))
    same(powers, np.power(wide, b.astype(np.float64)).astype(F32))
    same(sums, a + b)
    counters = profile.launches[0].counters
    assert counters.value("instructions.gpsimd") == 2
    assert counters.value("instructions.vector") == 1


# max8, nc_find_index8, nc_match_replace8


@pytest.mark.parametrize("size", [8, 9, 700])
def test_max8(size: int) -> None:
    a = random(100, size)
    (found,) = run(nisa.max8, [a], ((100, 8), F32))
    same(found, np.array([sorted(row, reverse=True)[:8] for row in a.tolist()], F32))


def test_max8_of_ties_infinities_and_nan() -> None:
    a = np.array([[3, 3, 3, INF, -INF, 1, 2, -4, INF], [NAN, 1, 2, 3, 4, 5, 6, 7, INF]], F32)
    (found,) = run(nisa.max8, [a], ((2, 8), F32))
    same(found[0], np.array([INF, INF, 3, 3, 3, 2, 1, -4]))
    same(found[1], np.array([NAN, INF, 7, 6, 5, 4, 3, 2]))


def test_max8_returns_a_tile_in_beta_1() -> None:
    @nki_beta1.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((128, 8), dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(out, nisa.max8(src=nl.load(a)))
        return out

    a = random(128, 32)
    same(kernel(a), -np.sort(-a, axis=1)[:, :8])


def expected_places(data: Array, values: Array) -> Array:
    """The k-th time that a value is asked for, its k-th place."""
    result = np.full(values.shape, 2**32 - 1, np.int64)
    for partition, row in enumerate(values.tolist()):
        for place, value in enumerate(row):
            places = [at for at, one in enumerate(data[partition].tolist()) if one == value]
            asked = row[:place].count(value)
            if asked < len(places):
                result[partition, place] = places[asked]
    return result


def test_find_index8() -> None:
    data = np.random.default_rng(81).integers(0, 6, (64, 40)).astype(F32)
    values = np.random.default_rng(82).integers(0, 7, (64, 8)).astype(F32)
    (found,) = run(nisa.nc_find_index8, [data, values], ((64, 8), np.uint32))
    same(found, expected_places(data, values))


def test_find_index8_of_what_is_not_there() -> None:
    data = np.array([[1, 2, NAN, INF, -0.0, 5, 5, 6]], F32)
    values = np.array([[NAN, INF, 0.0, 5, 5, 5, -INF, 6]], F32)
    (wide,) = run(nisa.nc_find_index8, [data, values], ((1, 8), np.uint32))
    assert wide.tolist() == [[2**32 - 1, 3, 4, 5, 6, 2**32 - 1, 2**32 - 1, 7]]
    (narrow,) = run(nisa.nc_find_index8, [data, values], ((1, 8), np.uint16))
    assert narrow.tolist() == [[65535, 3, 4, 5, 6, 65535, 65535, 7]]


def test_top_16_by_max8_and_match_replace8() -> None:
    """The idiom: take the 8 largest, put the least number in their places, take the next 8."""
    a = random(128, 200, seed=83)
    a[:, 50:60] = a[:, 40:50]  # ties

    def body(first: NkiTensor, second: NkiTensor, places: NkiTensor, data: NkiTensor) -> None:
        nisa.max8(first, data)
        rest = tile(128, 200)
        nisa.nc_match_replace8(rest, data, first, nl.fp32.min, dst_idx=places)
        nisa.max8(second, rest)

    first, second, places = run(body, [a], ((128, 8), F32), ((128, 8), F32), ((128, 8), np.uint32))
    same(np.hstack([first, second]), -np.sort(-a, axis=1)[:, :16])
    same(np.take_along_axis(a, places.astype(np.int64), axis=1), first)
    assert all(len(set(row)) == 8 for row in places.tolist())


def test_match_replace8_looks_for_the_last_value_first() -> None:
    data = np.array([[7, 5, 7, 1, 7, 2, 3, 4]], F32)
    values = np.array([[7, 9, 7, 1, NAN, 4, 3, 2]], F32)

    def body(result: NkiTensor, places: NkiTensor, given: NkiTensor, wanted: NkiTensor) -> None:
        nisa.nc_match_replace8(result, given, wanted, -1.0, places)

    result, places = run(body, [data, values], ((1, 8), F32), ((1, 8), np.uint32))
    assert result.tolist() == [[-1, 5, -1, -1, 7, -1, -1, -1]]
    assert places.tolist() == [[2, 2**32 - 1, 0, 3, 2**32 - 1, 7, 6, 5]]


# scans, statistics, reductions


@pytest.mark.parametrize("beta1", [False, True])
def test_cumulative_sum(beta1: bool) -> None:
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        ones = nl.ones(a.shape, nl.float32)
        if beta1:
            total = nisa.tensor_tensor_scan(ones, nl.load(a), initial=0, op0=np.multiply, op1=np.add)
        else:
            total = tile(*a.shape)
            nisa.tensor_tensor_scan(total, ones, nl.load(a), initial=0.0, op0=nl.multiply, op1=nl.add)
        nl.store(out, total)
        return out

    a = random(128, 300)
    found = (nki_beta1.jit if beta1 else nki.jit)(kernel)(a)
    expected = np.zeros((128, 300), F32)
    total = np.zeros(128, F32)
    for column in range(300):
        total = (total + a[:, column]).astype(F32)
        expected[:, column] = total
    same(found, expected)


@pytest.mark.parametrize(("reverse0", "reverse1"), [(False, False), (True, False), (False, True), (True, True)])
def test_scan_in_reverse_from_a_column(reverse0: bool, reverse1: bool) -> None:
    a, b, start = random(16, 20, seed=84), random(16, 20, seed=85), random(16, 1, seed=86)

    def body(result: NkiTensor, left: NkiTensor, right: NkiTensor, initial: NkiTensor) -> None:
        nisa.tensor_tensor_scan(
            result, left, right, initial, nl.subtract, nl.subtract, reverse0=reverse0, reverse1=reverse1
        )

    (found,) = run(body, [a, b, start], ((16, 20), F32))
    for row in range(16):
        state = start[row, 0]
        for at in range(20):
            inner = state - a[row, at] if reverse0 else a[row, at] - state
            state = b[row, at] - inner if reverse1 else inner - b[row, at]
            assert found[row, at] == state


def test_scan_keeps_float32_between_steps() -> None:
    a = np.full((1, 600), 1.0, ml_dtypes.bfloat16)

    def body(result: NkiTensor, ones: NkiTensor) -> None:
        nisa.tensor_tensor_scan(result, ones, ones, 0.0, nl.multiply, nl.add)

    (found,) = run(body, [a], ((1, 600), ml_dtypes.bfloat16))
    same(found, np.arange(1, 601, dtype=F32).astype(ml_dtypes.bfloat16)[None])


def test_layer_norm_statistics_of_1000_columns() -> None:
    a = random(64, 1000) * 3 + 100

    def body(result: NkiTensor, data: NkiTensor) -> None:
        triples = tile(64, 4, 3)
        for part, (start, end) in enumerate([(0, 511), (511, 1000)]):
            nisa.bn_stats(triples[:, 2 * part : 2 * part + 2, :], data[:, start:end])
        nisa.bn_aggr(result, triples)

    (found,) = run(body, [a], ((64, 2), F32))
    wide = a.astype(np.float64)
    np.testing.assert_allclose(found[:, 0], wide.mean(axis=1), rtol=1e-6)
    np.testing.assert_allclose(found[:, 1], wide.var(axis=1), rtol=1e-5)


def test_statistics_by_parity() -> None:
    a = np.array([[1, 10, 3, 20, 5], [INF, 1, 2, NAN, 3]], F32)
    (found,) = run(nisa.bn_stats, [a], ((2, 6), F32))
    same(found[0], np.array([3, 3, 8, 2, 15, 50]))
    assert found[1, 0] == 3
    assert found[1, 1] == INF
    assert np.isnan(found[1, [2, 4, 5]]).all()
    (single,) = run(nisa.bn_stats, [np.array([[7.0]], F32)], ((1, 6), F32))
    same(single, np.array([[1, 7, 0, 0, 0, 0]]))


@pytest.mark.parametrize(
    ("reduce", "numpy"), [(nl.add, np.add), (nl.multiply, np.multiply), (nl.maximum, np.maximum), (nl.min, np.minimum)]
)
def test_tensor_scalar_reduce(reduce: object, numpy: np.ufunc) -> None:
    a, column = random(128, 40), random(128, 1, seed=87)

    def body(result: NkiTensor, sums: NkiTensor, data: NkiTensor, factor: NkiTensor) -> None:
        nisa.tensor_scalar_reduce(result, data, nl.multiply, factor, reduce, sums, reduce_res_negate=True)

    result, reduced = run(body, [a, column], ((128, 40), F32), ((128, 1), F32))
    same(result, a * column)
    same(reduced, -numpy.accumulate(a * column, axis=1)[:, -1:])


@pytest.mark.parametrize(
    ("op", "numpy", "dtype"),
    [(nl.add, np.add, F32), (np.max, np.maximum, F32), (nl.bitwise_and, np.bitwise_and, np.int32)],
)
def test_partition_reduce(op: object, numpy: np.ufunc, dtype: type[np.generic]) -> None:
    a = (random(96, 33) * 1000).astype(dtype)
    if op is np.max:
        a[5, 3] = NAN

    def body(result: NkiTensor, data: NkiTensor) -> None:
        nisa.tensor_partition_reduce(result, op, data)

    (found,) = run(body, [a], ((1, 33), dtype))
    same(found, numpy.accumulate(a, axis=0)[-1:])


# selection, movement


def test_causal_row_by_range_select() -> None:
    scores = random(128, 64)
    scores[0, 3] = INF
    low, high = np.full((128, 1), 10, F32), (np.arange(128, dtype=F32) + 0.5)[:, None]

    def body(result: NkiTensor, top: NkiTensor, s: NkiTensor, first: NkiTensor, last: NkiTensor) -> None:
        nisa.range_select(
            result, s, nl.greater_equal, nl.less, first, last, reduce_res=top, range_start=5,
            on_false_value=nl.fp32.min,
        )  # fmt: skip

    result, top = run(body, [scores, low, high], ((128, 64), F32), ((128, 1), F32))
    index = np.arange(64) + 5
    expected = np.where((index >= low) & (index < high), scores, np.finfo(F32).min)
    same(result, expected)
    same(top, expected.max(axis=1, keepdims=True))


def in_float32(exact: Callable[[Fraction, Fraction, Fraction], Fraction], *arrays: Array) -> NDArray[np.float32]:
    """An exact result of each place, rounded once: to the nearest float64, which holds these all, then to float32."""
    rows = [[Fraction(float(one)) for one in np.broadcast_to(array, arrays[0].shape).flat] for array in arrays]
    values = [float(exact(*each)) for each in zip(*rows, strict=True)]
    return np.array(values).astype(F32).reshape(arrays[0].shape)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16, F32])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_column_of_any_float_for_two_tiles(dtype: type[np.generic], reverse: bool) -> None:
    """operand0 of scalar_tensor_tensor is widened, as data are: products of 8 and of 11 bits are exact in float32."""

    def body(out: NkiTensor, data: NkiTensor, column: NkiTensor, other: NkiTensor) -> None:
        nisa.scalar_tensor_tensor(out, data, nl.multiply, column, nl.subtract, other, reverse1=reverse)

    data, other = random(32, 24).astype(ml_dtypes.bfloat16), random(32, 24, seed=81).astype(ml_dtypes.bfloat16)
    column = random(32, 1, seed=82).astype(ml_dtypes.bfloat16).astype(dtype)
    sign = -1 if reverse else 1
    expected = in_float32(lambda x, scale, y: sign * (x * scale - y), data, column, other)
    same(run(body, [data, column, other], ((32, 24), F32))[0], expected)
    rounded = expected.astype(ml_dtypes.bfloat16)
    same(run(body, [data, column, other], ((32, 24), ml_dtypes.bfloat16))[0], rounded)


@pytest.mark.parametrize("name", ["operand0", "operand1"])
@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
def test_the_columns_of_one_tile_are_float32(name: str, dtype: type[np.generic]) -> None:
    """tensor_scalar takes no other, whatever data are; a column of data's dtype is copied to float32 first."""
    columns: dict[str, NkiTensor | float] = {"operand0": 2.0, "operand1": 1.0}

    def wrong() -> None:
        given = {**columns, name: filled(8, 1, dtype=dtype)}
        nisa.tensor_scalar(tile(8, 8), filled(8, 8, dtype=dtype), nl.multiply, op1=nl.add, **given)

    refused(wrong, NkiError, f"tensor_scalar: '{name}' must be float32, got {np.dtype(dtype)}")

    def right(out: NkiTensor, data: NkiTensor, column: NkiTensor) -> None:
        wide = tile(8, 1)
        nisa.tensor_copy(wide, column)
        nisa.tensor_scalar(out, data, nl.multiply, op1=nl.add, **{**columns, name: wide})

    data, column = random(8, 8).astype(dtype), random(8, 1, seed=81).astype(dtype)
    first, second = (column, np.ones((8, 1))) if name == "operand0" else (np.full((8, 1), 2.0), column)
    expected = in_float32(lambda x, scale, y: x * scale + y, data, first, second)
    same(run(right, [data, column], ((8, 8), F32))[0], expected)


@pytest.mark.parametrize("reverse", [False, True])
def test_select_reduce(reverse: bool) -> None:
    a, column = random(32, 50), random(32, 1, seed=89)
    choice = np.random.default_rng(90).integers(0, 3, (32, 50)).astype(np.uint8)

    def body(result: NkiTensor, top: NkiTensor, p: NkiTensor, x: NkiTensor, other: NkiTensor) -> None:
        nisa.select_reduce(
            result, p, x, other, reduce_res=top, reduce_cmd=nisa.reduce_cmd.reset_reduce, reverse_pred=reverse
        )

    result, top = run(body, [choice, a, column], ((32, 50), F32), ((32, 1), F32))
    expected = np.where((choice == 0) if reverse else (choice != 0), a, column)
    same(result, expected)
    same(top, expected.max(axis=1, keepdims=True))


def test_stream_shuffle() -> None:
    a, old = random(128, 9), random(128, 9, seed=91)
    order = [*reversed(range(31)), 255]

    def body(result: NkiTensor, data: NkiTensor, before: NkiTensor) -> None:
        nisa.tensor_copy(result, before)
        nisa.nc_stream_shuffle(dst=result, src=data, shuffle_mask=order)

    (found,) = run(body, [a, old], ((128, 9), F32))
    expected = old.copy()
    for quadrant in range(4):
        for at in range(31):
            expected[32 * quadrant + at] = a[32 * quadrant + 30 - at]
    same(found, expected)


def test_stream_shuffle_in_beta_1_takes_the_source_first() -> None:
    @nki_beta1.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
        nisa.nc_stream_shuffle(nl.load(a), result, [0] * 32)
        nl.store(out, result)
        return out

    a = random(32, 6)
    same(kernel(a), np.repeat(a[:1], 32, axis=0))


@pytest.mark.parametrize(
    ("shape", "axes"), [((100, 64), (1, 0)), ((6, 5, 64), (2, 1, 0)), ((4, 3, 5, 30), (3, 1, 2, 0))]
)
def test_dma_transpose(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    @nki.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        mirrored = [shape[axis] for axis in axes]
        middle = tile(*mirrored, dtype=a.dtype)
        nisa.dma_transpose(middle, a)
        back = tile(*shape, dtype=a.dtype)
        nisa.dma_transpose(back, middle, axes=axes if len(shape) < 4 else None)
        out = nl.ndarray(mirrored, dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(out, middle)
        return out

    a = random(*shape).astype(ml_dtypes.bfloat16)
    same(kernel(a), a.transpose(axes))


def test_exponential() -> None:
    a = random(64, 100)
    a[0, 0] = -INF
    top = a.max(axis=1, keepdims=True)

    def body(result: NkiTensor, sums: NkiTensor, x: NkiTensor, largest: NkiTensor) -> None:
        nisa.exponential(result, x, largest, sums, nisa.reduce_cmd.reset_reduce)

    result, sums = run(body, [a, top], ((64, 100), F32), ((64, 1), F32), chip="trn3")
    exact = np.exp((a - top).astype(np.float64)).astype(F32)
    same(result, exact)
    same(sums, np.add.accumulate(exact, axis=1)[:, -1:])


# where undefined data goes


@pytest.mark.parametrize(
    ("name", "undefined"), [("scan", 12), ("max8", 16), ("bn_stats", 12), ("columns", 4), ("shuffle", 8), ("mirror", 8)]
)
def test_undefined_data_spreads(name: str, undefined: int, trn2: Profile) -> None:
    """Of a tile [2, 16] whose last 4 columns nobody wrote, what reaches the output."""
    shapes = {
        "scan": (2, 16), "max8": (2, 8), "bn_stats": (2, 6), "columns": (1, 16), "shuffle": (2, 16), "mirror": (16, 2),
    }  # fmt: skip
    filled = 10 if name == "scan" else 12

    @nki.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray(shapes[name], dtype=nl.float32, buffer=nl.shared_hbm)
        data, result = tile(2, 16), tile(*shapes[name])
        nisa.dma_copy(data[:, 0:filled], a[:, 0:filled])
        if name == "scan":
            ones = nl.ones((2, 16), nl.float32)
            nisa.dma_copy(data[:, 12:16], a[:, 12:16])  # columns 10 and 11 are left; all behind them depend on them
            nisa.tensor_tensor_scan(result, ones, data, 0.0, nl.multiply, nl.add)
        elif name == "max8":
            nisa.max8(result, data)
        elif name == "bn_stats":
            nisa.bn_stats(result, data)
        elif name == "columns":
            nisa.tensor_partition_reduce(result, nl.add, data)
        elif name == "shuffle":
            nisa.nc_stream_shuffle(dst=result, src=data, shuffle_mask=[1, 0] * 16)
        else:
            nisa.nc_transpose(result, data)
        nl.store(out, result)
        return out

    kernel(np.zeros((2, 16), F32))
    messages = [finding.message for finding in trn2.launches[-1].findings]
    assert any(message.startswith(f"{undefined} of") for message in messages), messages
