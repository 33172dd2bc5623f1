"""What a GPU refuses to launch. Limits that all of them share are CUDA's, the others come from the chip."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Protocol

from triptych.chips import GpuChip
from triptych.core.errors import LaunchError
from triptych.core.gpu_facts import WARP_SIZE
from triptych.core.gpu_targets import capability_of
from triptych.core.plan import LaunchShape
from triptych.execution.demangle import readable

# CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability": the same from 5.0 to 12.1.
MAX_GRID = (2**31 - 1, 65535, 65535)
"""Blocks along x, y and z."""
MAX_BLOCK = (1024, 1024, 64)
"""Threads along x, y and z."""

MAX_PORTABLE_CLUSTER = 8
"""Blocks of a cluster, on every chip that has clusters (the same guide, "Thread Block Clusters")."""
MAX_CLUSTER: Mapping[tuple[int, int], int] = {(9, 0): 16, (10, 0): 16}
"""By compute capability, for kernels that may have clusters that are not portable: nothing else has to be said here
(Hopper and Blackwell tuning guides, "Thread Block Clusters")."""
FIRST_CLUSTER_CAPABILITY = (9, 0)
NO_CLUSTER = (1, 1, 1)
"""What a launch that says no cluster has."""


class Entry(Protocol):
    """What is needed of a kernel's entry (`gpu.Entry`)."""

    @property
    def name(self) -> str:
        """The entry's name in the PTX."""
        ...

    @property
    def required_block(self) -> tuple[int, int, int] | None:
        """`.reqntid`: the only block that it may be launched with."""
        ...

    @property
    def max_threads(self) -> int | None:
        """`.maxntid`: the most threads of a block."""
        ...

    @property
    def static_shared_bytes(self) -> int:
        """Shared memory that the kernel declares itself."""
        ...

    @property
    def required_cluster(self) -> tuple[int, int, int] | None:
        """`.reqnctapercluster`: the only cluster that it may be launched with, and has where a launch says none."""
        ...

    @property
    def needs_cluster(self) -> bool:
        """`.explicitcluster`: whether it may only be launched with a cluster."""
        ...


STATIC_SHARED_LIMIT = 48 << 10
"""Bytes of static shared memory of a kernel, on every target (CUDA programming guide, technical specifications)."""


def check_launch(launch: LaunchShape, entry: Entry, chip: GpuChip, target: str | None = None) -> None:
    """Checks a launch against the kernel, what that was compiled for (None: anything), and the chip.

    Raises:
        LaunchError: naming the first limit that it breaks, the kernel and the chip.
    """
    for message, hint in _broken(launch, entry, chip, target):
        raise LaunchError(f"kernel '{readable(entry.name)}': {message}", hint=hint)


def _broken(launch: LaunchShape, entry: Entry, chip: GpuChip, target: str | None) -> Iterator[tuple[str, str | None]]:
    yield from _broken_block(launch, entry, chip)
    yield from _broken_extents(launch)
    yield from _broken_shared(launch, entry, chip)
    yield from _broken_cluster(launch, entry, chip, target)
    if launch.cooperative:
        yield from _broken_residency(launch, entry, chip)


def _broken_extents(launch: LaunchShape) -> Iterator[tuple[str, str | None]]:
    for name, extents, most in (("grid", launch.grid, MAX_GRID), ("block", launch.block, MAX_BLOCK)):
        for axis, extent, limit in zip("xyz", extents, most, strict=True):
            if not 1 <= extent <= limit:
                yield f"{name} {extents}: {axis} must lie between 1 and {limit}", None


def _broken_block(launch: LaunchShape, entry: Entry, chip: GpuChip) -> Iterator[tuple[str, str | None]]:
    threads = prod(launch.block)
    if threads > chip.max_threads_per_block:
        yield (
            f"block {launch.block} has {threads} threads; {chip.name} runs at most {chip.max_threads_per_block}",
            "launch more blocks of fewer threads",
        )
    if entry.required_block is not None and launch.block != entry.required_block:
        yield f"block {launch.block}, but the kernel was compiled for {entry.required_block} (.reqntid)", "launch it so"
    if entry.max_threads is not None and threads > entry.max_threads:
        yield (
            f"block {launch.block} has {threads} threads; the kernel was compiled for at most {entry.max_threads}"
            " (__launch_bounds__, .maxntid)",
            "launch fewer threads a block, or compile for more",
        )


