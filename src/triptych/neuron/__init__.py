"""The NeuronCore machine: the table of its instructions, the execution of their traces, and when each of them runs.

It is large, and a program that switches a language on may never launch: each name is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from triptych.core.late_imports import importing

if TYPE_CHECKING:
    from triptych.neuron.run import full_grid, run_launch
    from triptych.neuron.timeline.launch import timeline_of_launch

__all__ = ["full_grid", "run_launch", "timeline_of_launch"]

_ORIGINS = {"run": "full_grid run_launch", "timeline.launch": "timeline_of_launch"}

if not TYPE_CHECKING:
    __getattr__ = importing(__name__, _ORIGINS)
