"""Collectives of chunks whose sizes are known only when they run: a uint32 tensor says how many elements go where.

Its rows, a column a rank of the group: how many elements are sent, from which of src, how many came, and where in dst
they are put. Source: nki.collectives of NKI 0.6.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triptych.neuron.isa.hardware import Engine, Space
from triptych.neuron.isa.row import (
    Attributes,
    Cost,
    Effect,
    Flow,
    OperandRule,
    Subject,
    Values,
    output,
    row,
    tile,
    updated,
)
from triptych.neuron.isa.rows.collectives import group_of, place_in_group
from triptych.neuron.isa.rules import same_dtype

_HBM = frozenset({Space.HBM})
_METADATA = frozenset({Space.HBM, Space.SBUF})
_GATHERING_RANKS = 4
"""The ranks of an all_gather_v: those of one device of two cores each. Source: nki.collectives.all_gather_v, 0.6."""

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class _Chunk:
    """What one rank of the group sends this one."""

    sender: int
    count: int
    first: int
    """In the sender's src."""
    target: int
    """In this rank's dst."""
    room: int
    """The elements of dst from there on that are for this sender."""


def _rows(operands: Values, name: str) -> Array:
    """Rows of the metadata, a column a rank."""
    values = operands.real[name].astype(np.int64)
    return values.reshape(-1, values.shape[-1])


def _chunks(operands: Values, attributes: Attributes, *, column: int) -> Iterator[_Chunk]:
    """Of each rank of the group what it sends; `column` is that of its rows that speaks of this rank."""
    size, ranks = operands["dst"].size, len(group_of(attributes))
    slot = size // ranks
    placed = _rows(operands, "displacements")[0] if "displacements" in operands else None
    for sender, other in enumerate(operands.others):
        count, first = (int(one) for one in _rows(other, "counts")[:, column])
        target = slot * sender if placed is None else int(placed[sender])
        yield _Chunk(sender, count, first, target, slot if placed is None else size - target)


def _received(operands: Values, attributes: Attributes, *, column: int) -> Mapping[str, Array]:
    """dst with the chunks in their places, and how many elements each rank sent; what gets none is masked."""
    dst = operands["dst"]
    flat, kept = dst.reshape(-1).copy(), np.ones(dst.size, np.bool_)
    for chunk in _chunks(operands, attributes, column=column):
        source = operands.others[chunk.sender]["src"].reshape(-1)
        if not chunk.count:
            continue
        within = chunk.first + chunk.count <= source.size
        if not within or chunk.count > chunk.room:
            what = (
                f"at {chunk.first} of src, which has {source.size}"
                if not within
                else f"to {chunk.target} of dst, where {max(chunk.room, 0)} have room"
            )
            rank = group_of(attributes)[chunk.sender]
            operands.notes.append(f"rank {rank} sends {chunk.count} elements {what}: they are left out")
            continue
        where = slice(chunk.target, chunk.target + chunk.count)
        flat[where], kept[where] = source[chunk.first : chunk.first + chunk.count], False
    counts = [other["sent"].reshape(-1)[column] for other in operands.others]
    made = np.ma.MaskedArray(flat.reshape(dst.shape), kept.reshape(dst.shape))
    return {"dst": made, "received": np.array(counts).reshape(1, -1)}


def _metadata(subject: Subject) -> None:
    """A column a rank."""
    ranks = len(group_of(subject.instruction.attributes))
    for name in ("counts", "sent", "received", "displacements"):
        region = subject.region(name)
        if region is not None and region.shape[-1] != ranks:
            raise subject.refuse(f"the metadata have {region.shape[-1]} columns; expected one for each of {ranks}")


def _equal_places(subject: Subject) -> None:
    """Where nobody says where chunks go, dst has as many equal parts as there are ranks."""
    size, ranks = subject.instruction.region("dst").size, len(group_of(subject.instruction.attributes))
    if subject.region("displacements") is None and size % ranks:
        raise subject.refuse(f"{subject.describe('dst')} has {size} elements; {ranks} ranks have equal parts of it")


def _four_ranks(subject: Subject) -> None:
    ranks = len(group_of(subject.instruction.attributes))
    if ranks != _GATHERING_RANKS:
        raise subject.refuse(f"the group has {ranks} ranks; expected {_GATHERING_RANKS}, those of one device")


def _has_switch(subject: Subject) -> None:
    """Only instances with switches, those of NeuronCore-v4, place chunks as they are told."""
    if subject.region("displacements") is not None and subject.hardware.core_generation < 4:
        raise subject.refuse(
            f"has_rdispls=True needs NeuronCore-v4 (gen4) or later; {subject.hardware.target} has "
            f"NeuronCore-v{subject.hardware.core_generation}",
            "without it the chunk of rank r goes to place r of as many equal parts of dst",
        )


_UINT32 = ("u32",)
_OPERANDS = (
    updated("dst", _HBM),
    tile("src", _HBM),
    tile("counts", _METADATA, dtypes=_UINT32, selects=True),
    tile("sent", _METADATA, dtypes=_UINT32),
    output("received", _METADATA, dtypes=_UINT32, optional=True),
)
_DISPLACEMENTS = OperandRule("displacements", _METADATA, optional=True, dtypes=_UINT32, selects=True)


@row(
    "all_to_all_v",
    engines=(Engine.DMA,),
    operands=(*_OPERANDS, _DISPLACEMENTS),
    attributes={"group": ()},
    flow=Flow.MOVEMENT,
    cost=Cost.UNPUBLISHED,
    source="nki.collectives.all_to_all_v",
    checks=(same_dtype("dst", "src"), _metadata, _equal_places, _has_switch),
    effect=Effect.MEET,
    moves_bits=True,
)
def all_to_all_v(operands: Values, attributes: Attributes) -> Mapping[str, Array]:
    """dst = what each rank sends this one: as many elements of its src, from where on, as its metadata say."""
    return _received(operands, attributes, column=place_in_group(operands, attributes))


@row(
    "all_gather_v",
    engines=(Engine.DMA,),
    operands=_OPERANDS,
    attributes={"group": ()},
    flow=Flow.MOVEMENT,
    cost=Cost.UNPUBLISHED,
    source="nki.collectives.all_gather_v",
    checks=(same_dtype("dst", "src"), _metadata, _equal_places, _four_ranks),
    effect=Effect.MEET,
    moves_bits=True,
)
def all_gather_v(operands: Values, attributes: Attributes) -> Mapping[str, Array]:
    """dst = a chunk of each rank's src, the same for all: the first column of its metadata says which."""
    return _received(operands, attributes, column=0)
