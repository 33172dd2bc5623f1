"""What follows from an object that never changes, kept by the object's identity.

`functools.lru_cache` finds an object by its contents; for a launch, with all its arguments, that takes longer than what
is to be found.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

_Object = TypeVar("_Object")
_Result = TypeVar("_Result")


def kept_by_identity(most: int) -> Callable[[Callable[[_Object], _Result]], Callable[[_Object], _Result]]:
    """Decorates a function of one immutable object: its results are kept, beside the objects, for `most` at a time."""

    def decorate(work: Callable[[_Object], _Result]) -> Callable[[_Object], _Result]:
        kept: dict[int, tuple[_Object, _Result]] = {}  # each has its object, whose number is no other's meanwhile

        @wraps(work)
        def look_up(one: _Object) -> _Result:
            found = kept.get(id(one))
            if found is None:
                found = one, work(one)
                if len(kept) >= most:
                    kept.clear()
                kept[id(one)] = found
            return found[1]

        return look_up

    return decorate
