"""Registers of a thread and spills, which host code may ask of a compiled kernel (`kernel.n_regs`, `kernel.n_spills`).

PTX has no registers to count: only the assembler knows. Triton brings it along, so it is run, on a kernel whose figures
are asked for and on no other.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any

from triptych.core.errors import CompileError
from triptych.core.gpu_targets import capability_of, target_of_ptx
from triptych.languages.triton.internals import assembler


class Figure(Enum):
    """What stands in a compiled kernel for a figure that nobody has asked for yet."""

    REGISTERS = "registers of a thread, not yet asked of ptxas"
    SPILLS = "spilled registers of a thread, not yet asked of ptxas"


@dataclass(frozen=True, slots=True)
class Resources:
    """What the assembler gives a thread; `spills` in 32-bit words of its stack frame, as Triton's own driver has it."""

    registers: int
    spills: int


@lru_cache(maxsize=1024)
def assemble(ptx: str) -> Resources:
    """The resources of the one kernel in `ptx`, on the target that it names.

    Raises:
        CompileError: where ptxas refuses the text.
    """
    target = target_of_ptx(ptx)
    if target is None or (architecture := capability_of(target)) is None:
        raise CompileError("PTX without a .target, so ptxas cannot count its registers")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernel.ptx")
        source.write_text(ptx)
        command = [assembler(architecture), "-v", f"--gpu-name={target}", str(source), "-o", f"{folder}/kernel"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    log = done.stderr + done.stdout
    registers = re.search(r"Used (\d+) registers", log)
    if done.returncode or registers is None:
        raise CompileError(f"ptxas refused the kernel:\n{log.strip()}")
    frame = re.search(r"(\d+) bytes stack frame", log)
    return Resources(int(registers[1]), int(frame[1]) // 4 if frame else 0)


def make_attribute(name: str, figure: Figure) -> Callable[[Any], property]:
    """A property in place of a compiled kernel's plain attribute `name`, which asks ptxas when it is first read."""

    def read(kernel: Any) -> int:  # noqa: ANN401  triton's CompiledKernel
        values = kernel.__dict__
        if name not in values:
            raise AttributeError(f"{name}: the kernel is not loaded yet (launch it first)")
        if values[name] is figure:
            resources = assemble(kernel.function.ptx)
            values[name] = resources.registers if figure is Figure.REGISTERS else resources.spills
        return values[name]

    def write(kernel: Any, value: object) -> None:  # noqa: ANN401
        kernel.__dict__[name] = value

    return lambda original: property(read, write)
