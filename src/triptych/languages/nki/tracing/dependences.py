"""Whether the iterations of an `nl.affine_range` need each other: the accesses of a whole program, compared once.

An access has a path: the loops that it is in, outermost first, with their iterations. Two accesses clash where they
touch the same element, one of them writes it, and the first loop in which their paths differ is one whose iterations
are independent. Most tiles are told apart by the elements that they span (sorted, all at once), what is left by the
cells of their footprints, and what still seems to clash element by element.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

from triptych.core.errors import NkiError
from triptych.neuron.isa import ROWS, Instruction, Region, Tensor
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
def _roles(operation: str) -> tuple[tuple[str, bool, bool], ...]:
    """The operands of an instruction: name, whether it is read, and written; products that add up are not."""
    row = ROWS[operation]
    return tuple((one.name, one.read, one.written and not row.accumulates) for one in row.operands)


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
    checked = {path: any(loops[loop].independent for loop, _ in path) for path in set(paths)}
    accesses = [
        access
        for at, (instruction, path) in enumerate(zip(program, paths, strict=True))
        if checked[path] and at not in exempt
        for access in _accesses(instruction, path)
    ]
    if not any(one.written for one in accesses):
        return
    for group in _that_meet(accesses, tensors):
        if next(_clashes(group, loops), None) is not None:
            _check_by_cells(group, loops, tensors)


def _accesses(instruction: Instruction, path: Path) -> Iterator[Access]:
    """What it touches at places that are known, reads first."""
    operands = instruction.operands
    written: list[Access] = []
    for name, reads, writes in _roles(instruction.operation):
        operand = operands.get(name)
        if isinstance(operand, Region) and operand.dynamic is None:
            if writes:
                written.append(Access(instruction, operand, path, True))
            if reads:
                yield Access(instruction, operand, path, False)
    yield from written


def _that_meet(accesses: Sequence[Access], tensors: Sequence[Tensor]) -> Iterator[list[Access]]:
    """The accesses of a tensor that span elements in common, several paths and a write among them, in their order."""
    low = np.fromiter((_first(one.region, tensors) for one in accesses), np.int64, len(accesses))
    span = np.fromiter((_span(one.region, tensors) for one in accesses), np.int64, len(accesses))
    numbers = {id(path): at for at, path in enumerate({id(one.path): one.path for one in accesses}.values())}
    path = np.fromiter((numbers[id(one.path)] for one in accesses), np.int64, len(accesses))
    written = np.fromiter((one.written for one in accesses), np.bool_, len(accesses))
    tensor = np.fromiter((one.region.tensor for one in accesses), np.int64, len(accesses))
    width = int((low + span).max()) + 1
    first, last = tensor * width + low, tensor * width + low + span
    order = np.argsort(first, kind="stable")
    reached = np.maximum.accumulate(last[order])
    starts = np.flatnonzero(np.concatenate(([True], first[order][1:] > reached[:-1])))
    for begin, end in _wanted(starts, path[order], written[order]):
        yield [accesses[at] for at in np.sort(order[begin:end])]


def _wanted(
    starts: NDArray[np.int64], path: NDArray[np.int64], written: NDArray[np.bool_]
) -> Iterator[tuple[int, int]]:
    """The groups, each from its start to the next one's, that have a write and several paths."""
    several = np.minimum.reduceat(path, starts) != np.maximum.reduceat(path, starts)
    wanted = several & np.logical_or.reduceat(written, starts)
    ends = np.append(starts[1:], len(path))
    for at in np.flatnonzero(wanted):
        yield int(starts[at]), int(ends[at])


def _first(region: Region, tensors: Sequence[Tensor]) -> int:
    """The first element that it spans: of a tile within each partition."""
    tensor = tensors[region.tensor]
    low, pattern = region.offset, region.pattern
    if tensor.space.on_chip:
        low, pattern = low % tensor.free, pattern[1:]
    return low + sum(step * (count - 1) for step, count in pattern if step < 0)


def _span(region: Region, tensors: Sequence[Tensor]) -> int:
    """From the first element to the last one."""
    pattern = region.pattern[1:] if tensors[region.tensor].space.on_chip else region.pattern
    return sum(abs(step) * (count - 1) for step, count in pattern)


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
