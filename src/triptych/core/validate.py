"""What must hold of a plan before anything runs it: a plan can come from another process, or from a hostile author."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from triptych.core.arrays import Handle, Storage
from triptych.core.errors import PlanError
from triptych.core.plan import CONSTANT_LIMIT, Allocate, Choose, Constant, Copy, Fill, Launch, Node, Plan

_ADDRESS_LIMIT = 1 << 64
_DEPTH_LIMIT = 8
"""How deep `Choose` nodes may nest: an autotuned kernel inside an autotuned one is 2."""


def check_plan(plan: Plan) -> None:
    """Checks that handles lie inside their storages, that storages are apart, and that programs and shapes agree.

    Raises:
        PlanError: naming the node, counted from 0, and what is wrong with it.
    """
    storages = list(dict.fromkeys(_storages(plan, 0)))
    _check_storages(storages)
    for label, handles in (("input", plan.inputs), ("output", plan.outputs)):
        for position, handle in enumerate(handles):
            _check_handle(handle, f"{label} {position}")
    _check_nodes(plan, frozenset(plan.programs), "")


def handles_of(node: Node) -> Iterator[Handle]:
    """The handles that a node names itself (not those of a `Choose` node's alternatives)."""
    match node:
        case Fill():
            yield node.target
        case Copy():
            yield node.target
            yield node.source
        case Launch():
            yield from (argument for argument in node.arguments if isinstance(argument, Handle))
        case Allocate() | Constant() | Choose():
            return


def storages_of(plan: Plan) -> tuple[Storage, ...]:
    """Every storage that the plan names, in the order in which they first appear, each once."""
    return tuple(dict.fromkeys(_storages(plan, 0)))


def _storages(plan: Plan, depth: int) -> Iterator[Storage]:
    if depth > _DEPTH_LIMIT:
        raise PlanError(f"plan: alternatives are nested more than {_DEPTH_LIMIT} deep")
    for handle in (*plan.inputs, *plan.outputs):
        yield handle.storage
    for node in plan.nodes:
        if isinstance(node, Allocate | Constant):
            yield node.storage
        if isinstance(node, Choose):
            for alternative in node.alternatives:
                yield from _storages(alternative, depth + 1)
        yield from (handle.storage for handle in handles_of(node))


def _check_storages(storages: Iterable[Storage]) -> None:
    names: set[str] = set()
    end, last = 0, ""
    for storage in sorted(storages, key=lambda storage: (storage.address, storage.end)):
        if storage.size < 0 or storage.address < 0 or storage.end > _ADDRESS_LIMIT:
            raise PlanError(
                f"plan: storage '{storage.name}' of {storage.size} bytes at {storage.address:#x}"
                " does not lie in the 64-bit address space"
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


def _check_nodes(plan: Plan, programs: frozenset[str], prefix: str) -> None:
    for position, node in enumerate(plan.nodes):
        name = f"node {prefix}{position} ({type(node).__name__.lower()})"
        for handle in handles_of(node):
            _check_handle(handle, name)
        match node:
            case Constant():
                _check_constant(node, name)
            case Fill():
                _check_writable(node.target, name)
            case Copy():
                _check_copy(node, name)
            case Launch():
                _check_launch(node, programs, name)
            case Choose():
                _check_choose(node, name)
                for number, alternative in enumerate(node.alternatives):
                    _check_nodes(alternative, programs | set(alternative.programs), f"{prefix}{position}.{number}.")
            case Allocate():
                pass


def _check_constant(node: Constant, name: str) -> None:
    if len(node.data) != node.storage.size:
        raise PlanError(f"plan: {name}: {len(node.data)} bytes for a storage of {node.storage.size}")
    if len(node.data) > CONSTANT_LIMIT:
        raise PlanError(
            f"plan: {name}: {len(node.data)} bytes of host data; at most {CONSTANT_LIMIT} may come from the host",
            hint="compute the values in a kernel",
        )


def _check_writable(target: Handle, name: str) -> None:
    if not target.storage.writable:
        raise PlanError(f"plan: {name}: storage '{target.storage.name}' is read-only")


def _check_copy(node: Copy, name: str) -> None:
    _check_writable(node.target, name)
    target, source = node.target, node.source
    if target.shape != source.shape or target.dtype != source.dtype:
        raise PlanError(
            f"plan: {name}: from {source.dtype} {source.shape} to {target.dtype} {target.shape};"
            " expected the same dtype and shape"
        )


def _check_launch(node: Launch, programs: frozenset[str], name: str) -> None:
    if node.program not in programs:
        known = ", ".join(sorted(programs)) or "none"
        raise PlanError(f"plan: {name}: no program '{node.program}'; the plan has: {known}")
    for label, extents in (("grid", node.grid), ("block", node.block), ("cluster", node.cluster)):
        if len(extents) != 3 or min(extents) < 1:
            raise PlanError(f"plan: {name}: {label} {extents}; expected three whole numbers of 1 or more")
    if node.shared_bytes < 0:
        raise PlanError(f"plan: {name}: {node.shared_bytes} bytes of shared memory")


def _check_choose(node: Choose, name: str) -> None:
    if not node.alternatives or len(node.labels) != len(node.alternatives):
        raise PlanError(f"plan: {name}: {len(node.labels)} labels for {len(node.alternatives)} alternatives")
