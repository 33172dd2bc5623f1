"""Values that a candidate is called with, with places for arrays: what a format says of a call, without data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from triptych.core.errors import UnsupportedFeature
from triptych.judge.capture.request import ArraySpec


@dataclass(frozen=True, slots=True)
class Input:
    """The place of an input."""

    name: str


@dataclass(frozen=True, slots=True)
class Scratch:
    """The place of an array whose contents do not matter: the candidate's output goes there, say."""

    array: ArraySpec


_CONSTANTS = (int, float, bool, str, type(None))


def filled(template: object, arrays: Mapping[str, Any], scratch: Callable[[ArraySpec], Any]) -> Any:  # noqa: ANN401  # as the template is
    """The values, with arrays in their places."""
    match template:
        case Input(name):
            return arrays[name]
        case Scratch(array):
            return scratch(array)
        case tuple() | list():
            items = [filled(one, arrays, scratch) for one in cast("list[object]", template)]
            return tuple(items) if isinstance(template, tuple) else items
        case dict():
            return {key: filled(one, arrays, scratch) for key, one in cast("dict[Any, object]", template).items()}
        case _:
            return template


def template_of(
    value: object, place: Callable[[Any, str], object], is_array: Callable[[Any], bool], name: str
) -> object:
    """The same values with places: `place(array, name)` for each array.

    Raises:
        UnsupportedFeature: for a value that is neither an array, a number, a text nor made of these.
    """
    if is_array(value):
        return place(value, name)
    match value:
        case tuple() | list():
            items = [
                template_of(one, place, is_array, f"{name}{number}")
                for number, one in enumerate(cast("list[Any]", value))
            ]
            return tuple(items) if isinstance(value, tuple) else items
        case dict():
            pairs = cast("dict[Any, Any]", value).items()
            return {key: template_of(one, place, is_array, str(key)) for key, one in pairs}
        case _ if isinstance(value, _CONSTANTS):
            return value
        case _:
            raise UnsupportedFeature(f"'{name}' is a {type(value).__name__}; expected arrays, numbers and texts")


def tensors_of(template: object, values: Any) -> dict[str, Any]:  # noqa: ANN401  # built as the template is
    """The arrays in values that have places for inputs in the template, by their names."""
    match template:
        case Input(name):
            return {name: values}
        case tuple() | list():
            pairs = list(zip(cast("list[object]", template), values, strict=True))
        case dict():
            pairs = [(one, values[key]) for key, one in cast("dict[Any, object]", template).items()]
        case _:
            pairs = list[tuple[object, Any]]()
    found: dict[str, Any] = {}
    for one, value in pairs:
        found |= tensors_of(one, value)
    return found
