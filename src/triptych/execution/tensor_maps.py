"""Tensor maps for kernels that copy boxes of arrays by TMA: what `cuTensorMapEncodeTiled` and `…Im2col` make.

The bytes are this machine's own (`gpu/tensor_map.py`), as those of hardware are the hardware's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import index
from typing import SupportsIndex

from triptych.core.errors import ArgumentError, UnsupportedFeature
from triptych.core.handles import Handle
from triptych.core.plan import Struct
from triptych.execution.memory import memory
from triptych.gpu.tensor_map import (
    ADDRESS_LIMIT,
    CHUNK_BYTES,
    ELEMENT_TYPES,
    FIELDS,
    FILL_NAMES,
    MOST_AXES,
    MOST_BOX_BYTES,
    NUMBER_OF_TYPE,
    STRIDE_LIMIT,
    SWIZZLE_SPANS,
    SWIZZLES,
    Descriptor,
    ElementType,
)

_TYPE_OF_DTYPE: Mapping[str, str] = {
    "b1": "u8", "s8": "u8", "f8e4m3fn": "u8", "f8e5m2": "u8", "f8e4m3": "u8", "s16": "u16",
    **{name: name for name in ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16")},
}  # fmt: skip
"""The type of a map's elements for those of an array."""
_LATER_SWIZZLES = ("128B_atom_32B", "128B_atom_32B_flip_8B", "128B_atom_64B")
_INTERLEAVES = ("none", "16B", "32B")
_PROMOTIONS = ("none", "64B", "128B", "256B")
_CORNERS = {3: (-32768, 32767), 4: (-128, 127), 5: (-16, 15)}
"""By axes of the tensor: the least and the greatest offset of a corner."""


@dataclass(frozen=True, slots=True)
class TensorMap:
    """A tensor map of an array, to be passed for a kernel's `const __grid_constant__ CUtensorMap` parameter.

    It keeps the array alive. Its bytes, `bytes(map)`, may be stored in an array for kernels that take a pointer to
    maps; those hold the array's device address, and keep nothing alive.
    """

    array: object = field(repr=False)
    handle: Handle = field(repr=False)
    descriptor: Descriptor

    @property
    def argument(self) -> Struct:
        """What a launch holds: the bytes, and the array's handle where its address belongs."""
        nowhere = replace(self.descriptor, address=0)
        return Struct(nowhere.pack(), ((FIELDS["global_address"].offset, self.handle),))

    def __bytes__(self) -> bytes:
        """The 128 bytes."""
        return self.argument.packed


def tensor_map(
    array: object,
    box: Sequence[SupportsIndex],
    *,
    swizzle: str = "none",
    fill: str = "zero",
    element_strides: Sequence[SupportsIndex] | None = None,
    dtype: str | None = None,
    interleave: str = "none",
    l2_promotion: str = "none",
) -> TensorMap:
    """A tensor map of boxes of an array, as `cuTensorMapEncodeTiled` makes one.

    Axes are those of the array, the last being the innermost: a kernel's coordinates have the opposite order.

    Args:
        array: what `kernel(…)` takes for a pointer, of 1 to 5 axes, dense along the last one; views are taken.
        box: elements of a box along each axis, 1 to 256; the last one's bytes must be a multiple of 16.
        swizzle: `none`, `32B`, `64B` or `128B`: within how many bytes chunks of 16 bytes are exchanged.
        fill: what elements of a box outside of the array are: `zero`, or `nan` of floating types.
        element_strides: every how many elements one is taken along each axis, 1 to 8; not along the last one.
        dtype: the elements' type where it is not the array's: `tf32` rounds singles on their way, say.
        interleave: `none`; other layouts are not supported.
        l2_promotion: `none`, `64B`, `128B` or `256B`: a hint, without an effect here.

    Raises:
        ArgumentError: naming the argument, its value and the limit.
        UnsupportedFeature: for what this machine does not have.
    """
    handle = memory().bind(array)
    found = encode_tensor_map(
        handle.data_ptr(), dtype or _type_of(handle), handle.shape, handle.strides, box, element_strides,
        swizzle=swizzle, fill=fill, interleave=interleave, l2_promotion=l2_promotion,
    )  # fmt: skip
    return TensorMap(array, handle, found)


