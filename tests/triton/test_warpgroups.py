"""`tl.dot` where Triton makes `wgmma` of it: products in all types, and attention, against numpy."""

# pyright: reportUnknownVariableType=false, reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from product_kernels import attention, matmul

from triptych.execution.profile import Profile, profile

pytestmark = pytest.mark.usefixtures("active")

SIZES = 100, 64, 160
CASES: dict[str, tuple[Any, Any, Any, str, float]] = {
    "f16": (np.float16, tl.float32, np.float32, "f16", 3e-5),
    "f16 in f16": (np.float16, tl.float16, np.float16, "f16", 5e-2),
    "bf16": (ml_dtypes.bfloat16, tl.float32, np.float32, "bf16", 3e-5),
    "tf32": (np.float32, tl.float32, np.float32, "tf32", 6e-2),
    "s8": (np.int8, tl.int32, np.int32, "s8", 0),
    "e4m3": (ml_dtypes.float8_e4m3fn, tl.float32, np.float32, "fp8", 3e-5),
}
"""By name: the types of A and B, of sums in Triton and in numpy, the pipe, the error."""


def check_wgmma(seen: Profile, pipe: str) -> None:
    """The tensor cores read shared memory themselves, and nothing touches registers too early."""
    (launch,) = seen.launches
    assert launch.counters.value("shared.tensor.load.requests") > 0
    assert launch.roofline.pipe == f"tensor.{pipe}"
    assert launch.findings == ()


@pytest.mark.parametrize("name", CASES)
def test_products(name: str) -> None:
    kind, sums, container, pipe, error = CASES[name]
    m, n, k = SIZES
    generator = np.random.default_rng(7)
    if kind is np.int8:
        a, b = (generator.integers(-128, 128, shape, np.int8) for shape in ((m, k), (k, n)))
    else:
        a, b = (generator.standard_normal(shape).astype(kind) for shape in ((m, k), (k, n)))
    c = np.zeros((m, n), container)
    with profile(chip="h100", target="sm_90") as seen:
        matmul[triton.cdiv(m, 64), triton.cdiv(n, 64)](a, b, c, m, n, k, BM=64, BN=64, BK=64, SUMS=sums)
    np.testing.assert_allclose(c.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64), atol=error)
    assert seen.launches[0].counters.value(f"flops.tensor.{pipe}") == 2 * 128 * 64 * 192
    check_wgmma(seen, pipe)


def test_two_warpgroups() -> None:
    m, n, k = 128, 128, 64
    a, b = (np.random.default_rng(seed).standard_normal(s).astype(np.float16) for seed, s in ((1, (m, k)), (2, (k, n))))
    c = np.zeros((m, n), np.float32)
    with profile(chip="h100", target="sm_90") as seen:
        matmul[1, 1](a, b, c, m, n, k, BM=128, BN=128, BK=64, SUMS=tl.float32, num_warps=8)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), atol=3e-5)
    check_wgmma(seen, "f16")


def test_attention() -> None:
    length, depth = 100, 64
    generator = np.random.default_rng(8)
    q, k, v = (generator.standard_normal((length, depth)).astype(np.float16) for _ in range(3))
    out = np.zeros((length, depth), np.float16)
    with profile(chip="h100", target="sm_90") as seen:
        attention[(triton.cdiv(length, 64),)](q, k, v, out, length, depth**-0.5, BLOCK=64, DEPTH=depth)
    scores = q.astype(np.float64) @ k.T.astype(np.float64) * depth**-0.5
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    np.testing.assert_allclose(out, powers / powers.sum(axis=1, keepdims=True) @ v.astype(np.float64), atol=2e-3)
    check_wgmma(seen, "f16")
