"""Unrolled loops of Beta 1: which instruction came from which iteration, and that those of `affine_range` are apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from triptych.core.errors import NkiError
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.neuron.isa import ROWS, Instruction, Region, Tensor

if TYPE_CHECKING:
    from triptych.languages.nki.tracing.tracer import Tracer

Stamps = NDArray[np.int32]
_SEVERAL = -1


class LoopIndex(int):
    """An index of a loop, a whole number that knows which loop it belongs to."""

    loop: int

    def __new__(cls, value: int, loop: int) -> LoopIndex:
        """The index `value` of that loop."""
        made = super().__new__(cls, value)
        made.loop = loop
        return made


@dataclass(slots=True)
class _Open:
    """A loop that is being run."""

    number: int
    iteration: int
    first_instruction: int
    first_tensor: int


@dataclass(slots=True, eq=False)
class Reduction:
    """What `nl.loop_reduce` has reduced so far; None before the first iteration."""

    tile: NkiTensor | None = None


@dataclass(slots=True)
class Loops:
    """The loops that are being run, and the iterations of each instruction."""

    opened: list[_Open] = field(default_factory=list[_Open])
    _made: int = 0
    _iterations: dict[tuple[int, int], tuple[tuple[int, int], ...]] = field(
        default_factory=dict[tuple[int, int], tuple[tuple[int, int], ...]]
    )
    _exempt: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    _reductions: dict[object, Reduction] = field(default_factory=dict[object, Reduction])

    def record(self, program: int, index: int) -> None:
        """An instruction of a program was recorded."""
        if self.opened:
            self._iterations[program, index] = tuple((one.number, one.iteration) for one in self.opened)

    def exempt(self, program: int, instructions: Iterable[int]) -> None:
        """Instructions that accumulate: their order means nothing."""
        self._exempt.update((program, index) for index in instructions)

    def enter(self, tracer: Tracer) -> _Open:
        """A loop begins."""
        self._made += 1
        made = _Open(self._made, 0, len(tracer.instructions), len(tracer.tensors))
        self.opened.append(made)
        return made

    def leave(self, opened: _Open) -> None:
        """A loop, and what may be left open inside of it, ends."""
        while self.opened and self.opened.pop() is not opened:
            pass

    def reduction(self, call_path: object, reduced: frozenset[int]) -> Reduction:
        """What the call of `nl.loop_reduce` that runs has reduced, in this iteration of the other loops."""
        outer = tuple((one.number, one.iteration) for one in self.opened if one.number not in reduced)
        return self._reductions.setdefault((call_path, outer), Reduction())

    def check_independent(self, tracer: Tracer, opened: _Open) -> None:
        """Refuse a loop of which an iteration needs what another one wrote.

        Raises:
            NkiError: at the line that writes or reads it.
        """
        program = tracer.program
        found = [
            (instruction, dict(self._iterations[program, index])[opened.number])
            for index, instruction in enumerate(tracer.instructions)
            if index >= opened.first_instruction
            and (program, index) in self._iterations
            and (program, index) not in self._exempt
        ]
        _Dependences(tracer.tensors, opened.first_tensor).check(found)


class Unrolled:
    """The indices of a loop, one after the other; of an `independent` one the iterations must not need each other."""

    def __init__(self, tracer: Tracer, bounds: range, independent: bool) -> None:
        """A loop over `bounds`."""
        self._tracer = tracer
        self._bounds = bounds
        self._independent = independent

    def __len__(self) -> int:
        """How many iterations it has."""
        return len(self._bounds)

    def __getitem__(self, key: int) -> int:
        """One of the indices."""
        return self._bounds[key]

    def __iter__(self) -> Iterator[int]:
        """The indices, which know their loop."""
        loops = self._tracer.loops
        opened = loops.enter(self._tracer)
        try:
            for at, value in enumerate(self._bounds):
                opened.iteration = at
                yield LoopIndex(value, opened.number)
            if self._independent and len(self._bounds) > 1:
                loops.check_independent(self._tracer, opened)
        finally:
            loops.leave(opened)


class _Dependences:
    """Which iteration wrote and read each element of what was declared before the loop."""

    def __init__(self, tensors: Sequence[Tensor], declared: int) -> None:
        self._tensors = tensors
        self._declared = declared
        self._written: dict[int, Stamps] = {}
        self._read: dict[int, Stamps] = {}

    def check(self, found: Sequence[tuple[Instruction, int]]) -> None:
        """Go through the instructions with their iterations, in their order."""
        outside = {
            region.tensor
            for instruction, _ in found
            for region, written in _regions(instruction)
            if written and region.tensor < self._declared
        }
        for instruction, iteration in found:
            for region, written in _regions(instruction):
                if region.tensor in outside:
                    self._access(instruction, region, iteration + 1, written=written)

    def _stamps(self, table: dict[int, Stamps], region: Region) -> Stamps:
        tensor = self._tensors[region.tensor]
        if region.tensor not in table:
            table[region.tensor] = np.zeros(tensor.size, np.int32)
        stamps = table[region.tensor]
        strides = tuple(step * stamps.itemsize for step, _ in region.pattern)
        return np.ndarray(
            region.shape, np.int32, buffer=stamps, offset=region.offset * stamps.itemsize, strides=strides
        )

    def _access(self, instruction: Instruction, region: Region, mine: int, *, written: bool) -> None:
        writers, readers = self._stamps(self._written, region), self._stamps(self._read, region)
        clash = (writers != 0) & (writers != mine)
        if written:
            clash |= (readers != 0) & (readers != mine)
        if clash.any():
            name = self._tensors[region.tensor].name
            raise NkiError(
                f"err_unexpected_output_dependencies: iterations of nl.affine_range depend on each other: {mine - 1} "
                f"{'writes' if written else 'reads'} elements of `{name}` that another one uses",
                where=instruction.where,
                hint="use nl.sequential_range, accumulate with +=, or index the tensor by the loop's index",
            )
        if written:
            writers[...] = mine
        else:
            readers[...] = np.where((readers == 0) | (readers == mine), mine, _SEVERAL)


def _regions(instruction: Instruction) -> Iterator[tuple[Region, bool]]:
    """The regions at places that are known, reads first, and whether they are written; products that add up are not."""
    row = ROWS[instruction.operation]
    rules: Mapping[str, tuple[bool, bool]] = {rule.name: (rule.read, rule.written) for rule in row.operands}
    for writes in (False, True):
        for name, operand in instruction.operands.items():
            read, written = rules[name]
            wanted = written and not row.accumulates if writes else read
            if wanted and isinstance(operand, Region) and operand.dynamic is None:
                yield operand, writes
