"""A kernel and all that it calls -> one function and one graph, in which calls and returns are branches.

Every function stands in the graph once, however often it is called, the called ones before those that call them. So
where lanes part, those that are in a call run first, and come back to the others before these go on: lanes that call
together leave together. The graph's own edges pass calls over (a call's block goes on behind it, a return's ends), so
that what passes find of a function they find of it alone; `links` says where calls and returns go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from triptych.gpu.flow.build_blocks import build_blocks
from triptych.gpu.flow.call_frames import Frame, lay_out_frame
from triptych.gpu.flow.carry_out_calls import CallCarrier
from triptych.gpu.flow.find_functions import CallGraph, code_addresses, find_functions, refuse
from triptych.gpu.flow.find_liveness import Liveness
from triptych.gpu.flow.graph import Block, FlowGraph, connect_blocks, instruction_effect
from triptych.gpu.flow.order_graph import OrderedGraph, order_blocks
from triptych.gpu.flow.write_function import BACK, ENTRY, FRAME, OWN, STACK, Joined, return_register
from triptych.gpu.isa.effects import Effect
from triptych.gpu.syntax.ast import Function, Group, Instruction, Label, Module, Operand, Statement, Symbol, Variable


@dataclass(frozen=True, slots=True)
class JoinedKernel:
    """A kernel with all functions that it may call."""

    function: Function
    """With all registers and shared variables."""
    ordered: OrderedGraph
    has_stack: bool
    """Whether how much local memory a thread needs is not known."""


def join_functions(module: Module, kernel: Function) -> JoinedKernel:
    """Joins them; a kernel that neither calls nor points to functions stays as it is.

    Raises:
        UnsupportedFeature: it calls what is nowhere defined, or in a way that is not supported.
    """
    if not _names_functions(module, kernel):
        return JoinedKernel(kernel, order_blocks(build_blocks(kernel)), has_stack=_find_stack(kernel) is not None)
    calls = find_functions(module, kernel)
    parts = [*calls.functions.values(), kernel]
    frames = {function.name: lay_out_frame(function, calls) for function in parts}
    joined = Joined(calls, frames, code_addresses(module))
    joined.registers[FRAME.name] = "b32"
    carriers = [CallCarrier(joined, function) for function in parts]
    joined.registers.update((return_register(name), "b32") for name in calls.functions)
    bodies = [carrier.finish() for carrier in carriers]
    graphs = [_build(function, body) for function, body in zip(parts, bodies, strict=True)]
    whole = replace(
        kernel,
        registers=dict(joined.registers),
        variables=_join_variables(calls, frames),
        body=tuple(statement for body in (bodies[-1], *bodies[:-1]) for statement in body),
    )
    allocating = next(filter(None, map(_find_stack, parts)), None)
    if allocating is not None and calls.has_recursion:
        raise refuse(allocating, "is not supported in a kernel whose functions call themselves")
    return JoinedKernel(whole, _concatenate(graphs), calls.has_recursion or allocating is not None)


def _find_stack(function: Function) -> Instruction | None:
    """The first instruction that looks at the stack."""
    return next((i for i in function.body or () if isinstance(i, Instruction) and instruction_effect(i).on_stack), None)


def _names_functions(module: Module, kernel: Function) -> bool:
    instructions = (i for i in kernel.body or () if isinstance(i, Instruction))
    return any(
        instruction_effect(i).calls or any(isinstance(o, Symbol) and o.name in module.functions for o in i.operands)
        for i in instructions
    )


def _build(function: Function, body: tuple[Statement, ...]) -> OrderedGraph:
    labels = (s.name for s in body if isinstance(s, Label))
    keep = frozenset(label for label in labels if label.endswith((ENTRY, BACK)))
    return order_blocks(build_blocks(replace(function, body=body), keep=keep))


def _join_variables(calls: CallGraph, frames: Mapping[str, Frame]) -> tuple[Variable, ...]:
    """The kernel's variables, the shared ones of all functions, and local memory for all frames."""
    kernel = calls.kernel
    variables = [v for v in kernel.variables if v.space != "param"]
    for name, function in calls.functions.items():
        variables += [replace(v, name=f"{name}::{v.name}") for v in function.variables if v.space == "shared"]
    depth = {name: frame.bytes for name, frame in frames.items()}
    for name in calls.functions:  # those that are called come first
        inner = [depth[other] for other in calls.reach[name] if name not in calls.reach[other]]
        depth[name] = frames[name].bytes + max(inner, default=0)
    deepest = max((depth[name] for name in calls.functions), default=0)
    for name, size in ((OWN, frames[kernel.name].bytes), (STACK, deepest)):
        if size:
            variables.append(Variable(name, "local", "b8", 16, size))
    return tuple(variables)


