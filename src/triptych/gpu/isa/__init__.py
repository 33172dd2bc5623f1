"""The PTX instruction table: importing this package fills it, in the order of the manual's chapters."""

from triptych.gpu.isa import (
    accesses,
    approximate,
    atomics,
    comparison,
    control,
    conversion,
    extended,
    fields,
    floating,
    formats,
    hints,
    integer,
    logic,
    movement,
    narrow,
    paired,
    video,
    warps,
)
from triptych.gpu.isa.table import TABLE, Effect, Form, OperandSlot, Pipe, Row, find_form

MODULES = (
    integer,
    fields,
    extended,
    floating,
    paired,
    narrow,
    approximate,
    comparison,
    logic,
    movement,
    accesses,
    conversion,
    formats,
    control,
    atomics,
    warps,
    video,
    hints,
)
"""The modules that hold the rows."""

__all__ = ["MODULES", "TABLE", "Effect", "Form", "OperandSlot", "Pipe", "Row", "find_form"]
