"""A kernel's machine code, one form at a time, from the cache where it is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from llvmlite import ir

from triptych.gpu.lower.analysis import KernelAnalysis
from triptych.gpu.lower.body import KernelForm
from triptych.gpu.lower.converged import ConvergedForm
from triptych.gpu.lower.engine import Unit, load_units
from triptych.gpu.lower.masked import MaskedForm
from triptych.gpu.lower.units import RUN


@dataclass(frozen=True, slots=True)
class FormSpec:
    """A form of kernels: the class that emits it and how hard LLVM works on it."""

    form: type[KernelForm]
    level: int


FORMS: Mapping[str, FormSpec] = {
    "converged": FormSpec(ConvergedForm, 2),
    "masked": FormSpec(MaskedForm, 1),
}


@dataclass(frozen=True, slots=True)
class KernelCode:
    """Addresses: of a kernel's code in one form, and of the scheduler that runs it."""

    form: int
    run: int


def compile_form(key: str, form: str, analysis: Callable[[], KernelAnalysis], linked: Sequence[Unit]) -> KernelCode:
    """A kernel's code in one form, linked with the units that it calls; `key` names the kernel.

    `analysis` is asked for only where the code is not in the cache.
    """
    spec = FORMS[form]
    symbol = f"triptych.kernel.{form}"

    def make() -> ir.Module:
        taken_apart = analysis()
        module = ir.Module(name=taken_apart.function.name)
        spec.form(taken_apart, module, symbol)
        return module

    kernel = Unit(f"{key}/{form}", (symbol,), make, spec.level, is_shared=False)
    addresses = load_units((*linked, kernel))
    return KernelCode(addresses[symbol], addresses[RUN])
