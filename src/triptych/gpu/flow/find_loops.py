"""Natural loops: their headers, bodies, back edges and exits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from triptych.gpu.flow.find_dominators import UNREACHABLE, dominates, find_dominators, order_reverse_post
from triptych.gpu.flow.graph import FlowGraph

Edge = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Loop:
    """A natural loop; loops with the same header are one."""

    header: int
    body: frozenset[int]
    """All blocks, the header included."""
    back_edges: tuple[Edge, ...]
    exits: tuple[Edge, ...]
    """Edges that leave the loop; the second block may be the virtual exit."""
    parent: int | None
    """The index of the innermost loop around it, in the tuple of loops."""


def find_loops(graph: FlowGraph, dominators: Sequence[int] | None = None) -> tuple[Loop, ...]:
    """The natural loops of the blocks that can be reached, outer loops before the loops inside them."""
    tree = find_dominators(graph) if dominators is None else dominators
    back_edges: dict[int, list[Edge]] = {}
    position = {block: place for place, block in enumerate(order_reverse_post(graph.successors, 0))}
    for block in range(len(graph.blocks)):
        if block not in position:
            continue
        for successor in graph.successors[block]:
            if position[successor] <= position[block] and dominates(tree, successor, block):
                back_edges.setdefault(successor, []).append((block, successor))
    bodies = {header: _collect_body(graph, tree, header, edges) for header, edges in back_edges.items()}
    headers = sorted(bodies, key=lambda header: (-len(bodies[header]), header))
    loops: list[Loop] = []
    innermost: dict[int, int] = {}
    for header in headers:
        body = bodies[header]
        exits = tuple(
            (block, successor)
            for block in sorted(body)
            for successor in graph.successors[block]
            if successor not in body
        )
        loops.append(Loop(header, frozenset(body), tuple(back_edges[header]), exits, innermost.get(header)))
        innermost.update(dict.fromkeys(body, len(loops) - 1))
    return tuple(loops)


def _collect_body(graph: FlowGraph, tree: Sequence[int], header: int, edges: list[Edge]) -> set[int]:
    """The header and every block that reaches a back edge without passing it."""
    body = {header}
    stack = [source for source, _ in edges if source != header]
    while stack:
        block = stack.pop()
        if block not in body:
            body.add(block)
            stack.extend(before for before in graph.predecessors[block] if tree[before] != UNREACHABLE)
    return body
