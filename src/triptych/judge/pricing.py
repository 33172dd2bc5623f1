"""What a run takes on a chip, modelled: the estimate of each launch, and of what the host asks for between them."""

from __future__ import annotations

from collections.abc import Sequence

from triptych.chips import Chip, GpuChip
from triptych.core.dtypes import DType
from triptych.core.plan import Copy, Fill
from triptych.execution.modelling import roofline_of
from triptych.judge.verification.steps import Step
from triptych.operators.floor import floor
from triptych.operators.operator import Operator, Values


def launch_cost(chip: Chip) -> float:
    """Seconds of the shortest launch: a GPU's overhead; of a NeuronCore one load's and one store's latency."""
    return chip.launch_overhead_s if isinstance(chip, GpuChip) else 2 * chip.dma_latency_s


def limit(operator: Operator, size: Values, dtype: DType, chip: Chip) -> float:
    """Seconds that no program takes less than: one launch, and the floor of the least work."""
    return launch_cost(chip) + floor(operator, size, dtype, chip).seconds


def estimate(steps: Sequence[Step], chip: Chip) -> float:
    """Seconds of all that a run did, one after the other. A fill or a copy is a launch that moves its bytes.

    Raises:
        UsageError: where a launch ran on a machine of another kind than the chip.
    """
    total = 0.0
    for step in steps:
        if step.record is not None:
            total += roofline_of(step.record, chip).estimate_s
        elif isinstance(step.node, Fill | Copy):
            moved = step.node.target.nbytes * (2 if isinstance(step.node, Copy) else 1)
            total += launch_cost(chip) + moved / chip.memory_bytes_per_s
    return total
