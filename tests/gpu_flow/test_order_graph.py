"""The order in which divergent lanes run."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from triptych.gpu.flow import Block, FlowGraph, OrderedGraph, connect_blocks, find_loops, order_blocks


def make_graph(successors: Sequence[Sequence[int]]) -> FlowGraph:
    return connect_blocks(Block(index, (), (), tuple(after), None) for index, after in enumerate(successors))


def make_random_graph(seed: int) -> FlowGraph:
    generator = random.Random(seed)
    count = generator.randrange(1, 14)
    successors: list[list[int]] = []
    for index in range(count):
        near = [min(max(index + generator.randrange(-4, 5), 1), count) for _ in range(generator.choice((1, 1, 2)))]
        successors.append([*near, index + 1] if generator.random() < 0.7 else near)
    return make_graph(successors)


def check(ordered: OrderedGraph) -> None:
    """What `OrderedGraph` promises of a reducible graph."""
    graph = ordered.graph
    loops = find_loops(graph)
    back_edges = {edge for loop in loops for edge in loop.back_edges}
    for block in graph.blocks:
        for successor in block.successors:
            assert successor > block.index or (block.index, successor) in back_edges
    for loop in loops:
        last = loop.header + len(loop.body) - 1
        assert loop.body == set(range(loop.header, last + 1))
        assert loop.back_edges == ((last, loop.header),)
        assert all(successor > last for _, successor in loop.exits)


def check_same_paths(before: FlowGraph, ordered: OrderedGraph) -> None:
    """Latches aside, each block has the successors that it had."""
    graph = ordered.graph
    for block in graph.blocks:
        source = ordered.sources[block.index]
        if source is None:
            assert block.instructions == ()
            continue
        through: list[int] = []
        for successor in block.targets:
            if successor == graph.exit:
                through.append(before.exit)
                continue
            if ordered.sources[successor] is None:
                (successor,) = graph.successors[successor]
            place = ordered.sources[successor]
            assert place is not None
            through.append(place)
        assert tuple(through) == before.blocks[source].targets


def test_straight_line_keeps_its_order() -> None:
    ordered = order_blocks(make_graph([[1], [2], [3]]))
    assert ordered.sources == (0, 1, 2)
    assert ordered.is_reducible


def test_unreachable_blocks_are_left_out() -> None:
    assert order_blocks(make_graph([[2], [2], [3]])).sources == (0, 2)


def test_a_block_that_is_written_early_but_reached_late_comes_late() -> None:
    assert order_blocks(make_graph([[2], [4], [3], [1]])).sources == (0, 2, 3, 1)


def test_continue_gets_a_latch() -> None:
    # 1 is the header; 2 continues or goes on to 3; 3 goes back or leaves.
    ordered = order_blocks(make_graph([[1], [2, 4], [1, 3], [1, 4], [5]]))
    assert ordered.sources == (0, 1, 2, 3, None, 4)
    assert ordered.graph.successors == ((1,), (2, 5), (4, 3), (4, 5), (1,), (6,), ())
    check(ordered)


def test_back_edge_from_the_last_block_needs_no_latch() -> None:
    assert order_blocks(make_graph([[1], [2], [1, 3], [4]])).sources == (0, 1, 2, 3)


def test_loop_is_in_one_piece_although_its_exit_was_written_inside() -> None:
    # The exit (2) stands between the header (1) and the rest of the loop (3).
    ordered = order_blocks(make_graph([[1], [2, 3], [4], [1]]))
    assert ordered.sources == (0, 1, 3, 2)
    check(ordered)


def test_nested_loops_that_end_in_one_block_have_a_latch_each_where_needed() -> None:
    ordered = order_blocks(make_graph([[1], [2], [2, 1, 3], [4]]))
    assert ordered.sources == (0, 1, 2, None, 3)
    check(ordered)
    deeper = order_blocks(make_graph([[1], [2], [2, 3], [2, 1, 4], [5]]))
    assert deeper.sources == (0, 1, 2, 3, None, None, 4)
    check(deeper)


def test_loop_with_two_entries_is_flagged() -> None:
    ordered = order_blocks(make_graph([[1, 2], [2], [1, 3], [4]]))
    assert not ordered.is_reducible
    assert ordered.sources[0] == 0
    assert sorted(source for source in ordered.sources if source is not None) == [0, 1, 2, 3]


def test_fall_through_into_a_header_goes_to_the_latch() -> None:
    blocks = [
        Block(0, (), (), (), 1),
        Block(1, (), (), (2, 3), None),
        Block(2, (), (), (1,), 3),
        Block(3, (), (), (1,), 4),
    ]
    ordered = order_blocks(connect_blocks([*blocks, Block(4, (), (), (5,), None)]))
    assert ordered.sources == (0, 1, 2, 3, None, 4)
    assert ordered.graph.blocks[4].fall_through == 1
    assert ordered.graph.blocks[0].fall_through == 1


@pytest.mark.parametrize("seed", range(300))
def test_random_graphs_keep_the_promise(seed: int) -> None:
    graph = make_random_graph(seed)
    ordered = order_blocks(graph)
    assert ordered.sources[0] == 0
    check_same_paths(graph, ordered)
    if ordered.is_reducible:
        check(ordered)


def test_the_random_graphs_are_of_both_kinds() -> None:
    kinds = [order_blocks(make_random_graph(seed)) for seed in range(300)]
    assert sum(kind.is_reducible for kind in kinds) > 100
    assert sum(not kind.is_reducible for kind in kinds) > 10
    assert sum(None in kind.sources for kind in kinds) > 30
