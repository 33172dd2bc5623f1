"""The type that Triton compiles for: as its own specialiser says, but with an array's *device* address.

Triton asks whether a pointer is divisible by 16. The answer must come from the address that the kernel will see, not
from where numpy or torch put the array on the host. Triton's specialiser takes any object with `dtype` and
`data_ptr()`; of a dtype it reads the last dotted part of its name (`torch.float16`, `bfloat16`, `fp32`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import numpy as np

from triptych.core.errors import ArgumentError, IntegerOverflow, TriptychError
from triptych.core.handles import Handle
from triptych.languages.triton.arrays import bind_for_launch, is_array
from triptych.languages.triton.internals import bound_argument, launching_line

EXPECTED = "expected a numpy array, a triptych array, a torch CPU tensor, a number, a bool, None or a tuple of these"

Specialiser = Callable[[Any, object, bool, bool, bool], tuple[Any, Any]]
"""(backend, argument, is_const, specialise, align) -> (type, attributes)."""

PLAIN = frozenset({int, float, bool, type(None)})

TRITON_NAMES = {
    "b1": "u1",
    "s8": "i8", "s16": "i16", "s32": "i32", "s64": "i64",
    "u8": "u8", "u16": "u16", "u32": "u32", "u64": "u64",
    "f16": "fp16", "bf16": "bf16", "f32": "fp32", "f64": "fp64",
    "f8e4m3fn": "fp8e4nv", "f8e5m2": "fp8e5",
}  # fmt: skip
"""Triton's names of the element types that handles have; it knows those of numpy, ml_dtypes and torch by itself."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """What stands for an array in front of Triton's specialiser."""

    dtype: object
    address: int

    def data_ptr(self) -> int:
        """The device address."""
        return self.address


_pointer = lru_cache(maxsize=4096)(Pointer)
"""One for each type and address: to make one takes as long as Triton's own look at it."""


def make_specialiser(native: Specialiser) -> Specialiser:
    """Triton's specialiser behind one that knows numpy arrays, numpy scalars, triptych arrays and torch CPU tensors."""

    def specialise(backend: Any, argument: object, is_const: bool, specialise: bool, align: bool) -> tuple[Any, Any]:  # noqa: ANN401
        try:
            plain = type(argument) in PLAIN
            return native(backend, argument if plain else stand_in(argument), is_const, specialise, align)
        except (TypeError, KeyError, OverflowError, TriptychError) as error:
            raise refusal(argument, error) from error

    return specialise


def stand_in(argument: object) -> object:
    """What Triton's specialiser shall see in place of an argument; tuples keep their class."""
    if isinstance(argument, Handle):
        return Pointer(TRITON_NAMES.get(argument.dtype.name, argument.dtype), argument.data_ptr())
    if is_array(argument):
        return _pointer(*bind_for_launch(argument))
    if isinstance(argument, tuple):
        return _tuple_of_stand_ins(argument)
    return cast(object, argument.item()) if isinstance(argument, np.generic) else argument


def _tuple_of_stand_ins(argument: Any) -> object:  # noqa: ANN401  a tuple or a named tuple
    items = [stand_in(item) for item in argument]
    return type(argument)(*items) if hasattr(argument, "_fields") else type(argument)(items)


def _what(argument: object) -> str:
    if is_array(argument):
        return f"Triton has no element type {cast(Any, argument).dtype}"
    if isinstance(argument, int):
        return f"no integer of Triton holds {argument}: it is none from -2**63 to 2**64 - 1"
    return f"a value of type {type(argument).__qualname__} cannot be passed"


def refusal(argument: object, cause: Exception) -> ArgumentError:
    """The error for an argument that cannot go to a kernel, with the names of both."""
    named = bound_argument(argument)
    whose = f"argument '{named[1]}' of kernel '{named[0]}'" if named else "a kernel's argument"
    reason = cause.message if isinstance(cause, TriptychError) else _what(argument)
    hint = cause.hint if isinstance(cause, TriptychError) else None
    kind = IntegerOverflow if isinstance(cause, OverflowError) else ArgumentError
    return kind(f"{whose}: {reason}", where=launching_line(), hint=hint or EXPECTED)
