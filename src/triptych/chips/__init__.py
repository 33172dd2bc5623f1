"""Chips: what the hardware can do, one TOML file each, with a source beside every value.

`load` takes a chip's name or the path of a user's own file of the same form; nothing here imports more than the
standard library.
"""

from triptych.chips.catalogue import DEFAULT_BY_MACHINE, ChipChoice, load, names, targets
from triptych.chips.chip import Chip, ErrorBar, GpuChip, NeuronChip
from triptych.chips.facts import Fact

__all__ = [
    "DEFAULT_BY_MACHINE",
    "Chip",
    "ChipChoice",
    "ErrorBar",
    "Fact",
    "GpuChip",
    "NeuronChip",
    "load",
    "names",
    "targets",
]
