"""The NeuronCore's timeline: when each instruction of an executed trace runs on which queue. All of it is modelled."""

from triptych.neuron.timeline.causes import Cause
from triptych.neuron.timeline.timeline import EngineUse, Event, PathLine, Stall, Timeline, timeline_of

__all__ = ["Cause", "EngineUse", "Event", "PathLine", "Stall", "Timeline", "timeline_of"]
