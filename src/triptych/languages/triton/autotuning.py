"""Triton's autotuner on modelled time: it chooses for each device by itself, and takes numpy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from triptych.languages.triton.internals import AUTOTUNER_STATE
from triptych.languages.triton.tensors import tensor


class AutotunerStates:
    """What autotuners remember, kept apart for each device.

    Triton's autotuner caches its choices by argument, and its benchmarker for ever, whatever the device; asked to, it
    keeps choices on disk, by architecture. A choice made for one chip must not pass for another's; still less may a
    modelled choice be left behind for a real GPU, in memory or on disk.
    """

    REAL = -1
    """In place of an ordinal: the state from before the activation."""

    def __init__(self) -> None:
        """No autotuner seen yet."""
        self._current: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._kept: WeakKeyDictionary[Any, dict[int, dict[str, Any]]] = WeakKeyDictionary()

    def enter(self, autotuner: Any, device: int) -> None:  # noqa: ANN401  triton's Autotuner
        """The autotuner goes on with what it knows of `device`."""
        current = self._current.get(autotuner, self.REAL)
        if current == device:
            return
        kept = self._kept.setdefault(autotuner, {})
        state = autotuner.__dict__
        kept[current] = {name: state.pop(name) for name in AUTOTUNER_STATE if name in state}
        state.update(kept.pop(device, {"cache": {}, "cache_results": False}))
        self._current[autotuner] = device

    def leave(self) -> None:
        """Every autotuner is as it was before the activation."""
        for autotuner in list(self._current):
            self.enter(autotuner, self.REAL)


def make_run(run: Callable[..., Any], states: AutotunerStates, device: Callable[[], int]) -> Callable[..., Any]:
    """`Autotuner.run` with its state of the device in force, and numpy arrays that hooks can zero and restore."""

    def run_on_device(self: Any, *arguments: Any, **keywords: Any) -> Any:  # noqa: ANN401  as Triton's own
        states.enter(self, device())
        return run(self, *map(_as_tensor, arguments), **{name: _as_tensor(value) for name, value in keywords.items()})

    return run_on_device


def _as_tensor(value: Any) -> Any:  # noqa: ANN401
    return tensor(value) if type(value) is np.ndarray else value
