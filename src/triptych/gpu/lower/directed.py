"""Arithmetic rounded other than to nearest, as helpers: the processor's own rounding mode is switched around it."""

from __future__ import annotations

from collections.abc import Mapping

from llvmlite import ir

from triptych.gpu.isa.types import F32, ScalarType
from triptych.gpu.lower.emitter import DOUBLE, FLOAT, I32, VOID, start_function, vector

_NEAREST = 1
DIRECTIONS: Mapping[str, int] = {"rz": 0, "rp": 2, "rm": 3}
"""PTX's modes as LLVM numbers them (LLVM language reference, llvm.set.rounding)."""
_OPERATIONS: Mapping[str, tuple[str, int]] = {
    "add": ("fadd", 2), "sub": ("fsub", 2), "mul": ("fmul", 2), "div": ("fdiv", 2), "fma": ("fma", 3),
    "sqrt": ("sqrt", 1),
}  # fmt: skip
"""LLVM's names, and the operands."""


def directed_name(operation: str, t: ScalarType) -> str:
    """The helper's symbol."""
    return f"triptych.directed.{operation}.{t}"


def build_directed(operation: str, t: ScalarType) -> ir.Module:
    """The module with `(mode, operands…) -> result`, the mode being one of `DIRECTIONS`."""
    name, count = _OPERATIONS[operation]
    symbol = directed_name(operation, t)
    module = ir.Module(name=symbol)
    kind = vector(FLOAT if t is F32 else DOUBLE)
    e = start_function(module, symbol, kind, [I32, *[kind] * count])
    mode, *operands = e.function.args
    switch = ir.Function(module, ir.FunctionType(VOID, [I32]), "llvm.set.rounding")
    words: list[ir.Type] = [ir.MetaDataType(), ir.MetaDataType()]
    constrained = ir.Function(
        module,
        ir.FunctionType(kind, [*[kind] * count, *words]),
        f"llvm.experimental.constrained.{name}.v{kind.count}f{t.bits}",
    )
    e.b.call(switch, [mode])
    modes = [ir.MetaDataString(module, word) for word in ("round.dynamic", "fpexcept.ignore")]
    result = e.b.call(constrained, [*operands, *modes])
    e.b.call(switch, [ir.Constant(I32, _NEAREST)])
    e.b.ret(result)
    return module
