"""Copies of boxes of tensors by TMA (PTX manual, 9.7.9.27), and the tensor maps that describe them (9.7.9.28).

A copy is done when it is issued: what waits for it finds it complete. `gpu/tensor_map.py` says what a tensor map is.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from triptych.core.errors import UnsupportedInstruction
from triptych.gpu.isa.effects import Effect
from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.types import U16, U32
from triptych.gpu.tensor_map import FIELDS, MOST_AXES, TensorCopy, name_of

_HINTS = (("", ""), (".L2::cache_hint", ", policy:b64"))
_REDUCTIONS = "add min max inc dec and or xor"
_FIRST_COLUMNS = 3
"""Axes of the smallest tensor that has columns of pixels."""


def _place(rank: int) -> str:
    """The operand that says where a box is."""
    return f"[map:u64, {{{', '.join(f'x{axis}:s32' for axis in range(rank))}}}]"


def _offsets(rank: int) -> str:
    return f"{{{', '.join(f'offset{axis}:u16' for axis in range(rank - 2))}}}"


def _modes(columns: str) -> Iterator[tuple[int, bool, str]]:
    """The ranks and modes: axes, whether columns are copied, and how the opcode says it."""
    for rank in range(1, MOST_AXES + 1):
        yield rank, False, "{.tile}"
        if rank >= _FIRST_COLUMNS:
            yield rank, True, f".{columns}"


_copy = partial(row, section="9.7.9.27.1.2", pipe=Pipe.LOAD_STORE, needs="sm_90")


def _load(rank: int, columns: bool, mode: str, cast: str, hint: str, policy: str) -> None:
    copy = TensorCopy("load", rank, columns, bool(cast))

    def load(m: Machine[V], f: Form, target: V, tensor_map: V, *rest: V) -> None:
        """The box of a tensor at the coordinates into shared memory; the barrier is told of its bytes."""
        coordinates, barrier, more = rest[:rank], rest[rank], rest[rank + 1 :]
        offsets = [m.resize(U16, U32, offset) for offset in more[: rank - 2]] if columns else []
        blocks = m.resize(U16, U32, more[len(offsets)]) if cast else None
        m.copy_tensor(copy, tensor_map, coordinates, target, offsets, barrier, blocks)

    offsets = f", {_offsets(rank)}" if columns else ""
    blocks = ", blocks:u16" if cast else ""
    target = "shared::cluster" if cast else "target"
    _copy(
        f"cp.async.bulk.tensor.{rank}d.{target}.global{mode}.mbarrier::complete_tx::bytes{cast}{hint}"
        f" [d]:u64, {_place(rank)}, [barrier]:u64{offsets}{blocks}{policy}",
        groups={"target": "shared::cluster shared::cta"}, effect=Effect.TENSOR_LOAD, operation="load",
    )(load)  # fmt: skip


def _store(rank: int, columns: bool, mode: str, operation: str, hint: str, policy: str) -> None:
    def store(m: Machine[V], f: Form, tensor_map: V, *rest: V) -> None:
        """The box of a tensor at the coordinates = what shared memory has of it."""
        m.copy_tensor(TensorCopy("store", rank, columns), tensor_map, rest[:rank], rest[rank], (), None, None)

    def reduce(m: Machine[V], f: Form, tensor_map: V, *rest: V) -> None:
        """Each element of the box becomes (element operation that of shared memory)."""
        copy = TensorCopy(f.operation, rank, columns)
        m.copy_tensor(copy, tensor_map, rest[:rank], rest[rank], (), None, None)

    if operation:
        _copy(
            f"cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.operation{mode}.bulk_group{hint}"
            f" {_place(rank)}, [a]:u64{policy}",
            groups={"operation": operation}, effect=Effect.TENSOR_REDUCTION, section="9.7.9.27.1.3",
        )(reduce)  # fmt: skip
    else:
        _copy(
            f"cp.async.bulk.tensor.{rank}d.global.shared::cta{mode}.bulk_group{hint} {_place(rank)}, [a]:u64{policy}",
            effect=Effect.TENSOR_STORE, operation="store",
        )(store)  # fmt: skip


def _nothing(m: Machine[V], f: Form, *operands: V) -> None:
    """Brings what is copied next near; without an effect on values."""


for _hint, _policy in _HINTS:
    for _rank, _columns, _mode in _modes("im2col"):
        for _cast in ("", ".multicast::cluster"):
            _load(_rank, _columns, _mode, _cast, _hint, _policy)
        _copy(
            f"cp.async.bulk.prefetch.tensor.{_rank}d.L2.global{_mode}{_hint}"
            f" {_place(_rank)}{f', {_offsets(_rank)}' if _columns else ''}{_policy}",
            effect=Effect.ORDER, section="9.7.9.27.1.4",
        )(_nothing)  # fmt: skip
    for _rank, _columns, _mode in _modes("im2col_no_offs"):
        for _operation in ("", _REDUCTIONS):
            _store(_rank, _columns, _mode, _operation, _hint, _policy)
_copy("prefetch{.space}.tensormap [a]:u64", groups={"space": "param const"}, effect=Effect.ORDER, section="9.7.9.15")(
    _nothing
)


# --- Tensor maps ------------------------------------------------------------------------------------------------------

_map = partial(row, section="9.7.9.28", pipe=Pipe.LOAD_STORE)
_SPACES = "global shared::cta"
_NEEDS = {"": "sm_90a sm_100f sm_120f", "swizzle_atomicity": "sm_100f sm_120f"}


def _replace(m: Machine[V], f: Form, address: V, index: int, value: V) -> None:
    name = f.get("field")
    field = FIELDS[name]
    if index >= field.count:
        raise UnsupportedInstruction(f"tensormap.replace: there is no {name_of(name, index)}")
    m.store(f.space, f.type, m.move_address(address, field.offset + field.bytes * index), [value])


def replace_one(m: Machine[V], f: Form, address: V, value: V) -> None:
    """The field of the tensor map = value; a map of zeros becomes one of tiles by its fields."""
    _replace(m, f, address, 0, value)


def replace_indexed(m: Machine[V], f: Form, address: V, ordinal: V, value: V) -> None:
    """The field of the tensor map for the axis of that number, the innermost being 0, = value."""
    _replace(m, f, address, f.immediates[0], value)


for _indexed, _kind, _fields in (
    (False, "b32", "rank elemtype interleave_layout swizzle_mode swizzle_atomicity fill_mode"),
    (False, "b64", "global_address"),
    (True, "b32", "box_dim global_dim element_stride"),
    (True, "b64", "global_stride"),
):
    _map(
        f"tensormap.replace.tile.field{{.space}}.b1024.type [a]:u64,{' ordinal!:u32,' if _indexed else ''} value",
        types=_kind, groups={"field": _fields, "space": _SPACES}, effect=Effect.STORE_FIELD, needs=_NEEDS,
    )(replace_indexed if _indexed else replace_one)  # fmt: skip


@_map(
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.scope.sync.aligned"
    " [d]:u64, [a]:u64, size!:u32",
    groups={"scope": "cta cluster gpu sys"}, effect=Effect.COPY_MAP, section="9.7.13.16.1", needs="sm_90",
)  # fmt: skip
def copy_map(m: Machine[V], f: Form, target: V, source: V, size: V) -> None:
    """The tensor map in global memory = that in shared memory, for copies behind it."""
    m.copy_tensor_map(target, source)


def _order(m: Machine[V], f: Form, *operands: V) -> None:
    """Orders what was written of a tensor map before copies with it."""
    m.fence()


_fence = partial(
    row, section="9.7.13.4", pipe=Pipe.CONTROL, effect=Effect.ORDER, groups={"scope": "cta cluster gpu sys"},
    needs="sm_90",
)  # fmt: skip
_fence("fence.proxy.tensormap::generic.release.scope")(_order)
_fence("fence.proxy.tensormap::generic.acquire.scope [a]:u64, size!:u32")(_order)
