"""Cutting bodies into blocks."""

from __future__ import annotations

import pytest

from triptych.core.errors import PtxSyntaxError
from triptych.gpu.flow import FlowGraph, build_blocks
from triptych.gpu.syntax import parse

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"


def build(body: str) -> FlowGraph:
    text = f"{HEADER}.visible .entry kernel()\n{{\n.reg .pred %p<4>; .reg .b32 %r<9>;\n{body}\n}}\n"
    function = parse(text).functions["kernel"]
    return build_blocks(function)


def edges(graph: FlowGraph) -> list[tuple[int, ...]]:
    return [block.successors for block in graph.blocks]


def test_straight_line_is_one_block() -> None:
    graph = build("mov.u32 %r1, 1; mov.u32 %r2, 2; ret;")
    assert edges(graph) == [(1,)]
    assert graph.exit == 1
    assert [i.mnemonic for i in graph.blocks[0].instructions] == ["mov", "mov", "ret"]
    assert graph.predecessors == ((), (0,))


def test_guarded_branch_goes_to_its_target_and_falls_through() -> None:
    graph = build("@%p1 bra DONE; mov.u32 %r1, 1; DONE: ret;")
    assert edges(graph) == [(2, 1), (2,), (3,)]
    assert graph.blocks[0].targets == (2,)
    assert graph.blocks[0].fall_through == 1
    assert graph.blocks[1].terminator is None
    assert graph.blocks[2].labels == ("DONE",)
    assert graph.predecessors[2] == (0, 1)


def test_unconditional_branch_leaves_dead_code_unreachable() -> None:
    graph = build("bra.uni DONE; mov.u32 %r1, 1; DONE: ret;")
    assert edges(graph) == [(2,), (2,), (3,)]


@pytest.mark.parametrize("leaving", ["ret", "exit", "trap"])
def test_guarded_leaving_has_two_ways(leaving: str) -> None:
    graph = build(f"@!%p0 {leaving}; ret;")
    assert edges(graph) == [(2, 1), (2,)]
    assert graph.blocks[0].targets == (graph.exit,)


def test_indexed_branch_keeps_the_order_of_its_list() -> None:
    graph = build("LIST: .branchtargets A, B, A; brx.idx %r1, LIST; A: ret; B: ret;")
    assert graph.blocks[0].targets == (1, 2, 1)
    assert graph.blocks[0].fall_through is None
    assert graph.successors[0] == (1, 2)


def test_labels_that_no_branch_names_do_not_cut() -> None:
    graph = build("mov.u32 %r1, 1; $L__tmp0: mov.u32 %r2, 1; ret; $L__func_end0:")
    assert len(graph.blocks) == 1


def test_several_labels_name_one_block() -> None:
    graph = build("@%p1 bra A; @%p2 bra B; A: B: ret;")
    assert edges(graph) == [(2, 1), (2,), (3,)]
    assert graph.blocks[2].labels == ("A", "B")


def test_barriers_of_the_block_end_theirs() -> None:
    graph = build("bar.sync 0; mov.u32 %r1, 1; barrier.sync 0; bar.sync 0; ret;")
    assert edges(graph) == [(1,), (2,), (3,), (4,)]
    assert graph.blocks[0].terminator is None
    assert [len(block.instructions) for block in graph.blocks] == [1, 2, 1, 1]
    assert [block.waits for block in graph.blocks] == [True, True, True, False]
    assert [block.only_ends for block in graph.blocks] == [False, False, False, True]


def test_barriers_of_a_warp_do_not() -> None:
    assert len(build("bar.warp.sync -1; ret;").blocks) == 1


def test_empty_function_is_an_empty_block() -> None:
    graph = build("")
    assert edges(graph) == [(1,)]
    assert graph.blocks[0].instructions == ()
    assert graph.blocks[0].terminator is None


def test_a_label_at_the_end_that_is_never_reached_falls_to_the_exit() -> None:
    graph = build("@%p1 bra NEVER; ret; NEVER:")
    assert edges(graph) == [(2, 1), (3,), (3,)]
    assert graph.blocks[2].fall_through == graph.exit


@pytest.mark.parametrize("body", ["mov.u32 %r1, 1;", "@%p1 ret;", "LOOP: @%p1 bra LOOP;"])
def test_falling_off_the_end_is_an_error_with_its_line(body: str) -> None:
    with pytest.raises(PtxSyntaxError, match=r"(?s)the end of 'kernel' can be reached.*<ptx>:7"):
        build(body)


def test_endless_loop_does_not_fall_off() -> None:
    assert edges(build("LOOP: bra LOOP;")) == [(0,)]
