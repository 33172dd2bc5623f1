"""What a benchmark states: figures with their targets and peers, and the ways to time them."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
KERNELS = FOLDER / "kernels"


class Sense(Enum):
    """On which side of its bound a figure is to lie."""

    AT_LEAST = "≥"
    AT_MOST = "≤"


class Of(Enum):
    """What of a figure a target speaks about."""

    VALUE = "value"
    RATIO = "ratio"


class Verdict(Enum):
    """What became of a figure's target."""

    MET = "met"
    MISSED = "missed"
    INFORMATIVE = "informative"
    """There is no target."""
    NOT_JUDGED = "not judged"
    """Taken with --quick: sizes at which the target says nothing."""


@dataclass(frozen=True, slots=True)
class Target:
    """A bound on a figure's value (in the figure's unit) or on its ratio to the peer."""

    sense: Sense
    bound: float
    of: Of = Of.VALUE

    def holds(self, number: float) -> bool:
        """Whether the number lies on the right side."""
        return number >= self.bound if self.sense is Sense.AT_LEAST else number <= self.bound


def at_least(bound: float, of: Of = Of.VALUE) -> Target:
    """The figure must reach `bound`."""
    return Target(Sense.AT_LEAST, bound, of)


def at_most(bound: float, of: Of = Of.VALUE) -> Target:
    """The figure must not exceed `bound`."""
    return Target(Sense.AT_MOST, bound, of)


@dataclass(frozen=True, slots=True)
class Peer:
    """What ran beside us in the same run, in the figure's own unit."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of the table. `samples` are all measurements, in the unit of `sample_unit`, in the order taken."""

    quantity: str
    value: float
    unit: str
    peer: Peer | None = None
    target: Target | None = None
    samples: Sequence[float] = ()
    sample_unit: str = "s"
    details: Mapping[str, float | str] = field(default_factory=dict[str, float | str])

    @property
    def ratio(self) -> float | None:
        """Ours over the peer's."""
        return self.value / self.peer.value if self.peer is not None else None

    def judge(self, *, quick: bool) -> Verdict:
        """Whether the target is met."""
        if self.target is None:
            return Verdict.INFORMATIVE
        if quick:
            return Verdict.NOT_JUDGED
        number = self.value if self.target.of is Of.VALUE else self.ratio
        assert number is not None, f"{self.quantity}: a target on the ratio needs a peer"
        return Verdict.MET if self.target.holds(number) else Verdict.MISSED


Benchmark = Callable[[bool], Iterator[Figure]]
"""Takes whether to use the quick sizes; yields figures as they are measured."""


class BenchmarkError(Exception):
    """A benchmark cannot be taken: a peer is not installed, a result is wrong, a probe failed."""


def time_call(call: Callable[[], object]) -> float:
    """Seconds of wall time of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


@dataclass(frozen=True, slots=True)
class Contender:
    """One of several calls that are timed in turn; `around` is entered before the clock starts."""

    call: Callable[[], object]
    around: Callable[[], AbstractContextManager[object]] = nullcontext


def take_turns(contenders: Mapping[str, Contender], rounds: int) -> dict[str, list[float]]:
    """Seconds of each contender in each round.

    They alternate, so that whatever else the machine does falls on all of them. A round before the first is not timed:
    it compiles, loads and touches memory.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(rounds + 1):
        for name, contender in contenders.items():
            with contender.around():
                taken = time_call(contender.call)
            if turn:
                seconds[name].append(taken)
    return seconds


def spread(samples: Sequence[float]) -> dict[str, float | str]:
    """Details that show the noise: best, median and worst."""
    return {"best_s": min(samples), "median_s": statistics.median(samples), "worst_s": max(samples)}


def require_close(what: str, error: float, tolerance: float) -> None:
    """A speed of wrong results is worth nothing.

    Raises:
        BenchmarkError: where the largest error is above the tolerance, or no number.
    """
    if not error <= tolerance:
        raise BenchmarkError(f"{what}: the result is wrong (largest error {error:.3g}, tolerance {tolerance:.3g})")


_PROBE = """
import importlib, json, os, sys
results = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what a peer prints is no result
request = json.loads(sys.argv[1])
found = getattr(importlib.import_module(request["module"]), request["function"])(**request["arguments"])
results.write(json.dumps(found))
"""


def probe(
    module: str, function: str, environment: Mapping[str, str] | None = None, **arguments: str | float
) -> dict[str, list[float]]:
    """Calls a function of a benchmark's module in a process of its own, whose state nothing before has touched.

    Args:
        module: as `peers.numba_simulator`, from the folder of benchmarks.
        function: its name; it returns lists of numbers by name.
        environment: variables set besides this process's own.
        arguments: passed to the function; JSON carries them.

    Raises:
        BenchmarkError: where the process failed, with the end of what it said.
    """
    request = json.dumps({"module": module, "function": function, "arguments": arguments})
    path = os.pathsep.join(filter(None, [str(FOLDER), os.environ.get("PYTHONPATH", "")]))
    variables = {**os.environ, **(environment or {}), "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", _PROBE, request], env=variables, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BenchmarkError(f"{module}.{function} failed:\n{done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout)
