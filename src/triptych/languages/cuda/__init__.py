"""CUDA C++: compiled to PTX by NVIDIA's runtime compiler, with no GPU and no driver."""

from __future__ import annotations

import os
from collections.abc import Sequence

from triptych.execution.profile import active_target
from triptych.languages.cuda.compiling import check_options, listed
from triptych.languages.cuda.module import CudaModule
from triptych.languages.cuda.source import read_source
from triptych.languages.launcher import BoundKernel, Kernel
from triptych.languages.variables import ModuleVariable, ModuleVariables

__all__ = ["BoundKernel", "CudaModule", "Kernel", "ModuleVariable", "ModuleVariables", "compile"]


def compile(
    source: str | os.PathLike[str],
    arch: str | None = None,
    options: Sequence[str] = (),
    names: Sequence[str] = (),
) -> CudaModule:
    """Compiles CUDA C++; `compile(source)["vec_add"]` is a kernel.

    Args:
        source: the source, or the path of a file (a string of one line without braces is a path).
        arch: the compile target, as `sm_90`; that of the chip in force where it is not said.
        options: options of NVRTC, for instance `["-DN=4", "--use_fast_math", "-I", "include"]`.
        names: templates to instantiate along with the source, as `saxpy<float>`; others are instantiated when they are
            asked for.

    Returns:
        The module; its `log` holds the compiler's warnings.

    Raises:
        CompileError: with the compiler's own log, at the line of the first error.
        UsageError: for a file that cannot be read, options of the wrong form, or an unknown target.
    """
    return CudaModule(read_source(source), arch or active_target("gpu"), check_options(options), listed(names))
