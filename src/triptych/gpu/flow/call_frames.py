"""Where a function's own memory lies in a call: what is passed, its local variables, what it saves.

A frame begins with the results and parameters of the function, which its caller writes and reads; then come its local
variables, the parameters of the calls that it makes where they need a place of their own, and the registers that it
saves in calls that may come back to it. A kernel's frames lie in its local memory behind its own variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from triptych.gpu.flow.build_blocks import build_blocks
from triptych.gpu.flow.find_functions import Call, CallGraph, pack
from triptych.gpu.flow.find_liveness import find_liveness
from triptych.gpu.flow.graph import instruction_effect
from triptych.gpu.isa.binding import bind, registers_of, whole_register
from triptych.gpu.isa.types import TYPES
from triptych.gpu.syntax.ast import Function, Instruction, Label, Symbol

ALIGNMENT = 16
"""Bytes: every frame starts at a multiple of this."""
WAY_BACK = "&return"
"""The register, behind a function's name, that says which of its callers it returns to."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A function's frame; all places are bytes from its start."""

    places: Mapping[str, int]
    """Results, parameters, local variables, and parameters of calls that have a place in it; a kernel's own results,
    parameters and local variables are elsewhere."""
    passed: Mapping[str, tuple[int, int]]
    """Parameters of calls that lie at once where the called function has them: the position of the call's statement,
    and which of the function's results and parameters it is."""
    saved: Mapping[int, Mapping[str, int]]
    """By position of a call's statement: the registers that it saves, and where."""
    bytes: int


def lay_out_frame(function: Function, calls: CallGraph) -> Frame:
    """Lays out the frame of a function or of the kernel."""
    own = [] if function.is_entry else [*function.results, *function.parameters]
    own += [] if function.is_entry else [v for v in function.variables if v.space == "local"]
    passed = _find_passed(function, calls)
    own += [v for v in function.variables if v.space == "param" and v.name not in passed]
    places, end = pack(tuple(own))
    saved: dict[int, dict[str, int]] = {}
    most = end
    for place, names in _find_saved(function, calls).items():
        saved[place], last = _pack_registers(function, names, end)
        most = max(most, last)
    return Frame(places, passed, saved, -(-most // ALIGNMENT) * ALIGNMENT)


def _pack_registers(function: Function, names: list[str], start: int) -> tuple[dict[str, int], int]:
    places: dict[str, int] = {}
    for name in names:
        size = saved_bits(function.registers.get(name, "b32")) // 8
        start = -(-start // size) * size
        places[name] = start
        start += size
    return places, start


def saved_bits(kind: str) -> int:
    """The bits in which a register of a type is saved; a predicate takes 32."""
    return 32 if kind == "pred" else max(TYPES[kind].bits, 16) if kind in TYPES else 64


def _find_passed(function: Function, calls: CallGraph) -> dict[str, tuple[int, int]]:
    """The parameters that are written right before the one call that takes them, or read right behind it.

    They can lie where the called function has its own: no other call comes between.
    """
    temporary = {v.name for v in function.variables if v.space == "param"}
    stretch = 0
    stretches: dict[str, set[int]] = {}
    uses: dict[str, list[tuple[int, int, int]]] = {}
    for place, statement in enumerate(function.body or ()):
        if isinstance(statement, Label):
            stretch += 1
        if not isinstance(statement, Instruction):
            continue
        if calls.callees.get((function.name, place)):
            call = Call.of(statement)
            for index, operand in enumerate((*call.results, *call.arguments)):
                if isinstance(operand, Symbol):
                    wanted = stretch + 1 if index < len(call.results) else stretch
                    uses.setdefault(operand.name, []).append((place, index, wanted))
        else:
            for name in _named(statement) & temporary:
                stretches.setdefault(name, set()).add(stretch)
        if instruction_effect(statement).ends_block:
            stretch += 1
    return {
        name: used[0][:2]
        for name, used in uses.items()
        if len(used) == 1 and stretches.get(name, {used[0][2]}) == {used[0][2]} and name in temporary
    }


def _named(instruction: Instruction) -> set[str]:
    """The symbols in an instruction's operands."""
    found: set[str] = set()
    for operand in instruction.operands:
        for one in getattr(operand, "elements", (operand,)):
            base = getattr(one, "base", one)
            if isinstance(base, Symbol):
                found.add(base.name)
    return found


def _find_saved(function: Function, calls: CallGraph) -> dict[int, list[str]]:
    """The registers that are wanted behind calls which may come back to the function before they return.

    Where the function returns to is one of them.
    """
    wanted = {
        place: any(calls.is_recursive(function.name, callee) for callee in callees)
        for (name, place), callees in calls.callees.items()
        if name == function.name
    }
    if not any(wanted.values()):
        return {}
    graph = build_blocks(function)
    liveness = find_liveness(graph, uses_of, defines_of)
    places = {id(statement): place for place, statement in enumerate(function.body or ())}
    saved: dict[int, list[str]] = {}
    for block in graph.blocks:
        last = block.instructions[-1] if block.instructions else None
        if last is not None and wanted.get(places[id(last)]):
            live = liveness.live_out(block.index) - defines_of(last)
            wanted_names = {whole_register(name) for name in live} & function.registers.keys()
            saved[places[id(last)]] = [WAY_BACK, *sorted(wanted_names)]
    return saved


def uses_of(instruction: Instruction) -> frozenset[str]:
    """The registers that an instruction reads, a call's included."""
    if not instruction_effect(instruction).calls:
        return bind(instruction).uses
    call = Call.of(instruction)
    return frozenset(name for operand in (call.target, *call.arguments) for name in registers_of(operand))


def defines_of(instruction: Instruction) -> frozenset[str]:
    """The registers that an instruction writes, a call's included."""
    if not instruction_effect(instruction).calls:
        return bind(instruction).defines
    return frozenset(name for operand in Call.of(instruction).results for name in registers_of(operand))
