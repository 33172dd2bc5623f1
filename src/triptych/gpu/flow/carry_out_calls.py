"""A function of PTX -> the same with its calls carried out: what is passed moved, registers saved, ways noted.

What a call takes is written out as instructions that are marked as added. Names of a called function get its name in
front, so that it can be joined with the kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from triptych.gpu.flow.call_frames import saved_bits
from triptych.gpu.flow.find_functions import Call, refuse
from triptych.gpu.flow.graph import instruction_effect
from triptych.gpu.flow.write_function import BACK, FRAME, STACK, FunctionWriter, Joined, entry_label, return_register
from triptych.gpu.isa import spaces
from triptych.gpu.isa.binding import STACK_USED
from triptych.gpu.isa.calls import BAD_POINTER, HOST_FUNCTIONS
from triptych.gpu.isa.effects import Effect
from triptych.gpu.isa.types import TYPES
from triptych.gpu.syntax.ast import (
    Address,
    BranchTargets,
    Function,
    Group,
    Guard,
    Instruction,
    Integer,
    Label,
    Operand,
    Register,
    Statement,
    Symbol,
)
from triptych.gpu.syntax.variables import TYPE_BYTES, size_of

_PARAMETERS = frozenset((*spaces.PARAM.modifiers, *spaces.FRAME.modifiers))
_LOCALS = Label("&locals", 0)
"""Stands where the registers that hold addresses of local variables are to be set."""


class CallCarrier(FunctionWriter):
    """Rewrites one function; when all are, `finish` gives its body."""

    def __init__(self, joined: Joined, function: Function) -> None:
        """Rewrites it."""
        super().__init__(joined, function)
        self.tail: list[Statement] = []
        body = (i for i in function.body or () if isinstance(i, Instruction))
        self.keeps_stack = any(instruction_effect(i).on_stack for i in body)
        self._rewrite()

    # Statements -------------------------------------------------------------------------------------------------

    def _rewrite(self) -> None:
        for place, statement in enumerate(self.function.body or ()):
            match statement:
                case Instruction():
                    self.now = statement
                    self._instruction(place, statement)
                case Label(name, line):
                    self.statements.append(Label(self.prefix + name, line))
                case BranchTargets(name, labels, line):
                    labels = tuple(self.prefix + label for label in labels)
                    self.statements.append(BranchTargets(self.prefix + name, labels, line))
                case _:
                    pass
        if _ends_with_call(self.function):
            self._add("exit")  # the function that was called does not return

    def finish(self) -> tuple[Statement, ...]:
        """The body, once the callers of the function are known."""
        body, self.statements = self.statements, []
        if not self.is_kernel:
            self._begin()
        for statement in body:
            if statement is _LOCALS:
                self._find_locals()
            else:
                self.statements.append(statement)
        if not self.is_kernel:
            name = self.function.name
            self.statements.append(Label(f"{name}::&exit", self.function.line))
            if self.keeps_stack:  # what it allocated is free again
                self._add("mov.u64", Register(STACK_USED), Register(self._register("stack", "b64")))
            callers = Group(tuple(Symbol(label) for label in self.joined.callers[name]))
            self._add("brx.idx", Register(return_register(name)), callers)
        return (*self.statements, *self.tail)

    def _begin(self) -> None:
        """What a function does before its first instruction."""
        name = self.function.name
        self.now = next((i for i in self.function.body or () if isinstance(i, Instruction)), None)
        self.statements.append(Label(entry_label(name), self.function.line))
        if self.joined.calls.is_recursive(name, name):  # the stack must reach to the end of its frame
            last = Address(FRAME, self.frame.bytes - 1)
            self._add("ld.param::func.u8", Register(self._register("last", "b16")), last)
        if self.keeps_stack:
            self._add("mov.u64", Register(self._register("stack", "b64")), Register(STACK_USED))
        self._find_locals()

    def _find_locals(self) -> None:
        """Puts the addresses of local variables into their registers."""
        for (variable, offset, bits), register in self.locals.items():
            place = Integer(self.frame.places[variable] + offset)
            if bits == 32:
                self._add("add.u32", Register(register), FRAME, place)
            else:
                self._add("cvt.u64.u32", Register(register), FRAME)
                self._add("add.u64", Register(register), Register(register), place)

    # Instructions -----------------------------------------------------------------------------------------------

    def _instruction(self, place: int, instruction: Instruction) -> None:
        guard = instruction.guard
        if guard is not None:
            guard = Guard(Register(self.prefix + guard.register.name), guard.negated)
        effect = instruction_effect(instruction)
        if effect.calls:
            call = Call.of(instruction)
            if effect is Effect.HOST_CALL:
                self._call_host(call, guard)
            else:
                self._call(place, call, guard)
            return
        operands = instruction.operands
        modifiers = instruction.modifiers
        if effect in (Effect.BRANCH, Effect.SWITCH):
            operands = tuple(self._label_or_operand(o) for o in operands)
        elif effect is Effect.RETURN and not self.is_kernel:
            operands = (Symbol(f"{self.prefix}&exit"),)
        elif effect.accesses and not _PARAMETERS.isdisjoint(modifiers):
            if not self.is_kernel or any(self._is_in_frame(o) for o in operands):
                modifiers = tuple("param::func" if m == "param" else m for m in modifiers)
            operands = tuple(self._parameter_operand(o) for o in operands)
        else:
            bits = _bits(instruction)
            operands = tuple(self._operand(o, bits) for o in operands)
        self.statements.append(replace(instruction, operands=operands, modifiers=modifiers, guard=guard))

    def _label_or_operand(self, operand: Operand) -> Operand:
        return Symbol(self.prefix + operand.name) if isinstance(operand, Symbol) else self._operand(operand)

    # Calls ------------------------------------------------------------------------------------------------------

    def _call_host(self, call: Call, guard: Guard | None) -> None:
        """The values themselves become the operands of the call, and its result is put where it is read."""
        assert isinstance(call.target, Symbol)
        row = HOST_FUNCTIONS[call.target.name]
        if len(call.arguments) != len(row.parameters) or len(call.results) > (row.result is not None):
            raise refuse(call.instruction, f"does not fit the prototype of {row.prototype}")
        arguments: list[Operand] = []
        for index, (operand, kind) in enumerate(zip(call.arguments, row.parameters, strict=True)):
            if isinstance(operand, Symbol):
                register = Register(self._register(f"argument{index}", f"b{kind.bits}"))
                self._add(f"ld.param::func.b{kind.bits}", register, self._own(operand.name), guard=guard)
                arguments.append(register)
            else:
                arguments.append(self._operand(operand))
        results: list[Operand] = []
        for operand in call.results:
            assert row.result is not None
            kept = isinstance(operand, Symbol)
            results.append(Register(self._register("result", row.result.name)) if kept else self._operand(operand))
        operands = (Group(tuple(results)), Symbol(row.name), Group(tuple(arguments)))
        self.statements.append(replace(call.instruction, operands=operands, guard=guard))
        for operand, register in zip(call.results, results, strict=True):
            if isinstance(operand, Symbol):
                self._add(f"st.param::func.{row.result}", self._own(operand.name), register, guard=guard)

    def _call(self, place: int, call: Call, guard: Guard | None) -> None:
        callees = self.joined.calls.callees[self.function.name, place]
        name = f"{self.prefix}&call{place}"
        if guard is not None:
            around = Guard(guard.register, not guard.negated)
            self._add("bra", Symbol(f"{name}.around"), guard=around)
        if callees:
            self._pass_arguments(callees[0], call)
        saved = self.frame.saved.get(place, {})
        recursive = any(self.joined.calls.is_recursive(self.function.name, callee) for callee in callees)
        self._move_saved(saved, recursive, "st")
        for callee in callees:
            callers = self.joined.callers.setdefault(callee, [])
            self._add("mov.u32", Register(return_register(callee)), Integer(len(callers)))
            callers.append(f"{name}{BACK}")
        operands = self._choose(call, callees, f"{name}.nowhere")
        if self.is_kernel:
            self._add("mov.u32", FRAME, Symbol(STACK))
        else:
            self._add("add.u32", FRAME, FRAME, Integer(self.frame.bytes))
        self.statements.append(replace(call.instruction, operands=operands, guard=None))
        self.statements.append(Label(f"{name}{BACK}", call.instruction.line))
        if not self.is_kernel:
            self._add("sub.u32", FRAME, FRAME, Integer(self.frame.bytes))
        self._move_saved(saved, recursive, "ld")
        if recursive:
            self.statements.append(_LOCALS)
        if callees:
            self._take_results(callees[0], call)
        if guard is not None:
            self.statements.append(Label(f"{name}.around", call.instruction.line))

    def _choose(self, call: Call, callees: tuple[str, ...], nowhere: str) -> tuple[Operand, ...]:
        """The operands of the call: the entry, or the index of the entry that a pointer names and all entries."""
        entries = [Symbol(entry_label(callee)) for callee in callees]
        if isinstance(call.target, Symbol):
            return (entries[0],)
        pointer = self._operand(call.target)
        kind = f"b{TYPES[self.function.registers[call.target.name]].bits}"
        index, found = Register(self._register("callee", "b32")), Register(self._register("called", "pred"))
        self._add("mov.u32", index, Integer(len(callees)))
        for number, callee in enumerate(callees):
            self._add(f"setp.eq.{kind}", found, pointer, Integer(self.joined.addresses[callee]))
            self._add("selp.b32", index, Integer(number), index, found)
        behind = len(self.statements)
        self.statements.append(Label(nowhere, call.instruction.line))
        self._add("call", Group(()), Symbol(BAD_POINTER), Group((pointer,)))
        self._add("exit")
        self.tail += self.statements[behind:]
        del self.statements[behind:]
        return (index, *entries, Symbol(nowhere))

    def _pass_arguments(self, callee: str, call: Call) -> None:
        function = self._check(callee, call)
        first = len(function.results)
        for index, (parameter, operand) in enumerate(zip(function.parameters, call.arguments, strict=True), first):
            if isinstance(operand, Symbol) and operand.name not in self.frame.passed:
                self._copy(parameter, self._own(operand.name), self._theirs(callee, index))
            elif not isinstance(operand, Symbol):
                kind = f"b{8 * TYPE_BYTES[parameter.type]}"
                self._add(f"st.param::func.{kind}", self._theirs(callee, index), self._operand(operand))

    def _take_results(self, callee: str, call: Call) -> None:
        function = self.joined.calls.functions[callee]
        for index, (result, operand) in enumerate(zip(function.results, call.results, strict=True)):
            if isinstance(operand, Symbol) and operand.name not in self.frame.passed:
                self._copy(result, self._theirs(callee, index), self._own(operand.name))
            elif isinstance(operand, Register):
                kind = f"b{8 * TYPE_BYTES[result.type]}"
                self._add(f"ld.param::func.{kind}", self._operand(operand), self._theirs(callee, index))

    def _check(self, callee: str, call: Call) -> Function:
        """The function that is called, if the call fits it."""
        function = self.joined.calls.functions[callee]
        given, wanted = (call.results, call.arguments), (function.results, function.parameters)
        if [len(part) for part in given] != [len(part) for part in wanted]:
            raise refuse(call.instruction, f"passes another number of parameters than '{callee}' takes")
        if any(v.space == "reg" for v in (*function.results, *function.parameters)):
            raise refuse(call.instruction, f"passes parameters of '{callee}' in registers, which is not supported")
        for operand, variable in zip((*given[0], *given[1]), (*wanted[0], *wanted[1]), strict=True):
            own = self.variables.get(operand.name) if isinstance(operand, Symbol) else None
            if own is not None and size_of(own) != size_of(variable):
                sizes = f"{size_of(own)} bytes where '{callee}' takes {size_of(variable)}"
                raise refuse(call.instruction, f"passes {sizes}")
        return function

    def _move_saved(self, saved: Mapping[str, int], recursive: bool, way: str) -> None:
        """Adds stores or loads of the registers that a call saves, the function's own way back among them."""
        if not recursive:
            return
        for name, place in saved.items():
            register, kind = Register(self.prefix + name), self.function.registers.get(name, "b32")
            held, bits = register, saved_bits(kind)
            if kind == "pred":
                held = Register(self._register("truth", "b32"))
            if kind == "pred" and way == "st":
                self._add("selp.b32", held, Integer(1), Integer(0), register)
            operands = (held, self._at(place)) if way == "ld" else (self._at(place), held)
            self._add(f"{way}.param::func.b{bits}", *operands)
            if kind == "pred" and way == "ld":
                self._add("setp.ne.u32", register, held, Integer(0))


def _ends_with_call(function: Function) -> bool:
    last = next((s for s in reversed(function.body or ()) if isinstance(s, Instruction)), None)
    return last is not None and instruction_effect(last).calls and last.guard is None


def _bits(instruction: Instruction) -> int:
    """The width of an instruction's type, for the address of a variable."""
    kinds = [TYPES[m] for m in instruction.modifiers if m in TYPES]
    return kinds[-1].bits if kinds else 64
