"""Cutting blocks where lanes of a warp may have to wait for each other."""

from __future__ import annotations

from triptych.gpu.flow import SplitGraph, build_blocks, order_blocks, split_at_syncs
from triptych.gpu.isa.binding import bind
from triptych.gpu.syntax import parse

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"


def split(body: str) -> SplitGraph:
    text = f"{HEADER}.entry k()\n{{ .reg .pred %p<4>; .reg .b32 %r<9>;\n{body}\n}}"
    graph = order_blocks(build_blocks(parse(text).functions["k"])).graph
    return split_at_syncs(graph, lambda i: bind(i).defines)


def mnemonics(split: SplitGraph) -> list[list[str]]:
    return [[i.mnemonic for i in block.instructions] for block in split.graph.blocks]


def test_nothing_to_cut() -> None:
    found = split("setp.eq.u32 %p1, %r1, 0; @%p1 bra a; add.u32 %r1, %r1, 1; a: ret;")
    assert found.pieces == (range(1), range(1, 2), range(2, 3))
    assert found.graph.successors == ((2, 1), (2,), (3,), ())


def test_a_cut_before_the_first_of_those_with_the_same_lanes() -> None:
    vote = "vote.sync.ballot.b32 %r1, %p1, {};"
    found = split(f"mov.u32 %r2, 3; {vote.format(-1)} {vote.format(-1)} {vote.format('%r2')} ret;")
    assert mnemonics(found) == [["mov"], ["vote", "vote"], ["vote", "ret"]]
    assert found.pieces == (range(3),)
    assert [block.fall_through for block in found.graph.blocks] == [1, 2, None]
    assert found.graph.blocks[2].targets == (3,)


def test_a_mask_that_changed_is_another() -> None:
    found = split("bar.warp.sync %r2; bar.warp.sync %r2; mov.u32 %r2, 3; bar.warp.sync %r2; ret;")
    assert mnemonics(found) == [["bar", "bar", "mov"], ["bar", "ret"]]


def test_branches_lead_to_the_first_piece() -> None:
    found = split("a: add.u32 %r1, %r1, 1; bar.warp.sync -1; setp.lt.u32 %p1, %r1, 9; @%p1 bra a; ret;")
    assert mnemonics(found) == [["add"], ["bar", "setp", "bra"], ["ret"]]
    assert found.graph.blocks[1].targets == (0,)
    assert found.graph.blocks[1].fall_through == 2
    assert found.graph.blocks[0].labels == ("a",)
    assert not found.graph.blocks[1].labels
