"""What is asked of the process that executes a plan, and what it says of each run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from triptych.chips import Chip
from triptych.core.launches import LaunchRecord
from triptych.core.source import SourceLocation

BUDGET = 1 << 22
"""Loop iterations of one warp before it counts as hung; tiny sizes need a few hundred."""
LAUNCH_BUDGET = 1 << 26
"""Those of all warps of a launch together."""
MOST_LEFT_OUT = 64
"""Runs of a plan without some of its nodes, to see whether they contribute."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a plan."""

    case: int
    """Which of the cases' inputs it has."""
    undefined_byte: int | None = 0xFF
    """What every byte of memory holds that nobody has written; None: 0xFF in arrays, another in memory on the chip."""
    block_order: str = "ascending"
    """`ascending` or `descending`: the order in which blocks begin."""
    may_fail: bool = False
    """Whether others follow it where it is stopped."""
    is_watched: bool = False
    """Whether counters and what was touched are wanted, beside the outputs."""


@dataclass(frozen=True, slots=True)
class ExecutionRequest:
    """What the process is given: no expected results, no budget of errors, no seed."""

    plan: bytes
    """As `tt.plans.pack` writes it."""
    cases: tuple[Mapping[str, bytes], ...]
    """Of each the inputs' bytes, in C order, by the storages' names."""
    runs: tuple[Run, ...]
    chip: Chip
    droppable: tuple[tuple[int, ...], ...]
    """Groups of places of nodes of the plan that may contribute nothing, in the order in which they are tried."""
    cached: Mapping[str, bytes]
    """Object code of this candidate that an earlier process left: files by their path in the cache's folder."""
    budget: int = BUDGET
    launch_budget: int = LAUNCH_BUDGET


@dataclass(frozen=True, slots=True)
class Ran:
    """A run that came to its end."""

    outputs: tuple[bytes, ...]
    """In C order."""
    inputs: Mapping[str, str]
    """The SHA-256 of each input's bytes after the run."""
    records: tuple[LaunchRecord, ...]
    """Without source lines; nothing where the run was not watched."""
    choices: tuple[str, ...]
    """The labels of the alternatives that were chosen, in order; inner ones before those around them."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """A run that did not."""

    code: str
    """A reason's."""
    message: str
    where: SourceLocation | None


@dataclass(frozen=True, slots=True)
class Execution:
    """What the runs came to, in the order in which they were asked for: up to the first that must not fail and did."""

    runs: tuple[Ran | Stopped, ...]
    dead: frozenset[int]
    """Of the droppable nodes those without which, all left out together, the first run's outputs are the same."""
    cached: Mapping[str, bytes]
    """Object code for the next process."""
    cpu_s: float
    layers: tuple[str, ...]
    """The layers of isolation that held."""
