"""Uniform registers: cases worked out by hand, and random programs run lane by lane."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from triptych.gpu.flow import FlowGraph, build_blocks, find_uniform_registers, order_blocks
from triptych.gpu.syntax import parse
from triptych.gpu.syntax.ast import Instruction, Integer, Register

LANES = 4
HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
DECLARATIONS = ".reg .pred %p<4>; .reg .b32 %r<9>;"


def uses(instruction: Instruction) -> tuple[str, ...]:
    operands = instruction.operands[0 if instruction.mnemonic in ("bra", "brx") else 1 :]
    return tuple(operand.name for operand in operands if isinstance(operand, Register))


def defines(instruction: Instruction) -> tuple[str, ...]:
    if instruction.mnemonic in ("bra", "brx", "ret"):
        return ()
    return tuple(operand.name for operand in instruction.operands[:1] if isinstance(operand, Register))


def build(body: str) -> tuple[FlowGraph, bool]:
    text = f"{HEADER}.entry kernel()\n{{\n{DECLARATIONS}\n{body}\n}}\n"
    ordered = order_blocks(build_blocks(parse(text).functions["kernel"]))
    return ordered.graph, ordered.is_reducible


def find(graph: FlowGraph) -> frozenset[str]:
    return find_uniform_registers(graph, uses, defines, lambda i: i.mnemonic == "shfl", divergent=["%laneid"])


def find_in(body: str) -> frozenset[str]:
    return find(build(body)[0])


def test_divergence_spreads_through_operands() -> None:
    assert find_in("mov.u32 %r1, 7; mov.u32 %r2, %laneid; add.u32 %r3, %r1, %r1; add.u32 %r4, %r1, %r2; ret;") == {
        "%r1",
        "%r3",
    }


def test_an_instruction_that_spreads_is_divergent_whatever_it_reads() -> None:
    assert find_in("mov.u32 %r1, 7; shfl.sync.idx.b32 %r2, %r1, 0, 31, -1; ret;") == {"%r1"}


def test_a_definition_under_a_divergent_guard_is_divergent() -> None:
    body = """mov.u32 %r1, 7; setp.lt.u32 %p1, %laneid, 2; @%p1 mov.u32 %r1, 8;
        setp.lt.u32 %p2, %r2, 2; @%p2 mov.u32 %r3, 8; ret;"""
    assert find_in(body) == {"%p2", "%r3"}


def test_a_value_that_two_arms_write_differs_where_they_meet() -> None:
    body = """setp.lt.u32 %p1, %laneid, 2; mov.u32 %r2, 5;
        @%p1 bra ELSE; mov.u32 %r1, 1; bra DONE; ELSE: mov.u32 %r1, 2; DONE: add.u32 %r3, %r1, %r2; ret;"""
    assert find_in(body) == {"%r2"}


def test_a_uniform_branch_tears_nothing() -> None:
    body = """setp.lt.u32 %p1, %r5, 2;
        @%p1 bra ELSE; mov.u32 %r1, 1; bra DONE; ELSE: mov.u32 %r1, 2; DONE: mov.u32 %r3, %r1; ret;"""
    assert find_in(body) == {"%p1", "%r1", "%r3"}


def test_a_value_that_one_arm_writes_and_the_other_reads_is_torn() -> None:
    body = """setp.lt.u32 %p1, %laneid, 2; mov.u32 %r1, 5;
        @%p1 bra ELSE; mov.u32 %r1, 1; bra DONE; ELSE: mov.u32 %r2, %r1; DONE: ret;"""
    assert "%r1" not in find_in(body)


def test_a_loop_inside_one_arm_keeps_its_counter_uniform() -> None:
    body = """setp.ge.u32 %p1, %laneid, 2; @%p1 bra DONE; mov.u32 %r1, 0;
        LOOP: add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 9; @%p2 bra LOOP; DONE: ret;"""
    assert find_in(body) == {"%r1", "%p2"}


def test_the_counter_of_a_loop_that_lanes_leave_one_by_one() -> None:
    inside = """mov.u32 %r1, 0;
        LOOP: add.u32 %r1, %r1, 1; add.u32 %r2, %r1, 3; setp.lt.u32 %p2, %r1, %laneid; @%p2 bra LOOP;"""
    assert find_in(f"{inside} ret;") == {"%r1", "%r2"}
    assert find_in(f"{inside} mov.u32 %r3, %r2; ret;") == {"%r1"}


def generate_body(seed: int) -> str:
    generator = random.Random(seed)
    registers = [f"%r{i}" for i in range(5)]
    predicates = ["%p0", "%p1", "%p2"]
    count = generator.randrange(2, 9)
    body = ""
    for index in range(count):
        body += f"L{index}:\n"
        for _ in range(generator.randrange(4)):
            guard = f"@{generator.choice(predicates)} " if generator.random() < 0.15 else ""
            one, two = generator.choices(registers, k=2)
            match generator.randrange(8):
                case 0:
                    body += f"{guard}mov.u32 {one}, %laneid;\n"
                case 1 | 2:
                    body += f"{guard}mov.u32 {one}, {generator.randrange(4)};\n"
                case 3 | 4 | 5:
                    body += f"{guard}add.u32 {one}, {two}, {generator.choice([*registers, '1', '2'])};\n"
                case _:
                    body += (
                        f"{guard}setp.lt.u32 {generator.choice(predicates)}, {one}, {generator.choice([two, '3'])};\n"
                    )
        target = generator.randrange(max(index - 3, 0), min(index + 4, count))
        if generator.random() < 0.8:
            body += f"@{generator.choice(predicates)} bra L{target};\n"
        elif generator.random() < 0.5:
            body += f"bra L{target};\n"
    return body + "ret;"


class Machine:
    """Runs a graph lane by lane in the order of its blocks, beside one scalar for each uniform register."""

    def __init__(self, graph: FlowGraph, uniform: frozenset[str]) -> None:
        self.graph = graph
        self.uniform = uniform
        self.places = [0] * LANES
        self.lanes: list[dict[str, int]] = [{"%laneid": lane} for lane in range(LANES)]
        self.scalars: dict[str, int] = {}
        self.checked = 0

    def run(self, steps: int) -> None:
        for _ in range(steps):
            block = min(self.places)
            if block == self.graph.exit:
                return
            self.run_block(block, [lane for lane in range(LANES) if self.places[lane] == block])

    def run_block(self, number: int, active: list[int]) -> None:
        block = self.graph.blocks[number]
        for instruction in block.instructions[: -1 if block.targets else None]:
            self.run_instruction(instruction, [lane for lane in active if self.passes(instruction, lane)])
        for lane in active:
            last = block.terminator
            taken = last is not None and self.passes(last, lane)
            after = block.targets[0] if taken else block.fall_through
            assert after is not None
            self.places[lane] = after

    def passes(self, instruction: Instruction, lane: int) -> bool:
        return instruction.guard is None or bool(self.read(lane, instruction.guard.register.name))

    def read(self, lane: int, name: str) -> int:
        value = self.lanes[lane].get(name, 0)
        if name in self.uniform:
            assert value == self.scalars.get(name, 0), f"{name} is not uniform"
            self.checked += 1
        return value

    def run_instruction(self, instruction: Instruction, active: list[int]) -> None:
        operation: dict[str, Callable[[list[int]], int]] = {
            "mov": lambda values: values[0],
            "add": lambda values: (values[0] + values[1]) % 7,
            "setp": lambda values: int(values[0] < values[1]),
        }
        results: list[int] = []
        for lane in active:
            values: list[int] = []
            for operand in instruction.operands[1:]:
                assert isinstance(operand, Register | Integer)
                values.append(self.read(lane, operand.name) if isinstance(operand, Register) else operand.value)
            results.append(operation[instruction.mnemonic](values))
        (name,) = defines(instruction)
        for lane, result in zip(active, results, strict=True):
            self.lanes[lane][name] = result
        if name in self.uniform and results:
            assert len(set(results)) == 1
            self.scalars[name] = results[0]


@pytest.mark.parametrize("first", range(0, 1000, 100))
def test_one_scalar_serves_all_lanes_of_random_programs(first: int) -> None:
    checked = 0
    for seed in range(first, first + 100):
        graph, is_reducible = build(generate_body(seed))
        if is_reducible:
            machine = Machine(graph, find(graph))
            machine.run(200)
            checked += machine.checked
    assert checked > 500