def im2col_map(
    array: object,
    pixels: SupportsIndex,
    channels: SupportsIndex,
    lower: Sequence[SupportsIndex],
    upper: Sequence[SupportsIndex],
    *,
    swizzle: str = "none",
    fill: str = "zero",
    element_strides: Sequence[SupportsIndex] | None = None,
    dtype: str | None = None,
    interleave: str = "none",
    l2_promotion: str = "none",
) -> TensorMap:
    """A tensor map of columns of pixels of images, for convolutions, as `cuTensorMapEncodeIm2col` makes one.

    Args:
        array: images of 1 to 3 axes of pixels: `(N, W, C)`, `(N, H, W, C)` or `(N, D, H, W, C)`.
        pixels: of a column, 1 to 1024.
        channels: of each pixel, 1 to 256; their bytes must be a multiple of 16.
        lower: by axis of pixels, where columns may begin: pixels from the first one on, before it if negative.
        upper: where they may end, from the last pixel on: -2 for filters of three pixels without padding.
        swizzle: as for `tensor_map`; so are the rest.
        fill: what pixels and channels outside of the array are.
        element_strides: the convolution's, by axis.
        dtype: the elements' type where it is not the array's.
        interleave: `none`.
        l2_promotion: a hint.

    Raises:
        ArgumentError: naming the argument, its value and the limit.
        UnsupportedFeature: for what this machine does not have.
    """
    handle = memory().bind(array)
    found = encode_tensor_map(
        handle.data_ptr(), dtype or _type_of(handle), handle.shape, handle.strides, (pixels, channels),
        element_strides, swizzle=swizzle, fill=fill, interleave=interleave, l2_promotion=l2_promotion,
        corners=(lower, upper),
    )  # fmt: skip
    return TensorMap(array, handle, found)


def _type_of(handle: Handle) -> str:
    name = handle.dtype.name
    if name not in _TYPE_OF_DTYPE:
        raise ArgumentError(f"tensor map: dtype is {name}; expected {_either(sorted(_TYPE_OF_DTYPE))}")
    return _TYPE_OF_DTYPE[name]


def encode_tensor_map(
    address: int,
    dtype: str,
    shape: Sequence[SupportsIndex],
    strides: Sequence[SupportsIndex],
    box: Sequence[SupportsIndex],
    element_strides: Sequence[SupportsIndex] | None = None,
    *,
    swizzle: str = "none",
    fill: str = "zero",
    interleave: str = "none",
    l2_promotion: str = "none",
    corners: tuple[Sequence[SupportsIndex], Sequence[SupportsIndex]] | None = None,
) -> Descriptor:
    """The descriptor of a tensor at a device address; all arguments are checked as the driver checks them.

    Args:
        address: of the first element.
        dtype: one of `gpu.tensor_map.ELEMENT_TYPES` by name.
        shape: elements, the innermost axis last; so are the rest.
        strides: bytes, of all axes; the last must be an element's.
        box: elements of a box; with corners, pixels and channels of a column.
        element_strides: all 1 where None.
        swizzle: one of `gpu.tensor_map.SWIZZLES`.
        fill: one of `gpu.tensor_map.FILL_NAMES`.
        interleave: `none`.
        l2_promotion: a hint.
        corners: the lower and the upper one of im2col's bounding box, along the axes but the first and the last.

    Raises:
        ArgumentError: naming the argument, its value and the limit.
        UnsupportedFeature: for what this machine does not have.
    """
    one = _element_type(dtype)
    _one_of("swizzle", swizzle, SWIZZLES, later=_LATER_SWIZZLES)
    _one_of("interleave", interleave, _INTERLEAVES)
    _one_of("l2_promotion", l2_promotion, _PROMOTIONS)
    _one_of("fill", fill, FILL_NAMES)
    if interleave != "none":
        raise UnsupportedFeature(f"tensor map: interleave is {interleave}; only tensors that are not are supported")
    axes = len(shape)
    least = 1 if corners is None else 3
    if not least <= axes <= MOST_AXES:
        raise ArgumentError(f"tensor map: the array has {axes} axes; expected {least} to {MOST_AXES}")
    steps = _numbers("element_strides", [1] * axes if element_strides is None else element_strides, axes, 1, 8)
    extents = _numbers("shape", shape, axes, 1, 1 << 32)
    pitches = _strides(strides, axes, one)
    _within("address", address, 0, ADDRESS_LIMIT - 1, CHUNK_BYTES)
    if fill == "nan" and not one.is_float:
        raise ArgumentError(f"tensor map: fill is nan; elements of {one.name} can only be filled with zero")
    found = Descriptor(
        one, address, extents[::-1], pitches[-2::-1], (), steps[::-1], SWIZZLES.index(swizzle), FILL_NAMES.index(fill)
    )  # fmt: skip
    return _with_box(found, box) if corners is None else _with_column(found, box, corners)


