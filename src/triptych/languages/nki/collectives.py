"""`nki.collectives`: what ranks do together. `kernel.on_ranks(n)` runs a kernel on n devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from triptych.languages.nki.isa_functions.dma import check_priority
from triptych.languages.nki.names import missing_name
from triptych.languages.nki.tracing.indexing import refuse, sequence, whole
from triptych.languages.nki.tracing.operations import alu_name
from triptych.languages.nki.tracing.registers import VirtualRegister
from triptych.languages.nki.tracing.tensors import NkiTensor
from triptych.languages.nki.tracing.tracer import TileOrNumber, Tracer, current
from triptych.neuron.isa.trace import AttributeValue

__all__ = [
    "ReplicaGroup",
    "all_gather",
    "all_gather_v",
    "all_reduce",
    "all_to_all",
    "all_to_all_v",
    "collective_permute",
    "collective_permute_implicit",
    "collective_permute_implicit_current_processing_rank_id",
    "collective_permute_implicit_reduce",
    "rank_id",
    "reduce_scatter",
]


@dataclass(frozen=True)
class ReplicaGroup:
    """Groups of ranks, as lists that have no rank in common: those of a list take part together."""

    groups: Sequence[Sequence[int]]

    def of(self, tracer: Tracer) -> tuple[int, ...]:
        """The list of this rank.

        Raises:
            NkiError: for lists that overlap, ranks that there are not, and where this rank is in none.
        """
        lists = [tuple(whole(rank) for rank in sequence(group)) for group in sequence(self.groups)]
        ranks = [rank for group in lists for rank in group]
        known = range(tracer.ranks)
        if len(set(ranks)) != len(ranks) or any(rank is None or rank not in known for rank in ranks):
            raise refuse(
                f"ReplicaGroup({self.groups!r}): expected lists of different ranks below {tracer.ranks}",
                "kernel.on_ranks(n) runs a kernel on n devices",
            )
        for group in lists:
            if tracer.rank in group:
                return tuple(rank for rank in group if rank is not None)
        raise refuse(f"rank {tracer.rank} is in no list of ReplicaGroup({self.groups!r})")


def _tensors(value: object, what: str, most: int | None = None) -> list[NkiTensor]:
    found: list[NkiTensor] = []
    for one in sequence(value):
        if not isinstance(one, NkiTensor):
            raise refuse(f"{what}: a {type(one).__name__} is no tensor")
        found.append(one)
    if not found or (most is not None and len(found) > most):
        raise refuse(f"{what}: {len(found)} tensors; expected {'1' if most == 1 else 'at least 1'}")
    return found


def _pairs(srcs: object, dsts: object, what: str, most: int | None = None) -> list[tuple[NkiTensor, NkiTensor]]:
    sources, targets = _tensors(srcs, f"{what}: srcs", most), _tensors(dsts, f"{what}: dsts", most)
    if len(sources) != len(targets):
        raise refuse(f"{what}: {len(sources)} srcs and {len(targets)} dsts")
    if len(sources) > 1 and any(one.on_chip for one in (*sources, *targets)):
        raise refuse(f"{what}: several tensors at once must lie in HBM")
    return list(zip(sources, targets, strict=True))


def _emit(
    name: str, srcs: object, dsts: object, group: ReplicaGroup, priority: object, **attributes: AttributeValue
) -> None:
    what = f"nki.collectives.{name}"
    tracer = current(what)
    check_priority(tracer, priority)
    for source, target in _pairs(srcs, dsts, what):
        operands: dict[str, TileOrNumber | None] = {"dst": target, "src": source}
        tracer.emit(name, operands, {"group": group.of(tracer), **attributes})


def all_reduce(
    srcs: object,
    dsts: object,
    replica_group: ReplicaGroup,
    op: object,
    priority: int | None = None,
    name: str | None = None,
) -> None:
    """Each dst = the src of all ranks of the group, reduced by `nl.add`, `nl.maximum` or `nl.minimum`."""
    del name
    _emit("all_reduce", srcs, dsts, replica_group, priority, op=alu_name(op))


def all_gather(
    srcs: object,
    dsts: object,
    replica_group: ReplicaGroup,
    collective_dim: int,
    priority: int | None = None,
    name: str | None = None,
) -> None:
    """Each dst = the src of all ranks, one behind the other along `collective_dim`."""
    del name
    _emit("all_gather", srcs, dsts, replica_group, priority, dim=collective_dim)


def reduce_scatter(
    srcs: object,
    dsts: object,
    replica_group: ReplicaGroup,
    collective_dim: int,
    op: object,
    priority: int | None = None,
    name: str | None = None,
) -> None:
    """Each dst = this rank's part, along `collective_dim`, of the src of all ranks reduced."""
    del name
    _emit("reduce_scatter", srcs, dsts, replica_group, priority, op=alu_name(op), dim=collective_dim)


