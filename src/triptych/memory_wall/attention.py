"""Attention with its scores in memory and without: the intensity of the one, traffic and memory of the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from triptych.core.gpu_facts import SECTOR_BYTES
from triptych.execution.launch_report import LaunchReport
from triptych.kernels import cuda, nki, triton
from triptych.memory_wall.experiment import CHIPS, Axis, Experiment, Point, launches

Array = NDArray[Any]
LENGTHS = (512, 1024, 2048, 4096)
"""Queries, and keys, of the one head."""
QUICK_LENGTHS = (512,)
WIDTH = 128
"""Elements of a query in the experiment on standard attention."""
TILED_WIDTH = 64
"""In those on FlashAttention."""


def _inputs(n: int, d: int) -> list[Array]:
    """A head's queries, divided by √d, keys and values, in f16."""
    random = np.random.default_rng(n)
    return [(random.standard_normal((n, d)) * factor).astype(np.float16) for factor in (d**-0.5, 1, 1)]


# --- Standard attention: three launches, scores and weights of 16 bits in memory --------------------------------------


def _nki_scores(q: Array, k_turned: Array) -> Array:
    return nki.matmul_fully_blocked(np.ascontiguousarray(q.T), k_turned)


_STEPS: Mapping[str, tuple[Callable[..., Array], Callable[[Array], Array], Callable[..., Array]]] = {
    "CUDA C++": (cuda.matmul_mma, cuda.softmax, cuda.matmul_mma),
    "Triton": (triton.matmul, triton.softmax, triton.matmul),
    "NKI": (_nki_scores, nki.softmax, nki.matmul),
}
"""By language: scores = Q Kᵀ, weights = softmax(scores), weights V."""


@cache
def standard(language: str, n: int, d: int) -> Sequence[LaunchReport]:
    """The three launches of attention by the text-book."""
    dtype = ml_dtypes.bfloat16 if language == "NKI" else np.float16
    q, k, v = (one.astype(dtype) for one in _inputs(n, d))
    scores, softmax, product = _STEPS[language]
    return launches(CHIPS[language], lambda: product(softmax(scores(q, np.ascontiguousarray(k.T))), v))


def standard_intensity(n: int, d: int) -> float:
    """FLOP/byte of 4 n² d FLOPs over four arrays of n × d and four of n × n, of 16 bits."""
    return 4 * n * n * d / (2 * (4 * n * d + 4 * n * n))


def _intensities(quick: bool) -> Iterator[Point]:
    for language in _STEPS:
        for n in QUICK_LENGTHS if quick else LENGTHS:
            three = [launch.roofline for launch in standard(language, n, WIDTH)]
            measured = sum(one.flops for one in three) / sum(one.bytes for one in three)
            yield Point(language, n, measured, standard_intensity(n, WIDTH))


STANDARD = Experiment(
    name="standard_attention",
    title="Attention with its scores in memory",
    formula="4 N² d FLOPs over 2 · (4 N d + 4 N²) bytes: 62.06 FLOP/byte at N = 4096, d = 128, and never above d / 2",
    measured="One head of d = 128 in 16 bits, in three launches: scores = Q Kᵀ, softmax, weights · V. FLOPs counted"
    " (softmax's among them) over the bytes that each launch touches at the level of DRAM (HBM on NKI).",
    finding="An H100 wants 295 FLOP/byte of f16: however long the head, its tensor cores stand still for four fifths of"
    " the time, and the scores are to blame. Without them the same FLOPs have N / 2 for each byte. What the measured"
    " values are higher by is the softmax, some 20 FLOPs a score on a GPU (its exponential is arithmetic there) and 5"
    " on NKI, which the formula leaves out; those of the tensor cores, and the bytes, are the formula's to the last.",
    within=0.05,
    x=Axis("N"),
    y=Axis("FLOP/byte", logarithmic=False),
    run=_intensities,
)

