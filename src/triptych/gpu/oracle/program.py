"""A kernel as the interpreter walks it: blocks in order of priority, each instruction joined with its row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from triptych.core.errors import UnknownName
from triptych.gpu.flow import FlowGraph, build_blocks, order_blocks
from triptych.gpu.isa.binding import BoundInstruction, bind, with_implied_registers
from triptych.gpu.syntax import parse
from triptych.gpu.syntax.ast import Function, Module


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel of a module."""

    module: Module
    function: Function
    graph: FlowGraph
    bound: tuple[tuple[BoundInstruction, ...], ...]
    """By block."""

    def only_ends(self, block: int) -> bool:
        """Whether a block does nothing but end its lanes."""
        return block == self.graph.exit or self.graph.blocks[block].only_ends


@lru_cache(maxsize=64)
def read_kernel(text: str, name: str) -> Kernel:
    """The kernel of that name in PTX text.

    Raises:
        PtxSyntaxError: the text is not PTX.
        UnknownName: it has no such kernel.
        UnsupportedInstruction: an instruction has no row in the table.
    """
    module = parse(text)
    function = module.functions.get(name)
    if function is None or not function.is_entry or function.body is None:
        raise UnknownName.of("kernel", name, module.functions)
    graph = order_blocks(build_blocks(function)).graph
    bound = tuple(tuple(bind(instruction) for instruction in block.instructions) for block in graph.blocks)
    return Kernel(module, with_implied_registers(function), graph, bound)
