"""Kernels of the folder `kernels`, compiled for sm_90, and the rates of their launches."""

from __future__ import annotations

from functools import cache

import triptych as tt
from harness import KERNELS
from triptych.languages.cuda import BoundKernel, Kernel

TARGET = "sm_90"


@cache
def kernel(file: str, name: str) -> Kernel:
    """A kernel of a file such as `sgemm.cu`."""
    return tt.cuda.compile(KERNELS / file, arch=TARGET)[name]


def warp_instructions(launch: BoundKernel, *arguments: object) -> float:
    """What one launch executes; the same in each, as it depends on the arguments alone."""
    return float(launch(*arguments).counters["instructions.warp"].value)
