"""Control flow of a function: one pass a file, from blocks to the order in which divergent lanes run."""

from triptych.gpu.flow.build_blocks import build_blocks
from triptych.gpu.flow.find_dominators import find_dominators, find_postdominators
from triptych.gpu.flow.find_liveness import Liveness, find_liveness
from triptych.gpu.flow.find_loops import Loop, find_loops
from triptych.gpu.flow.find_uniform_registers import find_uniform_registers
from triptych.gpu.flow.graph import Block, FlowGraph, connect_blocks
from triptych.gpu.flow.order_blocks import OrderedGraph, order_blocks

__all__ = [
    "Block",
    "FlowGraph",
    "Liveness",
    "Loop",
    "OrderedGraph",
    "build_blocks",
    "connect_blocks",
    "find_dominators",
    "find_liveness",
    "find_loops",
    "find_postdominators",
    "find_uniform_registers",
    "order_blocks",
]
