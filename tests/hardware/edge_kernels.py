"""Kernels for what the recorded rows leave open: operands chosen for one question each, and atomic operations."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from row_kernel import Lanes, frame, instance_of, kernel_of, kernel_of_instances, register_bits

from triptych.gpu.isa import TABLE


@dataclass(frozen=True, slots=True)
class EdgeKernel:
    """A kernel `row` of (inputs, outputs), a thread for each case; `shape` is (outputs, cases)."""

    name: str
    opcodes: tuple[str, ...]
    """In the order of their outputs."""
    text: str
    inputs: Lanes
    shape: tuple[int, int]


def edge_kernels() -> Iterator[EdgeKernel]:
    """All of them."""
    yield from _comparisons()
    yield from _underflows()
    yield from _conversions()
    yield from _atomics()


def _comparisons() -> Iterator[EdgeKernel]:
    """Predicates of 16-bit floats, of the table's own operands."""
    for row in TABLE:
        names = {name for _, kinds in row.type_slots for name in kinds}
        if row.mnemonic == "setp" and names <= {"f16", "bf16"}:
            kernel = kernel_of(row)
            opcodes = tuple(instance.text for instance in kernel.instances)
            yield EdgeKernel(f"{row.syntax}:{min(names)}", opcodes, kernel.text, kernel.inputs, kernel.shape)


# --- Underflow under .ftz -----------------------------------------------------------------------------------------

_ROUNDINGS = ("rn", "rz", "rm", "rp")
_LEAST = 2.0**-126


def _with_operands(name: str, opcodes: Sequence[str], columns: Sequence[Sequence[int]]) -> EdgeKernel:
    """Opcodes with the same sources, over operands by source; these are repeated to fill the threads."""
    kernel = kernel_of_instances([instance_of(opcode, None) for opcode in opcodes])
    inputs = np.array([np.resize(np.array(column, np.uint64), kernel.shape[1]) for column in columns])
    assert inputs.shape == kernel.inputs.shape, f"{name}: {inputs.shape}, not {kernel.inputs.shape}"
    assert max(map(len, columns)) <= kernel.shape[1], f"{name}: {len(columns[0])} operands, {kernel.shape[1]} threads"
    return EdgeKernel(name, tuple(i.text for i in kernel.instances), kernel.text, inputs, kernel.shape)


def _singles(values: NDArray[np.floating[Any]]) -> list[int]:
    return values.astype(np.float32).view(np.uint32).tolist()


def _underflows() -> Iterator[EdgeKernel]:
    """Sums whose exact value is the smallest normal number, give or take less than half a unit of a subnormal one."""
    source = np.random.default_rng(1)
    a = (source.integers(1 << 23, 1 << 24, 600) * 2.0**-23).astype(np.float32)
    b = (source.integers(1 << 23, 1 << 24, 600) * 2.0**-149).astype(np.float32)
    exact = a.astype(np.float64) * b.astype(np.float64)
    signs = source.choice([-1.0, 1.0], 600)
    c = _LEAST - exact
    for place, (first, second, third) in enumerate(((0.75, 1.0, 0.0), (1.0, 1.0, 0.0), (1 - 2.0**-24, 1.0, 0.0))):
        a[place], b[place], c[place] = first, second * _LEAST, third
    columns = [_singles(a * signs), _singles(b.astype(np.float64)), _singles(c * signs)]
    opcodes = [f"fma.{mode}.ftz{end}.f32" for mode, end in product(_ROUNDINGS, ("", ".sat"))]
    yield _with_operands("fma, underflow", opcodes, columns)
    factors = [
        _singles((1.0 + 2.0**-23 * np.arange(300)) * 0.5),
        _singles(_LEAST * 2 * (1.0 - 2.0**-24 * np.arange(300))),
    ]
    yield _with_operands("mul, underflow", [f"mul.{mode}.ftz.f32" for mode in _ROUNDINGS], factors)


# --- Conversions --------------------------------------------------------------------------------------------------


