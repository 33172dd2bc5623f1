"""`wmma`: generated code = oracle = products in exact arithmetic, of matrices in global and in shared memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from both import HEADER, run_both
from fragment_places import ELEMENTS
from numpy.typing import NDArray

from triptych.core.errors import DivergentWarp, MemoryFault, PtxSyntaxError

Array = NDArray[Any]
PADDING = 8
"""Elements by which lines in memory are longer than the matrix's."""
REGISTERS: Mapping[str, Mapping[str, tuple[int, int]]] = {
    "m16n16k16": {"f16": (8, 8), "bf16": (4, 4), "s8": (2, 2), "u8": (2, 2)},
    "m32n8k16": {"f16": (8, 8), "bf16": (8, 2), "s8": (4, 1), "u8": (4, 1)},
    "m8n32k16": {"f16": (8, 8), "bf16": (2, 8), "s8": (1, 4), "u8": (1, 4)},
    "m16n16k8": {"tf32": (4, 4)},
    "m8n8k4": {"f64": (1, 1)},
    "m8n8k32": {"s4": (1, 1), "u4": (1, 1)},
    "m8n8k128": {"b1": (1, 1)},
}
"""Of A and B (PTX manual, 9.7.14.4.1)."""


@dataclass(frozen=True, slots=True)
class Case:
    shape: str
    kind: str
    d: str
    c: str
    layouts: tuple[str, str, str]
    """Of A, of B, and of C and D."""
    tail: str = ""
    space: str = ".global"

    def __str__(self) -> str:
        return f"{self.shape}.{self.d}.{self.kind}.{self.c}{self.tail}-{'.'.join(self.layouts)}{self.space}"

    @property
    def sizes(self) -> tuple[int, int, int]:
        m, rest = self.shape[1:].split("n")
        n, k = rest.split("k")
        return int(m), int(n), int(k)


def cases() -> Iterator[Case]:
    wide = ("m16n16k16", "m32n8k16", "m8n32k16")
    layouts = [(a, b, c) for a in ("row", "col") for b in ("row", "col") for c in ("row", "col")]
    for number, shape in enumerate(wide):
        for index, (d, c) in enumerate((("f32", "f32"), ("f16", "f16"), ("f32", "f16"))):
            yield Case(shape, "f16", d, c, layouts[(3 * number + index) % 8], space=(".global", ".shared", "")[index])
        yield Case(shape, "bf16", "f32", "f32", layouts[number + 2])
        yield Case(shape, "s8", "s32", "s32", layouts[number], ".satfinite", ".shared")
        yield Case(shape, "u8", "s32", "s32", layouts[7 - number])
    yield Case("m16n16k16", "f16", "f16", "f32", ("row", "row", "row"))
    for own in (layouts[1], layouts[6]):
        yield Case("m16n16k8", "tf32", "f32", "f32", own)
        yield Case("m8n8k4", "f64", "f64", "f64", own)
    yield Case("m8n8k4", "f64", "f64", "f64", layouts[0], ".rz")
    for kind in ("s4", "u4"):
        yield Case("m8n8k32", kind, "s32", "s32", ("row", "col", "row"), ".satfinite" * (kind == "s4"))
    for operation in ("xor", "and"):
        yield Case("m8n8k128", "b1", "s32", "s32", ("row", "col", "col"), f".{operation}")


