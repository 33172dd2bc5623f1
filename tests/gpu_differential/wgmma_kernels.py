"""Kernels around one `wgmma.mma_async`, and where its matrices lie, by the closed forms of the PTX manual (9.7.15.5.1).

A block copies an image of its shared memory from global memory, and multiplies by descriptors that it is given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from both import Outcome, run_both
from fragment_places import ELEMENTS, Element, matrix_of, place_a, registers_of
from numpy.typing import NDArray

Array = NDArray[Any]

THREADS = 128
ROWS = 64
PREFIX = "wgmma.mma_async.sync.aligned."
_HEADER = ".version 8.0\n.target sm_90a\n.address_size 64\n"


# --- Shared memory ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Layout:
    """How a matrix lies: `swizzle` bytes (0: none), whether by K, and what the descriptor says of distances."""

    swizzle: int
    by_k: bool
    leading: int
    stride: int
    start: int = 0
    base_offset: int = 0

    @property
    def chunks(self) -> int:
        """Chunks of 16 bytes within which the swizzle exchanges."""
        return max(self.swizzle // 16, 1)

    @property
    def descriptor(self) -> int:
        """The 64 bits."""
        mode = {0: 0, 128: 1, 64: 2, 32: 3}[self.swizzle]
        distances = self.leading >> 4 << 16 | self.stride >> 4 << 32
        return (self.start & 0x3FFFF) >> 4 | distances | self.base_offset << 49 | mode << 62

    def bits_of(self, bits: int, shape: tuple[int, ...]) -> Array:
        """The first bit of each element: the canonical layout, in elements, and then the swizzle of the address."""
        line, k = np.indices(shape)
        t = 128 // bits
        sbo, lbo = self.stride * 8 // bits, self.leading * 8 // bits
        if self.by_k:
            across = t if self.swizzle else lbo
            element = line % 8 * self.chunks * t + line // 8 * sbo + k % t + k // t * across
        elif self.swizzle:
            s = self.chunks
            element = line % t + line // t % s * t + line // (s * t) * lbo + k % 8 * s * t + k // 8 * sbo
        else:
            element = line % t + line // t * sbo + k % 8 * t + k // 8 * lbo
        byte, rest = np.divmod(self.start * 8 + element * bits, 8)
        return (byte ^ ((byte >> 7) - self.base_offset & self.chunks - 1) << 4) * 8 + rest


def write(image: Array, layout: Layout, bits: Array, element: Element) -> None:
    """Puts a matrix (line, k) into the image of shared memory."""
    flat = np.unpackbits(image, bitorder="little")
    places = np.arange(element.bits)
    first = layout.bits_of(element.bits, bits.shape)
    flat[first[..., None] + places] = bits[..., None] >> places.astype(np.uint64) & np.uint64(1)
    image[:] = np.packbits(flat, bitorder="little")


# --- Registers ----------------------------------------------------------------------------------------------------


def place_d(lane: int, i: int) -> tuple[int, int]:
    """(%laneid, i) -> row of the warp's 16, and column, of element i of D."""
    return lane // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + lane % 4 * 2 + i % 2


def _by_warps(numbers: Array, element: Element, *, is_d: bool) -> Array:
    parts = numbers.reshape(4, 16, -1)
    place = place_d if is_d else place_a(16, element)
    return np.concatenate([registers_of(part, element, place) for part in parts], axis=1)


# --- Kernels ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Case:
    """An opcode, taken apart, and how its operands are given."""

    opcode: str
    scales: tuple[int, int] = (1, 1)
    keeps: bool = True
    a_in_registers: bool = False
    a_layout: Layout = Layout(0, True, 128, 256)
    b_layout: Layout = Layout(0, True, 128, 256)
    guard: str = ""
    threads: int = THREADS

    @property
    def n(self) -> int:
        """Columns."""
        return int(_shape(self.opcode)[1])

    @property
    def k(self) -> int:
        """The depth."""
        return int(_shape(self.opcode)[2])

    @property
    def types(self) -> tuple[str, str, str]:
        """Of D, A and B."""
        d, a, b = [name for name in self.opcode.split(".") if name in ELEMENTS]
        return d, a, b

    @property
    def operands(self) -> str:
        """What stands behind the predicate."""
        if self.types[0] == "s32":
            return ""
        text = f", {self.scales[0]}, {self.scales[1]}"
        if self.types[1] not in ("f16", "bf16"):
            return text
        turns = [int(not layout.by_k) for layout in (self.a_layout, self.b_layout)]
        return f"{text}, {turns[1]}" if self.a_in_registers else f"{text}, {turns[0]}, {turns[1]}"


def _shape(opcode: str) -> tuple[str, ...]:
    found = re.search(r"m(\d+)n(\d+)k(\d+)", opcode)
    assert found is not None
    return found.groups()


def _list(name: str, count: int) -> str:
    return "{" + ", ".join(f"%{name}{i}" for i in range(count)) + "}"