def _near(values: Sequence[float], kind: str) -> list[int]:
    """Numbers of a format, the two beside each, and all with the other sign."""
    code, signed = {"f32": ("f", 31), "f64": ("d", 63)}[kind]
    bits = [int.from_bytes(struct.pack(f"<{code}", value), "little") for value in values]
    beside = [x + step for x in bits for step in (-2, -1, 0, 1, 2) if x + step >= 0]
    return [x | sign << signed for x in dict.fromkeys(beside) for sign in (0, 1)]


_POINTS = {
    "f32": (0.0, _LEAST, _LEAST / 2, 2.0**-133, 2.0**-134, 3 * 2.0**-134, 2.0**-14, 2.0**-24, 2.0**-25, 0.5, 1.0, 1.5),
    "f64": (
        0.0, _LEAST, _LEAST * (1 - 2.0**-24), _LEAST * (1 - 2.0**-25), _LEAST * (1 - 2.0**-23), _LEAST / 2, 2.0**-149,
        2.0**-150, 3 * 2.0**-150, 1.0, 2.0**128, 2.0**128 * (1 - 2.0**-25),
    ),
}  # fmt: skip


def _opcodes(ways: Sequence[str], ends: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"cvt.{way}.{end}" for way in ways for end in ends)


_INTEGERS = [f"{name}.f32" for name in ("s16", "s32", "s64", "s8", "u16", "u32", "u64", "u8")]
_INTEGRAL = [f"{mode}.ftz{end}" for mode in ("rmi", "rni", "rpi", "rzi") for end in ("", ".sat")]
_ROUNDED = [f"{mode}.ftz{end}" for mode in ("rm", "rn", "rp", "rz") for end in ("", ".sat")]
_CONVERSIONS = {
    "f32 to integers": _opcodes(_INTEGRAL[:3], _INTEGERS),
    "f32": _opcodes(["ftz", "ftz.sat"], ["f32.f32"]),
    "f32 to f64": _opcodes(["ftz", "ftz.sat"], ["f64.f32"]),
    "f32 to whole numbers": _opcodes(_INTEGRAL, ["f32.f32"]),
    "f64 to f32": _opcodes(_ROUNDED, ["f32.f64"]),
    "f32 to f16": _opcodes(_ROUNDED, ["f16.f32"]),
    "f32 to bf16": _opcodes(_ROUNDED[::2], ["bf16.f32"]),
}


def _conversions() -> Iterator[EdgeKernel]:
    for name, opcodes in _CONVERSIONS.items():
        kind = name[:3]
        kernel = _with_operands(f"cvt {name}", opcodes, [_near(_POINTS[kind], kind)])
        yield replace(kernel, text=kernel.text.replace(".target sm_80", ".target sm_90"))


# --- Atomic operations --------------------------------------------------------------------------------------------

_BITS = {
    "f32": (
        0, 0x8000_0000, 0x3F80_0000, 0xBF80_0000, 0x7F80_0000, 0xFF80_0000, 0x7FC0_0123, 0xFFC4_5678, 0x7F80_0001,
        0xFFA0_0000, 0x7FFF_FFFF, 1, 0x807F_FFFF, 0x0080_0000, 0x8080_0001, 0x7F7F_FFFF,
    ),
    "f16": (
        0, 0x8000, 0x3C00, 0xBC00, 0x7C00, 0xFC00, 0x7E12, 0xFE34, 0x7C01, 0xFD00, 0x7FFF, 1, 0x83FF, 0x0400, 0x8401,
        0x7BFF,
    ),
    "bf16": (
        0, 0x8000, 0x3F80, 0xBF80, 0x7F80, 0xFF80, 0x7FC1, 0xFFD2, 0x7F81, 0xFFA0, 0x7FFF, 1, 0x807F, 0x0080, 0x8081,
        0x7F7F,
    ),
    "f64": (
        0, 1 << 63, 0x3FF << 52, 0xBFF << 52, 0x7FF << 52, 0xFFF << 52, 0x7FF8_0000_0000_0123, 0xFFF8_0000_4567_0000,
        0x7FF0_0000_0000_0001, 0xFFF4 << 48, 0x7FFF_FFFF_FFFF_FFFF, 1, 0x800F_FFFF_FFFF_FFFF, 1 << 52,
        0x8010_0000_0000_0001, 0x7FEF_FFFF_FFFF_FFFF,
    ),
}  # fmt: skip
"""Zeros, ones, infinities, quiet and signalling NaN, subnormals, the smallest and the largest normal numbers."""


