"""Inputs of kernels that are timed: numbers of a pattern again and again, which a GPU copies quicker than it gets them.

Normal numbers, not zeros: those take less power, so that a GPU's clock is higher.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from typing import Any
from zlib import crc32

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

_PATTERN = 4_194_301
"""Numbers of a pattern: a prime, so that rows of an array differ."""
_DTYPES: dict[str, Any] = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


@dataclass(frozen=True, slots=True)
class Array:
    """An input."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    below: int = 0
    """Its elements are integers from 0 up to this one, which they are less than; 0: they are numbers of the pattern."""


@cache
def pattern(dtype: str) -> NDArray[Any]:
    """Normal numbers of an element type."""
    return _random(dtype).standard_normal(_PATTERN, np.float32).astype(_DTYPES[dtype])


def values_of(one: Array) -> NDArray[Any]:
    """The values of an input, C-ordered."""
    if one.below:
        return _random(one.name).integers(0, one.below, one.shape, np.int64)
    return np.resize(pattern(one.dtype), one.shape)


def digest_of(text: str) -> str:
    """A program's name among those that are timed."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _random(name: str) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(crc32(name.encode())))
