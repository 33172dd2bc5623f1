"""Tensor copies whose bytes are recorded on a GPU: tensor maps, boxes of them, and the kernel that copies one.

`benchmarks/hardware/record_tensor_copies.py` records them.

Axes are in the order of arrays, the innermost last; `coordinates` and `offsets` are in the order of PTX, the innermost
first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

SHARED_BYTES = 32768
"""Of the kernel's tile."""
POISON = 0xA5
ELEMENT_BYTES = {
    "u8": 1, "u16": 2, "u32": 4, "s32": 4, "u64": 8, "s64": 8, "f16": 2, "f32": 4, "f64": 8, "bf16": 2,
    "f32.ftz": 4, "tf32": 4, "tf32.ftz": 4,
}  # fmt: skip
"""Of the element types, in the order of `CUtensorMapDataType`."""
SWIZZLES = ("none", "32B", "64B", "128B", "128B_atom_32B", "128B_atom_32B_flip_8B", "128B_atom_64B")
INTERLEAVES = ("none", "16B", "32B")
FILLS = ("zero", "nan")
SPECIAL = (0x00000001, 0x80000001, 0x007FFFFF, 0x3F800001, 0x3F800FFF, 0x3F801000, 0x3F801001, 0x3F803000, 0x7F800000,
           0xFF800000, 0x7FC00000, 0x7F800001, 0xFFFFFFFF, 0x7F7FFFFF, 0xC2FDDDDD, 0x00000000)  # fmt: skip
"""Singles that a conversion may change."""
SUBNORMAL = (0x00400000, 0x80400000, 0x00402000, 0x00401000, 0x80603000, 0x00000FFF, 0x00001001, 0x007FEFFF, 0x800000,
             0x80800001, 0x00800FFF, 0x01000000, 0x80001000, 0x00200000, 0x3F800FFF, 0x00000001)  # fmt: skip
"""Singles below the normal ones, and some above."""
_SINGLES = {"special": SPECIAL, "subnormal": SUBNORMAL}


