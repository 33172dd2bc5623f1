"""The SIMT machine: PTX text in, executed warps and counters out."""

from triptych.gpu.run.launch import run_launch
from triptych.gpu.run.module import Entry, GpuModule, Parameter, load

__all__ = ["Entry", "GpuModule", "Parameter", "load", "run_launch"]
