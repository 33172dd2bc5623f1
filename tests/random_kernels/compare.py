"""One random kernel on both executors: what they leave in memory, count, and count by line must be the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from emit import given_to, text_of
from grammar import RandomKernel
from numpy.typing import NDArray

from triptych.core.counters import Counters
from triptych.core.dtypes import DTYPES
from triptych.core.errors import TriptychError
from triptych.core.handles import AddressSpace, Handle, Storage
from triptych.core.launches import Observed
from triptych.core.plan import Argument, Launch, Program, Struct
from triptych.core.settings import scope
from triptych.gpu import run_launch
from triptych.gpu.oracle import run_launch_slowly
from triptych.gpu.oracle.counting import Tally

ARRAYS = ("inputs", "table", "scratch", "cells", "common", "out", "dump")
NOT_COMPARED = frozenset(("threads.active_lanes",))
"""Derived from what is compared."""
BUDGET = 1 << 14
"""Iterations of loops of a warp: no random kernel comes near."""
Memory = dict[Storage, NDArray[np.uint8]]


class Mismatch(Exception):
    """The executors disagree, or a valid kernel does not run; `kind` is the same where the reason is."""

    def __init__(self, kind: str, text: str) -> None:
        """The text has the details."""
        super().__init__(text)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Agreement:
    """What ran."""

    warps: int
    """Instructions of warps."""
    threads: int
    """Instructions times lanes."""
    lines: frozenset[int]
    """The lines that ran: instructions are numbered from 1 on."""


def _place(kernel: RandomKernel) -> tuple[tuple[Argument, ...], Memory]:
    given, space = given_to(kernel), AddressSpace()
    memory: Memory = {}
    arguments: list[Argument] = []
    for name, array in zip(ARRAYS, given.arrays, strict=True):
        storage = space.place(name, array.nbytes, writable=name not in ("inputs", "table"))
        memory[storage] = array
        arguments.append(Handle(storage, DTYPES["u8"], array.shape, array.strides))
    return (*arguments, Struct(given.blob)), memory


def run_and_compare(kernel: RandomKernel) -> Agreement:
    """Runs a kernel on the generated code and on the oracle.

    Raises:
        Mismatch: they disagree, or either stops.
    """
    return compare_text(kernel, text_of(kernel))


def compare_text(kernel: RandomKernel, text: str) -> Agreement:
    """As `run_and_compare`, of the kernel's text as it is given."""
    program = Program("gpu", text, "ptx", "sm_80")
    arguments, fast = _place(kernel)
    _, slow = _place(kernel)
    launch = Launch("program", "k", kernel.grid, kernel.block, arguments, kernel.shared_bytes)
    with scope(workers=1, budget=BUDGET):
        try:
            record = run_launch(program, launch, fast)
        except TriptychError as error:
            raise Mismatch(f"generated: {type(error).__name__}", str(error)) from error
        try:
            tally = run_launch_slowly(program, launch, slow)
        except TriptychError as error:
            raise Mismatch(f"oracle: {type(error).__name__}", str(error)) from error
    _compare_memory(fast, slow)
    _compare_counters("the launch", _plain(record.counters), tally.counters)
    _compare_lines(record, tally)
    lines = frozenset(line.where.line for line in record.lines)
    return Agreement(tally.counters["instructions.warp"], tally.counters["instructions.thread"], lines)


def _plain(counters: Counters) -> Mapping[str, int]:
    return {name: int(c.value) for name, c in counters.items() if name not in NOT_COMPARED}


def _compare_memory(fast: Memory, slow: Memory) -> None:
    for (storage, left), right in zip(fast.items(), slow.values(), strict=True):
        differing = np.flatnonzero(left != right)
        if differing.size:
            first = int(differing[0])
            word = slice(first & ~7, (first & ~7) + 8)
            text = f"{storage.name}: {differing.size} bytes differ, the first at {first}: generated"
            text += f" {left[word].tobytes()[::-1].hex()}, oracle {right[word].tobytes()[::-1].hex()}"
            raise Mismatch(f"memory: {storage.name}", text)


def _compare_counters(what: str, fast: Mapping[str, int], slow: Mapping[str, int]) -> None:
    names = sorted(name for name in fast.keys() | slow.keys() if fast.get(name, 0) != slow.get(name, 0))
    if names:
        rows = [f"{name}: generated {fast.get(name, 0)}, oracle {slow.get(name, 0)}" for name in names]
        raise Mismatch(f"counters: {names[0]}", "\n  ".join([f"{what}: counters differ", *rows]))


def _compare_lines(record: Observed, tally: Tally) -> None:
    fast = {(line.where, line.frames): _plain(line.counters) for line in record.lines}
    for place in sorted(fast.keys() | tally.lines.keys()):
        _compare_counters(f"line {place[0].line}", fast.get(place, {}), tally.lines.get(place, {}))
