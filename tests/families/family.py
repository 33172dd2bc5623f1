"""What the families share: a module by the name of its `.cu` file, inputs and sizes."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

import triptych as tt
from triptych.languages.cuda import CudaModule

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int32]


@cache
def module(name: str, *names: str, arch: str = "sm_90", options: tuple[str, ...] = ()) -> CudaModule:
    """The kernels of `<name>.cu` beside the tests, with the templates that share their unit."""
    return tt.cuda.compile(Path(__file__).with_name(f"{name}.cu"), arch=arch, options=options, names=names)


def blocks(count: int, size: int) -> int:
    """How many blocks of `size` cover `count`."""
    return -(-count // size)


def normal(seed: int, *shape: int) -> Floats:
    """Standard normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def whole(seed: int, *shape: int, low: int = -1000, high: int = 1000) -> Integers:
    """Whole numbers from `low` to below `high`."""
    return np.random.default_rng(seed).integers(low, high, shape, dtype=np.int32)
