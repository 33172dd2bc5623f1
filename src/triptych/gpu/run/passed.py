"""What a launch passed, as messages about its kernel call it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from triptych.core.handles import Handle
from triptych.core.plan import Launch, Scalar, handles_in


@dataclass(frozen=True, slots=True)
class Passed:
    """An array as the kernel received it; `label` is how messages call it: `argument 1, x`."""

    label: str
    handle: Handle


def passed_arrays(launch: Launch) -> Mapping[str, Passed]:
    """The first argument that each storage was passed as, by the storage's name."""
    found: dict[str, Passed] = {}
    for position, argument in enumerate(launch.arguments):
        for handle in handles_in(argument):
            found.setdefault(handle.storage.name, Passed(_label(launch, position), handle))
    return found


def passed_nulls(launch: Launch) -> Mapping[int, str]:
    """What may be a null pointer: the integers of 8 bytes that are 0, by their places, as messages call them."""
    return {
        position: _label(launch, position)
        for position, argument in enumerate(launch.arguments)
        if isinstance(argument, Scalar) and argument.value == 0 and argument.dtype.name in ("u64", "s64")
    }


def _label(launch: Launch, position: int) -> str:
    return f"argument {position}" + (f", {launch.names[position]}" if position < len(launch.names) else "")
