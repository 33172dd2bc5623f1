"""Repeats: programs without them store the same, by an interpreter of symbols; and what is left out of kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from triptych.chips import NeuronChip, load
from triptych.core.dtypes import DTYPES
from triptych.core.source import SourceLocation
from triptych.languages.nki import language as nl
from triptych.languages.nki import nki_beta1
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.neuron.isa.hardware import Engine, Space, hardware
from triptych.neuron.isa.repeats import without_repeats
from triptych.neuron.isa.serialise import from_json
from triptych.neuron.isa.trace import AttributeValue, Instruction, Operand, Region, Tensor
from triptych.neuron.run.kinds import kinds_of
from triptych.neuron.timeline.timeline import Timeline, timeline_of

F32 = DTYPES["f32"]
WHERE = SourceLocation("kernel.py", 1)
P, TILE = 2, 3
"""Partitions, and elements of a partition of a tile (of a block, where a tensor has several)."""
BLOCKS = 4
ARRAY, OUTPUT = 0, 1
TENSORS = (
    Tensor("array", Space.HBM, F32, 1, 24, (24,), (1,)),
    Tensor("output", Space.HBM, F32, 1, 600, (600,), (1,), shared=True),
    Tensor("blocks", Space.SBUF, F32, P, BLOCKS * TILE, (P, BLOCKS * TILE), blocks=BLOCKS),
    *(Tensor(f"tile {at}", Space.SBUF, F32, P, TILE, (P, TILE)) for at in range(24)),
    *(Tensor(f"bank {at}", Space.PSUM, F32, P, TILE, (P, TILE)) for at in range(6)),
)


def offsets(region: Region) -> list[int]:
    """Of each element, in the order of the axes."""
    axes = product(*(range(count) for _, count in region.pattern))
    steps = [step for step, _ in region.pattern]
    return [region.offset + sum(step * at for step, at in zip(steps, one, strict=True)) for one in axes]


def stored(program: Sequence[Instruction]) -> dict[int, object]:
    """What lies in the output at the end: hashes of terms of instructions and of the array's elements."""
    memory: dict[tuple[int, int], object] = {}

    def values(operand: Operand) -> list[object]:
        if not isinstance(operand, Region):
            return [operand] * (P * TILE)
        array = operand.tensor == ARRAY
        return [("array", at) if array else memory.get((operand.tensor, at), "undefined") for at in offsets(operand)]

    for one in program:
        read = [values(operand) for name, operand in one.operands.items() if name != "dst"]
        target = one.region("dst")
        for at, terms in zip(offsets(target), zip(*read, strict=False), strict=False):
            known = (one.operation, tuple(one.attributes.items()), terms)
            memory[target.tensor, at] = terms[0] if one.operation == "dma_copy" else hash(known)
    return {at: value for (tensor, at), value in memory.items() if tensor == OUTPUT}


def all_tiles() -> list[Region]:
    """All of each tile, and of each block."""
    tensors = [(at, TENSORS[at]) for at in range(2, len(TENSORS))]
    return [Region(at, block * TILE, ((one.free, P), (1, TILE))) for at, one in tensors for block in range(one.blocks)]


def part(random: np.random.Generator, region: Region) -> Region:
    """All of it, or some columns."""
    first, last = sorted(int(one) for one in random.integers(0, TILE, 2))
    if random.random() < 0.7:
        return region
    return Region(region.tensor, region.offset + first, (region.pattern[0], (1, last - first + 1)))


def random_program(random: np.random.Generator) -> list[Instruction]:
    """Loads from few places, copies and products of what there is, and a store of every tile now and then."""
    program: list[Instruction] = []
    fresh = [all_tiles()[int(at)] for at in random.permutation(len(all_tiles()))]
    used = [fresh.pop()]
    stores = 0
    for _ in range(60):
        kind = random.random()
        if fresh and random.random() < 0.7:
            used.append(fresh.pop())
        target = part(random, used[-1] if random.random() < 0.9 else used[int(random.integers(len(used)))])
        if kind < 0.35:
            source = Region(ARRAY, 6 * int(random.integers(2)), ((TILE, P), target.pattern[1]))
            program.append(Instruction("dma_copy", Engine.DMA, {"dst": target, "src": source}, {}, WHERE))
        elif kind < 0.8:
            read = [used[int(random.integers(len(used)))] for _ in range(2)]
            read = [Region(one.tensor, one.offset, (one.pattern[0], target.pattern[1])) for one in read]
            op = ("add", "multiply")[int(random.integers(2))]
            operands = {"dst": target, "data1": read[0], "data2": read[1]}
            program.append(Instruction("tensor_tensor", Engine.VECTOR, operands, {"op": op}, WHERE))
        else:
            source = used[int(random.integers(len(used)))]
            place = Region(OUTPUT, stores * P * TILE, ((TILE, P), (1, TILE)))
            program.append(Instruction("dma_copy", Engine.DMA, {"dst": place, "src": source}, {}, WHERE))
            stores += 1
    return program


