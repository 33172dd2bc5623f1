"""Tensor maps at the limits of what the driver takes or refuses, as recorded on a GPU."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tensor_cases import ELEMENT_BYTES, FILLS, INTERLEAVES, SWIZZLES, Map, tile


class _Changed:
    """Maps that differ in something from one that the driver takes."""

    def __init__(self) -> None:
        self.good = tile("u16", (64, 64), (8, 32))
        self.found: list[tuple[str, Map, int]] = []

    def add(self, name: str, address: int = 1 << 20, **changes: Any) -> None:  # noqa: ANN401
        self.found.append((name, replace(self.good, **changes), address))


def maps() -> list[tuple[str, Map, int]]:
    """Maps at the limits of what the driver takes, each with a name and an address."""
    changed = _Changed()
    _change_numbers(changed)
    _change_modes(changed)
    _change_columns(changed)
    return changed.found


def _change_numbers(changed: _Changed) -> None:
    add = changed.add
    for address in (8, 16, 32, 4096, (1 << 57) + 16):
        add(f"address {address}", (1 << 20) + address)
    for extent in (0, 1, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, 1 << 32, (1 << 32) + 1):
        add(f"shape {extent}", shape=(extent, 64))
        add(f"inner shape {extent}", shape=(64, extent), strides=(128,))
    for stride in (0, 8, 16, 24, 128, (1 << 40) - 16, 1 << 40):
        add(f"stride {stride}", strides=(stride,))
    for extent in (0, 1, 255, 256, 257):
        add(f"box {extent}", box=(extent, 32))
        add(f"inner box {extent}", box=(8, extent))
    add("inner box of 24 bytes", box=(8, 12))
    add("box larger than the tensor", shape=(4, 64), box=(8, 32))
    for dtype in ("u8", "u16", "u32", "u64"):
        for rows in (1, 64, 128, 192, 224, 228, 232, 255, 256):
            add(f"box of {rows} × 256 {dtype}", dtype=dtype, strides=(512,), box=(rows, 256))
    for step in (0, 1, 2, 8, 9):
        add(f"step {step}", element_strides=(step, 1))
        add(f"inner step {step}", element_strides=(1, step))
    for rank in range(1, 7):
        extents = (2,) * (rank - 1) + (64,)
        strides = tuple(128 << i for i in range(rank - 1))[::-1]
        add(f"{rank} axes", shape=extents, strides=strides, box=(1,) * (rank - 1) + (8,), element_strides=(1,) * rank)


def _change_modes(changed: _Changed) -> None:
    add = changed.add
    for swizzle in SWIZZLES:
        for inner in (16, 32, 64, 128):
            add(f"{swizzle} of {inner} bytes", swizzle=swizzle, box=(8, inner // 2))
        add(f"{swizzle} of 160 bytes", swizzle=swizzle, box=(8, 80))
    for dtype in ELEMENT_BYTES:
        for fill in FILLS:
            add(f"{dtype} filled with {fill}", dtype=dtype, fill=fill, box=(8, 16), strides=(512,))
    for interleave in INTERLEAVES:
        for swizzle in SWIZZLES[:4]:
            for inner in (8, 16, 32):
                more: dict[str, Any] = {"interleave": interleave, "swizzle": swizzle}
                add(f"{interleave} and {swizzle}, 2 axes, {inner}", box=(8, inner), **more)
                shape: dict[str, Any] = {"shape": (4, 8, 64), "strides": (1024, 128), "box": (2, 4, inner)}
                add(f"{interleave} and {swizzle}, {inner}", **shape, element_strides=(1, 1, 1), **more)
    three: dict[str, Any] = {"shape": (4, 8, 64), "box": (2, 4, 16), "element_strides": (1, 1, 1)}
    for strides in ((1024, 16), (64, 128), (1024, 1024), (16, 16), (1024 + 16, 128)):
        add(f"strides {strides}", strides=strides, **three)
    add("interleaved by 32B at 16", (1 << 20) + 16, strides=(1024, 128), interleave="32B", swizzle="32B", **three)
    add("interleaved by 32B, strides", strides=(1024 + 16, 128), interleave="32B", swizzle="32B", **three)


def _change_columns(changed: _Changed) -> None:
    add = changed.add
    for rank in range(1, 7):
        corners: dict[str, Any] = {"lower": (-1,) * max(rank - 2, 1), "upper": (-1,) * max(rank - 2, 1)}
        extents = (8,) * (rank - 1) + (64,)
        add(f"im2col of {rank} axes", shape=extents, strides=tuple(128 * 8**i for i in range(rank - 1))[::-1],
            box=(8, 8), element_strides=(1,) * rank, **corners)  # fmt: skip
    columns: dict[str, Any] = {"shape": (2, 8, 8, 64), "strides": (8192, 1024, 128), "element_strides": (1,) * 4}
    for box in ((1024, 8), (1025, 8), (0, 8), (8, 0), (8, 256), (8, 257), (8, 4), (1, 64)):
        add(f"im2col of {box}", box=box, lower=(-1, -1), upper=(-1, -1), **columns)
    for lower, upper in (((-128, -128), (0, 0)), ((-129, 0), (0, 0)), ((0, 0), (127, 127)), ((0, 0), (128, 0)),
                         ((0, 0), (-8, -8)), ((0, 0), (-7, -7)), ((0, 0), (-9, 0)), ((4, 4), (-4, 0)),
                         ((127, 0), (127, 0))):  # fmt: skip
        add(f"im2col from {lower} to {upper}", box=(8, 8), lower=lower, upper=upper, **columns)
