"""Dependencies: those of the machine = those that sets of bytes give."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from triptych.core.dtypes import DTYPES
from triptych.core.source import SourceLocation
from triptych.neuron.isa.hardware import Engine, Space
from triptych.neuron.isa.trace import Instruction, Pattern, Region, Tensor
from triptych.neuron.timeline import footprints
from triptych.neuron.timeline.causes import Cause
from triptych.neuron.timeline.dependencies import dependencies_of

F32, BF16 = DTYPES["f32"], DTYPES["bf16"]
WHERE = SourceLocation("kernel.py", 1)
ENGINES = (Engine.VECTOR, Engine.SCALAR, Engine.GPSIMD)


def sbuf(partitions: int, free: int, name: str = "t", address: int | None = None, start: int = 0) -> Tensor:
    return Tensor(name, Space.SBUF, F32, partitions, free, (partitions, free), address=address, start=start)


def copy(engine: Engine, dst: Region, src: Region) -> Instruction:
    name = "dma_copy" if engine is Engine.DMA else "tensor_copy"
    return Instruction(name, engine, {"dst": dst, "src": src}, {}, WHERE)


def bytes_of(region: Region, tensors: Sequence[Tensor]) -> frozenset[tuple[object, int]]:
    """The bytes of a region, each one by one: of placed tensors where they lie in the memory."""
    tensor = tensors[region.tensor]
    found: set[tuple[object, int]] = set()
    for index in product(*(range(count) for _, count in region.pattern)):
        offset = region.offset + sum(step * one for (step, _), one in zip(region.pattern, index, strict=True))
        partition, element = divmod(offset, tensor.free)
        for byte in range(element * tensor.dtype.bytes, (element + 1) * tensor.dtype.bytes):
            if tensor.address is None:
                root = region.tensor if tensor.alias is None else tensor.alias
                found.add((root, partition * tensor.bytes_per_partition + byte))
            else:
                found.add((tensor.space, (tensor.start + partition) * (1 << 20) + tensor.address + byte))
    return frozenset(found)


def hazards(program: Sequence[Instruction], tensors: Sequence[Tensor]) -> list[dict[int, set[Cause]]]:
    """Every pair of steps that share a byte that one of them writes, with all their hazards."""
    read = [bytes_of(one.region("src"), tensors) for one in program]
    written = [bytes_of(one.region("dst"), tensors) for one in program]
    found: list[dict[int, set[Cause]]] = []
    for step in range(len(program)):
        mine: dict[int, set[Cause]] = {}
        for other in range(step):
            shared = (
                (Cause.DATA, read[step] & written[other]),
                (Cause.BUFFER_WRITTEN, written[step] & written[other]),
                (Cause.BUFFER_READ, written[step] & read[other]),
            )
            causes = {cause for cause, common in shared if common}
            if causes:
                mine[other] = causes
        found.append(mine)
    return found


def ordered_by(found: Sequence[Sequence[tuple[int, Cause]]], program: Sequence[Instruction]) -> list[set[int]]:
    """The steps that are over before each: through dependencies, and the order of the engines' queues."""
    before: list[set[int]] = []
    for step, own in enumerate(found):
        direct = {other for other, _ in own}
        if program[step].engine is not Engine.DMA:
            direct |= {other for other in range(step) if program[other].engine is program[step].engine}
        before.append(direct.union(*(before[other] for other in direct)))
    return before


def random_box(random: np.random.Generator, tensor: int, tensors: Sequence[Tensor]) -> Region:
    """Some partitions, or rows of an array, and in each some elements side by side."""
    partitions, free = tensors[tensor].shape
    rows, columns = int(random.integers(1, partitions + 1)), int(random.integers(1, free + 1))
    row, column = int(random.integers(partitions - rows + 1)), int(random.integers(free - columns + 1))
    return Region(tensor, row * free + column, ((free, rows), (1, columns)))


