"""The SIMT machine: PTX text in, executed warps and counters out."""

from triptych.gpu.launch import run_launch
from triptych.gpu.run.module import Entry, GpuModule, Parameter, load
from triptych.gpu.run.variables import DeviceMemory

__all__ = ["DeviceMemory", "Entry", "GpuModule", "Parameter", "load", "run_launch"]
