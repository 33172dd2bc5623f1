"""Random kernels with divergent control flow: values and counters on both executors."""

from __future__ import annotations

import numpy as np
import pytest
from both import run_both
from random_kernels import REGISTERS, WORDS, RandomKernel

BLOCKS = ((32,), (64,), (40,), (9, 5), (33, 2), (1,))


@pytest.mark.parametrize("seed", range(16))
def test_random_kernel(seed: int) -> None:
    block = BLOCKS[seed % len(BLOCKS)]
    values = np.random.default_rng(seed).integers(0, 1 << 8, WORDS, np.uint32)
    out = np.zeros((2 * int(np.prod(block)), 2 * REGISTERS), np.uint32)
    run_both(RandomKernel(seed).text, "k", 2, block, values, out)
