"""Liveness against a search of all paths."""

from __future__ import annotations

import random

import pytest

from triptych.gpu.flow import Block, FlowGraph, connect_blocks, find_liveness
from triptych.gpu.syntax.ast import Guard, Instruction, Register

NAMES = ("a", "b", "c", "p")


def uses(instruction: Instruction) -> tuple[str, ...]:
    return tuple(operand.name for operand in instruction.operands[1:] if isinstance(operand, Register))


def defines(instruction: Instruction) -> tuple[str, ...]:
    return tuple(operand.name for operand in instruction.operands[:1] if isinstance(operand, Register))


def make(target: str, *sources: str, guard: str = "") -> Instruction:
    operands = tuple(Register(name) for name in (target, *sources))
    return Instruction("op", (), operands, Guard(Register(guard), False) if guard else None, 1)


def make_random_graph(seed: int) -> FlowGraph:
    generator = random.Random(seed)
    count = generator.randrange(1, 9)
    blocks: list[Block] = []
    for index in range(count):
        instructions = [
            make(
                generator.choice(NAMES),
                *generator.choices(NAMES, k=generator.randrange(3)),
                guard="p" if generator.random() < 0.3 else "",
            )
            for _ in range(generator.randrange(4))
        ]
        targets = tuple(generator.randrange(count + 1) for _ in range(generator.choice((1, 2))))
        blocks.append(Block(index, (), tuple(instructions), targets, None))
    return connect_blocks(blocks)


def is_wanted(graph: FlowGraph, block: int, name: str) -> bool:
    """Whether some path from the block's start reads the register before it surely writes it."""
    seen: set[int] = set()
    stack = [block]
    while stack:
        current = stack.pop()
        if current in seen or current == graph.exit:
            continue
        seen.add(current)
        for instruction in graph.blocks[current].instructions:
            guard = instruction.guard
            if name in uses(instruction) or (guard is not None and guard.register.name == name):
                return True
            if name in defines(instruction) and guard is None:
                break
        else:
            stack.extend(graph.successors[current])
    return False


@pytest.mark.parametrize("seed", range(200))
def test_liveness_is_what_a_search_of_paths_finds(seed: int) -> None:
    graph = make_random_graph(seed)
    liveness = find_liveness(graph, uses, defines)
    for block in range(graph.exit):
        assert liveness.live_in(block) == {name for name in NAMES if is_wanted(graph, block, name)}
        after = {name for s in graph.successors[block] for name in NAMES if is_wanted(graph, s, name)}
        assert liveness.live_out(block) == after


def test_guarded_definition_keeps_the_old_value_alive() -> None:
    blocks = [
        Block(0, (), (make("a"), make("p")), (), 1),
        Block(1, (), (make("a", guard="p"),), (), 2),
        Block(2, (), (make("b", "a"),), (3,), None),
    ]
    liveness = find_liveness(connect_blocks(blocks), uses, defines)
    assert liveness.live_in(0) == set()
    assert liveness.live_in(1) == {"a", "p"}
    assert liveness.live_in(2) == {"a"}
    assert liveness.live_out(2) == set()


def test_loop_carries_its_counter() -> None:
    blocks = [
        Block(0, (), (make("a"),), (), 1),
        Block(1, (), (make("a", "a"), make("p", "a")), (1,), 2),
        Block(2, (), (make("b"),), (3,), None),
    ]
    liveness = find_liveness(connect_blocks(blocks), uses, defines)
    assert liveness.live_out(1) == {"a"}
    assert liveness.live_in(2) == set()


def test_long_chain_with_many_registers() -> None:
    count = 2000
    blocks = [
        Block(i, (), (make(f"r{i}", f"r{i - 1}", f"r{i // 2}"),) if i else (make("r0"),), (max(i - 7, 0),), i + 1)
        for i in range(count)
    ]
    liveness = find_liveness(connect_blocks(blocks), uses, defines)
    assert "r0" in liveness.live_in(1)
    assert liveness.live_in(0) <= {f"r{i}" for i in range(count)}
