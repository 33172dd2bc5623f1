"""The cost table: every instruction has a row, and rows give the cycles that are published."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from triptych.core.dtypes import DTYPES
from triptych.core.source import SourceLocation
from triptych.neuron.isa import ROWS
from triptych.neuron.isa.hardware import Engine, Space
from triptych.neuron.isa.trace import AttributeValue, Dynamic, Indexing, Instruction, Pattern, Region, Tensor
from triptych.neuron.timeline.costs import ALL_GENERATIONS, ALWAYS, candidates, cycles_of

WHERE = SourceLocation("kernel.py", 1)
VECTOR, SCALAR, GPSIMD, PE = Engine.VECTOR, Engine.SCALAR, Engine.GPSIMD, Engine.TENSOR
Operand = tuple[str, str, int]
"""Dtype, memory, elements a partition."""

SPACES = {"sbuf": Space.SBUF, "psum": Space.PSUM}


def cycles(
    name: str,
    engine: Engine,
    generation: int,
    operands: Mapping[str, Operand],
    attributes: Mapping[str, AttributeValue] | None = None,
    step: int = 1,
) -> float:
    """Of an instruction of 128 partitions whose operands' elements lie a step apart."""
    tensors: list[Tensor] = []
    regions: dict[str, Region | float] = {}
    for operand, (dtype, space, free) in operands.items():
        pattern: Pattern = ((free * step, 128), (step, free))
        regions[operand] = Region(len(tensors), 0, pattern)
        tensors.append(Tensor(operand, SPACES[space], DTYPES[dtype], 128, free * step, (128, free * step)))
    return cycles_of(Instruction(name, engine, regions, attributes or {}, WHERE), tensors, generation)


def pair(dtype: str, *, src: str = "sbuf", dst: str = "sbuf", free: int = 512) -> dict[str, Operand]:
    return {"dst": (dtype, dst, free), "src": (dtype, src, free)}


def two(dtype: str, *, first: str = "sbuf", free: int = 512) -> dict[str, Operand]:
    return {"dst": (dtype, "sbuf", free), "data1": (dtype, first, free), "data2": (dtype, "sbuf", free)}


@pytest.mark.parametrize(
    ("engine", "operands", "step", "by_generation"),
    [
        (VECTOR, pair("f32"), 1, (512, 512, 512)),
        (VECTOR, pair("f32", free=8), 1, (64, 64, 64)),
        (VECTOR, pair("bf16"), 1, (512, 128, 128)),
        (VECTOR, pair("bf16"), 2, (512, 256, 256)),
        (VECTOR, pair("bf16", src="psum"), 1, (512, 256, 256)),
        (SCALAR, pair("bf16"), 1, (512, 512, 256)),
        (SCALAR, pair("f32"), 1, (512, 512, 512)),
        (GPSIMD, pair("f32"), 1, (662, 662, 662)),
    ],
)
def test_copies(engine: Engine, operands: Mapping[str, Operand], step: int, by_generation: tuple[int, ...]) -> None:
    found = [cycles("tensor_copy", engine, one, operands, step=step) for one in ALL_GENERATIONS]
    assert found == list(by_generation)


@pytest.mark.parametrize(
    ("operands", "op", "by_generation"),
    [
        (two("f32"), "add", (1024, 1024, 1024)),
        (two("f32", first="psum"), "add", (512, 512, 512)),
        (two("bf16"), "add", (512, 256, 256)),
        (two("bf16"), "maximum", (1024, 256, 256)),
        (two("f32", free=4), "add", (64, 64, 64)),
    ],
)
def test_two_tiles(operands: Mapping[str, Operand], op: str, by_generation: tuple[int, ...]) -> None:
    found = [cycles("tensor_tensor", VECTOR, one, operands, {"op": op}) for one in ALL_GENERATIONS]
    assert found == list(by_generation)


def product(dtype: str, columns: int, stationary: int = 128) -> dict[str, Operand]:
    return {
        "dst": ("f32", "psum", columns),
        "stationary": (dtype, "sbuf", stationary),
        "moving": (dtype, "sbuf", columns),
    }


@pytest.mark.parametrize(
    ("operands", "attributes", "by_generation"),
    [
        (product("bf16", 512), {}, (512, 512, 512)),
        (product("f32", 512), {}, (2048 + 4 * 96, 2048, 2048)),
        (product("bf16", 16), {}, (64, 64, 64)),
        (product("bf16", 16, stationary=32), {}, (32, 32, 32)),
        (product("f32", 128), {"is_transpose": True}, (512 + 4 * 96, 256, 256)),
        (product("f8e4m3", 1024), {"double_row": True}, (512, 512, 512)),
    ],
)
def test_products(
    operands: Mapping[str, Operand], attributes: Mapping[str, AttributeValue], by_generation: tuple[int, ...]
) -> None:
    assert [cycles("nc_matmul", PE, one, operands, attributes) for one in ALL_GENERATIONS] == list(by_generation)


@pytest.mark.parametrize(
    ("name", "engine", "operands", "expected"),
    [
        ("tensor_reduce", VECTOR, {"dst": ("f32", "sbuf", 1), "data": ("f32", "sbuf", 512)}, 512),
        ("tensor_reduce", VECTOR, {"dst": ("bf16", "sbuf", 1), "data": ("bf16", "sbuf", 512)}, 256),
        ("activation", SCALAR, {"dst": ("f32", "sbuf", 512), "data": ("f32", "sbuf", 512)}, 512),
        ("bn_aggr", VECTOR, {"dst": ("f32", "sbuf", 2), "data": ("f32", "sbuf", 36)}, 156),
        ("reciprocal", VECTOR, {"dst": ("f32", "sbuf", 100), "data": ("f32", "sbuf", 100)}, 280),
        ("nc_transpose", PE, {"dst": ("bf16", "psum", 128), "data": ("bf16", "sbuf", 128)}, 128),
        ("iota", GPSIMD, {"dst": ("s32", "sbuf", 512)}, 662),
    ],
)
def test_others(name: str, engine: Engine, operands: Mapping[str, Operand], expected: float) -> None:
    assert cycles(name, engine, 2, operands, {"op": "add"}) == pytest.approx(expected)


def test_transposing_float32_takes_as_long_as_a_product_with_the_identity() -> None:
    operands = {"dst": ("f32", "psum", 128), "data": ("f32", "sbuf", 128)}
    for generation in ALL_GENERATIONS:
        product_cycles = cycles("nc_matmul", PE, generation, product("f32", 128), {"is_transpose": True})
        assert cycles("nc_transpose", PE, generation, operands) == product_cycles


def test_a_place_known_only_when_it_runs() -> None:
    index = Tensor("index", Space.SBUF, DTYPES["s32"], 1, 1, (1, 1))
    tile = Tensor("tile", Space.SBUF, DTYPES["f32"], 128, 64, (128, 64))
    moved = Region(1, 0, ((64, 128), (1, 16)), Dynamic(Indexing.SCALAR, Region(0, 0, ((1, 1), (1, 1))), 1, 48))
    copy = Instruction("tensor_copy", VECTOR, {"dst": Region(1, 0, ((64, 128), (1, 16))), "src": moved}, {}, WHERE)
    assert cycles_of(copy, (index, tile), 3) == 600


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("generation", ALL_GENERATIONS)
def test_every_instruction_has_a_row(name: str, generation: int) -> None:
    for engine in ROWS[name].engines:
        if engine is not Engine.DMA:
            assert candidates(name, engine, generation)[-1].when is ALWAYS
