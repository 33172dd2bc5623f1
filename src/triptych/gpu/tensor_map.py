"""Tensor maps, the descriptors of TMA: what they hold, where it stands in their 128 bytes, and the hardware's limits.

The hardware's layout is not documented; this one is ours, and both executors read it by these tables. Axes are counted
from the innermost one, as in PTX. What an H200 does where manuals leave it open is recorded in
`tests/data/hardware/tensor_copies-h200.npz`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

BYTES = 128
ALIGNMENT = 64
"""Of a tensor map's address (CUDA driver API, `cuTensorMapEncodeTiled`)."""
SHARED_ALIGNMENT = 128
"""Of a box in shared memory (PTX manual, 9.7.9.27.1); an H200 takes no less where nothing is swizzled either."""
CHUNK_BYTES = 16
"""What swizzling moves about; a box's rows, and the place of the first one, are multiples of it. Of rows that reach
beyond the tensor's innermost axis, an H200 stores, and reduces into, all of the last chunk that lies partly inside."""
MOST_AXES = 5
MOST_BOX_BYTES = 228 << 10
"""The driver's limit (CUDA 13.0, on an H200)."""
STRIDE_LIMIT = 1 << 40
"""Strides are less, in bytes."""
ADDRESS_LIMIT = 1 << 57
"""Addresses are less (the driver of CUDA 13.0)."""

TILES, COLUMNS = 0x314D_5454, 0x3143_5454
"""The first word of a map of tiles, and of one of im2col's columns: a mark and a version. A map that a kernel makes of
zeros with `tensormap.replace` has 0 there, and is one of tiles."""


@dataclass(frozen=True, slots=True)
class ElementType:
    """A type of elements; its place in `ELEMENT_TYPES` is its number in `tensormap.replace` (PTX manual, 9.7.9.28)."""

    name: str
    """As PTX has it, but `f32.ftz` … for those with a modifier."""
    bytes: int
    number: str = ""
    """How an element is read: `s` as a signed integer, `f32` … as a float, as an unsigned integer if empty."""
    reductions: frozenset[str] = frozenset()
    """The operations of `cp.reduce.async.bulk.tensor` that an H200 takes for it; others are illegal there."""

    @property
    def is_float(self) -> bool:
        """Whether elements outside of the tensor may be NaN."""
        return self.number.startswith(("f", "b"))

    @property
    def flushes(self) -> bool:
        """Whether a reduction takes and gives subnormal singles as zeros."""
        return self.name.endswith(".ftz")

    @property
    def rounds_to_tf32(self) -> bool:
        """Whether a load rounds singles to the nearest number of 10 digits, ties to even, and makes NaN one NaN."""
        return self.name.startswith("tf32")


def _type(name: str, size: int, number: str, *reductions: str) -> ElementType:
    return ElementType(name, size, number, frozenset(" ".join(reductions).split()))


_BITWISE, _EXTREMES = "and or xor", "min max"
ELEMENT_TYPES: Sequence[ElementType] = (
    _type("u8", 1, ""),
    _type("u16", 2, ""),
    _type("u32", 4, "", "add inc dec", _EXTREMES, _BITWISE),
    _type("s32", 4, "s", "add", _EXTREMES, _BITWISE),
    _type("u64", 8, "", "add", _EXTREMES, _BITWISE),
    _type("s64", 8, "s", _EXTREMES, _BITWISE),
    _type("f16", 2, "f16", "add", _EXTREMES),
    _type("f32", 4, "f32", "add"),
    _type("f32.ftz", 4, "f32", "add"),
    _type("f64", 8, "f64", "add"),
    _type("bf16", 2, "bf16", "add", _EXTREMES),
    _type("tf32", 4, "f32", "add"),
    _type("tf32.ftz", 4, "f32", "add"),
)
"""Those of compute capability 9.0."""
NUMBER_OF_TYPE: Mapping[str, int] = {one.name: number for number, one in enumerate(ELEMENT_TYPES)}

SWIZZLE_SPANS = (0, 32, 64, 128)
"""By swizzle mode: the bytes within which chunks are exchanged, which are also the bytes from one row of a box to the
next; 0: rows lie one behind the other."""
SWIZZLE_SHIFT = 7
"""A chunk's number within the span is XORed with the address from this bit on: with as many bits as it has itself."""
FILLS: Sequence[bytes] = (b"\x00\x00", b"\xf7\x7f")
"""By fill mode: what elements outside of the tensor are, again and again; the second is NaN of all floating types (an
H200's)."""
TF32_NAN = 0x7FFF_E000
"""What a load of tf32 makes of NaN (an H200)."""
SINGLE_NAN = 0x7FFF_FFFF
"""What a reduction of singles makes where the sum is none (an H200)."""

SWIZZLES = ("none", "32B", "64B", "128B")
"""The swizzle modes' names, by number."""
FILL_NAMES = ("zero", "nan")


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a map: `count` numbers of `bytes` bytes each, unsigned but for corners."""

    offset: int
    bytes: int
    count: int = 1


FIELDS: Mapping[str, Field] = {
    "mark": Field(0, 4),
    "rank": Field(4, 4),  # less one
    "global_address": Field(8, 8),
    "global_stride": Field(16, 8, MOST_AXES - 1),  # bytes, of the axes from the second on
    "global_dim": Field(48, 4, MOST_AXES),
    "box_dim": Field(68, 4, MOST_AXES),  # of columns: channels, pixels
    "element_stride": Field(88, 4, MOST_AXES),
    "elemtype": Field(108, 4),
    "interleave_layout": Field(112, 4),
    "swizzle_mode": Field(116, 4),
    "swizzle_atomicity": Field(120, 4),
    "fill_mode": Field(124, 4),
}
"""By the names that `tensormap.replace` has for them. A map of columns keeps the corners of its bounding box where one
of tiles has the box along the third axis and on: `LOWER` and `UPPER`."""
LOWER, UPPER = Field(76, 2, 3), Field(82, 2, 3)
"""The offsets of the corners along the axes from the second on, 16 bits each, signed."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What a number of a map must be, else the map cannot be used."""

    field: str
    index: int
    least: int
    most: int
    multiple: int = 1
    axes: int = 1
    """The limit holds for tensors of at least so many axes."""
    columns: bool | None = None
    """Whether it is for maps of columns alone, or of tiles alone; None: for both."""


