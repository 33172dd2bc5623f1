"""A kernel's analysis to machine code: one form at a time, from the cache where it is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from llvmlite import ir

from triptych.core.cache import key_of
from triptych.gpu.isa.binding import BoundInstruction
from triptych.gpu.isa.table import Effect
from triptych.gpu.lower.analysis import KernelAnalysis
from triptych.gpu.lower.body import KernelForm
from triptych.gpu.lower.converged import ConvergedForm
from triptych.gpu.lower.engine import (
    build_cached,
    load_object,
    require_access,
    require_copy,
    require_scheduler,
    require_shuffle,
)
from triptych.gpu.lower.masked import MaskedForm
from triptych.gpu.lower.memory import Access


@dataclass(frozen=True, slots=True)
class FormSpec:
    """A form of kernels: the class that emits it and how hard LLVM works on it."""

    form: type[KernelForm]
    level: int


FORMS: Mapping[str, FormSpec] = {
    "converged": FormSpec(ConvergedForm, 2),
    "masked": FormSpec(MaskedForm, 1),
}


def compile_form(analysis: KernelAnalysis, form: str, text_key: str) -> int:
    """The address of a kernel's code in one form; `text_key` names the PTX text that the analysis is of."""
    spec = FORMS[form]
    symbol = f"triptych.kernel.{form}"

    def make() -> ir.Module:
        module = ir.Module(name=analysis.function.name)
        spec.form(analysis, module, symbol)
        return module

    require_scheduler()
    for instruction in (i for block in analysis.bound for i in block):
        _require_helpers(instruction)
    code = build_cached(key_of(text_key, analysis.function.name, form), make, level=spec.level)
    return load_object(code, (symbol,))[symbol]


def _require_helpers(instruction: BoundInstruction) -> None:
    row, form = instruction.form.row, instruction.form
    space = form.get("space").partition("::")[0]
    space = "global" if space in ("const", "param") else space or "generic"
    match instruction.effect:
        case Effect.LOAD if row.mnemonic == "ldmatrix":
            require_access(Access("load", "shared", 4, 4))
        case Effect.LOAD | Effect.STORE:
            kind = "load" if instruction.effect is Effect.LOAD else "store"
            require_access(Access(kind, space, form.type.bytes, int(form.get("vec", "v1")[1:])))
        case Effect.ATOMIC:
            operation = form.get("operation") or "cas"
            require_access(Access(operation, space, form.type.bytes, 1, form.type.is_float, form.type.is_signed))
        case Effect.COPY if row.mnemonic == "cp" and form.immediates and instruction.sources[0].is_address:
            require_copy(form.immediates[0])
        case Effect.WARP if row.mnemonic == "shfl":
            require_shuffle()
        case _:
            return
