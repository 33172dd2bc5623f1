"""Triton's autotuner on modelled time: it chooses for each device by itself, and takes numpy arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from triptych.core.settings import settings
from triptych.execution.memory import memory
from triptych.execution.profile import record_tuning
from triptych.execution.tuning import Tuning
from triptych.languages.triton.devices import device_in_force
from triptych.languages.triton.internals import (
    AUTOTUNER_STATE,
    AUTOTUNER_TIMINGS,
    CONFIGURATION_ERRORS,
    launching_line,
    warn_at_launch,
)
from triptych.languages.triton.tensors import tensor

if TYPE_CHECKING:
    from triptych.core.plan import Node
    from triptych.execution.recorder import Recorder


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
        recorder = memory().recorder
        if recorder is not None:
            return record_choice(run, self, arguments, keywords, recorder)
        states.enter(self, device())
        before = getattr(self, AUTOTUNER_TIMINGS, None)
        named = {name: _as_tensor(value) for name, value in keywords.items()}
        result = run(self, *map(_as_tensor, arguments), **named)
        timings = getattr(self, AUTOTUNER_TIMINGS, None)
        if timings is not None and timings is not before:
            record_tuning(_tuning(self, timings))
        return result

    return run_on_device


def record_choice(
    run: Callable[..., Any],
    autotuner: Any,  # noqa: ANN401  triton's Autotuner
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
    recorder: Recorder,
) -> None:
    """A choice among the configurations, each with what its hooks and its launch do; nothing is run, or remembered.

    A configuration that does not compile is left out, as it is when it is tried.

    Raises:
        Exception: Triton's own, where none compiles.
    """
    configurations, names = autotuner.configs, dict(zip(autotuner.arg_names, arguments, strict=False))
    autotuner.nargs = names
    alternatives: dict[str, Sequence[Node]] = {}
    refused: Exception | None = None
    tried = autotuner.prune_configs(keywords) if len(configurations) > 1 else configurations
    try:
        for configuration in tried:
            autotuner.configs, autotuner.nargs = [configuration], names
            with recorder.alternative() as nodes:
                try:
                    if len(tried) > 1:
                        autotuner.pre_hook({**names, **keywords, **configuration.all_kwargs()}, reset_only=True)
                    run(autotuner, *arguments, **keywords)
                except CONFIGURATION_ERRORS as error:
                    refused = error
                    continue
            label = _label(configuration)
            same = sum(one == label or one.startswith(f"{label} (") for one in alternatives)
            alternatives[f"{label} ({same + 1})" if same else label] = nodes
    finally:
        autotuner.configs = configurations
    if not alternatives and refused is not None:
        raise refused
    recorder.choose(alternatives)


def make_prune(prune: Callable[..., Any]) -> Callable[..., list[Any]]:
    """`Autotuner.prune_configs`, of whose configurations some are tried, at equal distances: as the settings want."""

    def prune_to_most(self: Any, *arguments: Any, **keywords: Any) -> list[Any]:  # noqa: ANN401  as Triton's own
        found, most = [*prune(self, *arguments, **keywords)], settings().benchmark_configurations
        if most is None or most >= len(found):
            return found
        warn_at_launch(
            f"autotuning of {self.base_fn.__name__}: {most} of {len(found)} configurations are tried"
            " (TRIPTYCH_BENCHMARK_CONFIGURATIONS)"
        )
        return [found[(2 * place + 1) * len(found) // (2 * most)] for place in range(most)]

    return prune_to_most


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
