"""Random numbers: each lane of an engine has generators of its own, whose states the engine keeps.

The generators are XORWOW (Marsaglia, "Xorshift RNGs", 2003), as AWS names them: five words of 32 bits and a counter.
AWS does not publish what a seed makes of the states, nor which generator of a lane makes which element: bits are ours,
the same in each run, and equal to the hardware's only where all six words were set with rand_set_state on GPSIMD.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.neuron.isa.casts import widen
from triptych.neuron.isa.hardware import Engine
from triptych.neuron.isa.row import (
    ON_CHIP,
    SBUF,
    Attributes,
    Cost,
    Flow,
    Subject,
    Values,
    output,
    row,
    state,
    tile,
    tile_or_number,
)
from triptych.neuron.isa.rules import one_a_partition, same_dtype, same_shape
from triptych.neuron.isa.state import STATE_SIZES, WORDS

_INTEGERS = ("s8", "s16", "s32", "u8", "u16", "u32")
_INCREMENT = 362437
_POWER_ON = (123456789, 362436069, 521288629, 88675123, 5783321, 6615241)
"""The state of a generator that nobody has seeded: the words of Marsaglia's paper."""
_ENGINES = (Engine.VECTOR, Engine.GPSIMD)
_BITS = 32

Words = NDArray[np.uint32]


def _ready(states: Words) -> Words:
    """Generators [lanes, generators, 6]; those that nobody seeded begin apart by their lane and place."""
    words = states.reshape(states.shape[0], -1, WORDS).astype(np.uint32)
    unset = np.asarray(~words.any(axis=-1))
    if unset.any():
        places = np.arange(words.shape[0] * words.shape[1], dtype=np.uint32).reshape(words.shape[:2])
        fresh = np.empty_like(words)
        fresh[...] = np.array(_POWER_ON, np.uint32)
        fresh[..., 0] ^= places * np.uint32(0x9E3779B9)
        words = np.where(unset[..., np.newaxis], fresh, words)
    return words


def _next(words: Words) -> Words:
    """The next 32 bits of each generator, whose words change."""
    mixed = words[..., 0] ^ (words[..., 0] >> np.uint32(2))
    last = words[..., 4]
    fresh = (last ^ (last << np.uint32(4))) ^ (mixed ^ (mixed << np.uint32(1)))
    words[..., 0:4] = words[..., 1:5]
    words[..., 4] = fresh
    words[..., 5] += np.uint32(_INCREMENT)
    return words[..., 4] + words[..., 5]


