"""A kernel's machine code, one form at a time, from the cache where it is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from llvmlite import ir

from triptych.gpu.lower.analysis.kernel import KernelAnalysis
from triptych.gpu.lower.kernel_code.body import LONG, KernelForm
from triptych.gpu.lower.kernel_code.converged import ConvergedForm
from triptych.gpu.lower.kernel_code.masked import MaskedForm
from triptych.gpu.lower.scheduling.scheduler import RUN
from triptych.native.engine import Unit, is_kept, load_units

FORMS: Mapping[str, type[KernelForm]] = {"converged": ConvergedForm, "masked": MaskedForm}
LEVELS = {"converged": ((500, 2), (800, 1)), "masked": ((500, 1),)}
"""How hard LLVM's code generator works to optimise a form of at most so many PTX instructions; longer ones stay at
level 0. What it does at the higher levels takes a time that grows with the square of a block's length."""


@dataclass(frozen=True, slots=True)
class KernelCode:
    """A kernel's code in one form."""

    form: int
    """Its address."""
    run: int
    """The address of the scheduler that runs it."""
    optimised: bool
    """Whether nothing better can be made."""


@dataclass(frozen=True, slots=True)
class FormSource:
    """What a kernel's code in one form is made of."""

    key: str
    """Names the kernel."""
    form: str
    instructions: int
    """PTX instructions, those of the functions it calls included."""
    analysis: Callable[[], KernelAnalysis]
    """Asked for only where the code is not in the cache."""
    linked: Sequence[Unit]
    """The units that it calls."""

    @property
    def best_level(self) -> int:
        """That of optimised code."""
        return next((level for most, level in LEVELS[self.form] if self.instructions <= most), 0)

    @property
    def is_kept_optimised(self) -> bool:
        """Whether the cache has optimised code."""
        return is_kept(self._unit(self.best_level))

    def compile(self, *, optimise: bool) -> KernelCode:
        """The code, linked with the units that it calls."""
        level = self.best_level if optimise else 0
        unit = self._unit(level)
        addresses = load_units((*self.linked, unit))
        return KernelCode(addresses[self._symbol], addresses[RUN], level == self.best_level)

    @property
    def _symbol(self) -> str:
        return f"triptych.kernel.{self.form}"

    def _unit(self, level: int) -> Unit:
        make = partial(self._make, is_brief=level < self.best_level)
        return Unit(
            f"{self.key}/{self.form}", (self._symbol,), make, level,
            is_shared=False, keeps_blocks=self.instructions > LONG,
        )  # fmt: skip

    def _make(self, *, is_brief: bool) -> ir.Module:
        taken_apart = self.analysis()
        module = ir.Module(name=taken_apart.function.name)
        FORMS[self.form](taken_apart, module, self._symbol, is_brief=is_brief)
        return module
