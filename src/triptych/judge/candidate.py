"""What is to be judged, and by what: a candidate's source, and the task that it is to solve."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from triptych import __version__
from triptych.chips import DEFAULT_BY_MACHINE, Chip, load
from triptych.core.dtypes import DType
from triptych.operators.operator import Operator, Size

_CHEAP_WORK = 1 << 22
"""FLOPs and bytes of a size that is scored without being asked for."""
_MOST_SIZES = 2


@dataclass(frozen=True, slots=True)
class Candidate:
    """A source, and how it is written."""

    source: str
    name: str = "solution.py"
    """The file's name, for messages."""
    format: str = "solution"
    """`solution`, `kernelbench` or `gpu_mode`."""

    @classmethod
    def read(cls, path: Path, format: str = "solution") -> Candidate:
        """The candidate of a file. What is no UTF-8 is kept as it is, and found to be no Python.

        Raises:
            OSError: where the file cannot be read.
        """
        return cls(path.read_bytes().decode("utf-8", errors="surrogateescape"), path.name, format)

    @property
    def digest(self) -> str:
        """The SHA-256 of the source, in hexadecimal."""
        return hashlib.sha256(self.source.encode("utf-8", errors="surrogateescape")).hexdigest()


@dataclass(frozen=True, slots=True)
class Task:
    """What a candidate is judged by."""

    operator: Operator
    sizes: tuple[Size, ...]
    dtype: DType
    """T."""
    chips: tuple[Chip, ...]
    """Those that were asked for; none: the default chip of the machine that the kernels are for."""
    seed: int | None
    """Of all inputs. None: one that nobody knows, drawn when the candidate has been captured."""

    def chips_of(self, machine: str) -> tuple[Chip, ...]:
        """Those of a machine (`gpu`, `neuron`)."""
        asked = self.chips or (load(DEFAULT_BY_MACHINE[machine]),)
        return tuple(chip for chip in asked if chip.machine == machine)

    def identity(self, candidate: Candidate) -> str:
        """By what a batch knows that a candidate was judged: its name, source and task, with a seed asked for."""
        return f"{candidate.name}:{self.key(candidate)}:{'' if self.seed is None else self.seed}"

    def key(self, candidate: Candidate) -> str:
        """A digest of a candidate and all of the task but the seed: of what decides its plans and its kernels' code."""
        chips = [repr(chip) for chip in self.chips]
        sizes = [f"{size.name} {dict(size.values)}" for size in self.sizes]
        parts = [self.operator.name, self.operator.text_digest, self.dtype.name, *sizes, *chips, __version__]
        return hashlib.sha256("\n".join([candidate.digest, candidate.format, *parts]).encode()).hexdigest()


def default_sizes(operator: Operator) -> tuple[Size, ...]:
    """What is scored where nobody asks: the operator's tiny size, and the next one where it is cheap too.

    Those are what a test of the operator runs: whole tiles, and lengths that no tile divides.
    """
    first, *others = operator.sizes
    dtype = operator.dtype(operator.dtypes[0])
    cheap = [
        size
        for size in others
        if operator.least_flops(size.values) + operator.least_bytes(size.values, dtype) <= _CHEAP_WORK
    ]
    return (first, *cheap[: _MOST_SIZES - 1])


def task(
    operator: Operator,
    *,
    sizes: Sequence[str] = (),
    dtype: str | None = None,
    chips: Sequence[Chip] = (),
    seed: int | None = None,
) -> Task:
    """The task of an operator.

    Args:
        operator: what is to be computed.
        sizes: names of sizes; `default_sizes` where there are none.
        dtype: T's name; the operator's first type where it is not said.
        chips: to place launches on; the default chip of the machine that the kernels are for where there are none.
        seed: of all inputs; one that nobody knows where it is not said.

    Raises:
        UnknownName: for a size or a type that the operator has not.
    """
    named = tuple(operator.size(name) for name in dict.fromkeys(sizes))
    kind = operator.dtype(dtype or operator.dtypes[0])
    placed = tuple({chip.name: chip for chip in chips}.values())
    return Task(operator, named or default_sizes(operator), kind, placed, seed)
