"""Which of a launch's arguments is the null pointer that a thread went through."""

from __future__ import annotations

from triptych.gpu.isa.spaces import PARAM
from triptych.gpu.run.kernel import Kernel
from triptych.gpu.run.worker import LaunchState
from triptych.gpu.syntax.ast import Address, Register, Symbol


def null_arguments(kernel: Kernel, state: LaunchState) -> str:
    """The pointers that are 0, as messages call them: `argument 1, x or argument 2, y`; empty where none is.

    PTX calls pointers and integers of 8 bytes alike. Those that the kernel turns into addresses of a space (`cvta`, as
    compilers write for pointers) go before the others.
    """
    found = {kernel.entry.parameters[position].name: label for position, label in state.null_arguments.items()}
    pointers = _converted(kernel)
    return " or ".join([label for name, label in found.items() if name in pointers] or found.values())


def _converted(kernel: Kernel) -> set[str]:
    """The parameters of which a generic address is made."""
    loaded: dict[str, str] = {}
    converted: set[str] = set()
    for bound in (one for block in kernel.analysis.bound for one in block):
        match bound.instruction.operands:
            case Register(name), Address(Symbol(parameter)) if bound.form.space is PARAM:
                loaded[name] = parameter
            case _, Register(name) if bound.form.row.converts_addresses and name in loaded:
                converted.add(loaded[name])
            case _:
                pass
    return converted
