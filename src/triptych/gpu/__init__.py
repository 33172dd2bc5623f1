"""The SIMT machine: PTX text in, executed warps and counters out.

It is large, and a program that switches a language on may never launch: each name is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from triptych.gpu.launch import run_launch
    from triptych.gpu.run.module import Entry, GpuModule, Parameter, load
    from triptych.gpu.run.variables import DeviceMemory
    from triptych.gpu.syntax.ast import Variable
    from triptych.gpu.syntax.variables import size_of

__all__ = ["DeviceMemory", "Entry", "GpuModule", "Parameter", "Variable", "load", "run_launch", "size_of"]

_ORIGINS = {
    "launch": "run_launch",
    "run.module": "Entry GpuModule Parameter load",
    "run.variables": "DeviceMemory",
    "syntax.ast": "Variable",
    "syntax.variables": "size_of",
}
_NAMES = {name: origin for origin, names in _ORIGINS.items() for name in names.split()}


if not TYPE_CHECKING:  # a type checker reads the imports above, and finds misspelt names

    def __getattr__(name: str) -> object:
        """The name, imported now; from then on it is an ordinary attribute."""
        if name not in _NAMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{_NAMES[name]}"), name)
        return value
