"""What a kernel is linked with: the scheduler, and a helper for each kind of access that it makes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from llvmlite import ir

from triptych.gpu.isa.asynchronous.bulk import bulk_copy_of
from triptych.gpu.isa.asynchronous.mbarrier_object import OPERATIONS, changes_mbarrier
from triptych.gpu.isa.binding import BoundInstruction, registers_of
from triptych.gpu.isa.effects import Effect
from triptych.gpu.isa.spaces import CLUSTER, GLOBAL, PARAM, SHARED, Space
from triptych.gpu.isa.table import Form
from triptych.gpu.isa.tensor.wgmma import group_product_of
from triptych.gpu.isa.types import packed_element
from triptych.gpu.lower.asynchronous.bulk_copies import build_bulk, bulk_name
from triptych.gpu.lower.asynchronous.mbarrier_changes import change_unit, completion_units
from triptych.gpu.lower.asynchronous.tensor_copies import build_tensor_copy, tensor_copy_name
from triptych.gpu.lower.memory import (
    BY_SIZE,
    BYTEWISE,
    MATRIX_ROW_BYTES,
    HelperAccess,
    admission_name,
    admit_name,
    admit_symbols,
    atomic_access,
    build_admission,
    build_copy,
    build_helper,
    build_load_matrix,
    build_store_matrix,
    copy_name,
    fallback_name,
    load_matrix_name,
    store_matrix_name,
    ways_of,
)
from triptych.gpu.lower.primitives.directed import DIRECTIONS, build_directed, directed_name
from triptych.gpu.lower.primitives.outlined import OUTLINED, build_outlined
from triptych.gpu.lower.primitives.shuffle import build_shuffle
from triptych.gpu.lower.primitives.warp_machine import EXCHANGE, SHUFFLE
from triptych.gpu.lower.scheduling.barriers import ARRIVE, SETTLE, build_barriers
from triptych.gpu.lower.scheduling.clusters import HOOKS, LOCATE, build_clusters, hook_symbol
from triptych.gpu.lower.scheduling.scheduler import RUN, build_scheduler
from triptych.gpu.lower.scheduling.services import FAULT, MISUSE, REFUEL, RESOLVE, SPEND, build_services
from triptych.gpu.lower.scheduling.turns import START_BLOCK
from triptych.gpu.lower.tensor.products import (
    build_multiply,
    build_registers,
    build_tile,
    has_place,
    multiply_name,
    registers_name,
    tile_name,
    turn_name,
)
from triptych.gpu.lower.tensor.wgmma import build_group, group_name
from triptych.gpu.lower.watching.layout import watched_name
from triptych.gpu.lower.watching.unit import BULK_WATCHING, WATCHING
from triptych.native.engine import Unit, load_units

_ALWAYS = (
    Unit("services", (FAULT, MISUSE, RESOLVE, REFUEL, SPEND), build_services, level=0),
    Unit("outlined", OUTLINED, build_outlined),
    Unit("barriers", (ARRIVE, SETTLE), build_barriers, level=0),
    Unit("scheduler", (RUN, START_BLOCK), build_scheduler, level=0),
)
_CLUSTERS = Unit("clusters", (LOCATE, *map(hook_symbol, HOOKS)), build_clusters)
_SHUFFLE = Unit("shuffle", (SHUFFLE, EXCHANGE), build_shuffle)


def units_for(instructions: Iterable[BoundInstruction], *, watched: bool = False) -> tuple[Unit, ...]:
    """The units that code for these instructions calls, each once, those that others call first.

    `watched`: those of the variant that asynccheck looks at.
    """
    found: dict[str, Unit] = {unit.key: unit for unit in (*_ALWAYS, *([WATCHING] if watched else []))}
    for instruction in instructions:
        for unit in _units_of(instruction, watched=watched):
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


def _units_of(instruction: BoundInstruction, *, watched: bool) -> Iterator[Unit]:
    form = instruction.form
    if instruction.effect in (Effect.CLUSTER_ARRIVAL, Effect.CLUSTER_WAIT):
        yield _CLUSTERS
    if form.row.shuffles:
        yield _SHUFFLE
    if form.row.rounds and form.get("rnd") in DIRECTIONS:
        t = packed_element(form.words[0])
        symbol = directed_name(form.row.rounds, t)
        yield Unit(symbol, (symbol,), partial(build_directed, form.row.rounds, t))
    if instruction.effect.completes or instruction.effect.copies_boxes:
        yield _CLUSTERS
        yield from [BULK_WATCHING] if watched else []
    if instruction.effect.completes:
        yield from completion_units(watched=watched)
    if instruction.effect.is_bulk:
        copy = bulk_copy_of(form)
        yield _variant(bulk_name(copy), partial(build_bulk, copy), watched=watched)
    elif instruction.effect.copies_boxes:
        build = partial(build_tensor_copy, form.operation)
        yield _variant(tensor_copy_name(form.operation), build, watched=watched)
    elif instruction.effect.follows_descriptors:
        group = group_product_of(form)
        yield _variant(group_name(group), partial(build_group, group), watched=watched)
    elif instruction.effect in _OWN_HELPERS:
        yield from _OWN_HELPERS[instruction.effect](form)
    elif not _is_fixed_parameter(instruction):
        for space, kind in form.accesses:
            yield from _access_units(_helper_access(form, space.helper, kind, watched=watched))


def _variant(symbol: str, build: Callable[..., ir.Module], *, watched: bool) -> Unit:
    """A helper that asynccheck has a variant of."""
    symbol = watched_name(symbol) if watched else symbol
    return Unit(symbol, (symbol,), partial(build, watched=watched))


def _is_fixed_parameter(instruction: BoundInstruction) -> bool:
    """Whether it loads from a place in the parameter block that its text names: code reads that without a helper."""
    if instruction.form.space is not PARAM:
        return False
    return not any(any(registers_of(source.operand)) for source in instruction.sources)


def _helper_access(form: Form, space: Space, kind: str, *, watched: bool) -> HelperAccess:
    """What the helper does that serves an access of an instruction."""
    if kind == "atomic":
        t = packed_element(form.words[0])
        access = atomic_access(form.operation, space, t, form.lane_bytes // t.bytes)
        return replace(access, watched=watched and changes_mbarrier(form.operation))
    size = form.unit_bytes
    return HelperAccess(kind, space, size, form.lane_bytes // size)


def _access_units(access: HelperAccess) -> Iterator[Unit]:
    if access.kind in OPERATIONS:
        yield change_unit(access.kind)
    yield from _admission_units(access.space, access.bytes)
    symbols = (access.name, *(fallback_name(access, way) for way in ways_of(access)))
    yield Unit(access.name, symbols, partial(build_helper, access))


def _admission_units(space: Space, size: int) -> Iterator[Unit]:
    for part in space.reaches:
        yield from _admission_units(part, 0)
    if space is CLUSTER:
        yield _CLUSTERS
    yield Unit(admit_name(space), admit_symbols(space), partial(build_admission, space))
    if (space, size) in BY_SIZE:
        name = admission_name(space, size)
        yield Unit(name, (name,), partial(build_admission, space, size))


def _copy_units(form: Form) -> Iterator[Unit]:
    size = form.lane_bytes
    yield from _access_units(BYTEWISE)
    for space in (GLOBAL, SHARED):
        yield from _admission_units(space, size)
    yield Unit(copy_name(size), (copy_name(size),), partial(build_copy, size))


def _multiply_units(form: Form) -> Iterator[Unit]:
    product = form.product
    assert product is not None
    for fragment, turned in ((product.a, False), (product.b, True), (product.c, False)):
        symbol = tile_name(fragment, turned=turned)
        turns = (turn_name(fragment, to_tiles=True),) if has_place(fragment) and not turned else ()
        yield Unit(symbol, (symbol, *turns), partial(build_tile, fragment, turned))
    symbol = registers_name(product.d)
    turns = (turn_name(product.d, to_tiles=False),) if has_place(product.d) else ()
    yield Unit(symbol, (symbol, *turns), partial(build_registers, product.d))
    symbol = multiply_name(product)
    yield Unit(symbol, (symbol,), partial(build_multiply, product))


def _load_matrix_units(form: Form) -> Iterator[Unit]:
    yield from _admission_units(SHARED, MATRIX_ROW_BYTES)
    symbol = load_matrix_name(form.elements, form.has("trans"))
    yield Unit(symbol, (symbol,), partial(build_load_matrix, form.elements, form.has("trans")))


def _store_matrix_units(form: Form) -> Iterator[Unit]:
    yield from _admission_units(SHARED, MATRIX_ROW_BYTES)
    symbol = store_matrix_name(form.elements, form.has("trans"))
    yield Unit(symbol, (symbol,), partial(build_store_matrix, form.elements, form.has("trans")))


_OWN_HELPERS: Mapping[Effect, Callable[[Form], Iterator[Unit]]] = {
    Effect.COPY: _copy_units,
    Effect.MULTIPLY: _multiply_units,
    Effect.LOAD_MATRIX: _load_matrix_units,
    Effect.STORE_MATRIX: _store_matrix_units,
}
"""Effects whose instructions call helpers of their own."""
