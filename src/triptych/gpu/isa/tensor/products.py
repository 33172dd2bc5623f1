"""Multiplication of matrices by the tensor cores, a warp at a time (PTX manual, 9.7.14)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from triptych.gpu.isa.effects import Effect
from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.restrictions import Restriction
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.tensor.fragments import Product, product_of

LAYOUTS = {"alayout": "row col", "blayout": "row col"}
ROW_COL = (Restriction(frozenset(), layouts=("row", "col")),)
"""A by rows, B by columns."""


def multiply(m: Machine[V], f: Form, *registers: V) -> Sequence[V]:
    """d = a × b + c, of matrices whose elements are spread over the lanes of the warp."""
    assert f.product is not None
    return m.multiply_matrices(f.product, registers)


def _product(f: Form) -> Product:
    return product_of(
        f.get("shape"), f.types, saturates=f.has("satfinite"), operation=f.get("bits", "mul"),
        rounding=f.get("rnd", "rn"),
    )  # fmt: skip


def _mma(
    shapes: str, accumulator: str, types: Mapping[str, str], needs: Mapping[str, str], *, before: str = "",
    behind: str = "", groups: Mapping[str, str] | None = None,
) -> None:  # fmt: skip
    """A row: D and C are of one type, `before` and `behind` the types stand further modifiers."""
    row(
        f"mma.sync.aligned.shape.alayout.blayout{before}.dtype.atype.btype.ctype{behind} d*, a*, b*, c*",
        types={"dtype": accumulator, **types, "ctype": accumulator},
        groups={"shape": shapes, **LAYOUTS, **(groups or {})}, needs=needs, restrictions=ROW_COL,
        section="9.7.14.5.14", pipe=Pipe.TENSOR, effect=Effect.MULTIPLY, product=_product,
    )(multiply)  # fmt: skip


_MIXED = {"": "sm_89", "kind::f8f6f4": "sm_100f sm_110f sm_120f"}
for _accumulator in ("f16", "f32"):
    _mma(
        "m16n8k8 m16n8k16", _accumulator, {"atype": "f16", "btype": "f16"}, {"": "sm_75", "m16n8k16": "sm_80"},
    )  # fmt: skip
    _mma(
        "m16n8k16 m16n8k32", _accumulator, {"atype": "e4m3 e5m2", "btype": "e4m3 e5m2"}, _MIXED,
        before="{.kind::f8f6f4}",
    )  # fmt: skip
_mma("m16n8k8 m16n8k16", "f32", {"atype": "bf16", "btype": "bf16"}, {"": "sm_80"})
_mma("m16n8k4 m16n8k8", "f32", {"atype": "tf32", "btype": "tf32"}, {"": "sm_80"})
_DOUBLE = {"atype": "f64", "btype": "f64"}
_ROUNDED = {"rnd": "rn rz rm rp"}
_mma("m8n8k4", "f64", _DOUBLE, {"": "sm_80"}, before="{.rnd}", groups=_ROUNDED)
_mma("m16n8k4 m16n8k8 m16n8k16", "f64", _DOUBLE, {"": "sm_90"}, before="{.rnd}", groups=_ROUNDED)
_mma(
    "m8n8k16 m16n8k16 m16n8k32", "s32", {"atype": "u8 s8", "btype": "u8 s8"},
    {"": "sm_75", "m16n8k16": "sm_80", "m16n8k32": "sm_80"}, before="{.satfinite}",
)  # fmt: skip
_mma(
    "m8n8k32 m16n8k32 m16n8k64", "s32", {"atype": "u4 s4", "btype": "u4 s4"},
    {"": "sm_75", "m16n8k32": "sm_80", "m16n8k64": "sm_80"}, before="{.satfinite}",
)  # fmt: skip
_mma(
    "m8n8k128 m16n8k128 m16n8k256", "s32", {"atype": "b1", "btype": "b1"},
    {"": "sm_75", "m16n8k128": "sm_80", "m16n8k256": "sm_80", "and": "sm_80"},
    behind=".bits.popc", groups={"bits": "xor and"},
)  # fmt: skip