def random_strided(random: np.random.Generator, tensor: int, tensors: Sequence[Tensor]) -> Region:
    """Some partitions, a step apart, and elements along up to two axes of each, forwards or backwards."""
    partitions, free = tensors[tensor].partitions, tensors[tensor].free
    stride = int(random.integers(1, 3))
    rows = int(random.integers(1, (partitions - 1) // stride + 2))
    step, count = int(random.integers(1, 5)), int(random.integers(1, 3))
    inner = int(random.integers(1, 4))
    reach = step * (count - 1) + inner - 1
    while reach >= free:
        count, inner, reach = 1, 1, 0
    column = int(random.integers(free - reach))
    row = int(random.integers(partitions - (rows - 1) * stride))
    axes: Pattern = ((step, count), (1, inner))
    if random.random() < 0.3:
        column, axes = column + inner - 1, ((step, count), (-1, inner))
    return Region(tensor, row * free + column, ((free * stride, rows), *axes))


def random_program(
    random: np.random.Generator, tensors: Sequence[Tensor], *, boxes: bool, steps: int = 24
) -> list[Instruction]:
    draw = random_box if boxes else random_strided
    program: list[Instruction] = []
    for _ in range(steps):
        engine = (*ENGINES, Engine.DMA)[int(random.integers(4))]
        dst, src = (draw(random, int(random.integers(len(tensors))), tensors) for _ in range(2))
        program.append(copy(engine, dst, src))
    return program


PLAIN = (sbuf(4, 12), sbuf(3, 8), Tensor("array", Space.HBM, F32, 1, 40, (5, 8), (8, 1)))
PLACED = (sbuf(4, 6, address=0), sbuf(4, 6, address=16), sbuf(2, 4, address=40, start=1))
VIEWED = (sbuf(4, 6), Tensor("view", Space.SBUF, BF16, 4, 12, (4, 12), alias=0))


@pytest.mark.parametrize("boxes", [True, False])
@pytest.mark.parametrize("tensors", [PLAIN, PLACED, VIEWED])
def test_every_hazard_is_waited_for(tensors: Sequence[Tensor], boxes: bool) -> None:
    random = np.random.default_rng(20)
    for _ in range(8):
        program = random_program(random, tensors, boxes=boxes)
        before = ordered_by(dependencies_of(program, range(len(program)), tensors), program)
        for step, expected in enumerate(hazards(program, tensors)):
            assert expected.keys() <= before[step]


@pytest.mark.parametrize("tensors", [PLAIN, PLACED, VIEWED])
def test_nothing_is_lost_where_cuts_are_given_up(tensors: Sequence[Tensor], monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(23)
    for most in (0, 1, 4):
        monkeypatch.setattr(footprints, "MOST_CELLS", most)
        for _ in range(4):
            program = random_program(random, tensors, boxes=False)
            before = ordered_by(dependencies_of(program, range(len(program)), tensors), program)
            for step, expected in enumerate(hazards(program, tensors)):
                assert expected.keys() <= before[step]


@pytest.mark.parametrize("tensors", [PLAIN, PLACED, VIEWED])
def test_boxes_wait_for_nothing_else(tensors: Sequence[Tensor]) -> None:
    random = np.random.default_rng(21)
    for _ in range(30):
        program = random_program(random, tensors, boxes=True, steps=10)
        found = dependencies_of(program, range(len(program)), tensors)
        for step, expected in enumerate(hazards(program, tensors)):
            for other, cause in found[step]:
                assert cause in expected[other]


def whole(tensor: int, tensors: Sequence[Tensor]) -> Region:
    partitions, free = tensors[tensor].partitions, tensors[tensor].free
    return Region(tensor, 0, ((free, partitions), (1, free)))


def test_the_kinds_of_hazards() -> None:
    tensors = (sbuf(4, 8), sbuf(4, 8), sbuf(4, 8))
    a, b, c = (whole(one, tensors) for one in range(3))
    program = [
        copy(Engine.DMA, b, a),
        copy(Engine.VECTOR, c, b),
        copy(Engine.DMA, b, a),
        copy(Engine.SCALAR, c, a),
        copy(Engine.SCALAR, c, a),
    ]
    assert dependencies_of(program, range(5), tensors) == [
        (),
        ((0, Cause.DATA),),
        ((0, Cause.BUFFER_WRITTEN), (1, Cause.BUFFER_READ)),
        ((1, Cause.BUFFER_WRITTEN),),
        (),  # the queue of its engine says as much
    ]


def test_columns_of_rows_do_not_touch() -> None:
    """Column blocks of a row-major array, whose bytes interleave."""
    tensors = (sbuf(8, 16), Tensor("out", Space.HBM, F32, 1, 8 * 64, (8, 64), (64, 1)))
    stores = [copy(Engine.DMA, Region(1, 16 * one, ((64, 8), (1, 16))), whole(0, tensors)) for one in range(4)]
    again = copy(Engine.DMA, Region(1, 24, ((64, 8), (1, 16))), whole(0, tensors))
    found = dependencies_of([*stores, again], range(5), tensors)
    assert found[:4] == [()] * 4
    assert found[4] == ((1, Cause.BUFFER_WRITTEN), (2, Cause.BUFFER_WRITTEN))


def test_a_loop_s_rounds_wait_for_each_other() -> None:
    tensors = (sbuf(4, 8), sbuf(4, 8))
    a, b = whole(0, tensors), whole(1, tensors)
    found = dependencies_of([copy(Engine.DMA, b, a), copy(Engine.VECTOR, a, b)], [0, 1, 0, 1], tensors)
    assert found[2] == ((1, Cause.DATA), (0, Cause.BUFFER_WRITTEN))
    assert found[3] == ((2, Cause.DATA),)
