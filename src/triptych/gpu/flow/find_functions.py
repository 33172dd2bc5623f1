"""Which functions a kernel may call, directly and through pointers, and which of them call themselves again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial

from triptych.core.errors import UnsupportedFeature
from triptych.gpu.flow.graph import instruction_effect
from triptych.gpu.hardware import CODE_BYTES, FIRST_CODE_ADDRESS
from triptych.gpu.isa.calls import HOST_FUNCTIONS
from triptych.gpu.syntax.ast import (
    CallPrototype,
    CallTargets,
    Function,
    Group,
    Instruction,
    Module,
    Operand,
    Register,
    Symbol,
    Variable,
)
from triptych.gpu.syntax.lazy_functions import headers_of
from triptych.gpu.syntax.variables import size_of


@dataclass(frozen=True, slots=True)
class Call:
    """A `call` taken apart."""

    instruction: Instruction
    results: tuple[Operand, ...]
    target: Symbol | Register
    arguments: tuple[Operand, ...]
    list_name: str
    """The `.callprototype` or `.calltargets` of an indirect call; empty for a direct one."""

    @classmethod
    def of(cls, instruction: Instruction) -> Call:
        """Takes it apart.

        Raises:
            UnsupportedFeature: its operands are not those of a call.
        """
        operands = list(instruction.operands)
        results = _take_group(operands)
        target = operands.pop(0) if operands else None
        arguments = _take_group(operands)
        listed = operands.pop(0) if operands else Symbol("")
        fits = isinstance(target, Register) == bool(isinstance(listed, Symbol) and listed.name)
        if not isinstance(target, Symbol | Register) or not isinstance(listed, Symbol) or operands or not fits:
            raise refuse(instruction, "takes results, a function, arguments, and for a pointer the list of its types")
        return cls(instruction, results, target, arguments, listed.name)


def _take_group(operands: list[Operand]) -> tuple[Operand, ...]:
    if not operands or not isinstance(operands[0], Group):
        return ()
    group = operands.pop(0)
    return group.elements if isinstance(group, Group) else ()


def refuse(instruction: Instruction, what: str) -> UnsupportedFeature:
    """The error for an instruction of a kind that is not supported."""
    message = f"'{instruction.opcode}' {what} (PTX line {instruction.line})"
    return UnsupportedFeature(message, where=instruction.where)


def code_addresses(module: Module) -> dict[str, int]:
    """The address of each function: what a pointer to it holds."""
    return {name: FIRST_CODE_ADDRESS + CODE_BYTES * (1 + place) for place, name in enumerate(module.functions)}


def pack(variables: Iterable[Variable], start: int = 0) -> tuple[dict[str, int], int]:
    """The offsets of variables that lie one behind the other, and the end."""
    offsets: dict[str, int] = {}
    for place, variable in enumerate(variables):
        align = max(variable.align, 1)
        start = -(-start // align) * align
        offsets[variable.name if variable.name != "_" else str(place)] = start
        start += size_of(variable)
    return offsets, start


def _layout(results: tuple[Variable, ...], parameters: tuple[Variable, ...]) -> tuple[tuple[int, int], ...]:
    """What two functions have in common that can be called in the same way: places and sizes of what is passed."""
    both = (*results, *parameters)
    offsets, _ = pack(both)
    return (len(results), 0), *zip(offsets.values(), map(size_of, both), strict=True)


@dataclass(frozen=True, slots=True)
class CallGraph:
    """The functions that a kernel may reach."""

    kernel: Function
    functions: Mapping[str, Function]
    """By name, those called before their callers; without the kernel."""
    callees: Mapping[tuple[str, int], tuple[str, ...]]
    """By function and position of the statement: the functions that a call may call. The host's are left out."""
    reach: Mapping[str, frozenset[str]]
    """All that each function, and the kernel, may have called before it returns."""

    def is_recursive(self, caller: str, callee: str) -> bool:
        """Whether a call may come back to its caller before it returns."""
        return caller in self.reach[callee]

    @property
    def has_recursion(self) -> bool:
        """Whether any function may call itself again."""
        return any(name in reached for name, reached in self.reach.items())


