"""Triton's profiler Proton on the modelled clock: sessions, scopes and metrics as scripts use them, without a GPU.

Proton's Python side calls a library of its own (`triton._C.libproton.proton`), which listens to the GPU. `functions`
stands in its place: it keeps trees of scopes, and what the modelled clock says runs in them. A session's file is as
Proton writes it, for `triton.profiler.viewer`. Traces, instrumentation and contexts of Python's stack are refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from threading import local
from typing import Any, cast

from triptych.core.errors import UnsupportedFeature
from triptych.languages.triton.clock import TICKS_PER_NANOSECOND, Clock
from triptych.languages.triton.devices import Device
from triptych.languages.triton.internals import warn_at_launch

Names = tuple[str, ...]
"""A node of the tree: the names from the root to it."""
_TIME, _COUNT = "time (ns)", "count"
_DEVICE_TYPE, _DEVICE_ID = "CUDA", "0"


@dataclass(slots=True)
class Session:
    """What one `proton.start` records."""

    path: str
    """Of its file, without the suffix."""
    active: bool = True
    nodes: dict[Names, dict[str, Any]] = field(default_factory=dict[Names, dict[str, Any]])
    """The metrics of each node that has some; times in ticks."""

    def add(self, node: Names, metrics: Mapping[str, Any]) -> None:
        """Adds numbers to those of a node; of anything else the last value counts."""
        own = self.nodes.setdefault(node, {})
        for name, value in metrics.items():
            own[name] = own[name] + value if name in own and isinstance(value, int | float) else value

    def tree(self, device: Mapping[str, object]) -> list[dict[str, Any]]:
        """The session in hatchet's form: the root, in which times and counts are inclusive, and the device."""
        root = _node("ROOT", {_COUNT: 0, _TIME: 0})
        for names, metrics in self.nodes.items():
            node = root
            for name in names:
                children: list[dict[str, Any]] = node["children"]
                found = next((child for child in children if child["frame"]["name"] == name), None)
                if found is None:
                    found = _node(name, {})
                    children.append(found)
                node = found
            node["metrics"] |= metrics
            if _TIME in metrics:
                node["metrics"][_TIME] = round(metrics[_TIME] / TICKS_PER_NANOSECOND)
        return [root, {_DEVICE_TYPE: {_DEVICE_ID: dict(device)}}]


def _node(name: str, metrics: dict[str, Any]) -> dict[str, Any]:
    return {"frame": {"name": name, "type": "function"}, "metrics": metrics, "children": []}


class _Thread(local):
    """Where a thread is: its scopes and operators, as numbers and names, and its states."""

    def __init__(self) -> None:
        """In no scope."""
        self.scopes: list[tuple[int, str]] = []
        self.operators = 0
        self.states: list[str] = []


