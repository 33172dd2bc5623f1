"""Multiplications of matrices by warpgroups, from shared memory that a warp of its own fills by TMA."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from family import module, normal

import triptych as tt

PRODUCTS = ("product<0>", "product<1>")
kernels = partial(module, "warpgroups", *PRODUCTS, arch="sm_90a")
SHARED_BYTES = 4 * 8192 + 1024


@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 64), (128, 64, 320)])
def test_a_ring_of_tiles(m: int, n: int, k: int, turned: int, profile: tt.Profile) -> None:
    a, b = (normal(seed, *shape).astype(np.float16) for seed, shape in ((1, (m, k)), (2, (k, n))))
    c = np.zeros((m, n), np.float32)
    given = b if turned else np.ascontiguousarray(b.T)
    maps = [tt.tensor_map(array, (64, 64), swizzle="128B") for array in (a, given)]
    kernels()[PRODUCTS[turned]][(n // 64, m // 64), 160, SHARED_BYTES](*maps, c, n, k)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5, atol=1e-4)
    counters = profile.launches[-1].counters
    assert counters.value("flops.tensor.f16") == 2 * m * n * k
    assert counters.value("shared.tensor.load.bytes") == 2 * 64 * k * 2 * (m // 64) * (n // 64)
