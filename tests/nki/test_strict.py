"""What AWS's compiler refuses: each check beside the nearest kernel that is accepted, and what is left when lenient."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from one_kernel import F32, accepted, filled, random, refused, run_kernel, same, tile

import triptych as tt
from triptych.core.errors import NkiError, NkiLimitError, TriptychError, UnknownNkiName
from triptych.core.settings import scope
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki, nki_beta1
from triptych.languages.nki.tracing.tensors import NkiTensor

Case = Callable[[], object]
BF16 = nl.bfloat16


def psum(*shape: int, dtype: object = nl.float32) -> NkiTensor:
    return tile(*shape, dtype=dtype, buffer=nl.psum)


def hbm(*shape: int, dtype: object = nl.float32) -> NkiTensor:
    return nl.ndarray(shape, dtype=dtype, buffer=nl.shared_hbm)


def tiles_of_psum(count: int) -> None:
    """So many banks of PSUM, all in use at the end."""
    banks = [psum(128, 512) for _ in range(count)]
    weights = filled(128, 128)
    for bank in banks:
        nisa.nc_matmul(bank, weights, filled(128, 512))
    for bank in banks:
        nisa.tensor_copy(tile(128, 512), bank)


def held(count: int, columns: int) -> None:
    """So many tiles of SBUF, all in use at the end."""
    tiles = [filled(128, columns) for _ in range(count)]
    total = filled(128, 1)
    for one in tiles:
        nisa.tensor_tensor(total, total, one[:, 0:1], op=nl.add)


def placed(first: int, second: int) -> None:
    """Two tiles of 256 bytes a partition, at these bytes, both in use."""
    a = nl.ndarray((128, 64), nl.float32, address=(0, first))
    b = nl.ndarray((128, 64), nl.float32, address=(0, second))
    nisa.memset(a, 1.0)
    nisa.memset(b, 2.0)
    nisa.tensor_tensor(b, a, b, op=nl.add)


def one_after_the_other() -> None:
    """The same bytes, when the first tile is no longer in use."""
    a = nl.ndarray((128, 64), nl.float32, address=(0, 0))
    nisa.memset(a, 1.0)
    nisa.tensor_copy(tile(128, 64), a)
    nisa.memset(nl.ndarray((128, 64), nl.float32, address=(0, 0)), 2.0)


def named(first: str, second: str) -> None:
    nisa.memset(tile(8, 8), 1.0, name=first)
    nisa.memset(tile(8, 8), 1.0, name=second)


# (check, refused, accepted, error, message, chip)
CASES: list[tuple[str, Case, Case, type[TriptychError], str, str]] = [
    ("E1 partitions", lambda: tile(129, 8), lambda: tile(128, 8), NkiLimitError, "limit of 128 partitions", "trn2"),
    ("E2 start partition",
     lambda: nisa.tensor_copy(tile(1, 8), filled(64, 8)[1:2, :]), lambda: nisa.tensor_copy(tile(1, 8), filled(64, 8)[32:33, :]),
     NkiLimitError, "invalid access of 1 partitions starting at partition 1 .* 0, 32, 64, 96", "trn2"),
    ("E2 of 33 partitions",
     lambda: nisa.tensor_copy(tile(33, 8), filled(128, 8)[32:65, :]), lambda: nisa.tensor_copy(tile(33, 8), filled(128, 8)[64:97, :]),
     NkiLimitError, "33 partitions starting at partition 32 .* 0, 64", "trn2"),
    ("E2 of a placed tile",
     lambda: nisa.memset(nl.ndarray((8, 8), nl.float32, address=(8, 0)), 1.0),
     lambda: nisa.memset(nl.ndarray((8, 8), nl.float32, address=(96, 0)), 1.0),
     NkiLimitError, "8 partitions starting at partition 8", "trn2"),
    ("E2 a DMA is free",
     lambda: nisa.memset(filled(64, 8)[5:6, :], 1.0), lambda: nisa.dma_copy(filled(64, 8)[5:6, :], filled(1, 8)),
     NkiLimitError, "starting at partition 5", "trn2"),
    ("E3 SBUF in use", lambda: held(7, 8192), lambda: held(6, 8192), NkiLimitError,
     "live tiles take .* bytes of each SBUF partition; the limit is 212984 on trn2; the largest are", "trn2"),
    ("E3 of another core", lambda: held(6, 8192), lambda: held(5, 8192), NkiLimitError, "limit is 196608 on trn1", "trn1"),
    ("E4 PSUM in use", lambda: tiles_of_psum(9), lambda: tiles_of_psum(8), NkiLimitError,
     "18432 bytes of each PSUM partition; the limit is 16384", "trn2"),
    ("E4 a bank",
     lambda: nisa.nc_matmul(psum(128, 1024)[:, 256:768], filled(128, 128), filled(128, 512)),
     lambda: nisa.nc_matmul(psum(128, 1024)[:, 512:1024], filled(128, 128), filled(128, 512)),
     NkiLimitError, "crosses a PSUM bank of 2048 bytes", "trn2"),
    ("E6 K", lambda: nisa.nc_matmul(psum(8, 8), tile(128, 8), tile(64, 8)), lambda: nisa.nc_matmul(psum(8, 8), tile(64, 8), tile(64, 8)),
     NkiError, r"contraction dimension mismatch: stationary\[0\]=128 != moving\[0\]=64", "trn2"),
    ("E6 M", lambda: nisa.nc_matmul(psum(128, 8), tile(128, 129), tile(128, 8)),
     lambda: nisa.nc_matmul(psum(128, 8), tile(128, 128), tile(128, 8)), NkiLimitError, "gemm_stationary_fmax=128", "trn2"),
    ("E6 N", lambda: nisa.nc_matmul(psum(8, 1024), tile(128, 8), tile(128, 513)),
     lambda: nisa.nc_matmul(psum(8, 512), tile(128, 8), tile(128, 512)), NkiLimitError, "gemm_moving_fmax=512 of trn2", "trn2"),
    ("E6 N of v4", lambda: nisa.nc_matmul(psum(8, 4096), tile(128, 8), tile(128, 4097)),
     lambda: nisa.nc_matmul(psum(8, 4096), tile(128, 8), tile(128, 4096)), NkiLimitError, "gemm_moving_fmax=4096", "trn3"),
    ("E6 dst dtype", lambda: nisa.nc_matmul(psum(8, 8, dtype=BF16), tile(8, 8), tile(8, 8)),
     lambda: nisa.nc_matmul(psum(8, 8), tile(8, 8), tile(8, 8)), NkiError, "a matmul's dst must be f32 on trn2", "trn2"),
    ("E6 pairs", lambda: nisa.nc_matmul(psum(8, 8), tile(8, 8), tile(8, 8, dtype=BF16)),
     lambda: nisa.nc_matmul(psum(8, 8), tile(8, 8), tile(8, 8, dtype=nl.tfloat32)), NkiError, "paired with float32", "trn2"),
    ("E6 e4m3", lambda: nisa.nc_matmul(psum(8, 8), tile(8, 8, dtype=nl.float8_e4m3), tile(8, 8, dtype=nl.float8_e4m3fn)),
     lambda: nisa.nc_matmul(psum(8, 8), tile(8, 8, dtype=nl.float8_e4m3), tile(8, 8, dtype=nl.float8_e5m2)),
     NkiError, "cannot be mixed", "trn3"),
    ("E6 double row of bf16", lambda: double_row(BF16), lambda: double_row(nl.float8_e5m2), NkiError, "expected float8", "trn2"),
    ("E6 double row of v2", lambda: double_row(nl.float8_e5m2), lambda: None, NkiError, "needs NeuronCore-v3", "trn1"),
    ("E6 rows of the array", lambda: in_array((32, 0), (32, 128), 64), lambda: in_array((64, 0), (64, 128), 64),
     NkiLimitError, "takes 64 rows; tile_size has 32", "trn2"),
    ("E6 rows of v2", lambda: in_array((32, 0), (32, 128), 32), lambda: in_array((64, 0), (64, 128), 32),
     NkiError, "sizes are 64, 128 on trn1", "trn1"),
    ("E7 PSUM on GPSIMD", lambda: nisa.tensor_copy(tile(8, 8), psum(8, 8), engine=nisa.engine.gpsimd),
     lambda: nisa.tensor_copy(tile(8, 8), psum(8, 8), engine=nisa.engine.scalar), NkiError, "gpsimd engine cannot reach", "trn2"),
    ("E7 PSUM of a DMA", lambda: nisa.dma_copy(hbm(8, 8), psum(8, 8)), lambda: nisa.dma_copy(hbm(8, 8), tile(8, 8)),
     NkiError, "requires HBM or SBUF tensors, got src=psum, dst=hbm", "trn2"),
    ("E7 HBM of an engine", lambda: nisa.tensor_copy(tile(8, 8), hbm(8, 8)), lambda: nisa.tensor_copy(tile(8, 8), tile(8, 8)),
     NkiError, r"src must be in \['psum', 'sbuf'\], got hbm", "trn2"),
    ("E7 two inputs in PSUM", lambda: nisa.tensor_tensor(tile(8, 8), psum(8, 8), psum(8, 8), nl.add),
     lambda: nisa.tensor_tensor(tile(8, 8), psum(8, 8), tile(8, 8), nl.add), NkiError, "both lie in PSUM", "trn2"),
    ("E8 broadcast", lambda: nisa.tensor_tensor(tile(8, 8), tile(8, 8), tile(8, 1), nl.add),
     lambda: nisa.tensor_scalar(tile(8, 8), tile(8, 8), nl.add, tile(8, 1)), NkiError,
     "'dst' free total elements 8 != 'data2' free total elements 1", "trn2"),
    ("E8 partitions", lambda: nisa.tensor_tensor(tile(8, 8), tile(8, 8), tile(1, 8), nl.add),
     lambda: nisa.tensor_tensor(tile(8, 8), tile(8, 8), tile(8, 8), nl.add), NkiError, "1 partitions, .* has 8", "trn2"),
    ("E9 divide", lambda: nl.divide(tile(8, 8), tile(8, 8)), lambda: nl.multiply(tile(8, 8), nl.reciprocal(tile(8, 8))),
     NkiError, "nl.divide has no hardware instruction", "trn2"),
    ("E9 op=divide", lambda: nisa.tensor_tensor(tile(8, 8), tile(8, 8), tile(8, 8), nl.divide),
     lambda: nisa.tensor_tensor(tile(8, 8), tile(8, 8), tile(8, 8), nl.multiply), NkiError, "'divide' has no hardware", "trn2"),
    ("E9 mod", lambda: nl.mod(tile(8, 8), 3.0), lambda: nl.floor(tile(8, 8)), NkiError, "nl.mod has no hardware", "trn2"),
    ("E10 out of bounds", lambda: tile(8, 12)[:, 0:128], lambda: tile(8, 128)[:, 0:128], NkiLimitError,
     r"Out-of-bound access for tensor `.*` on dimension 1: index range \[0, 127\] exceed dimension size of 12", "trn2"),
    ("E14 engine=5", lambda: nisa.memset(tile(8, 8), 1.0, engine=wrong(5)), lambda: nisa.memset(tile(8, 8), 1.0, engine=nisa.engine.vector),
     NkiError, "engine=5 is no engine", "trn2"),
    ("E14 buffer='sbuf'", lambda: nl.ndarray((8, 8), nl.float32, wrong("sbuf")), lambda: nl.ndarray((8, 8), nl.float32, nl.sbuf),
     NkiError, "buffer='sbuf' is no memory", "trn2"),
    ("E14 operators", lambda: tile(8, 8) + tile(8, 8), lambda: nl.add(tile(8, 8), tile(8, 8)), NkiError,
     r"unsupported operand type\(s\) for \+: 'NkiTensor' and 'NkiTensor'", "trn2"),
    ("E14 unknown name", lambda: nisa.tensor_multiply(tile(8, 8)), lambda: nisa.tensor_tensor, UnknownNkiName, "nki.isa", "trn2"),
    ("E15 float64", lambda: tile(8, 8, dtype=np.float64), lambda: tile(8, 8, dtype=np.float32), NkiError, "is no dtype of NKI", "trn2"),
    ("E15 e4m3fn", lambda: nisa.nc_matmul(psum(8, 8), *[tile(8, 8, dtype=nl.float8_e4m3fn)] * 2),
     lambda: nisa.nc_matmul(psum(8, 8), *[tile(8, 8, dtype=nl.float8_e4m3)] * 2), NkiError, "float8_e4m3fn needs NeuronCore-v4", "trn2"),
    ("E15 packed", lambda: tile(8, 8, dtype=nl.float8_e5m2_x4), lambda: tile(8, 8, dtype=nl.float8_e5m2), NkiError,
     "float8_e5m2_x4, which needs NeuronCore-v4", "trn2"),
    ("E16 generation", lambda: nisa.exponential(tile(8, 8), tile(8, 8)), lambda: nisa.activation(tile(8, 8), nl.exp, tile(8, 8)),
     NkiError, "needs NeuronCore-v4", "trn2"),
    ("E16 indirect", lambda: nisa.tensor_copy(tile(16, 16), tile(16, 8).indirect(tile(16, 1, dtype=nl.uint32))),
     lambda: nisa.nc_n_gather(tile(16, 16), tile(16, 8), tile(16, 16, dtype=nl.uint32)), NkiError, "needs NeuronCore-v4", "trn2"),
    ("E17 a large tensor", lambda: hbm(1 << 15, 1 << 15, 2), lambda: hbm(1 << 15, 1 << 14, 2), NkiLimitError, "NCC_EVRF024", "trn2"),
    ("E18 names", lambda: named("first", "first"), lambda: named("first", "second"), NkiError, "duplicate op name", "trn2"),
    ("E19 sizes", lambda: nisa.dma_copy(tile(8, 8), hbm(8, 9)), lambda: nisa.dma_copy(tile(8, 8), hbm(4, 16)), NkiError,
     "requires src and dst to have the same number of elements, got src=72, dst=64", "trn2"),
    ("E19 hwdge dtypes", lambda: by_hardware(hbm(8, 8, dtype=BF16)), lambda: by_hardware(hbm(8, 8)), NkiError,
     "dge_mode hwdge moves elements as they are", "trn2"),
    ("E19 hwdge of v2", lambda: by_hardware(hbm(8, 8)), lambda: nisa.dma_copy(tile(8, 8), hbm(8, 8)), NkiError,
     "hwdge needs NeuronCore-v3", "trn1"),
    ("E19 priority", lambda: nisa.dma_copy(tile(8, 8), hbm(8, 8), priority=1), lambda: nisa.dma_copy(tile(8, 8), hbm(8, 8)),
     NkiError, "priority= needs NeuronCore-v4", "trn2"),
    ("E19 transposed shape", lambda: nisa.dma_transpose(tile(8, 16), hbm(8, 16)), lambda: nisa.dma_transpose(tile(16, 8), hbm(8, 16)),
     NkiError, r"has the shape \[8, 16\]; expected \[16, 8\]", "trn2"),
    ("E20 addresses", lambda: placed(0, 128), lambda: placed(0, 256), NkiLimitError, "is placed over `.*`, which is still in use", "trn2"),
    ("E20 lifetimes", lambda: placed(0, 0), one_after_the_other, NkiLimitError, "is placed over", "trn2"),
    ("E20 outside", lambda: nl.ndarray((128, 64), nl.float32, address=(0, 212_800)), lambda: nl.ndarray((128, 64), nl.float32, address=(0, 212_000)),
     NkiLimitError, "bytes 212800 to 213055; SBUF has 128 of 212984", "trn2"),
]  # fmt: skip
# ruff: noqa: E501  # a row a line


def wrong(value: object) -> Any:  # noqa: ANN401  # what no signature takes
    return value


def double_row(dtype: object) -> None:
    operands = [tile(128, 2, 8, dtype=dtype) for _ in range(2)]
    nisa.nc_matmul(psum(8, 8), *operands, perf_mode=nisa.matmul_perf_mode.double_row)


def in_array(position: tuple[int, int], size: tuple[int, int], rows: int) -> None:
    nisa.nc_matmul(psum(8, 8), tile(rows, 8), tile(rows, 8), tile_position=position, tile_size=size)


def by_hardware(source: NkiTensor) -> None:
    nisa.dma_copy(tile(8, 8), source, dge_mode=nisa.dge_mode.hwdge)


@pytest.mark.parametrize(("_", "body", "near", "error", "message", "chip"), CASES, ids=[case[0] for case in CASES])
def test_refused_beside_what_is_accepted(
    _: str, body: Case, near: Case, error: type[TriptychError], message: str, chip: str
) -> None:
    refused(body, error, message, chip=chip)
    accepted(near, chip=chip)


# E11: undefined data


def test_undefined_data_are_nan_and_a_finding() -> None:
    def body(out: NkiTensor, a: NkiTensor) -> None:
        nisa.tensor_tensor(out, a, tile(8, 8), op=nl.add)

    (found,), findings = run_kernel(body, [random(8, 8)], ((8, 8), F32))
    assert np.isnan(found).all()
    assert "64 of 64 elements stored" in findings["initcheck"]


# E12: iterations that depend on each other


def chained(a: NkiTensor, loop: Callable[[int], range]) -> NkiTensor:
    """Each iteration doubles what the one before left."""
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    held = nl.load(a)
    for _ in loop(3):
        held[...] = nl.multiply(held, 2.0)
    nl.store(out, held)
    return out


def chained_in_any_order(a: NkiTensor) -> NkiTensor:
    return chained(a, nl.affine_range)


def chained_in_order(a: NkiTensor) -> NkiTensor:
    return chained(a, nl.sequential_range)


def apart(a: NkiTensor) -> NkiTensor:
    """Each iteration has rows of its own, and a tile of its own."""
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    rows, columns = nl.arange(4)[:, None], nl.arange(8)[None, :]
    for i in nl.affine_range(2):
        for j in nl.affine_range(3):
            held = nl.load(a[12 * i + 4 * j + rows, columns])
            nl.store(out[12 * i + 4 * j + rows, columns], nl.multiply(held, 2.0))
    return out


def neighbours(a: NkiTensor) -> NkiTensor:
    """Each iteration writes a row that the next one writes too."""
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    rows, columns = nl.arange(2)[:, None], nl.arange(8)[None, :]
    for i in nl.affine_range(4):
        nl.store(out[i + rows, columns], nl.load(a[i + rows, columns]))
    return out


def accumulated(a: NkiTensor) -> NkiTensor:
    """+= may come in any order; so may products in PSUM."""
    out = nl.ndarray((24, 8), dtype=a.dtype, buffer=nl.shared_hbm)
    total = nl.zeros((24, 8), nl.float32)
    products = nl.zeros((8, 8), nl.float32, buffer=nl.psum)
    for _ in nl.affine_range(3):
        held = nl.load(a)
        total += held
        products += nisa.nc_matmul(held, held)
    nl.store(out, total)
    return out


def test_affine_range_refuses_what_sequential_range_takes() -> None:
    message = "err_unexpected_output_dependencies: iterations of nl.affine_range depend on each other"
    with pytest.raises(NkiError, match=message) as caught:
        nki_beta1.jit(chained_in_any_order).capture(random(24, 8))
    assert caught.value.hint is not None
    assert "sequential_range" in caught.value.hint
    a = random(24, 8)
    found: object = nki_beta1.jit(chained_in_order)(a)
    same(np.asarray(found), 8 * a)


@pytest.mark.parametrize(("kernel", "expected"), [(apart, 2.0), (accumulated, 3.0)])
def test_iterations_that_are_apart(kernel: Callable[[NkiTensor], NkiTensor], expected: float) -> None:
    a = random(24, 8).round(2)
    found: object = nki_beta1.jit(kernel)(a)
    np.testing.assert_allclose(np.asarray(found), expected * a, rtol=1e-6)


def test_rows_that_two_iterations_write() -> None:
    with pytest.raises(NkiError, match=r"1 writes elements of `shared_hbm.*` that another one uses"):
        nki_beta1.jit(neighbours).capture(random(24, 8))


def test_loop_reduce() -> None:
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((2, 8, 8), dtype=a.dtype, buffer=nl.shared_hbm)
        for outer in nl.affine_range(2):
            most = nl.zeros((8, 8), nl.float32)
            for i in nl.affine_range(3):
                rows, columns = nl.arange(8)[:, None], nl.arange(8)[None, :]
                held = nl.load(a[24 * outer + 8 * i + rows, columns])
                most = nl.loop_reduce(held, op=np.maximum, loop_indices=[i], dtype=nl.float32)
            nl.store(out[outer], most)
        return out

    a = random(48, 8)
    found: object = nki_beta1.jit(kernel)(a)
    same(np.asarray(found), a.reshape(2, 3, 8, 8).max(axis=1))


def test_loop_reduce_over_loops_that_others_lie_in() -> None:
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((2, 8, 8), dtype=a.dtype, buffer=nl.shared_hbm)
        total = nl.ndarray((2, nl.par_dim(8), 8), dtype=nl.float32, buffer=nl.sbuf)
        rows, columns = nl.arange(8)[:, None], nl.arange(8)[None, :]
        for i in nl.sequential_range(3):
            for j in nl.affine_range(2):
                for k in nl.affine_range(4):
                    held = nl.load(a[i, j, k, rows, columns])
                    total[j, rows, columns] = nl.loop_reduce(held, op=np.add, loop_indices=[i, k], dtype=nl.float32)
        for j in nl.affine_range(2):
            nl.store(out[j, rows, columns], total[j, rows, columns])
        return out

    a = np.random.default_rng(0).integers(-9, 9, (3, 2, 4, 8, 8)).astype(F32)
    found: object = nki_beta1.jit(kernel)(a)
    same(np.asarray(found), a.sum(axis=(0, 2)))


def test_loop_reduce_begins_anew_in_a_loop_of_python() -> None:
    def kernel(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((2, 2, 8, 8), dtype=a.dtype, buffer=nl.shared_hbm)
        rows, columns = nl.arange(8)[:, None], nl.arange(8)[None, :]
        for turn in range(2):
            totals: dict[int, NkiTensor] = {}
            for i in nl.affine_range(3):
                for part in range(2):
                    held = nl.load(a[turn, i, part, rows, columns])
                    totals[part] = nl.loop_reduce(held, op=np.add, loop_indices=[i], dtype=nl.float32)
            for part in range(2):
                nl.store(out[turn, part, rows, columns], totals[part])
        return out

    a = np.random.default_rng(0).integers(-9, 9, (2, 3, 2, 8, 8)).astype(F32)
    found: object = nki_beta1.jit(kernel)(a)
    same(np.asarray(found), a.sum(axis=1))


# E13: outputs


def test_outputs() -> None:
    def unwritten(a: NkiTensor) -> NkiTensor:
        del a
        return hbm(8, 8)

    def private(a: NkiTensor) -> NkiTensor:
        out = nl.ndarray((8, 8), dtype=a.dtype, buffer=nl.hbm)
        nisa.dma_copy(out, a)
        return out

    def changed(a: NkiTensor) -> NkiTensor:
        nisa.dma_copy(a, filled(8, 8))
        return a

    for kernel, message in (
        (unwritten, "which no instruction writes"), (private, "outputs must be in nl.shared_hbm"), (changed, "cannot be written"),
    ):  # fmt: skip
        with pytest.raises(NkiError, match=message):
            nki.jit(kernel).capture(np.zeros((8, 8), F32))


# E14: what a kernel may be given


def test_arguments_of_a_kernel() -> None:
    def keyword_only(a: NkiTensor, *, factor: float = 2.0) -> NkiTensor:
        return scaled(a, factor)

    def listed(a: NkiTensor, factors: object) -> NkiTensor:
        del factors
        return scaled(a, 2.0)

    a = random(8, 6)
    with pytest.raises(NkiError, match="has the keyword-only argument `factor`"):
        nki.jit(keyword_only)(a)
    with pytest.raises(NkiError, match="is given a list for `factors`"):
        nki.jit(listed)(a, [1, 2])
    found: object = nki.jit(listed)(a, (1, 2))
    same(np.asarray(found), 2 * a)
    with scope(nki_lenient=True):
        found = nki.jit(keyword_only)(a, factor=3.0)
    same(np.asarray(found), 3 * a)


def scaled(a: NkiTensor, factor: float) -> NkiTensor:
    out = hbm(8, 6)
    held = tile(8, 6)
    nisa.dma_copy(held, a)
    nisa.tensor_scalar(held, held, nl.multiply, factor)
    nisa.dma_copy(out, held)
    return out


# Numerics


@pytest.mark.parametrize(
    ("function", "scale", "bias", "outside"),
    [(nl.sqrt, 1.0, 0.0, False), (nl.sqrt, 1e-38, 0.0, True), (nl.log, 0.0, 1e20, True), (nl.sin, 1.0, 3.0, True),
     (nl.sin, 0.5, 1.0, False), (nl.exp, 50.0, 1.0, False)],
)  # fmt: skip
def test_the_range_of_a_function_is_that_of_its_argument(
    function: object, scale: float, bias: float, outside: bool
) -> None:
    """data * scale + bias is what the engine approximates the function of."""

    def body(out: NkiTensor, a: NkiTensor) -> None:
        nisa.activation(out, function, a, bias=bias, scale=scale)

    _, findings = run_kernel(body, [np.abs(random(8, 8)).clip(0.1, 3.0)], ((8, 8), F32))
    assert ("rangecheck" in findings) == outside


# Lenient


@pytest.fixture
def lenient() -> Generator[None]:
    with scope(nki_lenient=True):
        yield


def starting_anywhere(out: NkiTensor, a: NkiTensor, b: NkiTensor) -> None:
    nisa.tensor_copy(out, a)
    nisa.tensor_copy(out[1:3, :], b[1:3, :])


def broadcast(out: NkiTensor, a: NkiTensor, b: NkiTensor) -> None:
    nisa.tensor_tensor(out, a, b[:, 0:1], op=nl.add)


def divided(out: NkiTensor, a: NkiTensor, b: NkiTensor) -> None:
    nisa.tensor_tensor(out, a, b, op=nl.divide)


def divided_by_nl(out: NkiTensor, a: NkiTensor, b: NkiTensor) -> None:
    nisa.tensor_copy(out, nl.divide(a, b))


Arrays = NDArray[np.float32]
LENIENT: list[tuple[Callable[..., object], Callable[[Arrays, Arrays], Arrays], str]] = [
    (starting_anywhere, lambda a, b: np.concatenate([a[:1], b[1:3], a[3:]]), "starting at partition 1"),
    (broadcast, lambda a, b: a + b[:, :1], "'dst' free total elements 6 != 'data2' free total elements 1"),
    (divided, lambda a, b: a / b, "'divide' has no hardware instruction"),
    (divided_by_nl, lambda a, b: a / b, "'divide' has no hardware instruction"),
]


@pytest.mark.usefixtures("lenient")
@pytest.mark.parametrize(("body", "expected", "message"), LENIENT)
def test_lenient(body: Callable[..., object], expected: Callable[[Arrays, Arrays], Arrays], message: str) -> None:
    a, b = random(8, 6), random(8, 6, seed=81)
    (found,), findings = run_kernel(body, [a, b], ((8, 6), F32))
    same(found, expected(a, b))
    assert message in findings["nki.compiler"]


@pytest.mark.usefixtures("lenient")
def test_lenient_takes_no_more_than_can_be_computed() -> None:
    refused(lambda: nisa.tensor_tensor(tile(8, 8), tile(8, 8), tile(8, 4), nl.add), NkiError, "free total elements")
    refused(lambda: tile(129, 8), NkiLimitError, "limit of 128 partitions")


def test_a_strict_profile_refuses_the_same() -> None:
    with tt.profile(chip="trn2"), pytest.raises(NkiError, match="no hardware instruction"):
        run_kernel(divided, [random(8, 6), random(8, 6)], ((8, 6), F32))
