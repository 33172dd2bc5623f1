"""The two sandboxes of one worker, and what all workers of a process know of candidates that they have seen before."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from threading import Lock
from types import TracebackType
from typing import Self

from triptych.core.plan import Plan
from triptych.judge.capture.outside import PRELOAD
from triptych.languages.cuda import toolkit
from triptych.sandbox import Limits, Sandbox

CAPTURE_LIMITS = Limits(wall_s=180.0, cpu_s=90.0, memory_bytes=3 << 30, reply_bytes=64 << 20)
"""Of a candidate's host code and the compilers that it calls, for all sizes together."""
EXECUTION_LIMITS = Limits(wall_s=1200.0, cpu_s=120.0, memory_bytes=3 << 30, reply_bytes=256 << 20)
"""Of the runs of one plan at one size. The process never sleeps, so processor time decides, whatever else the machine
does; kernels that hang are stopped by the budgets of `execution/request.py` before, and always at the same place."""
_EXECUTION_MODULES = (
    "triptych.judge.execution.inside", "triptych.gpu.launch", "triptych.neuron.run", "triptych.neuron.timeline.launch",
)  # fmt: skip
COMPILERS = (toolkit.SYSTEM,)
"""What host code may read beside Python's packages."""
_KEPT_CANDIDATES = 512
_KEPT_BYTES = 256 << 20
"""Of plans' programs and object code."""


@dataclass(frozen=True, slots=True)
class CapturedPlans:
    """What the host code of a candidate asked for: a plan for each size."""

    plans: tuple[Plan, ...]
    languages: tuple[str, ...]
    """What the kernels claim to be written in."""
    machine: str
    """That all of them are for."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a candidate."""

    key: str
    """A digest of all that decides it."""
    plans: CapturedPlans
    cached: Mapping[str, bytes]
    """Object code of its kernels, which its own processes made: it can harm nobody else."""

    @property
    def bytes(self) -> int:
        """What it takes, about."""
        texts = sum(len(program.text) for plan in self.plans.plans for program in plan.programs.values())
        return texts + sum(map(len, self.cached.values()))


Times = Mapping[tuple[str, str], float]
"""Seconds by the name of a size and of a chip."""


@dataclass(slots=True)
class Memory:
    """What all workers share: the least recently used goes first. Used from any thread."""

    baselines: dict[str, Times] = field(default_factory=dict[str, Times])
    """The reference kernels' times, by the key of a task on one."""
    _known: OrderedDict[str, Known] = field(default_factory=OrderedDict[str, Known])
    _lock: Lock = field(default_factory=Lock)

    def known(self, key: str) -> Known | None:
        """What is known of a candidate, by all that decides its plans."""
        with self._lock:
            found = self._known.get(key)
            if found is not None:
                self._known.move_to_end(key)
            return found

    def remember(self, known: Known) -> None:
        """Keeps it, in the place of what was known before."""
        with self._lock:
            self._known[known.key] = known
            self._known.move_to_end(known.key)
            while len(self._known) > _KEPT_CANDIDATES or sum(one.bytes for one in self._known.values()) > _KEPT_BYTES:
                self._known.popitem(last=False)


class Workshop:
    """A sandbox to capture in and one to execute in. One thread uses it at a time; it starts when it is first used."""

    def __init__(self, memory: Memory | None = None, require: frozenset[str] = frozenset()) -> None:
        """Nothing runs yet.

        Args:
            memory: what is known of candidates; nothing where it is not given.
            require: layers of isolation without which nothing runs.

        Raises:
            UnknownName: for a layer that there is not.
        """
        self.memory = memory or Memory()
        self.held: tuple[str, ...] | None = None
        """The layers of isolation that held in every process of this candidate; None where it had none."""
        self._require = require
        self.capture = self._to_capture((PRELOAD,))
        self._has_torch = find_spec("torch") is None  # what is not there cannot be preloaded
        self.execution = Sandbox(preload=_EXECUTION_MODULES, limits=EXECUTION_LIMITS, require=require)

    def __enter__(self) -> Self:
        """The workshop itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Ends both sandboxes."""
        self.close()

    def capture_of(self, source: str) -> Sandbox:
        """The sandbox to capture a source in: torch is preloaded from the first source on that names it."""
        if "torch" in source and not self._has_torch:
            self.capture.close()
            self.capture = self._to_capture((PRELOAD, "torch"))
            self._has_torch = True
        return self.capture

    def _to_capture(self, preload: tuple[str, ...]) -> Sandbox:
        return Sandbox(preload=preload, readable=COMPILERS, limits=CAPTURE_LIMITS, require=self._require)

    def close(self) -> None:
        """Ends both sandboxes."""
        self.capture.close()
        self.execution.close()

    def stop(self) -> None:
        """Ends what runs in both, from another thread than the one that waits for it."""
        self.capture.interrupt()
        self.execution.interrupt()

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers of isolation that hold in both; starts them."""
        executing = self.execution.layers
        return tuple(layer for layer in self.capture.layers if layer in executing)

    def begin(self) -> None:
        """Another candidate comes."""
        self.held = None

    def note(self, layers: tuple[str, ...]) -> None:
        """A process of the candidate ran behind these layers."""
        self.held = layers if self.held is None else tuple(layer for layer in self.held if layer in layers)
