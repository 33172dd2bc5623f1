"""The two kinds of chip, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from triptych.chips.facts import Fact


@dataclass(frozen=True, slots=True)
class ErrorBar:
    """How far measured times lie from estimates: nearly all of those compared between two multiples of them."""

    low: float
    high: float
    source: str
    """Which were compared, and how many of them lie between."""


@dataclass(frozen=True, slots=True)
class GpuChip:
    """A GPU. `facts` keeps every value with its unit and source, by the file's keys (`flops_per_s.f32` for a peak)."""

    name: str
    title: str
    compute_capability: tuple[int, int]
    target: str
    """The compile target (`sm_90`)."""
    modelled_from: str | None
    """Why the target differs from the compute capability, as a sentence that reports print."""
    sm_count: int
    clock_hz: float
    max_threads_per_block: int
    max_warps_per_sm: int
    max_blocks_per_sm: int
    warp_schedulers_per_sm: int
    """Each issues at most one warp instruction a clock."""
    registers_per_sm: int
    registers_per_thread: int
    shared_bytes_per_sm: int
    shared_bytes_per_block_max: int
    """The most shared memory that a block may opt in to."""
    shared_bytes_reserved_per_block: int
    """What the system keeps of an SM's shared memory for each resident block."""
    l2_bytes: int
    l2_bytes_per_s: float
    dram_bytes: int
    dram_bytes_per_s: float
    launch_overhead_s: float
    time_factor_low: float | None
    """Of measured times over estimates: most of those that were compared lie between this and the next. None where
    nobody compared any on this chip or one like it."""
    time_factor_high: float | None
    flops_per_s: Mapping[str, float]
    """Dense peaks by pipe: `f64`, `f32`, `f16`, `bf16`, and `tensor.` before a tensor core's dtype."""
    facts: Mapping[str, Fact]

    def __hash__(self) -> int:
        """The name's: chips that are equal have the same."""
        return hash(self.name)

    def __repr__(self) -> str:
        """The name and the title."""
        return f"<{self.name}: {self.title}>"

    @property
    def described(self) -> str:
        """What the figures are of: the whole chip."""
        return self.title

    @property
    def machine(self) -> str:
        """The machine that runs this chip's programs."""
        return "gpu"

    @property
    def memory_bytes_per_s(self) -> float:
        """The bandwidth under the roofline's slope: DRAM's."""
        return self.dram_bytes_per_s

    @property
    def error_bar(self) -> ErrorBar | None:
        """How far times lie from estimates; None where nobody knows."""
        return _error_bar(self)

    @property
    def notes(self) -> tuple[str, ...]:
        """What every report on this chip says."""
        return () if self.modelled_from is None else (self.modelled_from,)


@dataclass(frozen=True, slots=True)
class NeuronChip:
    """A chip of NeuronCores; clocks, lanes and peaks are those of one core, on which a kernel runs.

    `facts` keeps every value with its unit and source, by the file's keys (`flops_per_s.vector` for a peak).
    """

    name: str
    title: str
    core_generation: str
    """`gen2` (NeuronCore-v2), `gen3` or `gen4`; also a name of the compile target."""
    target: str
    """The platform target (`trn2`)."""
    core_count: int
    partition_count: int
    sbuf_bytes_per_partition: int
    sbuf_reserved_bytes_per_partition: int
    """What the system keeps of it."""
    psum_bytes_per_partition: int
    psum_bank_bytes: int
    matmul_stationary_elements: int
    """The largest free size of a matmul's stationary operand."""
    matmul_moving_f32_elements: int
    """The largest free size of its moving operand where the destination is f32."""
    matmul_moving_bf16_elements: int | None
    """The same where the destination is bf16; None where that cannot be."""
    tensor_clock_hz: float
    vector_clock_hz: float
    scalar_clock_hz: float
    gpsimd_clock_hz: float
    vector_lanes: int
    """Elements a cycle; likewise below."""
    scalar_lanes: int
    gpsimd_lanes: int
    hbm_bytes: int
    hbm_bytes_per_s: float
    """The whole chip's."""
    core_hbm_bytes_per_s: float
    """One core's equal share."""
    dma_engines_per_core: int
    dma_engine_bytes_per_s: float
    dma_latency_s: float
    """From the descriptor to the semaphore of one small transfer."""
    time_factor_low: float | None
    """Of measured times over estimates: most of those that were compared lie between this and the next. None where
    nobody compared any on this chip or one like it."""
    time_factor_high: float | None
    flops_per_s: Mapping[str, float]
    """Dense peaks of one core by engine: `tensor.` before a dtype, `vector`, `scalar`, `gpsimd`."""
    facts: Mapping[str, Fact]

    def __repr__(self) -> str:
        """The name and the title."""
        return f"<{self.name}: {self.title}>"

    @property
    def described(self) -> str:
        """What the figures are of: a core of the chip, with its share of the memory."""
        return self.title if self.core_count == 1 else f"{self.title}, one of its {self.core_count} NeuronCores"

    @property
    def machine(self) -> str:
        """The machine that runs this chip's programs."""
        return "neuron"

    @property
    def memory_bytes_per_s(self) -> float:
        """The bandwidth under the roofline's slope: one core's share of HBM's."""
        return self.core_hbm_bytes_per_s

    @property
    def error_bar(self) -> ErrorBar | None:
        """How far times lie from estimates; None where nobody knows."""
        return _error_bar(self)

    @property
    def notes(self) -> tuple[str, ...]:
        """What every report on this chip says."""
        return ()


Chip = GpuChip | NeuronChip


def _error_bar(chip: Chip) -> ErrorBar | None:
    low, high = chip.time_factor_low, chip.time_factor_high
    return None if low is None or high is None else ErrorBar(low, high, chip.facts["time_factor_high"].source)
