"""Compiled kernels as Triton loads them, which is before their first launch and without all that runs one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from triptych.core.errors import UsageError

ELF_MAGIC = b"\x7fELF"


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A loaded kernel: its entry's name, its PTX and its dynamic shared memory in bytes; one object for equal ones."""

    name: str
    ptx: str
    shared_bytes: int


class SimulatedLauncher:
    """What a compiled kernel launches with where that is ours (`launcher.Launcher`)."""


@lru_cache(maxsize=1024)
def load_function(name: str, binary: bytes | str, shared_bytes: int) -> Function:
    """The kernel in what Triton calls the binary, which is PTX text here.

    Raises:
        UsageError: for a real cubin, compiled before the activation.
    """
    if isinstance(binary, bytes):
        if binary.startswith(ELF_MAGIC):
            raise UsageError(
                f"kernel '{name}' was compiled to a cubin before triptych's driver was activated",
                hint="activate first, then compile",
            )
        binary = binary.decode()
    return Function(name, binary, shared_bytes)


def make_loading(load: Callable[[Any], None]) -> Callable[[Any], None]:
    """`CompiledKernel._init_handles`, which loads a kernel that has no module yet, as ours never have: once for all."""

    def load_once(kernel: Any) -> None:  # noqa: ANN401  triton's CompiledKernel
        if not isinstance(getattr(kernel, "_run", None), SimulatedLauncher):
            load(kernel)

    return load_once