def find_functions(module: Module, kernel: Function) -> CallGraph:
    """Follows all calls from a kernel.

    Raises:
        UnsupportedFeature: a call of a function that the module does not define and the host does not provide.
    """
    taken = cache(partial(_find_pointers, module))
    callees: dict[tuple[str, int], tuple[str, ...]] = {}
    direct: dict[str, set[str]] = {}
    order: list[str] = []

    def visit(function: Function) -> None:
        own = direct[function.name] = set()
        for place, statement in enumerate(function.body or ()):
            if isinstance(statement, Instruction) and instruction_effect(statement).calls:
                found = _find_callees(module, function, Call.of(statement), taken)
                if found is not None:
                    callees[function.name, place] = found
                    own.update(found)
        for name in sorted(own):
            if name not in direct:
                visit(module.functions[name])
        order.append(function.name)

    visit(kernel)
    functions = {name: module.functions[name] for name in order if name != kernel.name}
    return CallGraph(kernel, functions, callees, _close(direct))


def _close(direct: Mapping[str, set[str]]) -> dict[str, frozenset[str]]:
    reach: dict[str, frozenset[str]] = {}
    for name in direct:
        found: set[str] = set()
        waiting = [*direct[name]]
        while waiting:
            other = waiting.pop()
            if other not in found:
                found.add(other)
                waiting += direct[other]
        reach[name] = frozenset(found)
    return reach


def _find_pointers(module: Module) -> frozenset[str]:
    """The functions whose address a variable or an instruction holds."""
    found = {symbol.name for variable in module.variables.values() for _, symbol in variable.references}
    for function in module.functions.values():
        for statement in function.body or ():
            if isinstance(statement, Instruction) and not instruction_effect(statement).calls:
                found.update(operand.name for operand in statement.operands if isinstance(operand, Symbol))
    return frozenset(found & module.functions.keys())


def _find_callees(
    module: Module, function: Function, call: Call, taken: Callable[[], frozenset[str]]
) -> tuple[str, ...] | None:
    """The functions of the module that a call may call, None for a function of the host.

    `taken` gives those whose address something holds; to know them, all functions are read.
    """
    if isinstance(call.target, Symbol):
        return _find_named(module, call, call.target.name)
    headers = headers_of(module.functions)
    defined = {name: f for name, f in headers.items() if f.body is not None and not f.is_entry}
    for statement in function.body or ():
        if isinstance(statement, CallTargets) and statement.name == call.list_name:
            return tuple(name for name in dict.fromkeys(statement.functions) if name in defined)
        if isinstance(statement, CallPrototype) and statement.name == call.list_name:
            wanted = _layout(statement.results, statement.parameters)
            alike = (n for n, f in defined.items() if n in taken() and _layout(f.results, f.parameters) == wanted)
            return tuple(alike)
    raise refuse(call.instruction, f"names '{call.list_name}', which is no list of the function's")


def _find_named(module: Module, call: Call, name: str) -> tuple[str, ...] | None:
    function = headers_of(module.functions).get(name)
    is_defined = function is not None and function.body is not None and not function.is_entry
    if name in HOST_FUNCTIONS:
        if is_defined:
            raise refuse(call.instruction, f"calls '{name}', which CUDA's runtime provides and the module defines")
        return None
    if is_defined:
        return (name,)
    known = ", ".join(name for name in HOST_FUNCTIONS if not name.startswith("%"))
    message = f"the function '{name}' is called (PTX line {call.instruction.line}), which the module does not define"
    hint = f"define it in the source; CUDA's runtime provides: {known}"
    raise UnsupportedFeature(message, where=call.instruction.where, hint=hint)


def reachable_functions(module: Module, kernel: Function) -> tuple[Function, ...]:
    """The kernel and every function that it may reach by any name in it, whether that can be called or not."""
    found = {kernel.name: kernel}
    waiting = [kernel]
    pointers = cache(partial(_find_pointers, module))
    while waiting:
        function = waiting.pop()
        instructions = [i for i in function.body or () if isinstance(i, Instruction)]
        names = {o.name for i in instructions for o in i.operands if isinstance(o, Symbol)}
        if any(instruction_effect(i).calls and any(isinstance(o, Register) for o in i.operands) for i in instructions):
            names |= pointers()
        for name in sorted(names & module.functions.keys() - found.keys()):
            found[name] = module.functions[name]
            waiting.append(module.functions[name])
    return tuple(found.values())
