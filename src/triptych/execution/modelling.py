"""A launch's record and a chip -> its place on the roofline, with the timeline of a NeuronCore's where there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from triptych import model, neuron
from triptych.chips import Chip, NeuronChip
from triptych.core.launches import LaunchRecord

if TYPE_CHECKING:  # a machine is imported when something runs on it, the model when somebody asks
    from triptych.model import Roofline, Timing
    from triptych.neuron.timeline import Timeline


def roofline_of(record: LaunchRecord, chip: Chip) -> Roofline:
    """The launch's place on the chip's roofline; of one on a NeuronCore the estimate is its timeline's length.

    Raises:
        UsageError: where the launch ran on a machine of another kind than the chip.
    """
    timeline = timeline_of(record, chip)
    return model.place(record, chip, None if timeline is None else _timing(timeline))


def timeline_of(record: LaunchRecord, chip: Chip) -> Timeline | None:
    """The timeline of what a NeuronCore executed, on a chip; None of any other launch."""
    if record.executed is None or not isinstance(chip, NeuronChip):
        return None
    return neuron.timeline_of_launch(record.executed, chip)


def _timing(timeline: Timeline) -> Timing:
    busy = {engine.value: seconds for engine, seconds in timeline.busy.items()}
    return model.Timing(timeline.seconds, busy, timeline.overlap, timeline.limited_by, len(timeline.work.cores))
