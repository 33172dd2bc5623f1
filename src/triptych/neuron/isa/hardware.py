"""NeuronCores: their engines, memories and limits, by compile target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache

from triptych.chips import NeuronChip, load, targets
from triptych.core.errors import ChipError, UnknownName


class Space(Enum):
    """Where a tensor lies."""

    HBM = "hbm"
    SBUF = "sbuf"
    PSUM = "psum"
    ENGINE = "engine"
    """An engine's own registers: no memory, and no part of any capacity."""

    def __init__(self, name: str) -> None:
        """Whether tensors there have partitions is asked for each of them, and kept."""
        self.on_chip = name != "hbm"

    __hash__ = object.__hash__  # enums hash their names, in Python


class Work(Enum):
    """What is counted of an engine's instructions, besides the instructions."""

    NOTHING = 0
    PRODUCTS = 1
    """FLOPs, by the dtype of the inputs."""
    ELEMENTS = 2
    """Elements, and FLOPs."""
    TRANSFERS = 3
    """Transfers, and bytes from and to HBM."""


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """The columns of an engine. Source: the architecture guide of NeuronCore-v2."""

    counts: Work
    reaches_psum: bool = True
    starts_anywhere: bool = False
    """Whether its operands may begin at any partition."""


class Engine(Enum):
    """The instruction queues of a NeuronCore; `DMA` stands for its 16 DMA engines together."""

    TENSOR = "tensor"
    VECTOR = "vector"
    SCALAR = "scalar"
    GPSIMD = "gpsimd"
    DMA = "dma"
    SYNC = "sync"

    __hash__ = object.__hash__  # enums hash their names, in Python

    @property
    def facts(self) -> EngineFacts:
        """Its columns."""
        return ENGINES[self]


ENGINES: Mapping[Engine, EngineFacts] = {
    Engine.TENSOR: EngineFacts(Work.PRODUCTS),
    Engine.VECTOR: EngineFacts(Work.ELEMENTS),
    Engine.SCALAR: EngineFacts(Work.ELEMENTS),
    Engine.GPSIMD: EngineFacts(Work.ELEMENTS, reaches_psum=False),
    Engine.DMA: EngineFacts(Work.TRANSFERS, starts_anywhere=True),
    Engine.SYNC: EngineFacts(Work.NOTHING),
}
"""The table of engines."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """The limits of one generation of NeuronCore. Bytes are per partition where the name says so."""

    target: str
    core_generation: int
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
    matmul_stationary_elements: int
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


def hardware(target: str) -> Hardware:
    """The limits of a compile target (`trn2`), by any name of its chip (`gen3`); the same object for the same target.

    Raises:
        UnknownName: for a target that is no NeuronCore.
    """
    try:
        chip = load(target)
    except (UnknownName, ChipError):
        chip = None
    if not isinstance(chip, NeuronChip):
        raise UnknownName.of("Neuron target", target, targets("neuron"))
    return _hardware_of(chip.target)


def start_partitions(partitions: int) -> tuple[int, ...]:
    """Where a compute operand of so many partitions may begin. Source: the architecture guide's rule of quadrants."""
    return (0,) if partitions > 64 else (0, 64) if partitions > 32 else (0, 32, 64, 96)


@cache
def _hardware_of(target: str) -> Hardware:
    """The sizes of the chip of that name, one core's where the chip shares them out."""
    chip = load(target)
    assert isinstance(chip, NeuronChip)
    moving = {"f32": chip.matmul_moving_f32_elements, "bf16": chip.matmul_moving_bf16_elements}
    return Hardware(
        target=chip.target,
        core_generation=int(chip.core_generation.removeprefix("gen")),
        partitions=chip.partition_count,
        sbuf_bytes_per_partition=chip.sbuf_bytes_per_partition - chip.sbuf_reserved_bytes_per_partition,
        psum_bytes_per_partition=chip.psum_bytes_per_partition,
        psum_bank_bytes=chip.psum_bank_bytes,
        hbm_bytes=chip.hbm_bytes // chip.core_count,
        matmul_moving_elements={dtype: most for dtype, most in moving.items() if most is not None},
        matmul_stationary_elements=chip.matmul_stationary_elements,
    )
