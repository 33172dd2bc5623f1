"""FlowGraph -> the order in which divergent lanes run: loops in one piece, their latches last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from heapq import heappop, heappush

from triptych.gpu.flow.find_dominators import UNREACHABLE, find_dominators, order_reverse_post
from triptych.gpu.flow.find_loops import Loop, find_loops
from triptych.gpu.flow.graph import Block, FlowGraph, connect_blocks


@dataclass(frozen=True, slots=True)
class OrderedGraph:
    """A graph whose block numbers are priorities: of the blocks where lanes wait, the lowest runs next.

    In a reducible graph every edge but a back edge goes to a higher number; a loop's blocks are numbered without a
    gap, from its header on, and the only back edge comes from its last block (a latch without instructions is added
    where it takes one). So lanes that leave an iteration early wait for those still in it, and lanes that leave the
    loop wait for those that stay.
    """

    graph: FlowGraph
    is_reducible: bool
    """False: a loop has two entries; the order is a plain reverse post-order and promises nothing."""
    sources: tuple[int | None, ...]
    """The number that each block had before, None for a latch that was added."""


def order_blocks(graph: FlowGraph) -> OrderedGraph:
    """Renumber the blocks, leave out those that cannot be reached, and add latches."""
    dominators = find_dominators(graph)
    loops = find_loops(graph, dominators)
    reachable = [block for block in range(len(graph.blocks)) if dominators[block] != UNREACHABLE]
    back_edges = {edge for loop in loops for edge in loop.back_edges}
    if _is_cyclic(graph, reachable, back_edges):
        plain = [block for block in order_reverse_post(graph.successors, 0) if block != graph.exit]
        return OrderedGraph(_renumber(graph, plain, {}), False, tuple(plain))
    order = _order_regions(graph, reachable, loops, back_edges)
    order, latches = _place_latches(graph, order, loops)
    sources = tuple(block if block < len(graph.blocks) else None for block in order)
    return OrderedGraph(_renumber(graph, order, latches), True, sources)


def _is_cyclic(graph: FlowGraph, reachable: list[int], back_edges: set[tuple[int, int]]) -> bool:
    """Whether a cycle is left without the back edges: a loop with two entries."""
    waiting = dict.fromkeys(reachable, 0)
    forward = {
        block: [s for s in graph.successors[block] if s != graph.exit and (block, s) not in back_edges]
        for block in reachable
    }
    for following in forward.values():
        for successor in following:
            waiting[successor] += 1
    ready = [block for block, count in waiting.items() if count == 0]
    done = 0
    while ready:
        done += 1
        for successor in forward[ready.pop()]:
            waiting[successor] -= 1
            if waiting[successor] == 0:
                ready.append(successor)
    return done < len(reachable)


def _order_regions(
    graph: FlowGraph, reachable: list[int], loops: tuple[Loop, ...], back_edges: set[tuple[int, int]]
) -> list[int]:
    """Sort each loop's blocks topologically, an inner loop counting as one, then put the inner loops in their places.

    Among blocks that could come next, the one that was written first does.
    """
    innermost: dict[int, int | None] = dict.fromkeys(reachable)
    for number, loop in enumerate(loops):  # outer loops come first
        innermost.update(dict.fromkeys(loop.body, number))
    chains: dict[int | None, list[int]] = {None: []}
    for number, loop in enumerate(loops):
        chains[number] = [*chains[loop.parent], number]
    members: dict[int | None, list[int]] = {None: []} | {number: [] for number in range(len(loops))}
    edges: dict[int | None, dict[int, list[int]]] = {None: {}} | {number: {} for number in range(len(loops))}

    def representative(block: int, region: int | None) -> int | None:
        """The block, or the header of the loop that stands for it in a region; None where it lies outside."""
        chain = chains[innermost[block]]
        depth = len(chains[region])
        if chain[:depth] != chains[region]:
            return None
        return block if len(chain) == depth else loops[chain[depth]].header

    for block in reachable:
        for region in (None, *chains[innermost[block]]):
            stands = representative(block, region)
            if stands == block:
                members[region].append(block)
    for block in reachable:
        for successor in graph.successors[block]:
            if successor == graph.exit or (block, successor) in back_edges:
                continue
            for region in (None, *chains[innermost[block]]):
                source, target = representative(block, region), representative(successor, region)
                if source is not None and target is not None and source != target:
                    edges[region].setdefault(source, []).append(target)
    numbers = {loop.header: number for number, loop in enumerate(loops)}
    return _emit(None, members, edges, numbers)


def _emit(
    region: int | None,
    members: Mapping[int | None, list[int]],
    edges: Mapping[int | None, Mapping[int, list[int]]],
    numbers: Mapping[int, int],
) -> list[int]:
    """The blocks of a region in order; the header of an inner loop brings that loop's blocks with it."""
    order: list[int] = []
    stack = [iter(_sort(members[region], edges[region]))]
    regions: list[int | None] = [region]
    while stack:
        block = next(stack[-1], None)
        if block is None:
            stack.pop()
            regions.pop()
            continue
        inner = numbers.get(block)
        if inner is None or inner == regions[-1]:
            order.append(block)
        else:
            stack.append(iter(_sort(members[inner], edges[inner])))
            regions.append(inner)
    return order


