"""A plan of this process's arrays -> the same plan at addresses of its own: equal calls make equal plans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from triptych.core.handles import AddressSpace, Storage
from triptych.core.plan import Plan
from triptych.core.validate import storages_of

T = TypeVar("T")


def relocated(plan: Plan) -> Plan:
    """The plan with its storages renamed and laid out anew, in the order in which they first appear.

    A storage is called as the first variable that the host makes point to it, or argument that it is passed for, where
    launches say how they call their arguments; `array0`, `array1` … else. Addresses that lie in data (pointers inside
    arrays) do not follow; those that the host stores in a variable that is a pointer do.
    """
    space = AddressSpace()
    called = _names(plan)
    moved: dict[Storage, Storage] = {}
    for number, storage in enumerate(storages_of(plan)):
        name = _free(called.get(storage, f"array{number}"), {other.name for other in moved.values()})
        moved[storage] = space.place(name, storage.size, writable=storage.writable)
    return _moved(plan, moved)


def renamed(plan: Plan, fixed: Mapping[Storage, str]) -> Plan:
    """The plan with its storages where they are, called as `fixed` says; all others as `relocated` calls them."""
    called = _names(plan)
    taken = set(fixed.values())
    moved: dict[Storage, Storage] = {}
    for number, storage in enumerate(storages_of(plan)):
        name = fixed.get(storage) or _free(called.get(storage, f"array{number}"), taken)
        taken.add(name)
        moved[storage] = replace(storage, name=name)
    return _moved(plan, moved)


def _names(plan: Plan) -> dict[Storage, str]:
    found: dict[Storage, str] = {}
    for node in plan.nodes:
        for handle, name in node.called:
            found.setdefault(handle.storage, name)
        for inner in node.plans:
            found = _names(inner) | found
    return found


def _free(name: str, taken: set[str]) -> str:
    """The name, numbered where another storage has it."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}.{number}"
    return free


def _moved(value: T, moved: Mapping[Storage, Storage]) -> T:
    """A value of a plan with its storages replaced, however deep they lie."""
    if isinstance(value, Storage):
        return cast(T, moved[value])
    if isinstance(value, tuple):
        return cast(T, tuple(_moved(one, moved) for one in cast("tuple[object, ...]", value)))
    if is_dataclass(value) and not isinstance(value, type):
        plain = cast(Any, value)
        changed = {one.name: _moved(getattr(plain, one.name), moved) for one in fields(plain)}
        return cast(T, replace(plain, **changed))
    return value
