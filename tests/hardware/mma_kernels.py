"""One kernel for each kind of tensor instruction, and where elements lie in its threads' registers.

A block does one multiplication. Of `mma`, all operands come as the registers of the 32 threads; of `wmma`, whose
registers are the implementation's own, as matrices in memory; of `wgmma`, A and B lie in shared memory without
swizzling, in pieces of 8 rows of 16 bytes, and C in the registers of 128 threads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from mma_inputs import Bits
from mma_kinds import Kind, width
from numpy.typing import NDArray

LANES = 32
GROUP = 128
_HEADER = ".version 8.7\n.target sm_90a\n.address_size 64\n"
_PIECE = 16
"""Bytes of a row that lie together in shared memory."""
_ROWS = 8


def block_of(kind: Kind) -> int:
    """Threads of a block."""
    return GROUP if kind.mnemonic == "wgmma" else LANES


def _register_bits(kind: Kind) -> int:
    return 64 if kind.a == "f64" else 32


def _count(kind: Kind, rows: int, columns: int, bits: int) -> int:
    """Registers of each thread that hold a matrix."""
    return rows * columns * bits // (block_of(kind) * _register_bits(kind))


def _counts(kind: Kind) -> tuple[int, int, int]:
    """Registers for A, B and C."""
    a = _count(kind, kind.m, kind.k, width(kind.a))
    b = _count(kind, kind.n, kind.k, width(kind.b))
    c = _count(kind, kind.m, kind.n, width(kind.c))
    return (0, 0, c) if kind.mnemonic == "wgmma" else (a, b, c)


def output_shape(kind: Kind, tiles: int) -> tuple[int, int, int]:
    """(tiles, registers, threads) of the results."""
    return tiles, _count(kind, kind.m, kind.n, width(kind.d)), block_of(kind)


# --- Elements to registers ----------------------------------------------------------------------------------------


def _packed(elements: Bits, bits: int, register: int) -> Bits:
    """Elements along the last axis, the first lowest, as words of a width."""
    each = register // bits
    parts = elements.reshape(*elements.shape[:-1], -1, each)
    shifts = np.arange(each, dtype=np.uint64) * np.uint64(bits)
    return np.bitwise_or.reduce(parts << shifts, axis=-1)


def _unpacked(words: Bits, bits: int) -> Bits:
    """The elements of words of 32 bits."""
    shifts = np.arange(32 // bits, dtype=np.uint64) * np.uint64(bits)
    return words[..., None] >> shifts & np.uint64((1 << bits) - 1)


def _operand_words(rows: Bits, bits: int, register: int) -> Bits:
    """(tiles, rows, k) as (tiles, registers, 32): lane 4r + w has word w of row r of 8 rows, of each 4 words."""
    words = _packed(rows, bits, register)
    tiles, count, length = words.shape
    split = words.reshape(tiles, count // 8, 8, length // 4, 4)
    return split.transpose(0, 3, 1, 2, 4).reshape(tiles, -1, LANES)


def _result_words(kind: Kind, c: Bits) -> Bits:
    """(tiles, m, n) as (tiles, registers, threads): lane 4r + w has elements 2w and 2w + 1 of row r of 8 rows."""
    bits, warps = width(kind.c), block_of(kind) // LANES
    halves = kind.m // (8 * warps)
    split = c.reshape(-1, warps, halves, 8, kind.n // 8, 4, 2)
    ordered = split.transpose(0, 4, 2, 1, 3, 5, 6)  # tiles, column group, half, warp, row, word, element
    if bits == 16:
        return _packed(ordered, 16, 32).reshape(len(c), -1, block_of(kind))
    return np.moveaxis(ordered, -1, 3).reshape(len(c), -1, block_of(kind))


def results_of(kind: Kind, words: NDArray[Any]) -> Bits:
    """The results (tiles, m, n) of the words that a kernel wrote."""
    if kind.mnemonic == "wmma":
        return _unpacked(words.reshape(len(words), -1).astype(np.uint64), width(kind.d)).reshape(-1, kind.m, kind.n)
    bits, warps = width(kind.c), block_of(kind) // LANES
    halves, wide = kind.m // (8 * warps), words.astype(np.uint64)
    if bits == 16:
        low = wide.reshape(-1, kind.n // 8, halves, warps, 8, 4, 1)
        ordered = np.concatenate((low & np.uint64(0xFFFF), low >> np.uint64(16)), -1)
    else:
        ordered = np.moveaxis(wide.reshape(-1, kind.n // 8, halves, 2, warps, 8, 4), 3, -1)
    return ordered.transpose(0, 3, 2, 4, 1, 5, 6).reshape(-1, kind.m, kind.n)


def _pieces(rows: Bits, bits: int) -> Bits:
    """(tiles, rows, k) as (tiles, words): 8 rows of 16 bytes one after the other, then their next 16 bytes."""
    words = _packed(rows, bits, 32)
    tiles, count, length = words.shape
    split = words.reshape(tiles, count // _ROWS, _ROWS, length // 4, 4)
    return split.transpose(0, 1, 3, 2, 4).reshape(tiles, -1)


def fragments_of(kind: Kind, a: Bits, b: Bits, c: Bits) -> NDArray[Any]:
    """All operands of a kernel, (tiles, words)."""
    given = ((a, kind.a), (np.swapaxes(b, 1, 2), kind.b))
    if kind.mnemonic == "wmma":
        parts = [_packed(x, width(t), 32) for x, t in (*given, (c, kind.c))]
    elif kind.mnemonic == "wgmma":
        parts = [*(_pieces(x, width(t)) for x, t in given), _result_words(kind, c)]
    else:
        parts = [*(_operand_words(x, width(t), _register_bits(kind)) for x, t in given), _result_words(kind, c)]
    joined = np.concatenate([x.reshape(len(a), -1) for x in parts], axis=1)
    return np.ascontiguousarray(joined.astype(f"u{_register_bits(kind) // 8}"))


# --- Kernels ------------------------------------------------------------------------------------------------------


def _registers(name: str, count: int) -> str:
    return "{" + ", ".join(f"%{name}{i}" for i in range(count)) + "}"


def _type_of(name: str) -> str:
    return name if name in ("f32", "f64") else "b32"


_BODIES: Mapping[str, Callable[[Kind], str]] = {
    "mma": lambda kind: _warp_body(kind) + _stores(kind),
    "wmma": lambda kind: _memory_body(kind),
    "wgmma": lambda kind: _group_body(kind) + _stores(kind),
}


def kernel_text(kind: Kind) -> str:
    """The kernel `mma` of (inputs, outputs)."""
    size = _register_bits(kind) // 8
    operands, before, result = ("f64" if kind.a == "f64" else "b32", _type_of(kind.c), _type_of(kind.d))
    return f"""{_HEADER}
