"""What an instruction costs the engine that executes it, by generation: a table, each row with its source.

The formulas count cycles of the executing engine; N is the elements of a partition, P the partitions, M the columns of
a matmul's stationary operand. All of it is a model: AWS publishes formulas, not the hardware's timing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from triptych.neuron.isa.dynamic import Indexing
from triptych.neuron.isa.hardware import Engine, Space
from triptych.neuron.isa.row import ROWS, Cost
from triptych.neuron.isa.trace import Instruction, Tensor
from triptych.neuron.timeline.use import Use

LEAST_CYCLES = 64
"""Between the starts of two instructions of an engine. Source: MIN_II of the NKI reference of SDK 2.26."""
GPSIMD_START = 150
"""Cycles before GPSIMD's first element. Source: the NKI reference of SDK 2.26."""
DYNAMIC_CYCLES = 600
"""The least of an instruction whose place is known only when it runs. Source: the NKI reference of SDK 2.26."""
RESULT_CYCLES = 60
"""Behind an instruction's end, until others see its result: the latency of SBUF and PSUM. Source: the architecture
guide of NeuronCore-v2."""
FLOAT32_PASSES = 4
"""Passes of a float32 product, whose rate is a quarter. Source: the architecture guides."""
PASS_CYCLES = 96
"""What each pass of a float32 product takes on NeuronCore-v2 beside its columns. Fitted to NKIBench's products on
Trainium (docs/data/nkibench.json); published is that the stationary operand is loaded in the background."""
GPSIMD_HZ = 1.2e9
"""GPSIMD's clock where its costs are published in seconds: that of NeuronCore-v3 and -v4."""


@dataclass(frozen=True, slots=True)
class Formula:
    """Cycles of the executing engine, as text and as a function."""

    text: str
    cycles: Callable[[Use], float]


@dataclass(frozen=True, slots=True)
class Condition:
    """When a row is an instruction's, as text and as a function."""

    text: str
    holds: Callable[[Use], bool]


def _always(use: Use) -> bool:
    del use
    return True


ALWAYS = Condition("", _always)
ALL_ENGINES = frozenset(Engine)
ALL_GENERATIONS = (2, 3, 4)


@dataclass(frozen=True, slots=True)
class Rate:
    """A row: what instructions of a class cost; the first row that fits an instruction is its."""

    cost: Cost
    formula: Formula
    source: str
    generations: tuple[int, ...] = ALL_GENERATIONS
    engines: frozenset[Engine] = ALL_ENGINES
    when: Condition = ALWAYS
    names: frozenset[str] = frozenset()
    """The instructions that it is for; none named: all of the class."""


# Formulas


def _of_n(text: str, cycles: Callable[[int], float]) -> Formula:
    """A function of N, but no less than the least between two instructions."""
    return Formula(f"max({LEAST_CYCLES}, {text})", lambda use: max(LEAST_CYCLES, cycles(use.free)))


def _passes(use: Use) -> int:
    """Of the Tensor engine's array, for the dtype of its operands."""
    return FLOAT32_PASSES if "f32" in use.dtypes("stationary", "moving") else 1


def _matmul(use: Use) -> float:
    return max(min(LEAST_CYCLES, use.columns("stationary")), use.columns("moving")) * _passes(use)


def _float32_matmul(use: Use) -> float:
    return _matmul(use) + PASS_CYCLES * FLOAT32_PASSES


def _transpose(use: Use) -> float:
    data = use.instruction.region("data")
    return max(data.partitions, min(LEAST_CYCLES, data.free))


def _float32_transpose(use: Use) -> float:
    return (_transpose(use) + PASS_CYCLES) * FLOAT32_PASSES


def _gpsimd_bytes(use: Use) -> float:
    moved = max(one.size * use.tensors[one.tensor].dtype.bytes for one in use.regions())
    return moved / 307e9 * GPSIMD_HZ


def _top(use: Use) -> float:
    wanted = use.instruction.attributes.get("n")
    return 4 * use.free + (wanted if isinstance(wanted, int) else 0)


