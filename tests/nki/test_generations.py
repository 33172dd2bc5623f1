"""The two generations, and the mixed style of tutorials, which runs with exactly one notice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import numpy as np
import pytest
from numpy.typing import NDArray

from triptych.core.checks import Severity
from triptych.core.errors import ArgumentError, NkiError, NkiLimitError
from triptych.execution.profile import Profile
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki, nki_beta1
from triptych.languages.nki.launching.jit import jit
from triptych.languages.nki.launching.kernel import Kernel
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.languages.nki.typing import mutable_tensor


def random(*shape: int, seed: int = 40) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@nki.jit
def add_mixed(a: NkiTensor, b: NkiTensor) -> object:
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    i_p = nl.arange(a.shape[0])[:, None]
    i_f = nl.arange(a.shape[1])[None, :]
    nl.store(out[i_p, i_f], value=nl.add(nl.load(a[i_p, i_f]), nl.load(b[i_p, i_f])))
    return out


def test_mixed_style_gives_one_notice(trn2: Profile) -> None:
    a, b = random(128, 512), random(128, 512, seed=41)
    assert np.array_equal(add_mixed(a, b), a + b)
    (finding,) = trn2.launches[-1].findings
    assert finding.severity is Severity.NOTICE
    assert "not valid in any released `import nki`" in finding.message
    assert finding.where is not None
    assert "nl.store(out[i_p, i_f]" in finding.where.text


def test_mixed_style_refuses_129_rows() -> None:
    with pytest.raises(NkiLimitError, match=r"partition dimension 129 .*limit of 128"):
        add_mixed(random(129, 8), random(129, 8))


def test_mixed_style_of_instructions(trn2: Profile) -> None:
    @nki.jit
    def kernel(a: NkiTensor, b: NkiTensor) -> object:
        out = nl.ndarray((64, 32), dtype=nl.float32, buffer=nl.shared_hbm)
        acc = nl.zeros((64, 32), nl.float32, buffer=nl.psum)
        for _ in nl.affine_range(2):
            acc += nisa.nc_matmul(nl.load(a), nl.load(b))
        scaled = nisa.tensor_scalar(acc, np.multiply, 0.5, op1=np.add, operand1=1.0)
        nl.store(out, nisa.activation(nl.tanh, scaled))
        return out

    a, b = random(128, 64) / 8, random(128, 32, seed=42) / 8
    expected = np.tanh(a.T.astype(np.float64) @ b + 1)
    np.testing.assert_allclose(kernel(a, b), expected, rtol=1e-5, atol=1e-6)
    (finding,) = trn2.launches[-1].findings
    for feature in ("nisa.nc_matmul without dst", "psum += nisa.nc_matmul", "nisa.activation without dst"):
        assert feature in finding.message


@nki.jit
def add_current(a: NkiTensor, b: NkiTensor) -> object:
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    rows = a.shape[0]
    for start in range(0, rows, 128):
        stop = min(start + 128, rows)
        left = nl.ndarray((stop - start, a.shape[1]), dtype=a.dtype, buffer=nl.sbuf)
        right = nl.ndarray((stop - start, a.shape[1]), dtype=a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=left, src=a[start:stop, :])
        nisa.dma_copy(dst=right, src=b[start:stop, :])
        nisa.tensor_tensor(dst=left, data1=left, data2=right, op=nl.add)
        nisa.dma_copy(dst=out[start:stop, :], src=left)
    return out


def test_current_style(trn2: Profile) -> None:
    a, b = random(300, 77), random(300, 77, seed=43)
    assert np.array_equal(add_current(a, b), a + b)
    assert trn2.launches[-1].findings == ()


@nki_beta1.jit
def add_beta1(a: NkiTensor, b: NkiTensor) -> object:
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    rows, columns = a.shape
    i_p, i_f = nl.mgrid[0:128, 0:512]
    p, f = nl.program_id(0), nl.program_id(1)
    row, column = p * 128 + i_p, f * 512 + i_f
    mask = (row < rows) & (column < columns)
    left, right = nl.load(a[row, column], mask=mask), nl.load(b[row, column], mask=mask)
    nl.store(out[row, column], value=left + right, mask=mask)
    return out


def test_beta1_grid_with_masks(trn2: Profile) -> None:
    a, b = random(300, 700), random(300, 700, seed=44)
    assert np.array_equal(add_beta1[3, 2](a, b), a + b)
    launch = trn2.launches[-1]
    assert launch.grid == (3, 2, 1)
    assert launch.block == (1, 1, 1)
    assert launch.findings == ()
    assert launch.counters["dma.load.bytes"].value == 2 * 300 * 700 * 4
    assert launch.counters["hbm.store.compulsory_bytes"].value == 300 * 700 * 4


def test_beta1_without_the_mask_is_out_of_bounds() -> None:
    @nki_beta1.jit
    def kernel(a: NkiTensor) -> object:
        i_p, i_f = nl.mgrid[0:128, 0:512]
        return nl.load(a[i_p, i_f])

    with pytest.raises(NkiLimitError, match=r"dimension 1: index range \[0, 511\] exceed dimension size of 500"):
        kernel(random(128, 500))


def test_beta1_blocks_and_assignment(trn2: Profile) -> None:
    """Block dimensions before the partition dimension, and `t[…] = f(x)` as one instruction."""

    @nki_beta1.jit
    def kernel(a: NkiTensor) -> object:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.arange(128)[:, None], nl.arange(64)[None, :]
        kept = nl.ndarray((4, nl.par_dim(128), 64), dtype=a.dtype, buffer=nl.sbuf)
        for block in nl.affine_range(4):
            kept[block, i_p, i_f] = nl.exp(nl.load(a[block * 128 + i_p, i_f]))
        for block in nl.affine_range(4):
            nl.store(out[block * 128 + i_p, i_f], value=kept[block, i_p, i_f])
        return out

    a = random(512, 64)
    np.testing.assert_allclose(kernel(a), np.exp(a.astype(np.float64)), rtol=1e-6)
    launch = trn2.launches[-1]
    assert launch.counters["instructions.scalar"].value == 4
    assert "instructions.vector" not in launch.counters
    assert launch.counters["sbuf.peak_bytes"].value == 4 * 64 * 4 + 64 * 4


def test_a_value_that_is_used_twice_is_not_folded(trn2: Profile) -> None:
    @nki_beta1.jit
    def kernel(a: NkiTensor) -> object:
        out = nl.ndarray((2, 8, 8), dtype=a.dtype, buffer=nl.shared_hbm)
        kept = nl.ndarray((8, 8), dtype=a.dtype, buffer=nl.sbuf)
        value = nl.square(nl.load(a))
        kept[...] = value
        kept += value
        nl.store(out[0], kept)
        nl.store(out[1], value)
        return out

    a = random(8, 8)
    assert np.array_equal(kernel(a), np.stack([2 * a * a, a * a]))
    assert trn2.launches[-1].counters["instructions.vector"].value == 2


def test_beta1_iota_and_affine_select() -> None:
    @nki_beta1.jit
    def kernel(a: NkiTensor) -> object:
        out = nl.ndarray((2, 16, 24), dtype=nl.float32, buffer=nl.shared_hbm)
        i_p, i_f = nl.arange(16)[:, None], nl.arange(24)[None, :]
        nl.store(out[0], nisa.iota(i_p * 100 + i_f, dtype=nl.float32))
        nl.store(out[1], nisa.affine_select(i_p >= i_f, nl.load(a), -9.0))
        return out

    a = random(16, 24)
    rows, columns = np.arange(16)[:, None], np.arange(24)[None, :]
    result = kernel(a)
    assert np.array_equal(result[0], rows * 100 + columns)
    assert np.array_equal(result[1], np.where(rows >= columns, a, np.float32(-9)))


def test_current_iota_and_affine_select() -> None:
    @nki.jit
    def kernel(a: NkiTensor) -> object:
        out = nl.ndarray((2, 16, 24), dtype=nl.float32, buffer=nl.shared_hbm)
        index = nl.ndarray((16, 24), dtype=nl.float32, buffer=nl.sbuf)
        nisa.iota(index, [[2, 4], [1, 6]], offset=5, channel_multiplier=10)
        nl.store(out[0], index)
        nisa.affine_select(index, [[-1, 24]], 1, nl.load(a), float("-inf"), cmp_op=nl.greater_equal)
        nl.store(out[1], index)
        return out

    a = random(16, 24)
    result = kernel(a)
    rows, columns = np.arange(16)[:, None], np.arange(24)[None, :]
    pattern = (2 * np.arange(4)[:, None] + np.arange(6)).reshape(-1)
    assert np.array_equal(result[0], 5 + 10 * rows + pattern)
    assert np.array_equal(result[1], np.where(rows >= columns, a, -np.inf))


def test_scalar_tensor_tensor_and_activation_reduce() -> None:
    @nki.jit
    def kernel(a: NkiTensor, b: NkiTensor) -> object:
        out = nl.ndarray(a.shape, dtype=nl.float32, buffer=nl.shared_hbm)
        sums = nl.ndarray((a.shape[0], 1), dtype=nl.float32, buffer=nl.shared_hbm)
        data, other = nl.load(a), nl.load(b)
        result = nl.ndarray(a.shape, dtype=nl.float32, buffer=nl.sbuf)
        total = nl.ndarray((a.shape[0], 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.scalar_tensor_tensor(result, data, nl.subtract, 2.0, nl.multiply, other, reverse0=True)
        nisa.activation_reduce(result, nl.square, result, nl.add, total, bias=1.0, scale=0.5)
        nl.store(out, result)
        nl.store(sums, total)
        return [out, sums]

    a, b = random(100, 30), random(100, 30, seed=45)
    out, sums = kernel(a, b)
    expected = ((2 - a.astype(np.float64)) * b * 0.5 + 1) ** 2
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(sums, expected.sum(axis=1, keepdims=True), rtol=1e-5)


def test_lnc_grid() -> None:
    @nki.jit
    def kernel(a: NkiTensor) -> object:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        half = a.shape[0] // nl.num_programs()
        rows = nl.ds(nl.program_id(0) * half, half)
        nl.store(out[rows, :], nl.negative(nl.load(a[rows, :])))
        return out

    a = random(128, 10)
    assert np.array_equal(kernel[2](a), -a)
    assert np.array_equal(kernel(a), -a)
    for grid in ((2,), 3, 0):
        with pytest.raises(NkiError, match=r"NKI only supports LNC 1 or 2|whole numbers of 1 or more"):
            kernel[grid]


def test_a_mutable_argument_is_written_in_place() -> None:
    @nki.jit
    def kernel(a: Annotated[NkiTensor, mutable_tensor]) -> object:
        nl.store(a, nl.square(nl.load(a)))
        return a

    a = random(16, 4)
    before = a.copy()
    assert kernel(a) is a
    assert np.array_equal(a, before * before)


def test_the_same_array_twice_and_scalars() -> None:
    @nki.jit
    def kernel(a: NkiTensor, b: NkiTensor, scale: float = 2.0, shift: float = 1.0) -> object:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.add(nl.multiply(nl.add(nl.load(a), nl.load(b)), scale), shift))
        return out

    a = random(8, 8)
    assert np.array_equal(kernel(a, a), (a + a) * 2 + 1)
    assert np.array_equal(kernel(a, b=a, scale=3, shift=0), (a + a) * 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((4, 4)),), "argument `a` of kernel is float64, which no NeuronCore has"),
        ((np.zeros((4, 4), np.int64),), "is int64"),
        (([np.zeros((4, 4), np.float32)],), "is a list of arrays"),
        ((), "missing a required argument: 'a'"),
    ],
)
def test_wrong_arguments(arguments: tuple[object, ...], message: str) -> None:
    @nki.jit
    def kernel(a: NkiTensor) -> object:
        return a

    with pytest.raises(ArgumentError, match=message):
        kernel(*arguments)


def test_wrong_results() -> None:
    def returning(make: Callable[[NkiTensor], object]) -> Kernel:
        @nki.jit
        def kernel(a: NkiTensor) -> object:
            return make(a)

        return kernel

    rows: list[tuple[Callable[[NkiTensor], object], str]] = [
        (lambda a: nl.ndarray((8, 8), nl.float32), "lies in sbuf"),
        (lambda a: nl.ndarray((8, 8), nl.float32, buffer=nl.hbm), "lies in private_hbm"),
        (lambda a: nl.ndarray((8, 8), nl.float32, buffer=nl.shared_hbm), "which no instruction writes"),
        (lambda a: nl.ndarray((8, 8), nl.float32, buffer=nl.shared_hbm)[0:4, :], "returns a part of"),
        (lambda a: 3, "returns a int"),
    ]
    for make, message in rows:
        with pytest.raises(NkiError, match=message):
            returning(make)(random(8, 8))


def test_decorators() -> None:
    @nki.jit()
    def current(a: NkiTensor) -> object:
        return None

    @nki_beta1.jit(mode="simulation")
    def beta1(a: NkiTensor) -> object:
        return None

    assert current(random(4, 4)) is None
    assert nki_beta1.simulate_kernel(beta1, random(4, 4)) is None
    assert nki.simulate(current)(random(4, 4)) is None
    with pytest.raises(NkiError, match="does not take fast_math"):
        jit(fast_math=True)(print)


def test_kernels_inside_kernels() -> None:
    @nki_beta1.jit
    def double(tile: NkiTensor) -> object:
        return nl.add(tile, tile)

    @nki_beta1.jit
    def outer(a: NkiTensor) -> object:
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(out, double(nl.load(a)))
        return out

    a = random(8, 8)
    assert np.array_equal(outer(a), a + a)

    @nki.jit
    def mixed(a: NkiTensor) -> object:
        return double(a)

    with pytest.raises(NkiError, match=r"kernel double of the language's generation beta1 is called inside one of"):
        mixed(a)


def test_kernels_inside_kernels_of_import_nki(trn2: Profile) -> None:
    @nki.jit
    def doubled(tile: NkiTensor, *, out: NkiTensor) -> None:
        nisa.tensor_tensor(out, tile, tile, op=nl.add)

    @nki.jit
    def outer(a: NkiTensor) -> object:
        tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(tile, a)
        doubled(tile, out=tile)
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, tile)
        return out

    @nki.jit
    def over_a_grid(a: NkiTensor) -> object:
        return outer[2](a)

    @nki.jit
    def without_out(a: NkiTensor) -> object:
        return doubled(a)  # pyright: ignore[reportCallIssue]  # what is tested

    a = random(8, 8)
    assert np.array_equal(outer(a), a + a)
    assert [one.kernel for one in trn2.launches] == ["outer"]
    with pytest.raises(NkiError, match="kernel outer is called with a grid inside another kernel"):
        over_a_grid(a)
    with pytest.raises(ArgumentError, match=r"doubled: missing a required .*argument: 'out'") as caught:
        without_out(a)
    assert caught.value.where is not None
    assert caught.value.where.file == __file__


def test_outside_of_a_kernel() -> None:
    with pytest.raises(NkiError, match=r"nl.load was called outside of a kernel") as caught:
        nl.load(None)
    assert caught.value.where is not None
    assert caught.value.where.file == __file__


def test_arguments_that_are_annotated_as_tiles_decide_which_form_a_call_has(trn2: Profile) -> None:
    """`nc_match_replace8` of Beta 1 with its place of indices takes as many values as the other form without."""

    @nki.jit
    def kernel(a: NkiTensor) -> object:
        out = nl.ndarray((4, 16), dtype=nl.float32, buffer=nl.shared_hbm)
        data = nl.load(a)
        largest = nisa.max8(data)
        replaced = nl.ndarray((4, 16), dtype=nl.float32, buffer=nl.sbuf)
        nisa.nc_match_replace8(replaced, data, largest, -1.0)
        again = nisa.nc_match_replace8(data, largest, -1.0)
        nl.store(out, nl.subtract(replaced, again))
        return out

    a = np.random.default_rng(3).permuted(np.arange(64, dtype=np.float32)).reshape(4, 16)
    assert not kernel(a).any()


def test_a_predicate_that_is_no_tile_is_no_destination_form() -> None:
    @nki.jit
    def kernel(a: NkiTensor) -> object:
        data = nl.load(a)
        nisa.tensor_copy_predicated(data, data, 1.0)
        return a

    with pytest.raises(NkiError, match="predicate"):
        kernel(np.zeros((4, 8), np.float32))


def test_a_view_of_a_product_that_went_elsewhere() -> None:
    @nki_beta1.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        total = nl.zeros((8, 8), nl.float32, buffer=nl.psum)
        data = nl.load(a)
        product = nisa.nc_matmul(data, data)
        assert product is not None
        view = product[0:8, 0:8]
        total += product
        nl.store(out, nl.copy(view))
        return out

    with pytest.raises(NkiError, match=r"was accumulated into another by '\+='"):
        kernel(random(8, 8))


def test_shared_tensors_are_matched_by_the_call_that_makes_them() -> None:
    def made() -> NkiTensor:
        return nl.ndarray((2, 8, 4), dtype=nl.float32, buffer=nl.shared_hbm)

    @nki_beta1.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        place = nl.program_id(0)
        if place == 0:
            scratch = made()
            nl.store(scratch[0], nl.load(a))
        out = made()
        nl.store(out[place], nl.load(a))
        return out

    a = random(8, 4)
    assert np.array_equal(kernel[(2,)](a), np.stack([a, a]))


def test_programs_that_return_different_tensors() -> None:
    @nki_beta1.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        first = nl.ndarray((8, 4), dtype=nl.float32, buffer=nl.shared_hbm)
        second = nl.ndarray((8, 4), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(first, nl.load(a))
        nl.store(second, nl.load(a))
        return first if nl.program_id(0) == 0 else second

    with pytest.raises(NkiError, match="returns different tensors in different programs"):
        kernel[(2,)](random(8, 4))


@pytest.mark.parametrize("kind", ["copy", "memset", "iota"])
def test_assignments_keep_the_rounding_to_float32(kind: str) -> None:
    """16777217 is no float32: a copy through one rounds it."""

    @nki_beta1.jit
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((8, 4), dtype=nl.int32, buffer=nl.shared_hbm)
        tile = nl.ndarray((8, 4), dtype=nl.int32, buffer=nl.sbuf)
        if kind == "copy":
            tile[...] = nl.copy(nl.load(a), dtype=nl.float32)
        elif kind == "memset":
            tile[...] = nisa.memset((8, 4), 16777217, nl.float32)
        else:
            tile[...] = nisa.iota(nl.arange(4)[None, :] * 0 + nl.arange(8)[:, None] * 0 + 16777217, nl.float32)
        nl.store(out, tile)
        return out

    assert (kernel(np.full((8, 4), 16777217, np.int32)) == 16777216).all()