@dataclass(frozen=True, slots=True)
class Map:
    """What a tensor map is made of."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """Bytes, of all axes but the last."""
    box: tuple[int, ...]
    """Of im2col: pixels and channels."""
    element_strides: tuple[int, ...]
    interleave: str = "none"
    swizzle: str = "none"
    fill: str = "zero"
    lower: tuple[int, ...] = ()
    """The corners of im2col's bounding box, as axes go; empty: tiles."""
    upper: tuple[int, ...] = ()

    @property
    def is_im2col(self) -> bool:
        """Whether it describes columns of pixels."""
        return bool(self.lower)

    @property
    def counts(self) -> tuple[int, ...]:
        """The elements of a box along its axes."""
        if self.is_im2col:
            return self.box
        steps = (*self.element_strides[:-1], 1 if self.interleave == "none" else self.element_strides[-1])
        return tuple(-(-extent // step) for extent, step in zip(self.box, steps, strict=True))

    @property
    def box_bytes(self) -> int:
        """The bytes of a box."""
        return prod(self.counts) * ELEMENT_BYTES[self.dtype]

    @property
    def tensor_bytes(self) -> int:
        """The bytes of the tensor's memory."""
        return self.strides[0] * self.shape[0] if self.strides else self.shape[0] * ELEMENT_BYTES[self.dtype]


@dataclass(frozen=True, slots=True)
class Case:
    """One copy: `kind` is `load`, `store` or a reduction's operation."""

    name: str
    kind: str
    map: Map
    coordinates: tuple[int, ...]
    offsets: tuple[int, ...] = ()
    """Of im2col's loads."""
    base: int = 0
    """Where in the kernel's tile, in bytes."""
    content: str = "ramp"
    expected: int = 0
    """The bytes that a load's barrier waits for; 0: those of the box."""

    @property
    def expected_bytes(self) -> int:
        """The bytes that a load's barrier waits for."""
        return self.expected or self.map.box_bytes

    @property
    def image_bytes(self) -> int:
        """The bytes of the tile that are looked at."""
        rows = prod(self.map.counts[:-1])
        span = {"none": 0, "32B": 32, "64B": 64}.get(self.map.swizzle, 128)
        size = max(self.map.box_bytes, rows * span) + self.base
        return min(-(-size // 1024) * 1024 + 1024, SHARED_BYTES)

    def as_json(self) -> dict[str, object]:
        """For the record."""
        return asdict(self)

    def tensor(self) -> NDArray[np.uint8]:
        """The tensor's memory before the copy."""
        return _content(self.content, self.map.dtype, self.map.tensor_bytes)

    def image(self) -> NDArray[np.uint8]:
        """The kernel's tile before the copy."""
        if self.kind == "load":
            return np.full(self.image_bytes, POISON, np.uint8)
        return _content(self.content, self.map.dtype, self.image_bytes, first=7)


def _content(how: str, dtype: str, size: int, first: int = 0) -> NDArray[np.uint8]:
    """`ramp`: words of 16 bits that count up; `small`: elements from 0 to 15; else one of `_SINGLES`."""
    if how == "ramp":
        return (np.arange(first, first + -(-size // 2)) & 0xFFFF).astype("<u2").view(np.uint8)[:size].copy()
    if how in _SINGLES:
        return np.roll(np.resize(np.array(_SINGLES[how], "<u4"), size // 4), first).view(np.uint8).copy()
    numbers = np.arange(first, first + size // ELEMENT_BYTES[dtype]) * 5 % 16
    if dtype == "bf16":
        return (numbers.astype("<f4").view("<u4") >> 16).astype("<u2").view(np.uint8).copy()
    kind = {"s": "i", "t": "f"}.get(dtype[0], dtype[0])
    return numbers.astype(f"<{kind}{ELEMENT_BYTES[dtype]}").view(np.uint8).copy()


def tile(dtype: str, shape: tuple[int, ...], box: tuple[int, ...], **more: Any) -> Map:  # noqa: ANN401
    """A dense tensor but for `row_bytes`, its innermost stride."""
    size = ELEMENT_BYTES[dtype]
    row = more.pop("row_bytes", None) or -(-shape[-1] * size // 16) * 16
    strides = [row]
    for extent in shape[-2:0:-1]:
        strides.insert(0, strides[0] * extent)
    strides = strides if len(shape) > 1 else []
    steps = more.pop("element_strides", (1,) * len(shape))
    return Map(dtype, shape, tuple(strides), box, steps, **more)


def _swizzles() -> Iterator[Case]:
    for swizzle in SWIZZLES[:4]:
        for inner in (16, 32, 48, 64, 96, 128):
            span = {"none": 128, "32B": 32, "64B": 64}.get(swizzle, 128)
            if inner <= span:
                one = tile("u16", (40, 96), (20, inner // 2), swizzle=swizzle)
                yield Case(f"{swizzle} of {inner} bytes", "load", one, (8, 3))
        one = tile("u16", (40, 96), (20, 16 if swizzle == "32B" else 32), swizzle=swizzle)
        for base in (128, 256, 384, 512):
            yield Case(f"{swizzle} at {base}", "load", one, (8, 3), base=base)
        three = tile("u32", (5, 9, 24), (3, 5, 8), swizzle=swizzle)
        yield Case(f"{swizzle}, three axes", "load", three, (4, 2, 1))
    for inner in (192, 256, 512):
        yield Case(f"none of {inner} bytes", "load", tile("u16", (9, 300), (5, inner // 2)), (8, 3))


def _bounds() -> Iterator[Case]:
    for dtype in ELEMENT_BYTES:
        for fill in FILLS if dtype[0] in "fbt" else FILLS[:1]:
            one = tile(dtype, (7, 20), (9, 32), fill=fill)
            yield Case(f"{dtype}, {fill}, around the end", "load", one, (16, 2), content="small")
            yield Case(f"{dtype}, {fill}, before the start", "load", one, (-16, -2), content="small")
    swizzled = tile("u16", (7, 37), (8, 32), swizzle="64B")
    for x, y in ((-8, -1), (24, 3), (40, 0), (0, 9), (-40, -40), (8, 0), (-2147483648, 2147483647)):
        yield Case(f"swizzled at {x}, {y}", "load", swizzled, (x, y))
    yield Case("rows that lie apart", "load", tile("u16", (7, 20), (7, 32), row_bytes=96), (0, 0))


def _ranks() -> Iterator[Case]:
    yield Case("one axis", "load", tile("u32", (100,), (32,)), (80,))
    yield Case("four axes", "load", tile("u16", (3, 4, 5, 24), (2, 3, 4, 16)), (8, -1, 2, 1))
    yield Case("five axes", "load", tile("u16", (2, 3, 4, 5, 24), (2, 2, 3, 2, 16), swizzle="32B"), (8, 1, 2, -1, 0))
    for steps in ((1, 2), (2, 1), (3, 1), (3, 2), (8, 1)):
        for swizzle in ("none", "32B"):
            one = tile("u16", (30, 40), (12, 16), element_strides=steps, swizzle=swizzle)
            yield Case(f"steps {steps}, {swizzle}", "load", one, (8, -3))
    three = tile("u16", (9, 11, 24), (5, 7, 8), element_strides=(2, 3, 1))
    yield Case("steps of three axes", "load", three, (8, -2, 5))


def _conversions() -> Iterator[Case]:
    for dtype in ("f32", "f32.ftz", "tf32", "tf32.ftz", "u32", "s32", "f16", "bf16", "f64"):
        one = tile(dtype, (4, 16 * 4 // ELEMENT_BYTES[dtype]), (4, 16 * 4 // ELEMENT_BYTES[dtype]))
        yield Case(f"{dtype}, special values", "load", one, (0, 0), content="special")
        yield Case(f"{dtype}, special values stored", "store", one, (0, 0), content="special")
    for dtype in ("f32", "f32.ftz", "tf32", "tf32.ftz"):
        one = tile(dtype, (4, 16), (4, 16))
        for content in _SINGLES:
            yield Case(f"{dtype}, {content} values added", "add", one, (0, 0), content=content)
        yield Case(f"{dtype}, subnormal values", "load", one, (0, 0), content="subnormal")
    for dtype in ("f16", "bf16"):
        for operation in ("add", "min", "max"):
            one = tile(dtype, (4, 32), (4, 32))
            yield Case(f"{operation} of {dtype}, ramp", operation, one, (0, 0))
            yield Case(f"{operation} of {dtype}, special", operation, one, (0, 0), content="special")


def _im2col(
    shape: tuple[int, ...],
    pixels: int,
    channels: int,
    lower: tuple[int, ...],
    upper: tuple[int, ...],
    **more: Any,  # noqa: ANN401
) -> Map:
    one = tile(more.pop("dtype", "u16"), shape, (pixels, channels), **more)
    return replace(one, lower=lower, upper=upper)


def _columns() -> Iterator[Case]:
    image = (2, 5, 7, 16)
    padded = _im2col(image, 24, 8, (-1, -1), (-1, -1))
    for offsets in ((0, 0), (1, 0), (2, 1), (2, 2)):
        yield Case(f"3 × 3 at {offsets}", "load", padded, (0, -1, -1, 0), offsets)
    yield Case("3 × 3 from the middle", "load", padded, (8, 3, 2, 0), (1, 1))
    yield Case("3 × 3 beyond the last image", "load", padded, (0, 4, 3, 1), (0, 0))
    one_more = _im2col((2, 5, 7, 20), 24, 8, (-1, -1), (-1, -1), row_bytes=48)
    yield Case("3 × 3, channels beyond the end", "load", one_more, (16, -1, -1, 0), (0, 0))
    valid = _im2col(image, 16, 16, (0, 0), (-2, -2), swizzle="32B")
    yield Case("without padding", "load", valid, (0, 0, 0, 0), (2, 1))
    yield Case("without padding, second image", "load", valid, (0, 3, 1, 1), (0, 2))
    for steps in ((1, 1, 2, 1), (1, 2, 1, 1), (1, 2, 2, 1), (1, 1, 3, 1)):
        stepped = _im2col(image, 20, 8, (-1, -1), (-1, -1), element_strides=steps)
        yield Case(f"steps {steps}", "load", stepped, (0, -1, -1, 0), (0, 0))
        yield Case(f"steps {steps} at an offset", "load", stepped, (0, -1, -1, 0), (1, 2))
        yield Case(f"steps {steps} from the second", "load", stepped, (0, 0, -1, 0), (0, 0))
    line = _im2col((3, 11, 8), 24, 8, (-2,), (1,))
    yield Case("one axis of pixels", "load", line, (0, -2, 0), (1,))
    volume = _im2col((2, 3, 4, 5, 8), 64, 8, (-1, 0, -1), (-1, 0, 1))
    yield Case("three axes of pixels", "load", volume, (0, -1, 0, -1, 0), (1, 0, 2))
    wide = _im2col(image, 20, 64, (0, 0), (0, 0), dtype="u16", swizzle="128B")
    yield Case("more channels than there are", "load", wide, (0, 2, 1, 0), (0, 0))
    nan = _im2col(image, 24, 8, (-1, -1), (-1, -1), dtype="f16", fill="nan")
    yield Case("filled with NaN", "load", nan, (0, -1, -1, 0), (0, 0), content="small")
    yield Case("store of columns", "store", valid, (0, 1, 1, 0))
    open_box = _im2col((2, 5, 7, 20), 24, 8, (0, 0), (0, 0), row_bytes=48)
    yield Case("store of columns beyond the last image", "store", open_box, (8, 5, 3, 1))
    yield Case("store of columns beyond the last channel", "store", open_box, (16, 5, 3, 0))


def _stores() -> Iterator[Case]:
    for swizzle in SWIZZLES[:4]:
        one = tile("u16", (20, 40), (12, 16 if swizzle == "32B" else 32), swizzle=swizzle)
        yield Case(f"store, {swizzle}", "store", one, (8, 3))
        yield Case(f"store over the edge, {swizzle}", "store", one, (16, 13))
    stepped = tile("u16", (20, 40), (12, 16), element_strides=(3, 1))
    yield Case("store by steps", "store", stepped, (8, 2))
    yield Case("store by steps over the edge", "store", stepped, (32, 15))
    for dtype in ("u8", "u16", "u32", "u64"):
        odd = tile(dtype, (20, 37), (12, 16))
        yield Case(f"store of {dtype} over an odd edge", "store", odd, (32, 13))
        if dtype in ("u32", "u64"):
            yield Case(f"add of {dtype} over an odd edge", "add", odd, (32, 13), content="small")
    half = tile("u16", (20, 64), (12, 16), swizzle="128B")
    yield Case("store of a part of the span", "store", half, (8, 3))
    operations = {
        "add": "u32 s32 u64 f16 f32 bf16", "min": "u32 s32 u64 s64 f16 bf16", "max": "u32 s32 u64 s64 f16 bf16",
        "inc": "u32", "dec": "u32", "and": "u32 u64", "or": "u32 u64", "xor": "u32 u64",
    }  # fmt: skip
    for operation, dtypes in operations.items():
        for dtype in dtypes.split():
            one = tile(dtype, (6, 20), (5, 16), swizzle="none")
            yield Case(f"{operation} of {dtype}", operation, one, (8, 2), content="small")


def _doubtful() -> Iterator[Case]:
    """What may stop the device."""
    one = tile("u16", (40, 96), (20, 16))
    yield Case("at a multiple of 64 bytes", "load", one, (8, 3), base=64)
    yield Case("from a column within 16 bytes", "load", one, (4, 3))
    yield Case("to a column within 16 bytes", "store", one, (4, 3))
    padded = _im2col((2, 5, 7, 16), 24, 8, (-1, -1), (-1, -1))
    yield Case("3 × 3 from before the box", "load", padded, (0, -3, -1, 0), (0, 0))
    yield Case("3 × 3 from behind the box", "load", padded, (0, 6, -1, 0), (0, 0))
    yield Case("3 × 3 from above the box", "load", padded, (0, 0, -2, 0), (0, 0))
    yield Case("3 × 3 from before the images", "load", padded, (0, -1, -1, -1), (0, 0))
    yield Case("3 × 3 from behind the images", "load", padded, (0, -1, -1, 2), (0, 0))
    yield Case("store of padded columns", "store", padded, (0, 0, 0, 0))
    yield Case("store before the edge", "store", one, (8, -1))
    yield Case("store of columns from before", "store", padded, (0, -1, 0, 0))
    yield Case("store of columns from above", "store", padded, (0, 0, -1, 0))
    for operation, dtype in (("add", "f64"), ("add", "s64"), ("min", "f32"), ("and", "s32"), ("add", "u16"),
                             ("inc", "s32"), ("add", "f32.ftz"), ("add", "u8"), ("or", "f32"), ("max", "u16"),
                             ("xor", "u16"), ("add", "tf32"), ("dec", "u64")):  # fmt: skip
        one = tile(dtype, (6, 32), (5, 16))
        yield Case(f"{operation} of {dtype}, doubtful", operation, one, (16, 2), content="small")


def cases() -> list[Case]:
    """All copies, those that may stop the device last."""
    parts = (_swizzles, _bounds, _ranks, _conversions, _columns, _stores, _doubtful)
    return [case for part in parts for case in part()]


# --- The kernel -------------------------------------------------------------------------------------------------------

_HEAD = """.version 8.0
.target sm_90a
.address_size 64

.visible .entry copy(
    .param .align 64 .b8 map[128], .param .u64 tile_before, .param .u64 tile_after, .param .u32 image_bytes,
    .param .u32 target, .param .u32 expected,
    .param .u32 x0, .param .u32 x1, .param .u32 x2, .param .u32 x3, .param .u32 x4,
    .param .u16 offset0, .param .u16 offset1, .param .u16 offset2, .param .u64 tensor
) {
    .reg .pred %p<5>;
    .reg .b16 %h<4>;
    .reg .b32 %r<32>;
    .reg .b64 %d<16>;
    .shared .align 1024 .b8 tile[32768];
    .shared .align 8 .b64 barrier;

    mov.u32 %r1, %tid.x;
    mov.u64 %d1, map;
    cvta.param.u64 %d1, %d1;
    ld.param.u64 %d2, [tile_before];
    cvta.to.global.u64 %d2, %d2;
    ld.param.u64 %d3, [tile_after];
    cvta.to.global.u64 %d3, %d3;
    ld.param.u32 %r2, [image_bytes];
    ld.param.u32 %r3, [target];
    ld.param.u32 %r4, [expected];
    ld.param.u32 %r10, [x0];
    ld.param.u32 %r11, [x1];
    ld.param.u32 %r12, [x2];
    ld.param.u32 %r13, [x3];
    ld.param.u32 %r14, [x4];
    ld.param.u16 %h0, [offset0];
    ld.param.u16 %h1, [offset1];
    ld.param.u16 %h2, [offset2];
    mov.u32 %r5, tile;
    add.u32 %r6, %r5, %r3;
    mov.u32 %r15, 1;

    shl.b32 %r7, %r1, 2;
fill:
    setp.ge.u32 %p1, %r7, %r2;
    @%p1 bra filled;
    cvt.u64.u32 %d4, %r7;
    add.u64 %d5, %d2, %d4;
    ld.global.u32 %r8, [%d5];
    add.u32 %r9, %r5, %r7;
    st.shared.u32 [%r9], %r8;
    add.u32 %r7, %r7, 512;
    bra fill;
filled:
    setp.ne.u32 %p2, %r1, 0;
    @%p2 bra ready;
    mbarrier.init.shared.b64 [barrier], 1;
ready:
    fence.proxy.async;
    bar.sync 0;
    @%p2 bra copied;
"""
_LOAD_TAIL = """copied:
    mov.u32 %r16, 0;
wait:
    mbarrier.test_wait.parity.shared.b64 %p3, [barrier], 0;
    @%p3 bra done;
    add.u32 %r16, %r16, 1;
    setp.lt.u32 %p1, %r16, 100000;
    @%p1 bra wait;
    mov.u32 %r15, 0;
done:
"""
_TAIL = """    bar.sync 0;
    shl.b32 %r7, %r1, 2;
show:
    setp.ge.u32 %p1, %r7, %r2;
    @%p1 bra shown;
    add.u32 %r9, %r5, %r7;
    ld.shared.u32 %r8, [%r9];
    cvt.u64.u32 %d4, %r7;
    add.u64 %d5, %d3, %d4;
    st.global.u32 [%d5], %r8;
    add.u32 %r7, %r7, 512;
    bra show;
shown:
    @%p2 bra end;
    cvt.u64.u32 %d4, %r2;
    add.u64 %d5, %d3, %d4;
    st.global.u32 [%d5], %r15;
end:
    ret;
}
"""


def kernel_text(case: Case) -> str:
    """The PTX of `copy`, which loads a box into its tile and shows it, or stores (or reduces) a box from its tile.

    Behind the tile it shows whether the barrier completed.
    """
    rank = len(case.map.shape)
    where = f"[%d1, {{{', '.join(f'%r{10 + axis}' for axis in range(rank))}}}]"
    if case.kind == "load":
        mode, offsets = "", ""
        if case.map.is_im2col:
            mode, offsets = ".im2col", f", {{{', '.join(f'%h{i}' for i in range(rank - 2))}}}"
        body = (
            "    mbarrier.arrive.expect_tx.shared.b64 _, [barrier], %r4;\n"
            f"    cp.async.bulk.tensor.{rank}d.shared::cluster.global{mode}.mbarrier::complete_tx::bytes"
            f" [%r6], {where}, [barrier]{offsets};\n"
        )
        return _HEAD + body + _LOAD_TAIL + _TAIL
    mode = "im2col_no_offs" if case.map.is_im2col else "tile"
    head = "cp.async.bulk" if case.kind == "store" else "cp.reduce.async.bulk"
    operation = "" if case.kind == "store" else f".{case.kind}"
    body = (
        f"    {head}.tensor.{rank}d.global.shared::cta{operation}.{mode}.bulk_group {where}, [%r6];\n"
        "    cp.async.bulk.commit_group;\n"
        "    cp.async.bulk.wait_group 0;\n"
        "copied:\n"
    )
    return _HEAD + body + _TAIL