.entry mma(.param .u64 in, .param .u64 out)
{{
.reg .{operands} %a<16>; .reg .{operands} %b<16>; .reg .{before} %c<128>; .reg .{result} %d<128>;
.reg .b32 %t<4>; .reg .b64 %x<8>; .reg .b64 %v<4>; .reg .pred %p<4>;
ld.param.u64 %x0, [in]; ld.param.u64 %x1, [out];
mov.u32 %t0, %ctaid.x; mov.u32 %t1, %tid.x;
mul.wide.u32 %x2, %t0, {_input_bytes(kind)}; add.u64 %x0, %x0, %x2;
mul.wide.u32 %x2, %t0, {kind.m * kind.n * width(kind.d) // 8}; add.u64 %x1, %x1, %x2;
mul.wide.u32 %x2, %t1, {size}; add.u64 %x4, %x1, %x2;
{_BODIES[kind.mnemonic](kind)}ret;
}}
"""


def _stores(kind: Kind) -> str:
    bits, (_, results, block) = _register_bits(kind), output_shape(kind, 1)
    return "".join(f"st.global.b{bits} [%x4+{i * bits // 8 * block}], %d{i};\n" for i in range(results))


def _input_bytes(kind: Kind) -> int:
    elements = ((kind.m * kind.k, kind.a), (kind.k * kind.n, kind.b), (kind.m * kind.n, kind.c))
    return sum(count * width(name) // 8 for count, name in elements)


def _loads(kind: Kind, name: str, count: int, start: int) -> str:
    size, block = _register_bits(kind) // 8, block_of(kind)
    return "".join(f"ld.global.b{8 * size} %{name}{i}, [%x3+{start + i * size * block}];\n" for i in range(count))


def _warp_body(kind: Kind) -> str:
    counts = _counts(kind)
    lines = ["add.u64 %x3, %x0, %x2;\n"]
    start = 0
    for name, count in zip("abc", counts, strict=True):
        lines.append(_loads(kind, name, count, start))
        start += count * block_of(kind) * _register_bits(kind) // 8
    a, b, c = (_registers(name, count) for name, count in zip("abc", counts, strict=True))
    return "".join(lines) + f"{kind.opcode} {_registers('d', counts[2])}, {a}, {b}, {c};\n"


def _memory_body(kind: Kind) -> str:
    """Loads all three matrices from memory, A and C by rows and B by columns, and stores D by rows."""
    shape = re.search(r"m\d+n\d+k\d+", kind.opcode)
    assert shape
    each = 32 // width(kind.a)
    a, b = (max(rows * kind.k // (LANES * each), 8 if kind.a == "f16" else 0) for rows in (kind.m, kind.n))
    lines: list[str] = []
    start = 0
    for name, layout, count, rows, length, kind_name in (
        ("a", "row", a, kind.m, kind.k, kind.a),
        ("b", "col", b, kind.n, kind.k, kind.b),
        ("c", "row", _counts(kind)[2], kind.m, kind.n, kind.c),
    ):
        opcode = f"wmma.load.{name}.sync.aligned.{layout}.{shape[0]}.global.{kind_name}"
        lines.append(f"add.u64 %x3, %x0, {start}; {opcode} {_registers(name, count)}, [%x3], {length};\n")
        start += rows * length * width(kind_name) // 8
    results = _registers("d", output_shape(kind, 1)[1])
    operands = f"{_registers('a', a)}, {_registers('b', b)}, {_registers('c', _counts(kind)[2])}"
    store = f"wmma.store.d.sync.aligned.row.{shape[0]}.global.{kind.d} [%x1], {results}, {kind.n};\n"
    return "".join(lines) + f"{kind.opcode} {results}, {operands};\n{store}"


def _group_body(kind: Kind) -> str:
    """Copies A and B to shared memory, 16 bytes a thread at a time, and multiplies.

    A descriptor has, in units of 16 bytes, the address, the distance of pieces along k (bits 16 to 29) and of pieces
    along rows (bits 32 to 45); no swizzling is 0 in the bits above.
    """
    results = _counts(kind)[2]
    sizes = [rows * kind.k * width(name) // 8 for rows, name in ((kind.m, kind.a), (kind.n, kind.b))]
    distances = (_ROWS * _PIECE >> 4) << 16 | (2 * _ROWS * _PIECE >> 4) << 32
    start = sum(sizes)
    return f"""
.shared .align 1024 .b8 data[{start}];
mov.u32 %t2, data; shl.b32 %t3, %t1, 4; add.u32 %t3, %t3, %t2;
mul.wide.u32 %x3, %t1, 16; add.u64 %x3, %x3, %x0;
{_copies(start)}
mul.wide.u32 %x3, %t1, 4; add.u64 %x3, %x3, %x0;
{_loads(kind, "d", results, start)}
fence.proxy.async; bar.sync 0;
cvt.u64.u32 %x5, %t2; shr.u64 %x5, %x5, 4; and.b64 %x5, %x5, 0x3fff; or.b64 %x5, %x5, {distances};
add.u64 %x6, %x5, {sizes[0] >> 4};
setp.eq.u32 %p1, 0, {1 - kind.scales[0]};
wgmma.fence.sync.aligned;
{kind.opcode} {_registers("d", results)}, %x5, %x6, %p1{_scales(kind)};
wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
"""


def _scales(kind: Kind) -> str:
    """Signs of A and B, which floats have, and whether they lie transposed, which 16-bit floats have."""
    if kind.c == "s32":
        return ""
    signs = f", {kind.scales[1]}, {kind.scales[2]}"
    return f"{signs}, 0, 0" if kind.a in ("f16", "bf16") else signs


def _copies(size: int) -> str:
    lines: Sequence[str] = [
        f"setp.lt.u32 %p0, %t1, {(size - start) // 16};\n"
        f"@%p0 ld.global.v2.b64 {{%v0, %v1}}, [%x3+{start}];\n@%p0 st.shared.v2.b64 [%t3+{start}], {{%v0, %v1}};\n"
        for start in range(0, size, 16 * GROUP)
    ]
    return "".join(lines)
