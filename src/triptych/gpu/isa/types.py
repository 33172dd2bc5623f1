"""PTX's fundamental types."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ScalarType:
    """A fundamental type; `kind` is `unsigned`, `signed`, `bits`, `float` or `predicate` (PTX manual, 5.2.1)."""

    name: str
    bits: int
    kind: str

    @property
    def bytes(self) -> int:
        """Bytes in memory."""
        return self.bits // 8

    @property
    def is_float(self) -> bool:
        """Whether values are floating point."""
        return self.kind == "float"

    @property
    def is_signed(self) -> bool:
        """Whether values are signed integers."""
        return self.kind == "signed"

    def __str__(self) -> str:
        """The name without its dot."""
        return self.name

    def __reduce__(self) -> tuple[Callable[[str], ScalarType], tuple[str]]:
        """Pickles as a name: there is one object for each type, and types are compared by identity."""
        return _named, (self.name,)


def _named(name: str) -> ScalarType:
    return TYPES[name]


def _types() -> Mapping[str, ScalarType]:
    rows = [
        *(ScalarType(f"u{bits}", bits, "unsigned") for bits in (8, 16, 32, 64)),
        *(ScalarType(f"s{bits}", bits, "signed") for bits in (8, 16, 32, 64)),
        *(ScalarType(f"b{bits}", bits, "bits") for bits in (8, 16, 32, 64, 128)),
        *(ScalarType(f"f{bits}", bits, "float") for bits in (16, 32, 64)),
        ScalarType("bf16", 16, "float"),
        ScalarType("f16x2", 32, "float"),
        ScalarType("bf16x2", 32, "float"),
        ScalarType("f32x2", 64, "float"),
        ScalarType("u16x2", 32, "unsigned"),
        ScalarType("s16x2", 32, "signed"),
        ScalarType("u8x4", 32, "unsigned"),
        ScalarType("s8x4", 32, "signed"),
        ScalarType("tf32", 32, "bits"),
        *(ScalarType(name, 8, "bits") for name in ("e4m3", "e5m2")),
        *(ScalarType(f"u{bits}", bits, "unsigned") for bits in (2, 4)),
        *(ScalarType(f"s{bits}", bits, "signed") for bits in (2, 4)),
        ScalarType("b1", 1, "bits"),
        ScalarType("e2m1x2", 8, "bits"),
        *(ScalarType(f"{name}x2", 16, "bits") for name in ("e4m3", "e5m2", "e2m3", "e3m2", "ue8m0", "s2f6")),
        ScalarType("e2m1x4", 16, "bits"),
        *(ScalarType(f"{name}x4", 32, "bits") for name in ("e4m3", "e5m2", "e2m3", "e3m2")),
        ScalarType("pred", 1, "predicate"),
    ]
    return {row.name: row for row in rows}


TYPES: Mapping[str, ScalarType] = _types()
"""By name."""

U16, U32, U64 = TYPES["u16"], TYPES["u32"], TYPES["u64"]
S16, S32, S64 = TYPES["s16"], TYPES["s32"], TYPES["s64"]
B16, B32, B64, B128 = TYPES["b16"], TYPES["b32"], TYPES["b64"], TYPES["b128"]
F16, F32, F64, BF16 = TYPES["f16"], TYPES["f32"], TYPES["f64"], TYPES["bf16"]
PRED = TYPES["pred"]

WIDENED: Mapping[str, ScalarType] = {"u16": U32, "s16": S32, "u32": U64, "s32": S64}
"""The type of twice the width, for `.wide`."""


def packed_element(kind: ScalarType) -> ScalarType:
    """The element of a packed pair (`f16` of `f16x2`) or quadruple, the type itself where it is none."""
    return TYPES[kind.name[:-2]] if kind.name.endswith(("x2", "x4")) else kind


def literal_number(bits: int, t: ScalarType) -> float | None:
    """The number with these bits as an f32 or f64; None for NaN, and for other types."""
    if t not in (F32, F64):
        return None
    layout = ("<f", "<I") if t is F32 else ("<d", "<Q")
    number: float = struct.unpack(layout[0], struct.pack(layout[1], bits))[0]
    return None if math.isnan(number) else number
