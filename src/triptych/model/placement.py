"""A launch's counters -> its place on a chip's roofline, and the first estimate of its time there."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from triptych.chips import Chip, GpuChip, NeuronChip
from triptych.core.counters import Counters
from triptych.core.errors import UsageError
from triptych.core.launches import Account, LaunchRecord, Sample
from triptych.model.multiprocessors import multiprocessor_roofs
from triptych.model.pipes import Work, dominant, work_by_pipe
from triptych.model.roofline import Roof, Roofline, Traffic
from triptych.model.timing import Timing
from triptych.model.traffic import LEVELS

SIMULATED = (
    "Estimates of kernels on NeuronCores are the lengths of simulated timelines, from published costs: not measured."
)
"""The note of a launch with a timing."""


def place(record: LaunchRecord, chip: Chip, timing: Timing | None = None) -> Roofline:
    """The launch on the chip's roofline.

    The headline intensity is FLOPs over the compulsory bytes of DRAM: every 64-byte pair of sectors that the launch
    touches, read once and written once. The floor is the longest of the roofs that every program for this work has:
    each pipe's FLOPs at its dense peak, and the compulsory bytes at DRAM's peak bandwidth.

    The estimate is the launch overhead plus the longest of all roofs, which adds what this program asks of L2, of
    L1 with shared memory and of the warp schedulers (or of the NeuronCore's engines and DMA queues). It takes every
    peak for achievable, hit rates of L1 for 0 and a PTX instruction for one of the chip's. Only SMs that have a block
    do anything, and few warps issue little (`multiprocessors.py`); of other latencies and of waves it knows nothing, so
    most real launches are slower: docs/times.md compares. The overhead is added, not taken as one more roof, because
    the work starts when the launch has happened. Of a launch with a `timing`, its machine's timeline, the estimate is
    that one's length: it has the latencies in it, and says how long each engine was at work.

    Raises:
        UsageError: where the launch ran on a machine of another kind than the chip.
    """
    _require_machine(record, chip)
    sample = record.sample
    if sample is not None:
        record = _of_whole_grid(record, sample)
    cores = 1 if timing is None else max(timing.cores, 1)
    chip = _of_cores(chip, cores)
    work, pipe_notes = work_by_pipe(record.counters, chip)
    flops = sum(row.flops for row in work)
    traffic = _traffic(record, chip, flops)
    roofs = (*_pipe_roofs(work), *_memory_roofs(traffic), *_engine_roofs(record, chip, timing, work))
    pipe, peak = dominant(work, chip)
    headline = traffic[0]
    ridge_point = peak / headline.bytes_per_s
    overhead = _overhead(record, chip) if timing is None else 0.0
    longest = (*(roof.seconds for roof in roofs), 0.0 if timing is None else timing.seconds)
    floor = max((roof.seconds for roof in roofs if roof.required), default=0.0)
    return Roofline(
        chip=chip.name,
        flops=flops,
        bytes=headline.bytes,
        memory_level=headline.level.label,
        intensity=headline.intensity,
        ridge_point=ridge_point,
        bound="compute" if headline.intensity >= ridge_point else "memory",
        floor_s=floor,
        estimate_s=overhead + max(longest),
        launch_overhead_s=overhead,
        pipe=pipe,
        peak_flops_per_s=peak,
        roofs=roofs,
        traffic=traffic,
        notes=(
            *chip.notes,
            *(() if sample is None else (_sample_note(sample),)),
            *_target_notes(record, chip),
            *pipe_notes,
            *_occupancy_notes(record, chip, cores, floor),
            *(() if timing is None else (SIMULATED,)),
        ),
        timing=timing,
    )


def _require_machine(record: LaunchRecord, chip: Chip) -> None:
    if record.machine != chip.machine:
        raise UsageError(
            f"kernel '{record.kernel}' ran on the {record.machine} machine; it cannot be placed on {chip.name}",
            hint=f"choose a {record.machine} chip: `triptych chips` lists them",
        )


def _of_cores(chip: Chip, cores: int) -> Chip:
    """What several NeuronCores of a chip have together."""
    if isinstance(chip, GpuChip) or cores == 1:
        return chip
    return replace(
        chip,
        core_hbm_bytes_per_s=cores * chip.core_hbm_bytes_per_s,
        dma_engines_per_core=cores * chip.dma_engines_per_core,
        flops_per_s={name: cores * peak for name, peak in chip.flops_per_s.items()},
    )


def _of_whole_grid(record: LaunchRecord, sample: Sample) -> LaunchRecord:
    """The launch as if all blocks had run, and each done what those of the sample do on average."""
    compulsory = {
        "global.load.compulsory_bytes": sample.load_bytes,
        "global.store.compulsory_bytes": sample.store_bytes,
    }
    scaled = {
        name: replace(counter, value=compulsory.get(name, round(counter.value * sample.of / sample.blocks)))
        for name, counter in record.counters.items()
    }
    return replace(record, account=Account.of(Counters(scaled)), sample=None)


def _sample_note(sample: Sample) -> str:
    blocks = f"{sample.blocks} of {sample.of} blocks"
    return f"Timed by a sample: {blocks} ran, and what was counted is theirs; figures of the model are for all."


def _traffic(record: LaunchRecord, chip: Chip, flops: int) -> tuple[Traffic, ...]:
    rows: list[Traffic] = []
    for level in LEVELS[chip.machine]:
        moved = level.bytes(record.counters)
        without = math.inf if flops else 0.0
        rows.append(Traffic(level, moved, flops / moved if moved else without, level.bytes_per_s(chip)))
    return tuple(rows)


def _pipe_roofs(work: tuple[Work, ...]) -> tuple[Roof, ...]:
    names = ((f"{row.pipe} pipe", row) for row in work)
    return tuple(Roof(name, name, row.flops, "FLOPs", row.peak, required=True) for name, row in names)


def _memory_roofs(traffic: tuple[Traffic, ...]) -> tuple[Roof, ...]:
    rows = ((row.level, row) for row in traffic if row.bytes)
    return tuple(
        Roof(level.label, level.short, row.bytes, "bytes", row.bytes_per_s, required=level.compulsory)
        for level, row in rows
    )


def _engine_roofs(record: LaunchRecord, chip: Chip, timing: Timing | None, work: tuple[Work, ...]) -> tuple[Roof, ...]:
    """What this program asks of the units that are no pipe of FLOPs, at their peak rates."""
    if timing is not None:
        roofs = _busy_engines(record, timing)
    elif isinstance(chip, GpuChip):
        roofs = multiprocessor_roofs(record, chip, work)
    else:
        roofs = _core_engines(record, chip)
    return tuple(roof for roof in roofs if roof.amount)


def _busy_engines(record: LaunchRecord, timing: Timing) -> Iterator[Roof]:
    """Each engine for as long as it is at work, whatever the rates of its instructions are."""
    for name, seconds in timing.busy.items():
        instructions = record.counters.value(f"instructions.{name}")
        if seconds > 0:
            yield Roof(f"{name} engine", f"{name} engine", instructions, "instructions", instructions / seconds)


def _core_engines(record: LaunchRecord, chip: NeuronChip) -> Iterator[Roof]:
    """Elements through a NeuronCore's engines, one a lane and cycle."""
    rates = {
        "vector": chip.vector_lanes * chip.vector_clock_hz,
        "scalar": chip.scalar_lanes * chip.scalar_clock_hz,
        "gpsimd": chip.gpsimd_lanes * chip.gpsimd_clock_hz,
    }
    for name, rate in rates.items():
        title = f"{name} engine"
        yield Roof(title, title, record.counters.value(f"elements.{name}"), "elements", rate)


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


def _occupancy_notes(record: LaunchRecord, chip: Chip, cores: int, floor: float) -> tuple[str, ...]:
    if isinstance(chip, NeuronChip):
        if cores > chip.core_count:
            return (f"{cores} NeuronCores, more than the {chip.core_count} of one chip.",)
        spread = 1e6 * floor * cores / chip.core_count
        whole = f"the floor of its work, spread evenly over the whole chip, is {spread:.4g} µs"
        if cores == 1:
            return (f"One NeuronCore of {chip.core_count}, with its share of HBM bandwidth; {whole}.",)
        return (f"{cores} NeuronCores of {chip.core_count}, each with its share of HBM bandwidth; {whole}.",)
    x, y, z = record.shape.grid
    blocks = x * y * z
    if blocks >= chip.sm_count:
        return ()
    idle = chip.sm_count - blocks
    return (
        f"The grid of {blocks} block{'s' * (blocks > 1)} leaves {idle} of {chip.sm_count} SMs idle;"
        " the estimate takes the pipes of the others, and the whole chip's memory.",
    )
