"""NeuronCores: their engines, memories and limits, by compile target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from triptych.chips import Chip, NeuronChip, load
from triptych.core.errors import UnknownName


class Space(Enum):
    """Where a tensor lies."""

    HBM = "hbm"
    SBUF = "sbuf"
    PSUM = "psum"

    @property
    def on_chip(self) -> bool:
        """Whether tensors there have partitions."""
        return self is not Space.HBM


class Engine(Enum):
    """The instruction queues of a NeuronCore; `DMA` stands for its 16 DMA engines together."""

    TENSOR = "tensor"
    VECTOR = "vector"
    SCALAR = "scalar"
    GPSIMD = "gpsimd"
    DMA = "dma"
    SYNC = "sync"


@dataclass(frozen=True, slots=True)
class Hardware:
    """The limits of one generation of NeuronCore. Bytes are per partition where the name says so."""

    target: str
    generation: int
    """2, 3 or 4: NeuronCore-v2, -v3, -v4."""
    partitions: int
    sbuf_bytes_per_partition: int
    """What a kernel can use, which is less than the memory has."""
    psum_bytes_per_partition: int
    psum_bank_bytes: int
    hbm_bytes: int
    """HBM of one core."""
    matmul_moving_elements: Mapping[str, int]
    """The largest free size of a matmul's moving operand, by the dtype of the destination."""
    matmul_stationary_elements: int = 128
    batch_statistics_elements: int = 512
    """The largest free size of bn_stats."""
    free_axes: int = 4
    """Axes of an access pattern behind the partition axis."""

    @property
    def psum_banks(self) -> int:
        """Banks of PSUM in each partition."""
        return self.psum_bytes_per_partition // self.psum_bank_bytes

    @property
    def matmul_destinations(self) -> tuple[str, ...]:
        """The dtypes that a matmul may write."""
        return tuple(self.matmul_moving_elements)


def _hardware_of(chip: Chip) -> Hardware:
    """The sizes are the chip file's, the limits of instructions those of its generation."""
    assert isinstance(chip, NeuronChip)
    generation = int(chip.generation.removeprefix("gen"))
    return Hardware(
        chip.target,
        generation,
        chip.partition_count,
        chip.sbuf_bytes_per_partition - chip.sbuf_reserved_bytes_per_partition,
        chip.psum_bytes_per_partition,
        chip.psum_bank_bytes,
        chip.hbm_bytes // chip.core_count,
        {"f32": 4096, "bf16": 8192} if generation >= 4 else {"f32": 512},
    )


HARDWARE: Mapping[str, Hardware] = {name: _hardware_of(load(name)) for name in ("trn1", "trn2", "trn3")}
"""By compile target. Source of the matmul's limits: the NKI architecture guides."""

TARGET_ALIASES: Mapping[str, str] = {"inf2": "trn1", "gen2": "trn1", "gen3": "trn2", "gen4": "trn3"}


def hardware(target: str) -> Hardware:
    """The limits of a compile target (`trn2`, or an alias such as `gen3`).

    Raises:
        UnknownName: for a target that is no NeuronCore.
    """
    found = HARDWARE.get(TARGET_ALIASES.get(target, target))
    if found is None:
        raise UnknownName.of("Neuron target", target, [*HARDWARE, *TARGET_ALIASES])
    return found
