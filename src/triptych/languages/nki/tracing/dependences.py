"""Whether the iterations of an `nl.affine_range` need each other: the accesses of a whole program, compared once.

An access has a path: the loops that it is in, outermost first, with their iterations. Two accesses clash where they
touch the same element, one of them writes it, and the first loop in which their paths differ is one whose iterations
are independent. Most tiles are told apart by the elements that they span (sorted, all at once), what is left by the
cells of their footprints, and what still seems to clash element by element.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from triptych.core.errors import NkiError
from triptych.neuron.isa import ROWS, Instruction, Region, Tensor
from triptych.neuron.isa.trace import Pattern
from triptych.neuron.timeline.footprints import Footprints, key_of

Path = tuple[tuple[int, int], ...]
"""(number of the loop, iteration) of each loop that an instruction is in, the outermost first."""


@dataclass(frozen=True, slots=True)
class Loop:
    """What is known of a loop that was begun."""

    independent: bool
    """Whether its iterations must not need each other."""
    first_tensor: int
    """Tensors from here on were declared inside of it."""


@dataclass(frozen=True, slots=True)
class Access:
    """A region that an instruction reads or writes."""

    instruction: Instruction
    region: Region
    path: Path
    written: bool


@dataclass(slots=True)
class _Cell:
    """Who wrote an element last, and who has read it since."""

    writer: Access | None = None
    readers: list[Access] = field(default_factory=list[Access])


@cache
def _uses(operation: str) -> tuple[tuple[str, bool], ...]:
    """The operands that an instruction reads, then those that it writes, which products that add up do not."""
    row = ROWS[operation]
    read = tuple((one.name, False) for one in row.operands if one.read)
    return read + tuple((one.name, True) for one in row.operands if one.written and not row.accumulates)


@lru_cache(1 << 14)
def _reach(pattern: Pattern) -> tuple[int, int]:
    """How far a pattern reaches below its offset, and from its first element to its last one."""
    below = sum(step * (count - 1) for step, count in pattern if step < 0)
    return below, sum(abs(step) * (count - 1) for step, count in pattern)


def check_independent(
    program: Sequence[Instruction],
    paths: Sequence[Path],
    exempt: frozenset[int],
    loops: Mapping[int, Loop],
    tensors: Sequence[Tensor],
) -> None:
    """Refuse a program in which an iteration of an independent loop needs what another one wrote.

    Args:
        program: the instructions.
        paths: of each instruction.
        exempt: instructions that accumulate: their order means nothing.
        loops: by their numbers.
        tensors: of the trace.

    Raises:
        NkiError: at the line that writes or reads it.
    """
    accesses = _Accesses(program, paths, loops, tensors)
    accesses.collect(exempt)
    for group in accesses.that_meet():
        if next(_clashes(group, loops), None) is not None:
            _check_by_cells(group, loops, tensors)


class _Accesses:
    """What the instructions of independent loops touch at places that are known, in their order; reads first."""

    def __init__(
        self,
        program: Sequence[Instruction],
        paths: Sequence[Path],
        loops: Mapping[int, Loop],
        tensors: Sequence[Tensor],
    ) -> None:
        self._program = program
        self._paths = paths
        self._loops = loops
        self._free = [tensor.free if tensor.space.on_chip else 0 for tensor in tensors]
        self._owners: list[int] = []
        self._regions: list[Region] = []
        self._numbers: list[int] = []
        """Of the paths."""
        self._written: list[bool] = []
        self._first: list[int] = []
        """The first element that it spans: of a tile within each partition."""
        self._span: list[int] = []
        """From the first element to the last one."""

    def collect(self, exempt: frozenset[int]) -> None:
        """Those of all instructions but the exempt ones, to tensors that were there before an independent loop."""
        numbers: dict[int, tuple[int, int]] = {}
        for at, (instruction, path) in enumerate(zip(self._program, self._paths, strict=True)):
            known = numbers.get(id(path))
            if known is None:
                before = max([one.first_tensor for one in self._independent(path)], default=0)
                known = numbers[id(path)] = (len(numbers), before)
            number, before = known
            if not before or at in exempt:
                continue
            operands = instruction.operands
            for name, written in _uses(instruction.operation):
                operand = operands.get(name)
                if type(operand) is Region and operand.tensor < before and operand.dynamic is None:
                    self._owners.append(at)
                    self._numbers.append(number)
                    self._written.append(written)
                    self._add(operand)

    def _independent(self, path: Path) -> list[Loop]:
        loops = [self._loops[loop] for loop, _ in path]
        return [loop for loop in loops if loop.independent]

    def _add(self, region: Region) -> None:
        self._regions.append(region)
        free, offset, pattern = self._free[region.tensor], region.offset, region.pattern
        if free:
            offset, pattern = offset % free, pattern[1:]
        below, span = _reach(pattern)
        self._first.append(offset + below)
        self._span.append(span)

    def that_meet(self) -> Iterator[list[Access]]:
        """Those of a tensor that span elements in common, several paths and a write among them, in their order."""
        if not any(self._written):
            return
        low, span = np.array(self._first, np.int64), np.array(self._span, np.int64)
        tensor = np.array([one.tensor for one in self._regions], np.int64)
        path, written = np.array(self._numbers, np.int64), np.array(self._written, np.bool_)
        width = int((low + span).max()) + 1
        first, last = tensor * width + low, tensor * width + low + span
        order = np.argsort(first, kind="stable")
        reached = np.maximum.accumulate(last[order])
        starts = np.flatnonzero(np.concatenate(([True], first[order][1:] > reached[:-1])))
        for begin, end in _wanted(starts, path[order], written[order]):
            yield [self._access(int(at)) for at in np.sort(order[begin:end])]

    def _access(self, at: int) -> Access:
        owner = self._owners[at]
        return Access(self._program[owner], self._regions[at], self._paths[owner], self._written[at])


def _wanted(
    starts: NDArray[np.int64], path: NDArray[np.int64], written: NDArray[np.bool_]
) -> Iterator[tuple[int, int]]:
    """The groups, each from its start to the next one's, that have a write and several paths."""
    several = np.minimum.reduceat(path, starts) != np.maximum.reduceat(path, starts)
    wanted = several & np.logical_or.reduceat(written, starts)
    ends = np.append(starts[1:], len(path))
    for at in np.flatnonzero(wanted):
        yield int(starts[at]), int(ends[at])


