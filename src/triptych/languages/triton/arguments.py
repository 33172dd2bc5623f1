"""A launch's arguments: what Triton bound becomes what the plan holds, parameter by parameter."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, cast

import numpy as np

from triptych.core.dtypes import DTYPES
from triptych.core.errors import ArgumentError, TriptychError
from triptych.core.plan import Argument, Scalar, Struct
from triptych.languages.triton.arrays import bind, bound, is_array
from triptych.languages.triton.internals import descriptor_parts, launching_line, tensor_map_parts
from triptych.languages.triton.tensor_maps import TYPE, tensor_map_argument

NULL = Scalar(DTYPES["u64"], 0)
"""The null pointer."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the compiled kernel: its name in the source (`pair[1]` in a tuple) and Triton's type of it."""

    name: str
    type: str

    @property
    def is_pointer(self) -> bool:
        """Whether it takes an array."""
        return self.type.startswith("*")


def plain_parameters(signature: Mapping[str, Any]) -> tuple[tuple[int, Parameter], ...] | None:
    """What `expand` gives of a signature by the values' places; None where that depends on the values themselves."""
    kinds = list(enumerate(signature.items()))
    if any(isinstance(kind, tuple) or kind.startswith("tensordesc") for _, (_, kind) in kinds):
        return None
    return tuple((place, Parameter(name, kind)) for place, (name, kind) in kinds if kind != "constexpr")


def expand(
    signature: Mapping[str, Any], values: Sequence[object], tensor_maps: Iterator[Mapping[str, Any]] | None
) -> Iterator[tuple[Parameter, object]]:
    """The kernel's parameters with their values: compile-time constants dropped, tuples and descriptors taken apart.

    `tensor_maps` says of each descriptor how it is passed as a tensor map (from sm_90 on); None: as a pointer.

    Raises:
        ArgumentError: where the number of values is not the signature's.
    """
    if len(values) != len(signature):
        raise ArgumentError(
            f"the kernel has {len(signature)} parameters ({', '.join(signature)}), {len(values)} arguments came",
            where=launching_line(),
        )
    for (name, kind), value in zip(signature.items(), values, strict=True):
        yield from _expand(Parameter(name, ""), kind, value, tensor_maps)


def _expand(
    parameter: Parameter,
    kind: Any,  # noqa: ANN401
    value: Any,  # noqa: ANN401
    tensor_maps: Iterator[Mapping[str, Any]] | None,
) -> Iterator[tuple[Parameter, object]]:
    name = parameter.name
    if isinstance(kind, tuple):
        kinds = cast("tuple[Any, ...]", kind)
        for position, (inner, item) in enumerate(zip(kinds, value, strict=True)):
            yield from _expand(Parameter(f"{name}[{position}]", ""), inner, item, tensor_maps)
    elif kind.startswith("tensordesc"):
        parts = (
            descriptor_parts(name, kind, value)
            if tensor_maps is None
            else tensor_map_parts(name, TYPE, value, next(tensor_maps))
        )
        for part, kind_of_part, item in parts:
            yield Parameter(part, kind_of_part), item
    elif kind != "constexpr":
        yield Parameter(name, kind), value


def convert(parameter: Parameter, value: object) -> Argument:
    """The plan's argument for a value.

    Raises:
        ArgumentError: for a value that the parameter's type cannot hold; it names the parameter.
    """
    hint = None
    try:
        if parameter.is_pointer:
            return _pointer(value)
        return SCALARS[parameter.type](value)
    except (TypeError, ValueError, OverflowError, struct.error) as error:
        reason = f"expected a value of type {parameter.type}, got {value!r} ({error})"
    except TriptychError as error:
        reason, hint = error.message, error.hint
    raise ArgumentError(f"argument '{parameter.name}': {reason}", where=launching_line(), hint=hint)


def _pointer(value: object) -> Argument:
    if value is None:
        return NULL
    known = bound(value)
    if known is not None:
        return known
    if is_array(value):
        return bind(value)
    if hasattr(value, "data_ptr"):
        value = cast(Any, value).data_ptr()
    return Scalar(DTYPES["u64"], _within(0, 2**64, index(cast(Any, value))))


def _within(low: int, high: int, number: int) -> int:
    if not low <= number < high:
        raise ValueError(f"{number} is outside {low} … {high - 1}")
    return number


def _integer(name: str, low: int, high: int) -> Callable[[Any], Argument]:
    return lambda value: Scalar(DTYPES[name], _within(low, high, index(_plain(value))))


def _real(name: str) -> Callable[[Any], Argument]:
    """A float as C's cast makes it, which Triton's launcher uses: what lies beyond the type is infinite."""
    return lambda value: Scalar(DTYPES[name], DTYPES[name].nearest(float(value)))


# PTX declares the parameter of a 16-bit float as two bytes, so that is what is passed.


def _half(value: Any) -> Argument:  # noqa: ANN401
    """Triton's launcher refuses what lies beyond the type, as this does."""
    return Struct(struct.pack("<e", float(value)))


def _bfloat(value: Any) -> Argument:  # noqa: ANN401
    """The upper half of the float, as Triton's launcher cuts it."""
    return Struct(struct.pack("<f", DTYPES["f32"].nearest(float(value)))[2:])


def _plain(value: object) -> Any:  # noqa: ANN401
    return value.item() if type(value) is np.bool_ else value


def _flag(value: Any) -> Argument:  # noqa: ANN401
    return Scalar(DTYPES["u8"], int(bool(value)))


SCALARS: Mapping[str, Callable[[Any], Argument]] = {
    "i1": _flag, "u1": _flag,
    "i8": _integer("s8", -(1 << 7), 1 << 7), "u8": _integer("u8", 0, 1 << 8),
    "i16": _integer("s16", -(1 << 15), 1 << 15), "u16": _integer("u16", 0, 1 << 16),
    "i32": _integer("s32", -(1 << 31), 1 << 31), "u32": _integer("u32", 0, 1 << 32),
    "i64": _integer("s64", -(1 << 63), 1 << 63), "u64": _integer("u64", 0, 1 << 64),
    "fp16": _half, "bf16": _bfloat, TYPE: tensor_map_argument,
    "fp32": _real("f32"), "f32": _real("f32"), "fp64": _real("f64"),
}  # fmt: skip
"""Triton's scalar types, and how a value of each is passed."""