def kernel(case: Case, words: int) -> str:
    """The kernel k of (registers of D, image, registers of A, descriptors, whether C counts, bytes of the image)."""
    d = ELEMENTS[case.types[0]]
    size = 4 * case.threads
    loads = "".join(f"ld.global.{d.register} %d{i}, [%pd+{i * size}];\n" for i in range(words))
    stores = "".join(f"st.global.{d.register} [%pd+{i * size}], %d{i};\n" for i in range(words))
    registers = "".join(f"ld.global.b32 %a{i}, [%pa+{i * size}];\n" for i in range(4))
    a = _list("a", 4) if case.a_in_registers else "%da"
    return f"""{_HEADER}.extern .shared .align 1024 .b8 data[];
.visible .entry k(.param .u64 d, .param .u64 image, .param .u64 a, .param .u64 da, .param .u64 db, .param .u32 keeps,
    .param .u32 bytes) {{
.reg .{d.register} %d<{words}>; .reg .b32 %a<4>; .reg .b32 %t<6>;
.reg .b64 %pd, %pi, %pa, %da, %db, %x<3>; .reg .pred %p<3>;
ld.param.u64 %pd, [d]; ld.param.u64 %pi, [image]; ld.param.u64 %pa, [a];
ld.param.u64 %da, [da]; ld.param.u64 %db, [db]; ld.param.u32 %t3, [keeps]; ld.param.u32 %t4, [bytes];
mov.u32 %t0, %tid.x;
mad.wide.u32 %pd, %t0, 4, %pd; mad.wide.u32 %pa, %t0, 4, %pa;
mov.u32 %t1, data; shl.b32 %t2, %t0, 4;
copy:
setp.ge.u32 %p0, %t2, %t4;
@%p0 bra copied;
cvt.u64.u32 %x0, %t2; add.u64 %x1, %pi, %x0; add.u32 %t5, %t1, %t2;
ld.global.v2.b64 {{%x1, %x2}}, [%x1];
st.shared.v2.b64 [%t5], {{%x1, %x2}};
add.u32 %t2, %t2, {16 * case.threads};
bra copy;
copied:
bar.sync 0;
{loads}{registers}
setp.ne.u32 %p1, %t3, 0;
wgmma.fence.sync.aligned;
{case.guard}{case.opcode} {_list("d", words)}, {a}, %db, %p1{case.operands};
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
{stores}ret; }}
"""


def multiply(case: Case, a: Array, b: Array, c: Array) -> tuple[Array, Outcome]:
    """The bits of D by both executors, from numbers by rows, and what they counted; B is (k, column)."""
    return multiply_bits(
        case, *(ELEMENTS[name].encode(np.asarray(x)) for name, x in zip(types_of(case), (a, b.T, c), strict=True))
    )


def types_of(case: Case) -> tuple[str, str, str]:
    """Of A, B and C."""
    d, a, b = case.types
    return a, b, d


def multiply_bits(case: Case, a: Array, b: Array, c: Array) -> tuple[Array, Outcome]:
    """As `multiply`, of bits by lines: rows of A and C, columns of B."""
    elements = [replace(ELEMENTS[name], encode=_as_it_is) for name in types_of(case)]
    image = np.full(shared_bytes(case), 0x5A, np.uint8)
    if not case.a_in_registers:
        write(image, case.a_layout, a, elements[0])
    write(image, case.b_layout, b, elements[1])
    given = _by_warps(a, elements[0], is_d=False)
    sums = _by_warps(c, elements[2], is_d=True)
    text = kernel(case, len(sums))
    scalars = (np.uint64(case.a_layout.descriptor), np.uint64(case.b_layout.descriptor), np.uint32(case.keeps))
    outcome = run_both(
        text, "k", 1, case.threads, sums, image, given, *scalars, np.uint32(image.size), shared_bytes=image.size
    )
    parts = np.split(outcome.arrays[0], 4, axis=1)
    return np.concatenate([matrix_of(part, elements[2], place_d, (16, case.n)) for part in parts]), outcome


def _as_it_is(bits: Array) -> Array:
    return bits


def shared_bytes(case: Case) -> int:
    """Up to the end of what lies highest."""
    ends = [_end(case.b_layout, case.n, case)]
    ends += [] if case.a_in_registers else [_end(case.a_layout, ROWS, case)]
    return -(-max(ends) // 16) * 16


def _end(layout: Layout, lines: int, case: Case) -> int:
    return int(layout.bits_of(ELEMENTS[case.types[1]].bits, (lines, case.k)).max()) // 8 + 1


def packed(swizzle: int, lines: int, *, by_k: bool, start: int = 0) -> Layout:
    """The layout without gaps of lines of 32 bytes of K; of a swizzle beyond them, as many lines of K are between."""
    span = max(swizzle, 16)
    if by_k:
        return Layout(swizzle, True, 128, 256 if not swizzle else 8 * span, start)
    if swizzle:  # atoms of `span` bytes by 8 k: one after the other along K, then across
        return Layout(swizzle, False, 16 * span, 8 * span, start)
    return Layout(0, False, lines * 16, 128, start)


BY_OPCODE: Mapping[str, str] = {
    "f16": "k16.f32.f16.f16", "f16.f16": "k16.f16.f16.f16", "bf16": "k16.f32.bf16.bf16", "tf32": "k8.f32.tf32.tf32",
    "e4m3": "k32.f32.e4m3.e4m3", "e4m3.e5m2": "k32.f32.e4m3.e5m2", "e5m2.e4m3": "k32.f16.e5m2.e4m3",
    "s8": "k32.s32.s8.s8", "u8.s8": "k32.s32.u8.s8.satfinite", "b1": "k256.s32.b1.b1.and.popc",
}  # fmt: skip
"""Kinds of each type, by a name."""


def opcode(kind: str, n: int) -> str:
    """The opcode of a kind for n columns."""
    return f"{PREFIX}m64n{n}{BY_OPCODE[kind]}"