def _clashes(accesses: Sequence[Access], loops: Mapping[int, Loop]) -> Iterator[tuple[Access, Access, int]]:
    """Accesses of one element in their order: (earlier, later, loop) where two of them clash."""
    cell = _Cell()
    for one in accesses:
        earlier = [] if cell.writer is None else [cell.writer]
        if one.written:
            earlier += cell.readers
        for other in earlier:
            loop = _parting_loop(other.path, one.path)
            if loop is not None and loops[loop].independent and one.region.tensor < loops[loop].first_tensor:
                yield other, one, loop
        if one.written:
            cell.writer, cell.readers = one, []
        elif not cell.readers or cell.readers[-1].path is not one.path or cell.readers[-1].region != one.region:
            cell.readers.append(one)


def _parting_loop(first: Path, second: Path) -> int | None:
    """The loop whose iterations tell two paths apart; None where it is the same iteration, or not the same loop."""
    if first is second:
        return None
    for one, other in zip(first, second, strict=False):
        if one != other:
            return one[0] if one[0] == other[0] else None
    return None


def _check_by_cells(accesses: Sequence[Access], loops: Mapping[int, Loop], tensors: Sequence[Tensor]) -> None:
    """Refuse accesses that clash in a cell of their footprints, and in an element."""
    keys = [key_of(one.region) for one in accesses]
    footprints = Footprints(keys, (key for key, one in zip(keys, accesses, strict=True) if one.written), tensors)
    by_cell: dict[int, list[Access]] = {}
    for key, one in zip(keys, accesses, strict=True):
        for cell in footprints[key]:
            by_cell.setdefault(cell, []).append(one)
    for group in by_cell.values():
        for earlier, later, loop in _clashes(group, loops):
            if _share_an_element(earlier.region, later.region):
                raise _refusal(later, loop, tensors)


def _share_an_element(first: Region, second: Region) -> bool:
    return first == second or bool(np.intersect1d(_elements(first), _elements(second)).size)


def _elements(region: Region) -> NDArray[np.int64]:
    found = np.array([region.offset], np.int64)
    for step, count in region.pattern:
        found = np.add.outer(found, step * np.arange(count)).reshape(-1)
    return found


def _refusal(access: Access, loop: int, tensors: Sequence[Tensor]) -> NkiError:
    name, iteration = tensors[access.region.tensor].name, dict(access.path)[loop]
    return NkiError(
        f"err_unexpected_output_dependencies: iterations of nl.affine_range depend on each other: {iteration} "
        f"{'writes' if access.written else 'reads'} elements of `{name}` that another one uses",
        where=access.instruction.where,
        hint="use nl.sequential_range, accumulate with +=, or index the tensor by the loop's index",
    )
