"""The model: a launch's counters and a chip -> intensity, roofline, time. Every number here is modelled."""

from triptych.model.place import place
from triptych.model.roofline import Roof, Roofline, Traffic
from triptych.model.timing import Timing

__all__ = ["Roof", "Roofline", "Timing", "Traffic", "place"]
