"""What a warp's addresses and branches cost: coalescing, bank conflicts, divergence."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from triptych.core.gpu_facts import SECTOR_BYTES
from triptych.memory_wall.experiment import CHIPS, Axis, Experiment, Point, counted
from triptych.memory_wall.small_kernels import cuda_kernel

_CHIP = CHIPS["CUDA C++"]
_STRIDES = (1, 2, 4, 8, 16, 32)
_PATHS = (1, 2, 4, 8, 16, 32)
_BANK_STRIDES = range(1, 34)
_PAIR_BYTES = 2 * SECTOR_BYTES
"""What DRAM gives at once."""


def _coalescing(quick: bool) -> Iterator[Point]:
    """Of the loads alone: what is stored is coalesced."""
    count = 1024 if quick else 16384
    for stride in _STRIDES:
        x, y = np.ones(count * stride, np.float32), np.empty(count, np.float32)
        counters = counted(
            _CHIP, lambda x=x, y=y, stride=stride: cuda_kernel("strided")[count // 256, 256](x, y, stride)
        )
        asked = counters.value("global.load.bytes")
        requested = SECTOR_BYTES * counters.value("global.load.sectors") / asked
        yield Point("sectors asked of L2", stride, requested, min(stride, SECTOR_BYTES // 4))
        touched = counters.value("global.load.compulsory_bytes") / asked
        yield Point("pairs of sectors from DRAM", stride, touched, min(stride, _PAIR_BYTES // 4))


COALESCING = Experiment(
    name="coalescing",
    title="Strides in global memory",
    formula="A warp that reads f32 words s apart touches its sectors of 32 bytes for min(s, 8) times the bytes that it"
    " asks for; DRAM gives pairs of sectors, 64 bytes: min(s, 16) times",
    measured="y[i] = x[s i], the loads alone: sectors at the level of L2, and pairs of sectors touched at that of DRAM,"
    " both over the bytes that threads ask for, counted.",
    finding="Text-books draw lines of 128 bytes, and would have 32 times the bytes at a stride of 32. That is not what"
    " an H200 counts: its requests are made of sectors of 32 bytes, its DRAM gives 64. A stride of 8 costs L2 all that"
    " it can, DRAM only half of what a stride of 16 does.",
    within=0.0,
    x=Axis("stride, words"),
    y=Axis("bytes moved for each byte used"),
    run=_coalescing,
)


def _banks(quick: bool) -> Iterator[Point]:
    for stride in _BANK_STRIDES:
        x = np.ones(32, np.float32)
        counters = counted(_CHIP, lambda x=x, stride=stride: cuda_kernel("banked")[1, 32](x, stride))
        found = counters.value("shared.load.wavefronts") / counters.value("shared.load.requests")
        yield Point("loads of a word a lane", stride, found, math.gcd(stride, 32))


BANKS = Experiment(
    name="bank_conflicts",
    title="Strides in shared memory",
    formula="32 banks of 4 bytes: words s apart take gcd(s, 32) passes",
    measured="A warp loads words s apart from shared memory: wavefronts of a request, counted.",
    finding="As in the text-book: odd strides cost nothing, which is why a tile of 32 × 32 gets a column of padding"
    " (stride 33), and a stride of 32 has the lanes wait for each other one by one.",
    within=0.0,
    x=Axis("stride, words", logarithmic=False),
    y=Axis("wavefronts of a request"),
    run=_banks,
)


def _divergence(quick: bool) -> Iterator[Point]:
    rounds = 64
    useful = 0.0
    for paths in _PATHS:
        x = np.ones(32 if quick else 4096, np.float32)
        run = cuda_kernel("divergent")[max(x.size // 128, 1), min(x.size, 128)]
        counters = counted(_CHIP, lambda x=x, paths=paths, run=run: run(x, paths, rounds))
        issued = counters.value("instructions.pipe.fp32")
        useful = useful or issued
        yield Point("warp instructions of f32", paths, issued / useful, paths)
        yield Point("FLOPs", paths, counters.value("flops.f32") / (2 * rounds * x.size), 1)


DIVERGENCE = Experiment(
    name="divergence",
    title="Lanes that part",
    formula="Lanes of a warp that take p paths make it execute all p, one after the other, each with 32 / p lanes:"
    " p times the instructions for the same FLOPs",
    measured="Each thread takes one of p loops of 64 multiplications and additions: warp instructions of the f32 pipe,"
    " over those of one path, and FLOPs of all lanes over those wanted, counted on PTX.",
    finding="As in the text-book, to the instruction. The FLOPs do not show it, nor does the roofline's intensity: look"
    " at the lanes to an instruction and at the roof of the issue slots.",
    within=0.0,
    x=Axis("paths"),
    y=Axis("times those of one path"),
    run=_divergence,
)