def test_random_programs_store_the_same() -> None:
    random = np.random.default_rng(9)
    shorter = 0
    for _ in range(300):
        program = random_program(random)
        once = without_repeats(program, TENSORS)
        if once is not None:
            shorter += 1
            assert len(once) < len(program)
            assert stored(once) == stored(program)
    assert shorter > 100


def load_of(tensor: int, at: int, source: int = ARRAY) -> Instruction:
    rows = (TENSORS[tensor].free, P)
    operands = {"dst": Region(tensor, 0, (rows, (1, TILE))), "src": Region(source, at, ((TILE, P), (1, TILE)))}
    return Instruction("dma_copy", Engine.DMA, operands, {}, WHERE)


def store_of(tensor: int, at: int) -> Instruction:
    rows = (TENSORS[tensor].free, P)
    operands = {"dst": Region(OUTPUT, at, ((TILE, P), (1, TILE))), "src": Region(tensor, 0, (rows, (1, TILE)))}
    return Instruction("dma_copy", Engine.DMA, operands, {}, WHERE)


def test_what_is_the_same() -> None:
    same = [load_of(3, 0), store_of(3, 0), load_of(4, 0), store_of(4, 6)]
    once = without_repeats(same, TENSORS)
    assert once is not None
    assert [one.region("src").tensor for one in once] == [ARRAY, 3, 3]
    for different in (
        [load_of(3, 0), store_of(3, 0), load_of(4, 6), store_of(4, 6)],  # other elements
        [load_of(3, 0), store_of(3, 0), load_of(4, 0), store_of(4, 6), load_of(4, 6), store_of(4, 12)],  # read between
        [load_of(3, 0, OUTPUT), store_of(3, 6), load_of(4, 0, OUTPUT), store_of(4, 12)],  # of an array that is written
    ):
        assert without_repeats(different, TENSORS) is None


def filled(tensor: int, value: float, **attributes: AttributeValue) -> Instruction:
    dst = Region(tensor, 0, ((TENSORS[tensor].free, P), (1, TILE)))
    return Instruction("memset", Engine.VECTOR, {"dst": dst, "value": value}, attributes, WHERE)


@pytest.mark.parametrize(
    ("first", "second", "repeats", "one_kind"),
    [
        (filled(3, 0.0), filled(4, 0.0), True, True),
        (filled(3, 0.0), filled(4, -0.0), False, True),  # a kind has no numbers
        (filled(3, 1.0, scale=0.0), filled(4, 1.0, scale=-0.0), False, False),
        (filled(3, 1.0, steps=((1, 2),)), filled(4, 1.0, steps=((1, 2),)), True, True),
        (filled(3, 1.0, steps=((1, 2),)), filled(4, 1.0, steps=((True, 2),)), False, False),
        (filled(3, 1.0, steps=1), filled(4, 1.0, steps=1.0), False, False),
    ],
)
def test_what_python_calls_equal_is_not_always_the_same(
    first: Instruction, second: Instruction, repeats: bool, one_kind: bool
) -> None:
    """0 and -0 have other bits, True and 1 are written differently."""
    once = without_repeats([first, store_of(3, 0), second, store_of(4, 6)], TENSORS)
    assert (once is not None) is repeats
    found = kinds_of([first, second], TENSORS, hardware("trn1"))
    assert (found[0] is found[1]) is one_kind


def timeline(kernel: Callable[..., NkiTensor], *arrays: NDArray[np.float32]) -> Timeline:
    trace = from_json(nki_beta1.jit(kernel).capture(*arrays).program.text)
    chip = load("trn1")
    assert isinstance(chip, NeuronChip)
    return timeline_of(trace, [range(len(program)) for program in trace.programs], chip)


@pytest.mark.parametrize(("own", "loads"), [(True, 2 + 8), (False, 2 + 4)])
def test_a_loop_s_loads_that_do_not_depend_on_it(own: bool, loads: int) -> None:
    """Each of two rows is multiplied with four weights: those are loaded once, unless they are each row's own."""

    def kernel(x: NkiTensor, w: NkiTensor) -> NkiTensor:
        out = nl.ndarray((2, 4, 128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
        rows, columns = nl.arange(128)[:, None], nl.arange(64)[None, :]
        for i in nl.affine_range(2):
            row = nl.load(x[i, rows, columns])
            for j in nl.affine_range(4):
                weight = nl.load(w[(4 * i + j) if own else j, rows, columns])
                nl.store(out[i, j, rows, columns], nl.multiply(row, weight))
        return out

    found = timeline(kernel, np.zeros((2, 128, 64), np.float32), np.zeros((8, 128, 64), np.float32))
    counts = Counter(one.operation for one in found.events())
    assert counts["dma_copy"] == loads + 8
    assert counts["tensor_tensor"] == 8
