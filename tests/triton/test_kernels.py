"""Whole Triton kernels on the machine, against numpy."""

# Triton's language and host side have no types: kernels, and what was recorded of launches, are `Any` here.
# ruff: noqa: ANN001, ANN201, ANN401
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false, reportUnknownArgumentType=false, reportUntypedFunctionDecorator=false
# pyright: reportAttributeAccessIssue=false, reportUnknownLambdaType=false, reportPrivateUsage=false
# pyright: reportArgumentType=false, reportInvalidTypeForm=false

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl

from triptych.core.errors import KernelFault
from triptych.execution.launch_report import LaunchReport
from triptych.execution.profile import profile

pytestmark = pytest.mark.usefixtures("active")

jit: Any = triton.jit


@jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask), mask=mask)


@jit
def softmax(out, source, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    values = tl.load(source + row * columns + offsets, mask=mask, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + offsets, powers / tl.sum(powers, axis=0), mask=mask)


@jit
def layer_norm(x, out, weight, bias, mean_out, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x += row * columns
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        total += tl.load(x + offsets, mask=offsets < columns, other=0.0)
    mean = tl.sum(total, axis=0) / columns
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        centred = tl.where(offsets < columns, tl.load(x + offsets, mask=offsets < columns, other=0.0) - mean, 0.0)
        squares += centred * centred
    scale = 1 / tl.sqrt(tl.sum(squares, axis=0) / columns + epsilon)
    tl.store(mean_out + row, mean)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < columns
        normal = (tl.load(x + offsets, mask=mask) - mean) * scale
        result = normal * tl.load(weight + offsets, mask=mask) + tl.load(bias + offsets, mask=mask)
        tl.store(out + row * columns + offsets, result, mask=mask)


@jit
def dropout(x, out, n, probability, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    values = tl.load(x + offsets, mask=mask)
    keep = tl.rand(seed, offsets) > probability
    tl.store(out + offsets, tl.where(keep, values / (1 - probability), 0.0), mask=mask)


@jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        inner = start + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * K + inner[None, :], mask=(rows[:, None] < M) & (inner[None, :] < K), other=0)
        right = tl.load(
            b + inner[:, None] * N + columns[None, :], mask=(inner[:, None] < K) & (columns[None, :] < N), other=0
        )
        total = tl.dot(left, right, total, input_precision=PRECISION)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * N + columns[None, :], total, mask=mask)


@jit
def histogram(x, counts, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.atomic_add(counts + tl.load(x + offsets, mask=mask, other=0), 1, mask=mask)


@jit
def past_the_end(x, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x + offsets, 0.0)


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_vector_add() -> None:
    n = 3000
    x, y, out = normal(n), normal(n, seed=1), np.full(n, np.nan, np.float32)
    with profile(chip="a100", target="sm_80") as seen:
        add[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
    np.testing.assert_array_equal(out, x + y)
    (launch,) = seen.launches
    assert (launch.kernel, launch.language, launch.target) == ("add", "triton", "sm_80")
    assert launch.counters.value("global.load.bytes") == 2 * 4 * n
    assert launch.counters.value("global.store.bytes") == 4 * n
    assert launch.counters.value("flops.f32") == 3 * 1024, "the mask guards the memory accesses, not the addition"
    assert launch.roofline.bound == "memory"


def test_lines_are_the_authors() -> None:
    x, y, out = normal(64), normal(64), normal(64)
    with profile(chip="a100", target="sm_80") as seen:
        add[(1,)](x, y, out, 64, BLOCK=64)
    stored = [line for line in seen.launches[0].lines if line.counters.value("global.store.bytes")]
    assert [line.where.file for line in stored] == [__file__]
    assert linecache.getline(__file__, stored[0].where.line).strip().startswith("tl.store(out + offsets")


def test_torch_tensors_are_written_in_place() -> None:
    torch = pytest.importorskip("torch")
    x, y, out = torch.from_numpy(normal(100)), torch.ones(200)[::2].contiguous(), torch.zeros(128)[28:]
    add[(1,)](x, y, out, 100, BLOCK=128)
    torch.testing.assert_close(out, x + y)


@pytest.mark.parametrize(("rows", "columns"), [(4, 781), (3, 1), (2, 1024)])
def test_softmax(rows: int, columns: int) -> None:
    x = normal(rows, columns)
    out = np.empty_like(x)
    softmax[(rows,)](out, x, columns, BLOCK=triton.next_power_of_2(columns))
    powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(out, powers / powers.sum(axis=1, keepdims=True), rtol=2e-6, atol=1e-8)


def test_layer_norm() -> None:
    rows, columns = 5, 1151
    x, weight, bias = normal(rows, columns), normal(columns, seed=1), normal(columns, seed=2)
    out, mean = np.empty_like(x), np.empty(rows, np.float32)
    layer_norm[(rows,)](x, out, weight, bias, mean, columns, 1e-5, BLOCK=512, num_warps=4)
    exact = x.astype(np.float64)
    expected_mean = exact.mean(axis=1)
    deviation = np.sqrt(exact.var(axis=1) + 1e-5)
    np.testing.assert_allclose(mean, expected_mean, atol=1e-6)
    expected = (exact - expected_mean[:, None]) / deviation[:, None] * weight + bias
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


def philox(seed: int, offsets: Any) -> Any:
    """The first word of Philox 4×32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011)."""
    mask, (multiplier_a, multiplier_b) = 0xFFFFFFFF, (0xD2511F53, 0xCD9E8D57)
    key = [seed & mask, seed >> 32]
    c0, c1, c2, c3 = (offsets.astype(object), *(np.zeros(offsets.shape, object) for _ in range(3)))
    for _ in range(10):
        product_a, product_b = c0 * multiplier_a, c2 * multiplier_b
        c0, c1 = (product_b >> 32) ^ c1 ^ key[0], product_b & mask
        c2, c3 = (product_a >> 32) ^ c3 ^ key[1], product_a & mask
        key = [(key[0] + 0x9E3779B9) & mask, (key[1] + 0xBB67AE85) & mask]
    return c0.astype(np.uint32)


@pytest.mark.parametrize("seed", [123, 2**40 + 17])
def test_dropout(seed: int) -> None:
    n, probability = 1000, 0.3
    x, out = normal(n), np.empty(n, np.float32)
    dropout[(triton.cdiv(n, 256),)](x, out, n, probability, seed, BLOCK=256)
    words = philox(seed, np.arange(n)).view(np.int32)
    uniform = np.where(words < 0, -words - 1, words).astype(np.float32) * np.float32(4.6566127342e-10)
    keep = uniform > np.float32(probability)
    assert 0.6 < keep.mean() < 0.8
    np.testing.assert_allclose(out, np.where(keep, x / np.float32(1 - probability), 0), rtol=1e-6)


def _multiply(dtype: Any, precision: str, target: str = "sm_80") -> tuple[LaunchReport, Any, Any]:
    """The report, the product and the float64 reference of a ragged matmul on an A100."""
    m, n, k = 70, 33, 90
    a, b, c = normal(m, k).astype(dtype), normal(k, n, seed=1).astype(dtype), np.empty((m, n), np.float32)

    def grid(meta: dict[str, int]) -> tuple[int, int]:
        return triton.cdiv(m, meta["BM"]), triton.cdiv(n, meta["BN"])

    with profile(chip="a100", target=target) as seen:
        matmul[grid](a, b, c, m, n, k, BM=32, BN=32, BK=32, PRECISION=precision)
    return seen.launches[0], c, a.astype(np.float64) @ b.astype(np.float64)


def test_matmul() -> None:
    report, product, expected = _multiply(np.float32, "ieee")
    np.testing.assert_allclose(product, expected, atol=1e-4)
    assert report.counters.value("flops.f32") == 2 * 96 * 64 * 96


@pytest.mark.parametrize(("dtype", "precision"), [(np.float16, "ieee"), (np.float32, "tf32")])
def test_tensor_cores_are_not_asked_for_on_sm_75(dtype: Any, precision: str) -> None:
    report, product, expected = _multiply(dtype, precision, target="sm_75")
    np.testing.assert_allclose(product, expected, atol=1e-4)
    assert report.counters.value("flops.f32") == 2 * 96 * 64 * 96


def test_histogram() -> None:
    x = np.random.default_rng(0).integers(0, 10, 1000, dtype=np.int32)
    counts = np.zeros(10, np.int32)
    histogram[(4,)](x, counts, 1000, BLOCK=256)
    np.testing.assert_array_equal(counts, np.bincount(x, minlength=10))


def test_a_fault_names_the_line() -> None:
    with pytest.raises(KernelFault) as caught:
        past_the_end[(1,)](np.zeros(100, np.float32), BLOCK=1024)
    assert caught.value.where is not None
    assert caught.value.where.file == __file__
    assert caught.value.where.text == "tl.store(x + offsets, 0.0)"


def test_autotuned_kernel_gives_the_right_result() -> None:
    configurations = [triton.Config({"BLOCK": block}) for block in (128, 1024)]
    tuned: Any = triton.autotune(configurations, key=["n"])(jit(add.fn))
    x, y, out = normal(5000), normal(5000, seed=1), np.zeros(5000, np.float32)
    tuned[lambda meta: (triton.cdiv(5000, meta["BLOCK"]),)](x, y, out, 5000)
    np.testing.assert_array_equal(out, x + y)
    assert tuned.best_config in configurations
