"""Element types, by the names that the three languages share."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import isinf, isnan
from typing import Any

import ml_dtypes
import numpy as np

from triptych.core.errors import UnknownName


@dataclass(frozen=True, slots=True)
class DType:
    """An element type: its name (`f32`), its bits in memory and numpy's type for it."""

    name: str
    bits: int
    numpy: np.dtype[Any]

    @property
    def bytes(self) -> int:
        """Bytes of one element in memory."""
        return self.bits // 8

    @property
    def is_float(self) -> bool:
        """Whether values are floating point."""
        return self.name.startswith(("f", "bf", "tf"))

    @property
    def stored(self) -> np.dtype[Any]:
        """numpy's type of what lies in memory: that of a type which numpy lacks is its one field's."""
        fields = self.numpy.fields
        return self.numpy if fields is None else next(iter(fields.values()))[0]

    @property
    def packed(self) -> bool:
        """Whether an element is several numbers, which nothing but Neuron's Tensor and Vector engines take apart."""
        return self.name.startswith("x4")

    @property
    def label(self) -> str:
        """numpy's name, or its field's where numpy lacks the type."""
        names = self.numpy.names
        return self.numpy.name if names is None else names[0]

    def holds(self, value: int | float) -> bool:
        """Whether the type has the value: an integer within its range, a float that rounding does not make infinite.

        A type that numpy lacks has none: nothing but Neuron's engines makes a number of it.
        """
        if self.numpy.fields is not None:
            return False
        if not self.is_float:
            low, high = (0, 1) if self.name == "b1" else (np.iinfo(self.numpy).min, np.iinfo(self.numpy).max)
            return bool(low <= value <= high) and value == int(value)
        try:
            number = float(value)
        except OverflowError:
            return False
        rounded = self.nearest(number)
        return isnan(rounded) == isnan(number) and isinf(rounded) == isinf(number)

    def pack(self, value: int | float) -> bytes:
        """The bytes of a value that the type has, as they lie in memory."""
        form = _FORMS.get(self.name)
        if form is not None:
            try:
                return form(value)
            except (struct.error, OverflowError):
                pass  # a whole number given as a float, or a float that becomes infinite
        return np.array(value).astype(self.numpy).tobytes()

    def nearest(self, value: float) -> float:
        """The number of a floating-point type nearest to `value`; what lies beyond its largest is infinite, or NaN."""
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.asarray(value).astype(self.numpy))

    def __str__(self) -> str:
        """The name."""
        return self.name


_FORMS = {name: struct.Struct(f"<{form}").pack for name, form in {
    "b1": "?", "s8": "b", "s16": "h", "s32": "i", "s64": "q", "u8": "B", "u16": "H", "u32": "I", "u64": "Q",
    "f32": "f", "f64": "d",
}.items()}  # fmt: skip
"""Python's own way to the bytes of a number, a tenth of numpy's time, for the types that it knows."""


def _rows() -> Mapping[str, DType]:
    table: list[tuple[str, Any]] = [
        ("b1", np.bool_),
        ("s8", np.int8), ("s16", np.int16), ("s32", np.int32), ("s64", np.int64),
        ("u8", np.uint8), ("u16", np.uint16), ("u32", np.uint32), ("u64", np.uint64),
        ("f16", np.float16), ("f32", np.float32), ("f64", np.float64),
        ("bf16", ml_dtypes.bfloat16),
        ("f8e4m3fn", ml_dtypes.float8_e4m3fn), ("f8e5m2", ml_dtypes.float8_e5m2), ("f8e4m3", ml_dtypes.float8_e4m3),
        ("f8e8m0fnu", ml_dtypes.float8_e8m0fnu), ("tf32", [("tfloat32", np.float32)]),
        ("x4f8e5m2", [("float8_e5m2_x4", np.uint32)]), ("x4f8e4m3fn", [("float8_e4m3fn_x4", np.uint32)]),
        ("x4f4e2m1fn", [("float4_e2m1fn_x4", np.uint16)]),
    ]  # fmt: skip
    return {name: DType(name, np.dtype(kind).itemsize * 8, np.dtype(kind)) for name, kind in table}


DTYPES: Mapping[str, DType] = _rows()
_BY_NUMPY = {row.numpy: row for row in DTYPES.values()}


def dtype_of(kind: object) -> DType:
    """The element type of a name (`"f32"`), a numpy or torch dtype or anything that numpy makes a dtype of.

    Raises:
        UnknownName: for a type that no kernel language here has (complex, object, strings).
    """
    if isinstance(kind, DType):
        return kind
    if isinstance(kind, str) and kind in DTYPES:
        return DTYPES[kind]
    try:
        named = str(kind).removeprefix("torch.") if type(kind).__module__ == "torch" else kind
        found = _BY_NUMPY.get(np.dtype(named))  # type: ignore[arg-type]  # whatever it is: numpy says
    except TypeError:
        found = None
    if found is None:
        raise UnknownName.of("dtype", str(kind), DTYPES)
    return found
