"""Ladders: several kernels for one problem, each a step closer to the hardware, and what the counters say of each.

`python docs/record_ladders.py` measures all of them and writes `docs/data/kernel_ladders.json`, from which the page is
made; a test measures some of them again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

import triptych as tt
from triptych.kernels import cuda, nki, triton

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Rung:
    """A kernel of a ladder."""

    function: Callable[..., Any]
    takes: str
    """What it has that the one before it has not."""

    @property
    def name(self) -> str:
        """As it is found: `cuda.matmul_naive`."""
        package = getattr(self.function, "function", self.function).__module__.split(".")[2]
        return f"{package}.{getattr(self.function, '__name__', '')}"


@dataclass(frozen=True, slots=True)
class Ladder:
    """Kernels for one problem, on one chip."""

    name: str
    problem: str
    chip: str
    inputs: Callable[[], Sequence[Array]]
    rungs: Sequence[Rung]


def _random(dtype: npt.DTypeLike, *shapes: tuple[int, ...]) -> list[Array]:
    random = np.random.default_rng(0)
    return [random.standard_normal(shape).astype(dtype) for shape in shapes]


LADDERS: Mapping[str, Ladder] = {
    one.name: one
    for one in (
        Ladder(
            "matmul", "256 × 256 × 256, f16", "h100", lambda: _random(np.float16, *[(256, 256)] * 2),
            (
                Rung(cuda.matmul_naive, "a thread an element, operands from global memory"),
                Rung(cuda.matmul_tiled, "tiles in shared memory and in registers"),
                Rung(cuda.matmul_wmma, "tensor cores"),
                Rung(cuda.matmul_mma, "copies that run while tensor cores multiply; swizzled shared memory"),
                Rung(cuda.matmul_wgmma, "a warp of its own that has tiles copied by TMA; operands from shared memory"),
                Rung(triton.matmul, "the same by Triton, from tiles of pointers"),
                Rung(triton.persistent_matmul, "programs that stay, and tensor descriptors"),
            ),
        ),
        Ladder(
            "attention", "4 heads, 256 queries and keys, d = 64, f16", "h100",
            lambda: _random(np.float16, *[(1, 4, 256, 64)] * 3),
            (
                Rung(cuda.attention_naive, "scores in memory, three launches"),
                Rung(cuda.attention_tiled, "an online softmax: scores in registers, keys and values by tiles"),
                Rung(cuda.attention_mma, "tensor cores, and copies that run while they multiply"),
                Rung(cuda.attention_wgmma, "a warp of its own that has tiles copied by TMA; two groups by turns"),
                Rung(triton.attention, "the same by Triton"),
            ),
        ),
        Ladder(
            "NKI matmul", "1024 × 1024 × 1024, bf16, A transposed", "trn2",
            lambda: _random(ml_dtypes.bfloat16, *[(1024, 1024)] * 2),
            (
                Rung(nki.matmul_tiled, "a tile at a time, each brought when it is wanted"),
                Rung(nki.matmul_hoisted, "a strip of A stays in SBUF for a row of tiles"),
                Rung(nki.matmul_blocked, "columns of B stay for four strips of A"),
                Rung(nki.matmul_fully_blocked, "blocks of m, n and k, sums in SBUF"),
            ),
        ),
    )
}  # fmt: skip
"""By name."""
GPU_COUNTERS: Mapping[str, tuple[str, ...]] = {
    "FLOPs, plain": ("flops.f32", "flops.f16"),
    "FLOPs, tensor cores": ("flops.tensor.f16",),
    "global memory, loaded bytes": ("global.load.bytes",),
    "stored bytes": ("global.store.bytes",),
    "shared memory, wavefronts": ("shared.load.wavefronts", "shared.store.wavefronts", "shared.tensor.load.wavefronts"),
    "bank conflicts": ("shared.load.bank_conflicts", "shared.store.bank_conflicts"),
    "barriers": ("barriers",),
}
"""Columns of the page, each with the counters that it sums up: what depends on no compiler's choice of instructions."""
NEURON_COUNTERS: Mapping[str, tuple[str, ...]] = {
    "FLOPs, Tensor engine": ("flops.tensor.bf16",),
    "HBM, loaded bytes": ("dma.load.bytes",),
    "stored bytes": ("dma.store.bytes",),
    "DMA transfers": ("dma.transfers",),
    "SBUF, bytes a partition": ("sbuf.peak_bytes",),
    "PSUM, bytes a partition": ("psum.peak_bytes",),
}


def columns(ladder: Ladder) -> Mapping[str, tuple[str, ...]]:
    """The columns that the ladder's machine has."""
    return NEURON_COUNTERS if ladder.chip.startswith("trn") else GPU_COUNTERS


def measure(ladder: Ladder, rung: Rung) -> dict[str, int]:
    """The launches of one call, and each column's sum over them."""
    with tt.profile(chip=ladder.chip) as profile:
        rung.function(*ladder.inputs())
    found: dict[str, int] = {"launches": len(profile.launches)}
    for column, names in columns(ladder).items():
        counters = [launch.counters.get(name) for launch in profile.launches for name in names]
        found[column] = int(sum(one.value for one in counters if one is not None))
    return found