_N = _of_n("N", float)
_HALF_N = _of_n("N / 2", lambda n: n / 2)
_QUARTER_N = _of_n("N / 4", lambda n: n / 4)
_TWICE_N = _of_n("2 N", lambda n: 2 * n)
_N_AND_SUM = Formula("max(64, N) + 64", lambda use: max(LEAST_CYCLES, use.free) + LEAST_CYCLES)
_GPSIMD_N = Formula("150 + N", lambda use: GPSIMD_START + use.free)
_MATMUL = Formula("max(min(64, M), N), 4 times that of float32", _matmul)
_MATMUL_TRANSPOSE = Formula("2 max(min(64, M), N)", lambda use: _matmul(use) / 2)
_FLOAT32_MATMUL = Formula(f"4 (max(min(64, M), N) + {PASS_CYCLES})", _float32_matmul)
_TRANSPOSE = Formula("max(P, min(64, N))", _transpose)
_TWICE_TRANSPOSE = Formula("2 max(P, min(64, N))", lambda use: 2 * _transpose(use))
_FLOAT32_TRANSPOSE = Formula(f"4 (max(P, min(64, N)) + {PASS_CYCLES})", _float32_transpose)
_TOP = Formula("4 N + K", _top)
_LEAST = Formula("64", lambda use: LEAST_CYCLES)
_GPSIMD_BYTES = Formula("its bytes at 307 GB/s", _gpsimd_bytes)
_NONZERO = Formula("90.8 µs", lambda use: 90.8e-6 * GPSIMD_HZ)

# Conditions

_SIXTEEN_BITS = frozenset({"f16", "bf16"})
_NARROW_FLOATS = _SIXTEEN_BITS | {"f8e4m3", "f8e4m3fn", "f8e5m2"}
_BF16 = frozenset({"bf16"})
_SBUF = frozenset({Space.SBUF})


def _operation(*names: str) -> Callable[[Use], bool]:
    return lambda use: use.instruction.attributes.get("op") in names


_PLAIN = _operation("add", "multiply", "subtract")
_QUICK = _operation("add", "maximum")
_FOUR_AT_ONCE = Condition(
    "16-bit floats side by side in SBUF",
    lambda use: use.streams() <= _SIXTEEN_BITS and use.contiguous and use.spaces() == _SBUF,
)
_TWO_AT_ONCE = Condition("16-bit floats", lambda use: use.streams() <= _SIXTEEN_BITS)
_BF16_IN_SBUF = Condition("all bf16, in SBUF", lambda use: use.dtypes() == _BF16 and use.spaces() == _SBUF)
_ONE_IN_PSUM = Condition("a tile in PSUM", lambda use: Space.PSUM in use.spaces())
_BF16_IN_A_ROW = Condition(
    "all bf16 side by side; add, subtract, multiply",
    lambda use: use.dtypes() == _BF16 and use.contiguous and _PLAIN(use),
)
_BF16_SUM = Condition("all bf16; add, maximum", lambda use: use.dtypes() == _BF16 and _QUICK(use))
_ZEROS = Condition(
    "0 of 16-bit floats", lambda use: use.instruction.operands["value"] == 0 and use.dtypes() <= _SIXTEEN_BITS
)
_NARROW = Condition("16- and 8-bit floats", lambda use: use.streams() <= _NARROW_FLOATS)
_FLOAT32 = Condition("float32", lambda use: _passes(use) > 1)
_OF_FLOAT32 = Condition("float32", lambda use: "f32" in use.dtypes("data"))
_TRANSPOSES = Condition(
    "is_transpose of float32", lambda use: bool(use.instruction.attributes.get("is_transpose")) and _passes(use) > 1
)

# Sources

_V226 = "the NKI reference of SDK 2.26"
_V3 = "the architecture guide of NeuronCore-v3"
_V4 = "the architecture guide of NeuronCore-v4"
_ASSUMED = "assumed, as nothing is published: one element a lane and cycle"
_PROFILE = "a third party's profile on Trainium2, unconfirmed"
_SILU = (
    "derived from NKIBench's silu on Trainium: with its products the Vector engine is active for 2.2 µs for each"
    " reciprocal of 512; the 8 N of the NKI reference of SDK 2.26 would take longer than the whole kernel"
)
_PASSES_COUNTED = (
    f"{_V226}, in the passes of a product of float32 with the identity, as which NKIBench's counters count it"
)
_VECTOR, _SCALAR, _GPSIMD = (frozenset({one}) for one in (Engine.VECTOR, Engine.SCALAR, Engine.GPSIMD))
_COPIES = frozenset({"tensor_copy", "tensor_scalar"})

