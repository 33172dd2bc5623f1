"""What the operands of a function become in a joined kernel: new names, and places in frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from triptych.gpu.flow.call_frames import WAY_BACK, Frame
from triptych.gpu.flow.find_functions import CallGraph, refuse
from triptych.gpu.syntax.ast import (
    Address,
    AddressList,
    Function,
    Guard,
    Instruction,
    Integer,
    Not,
    Operand,
    Pair,
    Register,
    Statement,
    Symbol,
    Variable,
    Vector,
)
from triptych.gpu.syntax.variables import size_of

FRAME = Register("&frame")
"""Where the running function's frame starts in local memory."""
STACK = "&stack"
"""The local variable in which the frames of called functions lie."""
OWN = "&calls"
"""The local variable that is the kernel's own frame.

Names that begin with `&`, behind a function's, are ours: no PTX text can have them.
"""
ENTRY, BACK = "::&entry", "&back"
"""How the labels of a function's first instruction end, and those behind calls."""


def entry_label(name: str) -> str:
    """The label of a function's first instruction."""
    return f"{name}{ENTRY}"


def return_register(name: str) -> str:
    """Which of its callers a function returns to."""
    return f"{name}::{WAY_BACK}"


@dataclass(slots=True)
class Joined:
    """What the bodies of all functions need besides themselves."""

    calls: CallGraph
    frames: Mapping[str, Frame]
    addresses: Mapping[str, int]
    """Of the module's functions."""
    callers: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """By function: the labels that it returns to, in the order of the numbers in its return register."""
    registers: dict[str, str] = field(default_factory=dict[str, str])
    """All registers by their new names."""


class FunctionWriter:
    """Writes the statements of one function with the names that they have in the joined kernel."""

    def __init__(self, joined: Joined, function: Function) -> None:
        """Nothing yet."""
        self.joined = joined
        self.function = function
        self.frame = joined.frames[function.name]
        self.is_kernel = function.is_entry
        self.prefix = "" if self.is_kernel else f"{function.name}::"
        self.statements: list[Statement] = []
        self.locals: dict[tuple[str, int, int], str] = {}
        """The register that holds the address of a local variable: by name, offset and bits."""
        self.variables = {v.name: v for v in (*function.results, *function.parameters, *function.variables)}
        self.now: Instruction | None = None
        """The instruction of the text that what is added is for."""
        for name, kind in function.registers.items():
            joined.registers[self.prefix + name] = kind

    def _add(self, opcode: str, *operands: Operand, guard: Guard | None = None) -> None:
        """Adds an instruction that the text does not have, at the place of the one that it is for."""
        mnemonic, *modifiers = opcode.split(".")
        now = self.now
        line, origin = (self.function.line, None) if now is None else (now.line, now.origin)
        self.statements.append(Instruction(mnemonic, tuple(modifiers), operands, guard, line, origin, added=True))

    def _register(self, name: str, kind: str) -> str:
        name = f"{self.prefix}&{name}.{kind}"
        self.joined.registers[name] = kind
        return name

    # Operands ---------------------------------------------------------------------------------------------------

    def _operand(self, operand: Operand, bits: int = 64) -> Operand:
        """An operand with its new names; the address of a local variable is wanted in `bits` bits."""
        match operand:
            case Register(name):
                return Register(self.prefix + name) if name in self.function.registers else operand
            case Not(inner):
                return Not(Register(self.prefix + inner.name))
            case Vector(elements):
                return Vector(tuple(self._operand(e) for e in elements))
            case AddressList(elements):
                return AddressList(tuple(self._operand(e) for e in elements))
            case Pair(first, second):
                return Pair(self._operand(first), self._operand(second))
            case Address(base, offset):
                if isinstance(base, Symbol) and base.name in self.frame.places:
                    return self._own(base.name, base.offset + offset)
                moved = self._operand(base)
                return Address(moved, offset) if isinstance(moved, Register | Symbol | Integer) else operand
            case Symbol(name, offset):
                return self._symbol(name, offset, bits)
            case _:
                return operand

    def _symbol(self, name: str, offset: int, bits: int) -> Operand:
        if name in self.frame.places and not self.is_kernel:
            key = (name, offset, bits)
            if key not in self.locals:
                self.locals[key] = self._register(f"{name}+{offset}", f"b{bits}")
            return Register(self.locals[key])
        own = self.variables.get(name)
        if own is not None and own.space == "shared":
            return Symbol(self.prefix + name, offset)
        if own is None and name in self.joined.addresses:
            return Integer(self.joined.addresses[name] + offset)
        return Symbol(name, offset)

    # What is passed ---------------------------------------------------------------------------------------------

    def _is_in_frame(self, operand: Operand) -> bool:
        if not isinstance(operand, Address) or not isinstance(operand.base, Symbol):
            return False
        return operand.base.name in self.frame.passed or operand.base.name in self.frame.places

    def _parameter_operand(self, operand: Operand) -> Operand:
        """An operand of `ld.param` or `st.param`: what lies in a frame is addressed there."""
        if not isinstance(operand, Address) or not isinstance(operand.base, Symbol):
            return self._operand(operand)
        if not self._is_in_frame(operand):
            return self._operand(operand)
        name, offset = operand.base.name, operand.base.offset + operand.offset
        size = size_of(self.variables[name])
        if not 0 <= offset < size:
            assert self.now is not None
            raise refuse(self.now, f"reaches byte {offset} of '{name}', which has {size}")
        return self._own(name, offset)

    def _own(self, name: str, offset: int = 0) -> Address:
        """The place of something in this function's frame, or in that of a function that it calls."""
        if name not in self.frame.passed:
            return self._at(self.frame.places[name] + offset)
        place, index = self.frame.passed[name]
        callee = self.joined.calls.callees[self.function.name, place][0]
        return self._theirs(callee, index, offset)

    def _at(self, place: int) -> Address:
        return Address(Symbol(OWN), place) if self.is_kernel else Address(FRAME, place)

    def _theirs(self, callee: str, index: int, offset: int = 0) -> Address:
        """The place of a result or parameter of a function that is about to be called, or was."""
        function = self.joined.calls.functions[callee]
        name = (*function.results, *function.parameters)[index].name
        place = self.joined.frames[callee].places[name] + offset
        return Address(Symbol(STACK), place) if self.is_kernel else Address(FRAME, self.frame.bytes + place)

    def _copy(self, variable: Variable, source: Address, target: Address) -> None:
        """Adds the copy of a parameter, in the largest pieces that its alignment allows."""
        size = size_of(variable)
        done = 0
        while done < size:
            step = min(8, variable.align, 1 << ((size - done).bit_length() - 1))
            register = Register(self._register("copied", f"b{max(8 * step, 16)}"))
            self._add(f"ld.param::func.b{8 * step}", register, replace(source, offset=source.offset + done))
            self._add(f"st.param::func.b{8 * step}", replace(target, offset=target.offset + done), register)
            done += step