def all_to_all(
    srcs: object,
    dsts: object,
    replica_group: ReplicaGroup,
    collective_dim: int,
    priority: int | None = None,
    name: str | None = None,
) -> None:
    """Each dst = this rank's part of each rank's src, one behind the other."""
    del name
    _emit("all_to_all", srcs, dsts, replica_group, priority, dim=collective_dim)


def _metadata(metadata: object, ranks: int, has_rdispls: bool, what: str) -> NkiTensor:
    """[rows, ranks]: 3 rows, 4 where the last says where chunks go; [1, rows, ranks] on chip.

    Raises:
        NkiError: for a tensor of another shape or dtype, or one whose elements do not lie one behind the other.
    """
    (found,) = _tensors(metadata, f"{what}: metadata_tensor", 1)
    expected = (4 if has_rdispls else 3, ranks)
    if found.shape != ((1, *expected) if found.on_chip else expected) or found.dtype.name != "uint32":
        shape = [1, *expected] if found.on_chip else list(expected)
        raise refuse(f"{what}: metadata_tensor is {found.dtype} {list(found.shape)}; expected uint32 {shape}")
    if not found.is_contiguous():
        raise refuse(f"{what}: the elements of metadata_tensor must lie one behind the other")
    return found


def _emit_variable(
    name: str,
    srcs: object,
    dsts: object,
    group: ReplicaGroup,
    metadata: object,
    recv_counts_known: bool,
    has_rdispls: bool,
) -> None:
    what = f"nki.collectives.{name}"
    tracer = current(what)
    ranks = group.of(tracer)
    ((source, target),) = _pairs(srcs, dsts, what, 1)
    rows = _metadata(metadata, len(ranks), has_rdispls, what)
    axis = rows.ndim - 2
    operands: dict[str, TileOrNumber | None] = {
        "dst": target, "src": source, "counts": rows.slice(axis, 0, 2), "sent": rows.slice(axis, 0, 1),
        "received": None if recv_counts_known else rows.slice(axis, 2, 3),
    }  # fmt: skip
    if has_rdispls:
        operands["displacements"] = rows.slice(axis, 3, 4)
    tracer.emit(name, operands, {"group": ranks})


def all_gather_v(
    srcs: object,
    dsts: object,
    replica_group: ReplicaGroup,
    metadata_tensor: object,
    recv_counts_known: bool = False,
    has_rdispls: bool = False,
    priority: int | None = None,
    name: str | None = None,
) -> None:
    """dst = a chunk of the src of each of four ranks, each in its place of as many equal parts of dst.

    The first column of the uint32 `metadata_tensor` says how many elements this rank sends (row 0) and from which on
    (row 1); row 2 gets how many came of each rank, unless `recv_counts_known`. A rank here is one program, whatever
    the cores of a logical NeuronCore are. `has_rdispls` is supported by no release.
    """
    del name
    check_priority(current("nki.collectives"), priority)
    if has_rdispls:
        raise refuse("nki.collectives.all_gather_v: has_rdispls=True is not supported by any release")
    _emit_variable("all_gather_v", srcs, dsts, replica_group, metadata_tensor, recv_counts_known, has_rdispls=False)


def all_to_all_v(
    srcs: object,
    dsts: object,
    replica_group: ReplicaGroup,
    metadata_tensor: object,
    recv_counts_known: bool = False,
    has_rdispls: bool = False,
    priority: int | None = None,
    name: str | None = None,
) -> None:
    """dst = a chunk of each rank's src, as many elements as its `metadata_tensor` says in the column of this rank.

    Rows 0 and 1 of the uint32 metadata: how many elements go to each rank, and from which on; row 2 gets how many came
    of each, unless `recv_counts_known`; with `has_rdispls` (NeuronCore-v4) row 3 says where in dst each chunk goes,
    else each rank has its place of as many equal parts. Which ranks share a device or an instance is not looked at.
    """
    del name
    check_priority(current("nki.collectives"), priority)
    _emit_variable("all_to_all_v", srcs, dsts, replica_group, metadata_tensor, recv_counts_known, has_rdispls)


def _permute(source: NkiTensor, target: NkiTensor, group: tuple[int, ...], sender: int | None, what: str) -> None:
    current(what).emit("collective_permute", {"dst": target, "src": source}, {"group": group, "source": sender})


