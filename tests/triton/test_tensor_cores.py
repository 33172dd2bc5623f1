"""`tl.dot` on tensor cores: products in all types, and attention in two of them, against numpy."""

# Triton's language and host side have no types: kernels, and what was recorded of launches, are `Any` here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false, reportUnknownArgumentType=false, reportUntypedFunctionDecorator=false
# pyright: reportAttributeAccessIssue=false, reportPrivateUsage=false, reportArgumentType=false, reportInvalidTypeForm=false

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import triton
import triton.language as tl
from product_kernels import attention, matmul

from triptych.execution.profile import profile

pytestmark = pytest.mark.usefixtures("active")

CASES = {
    "f16": (np.float16, tl.float32, "sm_80", "f16", 3e-5),
    "f16 in f16": (np.float16, tl.float16, "sm_80", "f16", 5e-2),
    "bf16": (ml_dtypes.bfloat16, tl.float32, "sm_80", "bf16", 3e-5),
    "tf32": (np.float32, tl.float32, "sm_80", "tf32", 6e-2),
    "s8": (np.int8, tl.int32, "sm_80", "s8", 0),
    "f64": (np.float64, tl.float64, "sm_80", "f64", 1e-13),
    "e4m3": (ml_dtypes.float8_e4m3fn, tl.float32, "sm_89", "fp8", 3e-5),
    "e5m2": (ml_dtypes.float8_e5m2, tl.float32, "sm_89", "fp8", 3e-5),
}
_SUMS = {tl.float32: np.float32, tl.float16: np.float16, tl.int32: np.int32, tl.float64: np.float64}


@pytest.mark.parametrize("name", CASES)
def test_products(name: str) -> None:
    kind, sums, target, pipe, error = CASES[name]
    m, n, k = 70, 33, 90
    generator = np.random.default_rng(7)
    if kind is np.int8:
        a, b = (generator.integers(-128, 128, shape, np.int8) for shape in ((m, k), (k, n)))
    else:
        a, b = (generator.standard_normal(shape).astype(kind) for shape in ((m, k), (k, n)))
    c = np.zeros((m, n), _SUMS[sums])
    with profile(chip="a100" if target == "sm_80" else "l4", target=target) as seen:
        matmul[triton.cdiv(m, 32), triton.cdiv(n, 32)](a, b, c, m, n, k, BM=32, BN=32, BK=32, SUMS=sums)
    np.testing.assert_allclose(c.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64), atol=error)
    (launch,) = seen.launches
    assert launch.counters.value(f"flops.tensor.{pipe}") == 2 * 96 * 64 * 96
    assert launch.roofline.pipe == f"tensor.{pipe}"
    assert launch.findings == ()


def test_attention() -> None:
    length, depth = 70, 32
    generator = np.random.default_rng(8)
    q, k, v = (generator.standard_normal((length, depth)).astype(np.float16) for _ in range(3))
    out = np.zeros((length, depth), np.float16)
    attention[(triton.cdiv(length, 32),)](q, k, v, out, length, depth**-0.5, BLOCK=32, DEPTH=depth)
    scores = q.astype(np.float64) @ k.T.astype(np.float64) * depth**-0.5
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    wanted = powers / powers.sum(axis=1, keepdims=True) @ v.astype(np.float64)
    np.testing.assert_allclose(out, wanted, atol=2e-3)