def _elements(kind: str, register: int) -> tuple[list[int], list[int]]:
    """All pairs of the values of an element, an old one and an operand, as registers: lanes of one are rotated."""
    name = kind.removesuffix("x2")
    width = {"f32": 32, "f64": 64}.get(name, 16)
    pairs = list(product(_BITS[name], repeat=2))
    columns: list[list[int]] = []
    for side in (0, 1):
        values = [pair[side] for pair in pairs]
        words = [0] * len(values)
        for part in range(register // width):
            words = [word | values[(i + 37 * part) % len(values)] << (width * part) for i, word in enumerate(words)]
        columns.append(words)
    return columns[0], columns[1]


def _atomic(opcode: str, kind: str, count: int = 1) -> EdgeKernel:
    """The operation on elements that were stored: `atom` gives the old ones too; each lane has its own 8 bytes."""
    bits = register_bits(kind)
    old, operand = _elements(kind, bits * count)
    mnemonic, *modifiers = opcode.split(".")
    letter = {16: "h", 32: "r", 64: "d"}[bits] if kind not in ("f32", "f64") else {32: "f", 64: "e"}[bits]
    sources, targets = ([f"%{letter}{start + i}" for i in range(count)] for start in (0, 4))
    written, read = ("{" + ", ".join(names) + "}" if count > 1 else names[0] for names in (targets, sources))
    row, size = 8 * len(old), bits // 8
    shared = "shared" in modifiers
    lines = [
        "ld.global.b64 %d7, [%a0];",
        *(f"ld.global.b{bits} {name}, [%a0+{row + i * size}];" for i, name in enumerate(sources)),
    ]
    if shared:
        lines += [".shared .align 8 .b8 cells[256];", "mov.u32 %t1, %tid.x; shl.b32 %t1, %t1, 3; mov.u32 %t2, cells;"]
        lines += ["add.u32 %t1, %t1, %t2; st.shared.b64 [%t1], %d7;"]
    else:
        lines += ["st.global.b64 [%a1], %d7;"]
    place = "%t1" if shared else "%a1"
    target = f"{written}, " if mnemonic == "atom" else ""
    lines += [f"{opcode} {target}[{place}], {read};"]
    if shared:
        lines += ["ld.shared.b64 %d7, [%t1]; st.global.b64 [%a1], %d7;"]
    if mnemonic == "atom":
        lines += [f"st.global.b{bits} [%a1+{row + i * size}], {name};" for i, name in enumerate(targets)]
    inputs = np.array([old, operand], np.uint64)
    text = frame("\n".join(lines)).replace(".target sm_80", ".target sm_90")
    return EdgeKernel(opcode, (opcode,), text, inputs, (2, len(old)))


def _atomics() -> Iterator[EdgeKernel]:
    for space, kind in product(("global", "shared"), ("f32", "f64", "f16", "bf16", "f16x2", "bf16x2")):
        end = "" if kind in ("f32", "f64") else ".noftz"
        yield _atomic(f"atom.{space}.add{end}.{kind}", kind)
        yield _atomic(f"red.{space}.add{end}.{kind}", kind)
    yield _atomic("atom.global.add.v2.f32", "f32", 2)
    for name, operation in product(("f16", "bf16"), ("add", "min", "max")):
        yield _atomic(f"atom.global.{operation}.noftz.v4.{name}", name, 4)
        yield _atomic(f"atom.global.{operation}.noftz.v2.{name}x2", f"{name}x2", 2)
        yield _atomic(f"red.global.{operation}.noftz.v4.{name}", name, 4)
