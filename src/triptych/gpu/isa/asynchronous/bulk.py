"""Bulk copies, and stores and reductions like them, that asynchronous hardware carries out (PTX manual, 9.7.9.25.4).

A thread asks for them; who waits for them waits for an mbarrier's transactions, or for groups. Here each is carried out
when it is asked for, and its transactions are complete at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from triptych.gpu.isa.asynchronous.bulk_copy import BulkCopy
from triptych.gpu.isa.effects import Effect
from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.spaces import ASYNCHRONOUS, SHARED
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.types import U16, U32, U64


def bulk_copy_of(form: Form) -> BulkCopy:
    """What a form of `cp.async.bulk` or `cp.reduce.async.bulk` does."""
    (source, _), (target, _) = form.accesses
    kind = form.type if form.has("reduce") else None
    return BulkCopy(source, target, kind, form.operation, form.has("multicast::cluster"))


# --- Copies ---------------------------------------------------------------------------------------------------------


def copy_bulk(m: Machine[V], f: Form, target: V, source: V, size: V, *rest: V) -> None:
    """`size` bytes at a = those at b, and so many transactions of the mbarrier are complete; all multiples of 16."""
    copy = bulk_copy_of(f)
    barrier = rest[0] if copy.signals else m.constant(U64, 0)
    blocks = m.resize(U16, U32, rest[1]) if copy.multicast else m.constant(U32, 0)
    m.copy_bulk(copy, target, source, size, barrier, blocks)


def copy_bulk_to_blocks(m: Machine[V], f: Form, target: V, source: V, size: V, *rest: V) -> None:
    """As before, in each block of the cluster that a mask names, whose own mbarrier is told."""
    copy_bulk(m, f, target, source, size, *rest)


def reduce_bulk(m: Machine[V], f: Form, target: V, source: V, size: V, *rest: V) -> None:
    """Each element of `size` bytes at a becomes (element operation that at b)."""
    copy_bulk(m, f, target, source, size, *rest)


_COMPLETES, _BARRIER = ".mbarrier::complete_tx::bytes", ", [barrier]:u64"
_PLACES, _COPIES = "[a]:u64, [b]:u64, size:u32", "9.7.9.25.4.1"
_bulk = partial(row, pipe=Pipe.LOAD_STORE, needs="sm_90")
for _hint, _policy in (("", ""), (".L2::cache_hint", ", policy:b64")):
    _load = partial(_bulk, section=_COPIES, effect=Effect.BULK_LOAD)
    _load(
        f"cp.async.bulk.target.global{_COMPLETES}{_hint} {_PLACES}{_BARRIER}{_policy}",
        groups={"target": "shared::cluster shared::cta"},
    )(copy_bulk)  # fmt: skip
    _load(
        f"cp.async.bulk.shared::cluster.global{_COMPLETES}.multicast::cluster{_hint} {_PLACES}{_BARRIER}, blocks:b16"
        f"{_policy}"
    )(copy_bulk_to_blocks)  # fmt: skip
    _bulk(
        f"cp.async.bulk.global.shared::cta.bulk_group{_hint} {_PLACES}{_policy}", section=_COPIES,
        effect=Effect.BULK_STORE,
    )(copy_bulk)  # fmt: skip
_bulk(
    f"cp.async.bulk.shared::cluster.shared::cta{_COMPLETES} {_PLACES}{_BARRIER}", section=_COPIES,
    effect=Effect.BULK_EXCHANGE,
)(copy_bulk)  # fmt: skip

# --- Reductions -----------------------------------------------------------------------------------------------------

_IN_SHARED: Sequence[tuple[str, str]] = (
    ("add", "u32 s32 u64"), ("min max", "u32 s32"), ("inc dec", "u32"), ("and or xor", "b32"),
)  # fmt: skip
_IN_GLOBAL: Sequence[tuple[str, str]] = (
    ("add", "u32 s32 u64 f32 f64"), ("min max", "u32 s32 u64 s64 f16 bf16"), ("inc dec", "u32"),
    ("and or xor", "b32 b64"),
)  # fmt: skip
_reduction = partial(_bulk, section="9.7.9.25.4.2")
for _names, _types in _IN_SHARED:
    _reduction(
        f"cp.reduce.async.bulk.shared::cluster.shared::cta{_COMPLETES}.operation.type {_PLACES}{_BARRIER}",
        types=_types, groups={"operation": _names}, effect=Effect.BULK_EXCHANGED_REDUCTION,
    )(reduce_bulk)  # fmt: skip
for _hint, _policy in (("", ""), (".L2::cache_hint", ", policy:b64")):
    _to_global = f"cp.reduce.async.bulk.global.shared::cta.bulk_group{_hint}.operation"
    for _names, _types in _IN_GLOBAL:
        _reduction(
            f"{_to_global}.type {_PLACES}{_policy}", types=_types, groups={"operation": _names},
            effect=Effect.BULK_REDUCTION,
        )(reduce_bulk)  # fmt: skip
    _reduction(
        f"{_to_global}.noftz.type {_PLACES}{_policy}", types="f16 bf16", groups={"operation": "add"},
        effect=Effect.BULK_REDUCTION,
    )(reduce_bulk)  # fmt: skip

# --- Single elements ------------------------------------------------------------------------------------------------


def _in_cluster(m: Machine[V], f: Form, address: V) -> V:
    """A place in the shared memory of the cluster; without a space the address is a generic one."""
    return address if f.get("space") else m.sub(U64, address, m.constant(U64, SHARED.window))


def st_async(m: Machine[V], f: Form, address: V, *values: V) -> None:
    """The elements at a = b, and their bytes are complete as transactions of the mbarrier."""
    *elements, barrier = values
    m.store(ASYNCHRONOUS, f.type, _in_cluster(m, f, address), elements)
    m.complete(_in_cluster(m, f, barrier), m.constant(U64, f.lane_bytes))


def red_async(m: Machine[V], f: Form, address: V, b: V, barrier: V) -> None:
    """The element at a becomes (element operation b), and its bytes are complete as transactions of the mbarrier."""
    m.atomic(ASYNCHRONOUS, f.operation, f.type, _in_cluster(m, f, address), (b,))
    m.complete(_in_cluster(m, f, barrier), m.constant(U64, f.lane_bytes))


_ANYWHERE: Mapping[str, str] = {"space": "shared::cluster"}
_bulk(
    f"st.async{{.weak}}{{.space}}{_COMPLETES}{{.vec}}.type [a]:u64, b*{_BARRIER}",
    types="b32 b64 u32 u64 s32 s64 f32 f64", groups=_ANYWHERE | {"vec": "v2 v4"}, section="9.7.9.12",
    effect=Effect.STORE_ASYNC,
)(st_async)  # fmt: skip
for _names, _types in (("add", "u32 s32 u64 s64"), *_IN_SHARED[1:]):
    _bulk(
        f"red.async.relaxed.cluster{{.space}}{_COMPLETES}.operation.type [a]:u64, b{_BARRIER}",
        types=_types, groups=_ANYWHERE | {"operation": _names}, section="9.7.13.7", effect=Effect.REDUCTION_ASYNC,
    )(red_async)  # fmt: skip

# --- Groups, and what changes nothing -------------------------------------------------------------------------------


def _order(syntax: str, section: str, summary: str, effect: Effect = Effect.ORDER) -> None:
    def nothing(m: Machine[V], f: Form, *operands: V) -> None:
        return

    nothing.__doc__ = summary
    row(syntax, section=section, pipe=Pipe.CONTROL, effect=effect, needs="sm_90")(nothing)


_order(
    "cp.async.bulk.commit_group", "9.7.9.25.6.1", "Closes a group of bulk copies; they are done already.",
    Effect.COMMIT_BULK,
)  # fmt: skip
_order(
    "cp.async.bulk.wait_group{.read} n:u32", "9.7.9.25.6.2",
    "Waits for all but the newest n groups, or until their sources are read; they are done already.",
    Effect.AWAIT_BULK,
)  # fmt: skip
for _hint, _policy in (("", ""), (".L2::cache_hint", ", policy:b64")):
    _order(
        f"cp.async.bulk.prefetch.L2.global{_hint} [a]:u64, size:u32{_policy}", "9.7.9.25.4.3",
        "Brings bytes near; without an effect on values.",
    )  # fmt: skip
