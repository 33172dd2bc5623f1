"""The SIMT machine: PTX text in, executed warps and counters out."""

from triptych.gpu.launch import run_launch
from triptych.gpu.run.module import Entry, GpuModule, Parameter, load
from triptych.gpu.run.variables import DeviceMemory
from triptych.gpu.syntax.ast import Variable
from triptych.gpu.syntax.variables import size_of

__all__ = ["DeviceMemory", "Entry", "GpuModule", "Parameter", "Variable", "load", "run_launch", "size_of"]
