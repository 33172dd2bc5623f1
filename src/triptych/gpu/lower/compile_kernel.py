"""A kernel's machine code, one form at a time, from the cache where it is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from llvmlite import ir

from triptych.gpu.lower.analysis.kernel import KernelAnalysis
from triptych.gpu.lower.engine import Unit, load_units
from triptych.gpu.lower.kernel_code.body import LONG, KernelForm
from triptych.gpu.lower.kernel_code.converged import ConvergedForm
from triptych.gpu.lower.kernel_code.masked import MaskedForm
from triptych.gpu.lower.scheduling.scheduler import RUN

FORMS: Mapping[str, type[KernelForm]] = {"converged": ConvergedForm, "masked": MaskedForm}
LEVELS = {"converged": ((500, 2), (800, 1)), "masked": ((500, 1),)}
"""How hard LLVM's code generator works on a form of at most so many PTX instructions; on longer ones at level 0.
What it does at the higher levels takes a time that grows with the square of a block's length."""


@dataclass(frozen=True, slots=True)
class KernelCode:
    """Addresses: of a kernel's code in one form, and of the scheduler that runs it."""

    form: int
    run: int


def compile_form(
    key: str, form: str, instructions: int, analysis: Callable[[], KernelAnalysis], linked: Sequence[Unit]
) -> KernelCode:
    """A kernel's code in one form, linked with the units that it calls; `key` names the kernel.

    `analysis` is asked for only where the code is not in the cache.
    """
    symbol = f"triptych.kernel.{form}"

    def make() -> ir.Module:
        taken_apart = analysis()
        module = ir.Module(name=taken_apart.function.name)
        FORMS[form](taken_apart, module, symbol)
        return module

    level = next((level for most, level in LEVELS[form] if instructions <= most), 0)
    kernel = Unit(f"{key}/{form}", (symbol,), make, level, is_shared=False, keeps_blocks=instructions > LONG)
    addresses = load_units((*linked, kernel))
    return KernelCode(addresses[symbol], addresses[RUN])
