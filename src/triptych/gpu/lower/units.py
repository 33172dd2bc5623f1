"""What a kernel is linked with: the scheduler, and a helper for each kind of access that it makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from llvmlite import ir

from triptych.gpu.isa.binding import BoundInstruction
from triptych.gpu.isa.table import Effect
from triptych.gpu.isa.types import packed_element
from triptych.gpu.lower.barriers import ARRIVE
from triptych.gpu.lower.directed import DIRECTIONS, build_directed, directed_name
from triptych.gpu.lower.engine import Unit
from triptych.gpu.lower.memory import (
    Access,
    Helper,
    atomic_access,
    build_copy,
    copy_name,
    fallback_name,
    helper_space,
    needed_by,
    needed_by_copy,
    ways_of,
)
from triptych.gpu.lower.scheduler import build_scheduler
from triptych.gpu.lower.shuffle import SHUFFLE, build_shuffle

RUN = "triptych.run"
_SCHEDULER = Unit("scheduler", (RUN, "triptych.fault", "triptych.resolve", "triptych.refuel", ARRIVE), build_scheduler)
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
    space = helper_space(form.space)
    if form.row.shuffles:
        yield _SHUFFLE
    if form.row.rounds and form.get("rnd") in DIRECTIONS:
        t = packed_element(form.type)
        symbol = directed_name(form.row.rounds, t)
        yield Unit(symbol, (symbol,), partial(build_directed, form.row.rounds, t))
    match instruction.effect:
        case Effect.LOAD_MATRIX:
            yield from _access_units(Access("load", space, 4, 4))
        case Effect.LOAD | Effect.STORE:
            kind = "load" if instruction.effect is Effect.LOAD else "store"
            yield from _access_units(Access(kind, space, form.type.bytes, form.elements))
        case Effect.ATOMIC:
            t = packed_element(form.type)
            count = form.lane_bytes // t.bytes
            yield from _access_units(atomic_access(form.get("operation") or "cas", space, t, count))
        case Effect.COPY:
            yield from _copy_units(form.lane_bytes)
        case _:
            return


def _access_units(access: Access) -> Iterator[Unit]:
    for other in needed_by(access):
        yield from _access_units(other)
    symbols = (access.name, *(fallback_name(access, way) for way in ways_of(access)))
    yield Unit(access.name, symbols, partial(_build_helper, access))


def _build_helper(access: Access) -> ir.Module:
    return Helper(access).module


def _copy_units(size: int) -> Iterator[Unit]:
    for access in needed_by_copy(size):
        yield from _access_units(access)
    yield Unit(copy_name(size), (copy_name(size),), partial(build_copy, size))
