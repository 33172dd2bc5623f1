"""`wgmma`: multiplication of matrices by four warps together, most of them in shared memory (PTX manual, 9.7.15).

Each warp carries out its part by itself: 16 rows of A and D, all columns of B. A multiplication is done when it is
issued, so that whoever waits for it finds it complete; `check/warpgroups.py` tells of those that do not wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from triptych.gpu.isa.effects import Effect
from triptych.gpu.isa.machine import Machine, V
from triptych.gpu.isa.restrictions import Restriction
from triptych.gpu.isa.table import Form, Pipe, row
from triptych.gpu.isa.tensor.fragments import Fragment, Product, product_of
from triptych.gpu.isa.tensor.matrix_descriptors import GROUP_WARPS, GroupProduct

_TARGET = "sm_90a"


def _product(f: Form) -> Product:
    """A warp's part."""
    rows, rest = f.get("shape").removeprefix("m").split("n")
    types = {**f.types, "ctype": f.types["dtype"]}
    return product_of(
        f"m{int(rows) // GROUP_WARPS}n{rest}", types, saturates=f.has("satfinite"), operation=f.get("bits", "mul")
    )  # fmt: skip


def _fragments(f: Form) -> Mapping[str, Fragment]:
    whole = _product(f)
    return {"d": whole.d, "a": whole.a} if "a" in f.vectors else {"d": whole.d}


def group_product_of(f: Form) -> GroupProduct:
    """What a form of `wgmma.mma_async` does, whose operands are known."""
    assert f.product is not None
    scale_a, scale_b = (f.literals.get(name, 1) for name in ("scale_a", "scale_b"))
    turns_a, turns_b = (f.literals.get(name, 0) for name in ("transpose_a", "transpose_b"))
    return GroupProduct(f.product, "a" in f.vectors, scale_a * scale_b < 0, (not turns_a, not turns_b))


def multiply_group(m: Machine[V], f: Form, *operands: V) -> Sequence[V]:
    """d = a × b + d, or a × b where p does not hold; a descriptor says where in shared memory b lies, and a may lie."""
    product = group_product_of(f)
    count, taken = product.warp.d.registers, product.warp.a.registers if product.a_in_registers else 1
    sums, a, (b, keeps, *_) = operands[:count], operands[count : count + taken], operands[count + taken :]
    return m.multiply_group(product, sums, a, b, keeps)


_LITERALS: Mapping[str, tuple[int, int]] = {
    "p": (0, 1), "scale_a": (-1, 1), "scale_b": (-1, 1), "transpose_a": (0, 1), "transpose_b": (0, 1),
}  # fmt: skip


def _wrong_literal(f: Form) -> str | None:
    for name, value in f.literals.items():
        allowed = _LITERALS.get(name)
        if allowed is not None and value not in allowed:
            return f"{name} must be {allowed[0]} or {allowed[1]}, not {value}"
    if "transpose_b" in f.literals and ("transpose_a" in f.literals) == ("a" in f.vectors):
        return "it takes transpose_a where a is a descriptor, and only there"
    return None


_RULES = (Restriction(frozenset(), rule=_wrong_literal),)
_FLOAT_COLUMNS = tuple(range(8, 257, 8))
_INTEGER_COLUMNS = (8, 16, 24, *range(32, 257, 16))


def _mma(
    columns: Sequence[int], depth: int, types: Mapping[str, str], operands: str = "", *, behind: str = "",
    groups: Mapping[str, str] | None = None,
) -> None:  # fmt: skip
    """Rows of a kind: `depth` is the K, `operands` are those behind the predicate."""
    shapes = " ".join(f"m64n{n}k{depth}" for n in columns)
    row(
        f"wgmma.mma_async.sync.aligned.shape.dtype.atype.btype{behind} d+*, a*:b64, b:b64, p:pred{operands}",
        types=types, groups={"shape": shapes, **(groups or {})}, needs=_TARGET, restrictions=_RULES,
        section="9.7.15.5.2", pipe=Pipe.TENSOR, effect=Effect.MULTIPLY_GROUP, product=_product, fragments=_fragments,
    )(multiply_group)  # fmt: skip


_SIGNS = ", scale_a!:s32, scale_b!:s32"
_TURNS = f"{_SIGNS}, transpose_a!:s32?, transpose_b!:s32"
_mma(_FLOAT_COLUMNS, 16, {"dtype": "f16 f32", "atype": "f16", "btype": "f16"}, _TURNS)
_mma(_FLOAT_COLUMNS, 16, {"dtype": "f32", "atype": "bf16", "btype": "bf16"}, _TURNS)
_mma(_FLOAT_COLUMNS, 8, {"dtype": "f32", "atype": "tf32", "btype": "tf32"}, _SIGNS)
_mma(_FLOAT_COLUMNS, 32, {"dtype": "f16 f32", "atype": "e4m3 e5m2", "btype": "e4m3 e5m2"}, _SIGNS)
_mma(_INTEGER_COLUMNS, 32, {"dtype": "s32", "atype": "s8 u8", "btype": "s8 u8"}, behind="{.satfinite}")
_mma(
    _INTEGER_COLUMNS, 256, {"dtype": "s32", "atype": "b1", "btype": "b1"}, behind=".bits.popc", groups={"bits": "and"}
)  # fmt: skip


# --- The order of multiplications ---------------------------------------------------------------------------------


def nothing(m: Machine[V], f: Form, *operands: V) -> None:
    """Orders multiplications, and what registers hold before and behind them."""


_order = partial(row, pipe=Pipe.CONTROL, needs=_TARGET)
_order("wgmma.fence.sync.aligned", section="9.7.15.7.1", effect=Effect.FENCE_PRODUCTS)(nothing)
_order("wgmma.commit_group.sync.aligned", section="9.7.15.7.2", effect=Effect.COMMIT_PRODUCTS)(nothing)
_order("wgmma.wait_group.sync.aligned n!:u32", section="9.7.15.7.3", effect=Effect.AWAIT_PRODUCTS)(nothing)
