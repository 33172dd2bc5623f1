"""The SIMT machine: PTX text in, executed warps and counters out."""

from triptych.gpu.run.kernel import Entry, GpuModule, Parameter, load
from triptych.gpu.run.launch import GpuLimits, run_launch

__all__ = ["Entry", "GpuLimits", "GpuModule", "Parameter", "load", "run_launch"]
