"""Whether what a program holds fits SBUF and PSUM, and tiles that the author placed lie apart.

A kernel whose live tiles exceed a memory cannot be compiled; one whose live tiles fit may still need a good allocator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from triptych.core.checks import COMPILER
from triptych.core.errors import NkiLimitError
from triptych.core.launches import Finding
from triptych.neuron.isa.hardware import Hardware, Space
from triptych.neuron.isa.occupancy import block_bytes, lifetimes, peak_of, roots, tiles_of
from triptych.neuron.isa.spilling import spilled
from triptych.neuron.isa.trace import BETA1, Instruction, Tensor


def _shared_bytes(program: Sequence[Instruction], tensors: Sequence[Tensor]) -> Iterator[NkiLimitError]:
    """Tiles that the author placed over each other while both are in use."""
    if all(one.address is None for one in tensors):
        return
    lives = lifetimes(roots(tensors, program))
    placed = sorted((one for one in lives.first if tensors[one].address is not None), key=lives.first.__getitem__)
    for at, later in enumerate(placed):
        for earlier in placed[:at]:
            if lives.last[earlier] > lives.first[later] and _overlap(tensors[earlier], tensors[later]):
                yield NkiLimitError(
                    f"tensor `{tensors[later].name}` is placed over `{tensors[earlier].name}`, which is still in use: "
                    f"both have byte {max(tensors[one].address or 0 for one in (earlier, later))} of a partition of "
                    f"{tensors[later].space.value.upper()}",
                    where=program[lives.first[later]].where,
                    hint="choose addresses that are apart, or use the second when the first is no longer needed",
                )


def _overlap(first: Tensor, second: Tensor) -> bool:
    """Whether two placed tiles have a byte in common."""
    if first.space is not second.space:
        return False
    spans = [
        ((one.start, one.start + one.partitions), (one.address or 0, (one.address or 0) + one.bytes_per_partition))
        for one in (first, second)
    ]
    return all(max(a[0], b[0]) < min(a[1], b[1]) for a, b in zip(*spans, strict=True))


def verify_capacity(
    program: Sequence[Instruction],
    tensors: Sequence[Tensor],
    hardware: Hardware,
    generation: str,
    notices: list[Finding] | None,
) -> None:
    """Refuse a program whose live tiles exceed SBUF or PSUM, or of which two share the bytes that they were placed at.

    Beta 1's compiler spills what does not fit SBUF: there a program is refused where that does not help.

    Raises:
        NkiLimitError: naming the line, the bytes and the largest tiles.
    """
    for error in _shared_bytes(program, tensors):
        if notices is None:
            raise error
        notices.append(Finding.of(COMPILER, error.message, error.where))
    limits = {Space.SBUF: hardware.sbuf_bytes_per_partition, Space.PSUM: hardware.psum_bytes_per_partition}
    tiles = tiles_of(program, tensors)
    for space, limit in limits.items():
        fullest = peak_of(tiles[space], tensors)
        spills = space is Space.SBUF and generation == BETA1
        if fullest.bytes > limit and not (spills and spilled(program, tensors, limit)):
            small = space is Space.SBUF and any(tensors[one].partitions <= 64 for one, _ in fullest.live)
            beside = " even with those of at most 64 partitions beside each other" if small else ""
            held = sorted(dict.fromkeys(one for one, _ in fullest.live), key=lambda one: -block_bytes(tensors[one]))
            named = ", ".join(f"`{tensors[one].name}` ({block_bytes(tensors[one])} B)" for one in held[:3])
            error = NkiLimitError(
                f"{len(fullest.live)} live tiles take {fullest.bytes} bytes of each {space.value.upper()} partition"
                f"{beside}; the limit is {limit} on {hardware.target}; the largest are {named}",
                where=program[fullest.instruction].where,
                hint="use smaller tiles, or let fewer of them live at the same time",
            )
            if notices is None:
                raise error
            notices.append(Finding.of(COMPILER, error.message, error.where))
