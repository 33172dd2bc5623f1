"""Arithmetic rounded other than to nearest, as helpers: the processor's own rounding mode is switched around it."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

import llvmlite.binding as llvm
from llvmlite import ir

from triptych.gpu.isa.types import F32, ScalarType
from triptych.gpu.lower.primitives.emitter import DOUBLE, FLOAT, I32, VOID, Emitter, start_function, vector

_NEAREST = 1
_X86 = "x86_64"
_MXCSR = 0x1F80
"""The register at a thread's start: exceptions masked, rounding to nearest, subnormals kept."""
_MXCSR_MODES = {0: 3, 1: 0, 2: 2, 3: 1}
"""LLVM's numbers of the modes as the register's bits 13 and 14 have them."""
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
    _switch(e, mode)
    result = constrained(e, name, operands)
    _switch(e, ir.Constant(I32, _NEAREST))
    e.b.ret(result)
    return module


@contextmanager
def rounded(e: Emitter, direction: str) -> Generator[None]:
    """Code whose `constrained` operations are rounded in one of `DIRECTIONS`."""
    _switch(e, ir.Constant(I32, DIRECTIONS[direction]))
    yield
    _switch(e, ir.Constant(I32, _NEAREST))


def constrained(e: Emitter, name: str, operands: Sequence[ir.Value]) -> ir.Value:
    """An operation on vectors, by LLVM's name, rounded in the mode that is set when it runs."""
    kind = operands[0].type
    symbol = f"llvm.experimental.constrained.{name}.v{kind.count}f{32 if kind.element == FLOAT else 64}"
    function = e.module.globals.get(symbol)
    if function is None:
        words: list[ir.Type] = [ir.MetaDataType(), ir.MetaDataType()]
        function = ir.Function(e.module, ir.FunctionType(kind, [*[kind] * len(operands), *words]), symbol)
    modes = [ir.MetaDataString(e.module, word) for word in ("round.dynamic", "fpexcept.ignore")]
    return e.b.call(function, [*operands, *modes])


def _switch(e: Emitter, mode: ir.Value) -> None:
    if llvm.get_default_triple().startswith(_X86):
        _switch_x86(e, mode)
    else:
        e.intrinsic("llvm.set.rounding", VOID, [mode])


def _switch_x86(e: Emitter, mode: ir.Value) -> None:
    """Sets the vector unit's register alone: LLVM would set the x87 unit's too, which takes 15 times as long."""
    bits = ir.Constant(I32, 0)
    for number, own in _MXCSR_MODES.items():
        is_it = e.b.icmp_unsigned("==", mode, ir.Constant(I32, number))
        bits = e.b.select(is_it, ir.Constant(I32, _MXCSR | own << 13), bits)
    e.intrinsic("llvm.x86.sse.ldmxcsr", VOID, [e.variable(I32, bits)])