def draw(states: Words, elements: int) -> tuple[Words, Words]:
    """`elements` times 32 bits of each lane, its generators in turn, and the states that follow."""
    words = _ready(states)
    generators = words.shape[1]
    rounds = [_next(words) for _ in range(-(-elements // generators))]
    bits = np.stack(rounds, axis=1).reshape(words.shape[0], -1)[:, :elements]
    return bits, words.reshape(words.shape[0], -1)


def _since_v3(subject: Subject) -> None:
    """GPSIMD has generators since NeuronCore-v3."""
    if subject.instruction.engine is Engine.GPSIMD and subject.hardware.core_generation < 3:
        raise subject.refuse(
            "the gpsimd engine has random numbers since NeuronCore-v3 (gen3)", "use nisa.engine.vector"
        )


def _states_since(subject: Subject) -> None:
    """States are set and read since NeuronCore-v3 on GPSIMD, since -v4 on the Vector engine; of so many words."""
    engine, generation = subject.instruction.engine, subject.hardware.core_generation
    first = 3 if engine is Engine.GPSIMD else 4
    if generation < first:
        raise subject.refuse(
            f"the {engine.value} engine's states are reached since NeuronCore-v{first} (gen{first}); "
            f"{subject.hardware.target} has NeuronCore-v{generation}"
        )
    name = "src_seeds" if subject.region("src_seeds") is not None else "dst"
    region, size = subject.instruction.region(name), STATE_SIZES["generator", engine]
    if region.free != size:
        raise subject.refuse(f"{subject.describe(name)} has {region.free} words a lane; {engine.value}'s are {size}")


@row(
    "rng",
    engines=_ENGINES,
    operands=(output("dst", dtypes=_INTEGERS), state("generator", free=None)),
    flow=Flow.CONSTANT,
    cost=Cost.UNPUBLISHED,
    checks=(_since_v3,),
)
def rng(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = 32 random bits an element, of which its dtype takes the lowest."""
    del attributes
    shape = operands.shape("dst")
    bits, states = draw(operands.flat("generator"), int(np.prod(shape[1:])))
    dtype = operands.dtype("dst").numpy
    return {"dst": bits.astype(f"u{dtype.itemsize}").view(dtype), "generator": states}


@row(
    "rand2",
    engines=(Engine.VECTOR,),
    operands=(output("dst"), tile_or_number("min"), tile_or_number("max"), state("generator", free=None)),
    flow=Flow.CONSTANT,
    cost=Cost.UNPUBLISHED,
    core_generation=4,
    checks=(one_a_partition("min", "dst"), one_a_partition("max", "dst")),
)
def rand2(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = float32 numbers that are uniform between min and max, of 24 random bits each."""
    del attributes
    shape = operands.shape("dst")
    bits, states = draw(operands.flat("generator"), int(np.prod(shape[1:])))
    low, high = widen(operands.flat("min")), widen(operands.flat("max"))
    part = (bits >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)
    return {"dst": low + part * (high - low), "generator": states}


@row(
    "dropout",
    engines=(Engine.VECTOR,),
    operands=(output("dst"), tile("data"), tile_or_number("prob"), state("generator", free=None)),
    checks=(same_shape("dst", "data"), same_dtype("dst", "data"), one_a_partition("prob", "data", float32=False)),
)
def dropout(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = data, of which each element becomes 0 with the probability prob."""
    del attributes
    data = operands.flat("data")
    bits, states = draw(operands.flat("generator"), data.shape[1])
    part = (bits >> np.uint32(8)).astype(np.float64) * 2.0**-24
    kept = part >= operands.flat("prob").astype(np.float64)
    return {"dst": np.where(kept, data, np.zeros((), data.dtype)), "generator": states}


def _one_seed(subject: Subject) -> None:
    seeds = subject.instruction.region("src_seeds")
    if seeds.size != 1 or subject.tensor("src_seeds").dtype.bytes != 4:
        raise subject.refuse(
            f"{subject.describe('src_seeds')} has {seeds.size} elements of "
            f"{subject.tensor('src_seeds').dtype.label}; expected one of 32 bits"
        )


def _scrambled(seeds: NDArray[np.uint64]) -> Words:
    """SplitMix64's output function, the upper half."""
    mixed = (seeds ^ (seeds >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed >> np.uint64(32)).astype(np.uint32)


@row(
    "set_rng_seed",
    engines=(Engine.VECTOR,),
    operands=(tile("src_seeds", ON_CHIP), state("generator", free=None)),
    flow=Flow.CONSTANT,
    cost=Cost.UNPUBLISHED,
    checks=(_one_seed,),
)
def set_rng_seed(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """Each generator of each lane of the Vector engine begins anew, apart from the others, from one seed."""
    del attributes
    seed = int(np.ascontiguousarray(operands.flat("src_seeds")).view(np.uint32)[0, 0])
    lanes, words = operands.shape("generator")
    places = np.arange(1, lanes * words + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return {"generator": _scrambled(places + np.uint64(seed)).reshape(lanes, words)}


@row(
    "rand_set_state",
    engines=(Engine.GPSIMD, Engine.VECTOR),
    operands=(tile("src_seeds", SBUF, dtypes=("u32",)), state("generator", free=None)),
    flow=Flow.CONSTANT,
    cost=Cost.UNPUBLISHED,
    core_generation=3,
    checks=(_states_since,),
)
def rand_set_state(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """The states of the lanes' generators = the words of src_seeds."""
    del attributes
    return {"generator": operands.flat("src_seeds")}


@row(
    "rand_get_state",
    engines=(Engine.GPSIMD, Engine.VECTOR),
    operands=(output("dst", dtypes=("u32",)), state("generator", free=None)),
    flow=Flow.CONSTANT,
    cost=Cost.UNPUBLISHED,
    core_generation=3,
    checks=(_states_since,),
)
def rand_get_state(operands: Values, attributes: Attributes) -> Mapping[str, NDArray[Any]]:
    """dst = the words of the states of the lanes' generators."""
    del attributes
    states = operands.flat("generator")
    return {"dst": _ready(states).reshape(states.shape)}
