"""Keywords by which the other generation of the language calls arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def also_called(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """`@also_called(src="x")`: the argument `x` may be given as `src=` too, as one of the generations calls it."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for other, own in names.items():
                if other in kwargs and own not in kwargs:
                    kwargs[own] = kwargs.pop(other)
            return function(*args, **kwargs)

        return call

    return decorate
