"""Where a kernel's variables lie in the spaces that are its own: shared, local and parameter memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from triptych.core.errors import LaunchError
from triptych.gpu.hardware import LOCAL_BYTES, RESERVED_SHARED_BYTES
from triptych.gpu.syntax.ast import Function, Module, Variable
from triptych.gpu.syntax.variables import size_of


@dataclass(frozen=True, slots=True)
class VariableLayout:
    """Byte offsets of the variables that have a place in a space of their own, and the spaces' sizes."""

    shared: Mapping[str, int]
    shared_bytes: int
    """Static; dynamic shared memory follows."""
    dynamic_start: int
    """Where dynamic shared memory begins in a block that has some."""
    local: Mapping[str, int]
    local_bytes: int
    parameters: Mapping[str, int]
    parameter_bytes: int
    symbols: Mapping[str, int]
    """Module variables in global or constant memory: the index of each one's address in the table of symbols."""
    shared_start: int = 0
    """Where the kernel's own shared memory begins: behind the system's part, if it asks for that."""
    has_stack: bool = False
    """Whether functions call themselves or something is allocated on the stack, which lies behind local variables."""

    def total_shared_bytes(self, dynamic_bytes: int) -> int:
        """A block's shared memory, the system's part included, at a launch that gives it dynamic bytes.

        Without these it ends where its variables do.
        """
        return self.dynamic_start + dynamic_bytes if dynamic_bytes else self.shared_bytes


def lay_out_shared(module: Module, function: Function, start: int = 0) -> tuple[dict[str, int], int, int]:
    """The byte offsets of a kernel's shared variables from `start` on, the static ones' end, the dynamic start."""
    shared = [v for v in (*module.variables.values(), *function.variables) if v.space == "shared"]
    dynamic = [v for v in shared if v.count == 0]
    offsets, end = _lay_out([v for v in shared if v.count != 0], start)
    start = end
    if dynamic:
        align = max(16, *(v.align for v in dynamic))
        start = -(-end // align) * align
        offsets |= {v.name: start for v in dynamic}
    return offsets, end, start


def lay_out_variables(
    module: Module,
    function: Function,
    symbols: Mapping[str, int],
    *,
    has_stack: bool = False,
    reaches_reserved: bool = False,
) -> VariableLayout:
    """Where the variables lie that a kernel can name; `symbols`: the module variables' places in the table of symbols.

    `reaches_reserved`: it asks where the system's part of shared memory is.

    Raises:
        LaunchError: it needs more local memory than a thread has.
    """
    own = list(function.variables)
    shared_start = RESERVED_SHARED_BYTES if reaches_reserved else 0
    shared_offsets, shared_bytes, dynamic_start = lay_out_shared(module, function, shared_start)
    local_offsets, local_bytes = _lay_out([v for v in own if v.space == "local"])
    if local_bytes > LOCAL_BYTES:
        message = (
            f"kernel {function.name} needs {local_bytes} bytes of local memory a thread; the limit is {LOCAL_BYTES}"
        )
        raise LaunchError(message, hint="use a smaller local array")
    parameters, parameter_bytes = _lay_out(list(function.parameters))
    return VariableLayout(
        shared_offsets, shared_bytes, dynamic_start, local_offsets, local_bytes,
        parameters, parameter_bytes, symbols, shared_start, has_stack,
    )  # fmt: skip


def _lay_out(variables: list[Variable], start: int = 0) -> tuple[dict[str, int], int]:
    offsets: dict[str, int] = {}
    offset = start
    for variable in variables:
        align = max(variable.align, 1)
        offset = -(-offset // align) * align
        offsets[variable.name] = offset
        offset += size_of(variable)
    return offsets, offset
