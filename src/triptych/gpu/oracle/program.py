"""A kernel as the interpreter walks it: blocks in order of priority, each instruction joined with its row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from triptych.core.errors import UnknownName
from triptych.gpu.flow import (
    FlowGraph,
    find_body,
    find_links,
    find_standing_waits,
    find_waits,
    join_functions,
    split_at_syncs,
)
from triptych.gpu.isa.binding import (
    BoundInstruction,
    bind,
    bind_in_clusters,
    constants_of,
    reaches_other_blocks,
    with_implied_registers,
    with_numerics,
)
from triptych.gpu.isa.tensor.numerics import FAST
from triptych.gpu.syntax import parse
from triptych.gpu.syntax.ast import Function, Instruction, Module


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel of a module."""

    module: Module
    function: Function
    graph: FlowGraph
    bound: tuple[tuple[BoundInstruction, ...], ...]
    """By block."""
    waits: frozenset[tuple[int, int]]
    """Back edges of loops that may wait for other threads."""
    standing: frozenset[tuple[int, int]]
    """Those of them whose loops only look at mbarriers."""
    standers: frozenset[int]
    """By identity, the instructions of these loops."""
    links: Mapping[int, tuple[int, ...]]
    """Where calls and returns go, by the block that they end."""
    has_stack: bool

    def only_ends(self, block: int) -> bool:
        """Whether a block does nothing but end its lanes."""
        return block == self.graph.exit or self.graph.blocks[block].only_ends


@lru_cache(maxsize=64)
def read_kernel(text: str, name: str, numerics: str = FAST) -> Kernel:
    """The kernel of that name in PTX text; `numerics` is the arithmetic of its multiplications of matrices.

    Raises:
        PtxSyntaxError: the text is not PTX.
        UnknownName: it has no such kernel.
        UnsupportedInstruction: an instruction has no row in the table.
    """
    module = parse(text)
    function = module.functions.get(name)
    if function is None or not function.is_entry or function.body is None:
        raise UnknownName.of("kernel", name, module.functions)
    found: dict[int, BoundInstruction] = {}

    def known(instruction: Instruction) -> BoundInstruction:
        return found.setdefault(id(instruction), with_numerics(join(instruction, declared, constants), numerics))

    joined = join_functions(module, function)
    declared, constants = joined.function.registers, constants_of(module)
    in_clusters = reaches_other_blocks(i for block in joined.ordered.graph.blocks for i in block.instructions)
    join = bind_in_clusters if in_clusters else bind

    def uses(instruction: Instruction) -> frozenset[str]:
        return known(instruction).uses

    def defines(instruction: Instruction) -> frozenset[str]:
        return known(instruction).defines

    graph = split_at_syncs(joined.ordered.graph, defines).graph
    waits = find_waits(graph, uses, defines)
    standing = find_standing_waits(graph, waits, uses, defines)
    bound = tuple(tuple(known(instruction) for instruction in block.instructions) for block in graph.blocks)
    whole = with_implied_registers(joined.function)
    standers = frozenset(id(i) for edge in standing for block in find_body(graph, edge) for i in bound[block])
    return Kernel(module, whole, graph, bound, waits, standing, standers, find_links(graph), joined.has_stack)
