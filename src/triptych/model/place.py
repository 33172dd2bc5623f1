"""A launch's counters -> its place on a chip's roofline, and the first estimate of its time there."""

from __future__ import annotations

from triptych.chips import Chip, GpuChip, NeuronChip
from triptych.core.errors import UsageError
from triptych.core.launches import LaunchRecord
from triptych.model.pipes import Work, dominant, work_by_pipe
from triptych.model.roofline import Roof, Roofline, Traffic
from triptych.model.traffic import LEVELS, bandwidths


def place(record: LaunchRecord, chip: Chip) -> Roofline:
    """The launch on the chip's roofline.

    The headline intensity is FLOPs over the compulsory bytes of DRAM: every 64-byte pair of sectors that the launch
    touches, read once and written once. The floor is the longest of the roofs that every program for this work has:
    each pipe's FLOPs at its dense peak, and the compulsory bytes at DRAM's peak bandwidth.

    The estimate is the launch overhead plus the longest of all roofs, which adds what this program asks of L2 (or of
    the NeuronCore's engines and DMA queues). It takes every peak for achievable, and hit rates of L1 for 0; it knows
    nothing of occupancy, latency, instruction issue or waves, so a real launch is slower. The overhead is added, not
    taken as one more roof, because the work starts when the launch has happened.

    Raises:
        UsageError: where the launch ran on a machine of another kind than the chip.
    """
    if record.machine != chip.machine:
        raise UsageError(
            f"kernel '{record.kernel}' ran on the {record.machine} machine; it cannot be placed on {chip.name}",
            hint=f"choose a {record.machine} chip: `triptych chips` lists them",
        )
    work, pipe_notes = work_by_pipe(record.counters, chip)
    flops = sum(row.flops for row in work)
    traffic = _traffic(record, chip, flops)
    roofs = (*_pipe_roofs(work), *_memory_roofs(traffic, chip), *_engine_roofs(record, chip))
    pipe, peak = dominant(work, chip)
    headline = traffic[0]
    ridge_point = peak / headline.bytes_per_s
    overhead = _overhead(record, chip)
    # Without bytes, a launch with FLOPs has no slope to lie on: it is bound by computing.
    compute_bound = flops > 0 and (headline.bytes == 0 or headline.intensity >= ridge_point)
    return Roofline(
        chip=chip.name,
        flops=flops,
        bytes=headline.bytes,
        memory_level=headline.level,
        intensity=headline.intensity,
        ridge_point=ridge_point,
        bound="compute" if compute_bound else "memory",
        floor_s=max((roof.seconds for roof in roofs if roof.required), default=0.0),
        estimate_s=overhead + max((roof.seconds for roof in roofs), default=0.0),
        launch_overhead_s=overhead,
        pipe=pipe,
        peak_flops_per_s=peak,
        roofs=roofs,
        traffic=traffic,
        notes=(*chip.notes, *_target_notes(record, chip), *pipe_notes, *_occupancy_notes(record, chip)),
    )


def _traffic(record: LaunchRecord, chip: Chip, flops: int) -> tuple[Traffic, ...]:
    rows: list[Traffic] = []
    for level, bytes_per_s in zip(LEVELS[chip.machine], bandwidths(chip), strict=True):
        moved = level.bytes(record.counters)
        rows.append(Traffic(level.name, moved, flops / moved if moved else 0.0, bytes_per_s))
    return tuple(rows)


def _pipe_roofs(work: tuple[Work, ...]) -> tuple[Roof, ...]:
    return tuple(Roof(f"{row.pipe} pipe", row.flops, "FLOPs", row.peak, required=True) for row in work)


def _memory_roofs(traffic: tuple[Traffic, ...], chip: Chip) -> tuple[Roof, ...]:
    rows = zip(LEVELS[chip.machine], traffic, strict=True)
    return tuple(
        Roof(row.level, row.bytes, "bytes", row.bytes_per_s, required=level.compulsory)
        for level, row in rows
        if row.bytes
    )


def _engine_roofs(record: LaunchRecord, chip: Chip) -> tuple[Roof, ...]:
    """Elements through a NeuronCore's engines, one a lane and cycle. A GPU's pipes are in the FLOPs already."""
    if isinstance(chip, GpuChip):
        return ()
    engines = (
        ("vector", chip.vector_lanes * chip.vector_clock_hz),
        ("scalar", chip.scalar_lanes * chip.scalar_clock_hz),
        ("gpsimd", chip.gpsimd_lanes * chip.gpsimd_clock_hz),
    )
    counted = ((name, record.counters.value(f"elements.{name}"), rate) for name, rate in engines)
    return tuple(
        Roof(f"{name} engine", count, "elements", rate, required=False) for name, count, rate in counted if count
    )


def _overhead(record: LaunchRecord, chip: Chip) -> float:
    """Seconds before and after the work: a GPU's launch; on Neuron one load's and one store's latency, where they are.

    AWS documents no launch overhead of a NEFF's kernel; the DMA latencies are the part of it that is known.
    """
    match chip:
        case GpuChip():
            return chip.launch_overhead_s
        case NeuronChip():
            ends = ("dma.load.bytes", "dma.store.bytes")
            return chip.dma_latency_s * sum(1 for name in ends if record.counters.value(name))


def _target_notes(record: LaunchRecord, chip: Chip) -> tuple[str, ...]:
    if record.target == chip.target:
        return ()
    return (f"Compiled for {record.target}; placed on {chip.name}, whose own target is {chip.target}.",)


def _occupancy_notes(record: LaunchRecord, chip: Chip) -> tuple[str, ...]:
    if isinstance(chip, NeuronChip):
        return (f"One NeuronCore of {chip.core_count}, with its share of HBM bandwidth.",)
    x, y, z = record.grid
    blocks = x * y * z
    if blocks >= chip.sm_count:
        return ()
    idle = chip.sm_count - blocks
    return (
        f"The grid of {blocks} blocks leaves {idle} of {chip.sm_count} SMs idle; the estimate takes the whole chip.",
    )