def _with_box(found: Descriptor, box: Sequence[SupportsIndex]) -> Descriptor:
    extents = _numbers("box", box, len(found.shape), 1, 256)
    rows = 1
    for extent, step in zip(extents[:-1], found.element_strides[:0:-1], strict=True):
        rows *= -(-extent // step)
    _check_row(found, f"box[{len(extents) - 1}]", extents[-1], rows)
    return replace(found, box=extents[::-1])


def _with_column(
    found: Descriptor, column: Sequence[SupportsIndex], corners: tuple[Sequence[SupportsIndex], Sequence[SupportsIndex]]
) -> Descriptor:
    pixels, channels = map(index, column)
    _within("pixels", pixels, 1, 1024)
    _within("channels", channels, 1, 256)
    axes = len(found.shape) - 2
    lower, upper = (
        _numbers(name, corner, axes, *_CORNERS[len(found.shape)])
        for name, corner in zip(("lower", "upper"), corners, strict=True)
    )
    for axis, (low, high, extent) in enumerate(zip(lower, upper, found.shape[-2:0:-1], strict=True)):
        if extent + high - low < 1:
            raise ArgumentError(
                f"tensor map: lower[{axis}] is {low} and upper[{axis}] is {high}; of {extent} pixels nothing is left"
            )
    _check_row(found, "channels", channels, pixels)
    return replace(found, box=(channels, pixels), lower=lower[::-1], upper=upper[::-1])


def _check_row(found: Descriptor, name: str, extent: int, rows: int) -> None:
    """A box's rows: whole chunks, within the swizzle's span, and not more of them than shared memory holds."""
    size, span = extent * found.element_type.bytes, SWIZZLE_SPANS[found.swizzle]
    what = f"tensor map: {name} is {extent}, {size} bytes of {found.element_type.name}"
    if size % CHUNK_BYTES:
        raise ArgumentError(f"{what}; expected a multiple of {CHUNK_BYTES} bytes")
    if span and size > span:
        raise ArgumentError(f"{what}; with swizzle {SWIZZLES[found.swizzle]} at most {span} bytes")
    if rows * size > MOST_BOX_BYTES:
        raise ArgumentError(f"{what}: a box has {rows * size} bytes; expected at most {MOST_BOX_BYTES}")


def _element_type(name: str) -> ElementType:
    if name not in NUMBER_OF_TYPE:
        raise ArgumentError(f"tensor map: dtype is {name}; expected {_either(NUMBER_OF_TYPE)}")
    return ELEMENT_TYPES[NUMBER_OF_TYPE[name]]


def _either(names: Sequence[str] | Mapping[str, object]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def _one_of(argument: str, value: str, known: Sequence[str], *, later: Sequence[str] = ()) -> None:
    if value in later:
        raise UnsupportedFeature(f"tensor map: {argument} {value} needs sm_100 or higher, which is not supported")
    if value not in known:
        raise ArgumentError(f"tensor map: {argument} is {value!r}; expected {_either(known)}")


def _within(name: str, value: int, least: int, most: int, multiple: int = 1) -> None:
    if not least <= value <= most or value % multiple:
        limit = f"{least} to {most}" + (f", a multiple of {multiple}" if multiple > 1 else "")
        raise ArgumentError(f"tensor map: {name} is {value}; expected {limit}")


def _numbers(name: str, values: Sequence[SupportsIndex], count: int, least: int, most: int) -> tuple[int, ...]:
    if len(values) != count:
        raise ArgumentError(f"tensor map: {name} has {len(values)} numbers; expected {count}, one for each axis")
    try:
        numbers = tuple(index(value) for value in values)
    except TypeError:
        raise ArgumentError(f"tensor map: {name} is {tuple(values)}; expected whole numbers") from None
    for place, number in enumerate(numbers):
        _within(f"{name}[{place}]", number, least, most)
    return numbers


def _strides(strides: Sequence[SupportsIndex], axes: int, one: ElementType) -> tuple[int, ...]:
    if len(strides) != axes:
        raise ArgumentError(f"tensor map: strides has {len(strides)} numbers; expected {axes}, one for each axis")
    numbers = tuple(index(value) for value in strides)
    for place, number in enumerate(numbers[:-1]):
        _within(f"strides[{place}]", number, 0, STRIDE_LIMIT - 1, CHUNK_BYTES)
    if numbers[-1] != one.bytes:
        raise ArgumentError(
            f"tensor map: strides[{axes - 1}] is {numbers[-1]}; expected {one.bytes}: along the last axis elements of"
            f" {one.name} must lie side by side"
        )
    return numbers
