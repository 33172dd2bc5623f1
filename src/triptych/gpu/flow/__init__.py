"""Control flow of a function: one pass a file, from blocks to the order in which divergent lanes run."""

from triptych.gpu.flow.build_blocks import build_blocks
from triptych.gpu.flow.find_dominators import find_dominators, find_postdominators
from triptych.gpu.flow.find_functions import code_addresses, reachable_functions
from triptych.gpu.flow.find_liveness import Liveness, find_liveness
from triptych.gpu.flow.find_loops import Loop, find_loops
from triptych.gpu.flow.find_standing_waits import find_standing_waits
from triptych.gpu.flow.find_uniform_registers import find_uniform_registers
from triptych.gpu.flow.find_unordered_products import Disorder, UnorderedProduct, find_unordered_products
from triptych.gpu.flow.find_waits import find_body, find_waits
from triptych.gpu.flow.graph import Block, FlowGraph, connect_blocks
from triptych.gpu.flow.join_functions import JoinedKernel, extend_liveness, find_links, join_functions
from triptych.gpu.flow.order_graph import OrderedGraph, order_blocks
from triptych.gpu.flow.split_blocks import SplitGraph, split_at_syncs, split_blocks

__all__ = [
    "Block",
    "Disorder",
    "FlowGraph",
    "JoinedKernel",
    "Liveness",
    "Loop",
    "OrderedGraph",
    "SplitGraph",
    "UnorderedProduct",
    "build_blocks",
    "code_addresses",
    "connect_blocks",
    "extend_liveness",
    "find_body",
    "find_dominators",
    "find_links",
    "find_liveness",
    "find_loops",
    "find_postdominators",
    "find_standing_waits",
    "find_uniform_registers",
    "find_unordered_products",
    "find_waits",
    "join_functions",
    "order_blocks",
    "reachable_functions",
    "split_at_syncs",
    "split_blocks",
]