RATES: Sequence[Rate] = (
    Rate(Cost.ELEMENTWISE, _GPSIMD_N, _V226, engines=_GPSIMD),
    Rate(Cost.ELEMENTWISE, _QUARTER_N, _V3, (3, 4), _VECTOR, _FOUR_AT_ONCE, _COPIES),
    Rate(Cost.ELEMENTWISE, _HALF_N, _V3, (3, 4), _VECTOR, _TWO_AT_ONCE, _COPIES),
    Rate(Cost.ELEMENTWISE, _HALF_N, _V226, engines=_VECTOR, when=_ZEROS, names=frozenset({"memset"})),
    Rate(Cost.ELEMENTWISE, _HALF_N, _V4, (4,), _SCALAR, _NARROW),
    Rate(Cost.ELEMENTWISE, _N, _V226),
    Rate(Cost.TWO_INPUTS, _GPSIMD_N, _V226, engines=_GPSIMD),
    Rate(Cost.TWO_INPUTS, _HALF_N, _V3, (3, 4), _VECTOR, _BF16_IN_SBUF, frozenset({"tensor_tensor"})),
    Rate(Cost.TWO_INPUTS, _N, _V226, when=_ONE_IN_PSUM),
    Rate(Cost.TWO_INPUTS, _N, _V226, when=_BF16_IN_A_ROW),
    Rate(Cost.TWO_INPUTS, _TWICE_N, _V226),
    Rate(Cost.REDUCTION, _HALF_N, _V226, when=_BF16_SUM),
    Rate(Cost.REDUCTION, _N, _V226),
    Rate(Cost.ACTIVATION_REDUCTION, _N_AND_SUM, _V226),
    Rate(Cost.RECIPROCAL, _of_n("2.8 N", lambda n: 2.8 * n), _SILU),
    Rate(Cost.SCAN, _TWICE_N, _V226),
    Rate(Cost.AGGREGATION, _of_n("13 N / 3", lambda n: 13 * n / 3), _V226),
    Rate(Cost.MATMUL, _MATMUL_TRANSPOSE, f"{_V3}: transpose mode", (3, 4), when=_TRANSPOSES),
    Rate(Cost.MATMUL, _FLOAT32_MATMUL, f"{_V226}; {PASS_CYCLES} cycles a pass fitted to NKIBench", (2,), when=_FLOAT32),
    Rate(Cost.MATMUL, _MATMUL, _V226),
    Rate(Cost.TRANSPOSE, _FLOAT32_TRANSPOSE, _PASSES_COUNTED, (2,), when=_OF_FLOAT32),
    Rate(Cost.TRANSPOSE, _TWICE_TRANSPOSE, f"{_V3}: transpose mode", (3, 4), when=_OF_FLOAT32),
    Rate(Cost.TRANSPOSE, _TRANSPOSE, _V226),
    Rate(Cost.SEARCH, _TOP, "nki.isa.topk of NKI 0.6"),
    Rate(Cost.GPSIMD, _GPSIMD_N, _V226),
    Rate(Cost.CONTROL, _LEAST, "assumed, as nothing is published: the least of an instruction"),
    Rate(Cost.DMA, _GPSIMD_BYTES, f"{_V3}: GPSIMD's own DMA", engines=_GPSIMD),
    Rate(Cost.UNPUBLISHED, _NONZERO, _PROFILE, names=frozenset({"nonzero_with_count"})),
    Rate(Cost.UNPUBLISHED, _QUARTER_N, f"{_V4}: four times the Scalar engine", (4,), _VECTOR,
         names=frozenset({"exponential"})),
    Rate(Cost.UNPUBLISHED, _GPSIMD_N, _ASSUMED, engines=_GPSIMD),
    Rate(Cost.UNPUBLISHED, _N, _ASSUMED),
)  # fmt: skip
"""The table. What the DMA engines move is `transfers.py`'s."""


@cache
def candidates(operation: str, engine: Engine, generation: int) -> Sequence[Rate]:
    """The rows that may be an instruction's, as far as that does not depend on its operands."""
    return [
        one
        for one in RATES
        if one.cost is ROWS[operation].cost
        and generation in one.generations
        and engine in one.engines
        and (not one.names or operation in one.names)
    ]


def rate_of(use: Use, generation: int) -> Rate:
    """The row of an instruction that is no DMA engine's."""
    instruction = use.instruction
    for one in candidates(instruction.operation, instruction.engine, generation):
        if one.when.holds(use):
            return one
    raise AssertionError(f"no rate for {instruction.operation} on the {instruction.engine.value} engine")


def cycles_of(instruction: Instruction, tensors: Sequence[Tensor], generation: int) -> float:
    """Cycles of its engine that an instruction of any engine but the DMA engines takes there."""
    use = Use(instruction, ROWS[instruction.operation], tensors)
    cycles = rate_of(use, generation).formula.cycles(use)
    if any(one.dynamic is not None and one.dynamic.kind is Indexing.SCALAR for one in use.regions()):
        return max(DYNAMIC_CYCLES, cycles)
    return cycles