def operands(case: Case) -> Mapping[str, tuple[str, int, str]]:
    """By operand: the type of its registers, how many there are, and the type of its elements."""
    m, n, _ = case.sizes
    a, b = REGISTERS[case.shape][case.kind]
    found = {"a": (ELEMENTS[case.kind].register, a, case.kind), "b": (ELEMENTS[case.kind].register, b, case.kind)}
    for name, kind in (("c", case.c), ("d", case.d)):
        element = ELEMENTS[kind]
        found[name] = (element.register, m * n // 32 // element.packed, kind)
    return found


def multiplication(case: Case) -> str:
    a, b, _ = case.layouts
    if case.kind == "b1":
        return f"wmma.mma{case.tail}.popc.sync.aligned.{a}.{b}.{case.shape}.s32.b1.b1.s32"
    if case.kind == "f16":
        return f"wmma.mma.sync.aligned.{a}.{b}.{case.shape}.{case.d}.{case.c}"
    types = f"{case.d}.{case.kind}.{case.kind}.{case.c}"
    before, behind = (case.tail, "") if case.kind == "f64" else ("", case.tail)
    return f"wmma.mma.sync.aligned.{a}.{b}.{case.shape}{before}.{types}{behind}"


def kernel(case: Case, lines: Mapping[str, int], sizes: Mapping[str, int]) -> str:
    """Loads, multiplies and stores; through shared memory where the case says so."""
    text = [HEADER, *(f".shared .align 32 .b8 tile_{name}[{size}];" for name, size in sizes.items())]
    text += [".visible .entry k(.param .u64 d, .param .u64 a, .param .u64 b, .param .u64 c) {"]
    text += [".reg .b32 %t<4>; .reg .b64 %q<4>; .reg .b8 %h; mov.u32 %t0, %tid.x;"]
    lists: dict[str, str] = {}
    for name, (kind, count, _) in operands(case).items():
        text.append(f".reg .{kind} %{name}<{count}>; .reg .b64 %p{name}; ld.param.u64 %p{name}, [{name}];")
        lists[name] = "{" + ", ".join(f"%{name}{i}" for i in range(count)) + "}"
        if case.space == ".shared" and name != "d":
            text += _copy(name, sizes[name], f"[%p{name}]", f"tile_{name}", to_shared=True)
    text.append("bar.sync 0;")
    layouts = dict(zip("abc", case.layouts, strict=True))
    for name in "abc":
        place = f"tile_{name}" if case.space == ".shared" else f"%p{name}"
        opcode = f"wmma.load.{name}.sync.aligned.{layouts[name]}.{case.shape}{case.space}.{operands(case)[name][2]}"
        text.append(f"{opcode} {lists[name]}, [{place}], {lines[name]};")
    text.append(f"{multiplication(case)} {lists['d']}, {lists['a']}, {lists['b']}, {lists['c']};")
    place = "tile_d" if case.space == ".shared" else "%pd"
    opcode = f"wmma.store.d.sync.aligned.{layouts['c']}.{case.shape}{case.space}.{case.d}"
    text.append(f"mov.u32 %t3, {lines['d']}; {opcode} [{place}], {lists['d']}, %t3;")
    if case.space == ".shared":
        text += ["bar.sync 0;", *_copy("d", sizes["d"], "[%pd]", "tile_d", to_shared=False)]
    return "\n".join([*text, "ret; }", ""])


def _copy(name: str, size: int, target: str, tile: str, *, to_shared: bool) -> list[str]:
    """A loop of the warp over a tile's bytes, a word at a time."""
    move = (
        "ld.global.b32 %t2, [%q1]; st.shared.b32 [%q2], %t2;",
        "ld.shared.b32 %t2, [%q2]; st.global.b32 [%q1], %t2;",
    )
    return [
        f"mov.u32 %t1, %t0; loop_{name}{to_shared}:", f"mov.u64 %q1, %p{name}; mad.wide.u32 %q1, %t1, 4, %q1;",
        f"mov.u64 %q2, {tile}; mad.wide.u32 %q2, %t1, 4, %q2; {move[not to_shared]}",
        f"add.u32 %t1, %t1, 32; {{ .reg .pred %z; setp.lt.u32 %z, %t1, {size // 4}; @%z bra loop_{name}{to_shared}; }}",
    ]  # fmt: skip


def numbers(name: str, generator: np.random.Generator, *shape: int) -> Array:
    if name == "s32":
        return generator.integers(-1000, 1000, shape)
    if name == "b1":
        return generator.integers(0, 2, shape)
    if name[0] in "us":
        bits, signed = int(name[1:]), name[0] == "s"
        return generator.integers(-(1 << (bits - 1)) if signed else 0, 1 << (bits - signed), shape)
    return generator.integers(-4, 5, shape) * 0.25


def in_memory(matrix: Array, kind: str, layout: str) -> tuple[Array, int]:
    """The bytes of a matrix with padded lines, and the elements from one line to the next."""
    element = ELEMENTS[kind]
    bits = element.encode(matrix if layout == "row" else matrix.T)
    stride = bits.shape[1] + PADDING * (8 if element.bits < 8 else 1) * (4 if element.bits == 1 else 1)
    padded = np.full((bits.shape[0], stride), 1, np.uint64)
    padded[:, : bits.shape[1]] = bits
    if element.bits >= 8:
        return padded.astype(f"u{element.bits // 8}").view(np.uint8).ravel(), stride
    unpacked = (padded[..., None] >> np.arange(element.bits, dtype=np.uint64)) & np.uint64(1)
    return np.packbits(unpacked.astype(np.uint8).ravel(), bitorder="little"), stride


def from_memory(data: Array, shape: tuple[int, int], kind: str, layout: str, stride: int) -> Array:
    rows, columns = shape if layout == "row" else shape[::-1]
    found = data.view(f"u{ELEMENTS[kind].bits // 8}").reshape(rows, stride)[:, :columns].astype(np.uint64)
    return found if layout == "row" else found.T


@pytest.mark.parametrize("case", list(cases()), ids=str)
def test_products_are_exact_where_their_sums_are(case: Case) -> None:
    m, n, k = case.sizes
    generator = np.random.default_rng(17)
    a, b, c = (
        numbers(kind, generator, *shape) for kind, shape in ((case.kind, (m, k)), (case.kind, (k, n)), (case.c, (m, n)))
    )
    given: dict[str, Array] = {}
    lines: dict[str, int] = {}
    for name, matrix, kind, layout in zip(
        "abcd", (a, b, c, np.zeros((m, n))), (case.kind, case.kind, case.c, case.d), (*case.layouts, case.layouts[2]),
        strict=True,
    ):  # fmt: skip
        given[name], lines[name] = in_memory(matrix, kind, layout)
    text = kernel(case, lines, {name: array.size for name, array in given.items()})
    outcome = run_both(text, "k", 1, 32, given["d"], given["a"], given["b"], given["c"])
    if case.kind == "b1":
        pairs = a[:, :, None].astype(bool), b[None].astype(bool)
        exact = c + (pairs[0] ^ pairs[1] if case.tail == ".xor" else pairs[0] & pairs[1]).sum(axis=1)
    else:
        exact = a @ b + c
    bits = from_memory(outcome.arrays[0], (m, n), case.d, case.layouts[2], lines["d"])
    np.testing.assert_array_equal(bits, ELEMENTS[case.d].encode(np.asarray(exact)))
    assert outcome.counters["instructions.pipe.tensor"] == 1


def test_without_a_stride_lines_follow_each_other() -> None:
    text = f"""{HEADER}
.visible .entry k(.param .u64 d, .param .u64 c) {{
.reg .f32 %c<8>; .reg .b64 %p<2>;
ld.param.u64 %p0, [c]; ld.param.u64 %p1, [d];
wmma.load.c.sync.aligned.col.m32n8k16.global.f32 {{%c0,%c1,%c2,%c3,%c4,%c5,%c6,%c7}}, [%p0];
wmma.store.d.sync.aligned.row.m32n8k16.f32 [%p1+256], {{%c0,%c1,%c2,%c3,%c4,%c5,%c6,%c7}};
ret; }}
"""
    c = np.random.default_rng(1).standard_normal((8, 32)).astype(np.float32)
    d = run_both(text, "k", 1, 32, np.zeros(320, np.float32), c).arrays[0]
    np.testing.assert_array_equal(d[64:].reshape(32, 8), c.T)


@pytest.mark.parametrize("only", ["generated", "oracle"])
def test_a_fragment_beyond_its_array_and_by_some_lanes(only: str) -> None:
    load = "wmma.load.a.sync.aligned.row.m16n16k8.global.tf32 {%r1,%r2,%r3,%r4}, [%p0], 8;"
    for before, kind, message in (
        ("add.u64 %p0, %p0, 32;", MemoryFault, "global"),
        ("@%q0", DivergentWarp, "wmma.load"),
    ):
        text = f"""{HEADER}
.visible .entry k(.param .u64 a) {{
.reg .b32 %r<8>; .reg .b64 %p<2>; .reg .pred %q<2>;
ld.param.u64 %p0, [a]; mov.u32 %r0, %laneid; setp.lt.u32 %q0, %r0, 16;
{before}
{load}
ret; }}
"""
        with pytest.raises(kind, match=message):
            run_both(text, "k", 1, 32, np.zeros(128, np.float32), only=only)


def test_layouts_that_single_bits_do_not_have() -> None:
    text = f"""{HEADER}
.visible .entry k() {{
.reg .b32 %r<8>;
wmma.mma.sync.aligned.col.col.m8n8k32.s32.s4.s4.s32 {{%r0,%r1}}, {{%r2}}, {{%r3}}, {{%r4,%r5}};
ret; }}
"""
    with pytest.raises(PtxSyntaxError, match=r"is for \.row\.col alone"):
        run_both(text, "k", 1, 32)
