"""What generations of NeuronCore have beside the rates of their instructions: clocks, ports, the DMA engines' reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from triptych.chips import NeuronChip
from triptych.neuron.isa.hardware import Engine


@dataclass(frozen=True, slots=True)
class Generation:
    """What a generation of NeuronCore has beside its instructions' rates."""

    shares_port: frozenset[Engine]
    """Engines that cannot work at the same time."""
    dma_reached: float
    """Of a DMA engine's bandwidth the part that is reached."""
    source: str


GENERATIONS: Mapping[int, Generation] = {
    2: Generation(
        frozenset({Engine.VECTOR, Engine.GPSIMD}), 17 / 27.2,
        "the architecture guide of NeuronCore-v2: the Vector engine and GPSIMD share a port of SBUF; about 17 of 27.2"
        " bytes a nanosecond are reached",
    ),
    3: Generation(frozenset(), 23 / 27.2, "the architecture guide of NeuronCore-v3: about 23 of 27.2 B/ns are reached"),
    4: Generation(frozenset(), 33 / 38.4, "the architecture guide of NeuronCore-v4: about 33 of 38.4 B/ns are reached"),
}  # fmt: skip
"""By generation of NeuronCore."""


def generation_of(chip: NeuronChip) -> int:
    """2, 3 or 4: NeuronCore-v2, -v3, -v4."""
    return int(chip.core_generation.removeprefix("gen"))


def clocks_of(chip: NeuronChip) -> Mapping[Engine, float]:
    """Hz by engine; the Sync engine's, which is not published, is taken for the Scalar engine's."""
    return {
        Engine.TENSOR: chip.tensor_clock_hz,
        Engine.VECTOR: chip.vector_clock_hz,
        Engine.SCALAR: chip.scalar_clock_hz,
        Engine.GPSIMD: chip.gpsimd_clock_hz,
        Engine.SYNC: chip.scalar_clock_hz,
    }
