"""Triton's autotuner on modelled time: it chooses for each device by itself, and takes numpy arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from triptych.execution.profile import record_tuning
from triptych.execution.tuning import Tuning
from triptych.languages.triton.devices import device_in_force
from triptych.languages.triton.internals import AUTOTUNER_STATE, AUTOTUNER_TIMINGS, launching_line
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
    """`Autotuner.run` with its state of the device in force, and numpy arrays that hooks can zero and restore.

    Open profiles note each new choice.
    """

    def run_on_device(self: Any, *arguments: Any, **keywords: Any) -> Any:  # noqa: ANN401  as Triton's own
        states.enter(self, device())
        before = getattr(self, AUTOTUNER_TIMINGS, None)
        named = {name: _as_tensor(value) for name, value in keywords.items()}
        result = run(self, *map(_as_tensor, arguments), **named)
        timings = getattr(self, AUTOTUNER_TIMINGS, None)
        if timings is not None and timings is not before:
            record_tuning(_tuning(self, timings))
        return result

    return run_on_device


def _tuning(autotuner: Any, timings: Mapping[Any, Any]) -> Tuning:  # noqa: ANN401  triton's Autotuner and Configs
    """The newest choice; of the times of a configuration, in ms, Triton has several quantiles or one."""
    seconds = {_label(one): min(np.atleast_1d(times).tolist()) * 1e-3 for one, times in timings.items()}
    key = next(reversed(autotuner.cache))
    return Tuning(
        kernel=autotuner.base_fn.__name__,
        chip=device_in_force().chip.title,
        problem=", ".join(map(str, key)) or "all arguments",
        seconds=seconds,
        chosen=_label(autotuner.cache[key]),
        call_site=launching_line(),
    )


def _label(configuration: Any) -> str:  # noqa: ANN401  triton's Config
    return " ".join(f"{name}={value}" for name, value in configuration.all_kwargs().items())


def _as_tensor(value: Any) -> Any:  # noqa: ANN401
    return tensor(value) if type(value) is np.ndarray else value
