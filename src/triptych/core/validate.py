"""What must hold of a plan before anything runs it: a plan can come from another process, or from a hostile author."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from triptych.core.errors import PlanError
from triptych.core.handles import AddressSpace, Handle, Storage
from triptych.core.languages import LANGUAGES
from triptych.core.plan import Plan

_AXIS_LIMIT = 64
"""Axes of a handle; numpy's own limit."""
_BYTE_LIMIT = (1 << 63) - 1
"""Bytes of a handle's elements, those that share memory counted each, and of a stride; numpy's own limit."""
_DEPTH_LIMIT = 8
"""How deep `Choose` nodes may nest: an autotuned kernel inside an autotuned one is 2."""


def check_plan(plan: Plan) -> None:
    """Checks that handles lie inside their storages, that storages are apart, and that programs and shapes agree.

    Raises:
        PlanError: naming the node, counted from 0, and what is wrong with it.
    """
    if not isinstance(plan, Plan):  # pyright: ignore[reportUnnecessaryIsInstance]  # whatever a caller gave
        raise PlanError(
            f"expected a plan, got {type(plan).__name__}",
            hint="kernel[grid, block].plan(…) and tt.plans.unpack make one",
        )
    storages = list(dict.fromkeys(_storages(plan, 0)))
    _check_storages(storages)
    for label, handles in (("input", plan.inputs), ("output", plan.outputs)):
        for position, handle in enumerate(handles):
            _check_handle(handle, f"{label} {position}")
    _check_nodes(plan, frozenset(plan.programs), "")


def storages_of(plan: Plan) -> tuple[Storage, ...]:
    """Every storage that the plan names, in the order in which they first appear, each once."""
    return tuple(dict.fromkeys(_storages(plan, 0)))


def _storages(plan: Plan, depth: int) -> Iterator[Storage]:
    if depth > _DEPTH_LIMIT:
        raise PlanError(f"plan: alternatives are nested more than {_DEPTH_LIMIT} deep")
    for handle in (*plan.inputs, *plan.outputs):
        yield handle.storage
    for node in plan.nodes:
        yield from node.makes
        for inside in node.plans:
            yield from _storages(inside, depth + 1)
        yield from (handle.storage for handle in node.handles)


def _check_storages(storages: Iterable[Storage]) -> None:
    names: set[str] = set()
    end, last = 0, ""
    for storage in sorted(storages, key=lambda storage: (storage.address, storage.end)):
        first, after = AddressSpace.FIRST_ADDRESS, AddressSpace.END_ADDRESS
        if storage.size < 0 or storage.address < first or storage.end > after:
            raise PlanError(
                f"plan: storage '{storage.name}' of {storage.size} bytes at {storage.address:#x}"
                f" does not lie where arrays may lie, from {first:#x} to {after - 1:#x}"
            )
        if storage.name in names:
            raise PlanError(f"plan: two storages are called '{storage.name}'")
        if storage.address < end:
            raise PlanError(f"plan: storage '{storage.name}' at {storage.address:#x} overlaps '{last}'")
        names.add(storage.name)
        end, last = max(end, storage.end), storage.name


def _check_handle(handle: Handle, owner: str) -> None:
    if len(handle.shape) != len(handle.strides) or any(extent < 0 for extent in handle.shape):
        raise PlanError(f"plan: {owner}: shape {handle.shape} and strides {handle.strides} do not make an array")
    if len(handle.shape) > _AXIS_LIMIT:
        raise PlanError(f"plan: {owner}: {len(handle.shape)} axes; at most {_AXIS_LIMIT} make an array")
    bytes_counted = prod(max(extent, 1) for extent in handle.shape) * handle.dtype.bytes
    if max(bytes_counted, *map(abs, handle.strides), 0) > _BYTE_LIMIT:
        raise PlanError(f"plan: {owner}: shape and strides reach beyond {_BYTE_LIMIT} bytes")
    if handle.size == 0:
        low, high = handle.offset, handle.offset
    else:
        reach = [(extent - 1) * stride for extent, stride in zip(handle.shape, handle.strides, strict=True)]
        low = handle.offset + sum(step for step in reach if step < 0)
        high = handle.offset + sum(step for step in reach if step > 0) + handle.dtype.bytes
    if low < 0 or high > handle.storage.size:
        raise PlanError(
            f"plan: {owner}: bytes {low} to {high} do not lie in storage '{handle.storage.name}',"
            f" which has {handle.storage.size}"
        )


def _check_programs(plan: Plan) -> None:
    for name, program in plan.programs.items():
        if program.language not in LANGUAGES:
            raise PlanError(
                f"plan: program '{name}': unknown language '{program.language}'; there are: {', '.join(LANGUAGES)}"
            )
        if program.machine != LANGUAGES[program.language].machine:
            raise PlanError(f"plan: program '{name}': {program.language} does not run on a machine '{program.machine}'")


def _check_nodes(plan: Plan, programs: frozenset[str], prefix: str) -> None:
    _check_programs(plan)
    for position, node in enumerate(plan.nodes):
        name = f"node {prefix}{position} ({type(node).__name__.lower()})"
        for handle in node.handles:
            _check_handle(handle, name)
        for mistake in node.mistakes(programs):
            raise PlanError(f"plan: {name}: {mistake}")
        for number, inside in enumerate(node.plans):
            _check_nodes(inside, programs | frozenset(inside.programs), f"{prefix}{position}.{number}.")
