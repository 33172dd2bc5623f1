"""Immediate dominators and post-dominators (Cooper, Harvey and Kennedy's iteration)."""

from __future__ import annotations

from collections.abc import Sequence

from triptych.gpu.flow.graph import FlowGraph

UNREACHABLE = -1
"""Stands for the dominator of a block that cannot be reached."""


def order_reverse_post(successors: Sequence[Sequence[int]], root: int) -> list[int]:
    """The nodes reachable from `root` in reverse post-order of a depth-first walk; first successors come first."""
    order: list[int] = []
    seen = {root}
    stack = [(root, iter(tuple(reversed(successors[root]))))]
    while stack:
        node, rest = stack[-1]
        for successor in rest:
            if successor not in seen:
                seen.add(successor)
                stack.append((successor, iter(tuple(reversed(successors[successor])))))
                break
        else:
            order.append(node)
            stack.pop()
    order.reverse()
    return order


def find_tree(successors: Sequence[Sequence[int]], predecessors: Sequence[Sequence[int]], root: int) -> list[int]:
    """The immediate dominator of each node; the root's is itself, an unreachable node's is `UNREACHABLE`."""
    order = order_reverse_post(successors, root)
    position = {node: place for place, node in enumerate(order)}
    tree = [UNREACHABLE] * len(successors)
    tree[root] = root
    changed = True
    while changed:
        changed = False
        for node in order[1:]:
            nearest = UNREACHABLE
            for predecessor in predecessors[node]:
                if tree[predecessor] != UNREACHABLE:
                    nearest = predecessor if nearest == UNREACHABLE else _meet(tree, position, predecessor, nearest)
            if tree[node] != nearest:
                tree[node] = nearest
                changed = True
    return tree


def _meet(tree: Sequence[int], position: dict[int, int], left: int, right: int) -> int:
    while left != right:
        while position[left] > position[right]:
            left = tree[left]
        while position[right] > position[left]:
            right = tree[right]
    return left


def find_dominators(graph: FlowGraph) -> tuple[int, ...]:
    """The immediate dominator of each block and of the exit; the entry's is itself, an unreachable one's is -1."""
    return tuple(find_tree(graph.successors, graph.predecessors, 0))


def find_postdominators(graph: FlowGraph) -> tuple[int, ...]:
    """The immediate post-dominator of each block; the virtual exit is the root.

    Where no path leads to the exit (an infinite loop), the last such block counts as if it led there too.
    """
    forward = [list(following) for following in graph.predecessors]
    backward = [list(before) for before in graph.successors]
    reached = [False] * len(forward)
    _mark(forward, graph.exit, reached)
    for index in range(len(graph.blocks) - 1, -1, -1):
        if not reached[index]:
            forward[graph.exit].append(index)
            backward[index].append(graph.exit)
            _mark(forward, index, reached)
    return tuple(find_tree(forward, backward, graph.exit)[:-1])


def _mark(successors: Sequence[Sequence[int]], root: int, reached: list[bool]) -> None:
    reached[root] = True
    stack = [root]
    while stack:
        for successor in successors[stack.pop()]:
            if not reached[successor]:
                reached[successor] = True
                stack.append(successor)


def dominates(tree: Sequence[int], above: int, node: int) -> bool:
    """Whether `above` dominates `node` by a tree of immediate dominators."""
    while node not in (above, UNREACHABLE):
        if tree[node] == node:
            return False
        node = tree[node]
    return node == above