def collective_permute(
    srcs: object,
    dsts: object,
    source_target_pairs: Sequence[Sequence[int]],
    priority: int | None = None,
    name: str | None = None,
) -> None:
    """The src of each source goes to the dst of its target; a dst that is no target's stays what it was."""
    del name
    check_priority(current("nki.collectives"), priority)
    what = "nki.collectives.collective_permute"
    tracer = current(what)
    pairs = [tuple(whole(rank) for rank in sequence(pair)) for pair in source_target_pairs]
    known = range(tracer.ranks)
    if any(len(pair) != 2 or any(rank is None or rank not in known for rank in pair) for pair in pairs):
        raise refuse(
            f"{what}: source_target_pairs={source_target_pairs!r}; expected pairs of ranks below {tracer.ranks}"
        )
    senders = {target: source for source, target in pairs}
    if len(senders) != len(pairs):
        raise refuse(f"{what}: a rank is the target of several sources")
    members = tuple(sorted({rank for pair in pairs for rank in pair if rank is not None}))
    ((source, target),) = _pairs(srcs, dsts, what, 1)
    if source.on_chip or target.on_chip:
        raise refuse(f"{what}: tensors must lie in HBM", "collective_permute_implicit takes tiles in SBUF too")
    if tracer.rank in members:
        _permute(source, target, members, senders.get(tracer.rank), what)


def _ring(
    tracer: Tracer, group: ReplicaGroup, channels: Sequence[int], given: object, what: str
) -> tuple[tuple[int, ...], int]:
    """The ranks of the ring, and the one before this one."""
    ids = [whole(one) for one in sequence(channels)]
    if ids != list(range(len(ids))) or len(ids) != len(sequence(given)):
        raise refuse(f"{what}: channel_ids={channels!r}; expected 0, 1 …, one for each list of tensors")
    ranks = group.of(tracer)
    return ranks, ranks[ranks.index(tracer.rank) - 1]


def collective_permute_implicit(
    srcs_by_channel: Sequence[object],
    dsts_by_channel: Sequence[object],
    replica_group: ReplicaGroup,
    channel_ids: Sequence[int] = (0,),
    priority: int | None = None,
    name: str | None = None,
) -> None:
    """Each rank's src goes to the next rank of its list, in a ring."""
    del name
    check_priority(current("nki.collectives"), priority)
    what = "nki.collectives.collective_permute_implicit"
    ranks, before = _ring(current(what), replica_group, channel_ids, srcs_by_channel, what)
    for srcs, dsts in zip(srcs_by_channel, dsts_by_channel, strict=True):
        ((source, target),) = _pairs(srcs, dsts, what, 1)
        _permute(source, target, ranks, before, what)


def collective_permute_implicit_reduce(
    srcs0_by_channel: Sequence[object],
    srcs1_by_channel: Sequence[object],
    dsts_by_channel: Sequence[object],
    replica_group: ReplicaGroup,
    op: object,
    channel_ids: Sequence[int] = (0,),
    priority: int | None = None,
    name: str | None = None,
) -> None:
    """op(src0, src1) of each rank goes to the next rank of its list, in a ring."""
    del name
    check_priority(current("nki.collectives"), priority)
    what = "nki.collectives.collective_permute_implicit_reduce"
    tracer = current(what)
    operation = alu_name(op)
    if operation != "add":
        raise refuse(f"{what}: op is {operation}; the DMA engines here have add")
    ranks, before = _ring(tracer, replica_group, channel_ids, srcs0_by_channel, what)
    for srcs0, srcs1, dsts in zip(srcs0_by_channel, srcs1_by_channel, dsts_by_channel, strict=True):
        ((first, target),) = _pairs(srcs0, dsts, what, 1)
        (second,) = _tensors(srcs1, f"{what}: srcs1", 1)
        made = tracer.allocate(first.shape, first.dtype, first.buffer.private)
        tracer.emit("dma_compute", {"dst": made, "src0": first, "src1": second})
        _permute(made, target, ranks, before, what)


def collective_permute_implicit_current_processing_rank_id(
    iteration_id: int, replica_group: ReplicaGroup, channel_id: int = 0, name: str | None = None
) -> VirtualRegister:
    """A register with the rank whose data a ring has brought here after so many steps: 0 is this rank itself."""
    del name, channel_id
    what = "nki.collectives.collective_permute_implicit_current_processing_rank_id"
    tracer = current(what)
    step = whole(iteration_id)
    if step is None:
        raise refuse(f"{what}: iteration_id={iteration_id!r}; expected a whole number, known when the kernel is traced")
    ranks = replica_group.of(tracer)
    return _register(tracer, ranks[(ranks.index(tracer.rank) - step) % len(ranks)])


def rank_id(name: str | None = None) -> VirtualRegister:
    """A register with the rank of this device."""
    del name
    tracer = current("nki.collectives.rank_id")
    return _register(tracer, tracer.rank)


def _register(tracer: Tracer, value: int) -> VirtualRegister:
    made = tracer.register("rank")
    tracer.emit("register_move", {"dst": made, "src": value})
    return made


def __getattr__(name: str) -> NoReturn:
    """A name that the module does not have, or that is not implemented."""
    missing_name("nki.collectives", name, globals())
