"""What a transfer asks of the DMA engines: descriptors, the time each engine moves them, and bytes of HBM.

A transfer is cut into descriptors, each of which moves bytes that lie side by side at both ends. Each DMA engine serves
its share of the partitions, and takes for a descriptor the time of its bytes, or of `FULL_BYTES` where it has fewer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from triptych.chips import NeuronChip
from triptych.neuron.isa.hardware import Space
from triptych.neuron.isa.row import ROWS
from triptych.neuron.isa.trace import Instruction, Region, Tensor
from triptych.neuron.timeline.generations import GENERATIONS, generation_of

FULL_BYTES = 2048
"""Below it a descriptor takes as long as with so many bytes. Source: the NKI DMA bandwidth guide (2 KiB and more a
partition); with it the copy of 256-byte rows published for Trainium2 is met within 5 %."""
QUEUES = 16
"""Transfers under way at a time. Source: the architecture guides, 16 queues of each DMA engine."""
TRANSPOSED = {Space.HBM: 0.9, Space.SBUF: 0.5}
"""The part of the bandwidth that a transposing DMA reaches, by where it reads. Source: the architecture guide of
NeuronCore-v3, taken for the others too."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """What one DMA instruction asks for."""

    bytes: int
    """Moved; of several sources all, and of two dtypes the larger."""
    descriptors: int
    descriptor_bytes: int
    """Of each."""
    engines: tuple[tuple[int, float], ...]
    """The DMA engines that move it, and the seconds that each takes."""
    hbm_seconds: float
    """At HBM's bandwidth of one core: the bytes that are read there, and those written."""

    @property
    def seconds(self) -> float:
        """What it takes where nothing else is under way."""
        return max((*(seconds for _, seconds in self.engines), self.hbm_seconds))


def _run_bytes(region: Region, tensor: Tensor) -> int:
    """Bytes that lie side by side from the region's first element on."""
    run = 1
    pattern = region.pattern[1:] if tensor.space.on_chip else region.pattern
    for step, count in reversed(pattern):
        if count > 1 and step != run:
            break
        run *= count
    return run * tensor.dtype.bytes


def _sources(instruction: Instruction) -> Iterator[Region]:
    """What is read; of what is read and written the reading."""
    for rule in ROWS[instruction.operation].operands:
        operand = instruction.operands.get(rule.name)
        if rule.read and isinstance(operand, Region):
            yield operand


def _target(instruction: Instruction) -> Region:
    return instruction.region(next(rule.name for rule in ROWS[instruction.operation].operands if rule.written))


def _shares(region: Region, tensor: Tensor, chip: NeuronChip) -> Sequence[tuple[int, float]]:
    """The DMA engines that serve a region, and of its bytes the part of each."""
    count = chip.dma_engines_per_core
    if not tensor.space.on_chip:
        return [(engine, 1 / count) for engine in range(count)]
    step, rows = region.pattern[0]
    first = tensor.start + region.offset // tensor.free
    return _rows_of_engines(first, max(step // tensor.free, 1), rows, max(chip.partition_count // count, 1), count)


@lru_cache(1024)
def _rows_of_engines(first: int, step: int, rows: int, served: int, count: int) -> Sequence[tuple[int, float]]:
    """Of `rows` partitions, `step` apart, the part that each engine serves: `served` neighbours each."""
    engines = Counter(min((first + row * step) // served, count - 1) for row in range(rows))
    return [(engine, taken / rows) for engine, taken in engines.items()]


def transfer_of(instruction: Instruction, tensors: Sequence[Tensor], chip: NeuronChip) -> Transfer:
    """What an instruction of the DMA engines asks of them on a chip."""
    target = _target(instruction)
    sources = list(_sources(instruction))
    ends = [(one, tensors[one.tensor]) for one in (*sources, target)]
    row_bytes = min(_run_bytes(*end) for end in ends)
    reached = GENERATIONS[generation_of(chip)].dma_reached
    if instruction.operation == "dma_transpose":
        row_bytes = _run_bytes(sources[0], tensors[sources[0].tensor])
        reached *= TRANSPOSED.get(tensors[sources[0].tensor].space, 1.0)
    written = target.size * tensors[target.tensor].dtype.bytes
    moved = max(sum(one.size * tensors[one.tensor].dtype.bytes for one in sources), written)
    descriptors = -(-moved // row_bytes)
    seconds = descriptors * max(row_bytes, FULL_BYTES) / (chip.dma_engine_bytes_per_s * reached)
    served = next((end for end in reversed(ends) if end[1].space.on_chip), ends[-1])
    of_hbm = sum(one.size * tensor.dtype.bytes for one, tensor in ends if tensor.space is Space.HBM)
    return Transfer(
        moved,
        descriptors,
        row_bytes,
        tuple((engine, seconds * part) for engine, part in _shares(*served, chip)),
        of_hbm / chip.core_hbm_bytes_per_s,
    )
