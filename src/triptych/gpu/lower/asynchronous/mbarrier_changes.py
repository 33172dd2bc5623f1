"""The operations on mbarriers as generated code, as `isa/asynchronous/mbarrier_object.py` describes them."""

from __future__ import annotations

from functools import partial

from llvmlite import ir

from triptych.gpu.isa.asynchronous.mbarrier_object import OPERATIONS, TRANSACT
from triptych.gpu.lower.asynchronous.mbarrier import CHANGED, COMPLETE, build_complete, change_name
from triptych.gpu.lower.primitives.emitter import I64, POINTER, constant, start_function
from triptych.gpu.lower.primitives.machine import LlvmMachine
from triptych.gpu.lower.primitives.values import Value
from triptych.gpu.lower.records import MBARRIER_FAULTS
from triptych.gpu.lower.watching.layout import watched_name
from triptych.native.engine import Unit


def change_unit(operation: str) -> Unit:
    """The unit with the code of an operation on one object."""
    name = change_name(operation)
    return Unit(name, (name,), partial(build_change, operation))


def build_change(operation: str) -> ir.Module:
    """The module with an operation on one object, which changes it where there is no fault."""
    name, row = change_name(operation), OPERATIONS[operation]
    module = ir.Module(name=name)
    e = start_function(module, name, CHANGED, [POINTER, *[I64] * row.operands])
    place, *operands = e.function.args
    nowhere = ir.Constant(POINTER, None)
    old = e.b.load(place, typ=I64)
    values = (Value(value, True) for value in (old, *operands))
    new, fault = row.change(LlvmMachine(e, nowhere, nowhere), *values)
    fine = e.b.icmp_unsigned("==", fault.ir, constant(0))
    if not row.only_reads:
        with e.when(fine, likely=True):
            e.b.store(new.ir, place)
    kind = e.b.select(fine, constant(0), e.b.add(fault.ir, constant(MBARRIER_FAULTS)))
    given = e.b.insert_value(ir.Constant(CHANGED, ir.Undefined), old, 0)
    e.b.ret(e.b.insert_value(given, kind, 1))
    return module


def completion_units(*, watched: bool) -> tuple[Unit, ...]:
    """What code is linked with that completes transactions."""
    symbol = watched_name(COMPLETE) if watched else COMPLETE
    return change_unit(TRANSACT), Unit(symbol, (symbol,), partial(build_complete, watched=watched))
