"""memcheck of tensor maps: what a copy met where its tensor map should be, or what the map cannot be copied by."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from triptych.core.errors import TensorMapMisuse
from triptych.gpu.check.culprit import Culprit
from triptych.gpu.check.memcheck import site_of
from triptych.gpu.run.kernel import Kernel
from triptych.gpu.run.worker import LaunchState, Worker
from triptych.gpu.tensor_map import (
    CHUNK_BYTES,
    ELEMENT_TYPES,
    LIMITS,
    MOST_BOX_BYTES,
    TensorMapFault,
    name_of,
)

_MAKE_ONE = "pass one of tt.tensor_map, or set all its fields with tensormap.replace, beginning with zeros"
_WRONG: Mapping[int, tuple[Callable[[int], str], str]] = {
    TensorMapFault.NO_MAP: (lambda mark: f"is none: it begins with {mark:#010x}", _MAKE_ONE),
    TensorMapFault.MODE: (
        lambda _: "is of the other mode: one is for tiles, the other for columns of pixels (im2col)",
        "use the instruction of its mode, or make it with tt.tensor_map or tt.im2col_map accordingly",
    ),
    TensorMapFault.RANK: (
        lambda rank: f"has {rank} {'axis' if rank == 1 else 'axes'}", "give as many coordinates as its tensor has axes",
    ),
    TensorMapFault.ROW_BYTES: (
        lambda size: f"has boxes whose rows have {size} bytes", f"rows must be multiples of {CHUNK_BYTES} bytes",
    ),
    TensorMapFault.SPAN: (
        lambda size: f"has boxes whose rows have {size} bytes, more than the swizzle's span",
        "let the innermost extent of the box be at most the span: 32, 64 or 128 bytes",
    ),
    TensorMapFault.BOX_BYTES: (
        lambda size: f"has boxes of {size} bytes", f"a box must have at most {MOST_BOX_BYTES} bytes",
    ),
    TensorMapFault.PLACE: (
        lambda x: f"is used at the innermost coordinate {x}",
        f"that coordinate must be a multiple of {CHUNK_BYTES} bytes, as an H200 demands",
    ),
    TensorMapFault.OUTSIDE: (
        lambda x: f"is used at the coordinate {x}, outside of its bounding box",
        "begin a column within the box that the corners span",
    ),
    TensorMapFault.NEGATIVE: (
        lambda x: f"is used by a store that reaches the coordinate {x}",
        "stores and reductions take no negative coordinates, as an H200 demands",
    ),
    TensorMapFault.OPERATION: (
        lambda kind: f"is of {ELEMENT_TYPES[kind].name}, for which there is no such reduction",
        "use another operation, or a map of the same bytes as another type",
    ),
    TensorMapFault.FILL: (
        lambda kind: f"fills elements of {ELEMENT_TYPES[kind].name} outside of the tensor with NaN",
        "fill with zeros; only floating types have NaN",
    ),
}  # fmt: skip
"""By fault: what is wrong, of the number that is recorded, and what to do."""


def _describe(detail: int, value: int) -> tuple[str, str]:
    if detail < TensorMapFault.FIRST_LIMIT:
        wrong, hint = _WRONG[detail]
        return wrong(value), hint
    limit = LIMITS[detail - TensorMapFault.FIRST_LIMIT]
    multiple = f", a multiple of {limit.multiple}" if limit.multiple > 1 else ""
    what = f"has {name_of(limit.field, limit.index)} = {value}; expected {limit.least} to {limit.most}{multiple}"
    return what, _MAKE_ONE


def fault(kernel: Kernel, _: LaunchState, worker: Worker, by: Culprit) -> TensorMapMisuse:
    """The error for the copy that a worker recorded."""
    context = worker.context
    instruction = site_of(kernel, worker).instruction.instruction
    wrong, hint = _describe(context.fault_detail, context.fault_size)
    what = f"kernel {kernel.entry.name}: the tensor map at address {context.fault_address:#x} {wrong}"
    return by.fault(TensorMapMisuse, what, hint, kernel.entry.name, instruction)
