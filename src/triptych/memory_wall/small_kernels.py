"""The kernels of `small_kernels.cu`, and the like in Triton and NKI."""

# pyright: basic, reportArgumentType=false, reportGeneralTypeIssues=false
# ruff: noqa: ANN001, ANN201
# Triton's and NKI's languages have no types that Python knows.

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import triton
import triton.language as tl

from triptych.execution.profile import active_target
from triptych.kernels.nki.tiles import PARTITIONS, cuts, sbuf
from triptych.languages.cuda import Kernel
from triptych.languages.cuda import compile as compile_cuda
from triptych.languages.nki import isa as nisa
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki


def cuda_kernel(name: str) -> Kernel:
    """A kernel of `small_kernels.cu`, for the target of the chip in force."""
    return _compiled(name, active_target("gpu"))


@cache
def _compiled(name: str, arch: str) -> Kernel:
    return compile_cuda(Path(__file__).with_suffix(".cu"), arch=arch)[name]


@triton.jit
def triton_steps(x, y, n, count, BLOCK: tl.constexpr):
    """`count` elementwise steps, BLOCK elements a program."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + places, mask=places < n)
    for _ in range(count):
        values = 0.5 * values + 1.0
    tl.store(y + places, values, mask=places < n)


steps_with_triton: Any = triton_steps
"""The same, without the types that Triton's decorator would have of it."""


@nki.jit
def nki_steps(x, count):
    """`count` elementwise steps on x, (rows, columns), a tile of 128 rows at a time."""
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for rows in cuts(x.shape[0], PARTITIONS):
        tile = sbuf((rows.stop - rows.start, x.shape[1]), x.dtype)
        nisa.dma_copy(dst=tile, src=x[rows, :])
        for _ in range(count):
            nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=0.5, op1=nl.add, operand1=1.0)
        nisa.dma_copy(dst=y[rows, :], src=tile)
    return y


@nki.jit
def nki_buffered(x, count, buffers):
    """The same, with tiles that take turns in `buffers` places of SBUF: one waits until its place is free."""
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    places = [sbuf((PARTITIONS, x.shape[1]), x.dtype) for _ in range(buffers)]
    for at, rows in enumerate(cuts(x.shape[0], PARTITIONS)):
        tile = places[at % buffers]
        nisa.dma_copy(dst=tile, src=x[rows, :])
        for _ in range(count):
            nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=0.5, op1=nl.add, operand1=1.0)
        nisa.dma_copy(dst=y[rows, :], src=tile)
    return y
