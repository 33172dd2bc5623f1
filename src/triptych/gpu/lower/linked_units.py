"""What a kernel is linked with: the scheduler, and a helper for each kind of access that it makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from triptych.gpu.isa.binding import BoundInstruction, registers_of
from triptych.gpu.isa.effects import Effect
from triptych.gpu.isa.spaces import PARAM, Space
from triptych.gpu.isa.table import Form
from triptych.gpu.isa.types import packed_element
from triptych.gpu.lower.barriers import ARRIVE
from triptych.gpu.lower.clusters import LOCATE
from triptych.gpu.lower.directed import DIRECTIONS, build_directed, directed_name
from triptych.gpu.lower.engine import Unit
from triptych.gpu.lower.memory import (
    LOAD_ROWS,
    HelperAccess,
    atomic_access,
    build_copy,
    build_helper,
    build_load_matrix,
    copy_name,
    fallback_name,
    load_matrix_name,
    needed_by,
    needed_by_copy,
    ways_of,
)
from triptych.gpu.lower.scheduler import RUN, build_scheduler
from triptych.gpu.lower.services import FAULT, MISUSE, REFUEL, RESOLVE
from triptych.gpu.lower.shuffle import SHUFFLE, build_shuffle

_SCHEDULER = Unit("scheduler", (RUN, FAULT, MISUSE, RESOLVE, REFUEL, ARRIVE, LOCATE), build_scheduler)
_SHUFFLE = Unit("shuffle", (SHUFFLE,), build_shuffle)


def units_for(instructions: Iterable[BoundInstruction]) -> tuple[Unit, ...]:
    """The units that code for these instructions calls, each once, those that others call first."""
    found: dict[str, Unit] = {_SCHEDULER.key: _SCHEDULER}
    for instruction in instructions:
        for unit in _units_of(instruction):
            found.setdefault(unit.key, unit)
    return tuple(found.values())


def _units_of(instruction: BoundInstruction) -> Iterator[Unit]:
    form = instruction.form
    if form.row.shuffles:
        yield _SHUFFLE
    if form.row.rounds and form.get("rnd") in DIRECTIONS:
        t = packed_element(form.type)
        symbol = directed_name(form.row.rounds, t)
        yield Unit(symbol, (symbol,), partial(build_directed, form.row.rounds, t))
    if not _is_fixed_parameter(instruction):
        for space, kind in form.accesses:
            yield from _access_units(_helper_access(form, space.helper, kind))
    if instruction.effect is Effect.COPY:
        yield from _copy_units(form.lane_bytes)
    if instruction.effect is Effect.LOAD_MATRIX:
        yield from _load_matrix_units(form.elements, form.has("trans"))


def _is_fixed_parameter(instruction: BoundInstruction) -> bool:
    """Whether it loads from a place in the parameter block that its text names: code reads that without a helper."""
    if instruction.form.space is not PARAM:
        return False
    return not any(any(registers_of(source.operand)) for source in instruction.sources)


def _helper_access(form: Form, space: Space, kind: str) -> HelperAccess:
    """What the helper does that serves an access of an instruction."""
    if kind == "atomic":
        t = packed_element(form.type)
        return atomic_access(form.operation, space, t, form.lane_bytes // t.bytes)
    size = form.row.effect.unit_bytes or form.type.bytes
    return HelperAccess(kind, space, size, form.lane_bytes // size)


def _access_units(access: HelperAccess) -> Iterator[Unit]:
    for other in needed_by(access):
        yield from _access_units(other)
    symbols = (access.name, *(fallback_name(access, way) for way in ways_of(access)))
    yield Unit(access.name, symbols, partial(build_helper, access))


def _copy_units(size: int) -> Iterator[Unit]:
    for access in needed_by_copy(size):
        yield from _access_units(access)
    yield Unit(copy_name(size), (copy_name(size),), partial(build_copy, size))


def _load_matrix_units(count: int, transposed: bool) -> Iterator[Unit]:
    yield from _access_units(LOAD_ROWS)
    symbol = load_matrix_name(count, transposed)
    yield Unit(symbol, (symbol,), partial(build_load_matrix, count, transposed))
