"""The timeline of an executed launch, kept for the launches that were asked for last."""

from __future__ import annotations

from dataclasses import fields

from triptych.chips import NeuronChip
from triptych.core.launches import Executed
from triptych.neuron.run.launch import load_trace
from triptych.neuron.timeline.timeline import Timeline, timeline_of

_KEPT = 8
_known: dict[tuple[object, ...], Timeline] = {}


def timeline_of_launch(executed: Executed, chip: NeuronChip) -> Timeline:
    """When each executed instruction ran on a chip, modelled; equal launches on equal chips have one timeline."""
    key = (executed.program, executed.steps, *_figures(chip))
    found = _known.pop(key, None)
    if found is None:
        trace, _ = load_trace(executed.program)
        found = timeline_of(trace, executed.steps, chip)
    _known[key] = found
    while len(_known) > _KEPT:
        _known.pop(next(iter(_known)), None)
    return found


def _figures(chip: NeuronChip) -> tuple[object, ...]:
    """All that a chip is, but for its sources and peaks."""
    return tuple(value for one in fields(chip) if isinstance(value := getattr(chip, one.name), str | int | float))
