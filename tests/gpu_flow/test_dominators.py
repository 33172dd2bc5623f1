"""Dominators, post-dominators and loops against definitions that try every removal."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from triptych.gpu.flow import Block, FlowGraph, connect_blocks, find_dominators, find_loops, find_postdominators


def make_graph(successors: Sequence[Sequence[int]]) -> FlowGraph:
    """A graph from the successors of each block; the number of blocks stands for the exit."""
    return connect_blocks(Block(index, (), (), tuple(after), None) for index, after in enumerate(successors))


def make_random_graph(seed: int) -> FlowGraph:
    generator = random.Random(seed)
    count = generator.randrange(1, 11)
    successors = [
        [generator.randrange(1, count + 1) for _ in range(generator.choice((1, 1, 2, 2, 3)))] for _ in range(count)
    ]
    return make_graph(successors)


def reach(successors: Sequence[Sequence[int]], start: int, removed: int = -1) -> set[int]:
    seen: set[int] = set()
    stack = [start] if start != removed else []
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack.extend(after for after in successors[node] if after != removed)
    return seen


def climb(tree: Sequence[int], node: int, root: int) -> set[int]:
    above = {node}
    while node != root:
        node = tree[node]
        above.add(node)
    return above


@pytest.mark.parametrize("seed", range(150))
def test_dominators_are_the_blocks_whose_removal_cuts_the_way(seed: int) -> None:
    graph = make_random_graph(seed)
    tree = find_dominators(graph)
    reachable = reach(graph.successors, 0)
    for node in range(graph.exit + 1):
        if node not in reachable:
            assert tree[node] == -1
            continue
        expected = {d for d in reachable if d == node or node not in reach(graph.successors, 0, removed=d)}
        assert climb(tree, node, 0) == expected


@pytest.mark.parametrize("seed", range(150))
def test_postdominators_are_the_blocks_that_every_way_out_passes(seed: int) -> None:
    graph = make_random_graph(seed)
    ends = reach(graph.predecessors, graph.exit)
    if len(ends) != graph.exit + 1:
        assert len(find_postdominators(graph)) == graph.exit
        return
    tree = [*find_postdominators(graph), graph.exit]
    for node in range(graph.exit):
        expected = {d for d in ends if d == node or node not in reach(graph.predecessors, graph.exit, removed=d)}
        assert climb(tree, node, graph.exit) == expected


def test_diamond() -> None:
    graph = make_graph([[1, 2], [3], [3], [4]])
    assert find_dominators(graph) == (0, 0, 0, 0, 3)
    assert find_postdominators(graph) == (3, 3, 3, 4)


def test_one_arm_returns() -> None:
    assert find_postdominators(make_graph([[1, 2], [4], [3], [4]])) == (4, 4, 3, 4)


def test_infinite_loop_counts_as_if_its_last_block_led_to_the_exit() -> None:
    assert find_postdominators(make_graph([[1, 3], [2], [1], [4]])) == (4, 2, 4, 4)


def test_nested_loops() -> None:
    # 0 -> 1 (outer header) -> 2 (inner header) <-> 3, 2 -> 4 -> 1, 1 -> 5 -> exit
    outer, inner = find_loops(make_graph([[1], [2, 5], [3, 4], [2], [1], [6]]))
    assert (outer.header, outer.body, outer.parent) == (1, frozenset({1, 2, 3, 4}), None)
    assert (outer.back_edges, outer.exits) == (((4, 1),), ((1, 5),))
    assert (inner.header, inner.body, inner.parent) == (2, frozenset({2, 3}), 0)
    assert (inner.back_edges, inner.exits) == (((3, 2),), ((2, 4),))


def test_loops_with_one_header_are_one() -> None:
    (loop,) = find_loops(make_graph([[1], [2, 3], [1, 3], [1, 4]]))
    assert loop.body == {1, 2, 3}
    assert loop.back_edges == ((2, 1), (3, 1))


def test_self_loop() -> None:
    (loop,) = find_loops(make_graph([[1], [1, 2], [3]]))
    assert (loop.header, loop.body, loop.exits) == (1, frozenset({1}), ((1, 2),))


def test_two_entries_are_no_natural_loop() -> None:
    assert find_loops(make_graph([[1, 2], [2], [1, 3], [4]])) == ()


@pytest.mark.parametrize("seed", range(100))
def test_loop_bodies_reach_their_back_edges_without_the_header(seed: int) -> None:
    graph = make_random_graph(seed)
    reachable = reach(graph.successors, 0)
    for loop in find_loops(graph):
        expected = {loop.header}
        for source, header in loop.back_edges:
            assert header == loop.header
            expected |= reach(graph.predecessors, source, removed=loop.header) & reachable
        assert loop.body == expected
        assert set(loop.exits) == {
            (block, after) for block in loop.body for after in graph.successors[block] if after not in loop.body
        }