def _sort(blocks: Iterable[int], edges: Mapping[int, list[int]]) -> list[int]:
    waiting = dict.fromkeys(blocks, 0)
    for following in edges.values():
        for successor in following:
            waiting[successor] += 1
    ready: list[int] = []
    for block, count in waiting.items():
        if count == 0:
            heappush(ready, block)
    order: list[int] = []
    while ready:
        block = heappop(ready)
        order.append(block)
        for successor in edges.get(block, ()):
            waiting[successor] -= 1
            if waiting[successor] == 0:
                heappush(ready, successor)
    return order


def _place_latches(
    graph: FlowGraph, order: list[int], loops: tuple[Loop, ...]
) -> tuple[list[int], dict[tuple[int, int], int]]:
    """Add a latch behind the last block of each loop whose back edges do not come from that block alone.

    A last block that also belongs to an inner loop does not do: lanes that go on with the outer loop from there would
    not wait for those that go on with the inner one.

    Returns the order with the latches, which are numbered above the graph's exit, and the latch that takes each
    back edge.
    """
    latches: dict[tuple[int, int], int] = {}
    position = {block: place for place, block in enumerate(order)}
    behind: dict[int, list[int]] = {}
    number = graph.exit + 1
    innermost = {block: loop for loop in loops for block in loop.body}
    for loop in reversed(loops):  # inner loops first: their latches come before those of the loops around them
        last = max(loop.body, key=position.__getitem__)
        if loop.back_edges == ((last, loop.header),) and innermost[last] is loop:
            continue
        latches.update(dict.fromkeys(loop.back_edges, number))
        behind.setdefault(last, []).append(number)
        number += 1
    return [node for block in order for node in (block, *behind.get(block, ()))], latches


def _renumber(graph: FlowGraph, order: list[int], latches: Mapping[tuple[int, int], int]) -> FlowGraph:
    new = {block: place for place, block in enumerate(order)} | {graph.exit: len(order)}
    headers = {latch: header for (_, header), latch in latches.items()}

    def move(source: int, target: int) -> int:
        return new[latches.get((source, target), target)]

    blocks: list[Block] = []
    for place, block in enumerate(order):
        if block in headers:
            blocks.append(Block(place, (), (), (), new[headers[block]]))
            continue
        before = graph.blocks[block]
        fall_through = None if before.fall_through is None else move(block, before.fall_through)
        targets = tuple(move(block, target) for target in before.targets)
        blocks.append(replace(before, index=place, targets=targets, fall_through=fall_through))
    return connect_blocks(blocks)
