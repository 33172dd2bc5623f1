"""The NeuronCore machine: the table of its instructions, the execution of their traces, and when each of them runs.

It is large, and a program that switches a language on may never launch: each name is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from triptych.neuron.run import full_grid, run_launch
    from triptych.neuron.timeline.launch import timeline_of_launch

__all__ = ["full_grid", "run_launch", "timeline_of_launch"]

_NAMES = {"full_grid": "run", "run_launch": "run", "timeline_of_launch": "timeline.launch"}


if not TYPE_CHECKING:  # a type checker reads the imports above, and finds misspelt names

    def __getattr__(name: str) -> object:
        """The name, imported now; from then on it is an ordinary attribute."""
        if name not in _NAMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{_NAMES[name]}"), name)
        return value
