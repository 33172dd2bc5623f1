"""Products that add up in parts of a tile in PSUM: each element as its own flag says, bit for bit."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from one_kernel import run_kernel, tile
from systolic import systolic

from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki.tracing.tensors import NkiTensor

DEPTH, ROWS, COLUMNS = 16, 64, 48
STEPS = 12


def _steps(seed: int) -> list[tuple[slice, slice, bool | None]]:
    """Rows and columns of a product, and whether it is to add: as the element's flag says (None), always, never."""
    random = np.random.default_rng(seed)
    found: list[tuple[slice, slice, bool | None]] = []
    for _ in range(STEPS):
        rows = (slice(0, ROWS), slice(0, 32), slice(32, ROWS))[random.integers(3)]
        first = int(random.integers(0, COLUMNS))
        part = slice(0, COLUMNS) if random.integers(2) else slice(first, int(random.integers(first, COLUMNS)) + 1)
        found.append((rows, part, (None, None, None, True, False)[random.integers(5)]))
    return [(slice(0, ROWS), slice(0, COLUMNS), None), *found]


@pytest.mark.parametrize("seed", range(12))
def test_parts(seed: int) -> None:
    """A product's own sum is complete when it is added there, in float32."""
    random = np.random.default_rng(100 + seed)
    a = random.standard_normal((DEPTH, ROWS)).astype(ml_dtypes.bfloat16)
    b = random.standard_normal((DEPTH, COLUMNS)).astype(ml_dtypes.bfloat16)
    steps = _steps(seed)

    def body(out: NkiTensor, left: NkiTensor, right: NkiTensor) -> None:
        sums = tile(ROWS, COLUMNS, buffer=nl.psum)
        for rows, columns, adds in steps:
            dst = sums[rows, columns]
            nisa.nc_matmul(dst=dst, stationary=left[:, rows], moving=right[:, columns], accumulate=adds)
        nisa.tensor_copy(dst=out, src=sums)

    (found,), findings = run_kernel(body, (a, b), ((ROWS, COLUMNS), nl.float32))
    expected = np.zeros((ROWS, COLUMNS), np.float32)
    begun = np.zeros((ROWS, COLUMNS), np.bool_)
    for rows, columns, adds in steps:
        product = systolic(a[:, rows], b[:, columns])
        old = expected[rows, columns]
        adding = begun[rows, columns] if adds is None else np.full(old.shape, adds)
        expected[rows, columns] = np.where(adding, old + product, product)
        begun[rows, columns] = True
    np.testing.assert_array_equal(found, expected)
    assert findings == {}


def test_a_product_behind_another_engine_s_write_replaces() -> None:
    """What another engine writes to a part of the tile ends the sum there, and nowhere else."""
    a = np.ones((DEPTH, ROWS), np.float32)
    b = np.ones((DEPTH, COLUMNS), np.float32)

    def body(out: NkiTensor, left: NkiTensor, right: NkiTensor) -> None:
        sums = tile(ROWS, COLUMNS, buffer=nl.psum)
        nisa.nc_matmul(dst=sums, stationary=left, moving=right)
        nisa.memset(sums[:, 0:8], 0.0)
        nisa.nc_matmul(dst=sums, stationary=left, moving=right)
        nisa.nc_matmul(dst=sums, stationary=left, moving=right)
        nisa.tensor_copy(dst=out, src=sums)

    (found,), findings = run_kernel(body, (a, b), ((ROWS, COLUMNS), nl.float32))
    np.testing.assert_array_equal(found[:, :8], 2 * DEPTH)
    np.testing.assert_array_equal(found[:, 8:], 3 * DEPTH)
    assert findings == {}
