"""The compiled kernels of the `.cu` files beside this module: each once in a process, when it is first wanted."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from triptych.execution.profile import active_target
from triptych.languages.cuda import Kernel
from triptych.languages.cuda import compile as compile_cuda

AMPERE, HOPPER = "sm_80", "sm_90a"
CPP = {"f32": "float", "f16": "half", "bf16": "__nv_bfloat16"}
"""C++'s names of element types."""


def kernel(file: str, name: str, arch: str | None = None) -> Kernel:
    """A kernel, or an instance of a template, of a file; for the target of the chip in force where none is named."""
    return _compiled(file, name, arch or active_target("gpu"))


@cache
def _compiled(file: str, name: str, arch: str) -> Kernel:
    return compile_cuda(Path(__file__).with_name(file), arch=arch, names=(name,) if "<" in name else ())[name]
