"""The SIMT machine: PTX text in, executed warps and counters out.

It is large, and a program that switches a language on may never launch: each name is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from triptych.core.late_imports import importing

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

if not TYPE_CHECKING:
    __getattr__ = importing(__name__, _ORIGINS)