# --- FlashAttention: no scores in memory ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tiled:
    """A kernel that takes so many queries at a time, and keys and values once for each time."""

    language: str
    queries: int
    call: Callable[[Array, Array, Array], object]
    store_parts: int = 1
    """How often a sector of the output is stored to: twice where a request has 16 bytes of each."""
    row_bytes: int = 0
    """What is stored for each query besides the output."""

    @property
    def series(self) -> str:
        """The kernel's name in figures."""
        return f"{self.language}, {self.queries} queries"

    def bytes(self, n: int, d: int) -> int:
        """What moves at the level of L2 (by DMA on NKI): Q once, the output, and K and V for each tile."""
        row = 2 * d
        return n * row + 2 * (n // self.queries) * n * row + self.store_parts * n * row + n * self.row_bytes


def _of_triton(queries: int) -> Tiled:
    return Tiled(
        "Triton", queries, lambda q, k, v: triton.attention_forward(q, k, v, queries=queries), row_bytes=4
    )  # fmt: skip


def _of_nki(queries: int) -> Tiled:
    return Tiled("NKI", queries, lambda q, k, v: nki.attention_streamed(q, k, v, queries=queries))


TILED = (
    Tiled("CUDA C++", 64, cuda.attention_mma, store_parts=2),
    Tiled("CUDA C++", 128, cuda.attention_wgmma, store_parts=2),
    _of_triton(64),
    _of_triton(128),
    _of_nki(128),
    _of_nki(512),
)


@cache
def flash(kernel: Tiled, n: int, d: int) -> LaunchReport:
    """The one launch of a kernel without scores in memory, on one head."""
    q, k, v = (one.reshape(1, 1, n, d) for one in _inputs(n, d))
    (launch,) = launches(CHIPS[kernel.language], lambda: kernel.call(q, k, v))
    return launch


def _moved(launch: LaunchReport) -> int:
    counters = launch.counters
    if launch.language == "nki":
        return int(counters.value("dma.load.bytes") + counters.value("dma.store.bytes"))
    return SECTOR_BYTES * int(counters.value("global.load.sectors") + counters.value("global.store.sectors"))


def _traffic(quick: bool) -> Iterator[Point]:
    for kernel in TILED:
        for n in QUICK_LENGTHS if quick else LENGTHS:
            yield Point(kernel.series, n, _moved(flash(kernel, n, TILED_WIDTH)), kernel.bytes(n, TILED_WIDTH))


TRAFFIC = Experiment(
    name="flash_traffic",
    title="What FlashAttention moves",
    formula="Q and the output once, K and V once for each tile of B queries: 2 · (2 N d + 2 N² d / B) bytes. With"
    " M = B d elements of fast memory that is the text-book's N² d² / M",
    measured="One head of d = 64 in 16 bits, two sizes of tile. Bytes at the level of L2, counted as global sectors of"
    " 32 bytes; on NKI bytes moved by DMA.",
    finding="To the byte in all three languages: doubling the tile halves what K and V cost. Three things are not as in"
    " the text-book. The tile decides, not the size of fast memory: M is what a kernel makes of it. All this is traffic"
    " of L2: DRAM moves 8 N d bytes whatever the tile, as long as L2 holds a head's K and V, 1 MiB at N = 4096. And the"
    " CUDA kernels' output counts twice: the lanes of a request store 16 bytes of each sector, as tensor cores leave"
    " their sums, so that L2 sees each sector of it twice.",
    within=0.05,
    x=Axis("N"),
    y=Axis("bytes moved", "B"),
    run=_traffic,
)


def _footprint(reports: Sequence[LaunchReport]) -> int:
    return max(report.roofline.bytes for report in reports)


def _memory(quick: bool) -> Iterator[Point]:
    """Of the tiled kernels the second one of each language."""
    lengths = QUICK_LENGTHS if quick else LENGTHS
    for kernel in TILED[1::2]:
        for n in lengths:
            touched = _footprint(standard(kernel.language, n, WIDTH))
            yield Point(f"{kernel.language}, scores in memory", n, touched, 2 * 2 * n * n)
        for n in lengths:
            touched = _footprint([flash(kernel, n, TILED_WIDTH)])
            expected = 2 * 4 * n * TILED_WIDTH + n * kernel.row_bytes
            yield Point(f"{kernel.language}, FlashAttention", n, touched, expected)


MEMORY = Experiment(
    name="attention_memory",
    title="The memory that attention needs",
    formula="Scores and weights are 2 N² elements: O(N²). FlashAttention has Q, K, V and the output, 4 N d: O(N d)",
    measured="One head in 16 bits: the bytes of DRAM (HBM on NKI) that the launch which touches most touches. With"
    " scores in memory that is the softmax, which reads N² scores and writes as many weights; without them d is 64.",
    finding="To the byte; Triton's kernel has 4 bytes more for each query, the logarithm of its sum of exponentials,"
    " which a backward pass needs. At N = 4096 one head's scores and weights are as large as 32 heads of all the rest.",
    within=0.05,
    x=Axis("N"),
    y=Axis("bytes of the largest launch", "B"),
    run=_memory,
)
