"""Work that the same lines make again and again: after as often as a setting says, it only takes its time.

Loops of benchmarks run a kernel thousands of times, for a clock that is no more exact for it here. `TRIPTYCH_BENCHMARK_
REPEATS` ends that: what is made by the same lines, all the way up the stack, with arguments of the same kind (equal
numbers, arrays of equal shapes) counts as the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from triptych.core.settings import settings
from triptych.languages.calling import frames
from triptych.languages.triton.clock import Clock
from triptych.languages.triton.internals import warn_at_launch

_T = TypeVar("_T")


@dataclass(slots=True)
class _Made(Generic[_T]):
    """What was run by some lines."""

    runs: int = 0
    ticks: int = 0
    """That the last run took."""
    again: Callable[[], _T] | None = None
    """What stands for its result."""


class Repeats:
    """What has been run so far, by the lines that made it."""

    def __init__(self, clock: Clock) -> None:
        """Nothing yet; times are those of `clock`."""
        self._clock = clock
        self._made: dict[tuple[Any, ...], _Made[Any]] = {}

    @property
    def wanted(self) -> bool:
        """Whether the setting bounds repetitions."""
        return settings().benchmark_repeats is not None

    def run(
        self, name: str, what: tuple[Any, ...], work: Callable[[], _T], again: Callable[[_T], Callable[[], _T] | None]
    ) -> _T:
        """What `work` gives: run, or where these lines have run it often enough, something of that kind.

        Args:
            name: of what is run, for the clock and for a warning.
            what: all that tells it from other work of the same lines (`kind_of` its arguments).
            work: runs it.
            again: from a result, what makes one like it without the work; None where the work must always be done.
        """
        most = settings().benchmark_repeats
        if most is None:
            return work()
        self._clock.start()
        made = self._made.setdefault((what, *((frame.f_code, frame.f_lasti) for frame in frames())), _Made[_T]())
        if made.again is not None and made.runs >= most:
            self._tell(name, made.runs)
            self._clock.advance(made.ticks, name)
            return made.again()
        before = self._clock.now()
        result = work()
        made.runs, made.ticks, made.again = made.runs + 1, self._clock.now() - before, again(result)
        return result

    def _tell(self, name: str, runs: int) -> None:
        times = "once" if runs == 1 else f"{runs} times"
        warn_at_launch(
            f"'{name}' has been run {times} by these lines with arguments of this kind: from now on it takes the same"
            " time, and writes nothing (TRIPTYCH_BENCHMARK_REPEATS)"
        )


def kind_of(value: object) -> object:
    """A number or a text itself, of arrays the shape and the element type, of anything else its class."""
    if isinstance(value, bool | int | float | str | None):
        return type(value), value
    if isinstance(value, tuple | list):
        return tuple(map(kind_of, cast("tuple[object, ...]", value)))
    shape = getattr(value, "shape", None)
    if shape is None:
        return type(value)
    parts = getattr(value, "dtype", None), getattr(value, "block_shape", None)
    return type(value), tuple(shape), *map(str, parts)
