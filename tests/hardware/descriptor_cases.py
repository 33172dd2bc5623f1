"""Descriptors of A with swizzling, at starts and with base offsets of all kinds, and what is found by them."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SOURCE = Path(__file__).parents[2] / "benchmarks" / "hardware" / "descriptors.cu"
ENTRY = "read_by_descriptor"
BLOCK = 128
_STARTS = (0, 32, 128, 256, 384, 512, 640, 896, 1408)
"""Bytes behind a multiple of 1024."""
_SHAPE = (2, 2, 64, 8)
"""Of a case's results: digits, halves of K, rows of A, columns of a half."""


def cases() -> NDArray[np.uint32]:
    """Start, swizzle mode and base offset of each."""
    return np.array([(start, mode, base) for mode, start, base in product((1, 2, 3), _STARTS, range(8))], np.uint32)


def empty() -> NDArray[np.float32]:
    """Room for the results."""
    return np.zeros((len(cases()), *_SHAPE), np.float32)


def places(found: NDArray[np.float32]) -> NDArray[np.uint16]:
    """The byte, from a multiple of 1024 on, that each row of a half of K begins at: `(cases, halves, rows)`.

    Elements of a row lie one behind the other, or this fails.
    """
    elements = found[:, 0] + 1024 * found[:, 1]
    np.testing.assert_array_equal(elements, elements[..., :1] + np.arange(8))
    return (2 * elements[..., 0]).astype(np.uint16)