def _broken_shared(launch: LaunchShape, entry: Entry, chip: GpuChip) -> Iterator[tuple[str, str | None]]:
    total = launch.shared_bytes + entry.static_shared_bytes
    if launch.shared_bytes < 0:
        yield f"{launch.shared_bytes} bytes of dynamic shared memory", None
    if entry.static_shared_bytes > STATIC_SHARED_LIMIT:
        yield (
            f"{entry.static_shared_bytes} bytes of static shared memory; ptxas refuses more than {STATIC_SHARED_LIMIT}",
            "declare it `extern __shared__` and give its size at the launch",
        )
    if total > chip.shared_bytes_per_block_max:
        yield (
            f"{total} bytes of shared memory ({entry.static_shared_bytes} static, {launch.shared_bytes} dynamic);"
            f" a block on {chip.name} has at most {chip.shared_bytes_per_block_max}",
            "use smaller tiles",
        )


def _broken_cluster(
    launch: LaunchShape, entry: Entry, chip: GpuChip, target: str | None
) -> Iterator[tuple[str, str | None]]:
    required, cluster = entry.required_cluster, launch.cluster
    if required is not None:
        if cluster not in (required, NO_CLUSTER):
            yield (
                f"cluster {cluster}, but the kernel was compiled for {required} (__cluster_dims__, .reqnctapercluster)",
                "launch it so, or say no cluster",
            )
        cluster = required
    elif entry.needs_cluster and cluster == NO_CLUSTER:
        yield "the kernel must be launched with a cluster (.explicitcluster)", "configure(cluster=…) gives it one"
    blocks = prod(cluster)
    if blocks == 1:
        return
    if chip.compute_capability < FIRST_CLUSTER_CAPABILITY:
        yield f"cluster {cluster}: {chip.name} has no clusters (from compute capability 9.0 on)", None
    capability = None if target is None else capability_of(target)
    if capability is not None and capability < _as_target(FIRST_CLUSTER_CAPABILITY):
        yield (
            f"cluster {cluster}: the kernel was compiled for {target}, which has no clusters",
            f"compile it for sm_{_as_target(FIRST_CLUSTER_CAPABILITY)} or later",
        )
    most = MAX_CLUSTER.get(chip.compute_capability, MAX_PORTABLE_CLUSTER)
    if blocks > most:
        yield f"cluster {cluster} has {blocks} blocks; {chip.name} has at most {most}", None
    if any(extent % part for extent, part in zip(launch.grid, cluster, strict=True)):
        yield f"grid {launch.grid} is no multiple of the cluster {cluster}", None


def _as_target(capability: tuple[int, int]) -> int:
    return 10 * capability[0] + capability[1]


def resident_blocks_per_sm(launch: LaunchShape, entry: Entry, chip: GpuChip) -> int:
    """The blocks that one SM holds at once, as far as threads and shared memory say; PTX does not know registers."""
    warps = -(-prod(launch.block) // WARP_SIZE)
    shared = launch.shared_bytes + entry.static_shared_bytes + chip.shared_bytes_reserved_per_block
    by_shared = chip.shared_bytes_per_sm // shared if shared else chip.max_blocks_per_sm
    return min(chip.max_blocks_per_sm, chip.max_warps_per_sm // warps, by_shared)


def _broken_residency(launch: LaunchShape, entry: Entry, chip: GpuChip) -> Iterator[tuple[str, str | None]]:
    most = resident_blocks_per_sm(launch, entry, chip) * chip.sm_count
    if prod(launch.grid) > most:
        yield (
            f"cooperative grid {launch.grid} has {prod(launch.grid)} blocks; {chip.name} holds at most {most} of them"
            " at once, and a grid-wide barrier needs them all",
            "launch fewer blocks and loop over the work",
        )
