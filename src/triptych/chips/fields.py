"""Which values a chip file holds: a row per key, with its unit and the range outside which a value is a mistake."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triptych.core.gpu_targets import GPU_TARGET


@dataclass(frozen=True, slots=True)
class Number:
    """A numeric key: its unit and its bounds, both inclusive. `whole` values are integers.

    One that is not `required` is None where the file does not have it.
    """

    key: str
    unit: str
    low: float
    high: float
    whole: bool = False
    required: bool = True


@dataclass(frozen=True, slots=True)
class Word:
    """A textual key: the pattern that its value matches and how an error names that pattern."""

    key: str
    pattern: re.Pattern[str]
    expected: str
    required: bool = True


Field = Number | Word


def _count(key: str, unit: str, high: float, low: float = 1, *, required: bool = True) -> Number:
    return Number(key, unit, low, high, whole=True, required=required)


def _bytes(key: str, low: float, high: float) -> Number:
    return Number(key, "B", low, high, whole=True)


def _clock(key: str) -> Number:
    return Number(key, "Hz", 1e7, 1e11)


def _factor(key: str) -> Number:
    return Number(key, "measured/modelled", 0.01, 100, required=False)


_BANDWIDTH_LOW, _BANDWIDTH_HIGH = 1e8, 1e16
_CAPACITY_LOW, _CAPACITY_HIGH = 1 << 20, 1 << 50

GPU_FIELDS: Sequence[Field] = (
    Word("compute_capability", re.compile(r"\d{1,2}\.\d"), "a compute capability such as \"9.0\""),
    Word("target", GPU_TARGET, "a compile target such as \"sm_90\""),
    Word("modelled_from", re.compile(r".+"), "a sentence that reports print", required=False),
    _count("sm_count", "SMs", 4096),
    _clock("clock_hz"),
    _count("max_threads_per_block", "threads", 1 << 16),
    _count("max_warps_per_sm", "warps", 1 << 12),
    _count("max_blocks_per_sm", "blocks", 1 << 12),
    _count("warp_schedulers_per_sm", "schedulers", 1 << 6),
    _count("registers_per_sm", "registers", 1 << 24),
    _count("registers_per_thread", "registers", 1 << 16),
    _bytes("shared_bytes_per_sm", 1 << 10, 1 << 30),
    _bytes("shared_bytes_per_block_max", 1 << 10, 1 << 30),
    _bytes("shared_bytes_reserved_per_block", 0, 1 << 20),
    _bytes("l2_bytes", 1 << 16, 1 << 40),
    Number("l2_bytes_per_s", "B/s", _BANDWIDTH_LOW, _BANDWIDTH_HIGH),
    _bytes("dram_bytes", _CAPACITY_LOW, _CAPACITY_HIGH),
    Number("dram_bytes_per_s", "B/s", _BANDWIDTH_LOW, _BANDWIDTH_HIGH),
    Number("launch_overhead_s", "s", 1e-9, 1e-1),
    _factor("time_factor_low"),
    _factor("time_factor_high"),
)  # fmt: skip

NEURON_FIELDS: Sequence[Field] = (
    Word("core_generation", re.compile(r"gen\d"), "a generation of NeuronCore such as \"gen3\""),
    Word("target", re.compile(r"(trn|inf)\d"), "a platform target such as \"trn2\""),
    _count("core_count", "cores", 1 << 12),
    _count("partition_count", "partitions", 1 << 12),
    _bytes("sbuf_bytes_per_partition", 1 << 10, 1 << 30),
    _bytes("sbuf_reserved_bytes_per_partition", 0, 1 << 20),
    _bytes("psum_bytes_per_partition", 1 << 10, 1 << 30),
    _bytes("psum_bank_bytes", 1 << 6, 1 << 30),
    _count("matmul_stationary_elements", "elements", 1 << 16),
    _count("matmul_moving_f32_elements", "elements", 1 << 20),
    _count("matmul_moving_bf16_elements", "elements", 1 << 20, required=False),
    _clock("tensor_clock_hz"),
    _clock("vector_clock_hz"),
    _clock("scalar_clock_hz"),
    _clock("gpsimd_clock_hz"),
    _count("vector_lanes", "elements/cycle", 1 << 16),
    _count("scalar_lanes", "elements/cycle", 1 << 16),
    _count("gpsimd_lanes", "elements/cycle", 1 << 16),
    _bytes("hbm_bytes", _CAPACITY_LOW, _CAPACITY_HIGH),
    Number("hbm_bytes_per_s", "B/s", _BANDWIDTH_LOW, _BANDWIDTH_HIGH),
    Number("core_hbm_bytes_per_s", "B/s", _BANDWIDTH_LOW, _BANDWIDTH_HIGH),
    _count("dma_engines_per_core", "engines", 1 << 10),
    Number("dma_engine_bytes_per_s", "B/s", _BANDWIDTH_LOW, _BANDWIDTH_HIGH),
    Number("dma_latency_s", "s", 1e-9, 1e-1),
    _factor("time_factor_low"),
    _factor("time_factor_high"),
)  # fmt: skip

FIELDS: Mapping[str, Sequence[Field]] = {"gpu": GPU_FIELDS, "neuron": NEURON_FIELDS}


@dataclass(frozen=True, slots=True)
class Pipe:
    """A key of `[flops_per_s]`: an execution pipe and the unit of its peak."""

    key: str
    unit: str = "FLOP/s"
    required: bool = False


PEAK_LOW, PEAK_HIGH = 1e8, 1e20
"""FLOP/s. A peak outside this range is a mistake of units."""

GPU_PIPES: Sequence[Pipe] = (
    Pipe("f64", required=True),
    Pipe("f32", required=True),
    Pipe("f16"),
    Pipe("bf16"),
    Pipe("tensor.f16"),
    Pipe("tensor.bf16"),
    Pipe("tensor.tf32"),
    Pipe("tensor.fp8"),
    Pipe("tensor.s8", "OP/s"),
    Pipe("tensor.f64"),
)

NEURON_PIPES: Sequence[Pipe] = (
    Pipe("tensor.bf16", required=True),
    Pipe("tensor.f16", required=True),
    Pipe("tensor.fp8"),
    Pipe("tensor.f32", required=True),
    Pipe("vector", required=True),
    Pipe("scalar", required=True),
    Pipe("gpsimd", required=True),
)

PIPES: Mapping[str, Sequence[Pipe]] = {"gpu": GPU_PIPES, "neuron": NEURON_PIPES}
