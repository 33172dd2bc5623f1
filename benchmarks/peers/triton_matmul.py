"""Our Triton product of matrices (f16): by Triton's own interpreter (TRITON_INTERPRET=1), or on our machine."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportIndexIssue=false
# pyright: reportUnknownArgumentType=false, reportCallIssue=false

from __future__ import annotations

import os
import time

import torch
import triton

import triptych as tt
from triptych.kernels.triton.matmul import matmul_kernel


def measure(extent: int, tile: int, depth: int, warps: int, rounds: int) -> dict[str, list[float]]:
    """Seconds of each launch over square matrices, after one that is not timed; tiles of tile × tile × depth."""
    if os.environ.get("TRITON_INTERPRET") != "1":
        tt.triton.activate(chip="a100", target="sm_80")
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn((extent, extent), generator=generator).half() for _ in range(2))
    c = torch.zeros((extent, extent))
    grid = (triton.cdiv(extent, tile) ** 2,)
    seconds: list[float] = []
    for turn in range(rounds + 1):
        start = time.perf_counter()
        matmul_kernel[grid](
            a, b, c, extent, extent, extent, BLOCK_M=tile, BLOCK_N=tile, BLOCK_K=depth, GROUP=8, num_warps=warps,
            num_stages=3,
        )  # fmt: skip
        if turn:
            seconds.append(time.perf_counter() - start)
    return {"seconds": seconds, "error": [float((c - a.float() @ b.float()).abs().max())]}
