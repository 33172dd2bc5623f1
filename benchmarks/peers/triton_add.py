"""Triton's vector addition: by Triton's own interpreter (TRITON_INTERPRET=1), or on our machine."""

# Triton reads a kernel's source and knows no Python types.
# ruff: noqa: ANN001, ANN201
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false, reportUnknownArgumentType=false, reportUntypedFunctionDecorator=false
# pyright: reportUnknownLambdaType=false, reportArgumentType=false

from __future__ import annotations

import os
import time
from collections.abc import Callable

import torch
import triton
import triton.language as tl

import triptych as tt


@triton.jit
def add(a, b, c, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    tl.store(c + offsets, tl.load(a + offsets, mask) + tl.load(b + offsets, mask), mask)


def prepare(elements: int, block_size: int) -> tuple[Callable[[], object], Callable[[], float]]:
    """The launch, and the largest error of what it stored."""
    if os.environ.get("TRITON_INTERPRET") != "1":
        tt.triton.activate(chip="h100")
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.rand(elements, generator=generator) for _ in range(2))
    c = torch.zeros(elements)
    grid = (triton.cdiv(elements, block_size),)
    return lambda: add[grid](a, b, c, elements, BLOCK_SIZE=block_size), lambda: float((c - (a + b)).abs().max())


def measure(elements: int, block_size: int, rounds: int) -> dict[str, list[float]]:
    """Seconds of each launch, after one that is not timed."""
    launch, error = prepare(elements, block_size)
    seconds: list[float] = []
    for turn in range(rounds + 1):
        start = time.perf_counter()
        launch()
        if turn:
            seconds.append(time.perf_counter() - start)
    return {"seconds": seconds, "error": [error()]}
