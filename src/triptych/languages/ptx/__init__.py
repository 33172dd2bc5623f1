"""PTX: what the other languages become, written by hand or kept from elsewhere."""

from __future__ import annotations

import os

from triptych.languages.launcher import BoundKernel, Kernel
from triptych.languages.ptx.module import PtxModule, read_text
from triptych.languages.variables import ModuleVariable, ModuleVariables

__all__ = ["BoundKernel", "Kernel", "ModuleVariable", "ModuleVariables", "PtxModule", "compile"]


def compile(source: str | os.PathLike[str]) -> PtxModule:
    """Reads PTX; `compile(text)["name"]` is a kernel.

    Args:
        source: the text, or the path of a file (a string of one line without braces is a path).

    Raises:
        PtxSyntaxError: where the text does not follow the manual's grammar, at the line of the PTX.
        UsageError: for a file that cannot be read.
    """
    return PtxModule(*read_text(source))
