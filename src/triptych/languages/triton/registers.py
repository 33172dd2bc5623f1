"""What host code may ask of a compiled kernel that only the assembler knows: registers of a thread and spills
(`kernel.n_regs`, `kernel.n_spills`), and the GPU's own instructions (`kernel.asm["sass"]`).

PTX has none of these. Triton brings the assembler along, so it is run, on a kernel that is asked for them and on no
other. The machine itself runs the PTX.
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

_ELF = b"\x7fELF"


class Figure(Enum):
    """What stands in a compiled kernel for a figure that nobody has asked for yet."""

    REGISTERS = "registers of a thread, not yet asked of ptxas"
    SPILLS = "spilled registers of a thread, not yet asked of ptxas"


@dataclass(frozen=True, slots=True)
class Assembled:
    """What the assembler makes of a kernel; `spills` in 32-bit words of a thread's stack frame, as Triton has it."""

    registers: int
    spills: int
    binary: bytes


@lru_cache(maxsize=256)
def assemble(ptx: str) -> Assembled:
    """The one kernel in `ptx`, for the target that it names.

    Raises:
        CompileError: where ptxas refuses the text.
    """
    target = target_of_ptx(ptx)
    if target is None or (architecture := capability_of(target)) is None:
        raise CompileError("PTX without a .target, so ptxas cannot assemble it")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernel.ptx")
        source.write_text(ptx)
        command = [assembler(architecture), "-v", f"--gpu-name={target}", str(source), "-o", f"{folder}/kernel"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        binary = b"" if done.returncode else Path(folder, "kernel").read_bytes()
    log = done.stderr + done.stdout
    registers = re.search(r"Used (\d+) registers", log)
    if done.returncode or registers is None:
        raise CompileError(f"ptxas refused the kernel:\n{log.strip()}")
    frame = re.search(r"(\d+) bytes stack frame", log)
    return Assembled(int(registers[1]), int(frame[1]) // 4 if frame else 0, binary)


def make_disassembler(disassemble: Callable[..., Any]) -> Callable[..., Any]:
    """`get_sass`, which is given a kernel's binary: where that is PTX, as it is here, it is assembled first."""

    def get_sass(binary: bytes, *arguments: object) -> Any:  # noqa: ANN401  as Triton's own
        return disassemble(binary if binary.startswith(_ELF) else assemble(binary.decode()).binary, *arguments)

    return get_sass


def make_attribute(name: str, figure: Figure) -> Callable[[Any], property]:
    """A property in place of a compiled kernel's plain attribute `name`, which asks ptxas when it is first read."""

    def read(kernel: Any) -> int:  # noqa: ANN401  triton's CompiledKernel
        values = kernel.__dict__
        if name not in values:
            raise AttributeError(f"{name}: the kernel is not loaded yet (launch it first)")
        if values[name] is figure:
            assembled = assemble(kernel.function.ptx)
            values[name] = assembled.registers if figure is Figure.REGISTERS else assembled.spills
        return values[name]

    def write(kernel: Any, value: object) -> None:  # noqa: ANN401
        kernel.__dict__[name] = value

    return lambda original: property(read, write)
