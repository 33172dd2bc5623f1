"""Random values for inputs: what distributions are made of. Each sampler gives values of a shape for a case's type."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from triptych.core.dtypes import DType, dtype_of
from triptych.operators.budgets import limits
from triptych.operators.operator import Array, Distribution, Values

Shape: TypeAlias = tuple[int, ...]
_SPARE_BITS = {True: 12, False: 4}
"""How far `large` stays below overflow, in powers of two: sums of many terms fit; by whether exponents have 8 bits."""


@dataclass(frozen=True, slots=True)
class Draw:
    """What a distribution knows of the case that it makes inputs for."""

    random: np.random.Generator
    size: Values
    shapes: Mapping[str, Shape]
    """Of the inputs."""
    floats: tuple[str, ...]
    """The inputs with floating-point elements."""
    dtype: DType
    """T."""


Sampler: TypeAlias = Callable[[Draw, Shape], Array]


def normal(draw: Draw, shape: Shape) -> Array:
    """Standard normal values."""
    return draw.random.standard_normal(shape)


def positive(draw: Draw, shape: Shape) -> Array:
    """Uniform in [½, 1): sums grow steadily, so that a narrow sum soon stands still."""
    return draw.random.uniform(0.5, 1.0, shape)


def zeros(_: Draw, shape: Shape) -> Array:
    """Nothing but zeros."""
    return np.zeros(shape)


def normal_times(factor: float) -> Sampler:
    """Normal values of another scale."""
    return lambda draw, shape: factor * normal(draw, shape)


def large(degree: int = 2) -> Sampler:
    """Values so large that sums of products of `degree` of them come near the largest number of T, or of f32."""

    def sample(draw: Draw, shape: Shape) -> Array:
        top = math.log2(limits(_floating(draw.dtype)).largest)
        return normal(draw, shape) * 2.0 ** (top / degree - _SPARE_BITS[top >= 100])

    return sample


def tiny(degree: int = 2) -> Sampler:
    """Values so small that products of `degree` of them come near the smallest normal number of T."""

    def sample(draw: Draw, shape: Shape) -> Array:
        return normal(draw, shape) * 8 * limits(_floating(draw.dtype)).smallest_normal ** (1 / degree)

    return sample


def duplicates(draw: Draw, shape: Shape) -> Array:
    """Few different values, zero among them."""
    return draw.random.choice([-2.0, -1.0, 0.0, 0.5, 1.0, 1.5], shape)


def cancelling(draw: Draw, shape: Shape) -> Array:
    """Ill-conditioned sums along the last axis: pairs that cancel, far larger than the few values that remain."""
    values = normal(draw, shape)
    pairs = shape[-1] // 2 - 1
    if pairs > 0:
        values[..., :pairs] *= 64
        values[..., pairs : 2 * pairs] = -values[..., :pairs]
    return draw.random.permuted(values, axis=-1)


def offset(draw: Draw, shape: Shape) -> Array:
    """Normal values on top of a large mean, of which T holds some digits: squares cancel."""
    return normal(draw, shape) + {"f32": 4096.0, "f16": 64.0}.get(draw.dtype.name, 16.0)


def close(draw: Draw, shape: Shape) -> Array:
    """Values from 1 up to 1.03, a few of T's steps apart, some of them equal."""
    return 1 + draw.random.integers(0, 64, shape) * max(limits(_floating(draw.dtype)).unit * 2, 2.0**-20)


def special(draw: Draw, shape: Shape) -> Array:
    """Normal values, with NaN, infinities of both signs and zero at a place each."""
    values = normal(draw, shape)
    flat = values.reshape(-1)
    places = draw.random.permutation(flat.size)[:4]
    flat[places] = [np.nan, np.inf, -np.inf, 0.0][: len(places)]
    return values


def _floating(dtype: DType) -> DType:
    return dtype if dtype.is_float else dtype_of("f32")


def inputs(
    name: str, meaning: str, sampler: Sampler, also: Callable[[Draw], Mapping[str, Any]] | None = None, **own: Sampler
) -> Distribution:
    """A distribution whose floating-point inputs are a sampler's, but for those that have a sampler of their `own`.

    Args:
        name: what it is called.
        meaning: what it is, in a few words.
        sampler: of every other floating-point input.
        also: gives inputs beside these, or in their place: those of integers.
        own: samplers by inputs' names.
    """

    def make(draw: Draw) -> Mapping[str, Any]:
        others: Mapping[str, Any] = {} if also is None else also(draw)
        named = {one: own.get(one, sampler) for one in draw.floats if one not in others}
        return {**{one: sample(draw, draw.shapes[one]) for one, sample in named.items()}, **others}

    return Distribution(name, meaning, make)


def standard(
    degree: int = 2, also: Callable[[Draw], Mapping[str, Any]] | None = None, **own: Sampler
) -> tuple[Distribution, ...]:
    """The distributions that most operators have: ordinary, large, tiny, repeated and ill-conditioned values.

    Args:
        degree: how many inputs are multiplied with each other: what is large is the smaller for it.
        also: as in `inputs`.
        own: as in `inputs`.
    """
    rows: tuple[tuple[str, str, Sampler], ...] = (
        ("normal", "standard normal values", normal),
        ("large", "values whose sums and products come near the type's largest number", large(degree)),
        ("tiny", "values whose products come near the type's smallest normal number", tiny(degree)),
        ("duplicates", "six different values, zero among them", duplicates),
        ("cancelling", "ill-conditioned: large values that cancel along the last axis", cancelling),
    )
    return tuple(inputs(name, meaning, sampler, also, **own) for name, meaning, sampler in rows)


POSITIVE = inputs("positive", "uniform in [½, 1): sums grow steadily", positive)
OFFSET = inputs("offset", "normal values on top of a large mean", offset)


def with_special(also: Callable[[Draw], Mapping[str, Any]] | None = None, **own: Sampler) -> tuple[Distribution, ...]:
    """NaN and infinities among the inputs, for operators that say what becomes of them."""
    return (inputs("special", "normal values with NaN, both infinities and zero among them", special, also, **own),)
