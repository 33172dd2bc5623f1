"""What a kernel is linked with: the scheduler, and a helper for each kind of access that it makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from triptych.gpu.isa.asynchronous.bulk import bulk_copy_of
from triptych.gpu.isa.asynchronous.mbarrier_object import OPERATIONS
from triptych.gpu.isa.binding import BoundInstruction, registers_of
from triptych.gpu.isa.effects import Effect
from triptych.gpu.isa.spaces import CLUSTER, PARAM, Space
from triptych.gpu.isa.table import Form
from triptych.gpu.isa.tensor.wgmma import group_product_of
from triptych.gpu.isa.types import packed_element
from triptych.gpu.lower.asynchronous.bulk_copies import build_bulk, bulk_name
from triptych.gpu.lower.asynchronous.mbarrier_changes import COMPLETION_UNITS, change_unit
from triptych.gpu.lower.asynchronous.tensor_copies import build_tensor_copy, tensor_copy_name
from triptych.gpu.lower.engine import Unit, load_units
from triptych.gpu.lower.memory import (
    LOAD_ROWS,
    STORE_ROWS,
    HelperAccess,
    admit_name,
    atomic_access,
    build_admission,
    build_copy,
    build_helper,
    build_load_matrix,
    build_store_matrix,
    copy_name,
    fallback_name,
    load_matrix_name,
    needed_by_copy,
    store_matrix_name,
    ways_of,
)
from triptych.gpu.lower.primitives.directed import DIRECTIONS, build_directed, directed_name
from triptych.gpu.lower.primitives.shuffle import SHUFFLE, build_shuffle
from triptych.gpu.lower.scheduling.barriers import ARRIVE, SETTLE, build_barriers
from triptych.gpu.lower.scheduling.clusters import HOOKS, LOCATE, build_clusters, hook_symbol
from triptych.gpu.lower.scheduling.scheduler import RUN, build_scheduler
from triptych.gpu.lower.scheduling.services import FAULT, MISUSE, REFUEL, RESOLVE, build_services
from triptych.gpu.lower.scheduling.turns import START_BLOCK
from triptych.gpu.lower.tensor.products import build_multiply, multiply_name
from triptych.gpu.lower.tensor.wgmma import build_group, group_name

_ALWAYS = (
    Unit("services", (FAULT, MISUSE, RESOLVE, REFUEL), build_services, level=0),
    Unit("barriers", (ARRIVE, SETTLE), build_barriers),
    Unit("scheduler", (RUN, START_BLOCK), build_scheduler, level=0),
)
_CLUSTERS = Unit("clusters", (LOCATE, *map(hook_symbol, HOOKS)), build_clusters)
_SHUFFLE = Unit("shuffle", (SHUFFLE,), build_shuffle)


def units_for(instructions: Iterable[BoundInstruction]) -> tuple[Unit, ...]:
    """The units that code for these instructions calls, each once, those that others call first."""
    found: dict[str, Unit] = {unit.key: unit for unit in _ALWAYS}
    for instruction in instructions:
        for unit in _units_of(instruction):
            found.setdefault(unit.key, unit)
    return tuple(found.values())


def load_cluster_hooks(units: Sequence[Unit], cluster_size: int) -> dict[str, int]:
    """The addresses of what the scheduler asks for, by the names of the context's fields.

    Of a kernel linked with `units` in clusters of so many blocks; none where neither needs them.
    """
    if cluster_size == 1 and _CLUSTERS not in units:
        return {}
    addresses = load_units((*_ALWAYS, _CLUSTERS))
    return {hook: addresses[hook_symbol(hook)] for hook in HOOKS}


def _units_of(instruction: BoundInstruction) -> Iterator[Unit]:
    form = instruction.form
    if instruction.effect in (Effect.CLUSTER_ARRIVAL, Effect.CLUSTER_WAIT):
        yield _CLUSTERS
    if form.row.shuffles:
        yield _SHUFFLE
    if form.row.rounds and form.get("rnd") in DIRECTIONS:
        t = packed_element(form.words[0])
        symbol = directed_name(form.row.rounds, t)
        yield Unit(symbol, (symbol,), partial(build_directed, form.row.rounds, t))
    if instruction.effect.completes:
        yield _CLUSTERS
        yield from COMPLETION_UNITS
    if instruction.effect.is_bulk:
        copy = bulk_copy_of(form)
        yield Unit(bulk_name(copy), (bulk_name(copy),), partial(build_bulk, copy))
    elif instruction.effect.copies_boxes:
        symbol = tensor_copy_name(form.operation)
        yield _CLUSTERS
        yield Unit(symbol, (symbol,), partial(build_tensor_copy, form.operation))
    elif instruction.effect.follows_descriptors:
        group = group_product_of(form)
        yield Unit(group_name(group), (group_name(group),), partial(build_group, group))
    elif not _is_fixed_parameter(instruction):
        for space, kind in form.accesses:
            yield from _access_units(_helper_access(form, space.helper, kind))
    if instruction.effect is Effect.COPY:
        yield from _copy_units(form.lane_bytes)
    if form.product is not None and instruction.effect is Effect.MULTIPLY:
        symbol = multiply_name(form.product)
        yield Unit(symbol, (symbol,), partial(build_multiply, form.product))
    if instruction.effect is Effect.LOAD_MATRIX:
        yield from _load_matrix_units(form.elements, form.has("trans"))
    if instruction.effect is Effect.STORE_MATRIX:
        yield from _store_matrix_units(form.elements, form.has("trans"))


def _is_fixed_parameter(instruction: BoundInstruction) -> bool:
    """Whether it loads from a place in the parameter block that its text names: code reads that without a helper."""
    if instruction.form.space is not PARAM:
        return False
    return not any(any(registers_of(source.operand)) for source in instruction.sources)


def _helper_access(form: Form, space: Space, kind: str) -> HelperAccess:
    """What the helper does that serves an access of an instruction."""
    if kind == "atomic":
        t = packed_element(form.words[0])
        return atomic_access(form.operation, space, t, form.lane_bytes // t.bytes)
    size = form.unit_bytes
    return HelperAccess(kind, space, size, form.lane_bytes // size)


def _access_units(access: HelperAccess) -> Iterator[Unit]:
    if access.kind in OPERATIONS:
        yield change_unit(access.kind)
    yield from _admission_units(access.space)
    symbols = (access.name, *(fallback_name(access, way) for way in ways_of(access)))
    yield Unit(access.name, symbols, partial(build_helper, access))


def _admission_units(space: Space) -> Iterator[Unit]:
    for part in space.reaches:
        yield from _admission_units(part)
    if space is CLUSTER:
        yield _CLUSTERS
    yield Unit(admit_name(space), (admit_name(space),), partial(build_admission, space))


def _copy_units(size: int) -> Iterator[Unit]:
    for access in needed_by_copy(size):
        yield from _access_units(access)
    yield Unit(copy_name(size), (copy_name(size),), partial(build_copy, size))


def _load_matrix_units(count: int, transposed: bool) -> Iterator[Unit]:
    yield from _access_units(LOAD_ROWS)
    symbol = load_matrix_name(count, transposed)
    yield Unit(symbol, (symbol,), partial(build_load_matrix, count, transposed))


def _store_matrix_units(count: int, transposed: bool) -> Iterator[Unit]:
    yield from _access_units(STORE_ROWS)
    symbol = store_matrix_name(count, transposed)
    yield Unit(symbol, (symbol,), partial(build_store_matrix, count, transposed))