class SimulatedProton:
    """What Proton's Python side (3.6 to 3.9) asks its library for."""

    def __init__(self, clock: Clock, device: Callable[[], Device]) -> None:
        """No session yet; times are those of `clock`, `device` gives the device in force."""
        self._clock = clock
        self._device = device
        self._sessions: dict[int, Session] = {}
        self._numbers, self._scope_numbers = count(), count()
        self._nodes: dict[int, Names] = {}
        self._here = _Thread()

    def start(self, path: str, context: str, data: str, profiler: str, mode: str = "") -> int:
        """Begins a session.

        Raises:
            UnsupportedFeature: for a trace, instrumentation, samples of the program counter, Python's own stack.
        """
        for what, given, known in (("context", context, "shadow"), ("data", data, "tree"), ("mode", mode, "")):
            if given != known:
                raise UnsupportedFeature(f"Proton's {what} '{given}' cannot be simulated", hint=f"use {known!r}")
        if profiler == "instrumentation":
            raise UnsupportedFeature(
                "Proton's instrumentation cannot be simulated", hint="triptych counts by source line itself"
            )
        warn_at_launch(f"Proton's times in '{path}' are modelled")
        self._clock.start()
        self._clock.listener = self._note
        number = next(self._numbers)
        self._sessions[number] = Session(path)
        return number

    def activate(self, session: int) -> None:
        """The session goes on."""
        self._session(session).active = True

    def deactivate(self, session: int, _flushing: bool = False) -> None:
        """The session pauses."""
        self._session(session).active = False

    def activate_all(self) -> None:
        """All sessions go on."""
        for session in self._sessions.values():
            session.active = True

    def deactivate_all(self, _flushing: bool = False) -> None:
        """All sessions pause."""
        for session in self._sessions.values():
            session.active = False

    def finalize(self, session: int, output_format: str = "") -> None:
        """Ends a session and writes its file.

        Raises:
            UnsupportedFeature: for another format than hatchet's.
        """
        if output_format not in ("", "hatchet"):
            raise UnsupportedFeature(f"Proton's format '{output_format}' is not supported", hint="use 'hatchet'")
        ended = self._session(session)
        Path(f"{ended.path}.hatchet").write_text(self.get_data(session), "utf-8")
        del self._sessions[session]
        if not self._sessions:
            self._clock.listener = None

    def finalize_all(self, output_format: str = "") -> None:
        """Ends all sessions."""
        for session in [*self._sessions]:
            self.finalize(session, output_format)

    def get_data(self, session: int, _phase: int = 0) -> str:
        """What a session has recorded, as JSON."""
        chip = self._device().properties()
        device = {
            "arch": str(self._device().architecture),
            "bus_width": chip["mem_bus_width"],
            "clock_rate": chip["sm_clock_rate"],
            "memory_clock_rate": chip["mem_clock_rate"],
            "num_sms": chip["multiprocessor_count"],
        }
        return json.dumps(self._session(session).tree(device))

    def _session(self, number: int) -> Session:
        if number not in self._sessions:
            raise ValueError(f"Proton has no session {number}")
        return self._sessions[number]

    def record_scope(self) -> int:
        """A new scope's number."""
        return next(self._scope_numbers)

    def enter_scope(self, number: int, name: str) -> None:
        """What follows runs in the scope."""
        self._here.scopes.append((number, name))
        self._nodes[number] = self._node()

    def exit_scope(self, number: int, _name: str) -> None:
        """It has ended; what is added to it from now on is lost."""
        if (number, _name) in self._here.scopes:
            self._here.scopes.remove((number, _name))
        self._nodes.pop(number, None)

    def enter_op(self, number: int, name: str) -> None:
        """The launch that follows has a node of its own, of that name."""
        self.enter_scope(number, name)
        self._here.operators += 1

    def exit_op(self, number: int, name: str) -> None:
        """The launch has ended."""
        self.exit_scope(number, name)
        self._here.operators -= 1

    def enter_state(self, name: str) -> None:
        """What follows is put down to the state, whatever scope it is in."""
        self._here.states.append(name)

    def exit_state(self) -> None:
        """The state has ended."""
        self._here.states.pop()

    def add_metrics(self, number: int, metrics: Mapping[str, Any], tensors: Mapping[str, Any] | None = None) -> None:
        """Adds an author's own metrics to a scope that has not ended."""
        node = self._nodes.get(number)
        if node is not None:
            values = {**metrics, **{name: _plain(tensor) for name, tensor in (tensors or {}).items()}}
            self._add(node, values)

    def get_context_depth(self, _session: int) -> int:
        """How many scopes there are around here."""
        return len(self._here.scopes)

    def set_metric_kernels(self, *_kernels: object, **_options: object) -> None:
        """Nothing: metrics on the device are read where they lie."""

    def _node(self) -> Names:
        return tuple(self._here.states[-1:]) or tuple(name for _, name in self._here.scopes)

    def _note(self, what: str, ticks: int) -> None:
        """Something took time on the device."""
        node = self._node() if self._here.operators else (*self._node(), what)
        self._add(node, {_TIME: ticks, _COUNT: 1, "device_id": _DEVICE_ID, "device_type": _DEVICE_TYPE})

    def _add(self, node: Names, metrics: Mapping[str, Any]) -> None:
        for session in self._sessions.values():
            if session.active:
                session.add(node, metrics)


_OWN = (
    "start", "activate", "activate_all", "deactivate", "deactivate_all", "finalize", "finalize_all", "record_scope",
    "enter_scope", "exit_scope", "enter_op", "exit_op", "add_metrics", "enter_state", "exit_state", "get_context_depth",
    "set_metric_kernels", "get_data",
)  # fmt: skip
_REFUSED = (
    "get_data_msgpack", "advance_data_phase", "clear_data", "is_data_phase_complete", "enter_instrumented_op",
    "exit_instrumented_op", "init_function_metadata", "destroy_function_metadata",
)  # fmt: skip


def functions(clock: Clock, device: Callable[[], Device]) -> Mapping[str, object]:
    """What stands in the library's module, by name; times are those of `clock`, `device` gives the device in force."""
    proton = SimulatedProton(clock, device)
    return {name: getattr(proton, name) for name in _OWN} | {name: _refusal(name) for name in _REFUSED}


def _plain(tensor: Any) -> object:  # noqa: ANN401  triton's _TensorMetric, which holds a tensor
    value = tensor._value
    return cast(object, value.tolist() if value.numel() > 1 else value.item())


def _refusal(name: str) -> Callable[..., object]:
    def refuse(*_arguments: object, **_options: object) -> object:
        raise UnsupportedFeature(f"Proton's '{name}' cannot be simulated", hint="use proton.start() and finalize()")

    return refuse