def _concatenate(graphs: list[OrderedGraph]) -> OrderedGraph:
    """One graph of several, the last one's entry in front; a graph alone stays as it is."""
    if len(graphs) == 1:
        return graphs[0]
    total = 1 + sum(len(part.graph.blocks) for part in graphs)
    blocks: list[Block] = []
    for part in graphs:
        first = 1 + len(blocks)
        for block in part.graph.blocks:
            blocks.append(_shift(block, first, part.graph.exit, total))
    blocks.insert(0, Block(0, (), (), (), total - len(graphs[-1].graph.blocks)))
    return OrderedGraph(connect_blocks(blocks), all(part.is_reducible for part in graphs), (None,) * total)


def _shift(block: Block, first: int, leave: int, last: int) -> Block:
    def move(target: int) -> int:
        return last if target == leave else target + first

    fall_through = None if block.fall_through is None else move(block.fall_through)
    return replace(
        block, index=first + block.index, targets=tuple(move(t) for t in block.targets), fall_through=fall_through
    )


# --- What passes of the whole need ----------------------------------------------------------------------------------


def find_links(graph: FlowGraph) -> dict[int, tuple[int, ...]]:
    """Where calls and returns go, by the block that they end: one block, or those that an index picks from."""
    numbers = {label: block.index for block in graph.blocks for label in block.labels}
    links: dict[int, tuple[int, ...]] = {}
    for block in graph.blocks:
        last = block.instructions[-1] if block.instructions else None
        if last is None:
            continue
        named: Iterable[Operand] = ()
        if instruction_effect(last) is Effect.CALL:
            named = last.operands
        elif last.operands and isinstance(last.operands[-1], Group):
            named = last.operands[-1].elements if instruction_effect(last) is Effect.SWITCH else ()
        labels = [operand.name for operand in named if isinstance(operand, Symbol)]
        if labels:  # a call that nothing reaches is in no block: nothing comes back to it
            anywhere = next((numbers[label] for label in labels if label in numbers), block.index)
            links[block.index] = tuple(numbers.get(label, anywhere) for label in labels)
    return links


def extend_liveness(graph: FlowGraph, liveness: Liveness, links: Mapping[int, tuple[int, ...]]) -> Liveness:
    """Liveness in the whole graph, of the liveness in each function alone.

    In a called function, what its callers want behind the call is wanted all the time; at a call, what the called
    function wants.
    """
    if not links:
        return liveness
    function_of = _number_functions(graph)
    entries = {target for targets in links.values() for target in targets if _is_entry(graph.blocks[target])}
    calls = [(block, target) for block, targets in links.items() for target in targets if target in entries]
    suspended = [0] * (function_of[-1] + 1)
    changed = True
    while changed:
        changed = False
        for block, target in calls:
            kept = liveness.live_out_bits[block] | suspended[function_of[block]]
            changed |= bool(kept & ~suspended[function_of[target]])
            suspended[function_of[target]] |= kept
    live_in = [bits | suspended[function_of[block]] for block, bits in enumerate(liveness.live_in_bits)]
    live_out = [bits | suspended[function_of[block]] for block, bits in enumerate(liveness.live_out_bits)]
    for block, targets in links.items():
        for target in targets:
            live_out[block] |= live_in[target]
    return Liveness(liveness.registers, tuple(live_in), tuple(live_out))


def _is_entry(block: Block) -> bool:
    return any(label.endswith(ENTRY) for label in block.labels)


def _number_functions(graph: FlowGraph) -> list[int]:
    """The function that each block is a part of, numbered in order; the empty block in front is one of its own."""
    kernel = graph.blocks[0].fall_through
    numbers: list[int] = []
    for block in graph.blocks:
        starts = block.index == kernel or _is_entry(block)
        numbers.append((numbers[-1] if numbers else 0) + starts)
    return numbers
