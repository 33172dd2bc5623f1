"""NeuronCores: their engines, memories and limits, by compile target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

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
    sbuf_bytes_per_partition: int
    """What a kernel can use, which is less than the memory has."""
    hbm_bytes: int
    """HBM of one core."""
    matmul_moving_elements: Mapping[str, int]
    """The largest free size of a matmul's moving operand, by the dtype of the destination."""
    partitions: int = 128
    psum_bytes_per_partition: int = 16 * 1024
    psum_bank_bytes: int = 2 * 1024
    matmul_stationary_elements: int = 128
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


# Sources: the NKI architecture guides (trainium_inferentia2_arch, trainium2_arch, trainium3_arch). The usable SBUF of
# trn1 is what its compiler prints ("Total SB Partition Size: 196608"); of trn2 what AWS's nki-library uses, 224 KiB
# less 16 KiB and 8 bytes; trn3 is taken to reserve the same.
HARDWARE: Mapping[str, Hardware] = {
    row.target: row
    for row in (
        Hardware("trn1", 2, 192 * 1024, 16 << 30, {"f32": 512}),
        Hardware("trn2", 3, 224 * 1024 - 16 * 1024 - 8, 12 << 30, {"f32": 512}),
        Hardware("trn3", 4, 256 * 1024 - 16 * 1024 - 8, 18 << 30, {"f32": 4096, "bf16": 8192}),
    )
}
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