def _limits() -> Iterator[Limit]:
    yield Limit("elemtype", 0, 0, len(ELEMENT_TYPES) - 1)
    yield Limit("interleave_layout", 0, 0, 0)
    yield Limit("swizzle_mode", 0, 0, len(SWIZZLE_SPANS) - 1)
    yield Limit("swizzle_atomicity", 0, 0, 0)
    yield Limit("fill_mode", 0, 0, len(FILLS) - 1)
    yield Limit("global_address", 0, 0, ADDRESS_LIMIT - 1, multiple=CHUNK_BYTES)
    for axis in range(MOST_AXES):
        yield Limit("global_dim", axis, 1, (1 << 32) - 1, axes=axis + 1)
        yield Limit("box_dim", axis, 1, 256, axes=axis + 1, columns=False)
        yield Limit("element_stride", axis, 1, 8, axes=axis + 1)
    yield Limit("box_dim", 0, 1, 256, columns=True)
    yield Limit("box_dim", 1, 1, 1024, columns=True)
    for axis in range(MOST_AXES - 1):
        yield Limit("global_stride", axis, 0, STRIDE_LIMIT - 1, multiple=CHUNK_BYTES, axes=axis + 2)


LIMITS: Sequence[Limit] = tuple(_limits())


class TensorMapFault(IntEnum):
    """Why a copy with a tensor map cannot be; from `FIRST_LIMIT` on, the number of a row of `LIMITS`."""

    NO_MAP = 1
    """The 128 bytes begin with none of the marks."""
    MODE = 2
    """A copy of tiles with a map of columns, or the other way round."""
    RANK = 3
    ROW_BYTES = 4
    """A box's rows are no multiple of `CHUNK_BYTES`."""
    SPAN = 5
    """A box's rows are longer than the swizzle's span."""
    BOX_BYTES = 6
    PLACE = 7
    """The first coordinate is no multiple of `CHUNK_BYTES`."""
    OUTSIDE = 8
    """A column begins outside of its bounding box."""
    NEGATIVE = 9
    """A store, or a reduction, at a negative coordinate."""
    OPERATION = 10
    """A reduction that there is not for the elements' type."""
    FILL = 11
    """NaN for elements that are no floats."""
    FIRST_LIMIT = 64


@dataclass(frozen=True, slots=True)
class TensorCopy:
    """What an instruction does with a tensor map."""

    operation: str
    """`load`, `store`, or that of a reduction."""
    rank: int
    columns: bool
    """Whether it copies columns of pixels (im2col)."""
    multicast: bool = False
    """Whether it loads into several blocks of the cluster."""


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A tensor map taken apart; axes are counted from the innermost one."""

    element_type: ElementType
    address: int
    """Of the first element, on the device."""
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """Bytes, of the axes from the second on."""
    box: tuple[int, ...]
    """Elements along the axes; of columns: channels and pixels."""
    element_strides: tuple[int, ...]
    swizzle: int = 0
    fill: int = 0
    lower: tuple[int, ...] = ()
    """The corners of the bounding box of columns, along the axes between the first and the last; empty: tiles."""
    upper: tuple[int, ...] = ()

    def pack(self) -> bytes:
        """The 128 bytes."""
        data = bytearray(BYTES)
        _put(data, FIELDS["mark"], [COLUMNS if self.lower else TILES])
        values: Mapping[str, Sequence[int]] = {
            "rank": [len(self.shape) - 1], "global_address": [self.address], "global_stride": self.strides,
            "global_dim": [min(extent, (1 << 32) - 1) for extent in self.shape],  # no coordinate reaches so far
            "box_dim": self.box, "element_stride": self.element_strides,
            "elemtype": [NUMBER_OF_TYPE[self.element_type.name]], "swizzle_mode": [self.swizzle],
            "fill_mode": [self.fill],
        }  # fmt: skip
        for name, numbers in values.items():
            _put(data, FIELDS[name], numbers)
        for field, corner in ((LOWER, self.lower), (UPPER, self.upper)):
            _put(data, field, [number & 0xFFFF for number in corner])
        return bytes(data)


_CODES = {2: "H", 4: "I", 8: "Q"}


def _put(data: bytearray, field: Field, numbers: Sequence[int]) -> None:
    struct.pack_into(f"<{len(numbers)}{_CODES[field.bytes]}", data, field.offset, *numbers)


def number_in(data: bytes, field: Field, index: int = 0) -> int:
    """A number of a map's bytes."""
    return struct.unpack_from(f"<{_CODES[field.bytes]}", data, field.offset + field.bytes * index)[0]


def corner_in(data: bytes, field: Field, index: int) -> int:
    """An offset of a corner."""
    return (number_in(data, field, index) ^ 0x8000) - 0x8000


def name_of(field: str, index: int) -> str:
    """How messages call a number of a map: as `cuTensorMapEncodeTiled` and `tensormap.replace` do."""
    return f"{field}[{index}]" if FIELDS[field].count > 1 else field
